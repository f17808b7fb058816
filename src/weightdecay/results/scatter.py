"""The surface of a random search: the best α and λ, and s, of settings that form no grid.

The errors in a window about the best (`scatter_window`) are fitted by a polynomial (`polynomial`).
s is read off the quadratic. The lowest point is read off the cubic: basins rise more steeply with
too much decay than with too little, which pulls a quadratic's lowest point to one side.

Variances come from leaving out one setting after another (the jackknife), so that neither unequal
noise nor repeats of a setting make an interval too narrow. The interval of s is Fieller's, which is
exact for a ratio.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from weightdecay.results.estimate import UNKNOWN, Array, Estimate, student
from weightdecay.results.exponent import Exponent, Line, unknown
from weightdecay.results.kriging import expected_error
from weightdecay.results.landscape import Landscape
from weightdecay.results.polynomial import Polynomial, lowest, ratio, ridge_line
from weightdecay.results.ridge import CERTAIN
from weightdecay.results.scatter_window import FEWEST, Cloud, stationary, window

#: The fewest learning rates, and decays, that must differ: a cubic needs four.
DIFFERENT = 4
#: The factor that the highest of each must be of the lowest.
SPAN = 4.0
_STRAIGHT = 0.97  # above this correlation, the two knobs were changed together


@dataclass(frozen=True)
class SurfaceFit:
    """The best learning rate and decay of a fitted surface, its error there, and s.

    Each has its 95 % interval. `error` is the test error to expect there (`kriging`). `used` of
    `points` were in the window after `aside` were set aside as too far off. What is unknown is NaN
    or has no value, and `why` says what is missing. `line` is the ridge, to draw it.
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


def fit_surface(landscape: Landscape) -> SurfaceFit:
    """Fit a surface to a landscape, on a grid or scattered, or say what is missing."""
    cloud = _cloud(landscape)
    missing = _missing(cloud)
    if missing:
        return _refused(cloud, missing)
    kept, aside = window(cloud)
    near = cloud.take(kept)
    centre = np.array([near.x.mean(), near.z.mean()])
    quadratic, cubic = (near.fitted(near.chosen, degree, centre) for degree in (2, 3))
    if quadratic is None or cubic is None:
        few = "The settings near the best lie too close to a line: vary both α and λ there."
        return _refused(cloud, few)
    if not _curved(quadratic):
        flat = "The basin is too flat for its noise to locate its lowest point: add runs near it."
        return _refused(cloud, flat)
    exponent, line = _exponent(near, quadratic, centre)
    best = lowest(quadratic, cubic, _reach(near, centre))
    beyond = _beyond(cloud, centre, best if best is not None else stationary(quadratic))
    if beyond or best is None:
        why = beyond or "The surface has no lowest point that noise leaves standing."
        why += " Add runs there." if beyond else " Add runs near the best."
        decays = "decay" in beyond
        s = unknown(why) if decays else replace(exponent, why=why)
        nowhere = UNKNOWN, UNKNOWN, UNKNOWN
        return SurfaceFit(*nowhere, s, len(near), len(cloud), aside, None if decays else line, why)
    half = student(cubic.freedom) * np.sqrt(np.diag(cubic.spread_of_lowest(best)))
    lr, decay = (
        Estimate(*(2.0 ** float(at + off) for off in (0, -away, away)))
        for at, away in zip(centre + best, half, strict=True)
    )
    return SurfaceFit(
        lr=lr,
        decay=decay,
        error=expected_error(landscape, lr.value, decay.value).error,
        exponent=exponent,
        used=len(near),
        points=len(cloud),
        aside=aside,
        line=line,
    )


def _cloud(landscape: Landscape) -> Cloud:
    rows = [
        (math.log2(cell.lr), math.log2(cell.decay), cell.chosen[at], number, seed)
        for number, cell in enumerate(landscape.cells.values())
        for at, seed in enumerate(cell.seeds)
        if cell.decay > 0 and seed not in cell.diverged
    ]
    x, z, chosen, setting, seed = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    return Cloud(x, z, chosen, setting.astype(np.intp), seed.astype(np.intp))


def _missing(cloud: Cloud) -> str:
    """Return what is missing for a surface, in words; nothing if nothing is."""
    knobs = (("learning rates", cloud.x), ("decays", cloud.z))
    if _together(cloud):
        return (
            "Learning rate and decay were changed together, so that their effects cannot be told "
            "apart: run some settings in which one changes and the other does not."
        )
    if cloud.settings < FEWEST:
        same = [name for name, values in knobs if len(np.unique(values)) == 1]
        other = f", with other {' and '.join(same)}" if same else ""
        return (
            f"{cloud.settings} settings with a decay above 0 did not diverge, of the {FEWEST} that "
            f"a surface needs: run {FEWEST - cloud.settings} more{other}."
        )
    for name, values in knobs:
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
    return ""


def _together(cloud: Cloud) -> bool:
    """Whether learning rate and decay lie on a line: two settings always do."""
    if cloud.settings < 3 or not np.ptp(cloud.x) or not np.ptp(cloud.z):
        return False
    return abs(float(np.corrcoef(cloud.x, cloud.z)[0, 1])) > _STRAIGHT


def _curved(quadratic: Polynomial) -> bool:
    bend, spread = quadratic.values[5], math.sqrt(quadratic.covariance[5, 5])
    return bool(bend > CERTAIN * spread)


def _reach(near: Cloud, centre: Array) -> Array:
    """Return the window's box about its centre: the lowest corner, then the highest."""
    x, z = near.x - centre[0], near.z - centre[1]
    return np.array([[x.min(), z.min()], [x.max(), z.max()]])


def _exponent(near: Cloud, quadratic: Polynomial, centre: Array) -> tuple[Exponent, Line]:
    value, low, high = ratio(quadratic, 4, 5, scale=0.5)
    slope, intercept = ridge_line(quadratic.values, centre)
    line = Line(slope, intercept, 2.0 ** float(near.x.min()), 2.0 ** float(near.x.max()))
    return Exponent(value, low, high, freedom=quadratic.freedom), line


def _beyond(cloud: Cloud, centre: Array, place: Array) -> str:
    """Return, in words, beyond which settings the surface is lowest; nothing if within them."""
    x, z = centre + place
    ends = _ends("learning rate", cloud.x, x) + _ends("decay", cloud.z, z)
    # A search in torch's decay ends at another λ for each learning rate.
    ends = ends or _ends("decay λ/α", cloud.z - cloud.x, z - x)
    return f"The surface is lowest beyond {' and '.join(ends)} that was run." if ends else ""


def _ends(name: str, values: Array, at: float) -> list[str]:
    beyond = {"lowest": at < values.min(), "highest": at > values.max()}
    return [f"the {end} {name}" for end, is_beyond in beyond.items() if is_beyond]


def _refused(cloud: Cloud, why: str) -> SurfaceFit:
    nowhere = UNKNOWN, UNKNOWN, UNKNOWN
    return SurfaceFit(*nowhere, unknown(why), 0, len(cloud), why=why)
