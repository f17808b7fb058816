"""The surface through the cells near the best: s, if too few learning rates have several seeds.

The quadratic of `polynomial` is fitted to the cells by least squares. Cliffs are flattened first:
f = 1 − exp(−(e/m − 1)/0.2), where m is the lowest error. So an error far above the best counts as
far, but not as ever farther, and a run that diverged counts as 1. The fitted cells are those within
two doublings of the lowest point of their own learning rate, found after smoothing.

Beside a cliff, the lowest point of such a bowl is not the best setting: that is for `lowest`.
"""

import math
from dataclasses import dataclass

import numpy as np

from weightdecay.results.estimate import Array, student
from weightdecay.results.exponent import FLAT, Exponent, unknown
from weightdecay.results.landscape import Cell, Landscape
from weightdecay.results.noise import DEPTH, Flags, basin, effects, mean
from weightdecay.results.polynomial import determined, exponent_of, powers, terms_of
from weightdecay.results.ridge import CERTAIN
from weightdecay.results.stencils import in_steps, usual_steps

#: Errors this share above the lowest count as 1 − 1/e.
SCALE = 0.2
#: How far from the lowest point cells are fitted, in doublings; one step of the grid at least.
REACH = 2.0
_SMOOTH = 0.85  # the width of the smoothing in steps: a direct neighbour counts half
_STRIP = 0.5  # learning rates closer than this, in doublings, are one column
# The seeds that chose the cells are fitted too, so s needs a wider interval: simulations say this.
_WIDENED = 1.5
_FULL = powers(2)


@dataclass(frozen=True)
class Surface:
    """The fitted surface about its lowest cell, and the `cells` that it was fitted to.

    `coefficients` are 0 for terms that the cells do not determine. Their covariance is `inverse` ·
    `variance`, with `freedom` degrees of freedom.
    """

    coefficients: Array
    inverse: Array
    variance: float
    freedom: float
    cells: tuple[Cell, ...]

    def exponent(self) -> Exponent:
        """Return s = −d log λ* / d log α, with an interval from the scatter about the surface."""
        if not self.inverse.any(1).all() or not self.freedom >= 1:
            return unknown("Too few cells near the best for a surface through them.")
        curve = float(self.coefficients[5])
        certainty = curve / math.sqrt(self.variance * self.inverse[5, 5]) if self.variance else 9.0
        if not curve > 0 or not certainty >= CERTAIN:
            return unknown(FLAT)
        value = float(exponent_of(self.coefficients))
        gradient = np.array([0, 0, 0, 0, 1 / (2 * curve), -value / curve])
        half = _WIDENED * student(self.freedom)
        half *= math.sqrt(self.variance * float(gradient @ self.inverse @ gradient))
        return Exponent(value, value - half, value + half, freedom=self.freedom)


def fit(landscape: Landscape) -> Surface | None:
    """Fit the surface; None if no cell with a decay above 0 finished."""
    cells = [cell for cell in landscape.cells.values() if cell.decay > 0]
    lost = np.array([bool(cell.diverged) for cell in cells], dtype=np.bool_)
    if lost.all():
        return None
    places = np.log2([(cell.lr, cell.decay) for cell in cells])
    scores = _scores(cells, lost)
    lowest = float(scores[~lost].min())
    unit = SCALE * lowest if lowest > 0 else float(np.median(scores[~lost])) - lowest or 1.0
    flat = np.where(lost, 1.0, -np.expm1(-(scores - lowest) / unit))
    near, start = _window(cells, places, flat, lost)
    chosen = [cell for cell, inside in zip(cells, near, strict=True) if inside]
    weight = np.array([len(cell.seeds) for cell in chosen], dtype=np.float64)
    moved = places[near] - places[start]
    known = [_FULL.index(power) for power in determined(moved)]
    terms = terms_of(_FULL, moved[:, 0], moved[:, 1])
    inverse = np.zeros((len(_FULL), len(_FULL)))
    own = terms[:, known]
    inverse[np.ix_(known, known)] = np.linalg.pinv(own.T @ (weight[:, None] * own))
    coefficients = inverse @ terms.T @ (weight * flat[near])
    left = flat[near] - terms @ coefficients
    freedom = float(len(chosen) - len(known))
    variance = float((weight * left**2).sum() / freedom) if freedom >= 1 else math.nan
    return Surface(coefficients, inverse, variance, freedom, tuple(chosen))


def _scores(cells: list[Cell], lost: Flags) -> Array:
    """Return each cell's mean error to choose on, minus the effects of its seeds."""
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    errors = np.full((len(cells), len(seeds)), np.nan)
    for row, cell in zip(errors, cells, strict=True):
        row[[seeds.index(seed) for seed in cell.seeds]] = cell.chosen
    near = basin(np.where(lost, np.nan, mean(errors)))
    return mean(errors - effects(errors[near])[1])


def _window(cells: list[Cell], places: Array, flat: Array, lost: Flags) -> tuple[Flags, int]:
    """Return which cells to fit, and the lowest cell.

    They are those near the lowest point of their own learning rate.
    """
    steps = usual_steps((cell.lr, cell.decay) for cell in cells)
    apart = np.array(in_steps([(cell.lr, cell.decay) for cell in cells])) / _SMOOTH
    square = ((apart[:, None] - apart[None]) ** 2).sum(2)
    weight = np.exp(-square / 2) * [len(cell.seeds) for cell in cells]
    smooth = np.where(lost, np.inf, weight @ flat / weight.sum(1))
    start = int(smooth.argmin())
    x, z = places.T
    column = np.abs(x[:, None] - x[None]) < _STRIP
    best = np.where(column, smooth[None], np.inf).argmin(1)
    # A column counts if its lowest smoothed error is within the basin's depth.
    deep = (1 - smooth[start]) * math.exp(-DEPTH / SCALE)
    reach = [max(REACH, step) + 1e-6 for step in steps]
    near: Flags = (
        (np.abs(x - x[start]) <= reach[0])
        & (np.abs(z - z[best]) <= reach[1])
        & (1 - smooth[best] >= deep)
    )
    return near, start
