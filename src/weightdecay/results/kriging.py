"""The error to expect at a setting, predicted from the runs near it (kriging).

The runs near the setting are a `field`. Predictions are averaged over its processes, so a cliff
beside the best widens the interval instead of lifting the value, and a lucky run counts only as far
as its neighbours confirm it. The interval is about the mean error of new seeds at the setting, on
the same test set.
"""

import math
from dataclasses import dataclass

import numpy as np

from weightdecay.results.estimate import Array, Estimate, of_error, summed, within
from weightdecay.results.field import field_of
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, mean

#: With fewer settings, a prediction has no interval.
FEWEST = 9
#: At most so many settings are used, those nearest to the place.
MOST = 150
_REACH = 2.0  # settings within so many doublings of the place are used, along either axis,
_LEAST = 16  # but at least so many
_DEEP = 1.5  # errors so many times the lowest lie on a cliff, and say little about its foot;
_KEPT = 12  # but the lowest so many are kept


@dataclass(frozen=True)
class Expected:
    """The test error that new seeds are expected to have at a setting.

    `why` says why there is no interval; it is empty if there is one.
    """

    error: Estimate
    why: str = ""


def expected_error(
    landscape: Landscape, lr: float, decay: float, *, flat: bool = False
) -> Expected:
    """Predict the mean test error of new seeds at a setting with a decay above 0.

    If the landscape is `flat`, a constant takes the place of the quadratic.
    """
    places, errors = finished(landscape)
    away = places - np.log2([lr, decay])
    used = near(away, mean(errors), reach=_REACH, deep=_DEEP)
    if used.sum() < FEWEST:
        value = float(mean(errors)[np.abs(away).max(1).argmin()])
        there = "there is" if used.sum() == 1 else "there are"
        few = f"it needs {FEWEST} settings that did not diverge, and {there} {used.sum()}"
        return Expected(Estimate(value, math.nan, math.nan), few)
    found = field_of(away, errors, used, flat=flat)
    values, variances, shared = np.array([one.predicted(np.zeros(2)) for one in found.processes]).T
    value = float(found.weights @ values)
    seeds = errors.shape[1]
    fraction = landscape.metric is None
    if seeds < 2 and landscape.in_columns:
        alone = Estimate(value, math.nan, math.nan)
        return Expected(of_error(alone) if fraction else alone, "one seed shows no noise")
    own = float(found.weights @ (variances + (values - value) ** 2)), found.processes[0].freedom
    variance, freedom = summed(own, (float(found.weights @ shared), max(seeds - 1.0, 1.0)))
    error = within(value, variance, freedom)
    return Expected(of_error(error) if fraction else error)


def finished(landscape: Landscape, *, chosen: bool = False) -> tuple[Array, Array]:
    """Return places and test errors, settings × seeds, of settings that did not diverge.

    The errors may also be those that choices are made on.
    """
    cells = [cell for cell in landscape.cells.values() if cell.decay > 0 and not cell.diverged]
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    errors = np.full((len(cells), len(seeds)), np.nan)
    for row, cell in zip(errors, cells, strict=True):
        row[[seeds.index(seed) for seed in cell.seeds]] = cell.chosen if chosen else cell.tested
    known = np.isfinite(errors).any(1)
    return np.log2([(cell.lr, cell.decay) for cell in cells])[known], errors[known]


def near(away: Array, errors: Array, *, reach: float, deep: float) -> Flags:
    """Return which settings a field about a place uses.

    They lie within so many doublings of it along both axes, and their errors are at most so many
    times the lowest. If that is not above 0, the quartile of the others says how far they rise.
    Some are used even if that leaves fewer.
    """
    distance = np.abs(away).max(1)
    ranked = np.sort(distance)
    reach = max(reach, float(ranked[min(_LEAST, len(ranked)) - 1]))
    close = distance <= min(reach, float(ranked[min(MOST, len(ranked)) - 1])) + 1e-6
    lowest = np.sort(errors[close])
    depth = deep * lowest[0]
    if not lowest[0] > 0:
        higher = lowest[lowest > lowest[0]]
        rise = float(np.quantile(higher, 0.25)) - lowest[0] if len(higher) else 0.0
        depth = lowest[0] + deep * max(abs(lowest[0]), rise)
    used: Flags = close & (errors <= max(depth, lowest[min(_KEPT, len(lowest)) - 1]))
    return used
