"""Values between measured ones, as weights of these, so that their noise is known."""

import math

import numpy as np

from weightdecay.results.estimate import Array

#: Values are interpolated between places at most this far apart: two doublings of a decay.
APART = 2.0
_ROUNDING = 1e-6


def between(places: Array, place: float) -> Array:
    """Return the weights of values at `places` in the value at a place between them.

    Two parabolas, each through the two nearest and one more, are weighted by the distance from the
    place. NaN if the place is outside, or the nearest are too far apart.
    """
    straight = straight_between(places, place)
    if np.isnan(straight).any() or np.count_nonzero(straight) < 2:
        return straight
    below, above = np.flatnonzero(straight)
    sides = [
        (float(part), slice(first, first + 3))
        for part, first in ((straight[below], below - 1), (straight[above], below))
        if first >= 0 and first + 3 <= len(places)
    ]
    if not sides:
        return straight
    weights = np.zeros(len(places))
    total = math.fsum(part for part, _ in sides)
    for part, near in sides:
        weights[near] += part / total * _through(places[near], place)
    return weights


def straight_between(places: Array, place: float) -> Array:
    """Return the same weights for straight lines between neighbours."""
    weights = np.zeros(len(places))
    if not len(places) or not places[0] - _ROUNDING <= place <= places[-1] + _ROUNDING:
        return weights + math.nan
    above = int(np.searchsorted(places, place - _ROUNDING))
    if abs(places[above] - place) <= _ROUNDING:
        weights[above] = 1.0
        return weights
    low, high = places[above - 1], places[above]
    if high - low > APART + _ROUNDING:
        return weights + math.nan
    share = (place - low) / (high - low)
    weights[above - 1], weights[above] = 1 - share, share
    return weights


def _through(places: Array, place: float) -> Array:
    """Return the weights of values in the polynomial through them (Lagrange's)."""
    apart = places[:, None] - places
    np.fill_diagonal(apart, 1.0)
    off = np.tile(place - places, (len(places), 1))
    np.fill_diagonal(off, 1.0)
    return np.asarray((off / apart).prod(1))
