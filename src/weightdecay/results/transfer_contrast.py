"""What a rule for carrying decays costs one method, less what it costs another.

Costs differ from one change of the learning rate to the next, and a method may lack some: where its
best decay lies at an edge of the grid, nothing is carried. So methods are compared over the changes
that all of them have, each as a multiple of the method's own best learning rate.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from weightdecay.results.choosing import PAIRS
from weightdecay.results.estimate import UNKNOWN, Array, Estimate, minus
from weightdecay.results.judging import mean_of
from weightdecay.results.transfer import TransferRegret
from weightdecay.results.transfer_folds import Pair


def shared_moves(regrets: Iterable[TransferRegret]) -> list[Pair]:
    """Return those of `PAIRS` that all have measured."""
    there = [one.moves for one in regrets]
    return [move for move in PAIRS if all(move in own for own in there)]


def extra_cost(
    pairs: Sequence[tuple[TransferRegret, TransferRegret]], rule: float, moves: Sequence[Pair]
) -> Estimate:
    """Return what a rule costs the first of a pair less the second; of two pairs, less the next.

    Fresh seeds judge all methods alike, so what a seed does to several drops out. Costs of finished
    sweeps must be those of these moves alone, and count as independent, of fresh seeds too.
    """
    if all(one.fresh for pair in pairs for one in pair):
        first, *others = ([_by_seed(one, rule, moves) for one in pair] for pair in pairs)
        values = first[0] - first[1]
        for one, rival in others:
            values = values - (one - rival)
        return mean_of(values)
    less = [minus(*(_over(one, rule, moves) for one in pair)) for pair in pairs]
    return less[0] if len(less) == 1 else minus(*less)


def _over(found: TransferRegret, rule: float, moves: Sequence[Pair]) -> Estimate:
    """Return the mean cost over moves."""
    if found.fresh:
        return mean_of(_by_seed(found, rule, moves))
    return found.costs.get(rule, UNKNOWN)


def _by_seed(found: TransferRegret, rule: float, moves: Sequence[Pair]) -> Array:
    """Return the mean cost over moves, of each fresh seed."""
    own = [found.by_seed[found.moves[move]][rule] for move in moves]
    return np.asarray(np.mean(own, axis=0))
