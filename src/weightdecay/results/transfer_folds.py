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
from weightdecay.results.choosing import Choice, Column, choose
from weightdecay.results.column import ROUNDED
from weightdecay.results.estimate import Array
from weightdecay.results.interpolation import between, doubt
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, mean
from weightdecay.results.ridge import usual_step

#: The rules to choose from, each given by its s.
RULES = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
_ROUNDED = 0.01  # in doublings: best decays have three digits

Pair = tuple[float, float]


@dataclass(frozen=True)
class Fold:
    """Errors that judge, and the weight of each in a cost: rules × pairs × rates × decays.

    A weight is NaN if what it needs was not measured. `choosers` are the mean errors of the seeds
    that chose. `beyond` says which rules × pairs lead beyond the measured decays.
    """

    errors: Array
    choosers: Array
    weights: Array
    beyond: Flags


def cost(errors: Array, weights: Array) -> float:
    """Return a weighted sum of errors; those without weight may be unknown."""
    used = weights != 0
    return float((weights[used] * errors[used]).sum())


@dataclass(frozen=True)
class _Places:
    """Where errors are needed at a learning rate: its best decay, and what each rule carries there.

    They are log2 decays, between the measured ones, `logs`. `known` are the places of these.
    """

    rate: int
    known: Flags
    logs: Array
    best: float
    carried: Array
    beyond: Flags


def _places(
    grid: Arrays, choice: Choice, pair: Pair, errors: Array, everyone: Flags
) -> _Places | None:
    """Carry a chosen decay to a learning rate; None if none was chosen or no cell has an error.

    `everyone` are the cells that some seed has trained. A decay beyond the last cell counts as that
    one; if a seed lacks the last cell, as the one before it.
    """
    tuned, used = pair
    rate = int(np.flatnonzero(grid.lrs == used)[0])
    known = np.isfinite(errors[rate])
    if not {tuned, used} <= choice.columns.keys() or not known.any():
        return None
    logs, column = (np.log2(grid.decays[cells]) for cells in (known, everyone[rate]))
    low = logs[0] if logs[0] <= column[:2][-1] else -math.inf
    high = logs[-1] if logs[-1] >= column[-2:][0] else math.inf
    best, start = (math.log2(choice.columns[lr].decay) for lr in (used, tuned))
    carried = start - np.array(RULES) * math.log2(used / tuned)
    beyond = (carried < low - _ROUNDED) | (carried > high + _ROUNDED)
    inside = min(max(best, low), high), np.clip(carried, low, high)
    return _Places(rate, known, logs, *inside, beyond)


@dataclass(frozen=True)
class Judges:
    """The seeds of a landscape, what they choose together, and what all of them but one choose."""

    landscape: Landscape
    choice: Choice

    @cached_property
    def measured(self) -> Arrays:
        """Return the landscape as arrays, in which a run that diverged has the worst test error."""
        return decayed(self.landscape)

    @cached_property
    def average(self) -> Array:
        """Return the mean test errors of all seeds."""
        return mean(self.measured.tested)

    def located(self, column: Column) -> bool:
        """Whether no decay is missing beside the lowest setting: it would move the best decay."""
        step = usual_step(self._everyone, self.measured.decays)
        return column.gap <= ROUNDED * max(1.0, step)

    def together(self, pairs: Sequence[Pair]) -> Fold:
        """Return what all seeds choose, judged by their mean."""
        return self._fold(self.choice, pairs, self.average, self.average)

    def apart(self, pairs: Sequence[Pair]) -> Iterator[Fold]:
        """Yield what the others choose for each seed to judge, if it was all measured.

        The errors that a fold leaves are those of the other seeds that judge. A cell that only that
        seed has trained is kept for the others.
        """
        tested = self.measured.tested
        folds = {
            seed: self._fold(choice, pairs, tested[:, :, seed], self.average)
            for seed, choice in self._others
        }
        judging = [seed for seed, fold in folds.items() if np.isfinite(fold.weights).all()]
        for seed in judging:
            others = mean(tested[:, :, [one for one in judging if one != seed]])
            yield replace(folds[seed], choosers=np.where(np.isfinite(others), others, self.average))

    def doubts(self, pairs: Sequence[Pair]) -> Array:
        """Return the variance of a cost from how errors run between cells: rules × pairs.

        The carried decay and the best one each add the square of their doubt.
        """
        found = np.zeros((len(RULES), len(pairs)))
        for at, pair in enumerate(pairs):
            place = _places(self.measured, self.choice, pair, self.average, self._everyone)
            if place is not None:
                errors = self.average[place.rate, place.known]
                best, *carried = (
                    float(errors @ doubt(place.logs, one, errors)) ** 2
                    for one in (place.best, *place.carried)
                )
                found[:, at] = best + np.array(carried)
        return found

    def _fold(self, choice: Choice, pairs: Sequence[Pair], errors: Array, choosers: Array) -> Fold:
        """Carry the chosen decays to learning rates where some cells have an error."""
        weights = np.zeros((len(RULES), len(pairs), *errors.shape))
        beyond = np.zeros((len(RULES), len(pairs)), dtype=np.bool_)
        for at, pair in enumerate(pairs):
            place = _places(self.measured, choice, pair, errors, self._everyone)
            if place is None:
                weights[:, at] = math.nan
                continue
            usual = self.average[place.rate, place.known]
            best = between(place.logs, place.best, usual)
            for row, one in enumerate(place.carried):
                weights[row, at, place.rate, place.known] = between(place.logs, one, usual) - best
            beyond[:, at] = place.beyond
        return Fold(errors, choosers, weights, beyond)

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
    return found if ended and found.in_columns else None
