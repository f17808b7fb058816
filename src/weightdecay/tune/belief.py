"""What a tuner believes about the error of every setting at every budget, from the runs so far.

How much worse a setting is than the best (`heights`) is one of a few thousand `shapes`, plus a
smooth departure from it (a Gaussian process, Matérn 5/2), plus noise:

    height = level(τ) + shape(x, z, τ) + departure(x, z, τ) + noise

x and z are log2 of α and of λ_norm, and τ is the number of doublings from the epochs of the long
run to those of the run. Each run makes the shapes that predicted it more probable.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from weightdecay.tune.shapes import Array, Expected, shapes

Places: TypeAlias = NDArray[np.int64]

_DEPARTURES = (0.02, 0.05, 0.12)  # standard deviation of the departure
_NOISES = (0.015, 0.03)  # standard deviation of a run's noise
_LENGTH = 1.5  # doublings of α and λ over which departures are alike,
_MEMORY = 1.5  # and doublings of the budget
_LEVEL = 0.5  # standard deviation of a budget's level, which says nothing about the best setting
_ROUNDING = 1e-8


@dataclass(frozen=True)
class Scales:
    """One hypothesis about the sizes of departures and of noise."""

    departure: float
    noise: float


class Prior:
    """The belief before the first run, about a list of places (x, z, τ)."""

    def __init__(self, places: Array, expected: Expected) -> None:
        x, z, t = places.T
        self.expected = expected
        self.shapes = shapes(places, expected)
        budgets = np.abs(t[:, None] - t)
        apart = np.hypot(x[:, None] - x, z[:, None] - z)
        self._alike = _matern(apart / _LENGTH) * np.exp(-budgets / _MEMORY)
        self._same_budget = (budgets < 1e-9).astype(np.float64)

    def covariance(self, one: Places, other: Places, scales: Scales, *, level: float) -> Array:
        """Return the covariances of departures at places, for a standard deviation of levels."""
        at = np.ix_(one, other)
        covariance: Array = scales.departure**2 * self._alike[at]
        return covariance + level**2 * self._same_budget[at] if level else covariance


@dataclass(frozen=True)
class Belief:
    """The belief after `heights` were seen at `seen`.

    Places are given by their numbers in the prior's list.
    """

    prior: Prior
    seen: Places
    heights: Array

    @cached_property
    def _fitted(self) -> tuple[Scales, Array]:
        """The most likely scales, and the probability of each shape."""
        found = []
        for scales in (Scales(*each) for each in product(_DEPARTURES, _NOISES)):
            half = self._half(self.seen, scales, level=_LEVEL)
            left = _solved(half, self.heights[:, None] - self.prior.shapes[self.seen])
            odds = -(left**2).sum(axis=0) / 2
            highest = odds.max()
            weights = np.exp(odds - highest)
            # Noise is doubted beforehand by its distance from the usual, in factors.
            doubt = math.log(scales.noise / _NOISES[1]) ** 2 / 2 + np.log(np.diag(half)).sum()
            evidence = highest + math.log(weights.sum()) - doubt
            found.append((evidence, scales, weights / weights.sum()))
        _, scales, weights = max(found, key=lambda one: one[0])
        return scales, weights

    @property
    def scales(self) -> Scales:
        """The most likely scales."""
        return self._fitted[0]

    @property
    def weights(self) -> Array:
        """The probability of each shape."""
        return self._fitted[1]

    def mean(self, places: Places) -> Array:
        """Return the expected heights at places."""
        expected: Array = self._expected(places) @ self.weights
        return expected

    def _expected(self, places: Places) -> Array:
        """Return the expected heights at places, one column per shape."""
        prior = self.prior.shapes[places]
        if not len(self.seen):
            return prior
        half = self._half(self.seen, self.scales, level=_LEVEL)
        left = self.heights[:, None] - self.prior.shapes[self.seen]
        across = self.prior.covariance(self.seen, places, self.scales, level=_LEVEL)
        found: Array = prior + _solved(half, across).T @ _solved(half, left)
        return found

    def moves(self, places: Places, others: Places) -> Array:
        """Return by how much a typical outcome of a run at each place moves what is expected.

        One row per place: the shift of the heights at `others` if the run comes out one standard
        deviation higher than expected, and the level of its budget were known.
        """
        weights = self.weights
        one, other = self._expected(places), self._expected(others)
        one, other = one - (one @ weights)[:, None], other - (other @ weights)[:, None]
        mixed = (one * weights) @ other.T + self._departure(places, others)
        variance = one**2 @ weights + self.scales.departure**2 + self.scales.noise**2
        variance -= (self._known(places) ** 2).sum(axis=0)
        found: Array = mixed / np.sqrt(np.maximum(variance, self.scales.noise**2))[:, None]
        return found

    def drawn(self, places: Places, count: int) -> Array:
        """Return surfaces drawn at random, always the same ones."""
        draw = np.random.default_rng(0)
        shapes = draw.choice(len(self.weights), count, p=self.weights)
        covariance = self._departure(places, places)
        covariance[np.diag_indices(len(covariance))] += _ROUNDING
        half = np.linalg.cholesky(covariance)
        normal = draw.standard_normal((count, len(places)))
        drawn: Array = self._expected(places).T[shapes] + normal @ half.T
        return drawn

    def _departure(self, one: Places, other: Places) -> Array:
        """Return the covariances of departures at places, if the levels were known."""
        prior = self.prior.covariance(one, other, self.scales, level=0.0)
        found: Array = prior - self._known(one).T @ self._known(other)
        return found

    def _known(self, places: Places) -> Array:
        """Return, whitened, how the runs that were made bear on places."""
        half = self._half(self.seen, self.scales, level=0.0)
        return _solved(half, self.prior.covariance(self.seen, places, self.scales, level=0.0))

    def _half(self, places: Places, scales: Scales, *, level: float) -> Array:
        covariance = self.prior.covariance(places, places, scales, level=level)
        covariance[np.diag_indices(len(covariance))] += scales.noise**2
        return np.linalg.cholesky(covariance).astype(np.float64)


def _solved(half: Array, values: Array) -> Array:
    if not len(half):
        return values
    solved: Array = solve_triangular(half, values, lower=True, check_finite=False)
    return solved


def _matern(apart: Array) -> Array:
    scaled = math.sqrt(5) * apart
    alike: Array = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return alike
