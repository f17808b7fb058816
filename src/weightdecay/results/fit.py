"""One surface through the cells near the best: where it is lowest, and which settings are as good.

The luckiest cell of a noisy grid is rarely the best setting. Here the cells near the best say
together where that is: a quadratic in x = log2 α and z = log2 λ, fitted by least squares,

    f = q₀ + q₁·x + q₂·z + q₃·x² + q₄·x·z + q₅·z²

to errors whose cliffs are flattened: f = 1 − exp(−(e/m − 1)/0.2), where m is the lowest error. An
error far above the best counts as far, not as farther, and a run that diverged counts as 1. The
fitted cells are those within two doublings of the lowest point of their own learning rate, which
is found after smoothing.

Every seed both chooses the cells and is fitted, so this is for choosing. `coupling` judges.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array, Estimate, student, summed, within
from weightdecay.results.exponent import Exponent, unknown
from weightdecay.results.landscape import Cell, Landscape
from weightdecay.results.noise import DEPTH, Flags, basin, effects, mean
from weightdecay.results.ridge import CERTAIN
from weightdecay.results.stencils import in_steps, usual_steps

#: Errors this share above the lowest count as 1 − 1/e.
SCALE = 0.2
#: A setting is as good as the best if its fitted error is at most this share above the lowest.
AS_GOOD = 0.02
#: How far from the lowest point cells are fitted, in doublings; one step of the grid at least.
REACH = 2.0
_SMOOTH = 0.85  # the width of the smoothing in steps: a direct neighbour counts half
_STRIP = 0.5  # learning rates less than so many doublings apart are one column
# The seeds that chose the cells are fitted too: simulations say how much wider s must be for that.
_WIDENED = 1.5
# Terms as powers of x and of z; the first set that the cells determine is fitted.
_FULL = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
_SETS = (
    _FULL,
    ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2)),
    ((0, 0), (1, 0), (0, 1), (0, 2)),
    ((0, 0), (1, 0), (0, 1), (2, 0)),
    ((0, 0), (0, 1), (0, 2)),
    ((0, 0), (1, 0), (2, 0)),
    ((0, 0),),
)


@dataclass(frozen=True)
class Surface:
    """The fitted surface: `best` is its lowest point, as log2 of the learning rate and the decay.

    `centre`, `powers` and `coefficients` say what it is; its covariance is `inverse` · `variance`,
    with `freedom` degrees. `low` and `high` are the corners of what was fitted. `score` is the
    error to choose on at the lowest point, and `tested` estimates the test error there.
    Up to `tolerance` above the lowest f, an error is as good.
    """

    centre: tuple[float, float]
    powers: tuple[tuple[int, int], ...]
    coefficients: Array
    inverse: Array
    variance: float
    freedom: float
    low: tuple[float, float]
    high: tuple[float, float]
    best: tuple[float, float]
    score: float
    tested: Estimate
    tolerance: float
    cells: tuple[Cell, ...]

    def interval(self, axis: int) -> tuple[float, float]:
        """Return the log2 rates (axis 0) or decays (1) between which an error is as good.

        The other knob stays at its best value. It ends where the fitted cells do.
        """
        linear, square = self._slice(axis)
        ends = self.low[axis] - self.best[axis], self.high[axis] - self.best[axis]
        if not square > 0:
            crossing = self.tolerance / abs(linear) if linear else math.inf
            low, high = (-math.inf, crossing) if linear > 0 else (-crossing, math.inf)
        else:
            half = math.sqrt(linear**2 + 4 * square * self.tolerance)
            low, high = (-linear - half) / (2 * square), (-linear + half) / (2 * square)
        at = self.best[axis]
        return at + max(ends[0], min(low, 0.0)), at + min(ends[1], max(high, 0.0))

    def _slice(self, axis: int) -> tuple[float, float]:
        """Return the slope and the curvature along an axis at the best, halves not taken."""
        known = dict(zip(self.powers, map(float, self.coefficients), strict=True))
        at = [best - centre for best, centre in zip(self.best, self.centre, strict=True)]
        first, second = ((1, 0), (2, 0)) if axis == 0 else ((0, 1), (0, 2))
        square = known.get(second, 0.0)
        cross = known.get((1, 1), 0.0) * at[1 - axis]
        return known.get(first, 0.0) + 2 * square * at[axis] + cross, square

    def ridge(self, x: float) -> float:
        """Return log2 of the best decay at log2 of a learning rate; NaN where it cannot be said."""
        known = dict(zip(self.powers, map(float, self.coefficients), strict=True))
        if not known.get((0, 2), 0.0) > 0:
            return math.nan
        slope = known[0, 1] + known.get((1, 1), 0.0) * (x - self.centre[0])
        return self.centre[1] - slope / (2 * known[0, 2])

    def exponent(self) -> Exponent:
        """Return s = −d log λ* / d log α of the surface, with an interval from its scatter."""
        if self.powers != _FULL or not self.freedom >= 1:
            return unknown("Too few cells near the best for a surface through them.")
        *_, twist, curve = map(float, self.coefficients)
        certainty = curve / math.sqrt(self.variance * self.inverse[5, 5]) if self.variance else 9.0
        if not certainty >= CERTAIN:
            return unknown("The basin is too flat for its noise to say where it is lowest.")
        value = twist / (2 * curve)
        gradient = np.array([0, 0, 0, 0, 1 / (2 * curve), -value / curve])
        half = _WIDENED * student(self.freedom)
        half *= math.sqrt(self.variance * float(gradient @ self.inverse @ gradient))
        return Exponent(value, value - half, value + half)


def fit(landscape: Landscape) -> Surface | None:
    """Fit the surface; None where no cell with a decay above 0 came to its end."""
    cells = [cell for cell in landscape.cells.values() if cell.decay > 0]
    lost = np.array([bool(cell.diverged) for cell in cells], dtype=np.bool_)
    if lost.all():
        return None
    places = np.log2([(cell.lr, cell.decay) for cell in cells])
    scores, _ = _scores(cells, "chosen", lost)
    lowest = float(scores[~lost].min())
    unit = SCALE * lowest if lowest > 0 else float(np.median(scores[~lost])) - lowest or 1.0
    flat = np.where(lost, 1.0, -np.expm1(-(scores - lowest) / unit))
    near, start = _window(cells, places, flat, lost)
    chosen = [cell for cell, inside in zip(cells, near, strict=True) if inside]
    weight = np.array([len(cell.seeds) for cell in chosen], dtype=np.float64)
    centre = float(places[start, 0]), float(places[start, 1])
    moved = places[near] - centre
    powers, terms = _determined(moved)
    inverse: Array = np.asarray(np.linalg.pinv(terms.T @ (weight[:, None] * terms)), np.float64)
    coefficients = inverse @ terms.T @ (weight * flat[near])
    fitted = terms @ coefficients
    offset = _lowest(powers, coefficients, moved, fitted, usual_steps(landscape.cells))
    row = _terms(powers, offset[0], offset[1])
    freedom = float(len(chosen) - len(powers))

    def scatter(values: Array) -> float:
        left = values - terms @ (inverse @ terms.T @ (weight * values))
        return float((weight * left**2).sum() / freedom) if freedom >= 1 else math.nan

    variance = scatter(flat[near])
    leverage = float(row @ inverse @ row)
    tests, of_seed = _scores(cells, "tested", lost)
    reported = np.where(lost, 1.0, -np.expm1(-(tests - lowest) / unit))[near]
    height = min(float(row @ inverse @ terms.T @ (weight * reported)), 0.99)
    steep = unit / (1 - height)
    tested = Estimate(lowest - unit * math.log1p(-height), math.nan, math.nan)
    if len(of_seed) > 1:
        own = (scatter(reported) * leverage * steep**2, freedom) if freedom >= 1 else (0.0, 1.0)
        shared = float(of_seed.var(ddof=1)) / len(of_seed), len(of_seed) - 1.0
        tested = within(tested.value, *summed(own, shared))
    depth = 1 - min(float(row @ coefficients), 0.99)
    score = lowest - unit * math.log(depth)
    return Surface(
        centre=centre,
        powers=powers,
        coefficients=coefficients,
        inverse=inverse,
        variance=variance,
        freedom=freedom,
        low=_corner(places[near].min(0)),
        high=_corner(places[near].max(0)),
        best=(centre[0] + offset[0], centre[1] + offset[1]),
        score=score,
        tested=tested,
        tolerance=depth * -math.expm1(-AS_GOOD * abs(score) / unit),
        cells=tuple(chosen),
    )


def _scores(cells: list[Cell], which: str, lost: Flags) -> tuple[Array, Array]:
    """Return each cell's mean error, less the effects of its seeds, and these effects."""
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    errors = np.full((len(cells), len(seeds)), np.nan)
    for row, cell in zip(errors, cells, strict=True):
        row[[seeds.index(seed) for seed in cell.seeds]] = getattr(cell, which)
    near = basin(np.where(lost, np.nan, mean(errors)))
    of_seed = effects(errors[near])[1]
    return mean(errors - of_seed), of_seed


def _window(cells: list[Cell], places: Array, flat: Array, lost: Flags) -> tuple[Flags, int]:
    """Return which cells are near the lowest point of their learning rate, and the lowest cell."""
    steps = usual_steps((cell.lr, cell.decay) for cell in cells)
    apart = np.array(in_steps([(cell.lr, cell.decay) for cell in cells])) / _SMOOTH
    square = ((apart[:, None] - apart[None]) ** 2).sum(2)
    weight = np.exp(-square / 2) * [len(cell.seeds) for cell in cells]
    smooth = np.where(lost, np.inf, weight @ flat / weight.sum(1))
    start = int(smooth.argmin())
    x, z = places.T
    column = np.abs(x[:, None] - x[None]) < _STRIP
    best = np.where(column, smooth[None], np.inf).argmin(1)
    # Smoothed errors in the lowest one's: of a column within the basin's depth.
    deep = (1 - smooth[start]) * math.exp(-DEPTH / SCALE)
    reach = [max(REACH, step) + 1e-6 for step in steps]
    near: Flags = (
        (np.abs(x - x[start]) <= reach[0])
        & (np.abs(z - z[best]) <= reach[1])
        & (1 - smooth[best] >= deep)
    )
    return near, start


def _determined(moved: Array) -> tuple[tuple[tuple[int, int], ...], Array]:
    """Return the first set of terms that so many cells at such places determine."""
    for powers in _SETS:
        terms = _terms(powers, moved[:, 0], moved[:, 1])
        if len(terms) >= len(powers) and np.linalg.matrix_rank(terms) == len(powers):
            return powers, terms
    raise AssertionError("One cell determines a constant.")


def _terms(powers: tuple[tuple[int, int], ...], x: npt.ArrayLike, z: npt.ArrayLike) -> Array:
    x, z = np.asarray(x, dtype=np.float64), np.asarray(z, dtype=np.float64)
    return np.stack([x**first * z**second for first, second in powers], -1)


def _lowest(
    powers: tuple[tuple[int, int], ...],
    coefficients: Array,
    moved: Array,
    fitted: Array,
    steps: tuple[float, float],
) -> tuple[float, float]:
    """Return where the surface is lowest: between its cells if it can be, else at one of them."""
    known = dict(zip(powers, map(float, coefficients), strict=True))
    bend = np.array([[2 * known.get((2, 0), 0.0), known.get((1, 1), 0.0)]] * 2)
    bend[1] = known.get((1, 1), 0.0), 2 * known.get((0, 2), 0.0)
    cell = moved[int(fitted.argmin())]
    free = [axis for axis in (0, 1) if bend[axis, axis] > 0]
    if free and np.linalg.det(bend[np.ix_(free, free)]) > 0:
        slope = np.array([known.get((1, 0), 0.0), known.get((0, 1), 0.0)])
        # A knob without a curvature stays at the best cell's value.
        held = [axis for axis in (0, 1) if axis not in free]
        right = -slope[free] - bend[np.ix_(free, held)] @ cell[held]
        vertex = cell.copy()
        vertex[free] = np.linalg.solve(bend[np.ix_(free, free)], right)
        inside = (moved.min(0) <= vertex) & (vertex <= moved.max(0))
        if inside.all() and (np.abs(moved - vertex) <= np.array(steps) + 1e-6).all(1).any():
            return float(vertex[0]), float(vertex[1])
    return float(cell[0]), float(cell[1])


def _corner(values: Array) -> tuple[float, float]:
    return float(values[0]), float(values[1])
