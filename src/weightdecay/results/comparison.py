"""What verdicts need: one landscape's best setting against another's, judged by fresh seeds.

The best setting is chosen by the validation errors of all seeds but one and judged by that one's
test error, as it ended where that run diverged; every seed is the fresh one in turn. What
landscapes have in common by seed (data, initial weights) is taken out where they share seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from weightdecay.results.arrays import Arrays, grid, lost_last
from weightdecay.results.estimate import UNKNOWN, Array, Estimate, summed, within
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, basin, effects, mean

_LEAST = 3  # settings of each side that a line through them needs


@dataclass(frozen=True)
class _Side:
    """A landscape's part in a combination of best errors.

    `choices` are the setting that the others chose for each seed, `judged` its test error there,
    and `effects` how much the seeds' errors lie above each other's.
    """

    sign: int
    grid: Arrays
    choices: dict[int, tuple[int, int]]
    judged: dict[int, float]
    effects: dict[int, float]

    def noise(self, seeds: Sequence[int]) -> tuple[tuple[float, float], list[float]]:
        """Return the variance that the cells' noise gives the mean over seeds, with its freedom.

        Beside it is what each seed adds. A basin of one cell cannot tell a seed's effect from
        noise: there the seeds' errors hold both, and no noise is left to add.
        """
        squares = np.zeros(self.grid.tested.shape[:2])
        for seed in seeds:
            squares[self.choices[seed]] += 1 / len(seeds) ** 2
        variance, freedom = self.grid.spread(squares)
        if np.isnan(variance):
            return (0.0, 0.0), [self.judged[seed] for seed in seeds]
        return (variance, freedom), [self.effects[seed] for seed in seeds]


def difference(one: Landscape, other: Landscape) -> Estimate:
    """Estimate one's best test error less the other's; negative where `one` is better.

    Its variance is the cells' pooled noise plus that of the seeds' effects, which as few numbers
    say as there are seeds: the interval's freedom is Satterthwaite's of the two.
    """
    return _combined([(1, one), (-1, other)])


def contrast(first: tuple[Landscape, Landscape], second: tuple[Landscape, Landscape]) -> Estimate:
    """Estimate the first difference less the second: what a change gains here more than there.

    What a seed does to all four, or to both of a pair, drops out where all four share seeds; where
    they do not, each counts as measured apart.
    """
    (one, other), (another, last) = first, second
    return _combined([(1, one), (-1, other), (-1, another), (1, last)])


def chosen_by_others(landscape: Landscape) -> dict[int, tuple[float, float]]:
    """Return the learning rate and decay that all other seeds choose for each seed: a fresh one.

    A setting that the seed has not run is not chosen for it; one seed alone has no others.
    """
    side = grid(landscape)
    return {
        seed: (float(side.lrs[rate]), float(side.decays[decay]))
        for seed, (rate, decay) in _choices(side).items()
    }


def with_and_without(landscape: Landscape) -> tuple[Landscape, Landscape]:
    """Divide a landscape into that of all decays above 0, and that of 0."""
    return _only(landscape, lambda decay: decay > 0), _only(landscape, lambda decay: decay == 0)


def equal_loss(one: Landscape, other: Landscape) -> Estimate:
    """Estimate one's test error less the other's at equal training loss, near their best cells.

    Test errors of the settings in each basin are put on two parallel lines over the logarithm of
    the training loss, where the two ranges of losses overlap. A setting is one point, its mean over
    seeds, each of which counts where the others find the setting near the best. How far settings
    lie from the lines is the noise.
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
    """Estimate a sum of best test errors, each with its sign, seed by seed where all share two."""
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
    _, of_seed = effects(grid.tested[grid.near(chosen & ~grid.wild())])
    own = dict(zip(grid.seeds, map(float, of_seed), strict=True))
    return _Side(sign, grid, choices, judged, own)


def _choices(grid: Arrays) -> dict[int, tuple[int, int]]:
    """Return the place of the setting that all other seeds choose for each seed."""
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
