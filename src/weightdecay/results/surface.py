"""One quadratic surface over the basin: a second opinion on s, and where the optimum is.

In the windows that `ridge` chose with other seeds, an error is fitted by

    a_k + q₁·x + q₂·z + q₃·x² + q₄·x·z + q₅·z²        x = log2 α,  z = log2 λ

with an intercept for each seed k. The best decay at each rate is then on a line of slope
−q₄/(2·q₅), and the best of all where both derivatives vanish.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results import ridge
from weightdecay.results.arrays import Arrays
from weightdecay.results.estimate import Array

_LEAST = 1e-18
_COUNT = 5


@dataclass(frozen=True)
class Surface:
    """Coefficients q₁ … q₅ about a centre, draws of them, and the freedom of their noise."""

    centre: tuple[float, float]
    coefficients: Array
    draws: Array
    freedom: float


def surface(grid: Arrays, log_decays: Array, *, draws: int) -> Surface | None:
    """Fit the surface; None where the windows have fewer than three rates or two seeds."""
    cells = ridge.fresh(grid)
    columns = cells.any((1, 2))
    if columns.sum() < 3 or cells.any((0, 1)).sum() < 2:
        return None
    rate, _, seed = np.nonzero(cells)
    x = np.broadcast_to(np.log2(grid.lrs)[:, None, None], cells.shape)[cells]
    z = np.broadcast_to(log_decays[:, :, None], cells.shape)[cells]
    centre = float(x.mean()), float(z.mean())
    x, z = x - centre[0], z - centre[1]
    terms = _within(np.stack([x, z, x**2, x * z, z**2], 1), seed)
    values = _within(grid.tested[cells][:, None], seed)[:, 0]
    inverse = np.linalg.inv(terms.T @ terms)
    coefficients = inverse @ terms.T @ values
    left = values - terms @ coefficients
    # What a seed says in a column keeps together: its signs are drawn as one.
    block = rate * len(grid.seeds) + seed
    parts = np.zeros((len(grid.lrs) * len(grid.seeds), _COUNT))
    np.add.at(parts, block, terms * left[:, None])
    blocks = float(len(np.unique(block)))
    freedom = blocks - _COUNT
    if not freedom >= 1:
        return None
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (draws, len(parts)))
    moved = signs @ parts @ inverse * np.sqrt(blocks / freedom)
    return Surface(centre, coefficients, coefficients + moved, freedom)


def exponent_of(coefficients: Array) -> Array:
    """Return s = −d log λ* / d log α."""
    exponent: Array = coefficients[..., 3] / (2 * coefficients[..., 4])
    return exponent


def optimum(surface: Surface, coefficients: Array) -> tuple[Array, Array]:
    """Return log2 of the best rate and decay; NaN where the surface has no lowest point."""
    across, along, bend, twist, curve = np.moveaxis(coefficients, -1, 0)
    determinant = 4 * bend * curve - twist**2
    lowest = (determinant > 0) & (curve > 0)
    safe = np.where(lowest, determinant, 1)
    x = (twist * along - 2 * curve * across) / safe
    z = (twist * across - 2 * bend * along) / safe
    return (
        np.where(lowest, surface.centre[0] + x, np.nan),
        np.where(lowest, surface.centre[1] + z, np.nan),
    )


def _within(values: Array, index: npt.NDArray[np.intp]) -> Array:
    """Return values less their seed's mean."""
    count = np.maximum(np.bincount(index), 1)
    means = np.stack([np.bincount(index, column) for column in values.T], 1) / count[:, None]
    centred: Array = values - means[index]
    return centred
