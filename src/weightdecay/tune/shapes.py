"""What landscapes of α and λ look like, at every budget: two thousand bowls.

A shape is how much worse a setting is than the best, as log(error / best). Around the best setting,
it grows with the square of the doublings by which α is too small or too large, or λ too large. Too
small a λ costs less and less more, and little in short runs. The best λ_norm

    grows with α          and may not be above λ = bound·α: Adam hardly ever moves a weight by more
                          than α per update, so decay holds the weights below about α/λ
    grows with the epochs as far as the best λ does not fall like 1/√epochs: somewhat, and like the
                          updates in runs of fewer than 600 of them (docs/choosing.md)

Shapes differ in where all of this is and how steep it is. Each has numbers of its own, drawn from
what was measured by fitting a bowl to each of six landscapes in results/tuning.
"""

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array: TypeAlias = NDArray[np.float64]

#: Where heights end: that of an error infinitely far above the best.
CEILING = 0.4
_COUNT = 2048
# What shapes differ in: the median of each number, and the standard deviation of its logarithm.
_FACTORS = {
    "slow": (0.045, 0.7),  # the cost of a doubling of α below the best
    "unstable": (0.045, 0.9),  # and of one above it
    "cliff": (0.18, 0.6),  # the cost of a doubling of λ above the best
    "undecayed": (0.23, 0.5),  # the cost of no decay
    "reach": (0.95, 0.55),  # doublings of λ below the best, within which half of that is incurred
}
# The mean and the standard deviation of numbers that may be negative, and of normal ones.
_TERMS = {
    "growth": (0.9, 0.3),  # doublings of the cost of no decay with each of the epochs
    "lr_drift": (0.1, 0.3),  # doublings of the best α with each of the epochs
    "decay_drift": (0.25, 0.4),  # doublings of the best λ_norm with each of the epochs
    "slope": (0.55, 0.27),  # doublings of the best λ_norm with each of α
    "lr": (0.0, 1.0),
    "decay": (0.0, 1.0),
}


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
    drawn = _drawn()
    x, z, t = (column[:, None] for column in places.T)
    too_large = x - _best_lr(t, expected)
    decayed = z - _best_decay(x, t, expected)
    raw = np.where(too_large < 0, drawn["slow"], drawn["unstable"]) * too_large**2
    raw += drawn["cliff"] * np.maximum(decayed, 0) ** 2
    without = 1 - 2.0 ** (np.minimum(decayed, 0) / drawn["reach"])
    raw += drawn["undecayed"] * 2.0 ** (drawn["growth"] * t) * without
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


@cache
def _drawn() -> dict[str, Array]:
    """Return the numbers of all shapes: a lattice that fills space evenly, always the same one."""
    count = len(_FACTORS) + len(_TERMS)
    root = 2.0
    for _ in range(32):  # of x^(count + 1) = x + 1, whose powers make such a lattice
        root = (1 + root) ** (1 / (count + 1))
    powers = root ** -np.arange(1.0, count + 1)
    normal = ndtri((0.5 + powers[:, None] * np.arange(1, _COUNT + 1)) % 1)
    factors = {
        name: median * np.exp(spread * one)
        for (name, (median, spread)), one in zip(_FACTORS.items(), normal, strict=False)
    }
    terms = {
        name: mean + spread * one
        for (name, (mean, spread)), one in zip(_TERMS.items(), normal[len(factors) :], strict=True)
    }
    return factors | terms


def _best_lr(t: Array, expected: Expected) -> Array:
    """Return log2 of the best α of each shape."""
    drawn = _drawn()
    best: Array = expected.lr + expected.spread * drawn["lr"] + drawn["lr_drift"] * t
    return best


def _best_decay(x: Array, t: Array, expected: Expected) -> Array:
    """Return log2 of the best λ_norm of each shape at an α."""
    drawn = _drawn()
    best = expected.decay + expected.doubt * np.sinh(0.8 * drawn["decay"])  # now and then far away
    if expected.bound is not None:
        bound = expected.bound + _best_lr(np.zeros((1, 1)), expected)
        best = -np.logaddexp2(-2 * best, -2 * bound) / 2  # the lower one, with a round corner
    best = best + drawn["decay_drift"] * t
    best += np.minimum(expected.room + t, 0) - min(expected.room, 0)
    found: Array = best + drawn["slope"] * (x - _best_lr(t, expected))
    return found
