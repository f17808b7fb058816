"""What it costs to carry λ to another budget, judged by seeds that trained the carried decays.

All seeds of the landscapes choose (`budget_moves`), by the rules of `budget_transfer`. Other seeds
train what was carried and what it is compared with, and judge (`judged_moves`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weightdecay.records import Run, RunConfig
from weightdecay.results.budget_transfer import (
    POWERS,
    Pair,
    is_inside,
    log_stated,
    shared_rates,
    updates_of,
)
from weightdecay.results.choosing import best_columns
from weightdecay.results.estimate import Array
from weightdecay.results.judging import error_of
from weightdecay.results.landscape import Landscape
from weightdecay.results.transfer import TransferRegret, of_fresh_seeds


@dataclass(frozen=True)
class BudgetMove:
    """What each rule makes of a budget's best decay on another one, at a learning rate.

    `carried` has it for each p of POWERS, and `best` is the other budget's own best decay; both as
    that budget states them, and to four digits.
    """

    tuned: Landscape
    used: Landscape
    lr: float
    best: float
    carried: Mapping[float, float]

    def cell(self, decay: float, seed: int) -> RunConfig:
        """Return the configuration that trains a decay at the end of the move."""
        setting: dict[str, Any] = {"lr": self.lr, self.used.way: decay, "seed": seed}
        return replace(self.used.config, **setting)


def budget_moves(pairs: Sequence[Pair]) -> Iterator[BudgetMove]:
    """Yield what each rule makes of the best decays that all seeds choose, at a fixed α."""
    for tuned, used in pairs:
        longer = math.log2(updates_of(used) / updates_of(tuned))
        short, long = best_columns(tuned), best_columns(used)
        for lr in shared_rates(tuned, used):
            source, target = short.get(lr), long.get(lr)
            if source and target and is_inside(tuned, source) and is_inside(used, target):
                start = math.log2(source.decay) + log_stated(tuned) - log_stated(used)
                carried = {p: float(f"{2.0 ** (start - p * longer):.4g}") for p in POWERS}
                yield BudgetMove(tuned, used, lr, target.decay, carried)


def judged_moves(moves: Sequence[BudgetMove], runs: Iterable[Run]) -> TransferRegret:
    """Return what a method's moves of one factor cost, by the seeds that trained all of them.

    A seed's cost is the mean over learning rates, then over pairs of budgets. A run that diverged
    counts as the worst that ended.
    """
    there = {run.config: run for run in runs}
    ended = [error_of(run) for run in there.values() if not run.last.diverged]
    worst = max(ended, default=math.nan)
    seeds = [
        seed
        for seed in sorted({config.seed for config in there})
        if all(
            one.cell(d, seed) in there for one in moves for d in (one.best, *one.carried.values())
        )
    ]
    if len(seeds) < 2:
        return TransferRegret(why="Fewer than two seeds trained all carried decays.", fresh=True)

    def errors(one: BudgetMove, decay: float) -> Array:
        return np.array([error_of(there[one.cell(decay, seed)], worst) for seed in seeds])

    by_pair: dict[tuple[float, float], list[BudgetMove]] = {}
    for one in moves:
        pair = float(updates_of(one.tuned)), float(updates_of(one.used))
        by_pair.setdefault(pair, []).append(one)
    costs = {
        pair: {
            p: np.mean([errors(one, one.carried[p]) - errors(one, one.best) for one in own], axis=0)
            for p in POWERS
        }
        for pair, own in by_pair.items()
    }
    best = min(one.used.best.mean for one in moves)
    return of_fresh_seeds(costs, error=best, best=math.nan)
