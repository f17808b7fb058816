"""Which of a search's settings to fit: a window about the best, chosen by place.

Choosing by the errors themselves would leave only the lucky ones. The window is an ellipse, shaped
first like the cloud of the best settings and then like the fitted basin. It grows as long as cubic
and quartic terms explain no more than noise does.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import Array
from weightdecay.results.polynomial import (
    Polynomial,
    fitted,
    hessian,
    leftover,
    powers,
    terms_of,
)

#: The fewest settings that a surface is fitted to.
FEWEST = 18
_GOOD = 0.3  # the share of settings that first locates the basin
_FIRST = 1 / 6  # the share of settings in the smallest window; fewer are mostly noise
_GROWTH = 1.2
_WORSE = 2.0  # above this F, higher terms explain more than noise does
_REFUSED = 3  # the search ends after so many windows in a row that are too large
_QUARTIC = 30  # from so many settings on, quartic terms are tested too
_FAR = 6.0  # a point farther off, in robust standard deviations, is set aside

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Cloud:
    """Points: x, z, the errors to choose on, and each point's setting and seed."""

    x: Array
    z: Array
    chosen: Array
    setting: Indices
    seed: Indices

    def __len__(self) -> int:
        return len(self.x)

    def take(self, kept: Indices) -> "Cloud":
        """Return these points alone."""
        setting = np.unique(self.setting[kept], return_inverse=True)[1]
        return Cloud(self.x[kept], self.z[kept], self.chosen[kept], setting, self.seed[kept])

    @property
    def settings(self) -> int:
        """Return how many settings there are."""
        return len(np.unique(self.setting))

    def terms(self, degree: int, centre: Array) -> Array:
        """Return the polynomial's terms; with few seeds and many points, also one per seed."""
        terms = terms_of(powers(degree), self.x - centre[0], self.z - centre[1])
        seeds, index = np.unique(self.seed, return_inverse=True)
        if 1 < len(seeds) <= len(self) / 10:
            effects = np.eye(len(seeds))[index]
            terms = np.concatenate([terms, (effects - effects.mean(0))[:, 1:]], 1)
        return terms

    def fitted(self, values: Array, degree: int, centre: Array) -> Polynomial | None:
        """Fit a polynomial to one value per point; None if impossible."""
        return fitted(self.terms(degree, centre), values, self.setting, degree=degree)


def stationary(quadratic: Polynomial) -> Array:
    """Return where a quadratic's derivatives vanish."""
    solved = np.linalg.solve(hessian(quadratic.values), quadratic.values[1:3])
    return np.asarray(-solved, dtype=np.float64)


def window(cloud: Cloud) -> tuple[Indices, Indices]:
    """Return the points to fit, and those in the window that were set aside as too far off."""
    places = np.stack([cloud.x, cloud.z], 1)
    count = max(FEWEST // 2, int(_GOOD * len(cloud)))
    good = places[np.argsort(cloud.chosen, kind="stable")[:count]]
    centre, shape = good.mean(0), np.cov(good.T) + 1e-9 * np.eye(2)
    inside, kept = _grown(cloud, places, centre, shape)
    near = cloud.take(kept)
    first = near.fitted(near.chosen, 2, centre)
    if first is not None and np.linalg.eigvalsh(hessian(first.values)).min() > 0:
        # Again, in the shape of the basin that was found and about its lowest point.
        reach = np.sqrt(np.diag(shape))
        centre = centre + np.clip(stationary(first), -reach, reach)
        basin: Array = np.asarray(np.linalg.inv(hessian(first.values)), dtype=np.float64)
        inside, kept = _grown(cloud, places, centre, basin)
    return kept, np.setdiff1d(inside, kept)


def _grown(cloud: Cloud, places: Array, centre: Array, shape: Array) -> tuple[Indices, Indices]:
    """Return the points in the largest ellipse that a quadratic fits, and those to keep."""
    away = places - centre
    distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(shape), away)
    order = np.argsort(distance, kind="stable").astype(np.intp)
    # A setting's repeats are equally far: a window takes all of them or none.
    reached = np.cumsum(np.concatenate([[1], np.diff(distance[order]) > 0]))
    size, chosen, refused = max(FEWEST, int(_FIRST * reached[-1])), False, 0
    found, kept = order, order
    while True:
        inside = order[reached <= size]
        close = _not_far(cloud, inside, centre)
        near = cloud.take(close)
        degree = 4 if near.settings >= _QUARTIC else 3
        worse = leftover(near.terms(2, centre), near.terms(degree, centre), near.chosen)
        fits = worse is not None and worse < _WORSE
        if fits or not chosen:
            found, kept, refused = inside, close, 0 if fits else 1
            chosen = worse is not None
        else:
            refused += 1
        if len(inside) == len(order) or refused >= _REFUSED:
            return found, kept
        size = math.ceil(size * _GROWTH)


def _not_far(cloud: Cloud, inside: Indices, centre: Array) -> Indices:
    """Return the points without those far off the others' surface, such as failed runs."""
    kept = inside
    for _ in range(4):
        terms = cloud.take(kept).terms(3, centre)
        values = cloud.chosen[kept]
        left = values - terms @ np.linalg.lstsq(terms, values, rcond=None)[0]
        left = np.abs(left - np.median(left))
        far = left > _FAR * 1.4826 * max(float(np.median(left)), 1e-12)
        # If many are off, it is the surface that does not fit.
        if not far.any() or far.sum() > 0.1 * len(kept):
            break
        kept = kept[~far]
    return kept
