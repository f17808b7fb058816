"""Decays that seeds choose at some learning rates, carried to others and judged by other seeds.

`transfer` says what the rules are. In a finished sweep, each seed judges the decays that the other
seeds choose, by its test errors at the measured decays, with parabolas between them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weightdecay.results.arrays import Arrays, decayed
from weightdecay.results.choosing import Choice, choose
from weightdecay.results.estimate import Array
from weightdecay.results.interpolation import between, straight_between
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, mean

#: The rules to choose from, each given by its s.
RULES = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
_ROUNDED = 0.01  # in doublings: best decays have three digits

Pair = tuple[float, float]


@dataclass(frozen=True)
class Fold:
    """Errors that judge, and the weight of each in a cost: rules × pairs × rates × decays.

    A weight is NaN if what it needs was not measured. `straight` are the weights if errors between
    measured decays lay on straight lines. `beyond` says which rules × pairs lead beyond these.
    """

    errors: Array
    weights: Array
    straight: Array
    beyond: Flags

    def cost(self, weights: Array) -> float:
        """Return a weighted sum of the errors."""
        used = weights != 0
        return float((weights[used] * self.errors[used]).sum())


def _fold(
    grid: Arrays, choice: Choice, pairs: Sequence[Pair], errors: Array, everyone: Flags
) -> Fold:
    """Carry the chosen decays to learning rates where some cells have an error.

    `everyone` are the cells that some seed has trained. A decay beyond the last cell counts as that
    one; if a seed lacks the last cell, as the one before it.
    """
    weights, straight = (np.zeros((len(RULES), len(pairs), *errors.shape)) for _ in range(2))
    beyond = np.zeros((len(RULES), len(pairs)), dtype=np.bool_)
    for at, (tuned, used) in enumerate(pairs):
        rate = int(np.flatnonzero(grid.lrs == used)[0])
        known = np.isfinite(errors[rate])
        if not {tuned, used} <= choice.columns.keys() or not known.any():
            weights[:, at] = math.nan
            continue
        logs, column = (np.log2(grid.decays[cells]) for cells in (known, everyone[rate]))
        low = logs[0] if logs[0] <= column[:2][-1] else -math.inf
        high = logs[-1] if logs[-1] >= column[-2:][0] else math.inf
        own, other = (math.log2(choice.columns[lr].decay) for lr in (used, tuned))
        best = min(max(own, low), high)
        for row, rule in enumerate(RULES):
            place = other - rule * math.log2(used / tuned)
            beyond[row, at] = not low - _ROUNDED <= place <= high + _ROUNDED
            carried = min(max(place, low), high)
            weights[row, at, rate, known] = between(logs, carried) - between(logs, best)
            lines = straight_between(logs, carried) - straight_between(logs, best)
            straight[row, at, rate, known] = lines
    return Fold(errors, weights, straight, beyond)


@dataclass(frozen=True)
class Judges:
    """The seeds of a landscape, what they choose together, and what all of them but one choose."""

    landscape: Landscape
    choice: Choice

    @cached_property
    def measured(self) -> Arrays:
        """Return the landscape as arrays, in which a run that diverged has the worst test error."""
        return decayed(self.landscape)

    def together(self, pairs: Sequence[Pair]) -> Fold:
        """Return what all seeds choose, judged by their mean."""
        return _fold(self.measured, self.choice, pairs, mean(self.measured.tested), self._everyone)

    def apart(self, pairs: Sequence[Pair]) -> Iterator[Fold]:
        """Yield what the others choose for each seed to judge, if it was all measured."""
        for seed, choice in self._others:
            errors = self.measured.tested[:, :, seed]
            fold = _fold(self.measured, choice, pairs, errors, self._everyone)
            if np.isfinite(fold.weights).all():
                yield fold

    @cached_property
    def _everyone(self) -> Flags:
        known = np.isfinite(self.measured.tested)
        everyone: Flags = np.logical_or.reduce(known, axis=2)
        return everyone

    @cached_property
    def _others(self) -> list[tuple[int, Choice]]:
        """Return the place of each seed, with the choice of all others, if they can choose."""
        left = ((k, _without(self.landscape, seed)) for k, seed in enumerate(self.measured.seeds))
        return [(k, choose(others)) for k, others in left if others is not None]


def _without(landscape: Landscape, seed: int) -> Landscape | None:
    """Return the runs of all seeds but one; None if they cannot choose."""
    cells = {}
    for place, cell in landscape.cells.items():
        kept = [at for at, one in enumerate(cell.seeds) if one != seed]
        if kept:
            cells[place] = replace(
                cell,
                seeds=tuple(cell.seeds[at] for at in kept),
                chosen=tuple(cell.chosen[at] for at in kept),
                tested=tuple(cell.tested[at] for at in kept),
                diverged=tuple(one for one in cell.diverged if one != seed),
                losses=(),
                packs=(),
            )
    found = replace(landscape, cells=cells)
    ended = any(cell.decay > 0 and len(cell.diverged) < len(cell.seeds) for cell in cells.values())
    return found if ended and not found.scattered else None
