"""How the best decay moves when the learning rate moves: s = −d log λ* / d log α.

0 means two separate knobs. The best learning rate α* is fixed first, by the smoothed validation
errors of all seeds. s is minus the slope of the line through the best decays (`vertices`) within
two doublings of it. A decay of 0 has no logarithm and is left out.

There is no single s if the ridge has a knee at α*: if the interval of the difference between the
slopes below and above it excludes 0. Nor is there one if the interval of the difference between
the two estimators excludes 0. What they differ by beyond noise is otherwise a part of the interval
of s, and so is what the best decays are off their line beyond noise. The estimators also err by
where the best decays happen to lie between those of the grid, which seeds do not show. It shows at
the single learning rates: in what the estimators differ by, for the interval of their difference,
and in what best decays are off a line with a knee, for the interval of the knee.

If the best decay is the lowest or highest of the grid, the true optimum may lie beyond. A learning
rate with such an optimum is left out. If the landscape's best has one, there is a bound instead of
a value: the line through the edges, which can only be too flat or only too steep.

Scattered settings are fitted by one surface (`scatter`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from weightdecay import checks
from weightdecay.results import ridge
from weightdecay.results.arrays import Arrays, grid
from weightdecay.results.column import HALVES, PARABOLA, ROUNDED
from weightdecay.results.estimate import Array, student, summed
from weightdecay.results.exponent import FLAT, Exponent, Line, bend, bounded, unknown
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags
from weightdecay.results.scatter import fit_exponent
from weightdecay.results.vertices import Vertices, joined, vertices

__all__ = ["CONVENTIONS", "Coupling", "Exponent", "Line", "RidgePoint", "coupling"]

CONVENTIONS = ("paper", "torch")
#: How far from the best learning rate s is measured, in doublings; one step of the grid at least.
REACH = 2.0
# A smaller difference between slopes does not count, however certain it is: it moves λ by 7 % if α
# changes by a factor of 4.
_SAME = 0.05
_OF_MODELS = 3.0  # the freedom of what two estimators differ by: simulations say this
_OWN, _DIFFERENCE = ((1.0, 0.0), (0.0, 1.0)), (1.0, -1.0)  # weights of the two estimators
_UNMEASURED = unknown("It was not measured.")


@dataclass(frozen=True)
class RidgePoint:
    """A learning rate, its best decay, and that decay's standard error in powers of two."""

    lr: float
    decay: float
    standard_error: float


@dataclass(frozen=True)
class Coupling:
    """The coupling exponent of a landscape, and the ridge that it comes from.

    `exponent` is the result: that of the first estimator, `parabola`, unless the two estimators
    disagree or the ridge has a knee. `check` is the second estimator's. `apart` is the first minus
    the second. `below` and `above` are s on either side of the best learning rate, and `knee` is
    the one minus the other. `ridge` has one point per located learning rate. `line` is None if
    there is no value.
    """

    exponent: Exponent
    check: Exponent
    ridge: tuple[RidgePoint, ...]
    line: Line | None
    convention: str = "paper"
    parabola: Exponent = _UNMEASURED
    apart: Exponent = _UNMEASURED
    below: Exponent = _UNMEASURED
    above: Exponent = _UNMEASURED
    knee: Exponent = _UNMEASURED

    @property
    def bent(self) -> bool:
        """Whether there is no single s because the ridge has a knee."""
        return self.exponent.withheld and not _excludes_zero(self.apart)


def coupling(landscape: Landscape, *, convention: str = "paper") -> Coupling:
    """Measure s; "torch" states decoupled decays as λ/α, which adds exactly 1."""
    checks.one_of("convention", convention, CONVENTIONS)
    if convention == "torch" and landscape.way == "l2":
        raise ValueError(
            "`convention` must be 'paper' for a landscape of l2, got 'torch'. L2 regularization is "
            "the same number in both: λ/α is torch's way to state a decoupled decay."
        )
    if landscape.unvaried:
        none = unknown(
            f"All runs have the same {landscape.unvaried}, so they do not show how the best λ "
            "moves with α. Train other values of it too."
        )
        return Coupling(none, none, (), None, convention)
    one_seed = all(len(cell.seeds) < 2 for cell in landscape.cells.values())
    if not landscape.in_columns or (landscape.scattered and one_seed):
        return _scattered(landscape, convention)
    measured = grid(landscape, zero=False)
    if not len(measured.decays):
        none = unknown("Every decay in the grid is 0.")
        return Coupling(none, none, (), None, convention)
    scores = measured.scores()
    if not np.isfinite(scores).any():
        none = unknown("No run with a decay above 0 has an error.")
        return Coupling(none, none, (), None, convention)
    if np.isfinite(scores).sum() > 1 and np.nanmin(scores) == np.nanmax(scores):
        none = unknown(FLAT)
        return Coupling(none, none, (), None, convention)
    if len(measured.seeds) < 2:
        none = unknown("One seed shows no noise, so nothing has an interval: run at least two.")
        return Coupling(none, none, (), None, convention)
    rates = np.log2(measured.lrs)[:, None]
    log_decays = np.log2(measured.decays) - (rates if convention == "torch" else 0 * rates)
    best = ridge.best_rate(measured)
    near = near_best(rates[:, 0], best)
    found = vertices(measured, log_decays, near)
    points = tuple(point_of(found, i) for i in range(len(found.lrs)))
    edge, why = ridge.best_at_edge(measured)
    if edge:
        bound = _bound(measured, log_decays, found, near, why)
        return Coupling(bound, bound, points, None, convention)
    return _judged(found, float(rates[best, 0]), points, convention)


def near_best(x: Array, best: int) -> Flags:
    """Return which learning rates s is measured at, given log2 of them and the best one's place."""
    near: Flags = np.abs(x - x[best]) <= ROUNDED * max(REACH, ridge.step_of([x]))
    return near


def point_of(found: Vertices, column: int) -> RidgePoint:
    """Return the best decay of a located learning rate, and its standard error."""
    best, variance, _ = found.weighed(_only(found, column))
    return RidgePoint(float(found.lrs[column]), 2.0**best, math.sqrt(variance))


def _only(found: Vertices, column: int, of: tuple[float, float] = _OWN[PARABOLA]) -> Array:
    """Return the weights of one learning rate's best decays; `of` has one for each estimator."""
    weights = np.zeros(found.best.shape)
    weights[:, column] = of
    return weights


def _scattered(landscape: Landscape, convention: str) -> Coupling:
    """Return the exponent of the surface, without a check: there are no columns to fit."""
    fitted = fit_exponent(landscape)
    check = unknown("Scattered settings: few learning rates share their decays.")
    exponent, drawn = fitted.exponent, fitted.line
    if convention == "torch":
        shifted = None if exponent.value is None else exponent.value + 1
        exponent = replace(exponent, value=shifted, low=exponent.low + 1, high=exponent.high + 1)
        drawn = drawn and replace(drawn, slope=drawn.slope - 1)
    return Coupling(exponent, check, (), drawn, convention)


def _judged(
    found: Vertices, best: float, points: tuple[RidgePoint, ...], convention: str
) -> Coupling:
    """Return s, or why there is none, with all that it rests on."""
    every = np.ones(len(found.lrs), dtype=np.bool_)
    second = np.isfinite(found.best[HALVES])
    parabola, check = _fitted(found, every, least=3), _fitted(found, second, HALVES, least=3)
    apart = check
    if check.value is not None:
        slope = _slope(found.x, second)
        weights = np.stack([slope, -slope])
        apart = _difference(found, weights, _of_grid(found, weights))
    sides = found.x <= best + 1e-6, found.x >= best - 1e-6
    below, above = (
        _fitted(found, side, least=2, where=f"at or {where} the best")
        for side, where in zip(sides, ("below", "above"), strict=True)
    )
    knee = unknown("It needs best decays on both sides of the best learning rate.")
    if below.value is not None and above.value is not None:
        bent = _slope(found.x, sides[0]) - _slope(found.x, sides[1])
        knee = _difference(found, np.stack([bent, 0 * bent]), *_off_kink(found, best, bent))
    exponent, drawn = parabola, None
    if parabola.value is not None and _excludes_zero(apart):
        exponent = unknown(
            f"The two estimators of s disagree: {_signed(parabola.value)} by parabolas and "
            f"{_signed(check.value)} by half-parabolas, which differ by {_told(apart)}.",
            withheld=True,
        )
    elif parabola.value is not None and _excludes_zero(knee):
        exponent = unknown(
            f"The ridge has a knee: s is {_signed(below.value)} below the best α and "
            f"{_signed(above.value)} above, which differ by {_told(knee)}.",
            withheld=True,
        )
    if exponent.value is not None:
        middle = float(found.best[PARABOLA].mean() + exponent.value * found.x.mean())
        drawn = Line(-exponent.value, middle, points[0].lr, points[-1].lr)
    parts = parabola, apart, below, above, knee
    return Coupling(exponent, check, points, drawn, convention, *parts)


def _fitted(
    found: Vertices,
    used: Flags,
    estimator: int = PARABOLA,
    *,
    least: int,
    where: str = "near the best",
) -> Exponent:
    """Return s by one estimator, from at least so many of the learning rates."""
    if used.sum() < least:
        return unknown(_too_few(found, int(used.sum()), least, where))
    weights = np.zeros(found.best.shape)
    weights[estimator] = _slope(found.x, used)
    value, *own = found.weighed(weights, by_seeds=True)
    variance, freedom = joined(found.fewest, (own[0], own[1]), *_of_models(found, weights))
    if used.sum() > 2:
        # If the ridge bends, other learning rates would have given another slope.
        other = _off_line(found, used, _OWN[estimator]) * (weights**2).sum(), float(used.sum())
        variance, freedom = joined(found.fewest, (variance, freedom), other)
    return _interval(value, variance, freedom)


def _of_models(found: Vertices, weights: Array) -> list[tuple[float, float]]:
    """Return what the estimators differ by beyond noise, and its freedom; none if one is unknown.

    It is 0 for weights of the estimators' own difference.
    """
    of_each = weights.sum(0)
    if not np.isfinite(found.best[:, of_each != 0]).all():
        return []
    apart, variance, _ = found.weighed(np.stack([of_each, -of_each]))
    return [(max(apart**2 - variance, 0.0), _OF_MODELS)]


def _difference(found: Vertices, weights: Array, *more: tuple[float, float]) -> Exponent:
    """Return a difference that is 0 if there is one s; `more` are further parts of its variance."""
    value, *own = found.weighed(weights)
    return _interval(value, *summed((own[0], own[1]), *_of_models(found, weights), *more))


def _of_grid(found: Vertices, weights: Array) -> tuple[float, float]:
    """Return what the steps of a grid make two estimators differ by, and its freedom.

    Between the decays of a grid, each estimator errs in its own way, and seeds do not show that. It
    shows in what the two differ by at each learning rate, which then lies off its line.
    """
    known = np.isfinite(found.best[HALVES])
    if known.sum() < 3:
        return 0.0, math.inf
    off = _off_line(found, known, _DIFFERENCE) * float((weights[PARABOLA] ** 2).sum())
    return off, float(known.sum() - 2)


def _off_kink(found: Vertices, best: float, bent: Array) -> list[tuple[float, float]]:
    """Return what the steps of a grid make the knee err by, and its freedom.

    It shows in what the best decays lie off a line that may have a knee at the best rate.
    """
    every = np.ones(len(found.lrs), dtype=np.bool_)
    spare = len(found.lrs) - 3
    if spare < 1:
        return []
    off = _off_line(found, every, _OWN[PARABOLA], kink=best)
    return [(off * float((bent**2).sum()), float(spare))]


def _off_line(
    found: Vertices, used: Flags, of: tuple[float, float], *, kink: float | None = None
) -> float:
    """Return the variance of best decays about their line beyond noise."""
    points = [found.weighed(_only(found, int(i), of)) for i in np.flatnonzero(used)]
    y, variance, _ = np.array(points).T
    return bend(found.x[used], y, variance, kink=kink)


def _slope(x: Array, used: Flags) -> Array:
    """Return the weights of y in minus the slope of the line through some points."""
    lean = np.where(used, x - x[used].mean(), 0.0)
    return -lean / float((lean**2).sum())


def _interval(value: float, variance: float, freedom: float) -> Exponent:
    half = student(freedom) * math.sqrt(variance)
    return Exponent(value, value - half, value + half, freedom=freedom)


def _excludes_zero(one: Exponent) -> bool:
    certain = one.value is not None and not one.low <= 0 <= one.high
    return certain and abs(one.value or 0.0) > _SAME


def _told(one: Exponent) -> str:
    return f"{_signed(one.value)} [{_signed(one.low)}, {_signed(one.high)}]"


def _signed(value: float | None) -> str:
    return f"{value:.2f}".replace("-", "−")


def _too_few(found: Vertices, count: int, least: int, where: str) -> str:
    if found.flat and not len(found.lrs):
        return FLAT
    have = f"rate {where} has" if count == 1 else f"rates {where} have"
    # Where noise hides the best decay is not known by side.
    flat = f" (at {found.flat} more, noise hides it)" if found.flat and least == 3 else ""
    needs = "a line needs three" if least == 3 else "a slope needs two"
    return (
        f"{count} learning {have} the best decay inside the grid{flat}, and {needs}: "
        "widen the grid or make it finer."
    )


def _bound(grid: Arrays, log_decays: Array, found: Vertices, near: Flags, why: str) -> Exponent:
    """Bound s by the line through the known optima and what lies next to the edges.

    If errors fall up to an edge, the optimum may lie beyond it, or between it and its neighbour.
    """
    said = ridge.optima(grid.scores(), grid.lost())
    if not ridge.rises(grid, said):
        return unknown(why + " Towards its middle, errors do not rise by more than noise.")
    located = {float(lr): column for column, lr in enumerate(found.lrs)}
    places, known, edge = [], [], []
    for i in np.flatnonzero(said.basin & near):
        column = located.get(float(grid.lrs[i]))
        if said.edge[i]:
            known.append((float(log_decays[i, said.inner[i]]), 0.0, math.inf))
        elif column is not None:
            known.append(found.weighed(_only(found, column), by_seeds=True))
        else:
            continue
        places.append(math.log2(grid.lrs[i]))
        edge.append(int(said.edge[i]))
    y, variance, freedom = np.array(known).reshape(-1, 3).T
    x, ends = np.array(places), np.array(edge, dtype=np.int64)
    return bounded(x, y, variance, ends, freedom=freedom, sign=-1, why=why)
