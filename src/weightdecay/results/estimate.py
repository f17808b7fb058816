"""An estimate: a value with its 95 % interval."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Array = npt.NDArray[np.float64]
_MOST = 1e12  # more seeds than these are none


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; NaN where nothing is known.

    `freedom` is that of Student's t, if the interval is his.
    """

    value: float
    low: float
    high: float
    freedom: float = math.inf

    def widened(self, level: float) -> "Estimate":
        """Return it with an interval that ends at another quantile of Student's t than 0.975."""
        factor = student(self.freedom, level) / student(self.freedom)
        low, high = (self.value + factor * (end - self.value) for end in (self.low, self.high))
        return replace(self, low=low, high=high)


UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def student(freedom: float, level: float = 0.975) -> float:
    """Return a quantile of Student's t; of infinite freedom, the normal one."""
    return float(stdtrit(freedom, level))


def within(value: float, variance: float, freedom: float) -> Estimate:
    """Return the estimate for a value of this variance; without freedom it has no interval."""
    if not freedom >= 1:
        return Estimate(value, math.nan, math.nan)
    half = student(freedom) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, freedom)


def minus(one: Estimate, other: Estimate) -> Estimate:
    """Return the difference of two independent estimates; without an interval if one has none."""
    value = one.value - other.value
    if math.isnan(one.low) or math.isnan(other.low):
        return Estimate(value, math.nan, math.nan)
    return within(value, *summed(variance_of(one), variance_of(other)))


def bound(least: Estimate) -> float | None:
    """Return what a cost is at least if it is not below this one; None if that is not above 0."""
    low = least.value if math.isnan(least.low) else least.low
    return low if low > 0 else None


def detectable(found: Estimate) -> float:
    """Return the smallest effect that such data show in 80 % of cases: (t.975 + t.8) errors."""
    variance, freedom = variance_of(found)
    return math.sqrt(variance) * shown_by(freedom)


def shown_by(freedom: float, level: float = 0.975, power: float = 0.8) -> float:
    """Return how many standard errors an effect has that is shown in 80 % of cases."""
    return student(freedom, level) + student(freedom, power)


def seeds_needed(
    effect: float,
    variance: float,
    freedom: float,
    *,
    seeds: int,
    shared: float = 0.0,
    level: float = 0.975,
    power: float = 0.8,
) -> float:
    """Return how many seeds would show an effect in 80 % of cases; infinite if no number would.

    `variance` and its freedom are those by so many `seeds`. With more seeds, the variance falls in
    proportion, and the freedom grows. `shared` is a variance that stays. The interval ends at
    `level`, which is 0.975 for one of 95 %. `power` is another share of cases.
    """
    left = effect**2 - shown_by(math.inf, level, power) ** 2 * shared
    if not left > 0:
        return math.inf

    def enough(count: float) -> bool:
        free = freedom * (count - 1) / (seeds - 1) if seeds > 1 else freedom * count
        return shown_by(free, level, power) ** 2 * variance * seeds / count <= left

    low, high = 2.0, 4.0
    if enough(low):
        return low
    while not enough(high) and high < _MOST:
        low, high = high, 2 * high
    while high - low > 1e-9 * low:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if high < _MOST else math.inf


def variance_of(found: Estimate) -> tuple[float, float]:
    """Return the variance that an interval stands for, and its degrees of freedom.

    An interval that was cut at one end has its whole length on the other.
    """
    half = max(found.high - found.value, found.value - found.low)
    return (half / student(found.freedom)) ** 2, found.freedom


def of_error(found: Estimate) -> Estimate:
    """Return the estimate of an error p with the interval of log(p / (1 − p)), inside 0 and 1.

    With two seeds, their noise has one degree of freedom, and the interval of p itself often ends
    below 0.
    """
    value, half = found.value, (found.high - found.low) / 2
    if not 0 < value < 1 or not math.isfinite(half):
        return Estimate(*(min(max(one, 0.0), 1.0) for one in (value, found.low, found.high)))
    centre, reach = math.log(value / (1 - value)), half / (value * (1 - value))
    low, high = (0.5 + 0.5 * math.tanh((centre + end) / 2) for end in (-reach, reach))
    return Estimate(value, low, high)


def summed(*parts: tuple[float, float]) -> tuple[float, float]:
    """Return the variance of a sum and its degrees of freedom (Satterthwaite).

    Each part is a pair: the variance of a term, and the freedom of that variance.
    """
    variance = math.fsum(part for part, _ in parts)
    spread = math.fsum(part**2 / freedom for part, freedom in parts if part > 0)
    return variance, variance**2 / spread if spread > 0 else max(free for _, free in parts)


def safely_summed(*parts: tuple[float, float]) -> tuple[float, float]:
    """Return the variance of a sum, so large that its interval covers at least 95 % (Banerjee).

    Satterthwaite's freedom is too high if a part with little freedom happens to be small. The
    squared half widths of all parts' intervals add up instead. NaN if a part is unknown.
    """
    _, freedom = summed(*parts)
    square = math.fsum(student(free) ** 2 * part for part, free in parts if part != 0)
    return square / student(freedom) ** 2, freedom
