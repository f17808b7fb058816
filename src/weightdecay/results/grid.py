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
    """The errors of a landscape; axes are learning rates, decays, seeds."""

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
        ranked = np.nan_to_num(self.scores() + self.diverged, nan=np.inf)
        rate, decay = np.unravel_index(int(np.argmin(ranked)), ranked.shape)
        return int(rate), int(decay)

    def folds(self) -> list[tuple[int, Array]]:
        """Return each seed, with the scores that all the others give: they choose, it estimates."""
        return [(k, self.scores(k)) for k in range(len(self.seeds))]

    def scores(self, without: int | None = None) -> Array:
        """Return the mean over seeds, or over all but one, of the errors to choose on."""
        kept = [k for k in range(len(self.seeds)) if k != without]
        return mean(self.chosen[:, :, kept])

    def noise(self) -> tuple[float, float]:
        """Return the variance of a test error about its cell and seed, and its freedom."""
        return noise(self.tested, basin(self.scores()))


def grid(landscape: Landscape, *, zero: bool = True) -> Grid:
    """Lay a landscape out; without `zero`, only decays above 0."""
    decays = [decay for decay in landscape.decays if zero or decay > 0]
    seeds = sorted({seed for cell in landscape.cells.values() for seed in cell.seeds})
    shape = (len(landscape.lrs), len(decays), len(seeds))
    chosen, tested, losses = (np.full(shape, np.nan) for _ in range(3))
    diverged = np.zeros(shape[:2], dtype=np.bool_)
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
            diverged[i, j] = bool(cell.diverged)
    lrs = np.array(landscape.lrs)
    return Grid(lrs, np.array(decays), tuple(seeds), chosen, tested, losses, diverged)
