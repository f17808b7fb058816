"""What moving away from a setting costs, or using it elsewhere, judged by seeds that chose nothing.

As in `separability`, all seeds but one choose settings, and the test errors of that one judge them;
each seed takes a turn. Intervals come from the pooled noise of cells. Decays of 0 play no part.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from weightdecay.results.arrays import Arrays, grid
from weightdecay.results.estimate import UNKNOWN, Array, Estimate
from weightdecay.results.interpolation import between
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import mean
from weightdecay.results.separability import (
    Place,
    fold_scores,
    lowest,
    weighted_error,
    weights_of,
)

#: How many of the best settings the paper marks by circles.
_CIRCLES = 10
# How far a basin is looked at, and how near two learning rates are the same, in doublings.
_DOUBLINGS, _SAME = (-2, -1, 0, 1, 2), 1e-6


def from_the_corner(landscape: Landscape) -> tuple[Estimate, Estimate]:
    """Measure what can be gained from the top left circle: of the best ten settings, that one.

    It has the highest learning rate of the ten, and the lowest decay there. The first estimate is
    the change of the error if one knob is set anew; the second is that if both are.
    """
    one_knob = _from_corner(landscape, lambda i, j: (i == 0) != (j == 0))
    both_knobs = _from_corner(landscape, lambda i, j: i != 0 and j != 0)
    return one_knob, both_knobs


def _from_corner(landscape: Landscape, open_to: Callable[[int, int], bool]) -> Estimate:
    """Measure the best setting at some offsets from the top left circle, minus the circle."""

    def move(scores: Array) -> tuple[Place, Place]:
        ranked = sorted(np.ndindex(scores.shape), key=lambda place: float(scores[place]))
        rate, decay = max(ranked[:_CIRCLES], key=lambda place: (place[0], -place[1]))
        others = np.array(
            [
                [open_to(i - rate, j - decay) for j in range(scores.shape[1])]
                for i in range(scores.shape[0])
            ]
        )
        return lowest(np.where(others, scores, np.inf)), (rate, decay)

    return _moved(grid(landscape, zero=False), move)


def from_the_lowest_rate(landscape: Landscape) -> Estimate:
    """Measure what the best decay of the lowest learning rate costs at the best learning rate."""

    def move(scores: Array) -> tuple[Place, Place]:
        best = lowest(scores)
        return (best[0], int(np.argmin(scores[0]))), best

    return _moved(grid(landscape, zero=False), move)


def reused(landscape: Landscape, elsewhere: Landscape) -> Estimate:
    """Measure what the best decay of another landscape costs here, at its best learning rate.

    Both must have the same learning rates, decays and seeds.
    """
    there = dict(fold_scores(grid(elsewhere, zero=False)))
    here = grid(landscape, zero=False)
    folds = []
    for seed, scores in fold_scores(here):
        rate, decay = lowest(there[seed])
        own = int(np.argmin(np.nan_to_num(scores[rate], nan=np.inf)))
        folds.append((seed, weights_of(scores, [(rate, decay)], {(rate, own): -1.0})))
    return weighted_error(here, folds) if folds else UNKNOWN


def rises(one: Landscape, other: Landscape) -> tuple[Estimate, Estimate]:
    """Measure how much the mean error around the best setting is above it, for both landscapes.

    Around are the settings up to two doublings away in each knob, as far as both grids reach from
    all their choices. Between decays of a grid, errors are interpolated.
    """
    grids = [grid(landscape, zero=False) for landscape in (one, other)]
    around = [[*_around(each)] for each in grids]
    offsets = [set(of) for own in around for _, of in own]
    shared = sorted(set.intersection(*offsets)) if offsets else []
    first, second = (
        weighted_error(each, [(seed, _mean_of([of[at] for at in shared])) for seed, of in own])
        if shared and own
        else UNKNOWN
        for each, own in zip(grids, around, strict=True)
    )
    return first, second


def _around(grid: Arrays) -> Iterator[tuple[int, dict[Place, Array]]]:
    """Yield, for each seed, the weights of cells in the rise at each offset from its choice."""
    x = np.log2(grid.lrs)
    for seed, scores in fold_scores(grid):
        rate, decay = lowest(scores)
        found: dict[Place, Array] = {}
        for i, j in product(_DOUBLINGS, repeat=2):
            for column in np.flatnonzero(np.abs(x - x[rate] - i) < _SAME):
                known = np.flatnonzero(np.isfinite(mean(grid.tested[column])))
                place = float(np.log2(grid.decays[decay])) + j
                weights = np.zeros(scores.shape)
                weights[column, known] = between(np.log2(grid.decays[known]), place)
                weights[rate, decay] -= 1
                if np.isfinite(weights).all():
                    found[i, j] = weights
        yield seed, found


def _mean_of(weights: Sequence[Array]) -> Array:
    mean: Array = np.mean(weights, axis=0)
    return mean


def _moved(grid: Arrays, move: Callable[[Array], tuple[Place, Place]]) -> Estimate:
    """Measure the error of one chosen setting minus that of another."""
    if min(grid.tested.shape[:2]) < 2:
        return UNKNOWN
    folds = []
    for seed, scores in fold_scores(grid):
        to, start = move(np.nan_to_num(scores, nan=np.inf))
        folds.append((seed, weights_of(scores, [to], {start: -1.0})))
    return weighted_error(grid, folds)
