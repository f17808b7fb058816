"""The best decay at each learning rate, and how far noise and seeds may have moved it.

Heights are y = ln e, without the seeds' common effects. (Errors that are not all above 0 have no
logarithm and are used as they are.) The best decays are those of `column`.

Their spread has two parts. One is noise: heights are drawn again, with the variance that the cells
near the optima have about their seeds, and the lowest cell is found again in each draw. The other
is what seeds have of their own, such as a tilt of the ridge: what leaving out one seed after
another (the jackknife) varies beyond that noise.
"""

from dataclasses import dataclass

import numpy as np

from weightdecay.results.arrays import Arrays
from weightdecay.results.column import PARABOLA, Column
from weightdecay.results.estimate import Array, summed
from weightdecay.results.noise import Flags, effects, mean, noise
from weightdecay.results.ridge import usual_step

#: A best decay is located if its standard error is at most so many doublings, or steps of the grid.
LOCATED = 1.0
_INSIDE = 0.9  # the share of draws in which the lowest cell must lie inside the grid
_DRAWS = 200
_DRAWN = slice(1, 1 + _DRAWS)


@dataclass(frozen=True)
class Vertices:
    """The best log2 decay of each located learning rate by each estimator, and draws of it.

    `best` is estimators × rates. `draws` has redrawn noise, and `without` each seed left out, along
    a first axis. `freedom` is that of the noise. The second estimator may be NaN. `flat` learning
    rates are left out because noise moves their lowest cell too far.
    """

    lrs: Array
    best: Array
    draws: Array
    without: Array
    freedom: float
    flat: int

    @property
    def x(self) -> Array:
        """Return log2 of the learning rates."""
        return np.log2(self.lrs)

    def weighed(self, weights: Array, *, cautious: bool = False) -> tuple[float, float, float]:
        """Return a weighted sum of best decays, its variance, and that variance's freedom.

        `weights` are estimators × rates. What has no weight may be unknown. From a few seeds, what
        they have of their own is hard to tell from noise. If `cautious`, nothing that the jackknife
        varies is therefore taken to be noise, and its whole variance is added.
        """
        used = weights != 0
        value, drawn, left = (
            each[..., used] @ weights[used] for each in (self.best, self.draws, self.without)
        )
        seeds = len(left)
        of_noise = float(np.var(drawn))
        of_seeds = (seeds - 1) / seeds * float(((left - left.mean()) ** 2).sum())
        own = of_seeds if cautious else max(of_seeds - of_noise, 0.0)
        return float(value), *summed((of_noise, self.freedom), (own, seeds - 1.0))


def vertices(grid: Arrays, log_decays: Array, rates: Flags) -> Vertices:
    """Locate the best decay at each of some rates.

    `log_decays` are rates × decays, as some conventions depend on the rate. A setting in which a
    seed diverged is not fitted.
    """
    measured = np.isfinite(grid.scores())
    errors = np.where(grid.lost()[..., None], np.nan, grid.tested)
    logs = bool((errors[np.isfinite(errors)] > 0).all())
    heights = np.log(errors) if logs else errors
    unit = max(1.0, usual_step(measured, grid.decays))
    columns = {
        int(i): Column(log_decays[i, measured[i]], np.isfinite(means[measured[i]]), unit, logs)
        for i in np.flatnonzero(rates)
        if np.isfinite(means := mean(heights[i])).any()
    }
    near = np.zeros(measured.shape, dtype=np.bool_)
    for i, column in columns.items():
        cells = np.flatnonzero(measured[i])
        [at] = column.lowest(mean(heights[i, cells])[None])
        near[i, cells[column.window(int(at), PARABOLA)]] = True
    variance, freedom = noise(heights, near)
    located, flat = {}, 0
    if freedom >= 1:
        alone = heights - effects(heights[near])[1]
        random = np.random.default_rng(0)
        for i, column in columns.items():
            best = _located(column, alone[i, measured[i]], variance, random)
            if best is not None and float(np.std(best[_DRAWN, PARABOLA])) <= LOCATED * unit:
                located[i] = best
            elif best is not None:
                flat += 1
    every = np.stack([np.zeros((1 + _DRAWS + len(grid.seeds), 2)), *located.values()], -1)[..., 1:]
    lrs = grid.lrs[[*located]]
    return Vertices(lrs, every[0], every[_DRAWN], every[1 + _DRAWS :], freedom, flat)


def _located(
    column: Column, heights: Array, variance: float, random: np.random.Generator
) -> Array | None:
    """Return best decays of all seeds, of each draw, and without each seed; None if at an edge."""
    means, count = mean(heights), np.maximum(np.isfinite(heights).sum(1), 1)
    drawn = means + np.sqrt(variance / count) * random.standard_normal((_DRAWS, len(means)))
    [at] = column.lowest(means[None])
    if not column.inside[at] or column.inside[column.lowest(drawn)].mean() < _INSIDE:
        return None
    left = np.stack([mean(np.delete(heights, k, 1)) for k in range(heights.shape[1])])
    same = np.full(1 + len(left), at)
    centres = [same[:1], column.lowest(drawn, inside=True), same[1:]]
    return column.best(np.concatenate([means[None], drawn, left]), np.concatenate(centres))
