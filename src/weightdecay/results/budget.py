"""How the best decay moves with the epochs T, the data B and the batch b: λ* ~ T^−e · B^−d · b^c.

λ* is the paper's raw λ per update, at the lowest point of the quadratic surface over a landscape's
basin (`surface`): the best decay at the best learning rate. The paper's normalized decay predicts
e = d = c = ½; a timescale that is constant in epochs predicts e = 0 and d = c = 1.

An exponent is a slope through landscapes that differ in one factor alone. Groups of landscapes that
differ in other settings share the slope but have levels of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weightdecay.records import RunConfig
from weightdecay.results import ridge, surface
from weightdecay.results.arrays import grid
from weightdecay.results.estimate import student
from weightdecay.results.exponent import Exponent, bounded, unknown
from weightdecay.results.landscape import Landscape

#: The factors of a budget, and whether the best decay should fall or rise with them.
FACTORS = {"epochs": -1, "data": -1, "batch": 1}
_DRAWS = 400
_ONE_SIGMA = 0.6827
_LEAST = 1e-18


@dataclass(frozen=True)
class Optimum:
    """log2 of a landscape's best raw λ; `edge` is −1 or 1 if it may lie below or above that."""

    log_decay: float
    variance: float
    freedom: float
    edge: int = 0
    why: str = ""


def budget_exponents(landscapes: Sequence[Landscape]) -> dict[str, Exponent]:
    """Measure the exponents of "epochs", "data" and "batch", as far as each varies alone.

    If a landscape's best decay is at the edge of its grid, there is a bound instead of a value. A
    landscape whose best decay cannot be located is left out, and `why` says so.
    """
    found = [(landscape, optimum(landscape)) for landscape in landscapes]
    exponents = {}
    for factor, sign in FACTORS.items():
        groups: dict[tuple[RunConfig, str], list[tuple[float, Optimum]]] = {}
        for landscape, best in found:
            amount = _amount(landscape, factor)
            if amount is not None:
                group = groups.setdefault(_apart(landscape, factor), [])
                group.append((math.log2(amount), best))
        varied = [group for group in groups.values() if len({place for place, _ in group}) > 1]
        if varied:
            exponents[factor] = _slope(varied, sign)
    return exponents


def optimum(landscape: Landscape) -> Optimum:
    """Locate the best raw λ, at the best learning rate."""
    measured = grid(landscape, zero=False)
    if not len(measured.decays):
        return _nowhere("Every decay in a grid is 0.")
    stated = 0.0
    if landscape.way == "normalized_decay":
        if landscape.updates is None:
            return _nowhere("No run of a landscape has finished.")
        stated = -math.log2(landscape.updates) / 2
    edge, why = ridge.best_at_edge(measured)
    if edge:
        said = ridge.windows(measured.scores(), measured.lost(), measured.decays)
        outermost = measured.best[0] in (0, len(measured.lrs) - 1)
        if outermost or not ridge.rises(measured, said):
            return _nowhere(f"{why} The best learning rate is not certain either.")
        decay = measured.decays[0 if edge < 0 else -1]
        return Optimum(math.log2(decay) + stated, 0.0, math.inf, edge, why)
    rates = np.log2(measured.lrs)[:, None]
    fitted = surface.surface(measured, np.log2(measured.decays) + 0 * rates, draws=_DRAWS)
    if fitted is None:
        return _nowhere("A landscape has too few learning rates, decays or seeds.")
    rate, decay = map(float, surface.optimum(fitted, fitted.coefficients))
    if not rates.min() <= rate <= rates.max():
        return _nowhere("A landscape's best learning rate is beyond its grid.")
    _, drawn = surface.optimum(fitted, fitted.draws)
    # A draw without a lowest point counts as infinitely far off.
    off = np.quantile(np.nan_to_num(np.abs(drawn - decay), nan=np.inf), _ONE_SIGMA)
    if not math.isfinite(off):
        return _nowhere("A landscape's basin is too flat for its noise.")
    return Optimum(decay + stated, max(float(off) ** 2, _LEAST), fitted.freedom)


def _nowhere(why: str) -> Optimum:
    return Optimum(math.nan, math.nan, 0, why=why)


def _amount(landscape: Landscape, factor: str) -> int | None:
    """Return the amount of a factor; if all data are used, the examples of an epoch."""
    amount: int | None = getattr(landscape.config, factor)
    return landscape.examples if factor == "data" and amount is None else amount


def _apart(landscape: Landscape, factor: str) -> tuple[RunConfig, str]:
    """Return what landscapes that differ only in the factor have in common."""
    same: dict[str, Any] = {landscape.way: 0, "lr": 1, "seed": 0}
    same[factor] = None if factor == "data" else 1
    return replace(landscape.config, **same), landscape.way


def _slope(groups: list[list[tuple[float, Optimum]]], sign: int) -> Exponent:
    """Return sign · slope through groups that share the slope and have their own levels."""
    points = [(index, *point) for index, group in enumerate(groups) for point in group]
    missing = [best.why for _, _, best in points if not math.isfinite(best.log_decay)]
    left_out = _left_out(missing, len(points))
    points = [point for point in points if math.isfinite(point[2].log_decay)]
    index = np.array([group for group, _, _ in points], dtype=np.intp)
    x = np.array([place for _, place, _ in points])
    y = np.array([best.log_decay for _, _, best in points])
    variance = np.array([best.variance for _, _, best in points])
    free = np.array([best.freedom for _, _, best in points])
    edge = np.array([best.edge for _, _, best in points])
    if len(index) == 0 or not any(np.ptp(x[index == group]) > 0 for group in set(index)):
        return unknown(missing[0] if missing else "Nothing varies.")
    if edge.any():
        why = next(best.why for _, _, best in points if best.edge)
        for group in set(index):
            x[index == group] -= x[index == group].mean()
        why = f"{why} {left_out}".rstrip()
        return bounded(x, y, variance, edge, freedom=free, sign=sign, why=why)
    weight = 1 / variance
    for group in set(index):
        inside = index == group
        for values in (x, y):
            values[inside] -= np.average(values[inside], weights=weight[inside])
    spread = float((weight * x**2).sum())
    value = float((weight * x * y).sum()) / spread
    # The points' freedom about their lines, and two more, as in `exponent.bend`.
    freedom = len(x) - len(set(index)) - 1
    scatter = max(1.0, float((weight * (y - value * x) ** 2).sum()) / (freedom + 2))
    shares = weight * x**2 / spread
    least = 1 / float((shares**2 / free).sum())
    half = student(least) * math.sqrt(scatter / spread)
    return Exponent(sign * value, sign * value - half, sign * value + half, why=left_out)


def _left_out(missing: list[str], among: int) -> str:
    """Return how many landscapes were left out of an exponent, and why the first was."""
    if not missing:
        return ""
    are = "is" if len(missing) == 1 else "are"
    return f"{len(missing)} of {among} landscapes {are} left out: {missing[0]}"
