"""How the best decay moves when the learning rate moves: s = −d log λ* / d log α.

0 means two separate knobs. The exponent is minus the slope of a weighted line through the best
decay of each learning rate in the basin (`ridge`). Its check comes from one quadratic surface over
the basin (`surface`). A decay of 0 has no logarithm and is left out.

If the best decay is the lowest or highest of the grid, the true optimum may lie beyond. A learning
rate with such an optimum is left out. If the landscape's best has one, there is a bound instead of
a value: the line through the edges, which can only be too flat or only too steep.

Scattered settings are fitted by one surface (`scatter`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from weightdecay import checks
from weightdecay.results import ridge, surface
from weightdecay.results.arrays import Arrays, grid
from weightdecay.results.estimate import Array, student
from weightdecay.results.exponent import (
    Exponent,
    Line,
    WeightedLine,
    bend,
    bounded,
    line,
    spread_out,
    unknown,
)
from weightdecay.results.landscape import Landscape
from weightdecay.results.polynomial import exponent_of
from weightdecay.results.scatter import fit_surface

__all__ = ["CONVENTIONS", "Coupling", "Exponent", "Line", "RidgePoint", "coupling"]

CONVENTIONS = ("paper", "torch")
_DRAWS = 400


@dataclass(frozen=True)
class RidgePoint:
    """A learning rate, its best decay, and that decay's standard error in powers of two."""

    lr: float
    decay: float
    standard_error: float


@dataclass(frozen=True)
class Coupling:
    """The coupling exponent of a landscape, a check of it, and the ridge that it comes from.

    `exponent` comes from the line through the ridge and `check` from the quadratic surface. `ridge`
    has one point per fitted learning rate. `line` is None if no line could be fitted.
    """

    exponent: Exponent
    check: Exponent
    ridge: tuple[RidgePoint, ...]
    line: Line | None
    convention: str = "paper"


def coupling(landscape: Landscape, *, convention: str = "paper") -> Coupling:
    """Measure s; "torch" states decoupled decays as λ/α, which adds exactly 1."""
    checks.one_of("convention", convention, CONVENTIONS)
    if convention == "torch" and landscape.way == "l2":
        raise ValueError(
            "`convention` must be 'paper' for a landscape of l2, got 'torch'. L2 regularization is "
            "the same number in both: λ/α is torch's way to state a decoupled decay."
        )
    if landscape.scattered:
        return _scattered(landscape, convention)
    measured = grid(landscape, zero=False)
    if not len(measured.decays):
        none = unknown("Every decay in the grid is 0.")
        return Coupling(none, none, (), None, convention)
    rates = np.log2(measured.lrs)[:, None]
    log_decays = np.log2(measured.decays) - (rates if convention == "torch" else 0 * rates)
    columns = ridge.columns(measured, log_decays) if len(measured.seeds) > 1 else None
    found = None if columns is None else ridge.vertices(columns, columns.sums)
    if columns is None or found is None or not found.certainty >= ridge.CERTAIN:
        points: tuple[RidgePoint, ...] = ()
    else:
        points = tuple(
            RidgePoint(float(lr), float(2**best), math.sqrt(variance))
            for lr, best, variance in zip(columns.lrs, found.best, found.variance, strict=True)
        )
    edge, why = ridge.best_at_edge(measured)
    if edge:
        bound = _bound(measured, log_decays, columns, points, why)
        return Coupling(bound, bound, points, None, convention)
    exponent, fit = _profile(measured, columns, points)
    drawn = None
    if fit is not None:
        drawn = Line(float(fit.slope), float(fit.intercept), points[0].lr, points[-1].lr)
    return Coupling(exponent, _check(measured, log_decays), points, drawn, convention)


def _scattered(landscape: Landscape, convention: str) -> Coupling:
    """Return the exponent of the surface, without a check: there are no columns to fit."""
    fitted = fit_surface(landscape)
    check = unknown("Scattered settings have no learning rate with several decays.")
    exponent, drawn = fitted.exponent, fitted.line
    if convention == "torch":
        shifted = None if exponent.value is None else exponent.value + 1
        exponent = replace(exponent, value=shifted, low=exponent.low + 1, high=exponent.high + 1)
        drawn = drawn and replace(drawn, slope=drawn.slope - 1)
    return Coupling(exponent, check, (), drawn, convention)


def _profile(
    grid: Arrays, columns: ridge.Columns | None, points: tuple[RidgePoint, ...]
) -> tuple[Exponent, WeightedLine | None]:
    if len(grid.seeds) < 2:
        return unknown("One seed chooses and none is left to estimate: run at least two."), None
    if columns is None or len(columns.x) < 3:
        count = 0 if columns is None else len(columns.x)
        have = "rate near the best has" if count == 1 else "rates near the best have"
        return unknown(
            f"{count} learning {have} the best decay inside the grid, and a line needs three: "
            "widen the grid or make it finer."
        ), None
    if not points:
        return unknown("The basin is too flat for its noise to locate its lowest point."), None
    found = ridge.vertices(columns, columns.sums)
    # If the ridge bends, columns with a certain optimum must not dominate the line.
    bent = bend(columns.x, found.best, found.variance)
    variance = found.variance + bent
    fit = line(columns.x, found.best, variance)
    drawn = ridge.vertices(columns, ridge.draws(columns, _DRAWS))
    # The weights stay fixed: other weights would mean another line.
    slopes = line(columns.x, drawn.best, variance).slope
    # The outer columns determine most of the slope: the freedom is less than that of all columns.
    freedom = 1 / float((fit.shares**2 / (columns.seeds - 1)).sum())
    value, widened = -float(fit.slope), student(freedom) / student(math.inf)
    low, high = spread_out(value, -slopes, widened)
    # The draws contain noise alone; the variation along a bent ridge is added.
    other = bent * float((fit.shares / variance).sum() * fit.variance)
    beyond = student(len(columns.x)) * math.sqrt(other)
    low, high = value - math.hypot(value - low, beyond), value + math.hypot(high - value, beyond)
    return Exponent(value, low, high), fit


def _check(grid: Arrays, log_decays: Array) -> Exponent:
    fitted = surface.surface(grid, log_decays, draws=_DRAWS)
    if fitted is None:
        return unknown("A quadratic surface needs three learning rates and two seeds.")
    value = float(exponent_of(fitted.coefficients))
    if not fitted.coefficients[5] > 0:
        return unknown("The quadratic surface does not curve upwards along the decay.")
    widened = student(fitted.freedom) / student(math.inf)
    return Exponent(value, *spread_out(value, exponent_of(fitted.draws), widened))


def _bound(
    grid: Arrays,
    log_decays: Array,
    columns: ridge.Columns | None,
    points: tuple[RidgePoint, ...],
    why: str,
) -> Exponent:
    """Bound s by the line through the known optima and the edges."""
    said = ridge.windows(grid.scores(), grid.lost(), grid.decays)
    if not ridge.rises(grid, said):
        return unknown(why + " Towards its middle, errors do not rise by more than noise.")
    inside = {point.lr: point for point in points}
    # As in `_profile`: a column's freedom is that of its seeds.
    free = {} if columns is None else dict(zip(columns.lrs, columns.seeds - 1, strict=True))
    x, y, variance, freedom, edge = [], [], [], [], []
    for i in np.flatnonzero(said.basin):
        point = inside.get(float(grid.lrs[i]))
        if said.edge[i]:
            y.append(float(log_decays[i, said.at[i]]))
            variance.append(0.0)
            freedom.append(math.inf)
        elif point is not None:
            y.append(math.log2(point.decay))
            variance.append(point.standard_error**2)
            freedom.append(float(free[point.lr]))
        else:
            continue
        x.append(math.log2(grid.lrs[i]))
        edge.append(int(said.edge[i]))
    known = np.array(x), np.array(y), np.array(variance)
    return bounded(*known, np.array(edge), freedom=np.array(freedom), sign=-1, why=why)
