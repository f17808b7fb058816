"""An estimate: a value with its 95 % interval."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; NaN where nothing is known."""

    value: float
    low: float
    high: float


UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def student(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t; of infinite freedom, the normal one."""
    return float(stdtrit(freedom, 0.975))


def within(value: float, variance: float, freedom: float) -> Estimate:
    """Return the estimate for a value of this variance; without freedom it has no interval."""
    if not freedom >= 1:
        return Estimate(value, math.nan, math.nan)
    half = student(freedom) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


def summed(*parts: tuple[float, float]) -> tuple[float, float]:
    """Return the variance of a sum and its degrees of freedom (Satterthwaite).

    Each part is a pair: the variance of a term, and the freedom of that variance.
    """
    variance = math.fsum(part for part, _ in parts)
    spread = math.fsum(part**2 / freedom for part, freedom in parts if part > 0)
    return variance, variance**2 / spread if spread > 0 else max(free for _, free in parts)
