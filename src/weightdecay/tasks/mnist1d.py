"""MNIST-1D: ten digits as curves, made by code, the same everywhere.

The data set of Greydanus, "Scaling down deep learning" (arXiv:2011.14439), as its package makes it
with its defaults: 4,000 + 1,000 sequences of 40 numbers. A curve is stretched, scaled and moved;
smooth noise fills the rest; some white noise and a slope are added. Every draw is numpy's legacy
generator's, in the package's order, so that the numbers are the package's too.
"""

from functools import cache

import numpy as np
import numpy.typing as npt
import torch

from weightdecay.tasks.task import Examples

CLASSES = 10
LENGTH = 40
TRAIN = 4_000

_SEED = 42
_EXAMPLES = 5_000
_SHORTEST, _LONGEST = 36, 60  # what may follow a curve
_FULL = 12 + _LONGEST
_PLACES = 48
_RADIUS, _WIDTH = 8, 2.0  # of the smooth noise's Gaussian
_DIGITS = (
    (5, 6, 6.5, 6.75, 7, 7, 7, 7, 6.75, 6.5, 6, 5),
    (5, 3, 3, 3.4, 3.8, 4.2, 4.6, 5, 5.4, 5.8, 5, 5),
    (5, 6, 6.5, 6.5, 6, 5.25, 4.75, 4, 3.5, 3.5, 4, 5),
    (5, 6, 6.5, 6.5, 6, 5, 5, 6, 6.5, 6.5, 6, 5),
    (5, 4.4, 3.8, 3.2, 2.6, 2.6, 5, 5, 5, 5, 5, 5),
    (5, 3, 3, 3, 3, 5, 6, 6.5, 6.5, 6, 4.5, 5),
    (5, 4, 3.5, 3.25, 3, 3, 3, 3, 3.25, 3.5, 4, 5),
    (5, 7, 7, 6.6, 6.2, 5.8, 5.4, 5, 4.6, 4.2, 5, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 4, 3.5, 3.5, 4, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 5, 5, 4.7, 4.3, 5),
)
_Array = npt.NDArray[np.float64]


@cache
def load() -> tuple[Examples, Examples]:
    """Return the training and the test examples."""
    random = np.random.RandomState(_SEED)
    curves = _curves()
    sequences = np.stack(
        [_sequence(curve, random) for curve in curves for _ in range(_EXAMPLES // CLASSES)]
    )
    classes = np.arange(CLASSES).repeat(_EXAMPLES // CLASSES)
    order = random.permutation(_EXAMPLES)
    sequences = (sequences - sequences.mean()) / sequences.std()
    inputs = torch.from_numpy(sequences[order].astype(np.float32))
    examples = Examples(inputs, torch.from_numpy(classes[order].astype(np.int64)))
    return examples[:TRAIN], examples[TRAIN:]


def _curves() -> _Array:
    digits = np.array(_DIGITS)
    digits = (digits - digits.mean(1, keepdims=True)) / digits.std(1, keepdims=True)
    curves: _Array = (digits - digits[:, :1]) / 6
    return curves


def _sequence(curve: _Array, random: np.random.RandomState) -> _Array:
    after = _SHORTEST + int(random.rand() * (_LONGEST - _SHORTEST + 1))
    # Not quite zero where the curve crosses zero: what is zero is filled with noise.
    sequence = _stretched(np.append(curve + 1e-8, np.zeros(after)), _FULL)
    sequence *= 1 + 0.4 * (random.rand() - 0.5)
    sequence = np.roll(sequence, random.choice(_PLACES))
    smooth = _smoothed(0.25 * random.randn(_FULL))
    sequence = np.where(sequence == 0, smooth, sequence)
    sequence += 0.02 * random.randn(_FULL)
    sequence -= 0.75 * (random.rand() - 0.5) * np.linspace(-0.5, 0.5, _FULL)
    return _stretched(sequence, LENGTH)


def _stretched(sequence: _Array, length: int) -> _Array:
    places = np.linspace(0, 1, length)
    stretched: _Array = np.interp(places, np.linspace(0, 1, len(sequence)), sequence)
    return stretched


def _smoothed(noise: _Array) -> _Array:
    weights = np.exp(-0.5 * (np.arange(-_RADIUS, _RADIUS + 1) / _WIDTH) ** 2)
    return np.convolve(np.pad(noise, _RADIUS, "symmetric"), weights / weights.sum(), "valid")
