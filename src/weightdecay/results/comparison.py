"""One landscape's best setting against another's, judged by fresh seeds.

The best setting is chosen by the validation errors of all seeds but one and judged by the test
error of that one; each seed takes a turn. A run that diverged counts with the error it ended with.
Where landscapes share seeds, the effects of seeds (data, initial weights) cancel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from weightdecay.results.arrays import Arrays, grid, lost_last
from weightdecay.results.estimate import UNKNOWN, Array, Estimate, summed, within
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, basin, effects, mean

_LEAST = 3  # the fewest settings on each side for a line through them


@dataclass(frozen=True)
class _Side:
    """A landscape's part in a combination of best errors.

    For each seed, `choices` has the setting that the other seeds chose, `judged` the seed's test
    error there, and `effects` the effect of the seed on all errors.
    """

    sign: int
    grid: Arrays
    choices: dict[int, tuple[int, int]]
    judged: dict[int, float]
    effects: dict[int, float]

    def noise(self, seeds: Sequence[int]) -> tuple[tuple[float, float], list[float]]:
        """Return the variance that noise gives to the mean over seeds, with its freedom.

        The second part is what each seed adds. In a basin of one cell, effects of seeds and noise
        cannot be separated: there the seeds' errors contain both, and no noise is added.
        """
        squares = np.zeros(self.grid.tested.shape[:2])
        for seed in seeds:
            squares[self.choices[seed]] += 1 / len(seeds) ** 2
        variance, freedom = self.grid.spread(squares)
        if np.isnan(variance):
            return (0.0, 0.0), [self.judged[seed] for seed in seeds]
        return (variance, freedom), [self.effects[seed] for seed in seeds]


def difference(one: Landscape, other: Landscape) -> Estimate:
    """Estimate one's best test error minus the other's; negative if `one` is better.

    Its variance is the pooled noise of cells plus the variance of the seeds' effects. The degrees
    of freedom are Satterthwaite's for the sum.
    """
    return _combined([(1, one), (-1, other)])


def contrast(first: tuple[Landscape, Landscape], second: tuple[Landscape, Landscape]) -> Estimate:
    """Estimate the first difference minus the second: how much more a change gains in one place.

    If all four landscapes share seeds, effects of a seed on all four or on a pair cancel. If not,
    the four count as independent.
    """
    (one, other), (another, last) = first, second
    return _combined([(1, one), (-1, other), (-1, another), (1, last)])


def chosen_by_others(landscape: Landscape) -> dict[int, tuple[float, float]]:
    """Return, for each seed, the learning rate and decay that all other seeds choose.

    A setting that the seed has not run is never chosen for it. With one seed there is no choice.
    """
    side = grid(landscape)
    return {
        seed: (float(side.lrs[rate]), float(side.decays[decay]))
        for seed, (rate, decay) in _choices(side).items()
    }


def with_and_without(landscape: Landscape) -> tuple[Landscape, Landscape]:
    """Split a landscape into the part with decays above 0 and the part with decay 0."""
    return _only(landscape, lambda decay: decay > 0), _only(landscape, lambda decay: decay == 0)


def equal_loss(one: Landscape, other: Landscape) -> Estimate:
    """Estimate one's test error minus the other's at equal training loss, near their best cells.

    Two parallel lines are fitted to the test errors of each basin over the logarithm of the
    training loss, where the two ranges of losses overlap. A setting is one point: its mean over the
    seeds for which the other seeds find it near the best. The scatter about the lines is the noise.
    """
    _check_of([one, other])
    sides = [_points(grid(landscape)) for landscape in (one, other)]
    if any(not len(side) for side in sides):
        return UNKNOWN
    low = max(side[:, 0].min() for side in sides)
    high = min(side[:, 0].max() for side in sides)
    kept = [side[(side[:, 0] >= low) & (side[:, 0] <= high)] for side in sides]
    if any(len(side) < _LEAST for side in kept):
        return UNKNOWN
    belongs = np.concatenate([np.ones(len(kept[0])), np.zeros(len(kept[1]))])
    loss, error = np.concatenate(kept).T
    terms = np.stack([belongs, np.ones_like(loss), loss - loss.mean()], 1)
    inverse = np.linalg.pinv(terms.T @ terms)
    found = inverse @ terms.T @ error
    freedom = len(loss) - 3
    variance = float(((error - terms @ found) ** 2).sum() / freedom * inverse[0, 0])
    return within(float(found[0]), variance, freedom)


def _combined(signed: Sequence[tuple[int, Landscape]]) -> Estimate:
    """Estimate a signed sum of best test errors, seed by seed if all share two seeds or more."""
    _check_of([landscape for _, landscape in signed])
    if not all(landscape.cells for _, landscape in signed):
        return UNKNOWN
    sides = [_side(sign, grid(landscape)) for sign, landscape in signed]
    shared = set.intersection(*(set(side.judged) for side in sides))
    seeds = [sorted(shared if len(shared) >= 2 else side.judged) for side in sides]
    if any(len(own) < 2 for own in seeds):
        return UNKNOWN
    own = list(zip(sides, seeds, strict=True))
    value = sum(side.sign * fmean(side.judged[seed] for seed in of) for side, of in own)
    noises, by_seed = zip(*(side.noise(of) for side, of in own), strict=True)
    if len(shared) >= 2:
        signs = [side.sign for side in sides]
        together = [float(np.dot(signs, added)) for added in zip(*by_seed, strict=True)]
        of_seeds = [_variance_of_mean(together)]
    else:
        of_seeds = [_variance_of_mean(added) for added in by_seed]
    return within(value, *summed(*noises, *of_seeds))


def _side(sign: int, grid: Arrays) -> _Side:
    choices = _choices(grid)
    chosen: Flags = np.zeros(grid.tested.shape[:2], dtype=np.bool_)
    for place in choices.values():
        chosen[place] = True
    judged = {
        seed: float(grid.tested[*place, grid.seeds.index(seed)]) for seed, place in choices.items()
    }
    _, of_seed = effects(grid.tested[grid.near(chosen & ~grid.wild)])
    own = dict(zip(grid.seeds, map(float, of_seed), strict=True))
    return _Side(sign, grid, choices, judged, own)


def _choices(grid: Arrays) -> dict[int, tuple[int, int]]:
    """Return, for each seed, the place of the setting that all other seeds choose."""
    choices = {}
    for index, scores, lost in grid.folds() if len(grid.seeds) > 1 else []:
        # A setting that the fresh seed has not run yet cannot be judged by it.
        open_to = np.isfinite(scores) & np.isfinite(grid.tested[:, :, index])
        if open_to.any():
            ranked = np.where(open_to, lost_last(scores, lost), np.inf)
            rate, decay = np.unravel_index(int(np.argmin(ranked)), ranked.shape)
            choices[grid.seeds[index]] = int(rate), int(decay)
    return choices


def _check_of(landscapes: Sequence[Landscape]) -> None:
    """Refuse to compare one kind of error with another."""
    kinds = sorted({landscape.of for landscape in landscapes})
    if len(kinds) > 1:
        raise ValueError(
            f"Landscapes that are compared must be of one error, got {' and '.join(kinds)}. Make "
            "them with the same `of`."
        )


def _variance_of_mean(values: list[float]) -> tuple[float, float]:
    freedom = len(values) - 1
    return float(np.var(values, ddof=1)) / len(values), float(freedom)


def _points(grid: Arrays) -> Array:
    """Return log2 training loss and test error of each setting near the best, over fresh seeds."""
    losses, errors = (np.full(grid.tested.shape, np.nan) for _ in range(2))
    for index, scores, lost in grid.folds() if len(grid.seeds) > 1 else []:
        near = basin(np.where(lost, np.nan, scores)) & (grid.losses[:, :, index] > 0)
        losses[near, index] = np.log2(grid.losses[near, index])
        errors[near, index] = grid.tested[near, index]
    points = np.stack([mean(losses).ravel(), mean(errors).ravel()], 1)
    return points[np.isfinite(points).all(1)]


def _only(landscape: Landscape, wanted: Callable[[float], bool]) -> Landscape:
    cells = {place: cell for place, cell in landscape.cells.items() if wanted(cell.decay)}
    decays = tuple(decay for decay in landscape.decays if wanted(decay))
    return replace(landscape, decays=decays, cells=cells)
