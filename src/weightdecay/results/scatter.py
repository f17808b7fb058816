"""The surface of a random search: the best α and λ, and s, of settings that form no grid.

The errors in a window about the best (`scatter_window`) are fitted by a polynomial (`polynomial`).
s is read off the quadratic. Its variance comes from leaving out one setting after another (the
jackknife), so that neither unequal noise nor repeats of a setting make an interval too narrow. The
interval of s is Fieller's, which is exact for a ratio.

The best setting is that of `lowest`: basins rise more steeply with too much decay than with too
little, which pulls a polynomial's lowest point to one side.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from weightdecay.results.estimate import UNKNOWN, Array, Estimate
from weightdecay.results.exponent import Exponent, Line, unknown
from weightdecay.results.field import one_thread
from weightdecay.results.kriging import expected_error
from weightdecay.results.landscape import Landscape
from weightdecay.results.lowest import Lowest, lowest
from weightdecay.results.polynomial import Polynomial, ratio, ridge_line
from weightdecay.results.ridge import CERTAIN
from weightdecay.results.scatter_window import FEWEST, Cloud, Indices, stationary, window

#: The fewest learning rates, and decays, that must differ.
DIFFERENT = 4
#: The factor that the highest of each must be of the lowest.
SPAN = 4.0
_STRAIGHT = 0.97  # above this correlation, the two knobs were changed together


@dataclass(frozen=True)
class SurfaceFit:
    """The best learning rate and decay of a fitted surface, its error there, and s.

    Each has its 95 % interval. `error` is the test error to expect there (`kriging`). `used` of
    `points` were in the window after `aside` were set aside as too far off. What is unknown is NaN
    or has no value, and `why` says what is missing. A basin too flat for s has a best setting all
    the same. `line` is the ridge, to draw it.
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
    with one_thread():
        fitted, found = _fitted(landscape)
        if found is None:
            return fitted
        lr, decay = (Estimate(one.value, one.low, one.high) for one in found.possible())
        error = expected_error(landscape, lr.value, decay.value).error
        return replace(fitted, lr=lr, decay=decay, error=error)


def fit_exponent(landscape: Landscape) -> SurfaceFit:
    """Fit a surface for s alone, which takes less time; the best setting is left unknown."""
    return _fitted(landscape)[0]


def _fitted(landscape: Landscape) -> tuple[SurfaceFit, Lowest | None]:
    """Return the fit without its best setting, and that; None if it is unknown."""
    cloud = _cloud(landscape)
    missing = _missing(cloud)
    if missing:
        return _refused(cloud, missing), None
    kept, aside = window(cloud)
    near = cloud.take(kept)
    centre = np.array([near.x.mean(), near.z.mean()])
    quadratic = near.fitted(near.chosen, 2, centre)
    if quadratic is None:
        few = "The settings near the best lie too close to a line: vary both α and λ there."
        return _refused(cloud, few), None
    found = lowest(_without(landscape, cloud.setting[aside]))
    nowhere, counts = (UNKNOWN, UNKNOWN, UNKNOWN), (len(near), len(cloud), len(aside))
    if not _curved(quadratic):
        flat = (
            "Near the best, the surface bends with λ by no more than it misses the runs, so they "
            "do not show how the best λ moves with α. Add runs there."
        )
        return SurfaceFit(*nowhere, unknown(flat), *counts, why=flat), found
    exponent, line = _exponent(near, quadratic, centre)
    beyond = _beyond(cloud, centre, stationary(quadratic)) if found is None or found.edge else ""
    if beyond:
        why, decays = f"{beyond} Add runs there.", "decay" in beyond
        s = unknown(why) if decays else replace(exponent, why=why)
        return SurfaceFit(*nowhere, s, *counts, None if decays else line, why), None
    return SurfaceFit(*nowhere, exponent, *counts, line), found


def _without(landscape: Landscape, numbers: Indices) -> Landscape:
    """Return a landscape without some of its cells, by their numbers."""
    cells = enumerate(landscape.cells.items())
    kept = dict(item for number, item in cells if number not in {*numbers.tolist()})
    return replace(landscape, cells=kept)


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
