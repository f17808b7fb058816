"""An exponent is a slope of logarithms: with its interval, or a bound, or a reason for neither."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array, student, summed


@dataclass(frozen=True)
class Exponent:
    """An exponent with its 95 % interval; or a bound on it; or why there is neither.

    Where `bound` is "at least" or "at most", `value` is that bound, and the interval ends there.
    Where `value` is None nothing can be said, and `why` says why; it also explains a bound, and
    says what a value had to do without.
    """

    value: float | None
    low: float
    high: float
    bound: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Line:
    """What to draw: log2 λ* = intercept + slope · log2 α, between two learning rates."""

    slope: float
    intercept: float
    lowest: float
    highest: float


def unknown(why: str) -> Exponent:
    """Return an exponent of which nothing can be said."""
    return Exponent(None, -math.inf, math.inf, why=why)


@dataclass(frozen=True)
class WeightedLine:
    """A weighted line; `shares` are the points' parts of the slope's variance.

    Fields are arrays where the points were draws.
    """

    slope: Array
    intercept: Array
    variance: Array
    shares: Array


def line(x: Array, y: Array, variance: Array) -> WeightedLine:
    """WeightedLine y over x by weighted least squares, along the last axis."""
    weight = 1 / variance
    total = weight.sum(-1, keepdims=True)
    x_mean = (weight * x).sum(-1, keepdims=True) / total
    y_mean = (weight * y).sum(-1, keepdims=True) / total
    spread = (weight * (x - x_mean) ** 2).sum(-1, keepdims=True)
    slope = (weight * (x - x_mean) * y).sum(-1, keepdims=True) / spread
    return WeightedLine(
        slope=slope[..., 0],
        intercept=(y_mean - slope * x_mean)[..., 0],
        variance=1 / spread[..., 0],
        shares=weight * (x - x_mean) ** 2 / spread,
    )


def bend(x: Array, y: Array, variance: Array) -> float:
    """Estimate the variance of points about their line that their own does not explain.

    As DerSimonian and Laird do from χ², of which as much as there are points is chance: two more
    than its freedom, since three or four points may lie off a line without bending.
    """
    weight, fit = 1 / variance, line(x, y, variance)
    chance = float((weight * (y - fit.intercept - fit.slope * x) ** 2).sum()) - len(x)
    total = float(weight.sum())
    taken = float((weight**2).sum()) / total + float((weight * fit.shares).sum())
    return max(0.0, chance / (total - taken))


def spread_out(value: float, draws: Array, widened: float) -> tuple[float, float]:
    """Return the ends between which 95 % of the draws lie, pushed away from the value."""
    low, high = np.quantile(draws[np.isfinite(draws)], [0.025, 0.975])
    return value + float(low - value) * widened, value + float(high - value) * widened


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
    """Bound sign · slope, where some y are only known to lie beyond an edge of the grid.

    `edge` is −1 where y is at most what is given, 1 where it is at least that, 0 where it is known.
    An edge is where it is: it has no variance. `freedom` is that of each variance.
    """
    lean = x - x.mean()
    moved = {int(way) for way in np.sign(sign * lean * edge) if way}
    if not (lean**2).sum() > 0 or len(moved) != 1:
        return unknown(why)
    share = lean / (lean**2).sum()
    value = sign * float(share @ y)
    # Few seeds say each variance: Student's t, of Satterthwaite's freedom for their sum.
    noise, least = summed(*zip(share**2 * variance, freedom, strict=True))
    half = student(least) * math.sqrt(noise)
    if moved == {1}:
        return Exponent(value - half, value - half, math.inf, "at least", why)
    return Exponent(value + half, -math.inf, value + half, "at most", why)
