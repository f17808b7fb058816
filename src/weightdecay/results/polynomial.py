"""Polynomials of two variables, fitted by least squares, with what they leave uncertain."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array, student

_ILL = 1e7  # a condition number, columns scaled, above which terms cannot be told apart


@dataclass(frozen=True)
class Polynomial:
    """Coefficients in the order of `monomials`, their covariance, and its degrees of freedom.

    There may be others behind them, of other terms.
    """

    values: Array
    covariance: Array
    freedom: float
    degree: int

    def value_at(self, place: Array) -> tuple[float, float]:
        """Return the value at a place, and its variance."""
        terms = monomials(place[:1], place[1:], self.degree)[0]
        count = len(terms)
        value = float(terms @ self.values[:count])
        return value, float(terms @ self.covariance[:count, :count] @ terms)

    def spread_of_lowest(self, place: Array) -> Array:
        """Return the covariance of the lowest point, which is at a place."""
        slopes = _slopes(place, self.degree)
        count = slopes.shape[1]
        moved = np.linalg.solve(_hessian_at(self.values, place, self.degree), slopes)
        spread: Array = moved @ self.covariance[:count, :count] @ moved.T
        return spread


def monomials(x: Array, z: Array, degree: int) -> Array:
    """Return 1, x, z, x², xz, z², … of each point."""
    return np.stack([x**i * z**j for i, j in _powers(degree)], 1)


def fitted(
    terms: Array, values: Array, group: npt.NDArray[np.intp], *, degree: int
) -> Polynomial | None:
    """Fit by least squares; the covariance is the jackknife's over groups. None if it cannot be."""
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
        # What the group's residuals would be, had it not been fitted.
        without = np.eye(len(rows)) - own @ inverse @ own.T
        parts[number] = own.T @ np.linalg.lstsq(without, left[rows], rcond=None)[0]
    moved = parts @ inverse
    return Polynomial(coefficients, moved.T @ moved, freedom, degree)


def leftover(terms: Array, more: Array, values: Array) -> float | None:
    """Return by how much more terms explain what fewer leave: F. None where it cannot be told."""
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
    least = 1e-24 * float((values**2).sum())  # below which it is rounding
    gained: float = (squares[0] - squares[1]) / extra
    return float(gained * freedom / max(squares[1], least))


def hessian(values: Array) -> Array:
    """Return the second derivatives of a quadratic."""
    return np.array([[2 * values[3], values[4]], [values[4], 2 * values[5]]])


def lowest(first: Polynomial, cubic: Polynomial, box: Array) -> Array | None:
    """Return the cubic's lowest point in a box, from the quadratic's on; None if it has none."""
    curved = hessian(first.values)
    if not np.linalg.eigvalsh(curved).min() > 0:
        return None
    place: Array = np.asarray(-np.linalg.solve(curved, first.values[1:3]), dtype=np.float64)
    stride = (box[1] - box[0]) / 4
    for _ in range(30):
        curved = _hessian_at(cubic.values, place, 3)
        if not np.linalg.eigvalsh(curved).min() > 0:
            return None
        slope = _slopes(place, 3) @ cubic.values[:10]
        step = np.clip(-np.linalg.solve(curved, slope), -stride, stride)
        place += step
        if np.abs(step).max() < 1e-9:
            break
    else:
        return None
    return place if ((box[0] <= place) & (place <= box[1])).all() else None


def ratio(fit: Polynomial, above: int, below: int, *, scale: float) -> tuple[float, float, float]:
    """Return scale · one coefficient / another, and Fieller's interval; infinite where open."""
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


def _powers(degree: int) -> list[tuple[int, int]]:
    return [(total - j, j) for total in range(degree + 1) for j in range(total + 1)]


def _slopes(place: Array, degree: int) -> Array:
    """Return the derivatives of all monomials, along x and along z."""
    x, z = (float(part) for part in place)
    powers = _powers(degree)
    along_x = [i * x ** max(i - 1, 0) * z**j for i, j in powers]
    along_z = [j * x**i * z ** max(j - 1, 0) for i, j in powers]
    return np.array([along_x, along_z])


def _hessian_at(values: Array, place: Array, degree: int) -> Array:
    x, z = (float(part) for part in place)
    second = np.zeros((2, 2))
    for value, (i, j) in zip(values, _powers(degree), strict=False):
        second[0, 0] += value * i * (i - 1) * x ** max(i - 2, 0) * z**j
        second[1, 1] += value * j * (j - 1) * x**i * z ** max(j - 2, 0)
        second[0, 1] += value * i * j * x ** max(i - 1, 0) * z ** max(j - 1, 0)
    second[1, 0] = second[0, 1]
    return second
