"""A landscape as arrays: learning rates × decays × seeds, with NaN where nothing was measured.

Everything that chooses with some seeds and estimates with others uses this shape.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weightdecay.results.estimate import Array, summed
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, basin, effects, mean, noise

# A cell whose variance is more than this many times the basin's is wild.
_WILD = 10.0


@dataclass(frozen=True)
class Arrays:
    """The errors of a landscape, and which runs diverged; axes are rates, decays, seeds."""

    lrs: Array
    decays: Array
    seeds: tuple[int, ...]
    chosen: Array
    tested: Array
    losses: Array
    diverged: Flags

    @property
    def best(self) -> tuple[int, int]:
        """Return where the lowest score is, among cells that diverged only if all did."""
        ranked = np.nan_to_num(lost_last(self.scores(), self.lost()), nan=np.inf)
        rate, decay = np.unravel_index(int(np.argmin(ranked)), ranked.shape)
        return int(rate), int(decay)

    def folds(self) -> list[tuple[int, Array, Flags]]:
        """Return each seed with the scores and lost cells of the others, which choose for it."""
        return [(k, self.scores(k), self.lost(k)) for k in range(len(self.seeds))]

    def scores(self, without: int | None = None) -> Array:
        """Return the mean over seeds, or over all but one, of the errors to choose on."""
        return mean(self.chosen[:, :, self._but(without)])

    def lost(self, without: int | None = None) -> Flags:
        """Return the cells in which some seed diverged, or some seed but one."""
        lost: Flags = np.logical_or.reduce(self.diverged[:, :, self._but(without)], axis=2)
        return lost

    def near(self, *others: Flags) -> Flags:
        """Return the cells of the basin that are not lost, and others that are given."""
        near: Flags = np.logical_or.reduce([self._basin, *others])
        return near

    @cached_property
    def _basin(self) -> Flags:
        return basin(np.where(self.lost(), np.nan, self.scores()))

    def noise(self) -> tuple[float, float]:
        """Return the variance of a test error in the basin, and its degrees of freedom."""
        return noise(self.tested, self.near())

    @cached_property
    def wild(self) -> Flags:
        """Return the cells whose seeds vary far more than the basin's, as some of them fail."""
        variance, _ = self.noise()
        wild: Flags = self._own[0] > _WILD * variance
        return wild

    def spread(self, squares: Array) -> tuple[float, float]:
        """Return the variance of a weighted sum of test errors, and its degrees of freedom.

        `squares` are the squared weights. The noise is pooled over the basin and the cells that
        have a weight, which may lie far outside. A wild cell has its own noise. NaN if there are
        too few errors to estimate noise.
        """
        own, freedom = self._own
        wild, weighed = self.wild, squares > 0
        variance, free = noise(self.tested, self.near(weighed) & ~wild)
        usual = float(squares[~wild].sum())
        parts = [(variance * usual, free)] if usual > 0 or not weighed.any() else []
        parts += [
            (float(squares[place] * own[place]), float(freedom[place]))
            for place in zip(*np.nonzero(wild & weighed), strict=True)
        ]
        return summed(*parts)

    @cached_property
    def _own(self) -> tuple[Array, Array]:
        """Return each cell's variance over seeds, after their effects, and its degrees of freedom.

        Both are 0 for one seed.
        """
        freedom = np.maximum(np.isfinite(self.tested).sum(2) - 1, 0).astype(np.float64)
        near = self.near()
        alone = self.tested - (effects(self.tested[near])[1] if near.any() else 0)
        left = alone - mean(alone)[:, :, None]
        return np.nansum(left**2, axis=2) / np.maximum(freedom, 1), freedom

    def _but(self, without: int | None) -> list[int]:
        return [k for k in range(len(self.seeds)) if k != without]


def lost_last(scores: Array, lost: Flags) -> Array:
    """Return scores in which cells that diverged come after all others.

    Errors are at most 1. A task's own metric may span more.
    """
    known = scores[np.isfinite(scores)]
    span = max(1.0, float(np.ptp(known))) if known.size else 1.0
    return scores + lost * span


def decayed(landscape: Landscape) -> Arrays:
    """Return decays above 0 as arrays, in which a run that diverged has the worst test error.

    It is that of a setting that did not diverge: the worst of all runs would be the unluckiest of
    many, and what diverging runs end with means nothing.
    """
    found = grid(landscape, zero=False)
    known = mean(np.where(found.diverged, np.nan, found.tested))
    worst = float(np.nanmax(known)) if np.isfinite(known).any() else np.nan
    return replace(found, tested=np.where(found.diverged, worst, found.tested))


def grid(landscape: Landscape, *, zero: bool = True) -> Arrays:
    """Return a landscape as arrays; without `zero`, only decays above 0."""
    decays = [decay for decay in landscape.decays if zero or decay > 0]
    seeds = sorted({seed for cell in landscape.cells.values() for seed in cell.seeds})
    shape = (len(landscape.lrs), len(decays), len(seeds))
    chosen, tested, losses = (np.full(shape, np.nan) for _ in range(3))
    diverged = np.zeros(shape, dtype=np.bool_)
    place = {seed: k for k, seed in enumerate(seeds)}
    for i, lr in enumerate(landscape.lrs):
        for j, decay in enumerate(decays):
            cell = landscape.cells.get((lr, decay))
            if cell is None:
                continue
            at = [place[seed] for seed in cell.seeds]
            chosen[i, j, at] = cell.chosen
            tested[i, j, at] = cell.tested
            losses[i, j, at] = cell.losses or np.nan
            diverged[i, j, [place[seed] for seed in cell.diverged]] = True
    lrs = np.array(landscape.lrs)
    return Arrays(lrs, np.array(decays), tuple(seeds), chosen, tested, losses, diverged)
