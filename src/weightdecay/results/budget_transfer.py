"""What it costs to tune λ on one budget and to carry it to another, in test error.

A rule keeps λ·N^p, with N the number of updates of the last cycle:

    p = 0   λ itself: the timescale 1/λ in updates; over epochs, that in epochs too
    p = ½   the paper's λ_norm = λ·√N
    p = 1   λ·N: the timescale as a share of training; over data and batch, that in epochs too

Seeds that choose do not judge. For each seed, the others choose the best decay of either budget, by
their validation errors (`choosing`), and that seed's test errors with the carried decay and with
the longer budget's own best are compared, both read off the line between the nearest measured
decays. A carried decay outside of the measured ones has no error: that is reported, and what the
last measured decay costs, which bounds the cost from below.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from weightdecay.results import ridge
from weightdecay.results.arrays import Arrays, decayed, grid
from weightdecay.results.budget import varied_alone
from weightdecay.results.choosing import Column, best_columns
from weightdecay.results.coupling import near_best
from weightdecay.results.estimate import UNKNOWN, Array, Estimate, summed, within
from weightdecay.results.landscape import Cell, Landscape

#: The rules, each given by its p.
POWERS = (0.0, 0.5, 1.0)
_LEAST = 3  # the fewest seeds of which one can judge what the others chose
_ROUNDED = 1.01
_NOWHERE = "No two budgets have a learning rate with the best decays of both inside their grids."
#: Two budgets: the one that λ is tuned on, and the one that it is carried to.
Pair: TypeAlias = tuple[Landscape, Landscape]


@dataclass(frozen=True)
class BudgetRegret:
    """The mean cost of carried decays, over pairs of budgets and learning rates.

    `beyond` is by how many doublings the farthest carried decay lies outside of the measured ones,
    below 0 if it is too small. If it is not 0, the cost is unknown, and `least` is what the last
    measured decays in place of those outside cost. `rates` counts the learning rates of all pairs.
    `why` says why nothing was measured.
    """

    cost: Estimate
    beyond: float = 0.0
    least: Estimate = UNKNOWN
    rates: int = 0
    why: str = ""


@dataclass(frozen=True)
class PowerCosts:
    """What it costs to keep λ·N^p, for each p of POWERS.

    `tied` are the p whose difference from the least cost is within its interval; none if there are
    no intervals. They stay among the measured decays.
    """

    costs: Mapping[float, BudgetRegret]
    tied: tuple[float, ...] = ()

    @property
    def inside(self) -> dict[float, Estimate]:
        """Return the known costs: those of rules that stay among the measured decays."""
        return {p: one.cost for p, one in self.costs.items() if not one.why and not one.beyond}

    @property
    def least(self) -> float | None:
        """Return the p that costs least; None if no cost is known."""
        known = self.inside
        return min(known, key=lambda p: known[p].value, default=None)


def pairs_over(landscapes: Sequence[Landscape], factor: str) -> list[Pair]:
    """Return pairs of landscapes that differ in a factor alone, the one with fewer updates first.

    Landscapes of which no run has finished, or none with a decay above 0, are left out.
    """
    usable = [one for one in landscapes if one.updates is not None and max(one.decays) > 0]
    return [
        pair
        for group in varied_alone(usable, factor)
        for pair in combinations(sorted((one for _, one in group), key=updates_of), 2)
    ]


@dataclass(frozen=True)
class _Judged:
    """A seed's place in a landscape, and the log2 decays to compare at a learning rate."""

    seed: int
    lr: float
    carried: float
    other: float


def compare_powers(pairs: Sequence[Pair]) -> PowerCosts:
    """Measure what each p costs, and which differ from the best by no more than noise."""
    found = PowerCosts({p: budget_regret(pairs, p) for p in POWERS})
    known, best = found.inside, found.least
    if best is None or math.isnan(known[best].low):
        return found
    apart = {p: budget_regret(pairs, p, instead=best).cost for p in known if p != best}
    return replace(found, tied=tuple(p for p in known if p == best or not apart[p].low > 0))


def budget_regret(
    pairs: Sequence[Pair], power: float, *, instead: float | None = None, best_rate: bool = False
) -> BudgetRegret:
    """Measure what it costs to keep λ·N^p, over the best λ or over keeping another λ·N^p.

    It is measured at each learning rate near the best that both budgets have; or, with `best_rate`,
    at each budget's own best one. The mean is over learning rates, then over pairs. A pair without
    a learning rate at which both best decays are inside their grids is left out. With fewer than
    three seeds, they both choose and judge, and the cost has no interval.
    """
    of_pairs = [(pair, [*_judged(*pair, power, instead, best_rate)]) for pair in pairs]
    carried = [pair for pair, found in of_pairs if found]
    judged = [(used, found) for (_, used), found in of_pairs if found]
    if not judged:
        return BudgetRegret(UNKNOWN, why=_NOWHERE)
    grids = {id(used): decayed(used) for used, _ in judged}
    weights = {used: np.zeros(measured.tested.shape) for used, measured in grids.items()}
    beyond, count = 0.0, 0
    for used, found in judged:
        rates = {one.lr: [other for other in found if other.lr == one.lr] for one in found}
        for own in rates.values():
            added, off = _weights(grids[id(used)], own)
            share = len(own) / len(found) if best_rate else 1 / len(rates)
            weights[id(used)] += share / len(judged) * added
            beyond = max(beyond, off, key=abs)
        count += len(rates)
    parts = [_estimated(measured, weights[used]) for used, measured in grids.items()]
    variance, freedom = summed(*((variance, free) for _, variance, free in parts))
    few = any(len(_seeds(one)) < _LEAST for pair in carried for one in pair)
    value = math.fsum(value for value, _, _ in parts)
    cost = within(value, variance, 0 if few else freedom)
    return BudgetRegret(UNKNOWN, beyond, cost, count) if beyond else BudgetRegret(cost, rates=count)


def _judged(
    tuned: Landscape, used: Landscape, power: float, instead: float | None, best_rate: bool
) -> Iterator[_Judged]:
    """Yield what each seed judges, by the choices of the others."""
    longer = math.log2(updates_of(used) / updates_of(tuned))
    stated = log_stated(tuned) - log_stated(used)
    rates = [(lr, lr) for lr in shared_rates(tuned, used)]
    enough = all(len(_seeds(one)) >= _LEAST for one in (tuned, used))
    for place, seed in enumerate(_seeds(used)):
        short, long = (_columns(one, seed if enough else None) for one in (tuned, used))
        if not short or not long:
            continue
        for lr, at in [(_best(short), _best(long))] if best_rate else rates:
            source, target = short.get(lr), long.get(at)
            if source and target and is_inside(tuned, source) and is_inside(used, target):
                start = math.log2(source.decay) + stated
                best = math.log2(target.decay)
                other = best if instead is None else start - instead * longer
                yield _Judged(place, at, start - power * longer, other)


def _seeds(landscape: Landscape) -> list[int]:
    return sorted({seed for cell in landscape.cells.values() for seed in cell.seeds})


def _columns(landscape: Landscape, without: int | None) -> dict[float, Column]:
    """Return the best decay of each learning rate by all seeds but one, or by all of them."""
    cells = {}
    for place, cell in landscape.cells.items():
        kept = [at for at, seed in enumerate(cell.seeds) if seed != without]
        if kept:
            cells[place] = Cell(
                cell.lr,
                cell.decay,
                seeds=tuple(cell.seeds[at] for at in kept),
                chosen=tuple(cell.chosen[at] for at in kept),
                tested=tuple(cell.tested[at] for at in kept),
                diverged=tuple(seed for seed in cell.diverged if seed != without),
            )
    return best_columns(replace(landscape, cells=cells))


def _best(columns: Mapping[float, Column]) -> float:
    return min(columns, key=lambda lr: columns[lr].error)


def updates_of(landscape: Landscape) -> int:
    """Return the number of updates of the last cycle."""
    if landscape.updates is None:
        raise ValueError("Budgets to compare must have a finished run each, got one without.")
    return landscape.updates


def log_stated(landscape: Landscape) -> float:
    """Return log2 of λ over the decay as it is stated."""
    return -math.log2(updates_of(landscape)) / 2 if landscape.way == "normalized_decay" else 0.0


def shared_rates(*landscapes: Landscape) -> list[float]:
    """Return the learning rates that are near the best of each landscape."""
    near = []
    for landscape in landscapes:
        measured = grid(landscape, zero=False)
        flags = near_best(np.log2(measured.lrs), ridge.best_rate(measured))
        near.append({float(lr) for lr in measured.lrs[flags]})
    return sorted(set.intersection(*near))


def is_inside(landscape: Landscape, column: Column) -> bool:
    """Whether decays on both sides of a column's best were measured, by whatever seeds.

    A column's best decay is rounded, so that it may seem to lie beside an end of the grid.
    """
    decays = [decay for lr, decay in landscape.cells if lr == column.lr and decay > 0]
    return min(decays) * _ROUNDED < column.decay < max(decays) / _ROUNDED


def _weights(measured: Arrays, judged: Sequence[_Judged]) -> tuple[Array, float]:
    """Return the weights of errors in a mean cost at one learning rate, and how far outside it is.

    A seed without decays on both sides of a place judges nothing. If none can judge, the distance
    to the nearest measured decay is returned, and carried decays count as the last measured ones.
    """
    row = int(np.flatnonzero(measured.lrs == judged[0].lr)[0])
    known = {
        one.seed: np.flatnonzero(np.isfinite(measured.tested[row, :, one.seed])) for one in judged
    }
    logs = {seed: np.log2(measured.decays[cells]) for seed, cells in known.items()}
    off = {
        one.seed: max((_outside(logs[one.seed], at) for at in (one.carried, one.other)), key=abs)
        for one in judged
    }
    nearest = min(off.values(), key=abs)
    judges = [one for one in judged if off[one.seed] == 0 or (nearest and len(known[one.seed]))]
    weights = np.zeros(measured.tested.shape)
    for one in judges:
        for place, sign in ((one.carried, 1.0), (one.other, -1.0)):
            unit = np.eye(len(logs[one.seed]))
            shares = np.array([np.interp(place, logs[one.seed], cell) for cell in unit])
            weights[row, known[one.seed], one.seed] += sign * shares / len(judges)
    return weights, nearest


def _outside(logs: Array, place: float) -> float:
    if not len(logs):
        return math.inf
    return min(place - float(logs[0]) + 1e-9, 0.0) or max(place - float(logs[-1]) - 1e-9, 0.0)


def _estimated(measured: Arrays, weights: Array) -> tuple[float, float, float]:
    """Return a weighted sum of test errors, its variance and freedom.

    What a seed does to both sides cancels.
    """
    value = float((weights * np.nan_to_num(measured.tested)).sum())
    return value, *measured.spread((weights**2).sum(2))
