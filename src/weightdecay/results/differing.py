"""Whether the settings of a landscape differ by more than noise does.

Two F tests of the logarithms of errors, at 5 % together: the spread of settings against that of
seeds, where settings have several, and a quadratic surface against a constant.
"""

import numpy as np
from scipy.special import fdtrc

from weightdecay.results.estimate import Array
from weightdecay.results.kriging import finished
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import effects, mean, noise
from weightdecay.results.polynomial import determined, terms_of

_LEVEL = 0.05
_FEWEST = 12  # with fewer settings, a surface explains too much by chance
_SPARE = 4
_ROUNDING = 1e-24  # what settings that are alike vary by, as a share of their squared level


def differ(landscape: Landscape) -> bool | None:
    """Return whether settings that did not diverge differ; None if too few runs are there to tell.

    Only settings with a decay above 0 are compared.
    """
    places, errors = finished(landscape)
    known = errors[np.isfinite(errors)]
    heights = np.log(errors) if (known > 0).all() else errors
    everywhere = np.ones(len(errors), dtype=np.bool_)
    levels, seeds = mean(heights - effects(heights)[1]), np.isfinite(errors).sum(1)
    variance, freedom = noise(heights, everywhere)
    least = _ROUNDING * max(1.0, float((levels**2).max()))
    chances = []
    if freedom >= 1 and len(levels) > 1:
        spread = _squares(levels - np.average(levels, weights=seeds), seeds) / (len(levels) - 1)
        chances.append(_chance(len(levels) - 1, freedom, spread, variance, least=least))
    if len(levels) >= _FEWEST:
        away = places - places.mean(0)
        terms = terms_of(determined(away, spare=_SPARE), away[:, 0], away[:, 1])
        root = np.sqrt(seeds)
        fitted = np.linalg.lstsq(root[:, None] * terms, root * levels, rcond=None)[0]
        left = _squares(levels - terms @ fitted, seeds)
        more, free = terms.shape[1] - 1, len(levels) - terms.shape[1]
        explained = _squares(levels - np.average(levels, weights=seeds), seeds) - left
        if more:
            chances.append(_chance(more, free, explained / more, left / free, least=least))
    return min(chances) < _LEVEL / len(chances) if chances else None


def _squares(off: Array, seeds: Array) -> float:
    return float((seeds * off**2).sum())


def _chance(above: float, below: float, spread: float, noise: float, *, least: float) -> float:
    """Return the chance of such a ratio of variances, or a larger one, if they are equal.

    A spread up to the `least` is rounding.
    """
    if not spread > least:
        return 1.0
    return float(fdtrc(above, below, spread / noise)) if noise > 0 else 0.0
