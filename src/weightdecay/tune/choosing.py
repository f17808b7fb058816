"""Which run to make next: the one that is expected to improve the recommendation most per epoch.

The recommendation is the setting with the lowest expected height at the long run's budget. One more
run, at any setting and budget, will move that expectation. How far it moves is random, but the
belief says how random, so the expected gain of a run is known before it is made (the knowledge
gradient of Frazier, Powell & Dayanik, 2009). Candidates are settings that may be the best: those
with the lowest height on one of several surfaces that are drawn at random from the belief.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy.special import ndtri

from weightdecay.tune.belief import Array, Belief, Places
from weightdecay.tune.heights import heights
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome

# Equally likely outcomes of a run, in standard deviations.
_OUTCOMES = ndtri((np.arange(12) + 0.5) / 12)
_DRAWS = 64  # surfaces, whose best settings are the candidates


def belief_of(space: Space, told: Mapping[Cell, Outcome], running: Collection[Cell] = ()) -> Belief:
    """Return the belief after what was told, in whatever order.

    Running trials are taken to come out as expected, so that the next one is another.
    """
    cells = sorted(told)
    belief = Belief(space.prior, _numbers(space, cells), heights(told, cells))
    for cell in sorted(running):
        place = _numbers(space, [cell])
        seen = np.concatenate([belief.seen, place])
        belief = Belief(space.prior, seen, np.concatenate([belief.heights, belief.mean(place)]))
    return belief


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
    affordable: Sequence[int],
    avoid: Collection[tuple[int, int]],
) -> tuple[int, int] | None:
    """Return the rung and the setting of the next trial; None if all are to be avoided."""
    belief = belief_of(space, told, running)
    plausible = np.unique(belief.drawn(space.long, _DRAWS)[0].argmin(axis=1))
    choices = [
        (rung, int(setting))
        for rung in affordable
        for setting in plausible
        if (rung, int(setting)) not in avoid
    ]
    if not choices:
        return None
    places = np.array([space.place(*choice) for choice in choices], np.int64)
    costs = np.array([space.ladder[rung] for rung, _ in choices])
    return choices[int((gains(belief, space.long, places) / costs).argmax())]
