"""What landscapes of α and λ look like, at every budget: a few thousand shapes.

A shape is how much worse a setting is than the best, as log(error / best). It is the sum of

    too small an α    the weights do not get there in time: it depends on α·T
    too large an α    training is unstable: it depends on α
    too large a λ     a cliff above a knee, λ_norm = start/√n or λ = bound·α, whichever is lower
    too small a λ     a loss that levels off, and that long runs suffer more from

with n updates per epoch and T epochs. Adam hardly ever moves a weight by more than α per update, so
decay holds the weights below about α/λ: hence the bound. It does not hold for SGD. Shapes differ in
where all of this is and how steep it is: each is drawn at random, always the same ones.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array: TypeAlias = NDArray[np.float64]

#: Where heights end: that of an error infinitely far above the best.
CEILING = 0.4
_COUNT = 2048
_WALL = 0.1  # what α costs at either end of the range in which it is good
_REACH = 2.0  # doublings below the knee over which most of the cost of too little decay is incurred


@dataclass(frozen=True)
class Expected:
    """Where the best setting of the long run is expected, in doublings.

    lr, spread    log2 of α, and how far from it the best may be
    decay, doubt  log2 of λ_norm, and how far from it the knee may be
    bound         log2 of the λ_norm at which λ is too large for an α of 1; None if there is none
    """

    lr: float
    spread: float
    decay: float
    doubt: float
    bound: float | None


def bent(raw: Array) -> Array:
    """Return heights that stay below the ceiling: an error on a cliff says nothing of its foot."""
    heights: Array = CEILING * -np.expm1(-raw / CEILING)
    return heights


def shapes(places: Array, expected: Expected) -> Array:
    """Return the heights of all shapes at places, one column per shape.

    A place is a row (x, z, τ): log2 of α and of λ_norm, and the doublings from the epochs of the
    long run.
    """
    uniform, normal = _drawn()
    middle = expected.lr + expected.spread * normal[0]
    half = 0.5 + 2 * uniform[1]  # of the doublings over which α is good
    slow, unstable = 0.7 + 0.8 * uniform[2], 0.5 + 1.5 * uniform[3]
    cost, steep = 0.03 * 5 ** uniform[6], 0.2 + 0.4 * uniform[7]
    x, z, t = (column[:, None] for column in places.T)
    above = z - _knees(x, t, expected)
    raw = _WALL * 2.0 ** (-slow * (x + t - middle + half))
    raw += _WALL * 2.0 ** (unstable * (x - middle - half))
    raw += cost * 2.0 ** (t / 2) * -np.expm1(np.minimum(above, 0) / _REACH)
    heights = bent(raw + steep * np.maximum(above, 0))
    for budget in np.unique(places[:, 2]):
        here = places[:, 2] == budget
        heights[here] -= heights[here].min(axis=0)
    return heights


def exponents(lr: float, doublings: float, expected: Expected) -> Array:
    """Return, for each shape, how the best λ falls with the epochs: λ ∝ epochs^(−exponent).

    `lr` is log2 of α, and `doublings` are those from the shortest epochs to those of the long run.
    """
    x = np.array([[lr]])
    short, long = (_knees(x, np.array([[t]]), expected)[0] for t in (-doublings, 0.0))
    found: Array = 0.5 - (long - short) / doublings
    return found


def _drawn() -> tuple[Array, Array]:
    """Return what is random in shapes, as numbers between 0 and 1 and as normal ones."""
    uniform = np.random.default_rng(0).random((9, _COUNT))
    return uniform, ndtri(uniform)


def _knees(x: Array, t: Array, expected: Expected) -> Array:
    """Return log2 of the λ_norm above which each shape has its cliff."""
    _, normal = _drawn()
    # The best λ_norm may move with the epochs.
    knee: Array = expected.decay + expected.doubt * normal[4] + 0.25 * normal[8] * t
    if expected.bound is not None:
        bound = expected.bound + expected.doubt * normal[5] + x + t / 2
        knee = -np.logaddexp2(-2 * knee, -2 * bound) / 2  # the lower one, with a round corner
    return knee
