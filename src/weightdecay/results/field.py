"""Errors over log2 α and log2 λ, as a Gaussian process.

An error, or its logarithm, is a quadratic in log2 α and log2 λ, plus a departure from it, plus
noise. The departure is smooth: nearby settings depart alike (Matérn 5/2, or 3/2 for a rough one).
How large it is and how far it reaches is unknown, and so is which of the two scales is right. Each
possibility is a `Process`, weighted by its likelihood; a `Field` is all of them. So a cliff beside
the best is a departure, and does not lift the errors at its foot as it lifts a fitted bowl.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from weightdecay.results.estimate import Array
from weightdecay.results.noise import Flags, basin, effects, mean, noise
from weightdecay.results.polynomial import Powers, determined, terms_of

_SPARE = 4  # so many settings more than terms are needed, or there are fewer terms
_LENGTHS = (1.0, 2.0, 4.0, 8.0)  # in doublings
_RATIOS = 10.0 ** np.arange(-2, 5)  # of the departure's variance to that of a run's noise
_ROUNDING = 1e-24
_UNLIKELY = 1e-5  # processes less likely than this, relative to the likeliest, are left out
_JITTER = 1e-6  # added to a covariance, relatively, so that rounding leaves it positive


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread: for matrices this small, two on busy cores take 30 times as long."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@dataclass(frozen=True)
class Process:
    """One possibility: the departure's length and its ratio to noise, on one of the scales.

    `turn` takes values at the settings to uncorrelated ones of variance 1, in units of a run's
    noise, whose variance is `variance`. There the terms are `trend`, with coefficients `fitted` of
    covariance `inverse`, and `left` is what they leave. `shared` is the variance of the mean over
    seeds that all settings have in common, as known from the seeds.
    """

    logs: bool
    rough: bool
    length: float
    ratio: float
    powers: Powers
    settings: Array
    turn: Array
    trend: Array
    inverse: Array
    fitted: Array
    left: Array
    variance: float
    freedom: float
    evidence: float
    shared: float

    def means(self, places: Array) -> Array:
        """Return the expected errors at places."""
        terms, kin = self._at(places)
        return self._errors(terms @ self.fitted + kin.T @ self.left)

    def predicted(self, place: Array) -> tuple[float, float, float]:
        """Return the expected error at a place, its variance, and the part that seeds share."""
        terms, kin = self._at(place[None])
        value = float(self.means(place[None])[0])
        unit = value**2 if self.logs else 1.0
        # Student's t of this freedom has a variance of freedom / (freedom − 2).
        heavy = self.freedom / max(self.freedom - 2, 1.0)
        spread = float(self._spread(terms, kin, np.zeros((1, 1)))[0, 0])
        return value, unit * heavy * self.variance * spread, unit * self.shared

    def draws(self, places: Array, count: int, random: np.random.Generator) -> Array:
        """Return so many draws of the errors at places, each a possible truth."""
        terms, kin = self._at(places)
        apart = cdist(places, places)
        spread = self._spread(terms, kin, apart)
        spread[np.diag_indices_from(spread)] += _JITTER * np.trace(spread) / len(places)
        sizes = np.sqrt(self.variance * self.freedom / random.chisquare(self.freedom, count))
        drawn = random.standard_normal((count, len(places))) @ np.linalg.cholesky(spread).T
        return self._errors(terms @ self.fitted + kin.T @ self.left + sizes[:, None] * drawn)

    def _at(self, places: Array) -> tuple[Array, Array]:
        """Return the terms at places, and how the settings' values bear on them."""
        off = cdist(self.settings, places)
        kin: Array = self.ratio * (self.turn @ _alike(off / self.length, rough=self.rough))
        return terms_of(self.powers, places[:, 0], places[:, 1]), kin

    def _spread(self, terms: Array, kin: Array, apart: Array) -> Array:
        """Return the covariance of what is unknown at places, in units of a run's noise."""
        open_by = terms.T - self.trend.T @ kin
        spread = self.ratio * _alike(apart / self.length, rough=self.rough) - kin.T @ kin
        return spread + open_by.T @ self.inverse @ open_by

    def _errors(self, heights: Array) -> Array:
        # The mean of numbers whose logarithms have a variance of v is exp(v/2) times their median.
        return np.exp(heights + self.variance / 2) if self.logs else heights


@dataclass(frozen=True)
class Field:
    """Processes that settings and their errors leave possible."""

    processes: tuple[Process, ...]

    @cached_property
    def weights(self) -> Array:
        """Return how likely each process is; the sum is 1."""
        evidence = np.array([one.evidence for one in self.processes])
        likely = np.exp(evidence - evidence.max())
        weights: Array = likely / likely.sum()
        return weights

    def means(self, places: Array) -> Array:
        """Return the expected errors at places."""
        means: Array = self.weights @ np.array([one.means(places) for one in self.processes])
        return means

    def draws(self, places: Array, count: int, random: np.random.Generator) -> Array:
        """Return so many draws of the errors at places, each a possible truth."""
        shares = random.multinomial(count, self.weights)
        drawn = zip(self.processes, shares.tolist(), strict=True)
        return np.concatenate([one.draws(places, own, random) for one, own in drawn if own])


def field_of(
    settings: Array, errors: Array, used: Flags, *, flat: bool = False, rough: bool = False
) -> Field:
    """Fit a field to errors of settings × seeds, of which some settings are used.

    What seeds have in common is estimated from all settings. If the landscape is `flat`, a constant
    takes the place of the quadratic.
    """
    scales = (False, True) if bool((errors[np.isfinite(errors)] > 0).all()) else (False,)
    how = {"flat": flat, "rough": rough}
    found = [one for logs in scales for one in _processes(settings, errors, used, logs=logs, **how)]
    least = max(one.evidence for one in found) + math.log(_UNLIKELY)
    return Field(tuple(one for one in found if one.evidence >= least))


def _processes(
    settings: Array, errors: Array, used: Flags, *, logs: bool, flat: bool, rough: bool
) -> Iterator[Process]:
    """Yield each process on a scale, fitted."""
    heights = np.log(errors) if logs else errors
    near = basin(mean(errors))
    near = near if near.any() else used
    of_seed = effects(heights[near])[1]
    root = np.sqrt(np.isfinite(errors).sum(1))[used]
    own, known = noise(heights, near)
    own, known = (own, known) if known >= 1 else (0.0, 0.0)
    levels = mean(heights - of_seed)
    places = settings[used]
    powers: Powers = ((0, 0),) if flat else determined(places - places.mean(0), spare=_SPARE)
    terms = terms_of(powers, places[:, 0], places[:, 1])
    count = terms.shape[1]
    freedom = known + len(places) - count
    # Densities of logarithms become those of errors.
    lower = known * levels[near].mean() + (freedom - known) * levels[used].mean() if logs else 0.0
    apart = cdist(places, places)
    for length in _LENGTHS:
        scales, axes = np.linalg.eigh(root[:, None] * _alike(apart / length, rough=rough) * root)
        for ratio in _RATIOS:
            spreads = 1 + ratio * np.maximum(scales, 0)
            turn = (axes / np.sqrt(spreads)).T * root
            trend, values = turn @ terms, turn @ levels[used]
            inverse = np.linalg.inv(trend.T @ trend)
            fitted = inverse @ trend.T @ values
            left = values - trend @ fitted
            variance = max(float(left @ left) + known * own, _ROUNDING) / freedom
            evidence = float(np.linalg.slogdet(inverse)[1]) - float(np.log(spreads).sum())
            evidence = (evidence - freedom * math.log(variance)) / 2 - lower
            yield Process(
                logs=logs,
                rough=rough,
                length=length,
                ratio=float(ratio),
                powers=powers,
                settings=places,
                turn=turn,
                trend=trend,
                inverse=inverse,
                fitted=fitted,
                left=left,
                variance=variance,
                freedom=freedom,
                evidence=evidence,
                shared=float(of_seed.var()) / max(len(of_seed) - 1, 1),
            )


def _alike(apart: Array, *, rough: bool) -> Array:
    """Return Matérn's correlation, 5/2 or 3/2, at distances in units of its length."""
    scaled = math.sqrt(3 if rough else 5) * apart
    alike: Array = (1 + scaled + (0 if rough else scaled**2 / 3)) * np.exp(-scaled)
    return alike
