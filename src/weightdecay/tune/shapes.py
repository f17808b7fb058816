"""What landscapes of α and λ look like, at every budget: a thousand bowls.

A shape is how much worse a setting is than the best, as log(error / best). Around the best setting,
it grows with the square of the doublings by which α is too small or too large, or λ too large. Too
small a λ costs less and less more, and little in short runs. The best λ_norm

    grows with α          and may not be above λ = bound·α: Adam hardly ever moves a weight by more
                          than α per update, so decay holds the weights below about α/λ
    grows with the epochs as far as the best λ does not fall like 1/√epochs: somewhat, and like the
                          updates in runs of fewer than 600 of them (docs/choosing.md)

Shapes differ in where all of this is and how steep it is: each is drawn at random, always the same
ones. The numbers were read off landscapes of mnist1d, text and CIFAR-10.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array: TypeAlias = NDArray[np.float64]

#: Where heights end: that of an error infinitely far above the best.
CEILING = 0.4
_COUNT = 1024
_REACH = 1.5  # doublings below the best λ within which half of the cost of no decay is incurred


@dataclass(frozen=True)
class Expected:
    """Where the best setting of the long run is expected, in doublings.

    lr, spread    log2 of α, and how far from it the best may be
    decay, doubt  log2 of λ_norm, and how far from it the best may be
    bound         log2 of the λ_norm at which λ is too large for an α of 1; None if there is none
    room          by how much the long run has more updates than the few that want less decay
    """

    lr: float
    spread: float
    decay: float
    doubt: float
    bound: float | None
    room: float


def bent(raw: Array) -> Array:
    """Return heights that stay below the ceiling: an error on a cliff says nothing of its foot."""
    heights: Array = CEILING * -np.expm1(-raw / CEILING)
    return heights


def shapes(places: Array, expected: Expected) -> Array:
    """Return the heights of all shapes at places, one column per shape.

    A place is a row (x, z, τ): log2 of α and of λ_norm, and the doublings from the epochs of the
    long run.
    """
    normal = _drawn()
    slow, unstable = 0.08 * np.exp(0.5 * normal[0]), 0.1 * np.exp(0.7 * normal[1])
    cliff, undecayed = 0.14 * np.exp(0.4 * normal[2]), 0.25 * np.exp(0.5 * normal[3])
    x, z, t = (column[:, None] for column in places.T)
    too_large = x - _best_lr(t, expected)
    decayed = z - _best_decay(x, t, expected)
    raw = np.where(too_large < 0, slow, unstable) * too_large**2
    raw += cliff * np.maximum(decayed, 0) ** 2
    raw += undecayed * 2.0**t * (1 - 2.0 ** (np.minimum(decayed, 0) / _REACH))
    heights = bent(raw)
    for budget in np.unique(places[:, 2]):
        here = places[:, 2] == budget
        heights[here] -= heights[here].min(axis=0)
    return heights


def exponents(lr: float, doublings: float, expected: Expected) -> Array:
    """Return, for each shape, how the best λ falls with the epochs: λ ∝ epochs^(−exponent).

    `lr` is log2 of α, and `doublings` are those from the shortest epochs to those of the long run.
    """
    x = np.array([[lr]])
    short, long = (_best_decay(x, np.array([[t]]), expected)[0] for t in (-doublings, 0.0))
    found: Array = 0.5 - (long - short) / doublings
    return found


def _drawn() -> Array:
    """Return what is random in shapes, as normal numbers."""
    normal: Array = ndtri(np.random.default_rng(0).random((9, _COUNT)))
    return normal


def _best_lr(t: Array, expected: Expected) -> Array:
    """Return log2 of the best α of each shape."""
    normal = _drawn()
    best: Array = expected.lr + expected.spread * normal[4] + 0.15 * normal[5] * t
    return best


def _best_decay(x: Array, t: Array, expected: Expected) -> Array:
    """Return log2 of the best λ_norm of each shape at an α."""
    normal = _drawn()
    best = expected.decay + expected.doubt * np.sinh(0.8 * normal[6])  # now and then far away
    if expected.bound is not None:
        bound = expected.bound + _best_lr(np.zeros((1, 1)), expected)
        best = -np.logaddexp2(-2 * best, -2 * bound) / 2  # the lower one, with a round corner
    best = best + (0.2 + 0.35 * normal[7]) * t
    best += np.minimum(expected.room + t, 0) - min(expected.room, 0)
    found: Array = best + (0.5 + 0.17 * normal[8]) * (x - _best_lr(t, expected))
    return found
