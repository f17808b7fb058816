"""What verdicts need: one landscape's best setting against another's, judged by fresh seeds.

The best setting is chosen by the validation errors of all seeds but one and judged by that one's
test error; every seed is the fresh one in turn. What two landscapes have in common by seed (data,
initial weights) is taken out where they share seeds.
"""

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import numpy as np

from weightdecay.results.estimate import UNKNOWN, Array, Estimate, summed, within
from weightdecay.results.grid import Grid, grid
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import basin, effects, mean

_LEAST = 3  # settings of each side that a line through them needs


def difference(one: Landscape, other: Landscape) -> Estimate:
    """Estimate one's best test error less the other's; negative where `one` is better.

    Its variance is the cells' pooled noise plus that of the seeds' effects, which as few numbers
    say as there are seeds: the interval's freedom is Satterthwaite's of the two.
    """
    sides = [grid(one), grid(other)]
    judged = [_judged(side) for side in sides]
    shared = sorted(judged[0].keys() & judged[1].keys())
    if len(shared) >= 2:
        judged = [{seed: side[seed] for seed in shared} for side in judged]
    if any(len(side) < 2 for side in judged):
        return UNKNOWN
    value = fmean(judged[0].values()) - fmean(judged[1].values())
    noises = [
        (variance / len(seen), freedom)
        for (variance, freedom), seen in zip((s.noise() for s in sides), judged, strict=True)
    ]
    common = [_seed_effects(side) for side in sides]
    if len(shared) >= 2:
        apart = [common[0][seed] - common[1][seed] for seed in shared]
        noises.append(_variance_of_mean(apart))
    else:
        noises += [
            _variance_of_mean([own[seed] for seed in seen])
            for own, seen in zip(common, judged, strict=True)
        ]
    return within(value, *summed(*noises))


def against_no_decay(landscape: Landscape) -> Estimate:
    """Estimate the best test error with decay less the best without, each at its own best rate."""
    some, none = (
        _only(landscape, lambda decay: decay > 0),
        _only(landscape, lambda decay: decay == 0),
    )
    if not some.cells or not none.cells:
        return UNKNOWN
    return difference(some, none)


def equal_loss(one: Landscape, other: Landscape) -> Estimate:
    """Estimate one's test error less the other's at equal training loss, near their best cells.

    Test errors of the settings in each basin are put on two parallel lines over the logarithm of
    the training loss, where the two ranges of losses overlap. A setting is one point, its mean over
    seeds, each of which counts where the others find the setting near the best. How far settings
    lie from the lines is the noise.
    """
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


def _judged(grid: Grid) -> dict[int, float]:
    """Return each seed's test error of the setting that the others choose."""
    judged = {}
    for index, scores in grid.folds() if len(grid.seeds) > 1 else []:
        # A setting that the fresh seed has not run yet cannot be judged by it.
        open_to = np.isfinite(scores) & np.isfinite(grid.tested[:, :, index])
        if open_to.any():
            ranked = np.where(open_to, scores + grid.diverged, np.inf)
            place = np.unravel_index(int(np.argmin(ranked)), ranked.shape)
            judged[grid.seeds[index]] = float(grid.tested[:, :, index][place])
    return judged


def _seed_effects(grid: Grid) -> dict[int, float]:
    """Return how much each seed's errors lie above the others', over the basin."""
    _, of_seed = effects(grid.tested[basin(grid.scores())])
    return dict(zip(grid.seeds, map(float, of_seed), strict=True))


def _variance_of_mean(values: list[float]) -> tuple[float, float]:
    freedom = len(values) - 1
    return float(np.var(values, ddof=1)) / len(values), float(freedom)


def _points(grid: Grid) -> Array:
    """Return log2 training loss and test error of each setting near the best, over fresh seeds."""
    losses, errors = (np.full(grid.tested.shape, np.nan) for _ in range(2))
    for index, scores in grid.folds() if len(grid.seeds) > 1 else []:
        near = basin(np.where(grid.diverged, np.nan, scores)) & (grid.losses[:, :, index] > 0)
        losses[near, index] = np.log2(grid.losses[near, index])
        errors[near, index] = grid.tested[near, index]
    points = np.stack([mean(losses).ravel(), mean(errors).ravel()], 1)
    return points[np.isfinite(points).all(1)]


def _only(landscape: Landscape, wanted: Callable[[float], bool]) -> Landscape:
    cells = {place: cell for place, cell in landscape.cells.items() if wanted(cell.decay)}
    decays = tuple(decay for decay in landscape.decays if wanted(decay))
    return replace(landscape, decays=decays, cells=cells)
