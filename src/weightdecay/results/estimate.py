"""A number is worth what its interval says: an estimate carries both ends of its own."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_NORMAL = 1.959963984540054
# The expansion below is good to a thousandth from eight degrees of freedom on.
_FEW = {
    1: 12.7062,
    2: 4.30265,
    3: 3.18245,
    4: 2.77645,
    5: 2.57058,
    6: 2.44691,
    7: 2.36462,
    8: 2.30600,
}


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; NaN where nothing is known."""

    value: float
    low: float
    high: float


UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def student(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t."""
    many = max(_FEW) + 1
    if freedom >= many:
        return _expanded(freedom)
    # Between whole numbers the quantile is nearly straight over 1/freedom.
    below = max(1, math.floor(freedom))
    above = _FEW.get(below + 1, _expanded(many))
    part = (1 / below - 1 / max(1.0, freedom)) / (1 / below - 1 / (below + 1))
    return _FEW[below] + part * (above - _FEW[below])


def _expanded(freedom: float) -> float:
    """Return Fisher's expansion of the quantile in 1/freedom."""
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def within(value: float, variance: float, freedom: float) -> Estimate:
    """Return the estimate of that variance; no freedom, no interval."""
    if not freedom >= 1:
        return Estimate(value, math.nan, math.nan)
    half = student(freedom) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


def summed(*parts: tuple[float, float]) -> tuple[float, float]:
    """Return the variance of a sum, and its degrees of freedom (Satterthwaite), of such pairs."""
    variance = math.fsum(part for part, _ in parts)
    spread = math.fsum(part**2 / freedom for part, freedom in parts if part > 0)
    return variance, variance**2 / spread if spread > 0 else max(free for _, free in parts)
