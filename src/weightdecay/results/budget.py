"""How the best decay moves with the epochs T, the data B and the batch b: λ* ~ T^−e · B^−d · b^c.

λ* is the paper's raw λ per update. The paper's normalized decay predicts e = d = c = ½; a timescale
that is constant in epochs predicts e = 0 and d = c = 1.

An exponent is a slope through the best decays (`vertices`) of landscapes that differ in one factor
alone. At a fixed α, it goes through the best decays at one learning rate. That is measured at each
learning rate near the best at which all these landscapes have their best decay inside the grid; if
there is none, at those at which the most have, two at least. They share the slope and have levels
of their own, and so do groups of landscapes that differ in other settings. Along the ridge, each
landscape's best decay is the one at its own best learning rate.

The variance has the parts that `coupling` has: noise, what seeds have of their own, what the two
estimators differ by, and how far the best decays lie off their lines.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weightdecay.results import ridge
from weightdecay.results.arrays import Arrays, grid
from weightdecay.results.column import HALVES, PARABOLA
from weightdecay.results.coupling import near_best
from weightdecay.results.estimate import Array, student
from weightdecay.results.exponent import Exponent, bounded, unknown
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags
from weightdecay.results.vertices import Vertices, joined, vertices, weighed

#: The factors of a budget, and whether the best decay should fall or rise with them.
FACTORS = {"epochs": -1, "data": -1, "batch": 1}
_LEAST = 1e-18  # variances below this are rounding
_OF_MODELS = 3.0  # the freedom of what two estimators differ by
_NOWHERE = "No learning rate has the best decay of two budgets inside the grid."


@dataclass(frozen=True)
class BudgetExponent:
    """How the best decay moves with one factor of the budget.

    `fixed` is the exponent at a fixed learning rate, pooled over those in `rates`, which has the
    exponent at each. `ridge` is the one along the ridge, at each budget's own best learning rate.
    """

    fixed: Exponent
    ridge: Exponent
    rates: Mapping[float, Exponent]


@dataclass(frozen=True)
class BestDecays:
    """The best raw decays of a landscape: at each learning rate near the best, and at the best.

    `at_best` is None if it cannot be located, and `why` says why.
    """

    landscape: Landscape
    measured: Arrays
    log_decays: Array
    near: Flags
    found: Vertices
    at_best: Vertices | None
    why: str = ""


#: Best decays that share a level: log2 of the factor, the decays, and which of them.
_Level: TypeAlias = list[tuple[float, Vertices, int]]


def budget_exponents(landscapes: Sequence[Landscape]) -> dict[str, BudgetExponent]:
    """Measure the exponents of "epochs", "data" and "batch", as far as each varies alone.

    If the best decays lie at the edge of a grid, there is a bound instead of a value. What cannot
    be located is left out, and `why` says so.
    """
    located = {id(landscape): best_decays(landscape) for landscape in landscapes}
    exponents = {}
    for factor, sign in FACTORS.items():
        groups = [
            [(math.log2(amount), located[id(one)]) for amount, one in group]
            for group in varied_alone(landscapes, factor)
        ]
        if groups:
            exponents[factor] = _measured(groups, sign)
    return exponents


def varied_alone(landscapes: Sequence[Landscape], factor: str) -> list[list[tuple[int, Landscape]]]:
    """Return groups of landscapes that differ in a factor alone, each with its amount of it."""
    groups: dict[Hashable, list[tuple[int, Landscape]]] = {}
    for landscape in landscapes:
        amount = _amount(landscape, factor)
        if amount is not None:
            groups.setdefault(_apart(landscape, factor), []).append((amount, landscape))
    return [group for group in groups.values() if len({amount for amount, _ in group}) > 1]


def best_decays(landscape: Landscape) -> BestDecays | str:
    """Locate the best raw decays near the best learning rate, or say why that cannot be."""
    measured = grid(landscape, zero=False)
    if not len(measured.decays):
        return "Every decay in a grid is 0."
    if not np.isfinite(measured.scores()).any():
        return "No run of a landscape with a decay above 0 has an error."
    stated = 0.0
    if landscape.way == "normalized_decay":
        if landscape.updates is None:
            return "No run of a landscape has finished."
        stated = -math.log2(landscape.updates) / 2
    if len(measured.seeds) < 2:
        return "A landscape has one seed, which shows no noise."
    x = np.log2(measured.lrs)
    best = ridge.best_rate(measured)
    near = near_best(x, best)
    log_decays = np.log2(measured.decays) + stated + 0 * x[:, None]
    found = vertices(measured, log_decays, near)
    parts = landscape, measured, log_decays, near, found
    if measured.lrs[best] not in found.lrs:
        _, why = ridge.best_at_edge(measured)
        return BestDecays(*parts, None, why or "A landscape's basin is too flat for its noise.")
    at_best = found.at_best_rate()
    why = "" if at_best else "A landscape's best learning rate is the lowest or highest located."
    return BestDecays(*parts, at_best, why)


def _amount(landscape: Landscape, factor: str) -> int | None:
    """Return the amount of a factor; if all data are used, the examples of an epoch."""
    amount = landscape.labels.get(factor)
    return amount if isinstance(amount, int) else landscape.examples if factor == "data" else None


def _apart(landscape: Landscape, factor: str) -> Hashable:
    """Return what landscapes that differ only in the factor have in common."""
    labels = landscape.labels.items()
    kept = [(name, value) for name, value in labels if name not in (factor, "updates")]
    return landscape.way, landscape.of, tuple(sorted(kept))


def _measured(groups: list[list[tuple[float, BestDecays | str]]], sign: int) -> BudgetExponent:
    """Measure an exponent at each learning rate, at all of them together, and along the ridge."""
    missing = [best for group in groups for _, best in group if isinstance(best, str)]
    count = sum(map(len, groups))
    known = [[(x, best) for x, best in group if isinstance(best, BestDecays)] for group in groups]
    at_rates: dict[float, list[_Level]] = {}
    for group in known:
        levels = {
            lr: [(x, one.found, at) for x, one in group if (at := _place(one, lr)) is not None]
            for lr in sorted({float(lr) for _, one in group for lr in one.found.lrs})
        }
        most = max((_varied(level) for level in levels.values()), default=0)
        for lr, level in levels.items():
            if _varied(level) == most > 1:
                at_rates.setdefault(lr, []).append(level)
    rates = {lr: exponent_of(levels, sign=sign) for lr, levels in sorted(at_rates.items())}
    every = [level for levels in at_rates.values() for level in levels]
    if every:
        fixed = exponent_of(every, sign=sign, why=_left_out(missing, count))
    else:
        fixed = _bound(known, sign, _left_out(missing, count))
    ridges = [[(x, one.at_best, 0) for x, one in group if one.at_best] for group in known]
    missing += [one.why for group in known for _, one in group if not one.at_best]
    left_out = _left_out(missing, count)
    along = [level for level in ridges if _varied(level) > 1]
    ridge_exponent = exponent_of(along, sign=sign, why=left_out) if along else unknown(left_out)
    return BudgetExponent(fixed, ridge_exponent, rates)


def _place(best: BestDecays, lr: float) -> int | None:
    found = np.flatnonzero(best.found.lrs == lr)
    return int(found[0]) if len(found) else None


def _varied(level: _Level) -> int:
    return len({x for x, _, _ in level})


def exponent_of(levels: Sequence[_Level], *, sign: int, why: str = "") -> Exponent:
    """Return sign · slope through best decays that share it and have their own levels."""
    points = [point for level in levels for point in level]
    index = np.repeat(np.arange(len(levels)), [len(level) for level in levels])
    x, y = (
        values - (np.bincount(index, values) / np.bincount(index))[index]
        for values in (
            np.array([place for place, _, _ in points]),
            np.array([found.best[PARABOLA, at] for _, found, at in points]),
        )
    )
    slope = sign * x / float((x**2).sum())
    value, *noise = _weighed(points, slope)
    parts = [(noise[0], noise[1])]
    if all(np.isfinite(found.best[HALVES, at]) for _, found, at in points):
        apart, variance, _ = _weighed(points, slope, second=-1, by_seeds=False)
        parts.append((max(apart**2 - variance, 0.0), _OF_MODELS))
    freedom = len(x) - len(levels) - 1
    if freedom > 0:
        ones = [_weighed([point], np.ones(1), by_seeds=False)[1] for point in points]
        weight = 1 / np.maximum(ones, _LEAST)
        usual = freedom + 2 * math.sqrt(2 * freedom)
        chance = float((weight * (y - sign * value * x) ** 2).sum()) - usual
        between = max(chance, 0.0) / float(weight.sum())
        parts.append((between * float((slope**2).sum()), float(freedom + 2)))
    variance, free = joined(min(found.fewest for _, found, _ in points), *parts)
    half = student(free) * math.sqrt(variance)
    return Exponent(value, value - half, value + half, why=why, freedom=free)


def _weighed(
    points: _Level, slope: Array, *, second: int = 0, by_seeds: bool = True
) -> tuple[float, float, float]:
    """Weigh best decays; those of the second estimator count `second` times as much."""
    weights: dict[int, tuple[Vertices, Array]] = {}
    for (_, found, at), share in zip(points, slope, strict=True):
        _, own = weights.setdefault(id(found), (found, np.zeros(found.best.shape)))
        own[PARABOLA, at] += share
        own[HALVES, at] += second * share
    return weighed(list(weights.values()), by_seeds=by_seeds)


def _bound(groups: Sequence[list[tuple[float, BestDecays]]], sign: int, left_out: str) -> Exponent:
    """Bound an exponent at a fixed α by the edges of grids, if errors rise from them inwards."""
    points, whys = [], []
    for group in groups:
        for lr in sorted({float(lr) for _, one in group for lr in one.measured.lrs[one.near]}):
            level = [(x, *end) for x, one in group if (end := _end(one, lr))]
            middle = float(np.mean([x for x, *_ in level])) if level else 0.0
            points += [(x - middle, *end) for x, *end in level]
        whys += [why for _, one in group if (why := ridge.best_at_edge(one.measured)[1])]
    if not points:
        return unknown(left_out or _NOWHERE)
    why = f"{whys[0] if whys else _NOWHERE} {left_out}".rstrip()
    x, y, variance, freedom, edge = np.array(points).T
    ends = edge.astype(np.int64)
    return bounded(x, y, variance, ends, freedom=freedom, sign=sign, why=why)


def _end(best: BestDecays, lr: float) -> tuple[float, float, float, int] | None:
    """Return log2 of the best decay at a learning rate, its variance and freedom, and its edge."""
    at = _place(best, lr)
    if at is not None:
        return *_weighed([(0.0, best.found, at)], np.ones(1)), 0
    [row] = np.flatnonzero(best.measured.lrs == lr) if lr in best.measured.lrs else [-1]
    if row < 0 or not best.near[row]:
        return None
    said = ridge.optima(best.measured.scores(), best.measured.lost())
    if not said.edge[row] or not ridge.rises(best.measured, said):
        return None
    return float(best.log_decays[row, said.inner[row]]), 0.0, math.inf, int(said.edge[row])


def _left_out(missing: list[str], among: int) -> str:
    """Return how many landscapes were left out of an exponent, and why the first was."""
    if not missing:
        return ""
    are = "is" if len(missing) == 1 else "are"
    return f"{len(missing)} of {among} landscapes {are} left out: {missing[0]}"
