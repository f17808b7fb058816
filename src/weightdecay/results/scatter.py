"""A surface through settings that need no grid: the best α and λ, and s, of a random search.

Over x = log2 α and z = log2 λ, the errors in a window about the best are fitted by a polynomial.
s = −d log λ* / d log α is read off the quadratic; the lowest point off the cubic, because basins
rise more steeply with too much decay than with too little, which pulls a quadratic's to one side.

The window is chosen by place, never by its own errors, which would leave only the lucky ones: an
ellipse, shaped first like the cloud of the best settings and then like the fitted basin, as large
as it can be before cubic and quartic terms explain more than noise does. Variances are those of
leaving out one setting after another (the jackknife), so that neither unequal noise nor repeats
of a setting make an interval too narrow; that of s is Fieller's, exact for a ratio.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results.estimate import UNKNOWN, Array, Estimate, student
from weightdecay.results.exponent import Exponent, Line, unknown
from weightdecay.results.landscape import Landscape
from weightdecay.results.polynomial import (
    Polynomial,
    fitted,
    hessian,
    leftover,
    lowest,
    monomials,
    ratio,
)
from weightdecay.results.ridge import CERTAIN

#: The fewest settings that a surface is fitted to.
FEWEST = 18
#: The fewest learning rates, and decays, that must differ: a cubic needs four.
DIFFERENT = 4
#: The factor that the highest of each must be of the lowest.
SPAN = 4.0
_STRAIGHT = 0.97  # a correlation above which the two knobs were turned as one
_GOOD = 0.3  # the share of settings that first says where the basin is
_FIRST = 1 / 6  # the share of settings that the smallest window has; fewer are mostly noise
_GROWTH = 1.2
_WORSE = 2.0  # F, above which higher terms explain more than noise does
_REFUSED = 3  # windows in a row that are too large before the search ends
_QUARTIC = 30  # settings from which quartic terms are asked too
_FAR = 6.0  # robust standard deviations beyond which a point is set aside

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class SurfaceFit:
    """What a fitted surface says: the best learning rate and decay, its error, and s there.

    Each has its 95 % interval. `error` is what is reported at the best setting. `used` of `points`
    were in the window, and `aside` of those were too far off to count. What could not be told is
    NaN, or has no value, and `why` says what is missing. `line` is the ridge, to draw it.
    """

    lr: Estimate
    decay: Estimate
    error: Estimate
    exponent: Exponent
    used: int
    points: int
    aside: int = 0
    line: Line | None = None
    why: str = ""


@dataclass(frozen=True)
class _Cloud:
    """Points: x and z, the errors chosen on and reported, and which setting and seed each is of."""

    x: Array
    z: Array
    chosen: Array
    tested: Array
    setting: Indices
    seed: Indices

    def __len__(self) -> int:
        return len(self.x)

    def take(self, kept: Indices) -> "_Cloud":
        setting = np.unique(self.setting[kept], return_inverse=True)[1]
        rest = (self.x[kept], self.z[kept], self.chosen[kept], self.tested[kept])
        return _Cloud(*rest, setting, self.seed[kept])

    @property
    def settings(self) -> int:
        return len(np.unique(self.setting))

    def terms(self, degree: int, centre: Array) -> Array:
        """Return the polynomial's terms; with few seeds and many points, an intercept for each."""
        terms = monomials(self.x - centre[0], self.z - centre[1], degree)
        seeds, index = np.unique(self.seed, return_inverse=True)
        if 1 < len(seeds) <= len(self) / 10:
            effects = np.eye(len(seeds))[index]
            terms = np.concatenate([terms, (effects - effects.mean(0))[:, 1:]], 1)
        return terms

    def fitted(self, values: Array, degree: int, centre: Array) -> Polynomial | None:
        return fitted(self.terms(degree, centre), values, self.setting, degree=degree)


def fit_surface(landscape: Landscape) -> SurfaceFit:
    """Fit a surface to a landscape's settings, on a grid or scattered, or say what is missing."""
    cloud = _cloud(landscape)
    missing = _missing(cloud)
    if missing:
        return _refused(cloud, missing)
    kept, aside = _window(cloud)
    near = cloud.take(kept)
    centre = np.array([near.x.mean(), near.z.mean()])
    quadratic, cubic = (near.fitted(near.chosen, degree, centre) for degree in (2, 3))
    if quadratic is None or cubic is None:
        few = "The settings near the best lie too close to a line: vary both α and λ there."
        return _refused(cloud, few)
    if not _curved(quadratic):
        flat = "The basin is too flat for its noise to say where it is lowest: add runs near it."
        return _refused(cloud, flat)
    exponent, line = _exponent(near, quadratic, centre)
    best = lowest(quadratic, cubic, _reach(near, centre))
    beyond = _beyond(cloud, centre, best if best is not None else _vertex(quadratic))
    if beyond or best is None:
        why = beyond or "The surface has no lowest point that noise leaves standing."
        why += " Add runs there." if beyond else " Add runs near the best."
        decays = "decay" in beyond
        s = unknown(why) if decays else Exponent(*_values(exponent), why=why)
        nowhere = UNKNOWN, UNKNOWN, UNKNOWN
        return SurfaceFit(*nowhere, s, len(near), len(cloud), aside, None if decays else line, why)
    half = student(cubic.freedom) * np.sqrt(np.diag(cubic.spread_of_lowest(best)))
    lr, decay = (
        Estimate(*(2.0 ** float(at + off) for off in (0, -away, away)))
        for at, away in zip(centre + best, half, strict=True)
    )
    reported = near.fitted(near.tested, 3, centre)
    assert reported is not None  # the same terms as the cubic's
    at, error = reported.value_at(best)
    reach = student(reported.freedom) * math.sqrt(error)
    return SurfaceFit(
        lr=lr,
        decay=decay,
        error=Estimate(at, at - reach, at + reach),
        exponent=exponent,
        used=len(near),
        points=len(cloud),
        aside=aside,
        line=line,
    )


def _cloud(landscape: Landscape) -> _Cloud:
    rows = [
        (math.log2(cell.lr), math.log2(cell.decay), cell.chosen[at], cell.tested[at], number, seed)
        for number, cell in enumerate(landscape.cells.values())
        for at, seed in enumerate(cell.seeds)
        if cell.decay > 0 and seed not in cell.diverged
    ]
    x, z, chosen, tested, setting, seed = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    return _Cloud(x, z, chosen, tested, setting.astype(np.intp), seed.astype(np.intp))


def _missing(cloud: _Cloud) -> str:
    """Return what a surface lacks, in words; nothing if it lacks nothing."""
    if cloud.settings < FEWEST:
        return (
            f"{cloud.settings} settings with a decay above 0 did not diverge, of the {FEWEST} that "
            f"a surface needs: run {FEWEST - cloud.settings} more."
        )
    for name, values in (("learning rates", cloud.x), ("decays", cloud.z)):
        different = len(np.unique(values))
        if different < DIFFERENT:
            return (
                f"{different} {name} differ, of the {DIFFERENT} that a surface needs: add others."
            )
        factor = 2.0 ** float(np.ptp(values))
        if not factor >= SPAN:
            return (
                f"The {name} span a factor of {factor:.2g}, of the {SPAN:g} that a surface needs: "
                "run some that are further apart."
            )
    if abs(float(np.corrcoef(cloud.x, cloud.z)[0, 1])) > _STRAIGHT:
        return (
            "Learning rate and decay were changed together, so that their effects cannot be told "
            "apart: run some settings in which one changes and the other does not."
        )
    return ""


def _window(cloud: _Cloud) -> tuple[Indices, int]:
    """Return the points to fit, and how many of the window's were set aside as too far off."""
    places = np.stack([cloud.x, cloud.z], 1)
    count = max(FEWEST // 2, int(_GOOD * len(cloud)))
    good = places[np.argsort(cloud.chosen, kind="stable")[:count]]
    centre, shape = good.mean(0), np.cov(good.T) + 1e-9 * np.eye(2)
    window, kept = _grown(cloud, places, centre, shape)
    near = cloud.take(kept)
    first = near.fitted(near.chosen, 2, centre)
    if first is not None and _round(first):
        # Once more, in the shape of the basin that was found and about its lowest point.
        reach = np.sqrt(np.diag(shape))
        centre = centre + np.clip(_vertex(first), -reach, reach)
        basin: Array = np.asarray(np.linalg.inv(hessian(first.values)), dtype=np.float64)
        window, kept = _grown(cloud, places, centre, basin)
    return kept, len(window) - len(kept)


def _grown(cloud: _Cloud, places: Array, centre: Array, shape: Array) -> tuple[Indices, Indices]:
    """Return the largest ellipse that a quadratic describes, and its points less those far off."""
    away = places - centre
    distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(shape), away)
    order = np.argsort(distance, kind="stable").astype(np.intp)
    # A setting's repeats are equally far: a window takes all of them or none.
    reached = np.cumsum(np.concatenate([[1], np.diff(distance[order]) > 0]))
    size, chosen, refused = max(FEWEST, int(_FIRST * reached[-1])), False, 0
    window, kept = order, order
    while True:
        inside = order[reached <= size]
        close = _not_far(cloud, inside, centre)
        near = cloud.take(close)
        degree = 4 if near.settings >= _QUARTIC else 3
        worse = leftover(near.terms(2, centre), near.terms(degree, centre), near.chosen)
        fits = worse is not None and worse < _WORSE
        if fits or not chosen:
            window, kept, refused = inside, close, 0 if fits else 1
            chosen = worse is not None
        else:
            refused += 1
        if len(inside) == len(order) or refused >= _REFUSED:
            return window, kept
        size = math.ceil(size * _GROWTH)


def _not_far(cloud: _Cloud, inside: Indices, centre: Array) -> Indices:
    """Return the points whose error is not far off the others' surface, as a failed run's is."""
    kept = inside
    for _ in range(4):
        terms = cloud.take(kept).terms(3, centre)
        values = cloud.chosen[kept]
        left = values - terms @ np.linalg.lstsq(terms, values, rcond=None)[0]
        left = np.abs(left - np.median(left))
        far = left > _FAR * 1.4826 * max(float(np.median(left)), 1e-12)
        # Where many are off, it is the surface that does not fit.
        if not far.any() or far.sum() > 0.1 * len(kept):
            break
        kept = kept[~far]
    return kept


def _curved(quadratic: Polynomial) -> bool:
    bend, spread = quadratic.values[5], math.sqrt(quadratic.covariance[5, 5])
    return bool(bend > CERTAIN * spread)


def _round(quadratic: Polynomial) -> bool:
    return bool(np.linalg.eigvalsh(hessian(quadratic.values)).min() > 0)


def _vertex(quadratic: Polynomial) -> Array:
    """Return where a quadratic's derivatives vanish."""
    solved = np.linalg.solve(hessian(quadratic.values), quadratic.values[1:3])
    return np.asarray(-solved, dtype=np.float64)


def _reach(near: _Cloud, centre: Array) -> Array:
    """Return the window's box about its centre: lows, then highs."""
    x, z = near.x - centre[0], near.z - centre[1]
    return np.array([[x.min(), z.min()], [x.max(), z.max()]])


def _exponent(near: _Cloud, quadratic: Polynomial, centre: Array) -> tuple[Exponent, Line]:
    value, low, high = ratio(quadratic, 4, 5, scale=0.5)
    _, _, along, _, twist, curve = quadratic.values[:6]
    # log2 λ* = centre − (along + twist · (log2 α − centre)) / (2 · curve)
    slope = -float(twist / (2 * curve))
    intercept = float(centre[1] - along / (2 * curve) - slope * centre[0])
    line = Line(slope, intercept, 2.0 ** float(near.x.min()), 2.0 ** float(near.x.max()))
    return Exponent(value, low, high), line


def _values(exponent: Exponent) -> tuple[float | None, float, float]:
    return exponent.value, exponent.low, exponent.high


def _beyond(cloud: _Cloud, centre: Array, place: Array) -> str:
    """Say beyond which ends of all settings the surface is lowest; nothing if within them."""
    ends = [
        f"the {end} {name}"
        for name, values, at in (
            ("learning rate", cloud.x, centre[0] + place[0]),
            ("decay", cloud.z, centre[1] + place[1]),
        )
        for end, beyond in (("lowest", at < values.min()), ("highest", at > values.max()))
        if beyond
    ]
    return f"The surface is lowest beyond {' and '.join(ends)} that was run." if ends else ""


def _refused(cloud: _Cloud, why: str) -> SurfaceFit:
    nowhere = UNKNOWN, UNKNOWN, UNKNOWN
    return SurfaceFit(*nowhere, unknown(why), 0, len(cloud), why=why)
