"""Which run to make next: the one that is expected to improve the recommendation most per epoch.

The recommendation is the setting with the lowest expected height at the long run's budget. One more
run, at any setting and budget, will move that expectation. How far it moves is random, but the
belief says how random, so the expected gain of a run is known before it is made (the knowledge
gradient of Frazier, Powell & Dayanik, 2009). Candidates are settings that may be the best: those
with the lowest height on one of several surfaces that are drawn at random from the belief.

Runs of fewer than 300 updates mislead: there are none if the spend pays for two longer ones. A run
only says something beside others of its length, so it has a length of which three can be paid for.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from weightdecay.tune.belief import Belief, Places
from weightdecay.tune.heights import heights, unlearned
from weightdecay.tune.shapes import Array
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome

# Equally likely outcomes of a run, in standard deviations.
_OUTCOMES = ndtri((np.arange(12) + 0.5) / 12)
_DRAWS = 64  # surfaces, whose best settings are the candidates
_UPDATES = 300  # of the shortest runs, if the spend pays for two of them
_COMPARED = 3  # runs of a length, which can be paid for with those that were made


class Chooser(Protocol):
    """Chooses the rung and the setting of the next trial; None if there is nothing to try."""

    def __call__(
        self,
        space: Space,
        told: Mapping[Cell, Outcome],
        running: Collection[Cell],
        *,
        guess: float | None,
        rungs: Sequence[int],
        avoid: Collection[tuple[int, int]],
    ) -> tuple[int, int] | None:
        """Choose among these rungs, and none of the places to avoid."""


def belief_of(
    space: Space,
    told: Mapping[Cell, Outcome],
    guess: float | None,
    running: Collection[Cell] = (),
) -> Belief:
    """Return the belief after what was told, in whatever order.

    Running trials are taken to come out as expected, so that the next one is another.
    """
    nothing = unlearned(told, guess, longest=space.longest)
    cells = sorted(cell for cell in told if cell.rung not in nothing)
    belief = Belief(space.prior, _numbers(space, cells), heights(told, cells))
    for cell in sorted(running):
        place = _numbers(space, [cell])
        seen = np.concatenate([belief.seen, place])
        belief = Belief(space.prior, seen, np.concatenate([belief.heights, belief.mean(place)]))
    return belief


def lengths(
    space: Space,
    told: Mapping[Cell, Outcome],
    running: Collection[Cell],
    *,
    guess: float | None,
    spend: float,
    left: float,
) -> list[int]:
    """Return the rungs that the next trial may have; `left` epochs can be paid for."""
    updates = min(_UPDATES, space.epochs * space.updates_per_epoch)
    least = 0
    for rung, epochs in enumerate(space.ladder[1:], 1):
        too_few = space.ladder[least] * space.updates_per_epoch < updates
        if too_few and 2 * epochs <= spend * space.epochs:
            least = rung
    for rung, given_up in unlearned(told, guess, longest=space.longest).items():
        if given_up:
            least = max(least, rung + 1)
    paid = [at for at, one in enumerate(space.ladder) if at >= least and one <= left]
    made = Counter(cell.rung for cell in (*told, *running))
    compared = [at for at in paid if made[at] + left // space.ladder[at] >= _COMPARED]
    return compared or paid


def _numbers(space: Space, cells: Sequence[Cell]) -> Places:
    return np.array([space.place(cell.rung, cell.setting) for cell in cells], np.int64)


def gains(belief: Belief, settings: Places, candidates: Places) -> Array:
    """Return by how much each candidate run is expected to lower the recommended height.

    `settings` are the places that can be recommended, at the long run's budget.
    """
    mean = belief.mean(settings)
    moves = belief.moves(candidates, settings)
    best = mean.min()
    gained = np.zeros(len(candidates))
    for outcome in _OUTCOMES:
        gained += best - (mean + outcome * moves).min(axis=1)
    return gained / len(_OUTCOMES)


def choose(
    space: Space,
    told: Mapping[Cell, Outcome],
    running: Collection[Cell],
    *,
    guess: float | None,
    rungs: Sequence[int],
    avoid: Collection[tuple[int, int]],
) -> tuple[int, int] | None:
    """Return the rung and the setting of the next trial; None if all are to be avoided."""
    belief = belief_of(space, told, guess, running)
    plausible = np.unique(belief.drawn(space.long, _DRAWS).argmin(axis=1))
    # A setting that learned nothing at a budget is not tried there again.
    nothing = unlearned(told, guess, longest=space.longest)
    avoid = {*avoid, *((cell.rung, cell.setting) for cell in told if cell.rung in nothing)}
    choices = [
        (rung, int(setting))
        for rung in rungs
        for setting in plausible
        if (rung, int(setting)) not in avoid
    ]
    if not choices:
        return None
    places = np.array([space.place(*choice) for choice in choices], np.int64)
    costs = np.array([space.ladder[rung] for rung, _ in choices])
    return choices[int((gains(belief, space.long, places) / costs).argmax())]
