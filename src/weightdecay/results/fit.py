"""The surface through the cells near the best: the setting to recommend, and those as good.

The luckiest cell of a noisy grid is rarely the best setting. Here the cells near the best decide
together: the quadratic of `polynomial` is fitted to them by least squares. Cliffs are flattened
first: f = 1 − exp(−(e/m − 1)/0.2), where m is the lowest error. So an error far above the best
counts as far, but not as ever farther, and a run that diverged counts as 1. The fitted cells are
those within two doublings of the lowest point of their own learning rate, found after smoothing.

Every seed both chooses the cells and is fitted, so this is for choosing. `coupling` judges.
"""

import math
from dataclasses import dataclass

import numpy as np

from weightdecay.results.estimate import Array, student
from weightdecay.results.exponent import Exponent, unknown
from weightdecay.results.landscape import Cell, Landscape
from weightdecay.results.noise import DEPTH, Flags, basin, effects, mean
from weightdecay.results.polynomial import (
    determined,
    exponent_of,
    hessian,
    powers,
    ridge_line,
    slopes_at,
    terms_of,
)
from weightdecay.results.ridge import CERTAIN
from weightdecay.results.stencils import in_steps, usual_steps

#: Errors this share above the lowest count as 1 − 1/e.
SCALE = 0.2
#: A setting counts as good if its fitted error is at most this share above the lowest.
AS_GOOD = 0.02
#: How far from the lowest point cells are fitted, in doublings; one step of the grid at least.
REACH = 2.0
_SMOOTH = 0.85  # the width of the smoothing in steps: a direct neighbour counts half
_STRIP = 0.5  # learning rates closer than this, in doublings, are one column
# The seeds that chose the cells are fitted too, so s needs a wider interval: simulations say this.
_WIDENED = 1.5
_FULL = powers(2)


@dataclass(frozen=True)
class Surface:
    """The fitted surface; `best` is its lowest point, as log2 of the learning rate and the decay.

    `coefficients` are about `centre`, and 0 for terms that the cells do not determine. Their
    covariance is `inverse` · `variance`, with `freedom` degrees of freedom. `low` and `high` are
    the ends of the fitted rates, and of the fitted decays at the best rate. Up to `tolerance` above
    the lowest f, an error counts as just as good. A bowl over a cliff lies above the errors:
    `kriging` says what to expect at the best.
    """

    centre: tuple[float, float]
    coefficients: Array
    inverse: Array
    variance: float
    freedom: float
    low: tuple[float, float]
    high: tuple[float, float]
    best: tuple[float, float]
    tolerance: float
    cells: tuple[Cell, ...]

    def interval(self, axis: int) -> tuple[float, float]:
        """Return the log2 rates (axis 0) or decays (axis 1) between which an error is as good.

        The other knob stays at its best value. The range ends where the fitted cells end.
        """
        at = np.array(self.best) - self.centre
        linear = float((slopes_at(at, 2) @ self.coefficients)[axis])
        square = float(hessian(self.coefficients)[axis, axis]) / 2
        ends = self.low[axis] - self.best[axis], self.high[axis] - self.best[axis]
        if not square > 0:
            crossing = self.tolerance / abs(linear) if linear else math.inf
            low, high = (-math.inf, crossing) if linear > 0 else (-crossing, math.inf)
        else:
            half = math.sqrt(linear**2 + 4 * square * self.tolerance)
            low, high = (-linear - half) / (2 * square), (-linear + half) / (2 * square)
        best = self.best[axis]
        return best + max(ends[0], min(low, 0.0)), best + min(ends[1], max(high, 0.0))

    def ridge(self, x: float) -> float:
        """Return log2 of the best decay at log2 of a learning rate; NaN if there is none."""
        if not self.coefficients[5] > 0:
            return math.nan
        slope, intercept = ridge_line(self.coefficients, self.centre)
        return intercept + slope * x

    def exponent(self) -> Exponent:
        """Return s = −d log λ* / d log α, with an interval from the scatter about the surface."""
        if not self.inverse.any(1).all() or not self.freedom >= 1:
            return unknown("Too few cells near the best for a surface through them.")
        curve = float(self.coefficients[5])
        certainty = curve / math.sqrt(self.variance * self.inverse[5, 5]) if self.variance else 9.0
        if not curve > 0 or not certainty >= CERTAIN:
            return unknown("The basin is too flat for its noise to locate its lowest point.")
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
    centre = float(places[start, 0]), float(places[start, 1])
    moved = places[near] - centre
    known = [_FULL.index(power) for power in determined(moved)]
    terms = terms_of(_FULL, moved[:, 0], moved[:, 1])
    inverse = np.zeros((len(_FULL), len(_FULL)))
    own = terms[:, known]
    inverse[np.ix_(known, known)] = np.linalg.pinv(own.T @ (weight[:, None] * own))
    coefficients = inverse @ terms.T @ (weight * flat[near])
    fitted = terms @ coefficients
    offset = _lowest(coefficients, moved, fitted, usual_steps(landscape.cells))
    row = terms_of(_FULL, offset[0], offset[1])
    freedom = float(len(chosen) - len(known))
    best, rates = (centre[0] + offset[0], centre[1] + offset[1]), places[near, 0]
    lowest_decay, highest_decay = _decays_at(places[near], best[0])

    left = flat[near] - fitted
    variance = float((weight * left**2).sum() / freedom) if freedom >= 1 else math.nan
    depth = 1 - min(float(row @ coefficients), 0.99)
    score = lowest - unit * math.log(depth)
    return Surface(
        centre=centre,
        coefficients=coefficients,
        inverse=inverse,
        variance=variance,
        freedom=freedom,
        low=(rates.min(), lowest_decay),
        high=(rates.max(), highest_decay),
        best=best,
        tolerance=depth * -math.expm1(-AS_GOOD * abs(score) / unit),
        cells=tuple(chosen),
    )


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


def _lowest(
    coefficients: Array, moved: Array, fitted: Array, steps: tuple[float, float]
) -> tuple[float, float]:
    """Return where the surface is lowest: between its cells if possible, else at one of them."""
    bend = hessian(coefficients)
    cell = moved[int(fitted.argmin())]
    free = [axis for axis in (0, 1) if bend[axis, axis] > 0]
    if free and np.linalg.det(bend[np.ix_(free, free)]) > 0:
        # A knob without curvature stays at the best cell's value.
        held = [axis for axis in (0, 1) if axis not in free]
        right = -coefficients[1:3][free] - bend[np.ix_(free, held)] @ cell[held]
        vertex = cell.copy()
        vertex[free] = np.linalg.solve(bend[np.ix_(free, free)], right)
        if _between(moved, vertex) and (
            (np.abs(moved - vertex) <= np.array(steps) + 1e-6).all(1).any()
        ):
            return float(vertex[0]), float(vertex[1])
    return float(cell[0]), float(cell[1])


def _between(cells: Array, place: Array) -> bool:
    """Whether a place lies between learning rates, and between the decays at its own."""
    low, high = _decays_at(cells, place[0])
    within = cells[:, 0].min() <= place[0] <= cells[:, 0].max()
    return bool(within and low - 1e-6 <= place[1] <= high + 1e-6)


def _decays_at(cells: Array, rate: float) -> tuple[float, float]:
    """Return the lowest and the highest decay at a learning rate.

    Learning rates may have decays of their own, as in a grid in torch's decay. Between two of them,
    the ends are on the lines between theirs.
    """
    rates, column = np.unique(cells[:, 0], return_inverse=True)
    own = [cells[column == i, 1] for i in range(len(rates))]
    low, high = (np.interp(rate, rates, [end(decays) for decays in own]) for end in (min, max))
    return float(low), float(high)
