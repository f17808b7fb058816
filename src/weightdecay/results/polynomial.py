"""The surface that errors are fitted by: a polynomial in x = log2 α and z = log2 λ.

    f = q₀ + q₁·x + q₂·z + q₃·x² + q₄·x·z + q₅·z² (+ cubic and quartic terms)

Coefficients are in the order of `powers`. A quadratic's best decay at each learning rate lies on a
line of slope −q₄/(2·q₅), so that s = q₄/(2·q₅). The surface has two uses:

    fit       the cells of a grid near the best: s, if seeds are too few for `coupling`
    scatter   settings that form no grid: s, in an ellipse about the best
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array, student

Powers: TypeAlias = tuple[tuple[int, int], ...]
_ILL = 1e7  # with scaled columns, terms cannot be told apart above this condition number


@dataclass(frozen=True)
class Polynomial:
    """Coefficients in the order of `powers`, their covariance, and its degrees of freedom.

    Coefficients of other terms, such as effects of seeds, may follow them.
    """

    values: Array
    covariance: Array
    freedom: float
    degree: int


def powers(degree: int) -> Powers:
    """Return the powers of x and z in each term: those of 1, x, z, x², xz, z² and so on."""
    return tuple((total - j, j) for total in range(degree + 1) for j in range(total + 1))


def terms_of(powers: Powers, x: npt.ArrayLike, z: npt.ArrayLike) -> Array:
    """Return the terms at each point, along a last axis of their own."""
    x, z = np.asarray(x, dtype=np.float64), np.asarray(z, dtype=np.float64)
    return np.stack([x**i * z**j for i, j in powers], -1)


#: Terms of a quadratic as powers of x and of z: all of them, and what few points determine.
_SETS: tuple[Powers, ...] = (
    powers(2),
    ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2)),
    ((0, 0), (1, 0), (0, 1), (0, 2)),
    ((0, 0), (1, 0), (0, 1), (2, 0)),
    ((0, 0), (0, 1), (0, 2)),
    ((0, 0), (1, 0), (2, 0)),
    ((0, 0),),
)


def determined(places: Array, *, spare: int = 0) -> Powers:
    """Return the first set of terms that points determine, with so many points to spare."""
    for terms in _SETS:
        columns = terms_of(terms, places[:, 0], places[:, 1])
        if len(columns) >= len(terms) + spare and _apart(columns):
            return terms
    return _SETS[-1]


def _apart(columns: Array) -> bool:
    """Whether columns can be told apart: those of float32 settings on a line cannot."""
    scale = np.sqrt((columns**2).mean(0))
    return bool((scale > 0).all() and np.linalg.cond(columns / scale) < _ILL)


def exponent_of(quadratic: Array) -> Array:
    """Return s = −d log λ* / d log α of a quadratic, or of each along the first axes."""
    exponent: Array = quadratic[..., 4] / (2 * quadratic[..., 5])
    return exponent


def ridge_line(quadratic: Array, centre: npt.ArrayLike) -> tuple[float, float]:
    """Return slope and intercept of log2 λ* over log2 α; the quadratic is about a centre."""
    x, z = np.asarray(centre, dtype=np.float64)
    slope = -float(exponent_of(quadratic))
    return slope, float(z - quadratic[2] / (2 * quadratic[5]) - slope * x)


def fitted(
    terms: Array, values: Array, group: npt.NDArray[np.intp], *, degree: int
) -> Polynomial | None:
    """Fit by least squares, with the covariance of a jackknife over groups; None if impossible."""
    groups = int(group.max()) + 1
    freedom = float(groups - terms.shape[1])
    scale = np.sqrt((terms**2).mean(0))
    if freedom < 1 or not np.linalg.cond(terms / scale) < _ILL:
        return None
    inverse = np.linalg.inv(terms.T @ terms)
    coefficients = inverse @ terms.T @ values
    left = values - terms @ coefficients
    parts = np.zeros((groups, terms.shape[1]))
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=groups))[:-1]
    for number, rows in enumerate(np.split(order, ends)):
        own = terms[rows]
        # The residuals that the group would have if it had not been fitted.
        without = np.eye(len(rows)) - own @ inverse @ own.T
        parts[number] = own.T @ np.linalg.lstsq(without, left[rows], rcond=None)[0]
    moved = parts @ inverse
    return Polynomial(coefficients, moved.T @ moved, freedom, degree)


def leftover(terms: Array, more: Array, values: Array) -> float | None:
    """Return F: how much more the larger set of terms explains; None if that cannot be known."""
    freedom = len(values) - more.shape[1]
    if freedom < 1:
        return None
    squares: list[float] = []
    for one in (terms, more):
        scaled = one / np.sqrt((one**2).mean(0))
        found, _, rank, _ = np.linalg.lstsq(scaled, values, rcond=1 / _ILL)
        if rank < one.shape[1] and one is terms:
            return None
        squares.append(float(((values - scaled @ found) ** 2).sum()))
    extra = more.shape[1] - terms.shape[1]
    least = 1e-24 * float((values**2).sum())  # anything below is rounding
    gained: float = (squares[0] - squares[1]) / extra
    noise = max(squares[1], least)
    return float(gained * freedom / noise) if noise > 0 else 0.0


def hessian(values: Array) -> Array:
    """Return the second derivatives of a quadratic, which are the same everywhere."""
    return np.array([[2 * values[3], values[4]], [values[4], 2 * values[5]]])


def ratio(fit: Polynomial, above: int, below: int, *, scale: float) -> tuple[float, float, float]:
    """Return scale · (one coefficient / another) with Fieller's interval; infinite where open."""
    top, bottom = float(fit.values[above]), float(fit.values[below])
    var_top, var_bottom = fit.covariance[above, above], fit.covariance[below, below]
    both = fit.covariance[above, below]
    value, reach = top / bottom, student(fit.freedom)
    open_by = float(reach**2 * var_bottom / bottom**2)
    if not open_by < 1:
        return scale * value, -math.inf, math.inf
    middle = (value - open_by * both / var_bottom) / (1 - open_by)
    inner = var_top - 2 * value * both + value**2 * var_bottom
    inner -= open_by * (var_top - both**2 / var_bottom)
    half = reach / abs(bottom) / (1 - open_by) * math.sqrt(max(0.0, float(inner)))
    return scale * value, scale * float(middle - half), scale * float(middle + half)
