"""The noise of errors, estimated from all cells of a basin together.

Three seeds of one cell are too few for that. The model: an error is its cell's level, plus an
effect of the seed that all cells share, plus noise of one variance. Errors here are arrays whose
last axis is the seeds, with NaN where nothing was measured.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array

Flags = npt.NDArray[np.bool_]
#: A setting is in the basin if its error is at most this much above the best one's, relatively.
DEPTH = 0.25
_DRAWS = 20_000


def mean(errors: Array) -> Array:
    """Return the mean over the seeds that have an error; NaN if none has."""
    known = np.isfinite(errors)
    count = known.sum(-1)
    total = np.where(known, errors, 0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def basin(scores: Array) -> Flags:
    """Return which settings belong to the basin of the best one."""
    if not np.isfinite(scores).any():
        return np.zeros(scores.shape, dtype=np.bool_)
    near: Flags = np.nan_to_num(scores, nan=np.inf) <= depth(float(np.nanmin(scores)))
    return near


def depth(lowest: float) -> float:
    """Return how high the basin of the lowest error reaches, which may be a loss below 0."""
    return lowest + DEPTH * abs(lowest)


def effects(errors: Array) -> tuple[Array, Array]:
    """Split errors of cells × seeds into effects of cells and effects of seeds, whose mean is 0."""
    known = np.isfinite(errors)
    filled = np.where(known, errors, 0)
    of_seed = np.zeros(errors.shape[-1])
    of_cell = np.zeros(errors.shape[0])
    for _ in range(1 if known.all() else 50):  # one pass is exact if nothing is missing
        of_cell = np.where(known, filled - of_seed, 0).sum(1) / np.maximum(known.sum(1), 1)
        left = np.where(known, filled - of_cell[:, None], 0)
        of_seed = left.sum(0) / np.maximum(known.sum(0), 1)
    level = of_seed.mean()
    return of_cell + level, of_seed - level


def noise(errors: Array, where: Flags) -> tuple[float, float]:
    """Return the pooled variance after effects of cells and seeds, and its degrees of freedom.

    NaN and 0 if there are too few errors.
    """
    kept = errors[where]
    known = np.isfinite(kept)
    kept, known = kept[known.any(1)], known[known.any(1)]
    freedom = float(known.sum() - len(kept) - known.any(0).sum() + 1)
    if not freedom >= 1 or not len(kept):
        return np.nan, 0.0
    of_cell, of_seed = effects(kept)
    left = np.where(known, kept - of_cell[:, None] - of_seed, 0)
    return float((left**2).sum() / freedom), freedom


def tied(errors: Array) -> Flags:
    """Return which rows of cells × seeds are tied with the lowest.

    Gupta's subset selection: rows whose mean is at most d·σ·√(1/n + 1/n_best) above the lowest. d
    is such that the truly best row is among them in 95 of 100 experiments. σ is the basin's pooled
    noise, after the effects of seeds. With one seed there is no σ, and only the lowest is returned.
    """
    scores = mean(errors)
    near = basin(scores)
    variance, freedom = noise(errors, near)
    if not freedom >= 1:
        alone: Flags = np.arange(len(scores)) == np.argmin(scores)
        return alone
    _, of_seed = effects(errors[near])
    paired = mean(errors - of_seed)
    lowest = int(np.argmin(scores))
    count = np.isfinite(errors).sum(1)
    allowed = np.sqrt(variance * (1 / count + 1 / count[lowest]))
    near_enough: Flags = paired - paired[lowest] <= _critical(len(scores), round(freedom)) * allowed
    return near_enough


@cache
def _critical(rows: int, freedom: int) -> float:
    """Return the 95 % quantile of the best row's lead over all others, in standard errors."""
    random = np.random.default_rng(0)
    spread = np.sqrt(2 * random.chisquare(freedom, _DRAWS) / freedom)
    best = random.standard_normal(_DRAWS)
    highest = -np.inf * np.ones(_DRAWS)
    for _ in range(rows - 1):
        highest = np.maximum(highest, random.standard_normal(_DRAWS))
    return float(np.quantile((best + highest) / spread, 0.95)) if rows > 1 else 0.0
