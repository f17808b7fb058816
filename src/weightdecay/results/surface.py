"""Where the optimum is: one quadratic over the basin, fitted by fresh seeds.

In the windows that `ridge` chose with other seeds, errors are fitted by the quadratic of
`polynomial`, with an intercept for each seed instead of q₀.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results import ridge
from weightdecay.results.arrays import Arrays
from weightdecay.results.estimate import Array
from weightdecay.results.polynomial import powers, terms_of, vertex

_TERMS = powers(2)[1:]  # each seed has an intercept of its own


@dataclass(frozen=True)
class DrawnSurface:
    """A quadratic about a centre, draws of it, and the freedom of their noise; q₀ is 0."""

    centre: tuple[float, float]
    coefficients: Array
    draws: Array
    freedom: float


def surface(grid: Arrays, log_decays: Array, *, draws: int) -> DrawnSurface | None:
    """Fit the surface; None if the windows have fewer than three learning rates or two seeds."""
    cells = ridge.fresh(grid)
    columns = cells.any((1, 2))
    if columns.sum() < 3 or cells.any((0, 1)).sum() < 2:
        return None
    rate, _, seed = np.nonzero(cells)
    x = np.broadcast_to(np.log2(grid.lrs)[:, None, None], cells.shape)[cells]
    z = np.broadcast_to(log_decays[:, :, None], cells.shape)[cells]
    centre = float(x.mean()), float(z.mean())
    x, z = x - centre[0], z - centre[1]
    terms = _within(terms_of(_TERMS, x, z), seed)
    values = _within(grid.tested[cells][:, None], seed)[:, 0]
    inverse = np.linalg.inv(terms.T @ terms)
    coefficients = inverse @ terms.T @ values
    left = values - terms @ coefficients
    # The residuals of a seed in a column stay together: they get one random sign.
    block = rate * len(grid.seeds) + seed
    parts = np.zeros((len(grid.lrs) * len(grid.seeds), len(_TERMS)))
    np.add.at(parts, block, terms * left[:, None])
    blocks = float(len(np.unique(block)))
    freedom = blocks - len(_TERMS)
    if not freedom >= 1:
        return None
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (draws, len(parts)))
    moved = signs @ parts @ inverse * np.sqrt(blocks / freedom)
    drawn = np.insert(coefficients + moved, 0, 0.0, axis=1)
    return DrawnSurface(centre, np.insert(coefficients, 0, 0.0), drawn, freedom)


def optimum(surface: DrawnSurface, coefficients: Array) -> tuple[Array, Array]:
    """Return log2 of the best rate and decay; NaN where the surface has no lowest point."""
    x, z = vertex(coefficients)
    return surface.centre[0] + x, surface.centre[1] + z


def _within(values: Array, index: npt.NDArray[np.intp]) -> Array:
    """Return values minus the mean of their seed."""
    count = np.maximum(np.bincount(index), 1)
    means = np.stack([np.bincount(index, column) for column in values.T], 1) / count[:, None]
    centred: Array = values - means[index]
    return centred
