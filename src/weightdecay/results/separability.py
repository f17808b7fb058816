"""The cost of treating the learning rate and the decay as two separate knobs.

Settings are chosen by the validation errors of all seeds but one and judged by the test errors of
that one; each seed takes a turn. So the reported cost is that of tuning with one seed fewer.
Intervals come from the pooled noise of cells.
"""

import math
from dataclasses import dataclass

import numpy as np

from weightdecay.results.arrays import Arrays, grid, lost_last
from weightdecay.results.estimate import UNKNOWN, Array, Estimate, within
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, basin, mean, noise

Place = tuple[int, int]


@dataclass(frozen=True)
class Regret:
    """Excess test error of tuning one knob at a time: the mean over starting points, and the worst.

    `first` is the knob tuned first, "lr" or "decay", from the starting point that is worst by all
    seeds together; `start` is the value that the other knob had there.
    """

    mean: Estimate
    worst: Estimate
    first: str
    start: float


@dataclass(frozen=True)
class _End:
    """Where tuning one knob at a time ended, and where it started."""

    place: Place
    first: str
    start: float


def regret(landscape: Landscape) -> Regret:
    """Measure what tuning one knob, then the other, loses against tuning both.

    A starting point is a value of one knob. The other knob is tuned there, then the first knob at
    the value found. Each knob goes first, from each value of the other in the grid.
    """
    measured = grid(landscape)
    means, worsts = [], []
    for seed, scores in fold_scores(measured):
        ends = _ends(measured, scores)
        best = {lowest(scores): -1.0}
        means.append((seed, weights_of(scores, [end.place for end in ends], best)))
        worsts.append((seed, weights_of(scores, [_worst(scores, ends).place], best)))
    scores = lost_last(measured.scores(), measured.lost())
    if not np.isfinite(scores).any():
        return Regret(UNKNOWN, UNKNOWN, "lr", math.nan)
    worst = _worst(scores, _ends(measured, scores))
    return Regret(
        weighted_error(measured, means), weighted_error(measured, worsts), worst.first, worst.start
    )


def sensitivity(landscape: Landscape) -> Estimate:
    """Measure the mean excess error over the grid's learning rates, each with its best decay.

    This is the learning-rate sensitivity of Wortsman et al., 2023, with errors. A rate at which
    training fails counts with the error it ended with, which chance bounds as their initial loss
    does.
    """
    measured = grid(landscape)
    folds = []
    for seed, scores in fold_scores(measured):
        rates = np.flatnonzero(np.isfinite(scores).any(1))
        places = [(int(rate), int(np.argmin(_filled(scores[rate])))) for rate in rates]
        folds.append((seed, weights_of(scores, places, {lowest(scores): -1.0})))
    return weighted_error(measured, folds)


def interaction_share(landscape: Landscape) -> Estimate:
    """Measure the share of the basin's variance that separate effects of the knobs do not explain.

    The basin here is the rectangle of rates and decays that have a setting near the best. Variances
    are products of a fresh seed's errors with those of the other seeds, which removes the noise. A
    share below 0 is noise and counts as 0.
    """
    measured = grid(landscape)
    left, total = [], []
    for seed, scores in fold_scores(measured):
        own, others = measured.tested[:, :, seed], mean(np.delete(measured.tested, seed, 2))
        known = _rectangle(scores) & np.isfinite(own) & np.isfinite(others)
        if known.any() and known.sum() > _lines(known):
            centred = [errors[known] - errors[known].mean() for errors in (own, others)]
            total.append(float(centred[0] @ centred[1]))
            left.append(float(_additive(known, centred[0]) @ centred[1]))
    where = _rectangle(lost_last(measured.scores(), measured.lost()))
    variance, freedom = noise(measured.tested, where)
    if not total or not sum(total) > 0 or not freedom >= 1:
        return UNKNOWN
    share = min(1.0, max(0.0, sum(left) / sum(total)))
    mean_total, seeds = sum(total) / len(total), len(total)
    cells, lines = int(where.sum()), _lines(where)
    # The variance of the product: noise with the true surface, then noise with noise.
    first = 4 * variance * share * (1 - share) / (seeds * mean_total)
    pairs = (cells - lines) * (1 - share) ** 2 + (lines - 1) * share**2
    second = 2 * variance**2 * pairs / (seeds * max(1, seeds - 1) * mean_total**2)
    estimate = within(share, float(first + second), freedom)
    return Estimate(share, max(0.0, estimate.low), min(1.0, estimate.high))


def fold_scores(grid: Arrays) -> list[tuple[int, Array]]:
    """Return each seed with the scores by which all others choose for it."""
    if len(grid.seeds) < 2:
        return []
    folds = [(seed, lost_last(scores, lost)) for seed, scores, lost in grid.folds()]
    return [(seed, scores) for seed, scores in folds if np.isfinite(scores).any()]


def _filled(scores: Array) -> Array:
    return np.where(np.isfinite(scores), scores, np.inf)


def lowest(scores: Array) -> Place:
    """Return where the lowest score is."""
    rate, decay = np.unravel_index(int(np.argmin(_filled(scores))), scores.shape)
    return int(rate), int(decay)


def _ends(grid: Arrays, scores: Array) -> list[_End]:
    filled = _filled(scores)
    ends = []
    for j in np.flatnonzero(np.isfinite(scores).any(0)):
        rate = int(np.argmin(filled[:, j]))
        place = (rate, int(np.argmin(filled[rate])))
        ends.append(_End(place, "lr", float(grid.decays[j])))
    for i in np.flatnonzero(np.isfinite(scores).any(1)):
        decay = int(np.argmin(filled[i]))
        place = (int(np.argmin(filled[:, decay])), decay)
        ends.append(_End(place, "decay", float(grid.lrs[i])))
    return ends


def _worst(scores: Array, ends: list[_End]) -> _End:
    return max(ends, key=lambda end: float(scores[end.place]))


def weights_of(scores: Array, places: list[Place], less: dict[Place, float]) -> Array:
    """Return the weights of cells in the mean over places, plus given weights."""
    weights = np.zeros(scores.shape)
    for place in places:
        weights[place] += 1 / len(places)
    for place, weight in less.items():
        weights[place] += weight
    return weights


def weighted_error(grid: Arrays, folds: list[tuple[int, Array]]) -> Estimate:
    """Return the mean weighted test error over fresh seeds that have all cells."""
    values, squares = [], np.zeros(grid.tested.shape[:2])
    for seed, weights in folds:
        errors = grid.tested[:, :, seed][weights != 0]
        if np.isfinite(errors).all():
            values.append(float(weights[weights != 0] @ errors))
            squares += weights**2
    if not values:
        return UNKNOWN
    return within(math.fsum(values) / len(values), *grid.spread(squares / len(values) ** 2))


def _rectangle(scores: Array) -> Flags:
    near = basin(scores)
    rates, decays = np.nonzero(near)
    return np.isin(np.arange(len(near)), rates)[:, None] & np.isin(np.arange(near.shape[1]), decays)


def _lines(where: Flags) -> int:
    """Return the number of independent effects of rows and columns."""
    return int(np.count_nonzero(where.any(0)) + np.count_nonzero(where.any(1))) - 1


def _additive(known: Flags, values: Array) -> Array:
    """Return the residuals of values after effects of rows and columns."""
    rate, decay = np.nonzero(known)
    effects = np.concatenate([np.eye(known.shape[0])[rate], np.eye(known.shape[1])[decay]], 1)
    fitted: Array = effects @ np.linalg.lstsq(effects, values, rcond=None)[0]
    return values - fitted
