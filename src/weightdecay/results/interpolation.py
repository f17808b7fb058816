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
    parabolas = _parabolas(places, place, straight)
    if not parabolas:
        return straight
    total = math.fsum(share for share, _ in parabolas)
    weights: Array = sum((share / total * own for share, own in parabolas), np.zeros(len(places)))
    return weights


def doubt(places: Array, place: float) -> Array:
    """Return the weights of values in how far off the value between them may be.

    That is half of what the two parabolas differ by, or what the only one and the straight line do.
    """
    straight = straight_between(places, place)
    parabolas = [own for _, own in _parabolas(places, place, straight)]
    if len(parabolas) == 2:
        return (parabolas[0] - parabolas[1]) / 2
    return parabolas[0] - straight if parabolas else 0 * straight


def _parabolas(places: Array, place: float, straight: Array) -> list[tuple[float, Array]]:
    """Return the share and the weights of each parabola; none where no parabola is needed."""
    if np.isnan(straight).any() or np.count_nonzero(straight) < 2:
        return []
    below, above = np.flatnonzero(straight)
    found = []
    for share, first in ((straight[below], below - 1), (straight[above], below)):
        if first >= 0 and first + 3 <= len(places):
            weights = np.zeros(len(places))
            weights[first : first + 3] = _through(places[first : first + 3], place)
            found.append((float(share), weights))
    return found


def straight_between(places: Array, place: float) -> Array:
    """Return the weights of values on the straight line between neighbours, or NaN as above."""
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
    """Return the weights of three values in the parabola through them (Lagrange's)."""
    (a, b, c), (u, v, w) = places, place - places
    return np.array(
        [v * w / ((a - b) * (a - c)), u * w / ((b - a) * (b - c)), u * v / ((c - a) * (c - b))]
    )
