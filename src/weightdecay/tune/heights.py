"""Errors as heights above the best of their budget, and budgets at which nothing was learned.

A height is log(error / best), bent to stay below a ceiling; a run that diverged is at the ceiling.
Runs that are hardly better than guessing say nothing about the best setting. If a budget has no
others, its runs are left out, and longer ones are made.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from weightdecay.tune.shapes import CEILING, Array, bent
from weightdecay.tune.trial import Cell, Outcome

_LEARNED = 0.06  # of the error of guessing, by which a run is better that has learned something,
_ENOUGH_LEARNED = 1 / 3  # and one that is shorter than the long run and says what that will do,
_AS_MUCH = 1 / 2  # unless longer runs are hardly better: this share of theirs is enough
_ENOUGH = (
    2  # runs after which a budget is given up if none has learned anything; else one is enough
)
_ALIKE = 0.02  # where that error is not known, runs that differ by less say nothing,
_ENOUGH_ALIKE = 3  # if there are so many


def heights(told: Mapping[Cell, Outcome], cells: Sequence[Cell]) -> Array:
    """Return the height of each trial."""
    errors = np.array([told[cell].error for cell in cells])
    rungs = np.array([cell.rung for cell in cells])
    positive = errors[np.isfinite(errors) & (errors > 0)]
    floor = positive.min() / 2 if len(positive) else 1.0  # for an error of 0
    found = np.full(len(cells), CEILING)
    for rung in set(rungs.tolist()):
        here = (rungs == rung) & np.isfinite(errors)
        if here.any():
            logs = np.log(np.maximum(errors[here], floor))
            found[here] = bent(logs - logs.min())
    return found


def are_equal(told: Mapping[Cell, Outcome]) -> bool:
    """Whether several runs ended, and all with the same error: then no setting matters."""
    errors = [one.error for one in told.values() if not one.diverged]
    return len(errors) >= _ENOUGH_ALIKE and len(set(errors)) == 1


def unlearned(
    told: Mapping[Cell, Outcome], guess: float | None, *, longest: int
) -> dict[int, bool]:
    """Return the rungs whose runs say nothing, and whether each is given up for longer runs.

    `guess` is the error of guessing. Runs that have hardly learned anything prefer other settings
    than the long run. On a hard task long runs do not learn much either, and short ones count again
    once longer ones show that. If it is not known, runs say nothing if they came out like all
    shorter ones. The longest runs may be alike because any setting is good: they must be equal.
    """
    errors = [(cell.rung, one.error) for cell, one in told.items() if not one.diverged]
    found = {}
    for rung in {at for at, _ in errors}:
        here = [error for at, error in errors if at == rung]
        so_far = [error for at, error in errors if at <= rung]
        if guess is not None:
            best = 1 - min(here) / guess
            longer = [1 - error / guess for at, error in errors if at > rung]
            wanted = min(_ENOUGH_LEARNED, _AS_MUCH * max(longer, default=1.0))
            if best < max(_LEARNED, wanted if rung < longest else 0.0):
                enough = 1 if best >= _LEARNED else _ENOUGH
                found[rung] = len(here) >= enough and rung < longest
        elif len(so_far) >= _ENOUGH_ALIKE:
            alike = _ALIKE if rung < longest else 0.0
            if min(so_far) >= (1 - alike) * max(so_far):
                found |= {at: at < longest for at, _ in errors if at <= rung}
    return found
