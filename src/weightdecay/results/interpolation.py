"""Values between measured ones, as weights of these, so that their noise is known."""

import math

import numpy as np

from weightdecay.results.column import ROUNDED
from weightdecay.results.estimate import Array

#: Values are interpolated between places at most this far apart: two doublings of a decay.
APART = 2.0
_ROUNDING = 1e-6
_CLIFF = 1.0  # a value this share above both of its neighbours lies on a cliff


def between(places: Array, place: float, values: Array | None = None) -> Array:
    """Return the weights of values at `places` in the value at a place between them.

    Two parabolas, each through the two nearest and one more, are weighted by the distance from the
    place. NaN if the place is outside, or the nearest are too far apart. If `values` are given, no
    parabola goes up a cliff beside the nearest two: it would dip far below both of them.
    """
    straight = straight_between(places, place)
    parabolas = _parabolas(places, place, straight, values)
    if not parabolas:
        return straight
    total = math.fsum(share for share, _ in parabolas)
    weights: Array = sum((share / total * own for share, own in parabolas), np.zeros(len(places)))
    return weights


def doubt(places: Array, place: float, values: Array | None = None) -> Array:
    """Return the weights of values in how far off the value between them may be.

    That is half of what the two parabolas differ by, or what the only one and the straight line do.
    """
    straight = straight_between(places, place)
    parabolas = [own for _, own in _parabolas(places, place, straight, values)]
    if len(parabolas) == 2:
        return (parabolas[0] - parabolas[1]) / 2
    return parabolas[0] - straight if parabolas else 0 * straight


def _parabolas(
    places: Array, place: float, straight: Array, values: Array | None
) -> list[tuple[float, Array]]:
    """Return the share and the weights of each parabola; none where no parabola is needed."""
    if np.isnan(straight).any() or np.count_nonzero(straight) < 2:
        return []
    below, above = np.flatnonzero(straight).tolist()
    found = []
    sides = (straight[below], below - 1, below - 1), (straight[above], below, above + 1)
    for share, first, third in sides:
        if 0 <= third < len(places) and not _on_cliff(values, third, (below, above)):
            weights = np.zeros(len(places))
            weights[first : first + 3] = _through(places[first : first + 3], place)
            found.append((float(share), weights))
    return found


def _on_cliff(values: Array | None, third: int, nearest: tuple[int, int]) -> bool:
    if values is None:
        return False
    higher = max(values[one] for one in nearest)
    return bool(values[third] > higher + _CLIFF * abs(higher))


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
    if high - low > ROUNDED * APART:
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
