"""The error to expect at a setting, predicted from the runs near it (kriging).

An error, or its logarithm, is a quadratic in log2 α and log2 λ, plus a departure from it, plus
noise. The departure is smooth: nearby settings depart alike (a Gaussian process, Matérn 5/2). How
large it is and how far it reaches is unknown, and so is which of the two scales is right.
Predictions are averaged over a range of these, weighted by their likelihood. So a cliff beside the
best widens the interval instead of lifting the value, and a lucky run counts only as far as its
neighbours confirm it.

The interval is about the mean error of new seeds at the setting, on the same test set.
"""

import math
from dataclasses import dataclass

import numpy as np

from weightdecay.results.estimate import Array, Estimate, of_error, summed, within
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, basin, effects, mean, noise
from weightdecay.results.polynomial import determined, terms_of

#: With fewer settings, a prediction has no interval.
FEWEST = 9
_REACH = 2.0  # settings within so many doublings of the place are used, along either axis,
_LEAST, _MOST = 16, 150  # but at least and at most so many
_DEEP = 1.5  # errors so many times the lowest lie on a cliff, and say little about its foot;
_KEPT = 12  # but the lowest so many are kept
_SPARE = 4  # so many settings more than terms are needed, or there are fewer terms
_LENGTHS = (1.0, 2.0, 4.0, 8.0)  # in doublings
_RATIOS = 10.0 ** np.arange(-2, 5)  # of the departure's variance to that of a run's noise
_ROUNDING = 1e-24


@dataclass(frozen=True)
class Expected:
    """The test error that new seeds are expected to have at a setting.

    `why` says why there is no interval; it is empty if there is one.
    """

    error: Estimate
    why: str = ""


@dataclass(frozen=True)
class _Predictions:
    """One prediction per hypothesis: values, variances, logarithms of likelihoods; their freedom.

    `shared` is the variance of the mean over seeds that all settings have in common.
    """

    values: Array
    variances: Array
    evidence: Array
    freedom: float
    shared: Array


def expected_error(
    landscape: Landscape, lr: float, decay: float, *, flat: bool = False
) -> Expected:
    """Predict the mean test error of new seeds at a setting with a decay above 0.

    If the landscape is `flat`, a constant takes the place of the quadratic.
    """
    places, errors = finished(landscape)
    away = places - np.log2([lr, decay])
    used = _used(away, mean(errors))
    if used.sum() < FEWEST:
        value = float(mean(errors)[np.abs(away).max(1).argmin()])
        few = f"it needs {FEWEST} settings that did not diverge, and there are {used.sum()}"
        return Expected(Estimate(value, math.nan, math.nan), few)
    scales = (False, True) if bool((errors[np.isfinite(errors)] > 0).all()) else (False,)
    found = [_on_scale(away, errors, used, logs=logs, flat=flat) for logs in scales]
    values, variances, evidence, shared = (
        np.concatenate([getattr(one, name) for one in found])
        for name in ("values", "variances", "evidence", "shared")
    )
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    value = float(weights @ values)
    seeds = errors.shape[1]
    if seeds < 2 and not landscape.scattered:
        return Expected(Estimate(value, math.nan, math.nan), "one seed shows no noise")
    own = float(weights @ (variances + (values - value) ** 2)), found[0].freedom
    variance, freedom = summed(own, (float(weights @ shared), max(seeds - 1.0, 1.0)))
    error = within(value, variance, freedom)
    return Expected(of_error(error) if landscape.metric is None else error)


def finished(landscape: Landscape) -> tuple[Array, Array]:
    """Return places and test errors, settings × seeds, of settings that did not diverge."""
    cells = [cell for cell in landscape.cells.values() if cell.decay > 0 and not cell.diverged]
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    errors = np.full((len(cells), len(seeds)), np.nan)
    for row, cell in zip(errors, cells, strict=True):
        row[[seeds.index(seed) for seed in cell.seeds]] = cell.tested
    known = np.isfinite(errors).any(1)
    return np.log2([(cell.lr, cell.decay) for cell in cells])[known], errors[known]


def _on_scale(away: Array, errors: Array, used: Flags, *, logs: bool, flat: bool) -> _Predictions:
    """Predict from errors, or from their logarithms."""
    heights = np.log(errors) if logs else errors
    near = basin(mean(errors))
    near = near if near.any() else used
    of_seed = effects(heights[near])[1]
    seeds = np.isfinite(errors).sum(1).astype(np.float64)
    own = noise(heights, near)
    levels = mean(heights - of_seed)
    powers = ((0, 0),) if flat else determined(away[used], spare=_SPARE)
    terms = terms_of(powers, away[used, 0], away[used, 1])
    found, noises = _predicted(away[used], terms, levels[used], seeds[used], noise=own)
    shared = np.full(len(noises), float(of_seed.var()) / max(len(of_seed) - 1, 1))
    if not logs:
        return _Predictions(*found, shared)
    values, variances, evidence, freedom = found
    # The mean of numbers whose logarithms have a variance of v is exp(v/2) times their median.
    values = np.exp(values + noises / 2)
    # Densities of logarithms become those of errors.
    of_seeds = own[1] if own[1] >= 1 else 0.0
    lower = of_seeds * levels[near].mean() + (freedom - of_seeds) * levels[used].mean()
    evidence = evidence - lower
    return _Predictions(values, variances * values**2, evidence, freedom, shared * values**2)


def _predicted(
    away: Array, terms: Array, levels: Array, seeds: Array, *, noise: tuple[float, float]
) -> tuple[tuple[Array, Array, Array, float], Array]:
    """Predict the level at 0 under each hypothesis, and the variance of a run's noise.

    The first of the terms is 1. Levels are means over so many seeds. `noise` is the variance of one
    run and its freedom, as far as the seeds show it.
    """
    count, known = terms.shape[1], noise[1] if noise[1] >= 1 else 0.0
    freedom = known + len(levels) - count
    here = np.eye(count)[0]
    apart = np.linalg.norm(away[:, None] - away, axis=2)
    off = np.linalg.norm(away, axis=1)
    root = np.sqrt(seeds)
    found = []
    for length in _LENGTHS:
        alike, to_here = _alike(apart / length), _alike(off / length)
        scales, axes = np.linalg.eigh(root[:, None] * alike * root)
        turned = axes.T @ (root[:, None] * np.column_stack([terms, levels, to_here]))
        for ratio in _RATIOS:
            spreads = 1 + ratio * np.maximum(scales, 0)
            white = turned / np.sqrt(spreads)[:, None]
            trend, values, kin = white[:, :count], white[:, count], ratio * white[:, count + 1]
            inverse = np.linalg.inv(trend.T @ trend)
            fitted = inverse @ trend.T @ values
            left = values - trend @ fitted
            squares = float(left @ left) + (known * noise[0] if known else 0.0)
            variance = max(squares, _ROUNDING) / freedom
            open_by = here - trend.T @ kin
            spread = ratio - float(kin @ kin) + float(open_by @ inverse @ open_by)
            evidence = float(np.linalg.slogdet(inverse)[1]) - float(np.log(spreads).sum())
            evidence = (evidence - freedom * math.log(variance)) / 2
            found.append((fitted[0] + kin @ left, variance * spread, evidence, variance))
    values, variances, evidences, noises = np.array(found).T
    # Student's t of this freedom has a variance of freedom / (freedom − 2).
    heavy = freedom / max(freedom - 2, 1.0)
    return (values, heavy * variances, evidences, freedom), noises


def _alike(apart: Array) -> Array:
    """Return Matérn's 5/2 correlation at distances in units of its length."""
    scaled = math.sqrt(5) * apart
    alike: Array = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return alike


def _used(away: Array, errors: Array) -> Flags:
    """Return which settings a prediction uses."""
    distance = np.abs(away).max(1)
    ranked = np.sort(distance)
    reach = max(_REACH, float(ranked[min(_LEAST, len(ranked)) - 1]))
    near = distance <= min(reach, float(ranked[min(_MOST, len(ranked)) - 1])) + 1e-6
    lowest = np.sort(errors[near])
    depth = _DEEP * lowest[0] if lowest[0] > 0 else math.inf
    used: Flags = near & (errors <= max(depth, lowest[min(_KEPT, len(lowest)) - 1]))
    return used
