"""Exponents: slopes of logarithms, each with an interval, or a bound, or a reason for neither."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array, student, summed

#: Why s may be unknown although the best setting is known.
FLAT = (
    "Near the best, errors hardly change with λ compared with noise, so they do not show how the "
    "best λ moves with α."
)
_MIDDLE = 0.1  # of the farthest learning rate from the mean: what is nearer moves slopes little


@dataclass(frozen=True)
class Exponent:
    """An exponent with its 95 % interval, or a bound on it, or the reason for neither.

    If `bound` is "at least" or "at most", `value` is that bound and the interval ends there. If
    `value` is None, it is unknown. `why` gives the reason for a bound or an unknown value, and says
    what was left out of a value. A value is `withheld` if there are estimates that contradict each
    other. `freedom` is that of Student's t behind the interval, and `standard_error` that of a
    bound, whose interval does not show it.
    """

    value: float | None
    low: float
    high: float
    bound: str | None = None
    why: str = ""
    withheld: bool = False
    freedom: float = math.inf
    standard_error: float = 0.0

    def widened(self, level: float) -> "Exponent":
        """Return it with an interval, or a bound, that ends at another quantile of Student's t.

        That of a 95 % interval is 0.975.
        """
        usual, wider = student(self.freedom), student(self.freedom, level)
        if self.value is None:
            return self
        if self.bound is not None:
            moved = (wider - usual) * self.standard_error * (1 if self.bound == "at most" else -1)
            value, low, high = (end + moved for end in (self.value, self.low, self.high))
            return replace(self, value=value, low=low, high=high)
        below, above = self.low - self.value, self.high - self.value
        low, high = (self.value + wider / usual * off for off in (below, above))
        return replace(self, low=low, high=high)

    @property
    def in_torch(self) -> "Exponent":
        """Return s for decays stated as torch's λ/α, which is 1 more; nothing is measured again."""
        if self.value is None:
            return self
        return replace(self, value=self.value + 1, low=self.low + 1, high=self.high + 1)


@dataclass(frozen=True)
class Line:
    """A line to draw: log2 λ* = intercept + slope · log2 α, between two learning rates."""

    slope: float
    intercept: float
    lowest: float
    highest: float


def unknown(why: str, *, withheld: bool = False) -> Exponent:
    """Return an exponent that is unknown, with the reason."""
    return Exponent(None, -math.inf, math.inf, why=why, withheld=withheld)


def bend(x: Array, y: Array, variance: Array, *, kink: float | None = None) -> float:
    """Estimate the variance of points about their line beyond their own variances.

    With a `kink`, the line may have another slope beyond that x. There must be more points than the
    line has parameters.

    The estimate is Hedges': what the squared residuals are beyond their mean, if noise alone moved
    the points, over their freedom. All points count alike, as they do in the line that this is for:
    one that is both noisy and far off moves it as much as any.
    """
    columns = [np.ones(len(x)), x - x.mean()]
    if kink is not None:
        columns.append(np.maximum(x - kink, 0.0))
    terms = np.stack(columns, 1)
    residual = np.eye(len(x)) - terms @ np.linalg.pinv(terms)
    beyond = float(((residual @ y) ** 2).sum() - (np.diag(residual) * variance).sum())
    return max(0.0, beyond / (len(x) - len(columns)))


def bounded(
    x: Array,
    y: Array,
    variance: Array,
    edge: npt.NDArray[np.int64],
    *,
    freedom: Array,
    sign: int,
    why: str,
) -> Exponent:
    """Bound sign · slope if some y are only known to lie beyond an edge of the grid.

    `edge` is −1 where the true y is at most the given one, 1 where it is at least that, and 0 where
    it is known. An edge has no variance. `freedom` belongs to each variance.
    """
    lean = x - x.mean()
    # Learning rates are often rounded, and then the middle one is not quite in the middle.
    aside = np.abs(lean) > _MIDDLE * np.abs(lean).max(initial=0.0)
    moved = {int(way) for way in np.sign(sign * lean * edge)[aside] if way}
    if not (lean**2).sum() > 0 or len(moved) != 1:
        return unknown(why)
    share = lean / (lean**2).sum()
    value = sign * float(share @ y)
    # Each variance comes from few seeds: Student's t, with Satterthwaite's freedom for the sum.
    noise, least = summed(*zip(share**2 * variance, freedom, strict=True))
    error = math.sqrt(noise)
    end = value - next(iter(moved)) * student(least) * error
    low, high, bound = (end, math.inf, "at least") if moved == {1} else (-math.inf, end, "at most")
    return Exponent(end, low, high, bound, why, freedom=least, standard_error=error)
