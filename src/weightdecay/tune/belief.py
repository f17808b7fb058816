"""What a tuner believes about the error of every setting at every budget, from the runs so far.

How much worse a setting is than the best (`heights`) is one of two thousand `shapes`, plus a
smooth departure from it (a Gaussian process, Matérn 5/2), plus noise:

    height = level(τ) + shape(x, z, τ) + departure(x, z, τ) + noise

x and z are log2 of α and of λ_norm, and τ is the number of doublings from the epochs of the long
run to those of the run. Each run makes the shapes that predicted it more probable. The departure
of a shorter run is that of the long one and a walk away from it: the shorter, and the fewer its
updates, the less it says about the long run.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from weightdecay.tune.shapes import Array, Expected, shapes

Places: TypeAlias = NDArray[np.int64]

_DEPARTURE = 0.07  # standard deviation of the long run's departure,
_WALK = 0.1  # and of what a run of few updates adds to it with each halving
_NOISE = 0.03  # standard deviation of a run's noise
_LENGTH = 1.5  # doublings of α and λ over which departures are alike
_LEVEL = 0.5  # standard deviation of a budget's level, which says nothing about the best setting
_ROUNDING = 1e-8


class Prior:
    """The belief before the first run, about a list of places (x, z, τ)."""

    def __init__(self, places: Array, expected: Expected) -> None:
        x, z, t = places.T
        self.expected = expected
        self.shapes = shapes(places, expected)
        walked = walk(t, expected)
        common = np.minimum(walked[:, None], walked)
        apart = np.hypot(x[:, None] - x, z[:, None] - z)
        self._departures = (_DEPARTURE**2 + _WALK**2 * common) * _matern(apart / _LENGTH)
        self._levels = _LEVEL**2 * (np.abs(t[:, None] - t) < 1e-9)

    def covariance(self, one: Places, other: Places, *, levels: bool) -> Array:
        """Return the covariances of departures at places, and of the levels of their budgets."""
        at = np.ix_(one, other)
        covariance: Array = self._departures[at]
        return covariance + self._levels[at] if levels else covariance

    def variance(self, places: Places) -> Array:
        """Return the variances of departures at places."""
        variance: Array = self._departures[places, places]
        return variance


@dataclass(frozen=True)
class Belief:
    """The belief after `heights` were seen at `seen`.

    Places are given by their numbers in the prior's list.
    """

    prior: Prior
    seen: Places
    heights: Array

    @cached_property
    def _left(self) -> Array:
        """What each shape leaves unexplained of the runs, whitened: one column per shape."""
        half = self._half(levels=True)
        return _solved(half, self.heights[:, None] - self.prior.shapes[self.seen])

    @cached_property
    def weights(self) -> Array:
        """The probability of each shape."""
        odds = -(self._left**2).sum(axis=0) / 2
        weights = np.exp(odds - odds.max())
        normalized: Array = weights / weights.sum()
        return normalized

    def mean(self, places: Places) -> Array:
        """Return the expected heights at places."""
        expected: Array = self._expected(places) @ self.weights
        return expected

    def _expected(self, places: Places) -> Array:
        """Return the expected heights at places, one column per shape."""
        found: Array = self.prior.shapes[places] + self._known(places, levels=True).T @ self._left
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
        variance = one**2 @ weights + self.prior.variance(places) + _NOISE**2
        variance -= (self._known(places, levels=False) ** 2).sum(axis=0)
        found: Array = mixed / np.sqrt(variance)[:, None]
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
        prior = self.prior.covariance(one, other, levels=False)
        known = self._known(one, levels=False).T @ self._known(other, levels=False)
        found: Array = prior - known
        return found

    def _known(self, places: Places, *, levels: bool) -> Array:
        """Return, whitened, how the runs that were made bear on places."""
        across = self.prior.covariance(self.seen, places, levels=levels)
        return _solved(self._half(levels=levels), across)

    def _half(self, *, levels: bool) -> Array:
        """Return a root of the covariance of the runs that were made."""
        covariance = self.prior.covariance(self.seen, self.seen, levels=levels)
        noise = _NOISE**2 * np.eye(len(covariance))
        return np.linalg.cholesky(covariance + noise).astype(np.float64)


def _solved(half: Array, values: Array) -> Array:
    if not len(half):
        return values
    solved: Array = solve_triangular(half, values, lower=True, check_finite=False)
    return solved


def walk(t: Array, expected: Expected) -> Array:
    """Return how far runs, τ doublings longer than the long one, are from it.

    It is the number of halvings where runs have few updates, and less where they have many.
    """
    few: Array = np.logaddexp2(0, -expected.room - t) - np.logaddexp2(0, -expected.room)
    return few


def _matern(apart: Array) -> Array:
    scaled = math.sqrt(5) * apart
    alike: Array = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return alike
