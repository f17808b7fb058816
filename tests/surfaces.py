"""Smooth surfaces through the errors of committed sweeps, by kriging.

A Gaussian process is drawn through the mean of each cell, with the noise that seeds show near the
best. Its heights are y = ln(1 + (ln e − lowest) / 0.1). In them, seeds scatter about alike in the
basin and up to its cliffs, and both rise alike, so that what suppresses noise in the basin does not
round off the cliffs. The direction of the ridge, and how far heights resemble each other along it
and across, are the likeliest. Nothing is taken from the estimators of s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from tests.landscapes import Array
from weightdecay import records
from weightdecay.results import Landscape, landscapes
from weightdecay.results.arrays import grid
from weightdecay.results.noise import DEPTH, effects, mean, noise

RESULTS = Path(__file__).parents[1] / "results"
_SCALE = 0.1  # of what errors rise by, relatively
_LEAST = 0.05  # of what a logarithm is taken of: seeds may be lower than the lowest mean
_TILTS = (-1.0, 0.0, 1.0)  # where the search for the likeliest direction starts
_TILTED, _LOGS = 3.0, 4.0  # the steepest direction, and the largest logarithm of a length


@dataclass(frozen=True)
class Sweep:
    """Where records are, and what the configurations to smooth have in common.

    `examples` are those that validation and test errors are counted on.
    """

    path: str
    config: Mapping[str, Any]
    examples: tuple[int, int]


_TEXT = {"epochs": 48, "schedule": "cosine", "batch": 16, "data": 128}
#: The sweeps that are smoothed.
SWEEPS = {
    "cifar10": Sweep("cifar10-small/figure-2.parquet", {}, (5_000, 10_000)),
    "mnist1d": Sweep(
        "mnist1d-medium/records.parquet",
        {"epochs": 48, "schedule": "cosine", "batch": 64, "data": 2000},
        (1_000, 20_000),
    ),
    "text": Sweep("text-medium/records.parquet", _TEXT, (256 * 64, 500 * 64)),
}
#: Those that have the paper's four panels.
WHOLE = ("cifar10", "mnist1d", "text")
#: The algorithms of the paper's four panels, and how each states its decay.
PANELS = (("sgd", "l2"), ("sgdw", "weight_decay"), ("adam", "l2"), ("adamw", "weight_decay"))


@cache
def panels(name: str) -> dict[tuple[str, str], Landscape]:
    """Return the landscapes of a sweep, by algorithm and by how the decay is stated."""
    sweep = SWEEPS[name]
    runs = [
        run
        for run in records.read(RESULTS / sweep.path)
        if all(getattr(run.config, key) == value for key, value in sweep.config.items())
    ]
    found: dict[tuple[str, str], Landscape] = {}
    for one in landscapes(runs):
        place = str(one.labels["algorithm"]), one.way
        if place in found:
            raise ValueError(
                f"{name} must have one landscape of {place}, got two: state more of it."
            )
        found[place] = one
    return found


@dataclass(frozen=True)
class Surface:
    """A smooth surface through the test errors of a landscape; x and z are log2 of α and λ.

    It is drawn through `cells`, of which each adds its weight times a kernel of some `shape` to a
    `level`. `own` is the standard deviation of a run's height about its cell's on the validation
    and the test set, and `common` that of what all runs of a seed share.
    """

    cells: Array
    weights: Array
    level: float
    lowest: float
    shape: Array
    own: Array
    common: Array

    def at(self, x: Array | float, z: Array | float) -> Array:
        """Return heights at places."""
        places = np.stack(np.broadcast_arrays(x, z), -1)
        found = _kernel(self.shape, places.reshape(-1, 2), self.cells) @ self.weights
        heights: Array = self.level + found.reshape(places.shape[:-1])
        return heights

    def errors(self, heights: Array) -> Array:
        """Return the errors of heights."""
        errors: Array = np.minimum(np.exp(self.lowest + _SCALE * np.expm1(heights)), 0.999)
        return errors


def smooth(landscape: Landscape) -> Surface:
    """Return the surface through a landscape's cells with decays above 0 that did not diverge."""
    found = grid(landscape, zero=False)
    lost = found.lost()[..., None]
    tested = np.log(np.where(lost, np.nan, found.tested))
    chosen = np.log(np.where(lost, np.nan, found.chosen))
    lowest = float(np.nanmin(mean(tested)))
    chosen, tested = (
        np.log(np.maximum(1 + (one - lowest) / _SCALE, _LEAST)) for one in (chosen, tested)
    )
    heights = mean(tested)
    known = np.isfinite(heights)
    near = np.nan_to_num(heights, nan=np.inf) < np.log(1 + DEPTH / _SCALE)
    own = np.array([noise(one, near)[0] for one in (chosen, tested)])
    shared = np.array([np.var(effects(one[near])[1], ddof=1) for one in (chosen, tested)])
    x, z = np.broadcast_arrays(np.log2(found.lrs)[:, None], np.log2(found.decays))
    cells = np.stack([x[known], z[known]], -1)
    nugget = own[1] / np.isfinite(tested[known]).sum(1)
    shape = _likeliest(cells, heights[known], nugget)
    weights, level, _ = _solved(shape, cells, heights[known], nugget)
    common = np.sqrt(np.maximum(shared - own / near.sum(), 0))
    return Surface(cells, weights, level, lowest, shape, np.sqrt(own), common)


def _likeliest(cells: Array, heights: Array, nugget: Array) -> Array:
    """Return the likeliest shape: a direction, and logarithms of two lengths and of a variance."""

    def cost(shape: Array) -> float:
        if abs(shape[0]) > _TILTED or np.abs(shape[1:]).max() > _LOGS:
            return np.inf
        return _solved(shape, cells, heights, nugget)[2]

    starts = [np.array([tilt, np.log(2), np.log(2), 0.0]) for tilt in _TILTS]
    ends = [minimize(cost, one, method="Nelder-Mead", options={"maxiter": 400}) for one in starts]
    best: Array = min(ends, key=lambda end: float(end.fun)).x
    return best


def _kernel(shape: Array, one: Array, other: Array) -> Array:
    """Return Matérn's kernel (5/2) between places, with one length along the ridge, one across."""
    along, across, size = np.exp(shape[1:])
    x, z = np.moveaxis(one[:, None] - other, -1, 0)
    far = np.sqrt(5 * ((x / along) ** 2 + ((z + shape[0] * x) / across) ** 2))
    kernel: Array = size * (1 + far + far**2 / 3) * np.exp(-far)
    return kernel


def _solved(
    shape: Array, cells: Array, heights: Array, nugget: Array
) -> tuple[Array, float, float]:
    """Return the cells' weights, the level, and minus the logarithm of the likelihood."""
    covariance = _kernel(shape, cells, cells) + np.diag(nugget + 1e-9)
    lower = np.linalg.cholesky(covariance), True
    ones = cho_solve(lower, np.ones(len(cells)))
    level = float(ones @ heights / ones.sum())
    weights: Array = cho_solve(lower, heights - level)
    unlikely = (heights - level) @ weights / 2 + np.log(np.diag(lower[0])).sum()
    return weights, level, float(unlikely)
