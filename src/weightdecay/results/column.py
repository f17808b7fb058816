"""The best decay at one learning rate, by two estimators.

Heights ln e are given over z = log2 λ. Around the lowest cell,

    PARABOLA  fits ln e within one doubling by a parabola; the best decay is at its vertex
    HALVES    fits e within two doublings by two half-parabolas with one vertex

Errors rise far more steeply with too much decay than with too little. The first estimator looks
only where that matters little, and scatters least. The second allows for it, and scatters more.
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array
from weightdecay.results.noise import Flags

#: The two estimators, as places on an axis, and how far their windows reach, in doublings or in
#: steps of the grid, if these are larger.
PARABOLA, HALVES = 0, 1
REACH = (1, 2)
#: What is farther away by so much is as far: learning rates and decays are often rounded.
ROUNDED = 1.1
_PLACES = 21  # where the common vertex of two halves is tried
_LEAST = 1e-12

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Column:
    """The measured cells of a learning rate; `unit` is a doubling, or a larger step of the grid.

    Cells that are not `usable` diverged: they belong to no window. `logs` says that heights are
    logarithms of errors.
    """

    z: Array
    usable: Flags
    unit: float
    logs: bool = True
    #: Whether a cell has usable neighbours on both sides, so that a window can be around it.
    inside: Flags = field(init=False)

    def __post_init__(self) -> None:
        inside = [len(self.window(at, PARABOLA)) >= 3 for at in range(len(self.z))]
        object.__setattr__(self, "inside", np.array(inside, dtype=np.bool_))

    def window(self, at: int, estimator: int) -> Places:
        """Return the cells around one; the first estimator's have as many on either side."""
        reach = ROUNDED * REACH[estimator] * self.unit
        sides = [0, 0]
        for side, step in enumerate((-1, 1)):
            beyond = at + step
            while (
                0 <= beyond < len(self.z)
                and self.usable[beyond]
                and abs(self.z[beyond] - self.z[at]) <= reach
            ):
                sides[side] += 1
                beyond += step
        if estimator == PARABOLA:
            sides = [min(sides)] * 2
        return np.arange(at - sides[0], at + sides[1] + 1) if self.usable[at] else np.arange(0)

    def lowest(self, heights: Array, *, inside: bool = False) -> Places:
        """Return the lowest usable cell of each row of heights, or the lowest inside."""
        allowed = self.inside if inside else self.usable
        lowest: Places = np.where(allowed, heights, np.inf).argmin(-1)
        return lowest

    def best(self, heights: Array, centres: Places) -> Array:
        """Return the best log2 decay of each row of heights, by each estimator.

        The second is NaN where its window has fewer than four cells.
        """
        best = np.full((len(heights), 2), np.nan)
        for at in np.unique(centres):
            rows = centres == at
            for estimator, fitted in ((PARABOLA, _parabola), (HALVES, _halves)):
                cells = self.window(at, estimator)
                moved = (self.z[cells] - self.z[at]) / self.unit
                near = heights[np.ix_(rows, cells)]
                if self.logs and estimator == HALVES:
                    near = np.exp(near - near.min(1, keepdims=True))
                offset = fitted(moved, near)
                best[rows, estimator] = self.z[at] + self.unit * offset
        return best

    def depths(self, heights: Array, centres: Places) -> Array:
        """Return the height of each row at its best decay, by the first estimator."""
        depths = np.full(len(heights), np.nan)
        for at in np.unique(centres):
            rows, cells = centres == at, self.window(at, PARABOLA)
            moved = (self.z[cells] - self.z[at]) / self.unit
            near = heights[np.ix_(rows, cells)]
            level, slope, curve = _parabola_fit(tuple(moved.round(9))) @ near.T
            vertex = _parabola(moved, near)
            depths[rows] = level + slope * vertex + curve * vertex**2
        return depths


def _parabola(z: Array, heights: Array) -> Array:
    """Return the vertices of parabolas, in the window; 0 where one does not curve upwards."""
    _, slope, curve = _parabola_fit(tuple(z.round(9))) @ heights.T
    upwards = curve > _LEAST
    vertex = np.where(upwards, -slope / (2 * np.where(upwards, curve, 1)), 0.0)
    return np.clip(vertex, z[0], z[-1])


@cache
def _parabola_fit(z: tuple[float, ...]) -> Array:
    """Return the matrix that gives the coefficients of a parabola over z."""
    return np.linalg.pinv(np.stack([np.ones(len(z)), z, np.square(z)], 1))


def _halves(z: Array, heights: Array) -> Array:
    """Return the common vertices of two half-parabolas, of which neither may curve downwards."""
    if len(z) < 4:
        return np.full(len(heights), np.nan)
    tried, terms, inverse = _halves_fit(tuple(z.round(9)))
    fitted = inverse @ heights.T
    left = heights.T - terms @ fitted
    upwards = (fitted[:, 1:] >= -_LEAST).all(1)
    squares = np.where(upwards, (left**2).sum(1), np.inf).T
    at = squares.argmin(1)
    rows = np.arange(len(heights))
    # Between the places that were tried, the lowest point of a parabola through three of them.
    below, here, above = (squares[rows, np.clip(at + k, 0, _PLACES - 1)] for k in (-1, 0, 1))
    with np.errstate(invalid="ignore"):
        bend, lean = below - 2 * here + above, (below - above) / 2
    between = np.isfinite(bend) & (bend > 0)
    offset = np.where(between, lean / np.where(between, bend, 1), 0.0)
    vertex = tried[at] + (tried[1] - tried[0]) * np.clip(offset, -0.5, 0.5)
    return np.where(np.isfinite(here), vertex, 0.0)


@cache
def _halves_fit(z: tuple[float, ...]) -> tuple[Array, Array, Array]:
    """Return where vertices are tried, the terms at each cell, and what fits coefficients."""
    tried = np.linspace(-1, 1, _PLACES)
    off = np.array(z) - tried[:, None]
    terms = np.stack([np.ones_like(off), np.minimum(off, 0) ** 2, np.maximum(off, 0) ** 2], -1)
    return tried, terms, np.linalg.pinv(terms)
