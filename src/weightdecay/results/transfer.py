"""Transfer regret: what it costs to tune the decay at one learning rate and use it at another.

The decay is carried by a rule, λ ∝ α^(−s):

    s = −1   keep λ/α, as `torch.optim.AdamW` does    s = 1   keep λ·α
    s = 0    leave λ alone                            s = 2   keep λ·α²

The cost is the test error with the carried decay minus that with the best decay of the learning
rate it is carried to. Best decays are those of `choosing`. With a second stage, fresh seeds train
the carried decays. In a finished sweep, each seed judges what the others choose (`transfer_folds`).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weightdecay.results.arrays import Arrays
from weightdecay.results.choosing import PAIRS, Choice, Column, choose
from weightdecay.results.estimate import Array, Estimate, safely_summed, within
from weightdecay.results.judging import MARGIN, mean_of
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags
from weightdecay.results.transfer_folds import RULES, Fold, Judges, Pair, cost

__all__ = ["FEWEST", "RULES", "Move", "Pair", "TransferRegret", "measure_moves", "measure_transfer"]
__all__ += ["of_fresh_seeds"]

#: The fewest seeds that give a cost an interval: two to choose, and one to judge.
FEWEST = 3
_OFF = 0.5  # a learning rate stands for another that is at most so many doublings away
_OF_CURVES = 3.0  # the freedom of what parabolas between cells differ by, as in `coupling`
#: The conventions: leave λ, or keep λ/α as torch does.
CONVENTIONS = (0.0, -1.0)
_AT_EDGES = (
    "No two learning rates near the best that are a factor of 4 apart have their best decays "
    "inside the grid, between trained neighbours: widen or complete it there."
)
_NOT_APART = (
    "No two learning rates near the best are about a factor of 4 apart, over which costs are "
    "measured: add such rates."
)
_TOO_FAR_APART = (
    "The decays that were trained are more than a factor of 4 apart, too far to say what lies "
    "between them."
)


@dataclass(frozen=True)
class TransferRegret:
    """What it costs to carry a decay to another learning rate, by each rule.

    `costs` are means over `pairs`, which have the same for each pair of learning rates: where the
    decay is tuned, and where it is used. Without an interval, they are estimates from fewer than
    three seeds. `tied` are the rules whose difference from the least cost is within its interval;
    none if there are no intervals. Rules in `beyond` lead out of the measured decays: they cost at
    least what the last decay there costs. `out` has them for each pair. Costs that differ by less
    than `margin` count as equal, where one of tied rules is recommended. `seeds` is the number of
    seeds that judged, and `fresh` says that they are of a second stage; `by_seed` then has what
    each of them found. `best` is the best learning rate, and `unchanged` the rule that leaves the
    decay as the runs' table states it. If there are no costs, `why` says what is missing.
    """

    costs: Mapping[float, Estimate] = field(default_factory=dict)
    pairs: Mapping[Pair, Mapping[float, Estimate]] = field(default_factory=dict)
    tied: tuple[float, ...] = ()
    beyond: tuple[float, ...] = ()
    out: Mapping[Pair, tuple[float, ...]] = field(default_factory=dict)
    margin: float = 0.0
    seeds: int = 0
    fresh: bool = False
    by_seed: Mapping[Pair, Mapping[float, tuple[float, ...]]] = field(default_factory=dict)
    best: float = math.nan
    unchanged: float = 0.0
    why: str = ""

    @property
    def moves(self) -> dict[Pair, Pair]:
        """Return the pairs by what they are multiples of: those of `PAIRS`, of the best rate."""
        return {_move_of(pair, self.best): pair for pair in self.pairs}

    @property
    def least(self) -> float | None:
        """Return the rule that costs least, of those that stay among the measured decays."""
        inside = [rule for rule in self.costs if rule not in self.beyond]
        return min(inside, key=lambda rule: self.costs[rule].value, default=None)

    @property
    def rule(self) -> float | None:
        """Return the rule to use; None if there are no intervals.

        It is the simplest of those that are tied and, by their values, within the margin: to leave
        the decay as it is stated or, failing that, as the other convention states it.
        """
        least = self.least
        if not self.tied or least is None:
            return None
        most = self.costs[least].value + self.margin
        inside = [one for one in self.tied if one not in self.beyond]
        cheap = [one for one in CONVENTIONS if one in inside and self.costs[one].value <= most]
        return self.unchanged if self.unchanged in cheap else next(iter(cheap), least)

    def slight(self, rule: float) -> bool:
        """Whether a rule is known to cost no more than the margin, by the values.

        That is more than the best decay there and, if some rule did better, more than that rule.
        """
        if rule not in self.costs or rule in self.beyond or self.least is None:
            return False
        return self.costs[rule].value <= min(0.0, self.costs[self.least].value) + self.margin

    @property
    def dearer(self) -> tuple[float, ...]:
        """Return the rules beyond the measured decays that surely cost more than the least."""
        return tuple(one for one in self.beyond if self.tied and one not in self.tied)

    @property
    def sides(self) -> tuple[Pair, Pair] | None:
        """Return the pairs that lead up and down from the best α; None if one is not measured.

        Other pairs lead across it.
        """
        up = max((pair for pair in self.pairs if pair[1] > pair[0]), default=None)
        down = min((pair for pair in self.pairs if pair[1] < pair[0]), default=None)
        return None if up is None or down is None or up[0] < down[0] else (up, down)

    def of_pair(self, pair: Pair) -> "TransferRegret":
        """Return the costs of one pair alone."""
        return replace(self, costs=self.pairs[pair], beyond=self.out.get(pair, ()))


@dataclass(frozen=True)
class Move:
    """What each rule makes of a decay if the learning rate moves from `tuned` to `used`.

    `decay` is the best one at `tuned`, and `decays` are what the rules make of it. `regret` says
    what they cost, or why that is unknown.
    """

    tuned: float
    decay: float
    used: float
    decays: Mapping[float, float]
    regret: TransferRegret

    def judged(self, regret: TransferRegret) -> "Move":
        """Return it with what fresh seeds found, if a second stage has trained this move."""
        pair = self.tuned, self.used
        if not regret.fresh or pair not in regret.pairs:
            return self
        return replace(self, regret=regret.of_pair(pair))


def of_fresh_seeds(
    costs: Mapping[Pair, Mapping[float, Array]], *, error: float, best: float
) -> TransferRegret:
    """Summarize what each rule cost each fresh seed, for each pair of learning rates.

    Pairs are averaged within a seed. Intervals are Student's over seeds, of costs and of their
    differences. `error` is that of the best setting, and `best` its learning rate.
    """
    rules = [rule for rule in RULES if costs and all(rule in own for own in costs.values())]
    if not costs:
        why = "No decays were registered to be carried by two or more seeds."
        return TransferRegret(why=why, fresh=True)
    if not rules:
        return TransferRegret(why="No carried decays were trained yet.", fresh=True)
    means = {rule: np.mean([own[rule] for own in costs.values()], axis=0) for rule in rules}
    least = min(rules, key=lambda rule: float(means[rule].mean()))
    return TransferRegret(
        costs={rule: mean_of(values) for rule, values in means.items()},
        pairs={pair: {rule: mean_of(own[rule]) for rule in rules} for pair, own in costs.items()},
        tied=tuple(
            rule for rule in rules if rule == least or mean_of(means[rule] - means[least]).low <= 0
        ),
        margin=_margin(error),
        seeds=len(means[least]),
        fresh=True,
        by_seed={
            pair: {rule: tuple(map(float, own[rule])) for rule in rules}
            for pair, own in costs.items()
        },
        best=best,
    )


def measure_transfer(landscape: Landscape, moves: Collection[Pair] = PAIRS) -> TransferRegret:
    """Measure the regret in a finished sweep, by leaving one seed out.

    With fewer than three seeds, there are no intervals. With one, it both chooses and judges.
    `moves` are those of `PAIRS` to measure.
    """
    if landscape.unvaried:
        return TransferRegret(why=f"All runs have the same {landscape.unvaried}.")
    if not landscape.in_columns:
        return TransferRegret(why="Scattered settings: few learning rates share their decays.")
    ended = _ended(landscape)
    if not ended:
        return TransferRegret(why="Every setting with a decay above 0 has a run that diverged.")
    judges = Judges(landscape, choose(landscape))
    pairs = list(_pairs(judges, ended, moves))
    if not pairs:
        return TransferRegret(why=_AT_EDGES if _apart(judges.choice, moves) else _NOT_APART)
    weights = judges.together(pairs).weights
    pairs = [pair for at, pair in enumerate(pairs) if np.isfinite(weights[:, at]).all()]
    if not pairs:
        return TransferRegret(why=_TOO_FAR_APART)
    return _judged(judges, pairs)


def measure_moves(landscape: Landscape, near: float) -> tuple[Move, ...]:
    """Measure what each rule makes of the best decay when the learning rate moves.

    It moves from the learning rate of the grid that is nearest to a given one, to each other one.
    Scattered settings have no moves.
    """
    if not landscape.in_columns or not (ended := _ended(landscape)):
        return ()
    judges = Judges(landscape, choose(landscape))
    columns = judges.choice.columns
    tuned = columns[min(columns, key=lambda lr: abs(math.log(lr / near)))]
    return tuple(_move(judges, tuned, lr, ended) for lr in landscape.lrs if lr != tuned.lr)


def _move(judges: Judges, tuned: Column, used: float, ended: Collection[float]) -> Move:
    pair, target = (tuned.lr, used), judges.choice.columns.get(used)
    if target is None or not {tuned.lr, used} <= {*ended}:
        regret = TransferRegret(why="Some run of each setting at this learning rate diverged.")
    elif not (tuned.inside and target.inside):
        where = f"α = {(target if tuned.inside else tuned).lr:.3g}"
        regret = TransferRegret(why=f"The best decay at {where} is at an edge of the grid.")
    elif not (judges.located(tuned) and judges.located(target)):
        where = f"α = {(target if judges.located(tuned) else tuned).lr:.3g}"
        regret = TransferRegret(why=f"A decay next to the best one at {where} was not trained.")
    elif np.isfinite(judges.together([pair]).weights).all():
        regret = _judged(judges, [pair])
    else:
        regret = TransferRegret(why=_TOO_FAR_APART)
    decays = {rule: tuned.decay * (used / tuned.lr) ** -rule for rule in RULES}
    return Move(tuned.lr, tuned.decay, used, decays, regret)


def _ended(landscape: Landscape) -> set[float]:
    """Return the learning rates of which some setting ended without diverging."""
    return {cell.lr for cell in landscape.cells.values() if cell.decay > 0 and not cell.diverged}


def _judged(judges: Judges, pairs: Sequence[Pair]) -> TransferRegret:
    folds = list(judges.apart(pairs))
    if len(folds) < 2:
        folds = [judges.together(pairs)]
    found = _summary(judges.measured, folds, pairs, judges.doubts(pairs))
    return replace(
        found,
        margin=_margin(judges.choice.error),
        best=judges.choice.lr,
        unchanged=judges.landscape.unchanged,
    )


def _margin(error: float) -> float:
    return max(0.0, (MARGIN - 1) * error)


def _summary(
    grid: Arrays, folds: Sequence[Fold], pairs: Sequence[Pair], doubts: Array
) -> TransferRegret:
    weights = np.stack([fold.weights for fold in folds])
    beyond: Flags = np.logical_or.reduce([fold.beyond for fold in folds])
    out = {pair: tuple(np.array(RULES)[beyond[:, at]].tolist()) for at, pair in enumerate(pairs)}
    means, of_means = weights.mean(2), doubts.sum(1) / len(pairs) ** 2
    found = TransferRegret(
        costs={rule: _estimate(folds, means[:, at], of_means[at]) for at, rule in enumerate(RULES)},
        pairs={
            pair: {
                rule: _estimate(folds, weights[:, at, k], doubts[at, k])
                for at, rule in enumerate(RULES)
            }
            for k, pair in enumerate(pairs)
        },
        beyond=tuple(rule for rule in RULES if any(rule in own for own in out.values())),
        out=out,
        seeds=len(folds),
    )
    if len(folds) < FEWEST or found.least is None:
        return found
    least = RULES.index(found.least)
    tied = [
        rule
        for at, rule in enumerate(RULES)
        if at == least or _difference(grid, folds, means[:, at] - means[:, least]).low <= 0
    ]
    return replace(found, tied=tuple(tied))


def _estimate(folds: Sequence[Fold], weights: Array, doubt: float) -> Estimate:
    """Return the mean cost over folds, with an interval of two parts.

    One is the jackknife: each seed is left out of choosing and of judging at once. If its ridge is
    tilted, it moves the chosen decays and the errors there. The other is `doubt`, the variance that
    comes from how errors run between cells.
    """
    count = len(folds)
    value = _mean(folds, weights)
    if count < FEWEST:
        return Estimate(value, math.nan, math.nan)
    left = np.array([cost(fold.choosers, own) for fold, own in zip(folds, weights, strict=True)])
    of_seeds = float(left.var()) * (count - 1), count - 1.0
    return within(value, *safely_summed(of_seeds, (doubt, _OF_CURVES)))


def _difference(grid: Arrays, folds: Sequence[Fold], weights: Array) -> Estimate:
    """Return a mean difference between two rules' costs, with the noise of the judging errors.

    Both rules carry the same decays, so other choices would move both costs.
    """
    noise = grid.spread((weights**2).sum(0) / len(folds) ** 2)
    return within(_mean(folds, weights), *noise)


def _mean(folds: Sequence[Fold], weights: Array) -> float:
    costs = (cost(fold.errors, own) for fold, own in zip(folds, weights, strict=True))
    return math.fsum(costs) / len(folds)


def _move_of(pair: Pair, best: float) -> Pair:
    """Return the one of `PAIRS` that a pair of learning rates stands for."""

    def off(factors: Pair) -> float:
        return max(abs(math.log2(lr / (best * f))) for lr, f in zip(pair, factors, strict=True))

    return min(PAIRS, key=off)


def _apart(choice: Choice, moves: Collection[Pair]) -> bool:
    """Whether there are learning rates for some move, wherever their best decays are."""
    return any(None not in _columns_of(choice, factors) for factors in moves)


def _columns_of(choice: Choice, factors: Pair) -> list[Column | None]:
    """Return the columns that stand for multiples of the chosen learning rate, if some do."""
    found: list[Column | None] = []
    for factor in factors:
        off = {lr: abs(math.log2(lr / (choice.lr * factor))) for lr in choice.columns}
        column = choice.columns[min(off, key=off.__getitem__)]
        found.append(column if off[column.lr] <= _OFF else None)
    return found


def _pairs(judges: Judges, ended: Collection[float], moves: Collection[Pair]) -> Iterator[Pair]:
    """Yield where a decay is tuned and used, if both learning rates have a best decay inside.

    They must be among those of which some setting `ended` without diverging, and no decay may be
    missing beside the best one.
    """
    for factors in moves:
        columns = [one for one in _columns_of(judges.choice, factors) if one is not None]
        located = (one.inside and judges.located(one) and one.lr in ended for one in columns)
        if len(columns) == len(factors) and all(located):
            yield columns[0].lr, columns[1].lr
