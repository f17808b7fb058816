"""A landscape as arrays: learning rates × decays × seeds, with NaN where nothing was measured.

Whoever chooses with some seeds and estimates with others needs this shape.
"""

from dataclasses import dataclass

import numpy as np

from weightdecay.results.estimate import Array
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, basin, mean, noise


@dataclass(frozen=True)
class Grid:
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
        """Return where the lowest score is; among those that diverged only if all did."""
        ranked = np.nan_to_num(lost_last(self.scores(), self.lost()), nan=np.inf)
        rate, decay = np.unravel_index(int(np.argmin(ranked)), ranked.shape)
        return int(rate), int(decay)

    def folds(self) -> list[tuple[int, Array, Flags]]:
        """Return each seed, with the others' scores and lost cells: they choose, it estimates."""
        return [(k, self.scores(k), self.lost(k)) for k in range(len(self.seeds))]

    def scores(self, without: int | None = None) -> Array:
        """Return the mean over seeds, or over all but one, of the errors to choose on."""
        return mean(self.chosen[:, :, self._but(without)])

    def lost(self, without: int | None = None) -> Flags:
        """Return the cells in which a seed diverged, or one of all but one."""
        lost: Flags = np.logical_or.reduce(self.diverged[:, :, self._but(without)], axis=2)
        return lost

    def near(self, *others: Flags) -> Flags:
        """Return the basin's cells that are not lost, together with other ones."""
        kept = np.where(self.lost(), np.nan, self.scores())
        near: Flags = np.logical_or.reduce([basin(kept), *others])
        return near

    def noise(self, *others: Flags) -> tuple[float, float]:
        """Return the variance of a test error about its cell and seed, and its freedom.

        It is pooled over the basin, together with other cells whose noise is in question.
        """
        return noise(self.tested, self.near(*others))

    def _but(self, without: int | None) -> list[int]:
        return [k for k in range(len(self.seeds)) if k != without]


def lost_last(scores: Array, lost: Flags) -> Array:
    """Return scores in which cells that diverged come after every other: errors are at most 1."""
    return scores + lost


def grid(landscape: Landscape, *, zero: bool = True) -> Grid:
    """Lay a landscape out; without `zero`, only decays above 0."""
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
    return Grid(lrs, np.array(decays), tuple(seeds), chosen, tested, losses, diverged)
