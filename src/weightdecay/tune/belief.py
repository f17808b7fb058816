"""What a tuner believes about the error of every setting at every budget, from the runs so far.

How much worse a setting is than the best, on a scale on which cliffs are cut (`heights`), is one of
a few thousand shapes, plus a smooth departure from it (a Gaussian process, Matérn 5/2), plus noise:

    height = level(τ) + shape(x, z, τ) + departure(x, z, τ) + noise

x and z are doublings of α and λ_norm, and τ is the number of doublings from the epochs of the long
run to those of the run. A shape is what landscapes of decoupled decay look like: a bowl in x, and
in z a slope down to a knee, where a cliff rises. Shapes differ in where the knee is, how it moves
with α and with the budget, how wide the bowl is, and what too little decay costs.

Before the first run, the best setting is near the middle of the ranges, and λ_norm is kept between
budgets. Each run makes the shapes that predicted it more probable.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Array: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

#: Where heights end: that of an error infinitely far above the best.
CEILING = 0.2
# The shapes: where the best is, in units of its expected distance from the middle of the ranges;
# by how many doublings the best decay rises per doubling of α; and how the best decay and the best
# α move per doubling of the epochs.
_ALPHAS = _KNEES = (-2.25, -1.5, -0.75, 0.0, 0.75, 1.5, 2.25)
_TILTS = (0.0, 0.5)
_DRIFTS = (-0.5, -0.25, 0.0, 0.25, 0.5)
_FALLS = (0.0, 0.5)
_CURVATURES = (0.01, 0.03)  # of the bowl, in height per squared doubling
_COSTS = (0.04, 0.12)  # of no decay at all; by the long run's budget, and less by shorter ones
_STEEP = 0.25  # the cliff, in height per doubling
_REACH = 2.0  # doublings below the knee over which most of the cost of too little decay is incurred
_DRIFT = 0.25  # how far the drift of the decay is expected to be from 0
_DEPARTURES = (0.02, 0.05)  # standard deviation of the departure
_NOISES = (0.015, 0.03, 0.06)  # standard deviation of a run's noise
_LENGTH = 1.2  # doublings of α and λ over which departures are alike,
_MEMORY = 4.0  # and doublings of the budget
_LEVEL = 0.5  # standard deviation of a budget's level, which says nothing about the best setting
_ROUNDING = 1e-9
_MOST = 300  # shapes, the most probable ones, that covariances are computed from


@dataclass(frozen=True)
class Scales:
    """One hypothesis about the sizes of departures and of noise."""

    departure: float
    noise: float


class Prior:
    """The belief before the first run, about a list of places.

    A place is a row (x, z, τ): doublings of α and λ_norm from the middle of their ranges, and of
    the epochs from those of the long run. `spread` is how far from the middle the best is expected.
    """

    def __init__(self, places: Array, spread: tuple[float, float]) -> None:
        x, z, t = places.T
        axes = (_ALPHAS, _KNEES, _TILTS, _DRIFTS, _FALLS, _CURVATURES, _COSTS)
        grid = np.array([*product(*axes)]).T
        at, knee, tilt, self.drifts, fall, curvature, cost = grid
        self.odds: Array = -(at**2 + knee**2 + (self.drifts / _DRIFT) ** 2) / 2
        away = x[:, None] - at * spread[0] + t[:, None] * fall
        above = z[:, None] - knee * spread[1] - tilt * away - t[:, None] * self.drifts
        low = cost * 2.0 ** (t[:, None] / 2) * -np.expm1(np.minimum(above, 0) / _REACH)
        raw = curvature * away**2 + low + _STEEP * np.maximum(above, 0)
        self.shapes: Array = CEILING * -np.expm1(-raw / CEILING)
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
            odds = self.prior.odds - (left**2).sum(axis=0) / 2
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
        prior: Array = self.prior.shapes[places] @ self.weights
        if not len(self.seen):
            return prior
        half = self._half(self.seen, self.scales, level=_LEVEL)
        left = _solved(half, self.heights - self.prior.shapes[self.seen] @ self.weights)
        across = self.prior.covariance(self.seen, places, self.scales, level=_LEVEL)
        return prior + _solved(half, across).T @ left

    @cached_property
    def _probable(self) -> tuple[Places, Array]:
        """The most probable shapes, and their probabilities."""
        at = np.argsort(-self.weights, kind="stable")[:_MOST].astype(np.int64)
        return at, self.weights[at] / self.weights[at].sum()

    def _expected(self, places: Places, shapes: Places) -> Array:
        """Return the expected heights at places, one column per shape."""
        prior = self.prior.shapes[np.ix_(places, shapes)]
        if not len(self.seen):
            return prior
        half = self._half(self.seen, self.scales, level=_LEVEL)
        left = self.heights[:, None] - self.prior.shapes[np.ix_(self.seen, shapes)]
        across = self.prior.covariance(self.seen, places, self.scales, level=_LEVEL)
        found: Array = prior + _solved(half, across).T @ _solved(half, left)
        return found

    def moves(self, places: Places, others: Places) -> Array:
        """Return by how much a typical outcome of a run at each place moves what is expected.

        One row per place: the shift of the heights at `others` if the run comes out one standard
        deviation higher than expected, and the level of its budget were known.
        """
        shapes, weights = self._probable
        one, other = (self._expected(each, shapes) for each in (places, others))
        one, other = one - (one @ weights)[:, None], other - (other @ weights)[:, None]
        mixed = (one * weights) @ other.T + self._departure(places, others)
        variance = one**2 @ weights + self.scales.departure**2 + self.scales.noise**2
        variance -= (self._known(places) ** 2).sum(axis=0)
        found: Array = mixed / np.sqrt(np.maximum(variance, self.scales.noise**2))[:, None]
        return found

    def drawn(self, places: Places, count: int) -> tuple[Array, Places]:
        """Return surfaces drawn at random, always the same ones, and which shape each has."""
        draw = np.random.default_rng(0)
        shapes, weights = self._probable
        at = draw.choice(len(shapes), count, p=weights)
        covariance = self._departure(places, places)
        covariance[np.diag_indices(len(covariance))] += _ROUNDING
        half = np.linalg.cholesky(covariance)
        normal = draw.standard_normal((count, len(places)))
        drawn: Array = self._expected(places, shapes).T[at] + normal @ half.T
        return drawn, shapes[at]

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
