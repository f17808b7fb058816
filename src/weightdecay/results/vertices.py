"""The best decay at each learning rate, and how far noise and seeds may have moved it.

Heights are y = ln e, without the seeds' common effects. (Errors that are not all above 0 have no
logarithm and are used as they are.) The best decays are those of `column`.

Their spread is seen in two ways. Heights are drawn again with the noise that the cells near the
optima have about their seeds. And one seed after another is left out (the jackknife), which also
sees what seeds have of their own, such as a tilt of the ridge. Both find the lowest cell again: in
the window of all seeds, tilted ridges would seem to lie closer together than they do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weightdecay.results.arrays import Arrays
from weightdecay.results.column import PARABOLA, Column
from weightdecay.results.estimate import Array, safely_summed, student, summed
from weightdecay.results.noise import Flags, effects, mean, noise
from weightdecay.results.ridge import step_of, usual_step

#: A best decay is located if its standard error is at most so many doublings, or steps of the grid.
LOCATED = 1.0
_ENOUGH = 3  # from so many seeds on, the jackknife alone gives the interval
_INSIDE = 0.9  # the share of draws in which the lowest cell must lie inside the grid
_DRAWS = 200
_DRAWN = slice(1, 1 + _DRAWS)


@dataclass(frozen=True)
class Vertices:
    """The best log2 decay of each located learning rate by each estimator, and draws of it.

    `best` is estimators × rates. `draws` has redrawn noise, and `without` each of the `seeds` left
    out, along a first axis. `depths` are the heights at the best decays: of all seeds, of each
    draw, and without each seed. `freedom` is that of the noise. The second estimator may be NaN.
    `flat` learning rates are left out because noise moves their lowest cell too far. `fewest` is
    the smallest number of seeds that a cell near the optima has.
    """

    lrs: Array
    best: Array
    draws: Array
    without: Array
    depths: Array
    seeds: tuple[int, ...]
    freedom: float
    flat: int
    fewest: int

    @property
    def x(self) -> Array:
        """Return log2 of the learning rates."""
        return np.log2(self.lrs)

    def weighed(self, weights: Array, *, by_seeds: bool = False) -> tuple[float, float, float]:
        """Return a weighted sum of best decays, its variance, and that variance's freedom.

        `weights` are estimators × rates. What has no weight may be unknown.
        """
        return weighed([(self, weights)], by_seeds=by_seeds)

    def at_best_rate(self) -> "Vertices | None":
        """Return the best decay at the best learning rate; None if that is the first or last.

        The best rate is at the vertex of a parabola through the depths within one doubling of the
        lowest, and its best decay lies on the line between its neighbours'.
        """
        if len(self.lrs) < 3:
            return None
        unit = max(1.0, step_of([self.x]))
        rates = Column(self.x, np.ones(len(self.x), dtype=np.bool_), unit, logs=False)
        [at] = rates.lowest(self.depths[:1])
        if not rates.inside[at]:
            return None
        centres = np.concatenate([[at], rates.lowest(self.depths[1:], inside=True)])
        places = rates.best(self.depths, centres)[:, PARABOLA]
        every = np.concatenate([self.best[None], self.draws, self.without])
        above = np.clip(np.searchsorted(self.x, places), 1, len(self.x) - 1)
        share = (places - self.x[above - 1]) / (self.x[above] - self.x[above - 1])
        rows = np.arange(len(places))
        lower, upper = every[rows, :, above - 1], every[rows, :, above]
        found = ((1 - share)[:, None] * lower + share[:, None] * upper)[..., None]
        return replace(
            self,
            lrs=2.0 ** places[:1],
            best=found[0],
            draws=found[_DRAWN],
            without=found[1 + _DRAWS :],
            depths=rates.depths(self.depths, centres)[:, None],
        )


def weighed(
    parts: Sequence[tuple[Vertices, Array]], *, by_seeds: bool = False
) -> tuple[float, float, float]:
    """Return a weighted sum over landscapes, its variance, and that variance's freedom.

    Noise is drawn for each landscape apart. If all have the same seeds, one seed is left out of all
    of them at once, so that what a seed does to each adds up or cancels. The variance is the noise,
    and what the jackknife varies beyond it. If `by_seeds`, it is the jackknife's alone, which is
    right whatever seeds have of their own, and has as many degrees of freedom as seeds less one. As
    seeds may agree by luck, it is the noise's instead if that makes the wider interval. Student's t
    of one would be 12.7, so of two seeds, it is the noise, plus the jackknife's with one more
    square, as large as noise makes one.
    """
    sums = [
        [each[..., w != 0] @ w[w != 0] for each in (one.best, one.draws, one.without)]
        for one, w in parts
    ]
    value = sum(float(best) for best, _, _ in sums)
    noise = [
        (float(np.var(drawn)), one.freedom)
        for (one, _), (_, drawn, _) in zip(parts, sums, strict=True)
    ]
    of_noise = summed(*noise)[0]
    lefts = [left for _, _, left in sums]
    free = [max(one.fewest - 1.0, 1.0) for one, _ in parts]
    if len({one.seeds for one, _ in parts}) == 1:
        lefts, free = [np.sum(lefts, 0)], [min(free)]
    own, freedom = summed(*zip(map(_jackknife, lefts), free, strict=True))
    if not by_seeds:
        return value, *summed(*noise, (max(own - of_noise, 0.0), freedom))
    if min(one.fewest for one, _ in parts) >= _ENOUGH:
        return value, *max((own, freedom), summed(*noise), key=_half)
    return value, *summed(*noise, (own + of_noise, freedom))


def joined(fewest: int, *parts: tuple[float, float]) -> tuple[float, float]:
    """Return the variance of an exponent and its freedom, from those of its parts.

    `fewest` is the smallest number of seeds. Three or more can show by luck how little they differ,
    so the parts are added safely. Two have that allowance in their own variance.
    """
    return (summed if fewest < _ENOUGH else safely_summed)(*parts)


def _half(variance: tuple[float, float]) -> float:
    """Return half the width of the interval for a variance and its freedom."""
    return student(variance[1]) * math.sqrt(variance[0])


def _jackknife(without: Array) -> float:
    """Return the variance of a sum, from its values without each seed."""
    return float(np.var(without)) * (len(without) - 1)


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
    every = np.stack([np.zeros((1 + _DRAWS + len(grid.seeds), 3)), *located.values()], -1)[..., 1:]
    best, depths = every[:, :2], every[:, 2]
    parts = best[0], best[_DRAWN], best[1 + _DRAWS :], depths
    fewest = int(np.isfinite(heights[near]).sum(1).min(initial=len(grid.seeds)))
    return Vertices(grid.lrs[[*located]], *parts, grid.seeds, freedom, flat, fewest)


def _located(
    column: Column, heights: Array, variance: float, random: np.random.Generator
) -> Array | None:
    """Return the best decays by each estimator, and the depth; None if at an edge.

    Rows are all seeds, each draw, and each seed left out. A cell that only that seed has is kept.
    """
    means, count = mean(heights), np.maximum(np.isfinite(heights).sum(1), 1)
    drawn = means + np.sqrt(variance / count) * random.standard_normal((_DRAWS, len(means)))
    [at] = column.lowest(means[None])
    if not column.inside[at] or column.inside[column.lowest(drawn)].mean() < _INSIDE:
        return None
    left = np.stack([mean(np.delete(heights, k, 1)) for k in range(heights.shape[1])])
    left = np.where(np.isfinite(left), left, means)
    others = np.concatenate([drawn, left])
    centres = np.concatenate([[at], column.lowest(others, inside=True)])
    rows = np.concatenate([means[None], others])
    return np.column_stack([column.best(rows, centres), column.depths(rows, centres)])
