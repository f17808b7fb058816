"""Rules for changing the decay with the learning rate, λ ∝ α^(−s), and their costs.

    s = −1   keep λ/α, as `torch.optim.AdamW` does    s = 1   keep λ·α
    s = 0    leave λ alone                            s = 2   keep λ·α²

The exponent is that of `coupling`. If too few learning rates have several seeds for that, it comes
from the fitted surface (`fit`), with a wider interval. If `coupling` withholds a value, because its
estimates contradict each other, there is no rule.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weightdecay.results.arrays import Arrays, grid
from weightdecay.results.estimate import Array, Estimate, within
from weightdecay.results.exponent import Exponent
from weightdecay.results.fit import Surface
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import mean

#: The rules to choose from, each given by its s.
RULES = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
#: The change of α, in doublings, for which the cost of a rule is measured.
CARRIED = 2.0


@dataclass(frozen=True)
class Knobs:
    """Which rule carries a decay to another learning rate, by the interval of the exponent.

    `fitted` says that the exponent comes from the fitted surface. `possible` are the rules inside
    the interval; if there is none, `rule` is the nearest. `rule` is None if several are possible or
    nothing is known. `costs` has, per rule, the test error that it cost in this grid to carry λ to
    an α four times larger or smaller. A rule that leads out of the grid has no cost, and with one
    seed no rule has.
    """

    exponent: Exponent
    fitted: bool
    rule: float | None
    possible: tuple[float, ...]
    costs: Mapping[float, Estimate] = field(default_factory=dict)

    @property
    def excluded(self) -> tuple[float, ...]:
        """Return the rules that the interval excludes."""
        return tuple(rule for rule in RULES if rule not in self.possible)


def knobs(landscape: Landscape, found: Surface, measured: Exponent) -> Knobs:
    """Choose the rule by the measured exponent, or on a grid by the surface's."""
    fitted = measured.value is None and not measured.withheld and not landscape.scattered
    exponent = found.exponent() if fitted else measured
    costs = _costs(landscape, found)
    if exponent.value is None:
        return Knobs(exponent, fitted, None, RULES, costs)
    possible = tuple(rule for rule in RULES if exponent.low <= rule <= exponent.high)
    rule = None
    if len(possible) <= 1 and exponent.bound is None:
        nearest = min(RULES, key=lambda one: abs(one - (exponent.value or 0.0)))
        rule = possible[0] if possible else nearest
    return Knobs(exponent, fitted, rule, possible, costs)


def _costs(landscape: Landscape, found: Surface) -> dict[float, Estimate]:
    """Measure each rule's cost between learning rates of the basin that are a factor 4 apart."""
    measured = grid(landscape, zero=False)
    x = np.log2(measured.lrs)
    inside = [i for i in range(len(x)) if found.low[0] - 1e-6 <= x[i] <= found.high[0] + 1e-6]
    pairs = [(i, j) for i in inside for j in inside if abs(abs(x[i] - x[j]) - CARRIED) < 1e-6]
    if not pairs or len(measured.seeds) < 2:
        return {}
    costs = {}
    for rule in RULES:
        weights = np.zeros(measured.tested.shape[:2])
        for tuned, used in pairs:
            carried = found.ridge(x[tuned]) - rule * (x[used] - x[tuned])
            for place, sign in ((carried, 1.0), (found.ridge(x[used]), -1.0)):
                weights[used] += sign / len(pairs) * between(measured, used, place)
        if np.isfinite(weights).all():
            costs[rule] = _estimate(measured, weights)
    return costs


def between(grid: Arrays, column: int, place: float) -> Array:
    """Return the weights of a column's cells in the error at log2 of a decay; NaN if outside."""
    errors = mean(grid.tested[column])
    known = np.flatnonzero(np.isfinite(errors))
    logs = np.log2(grid.decays[known])
    weights = np.zeros(len(errors))
    if not math.isfinite(place) or not len(known) or not logs[0] <= place <= logs[-1]:
        return weights + math.nan
    above = min(max(int(np.searchsorted(logs, place)), 1), len(known) - 1)
    if len(known) == 1:
        weights[known[0]] = 1.0
        return weights
    share = (place - logs[above - 1]) / (logs[above] - logs[above - 1])
    weights[known[above - 1]], weights[known[above]] = 1 - share, share
    return weights


def _estimate(grid: Arrays, weights: Array) -> Estimate:
    errors, count = mean(grid.tested), np.isfinite(grid.tested).sum(2)
    used = weights != 0
    squares = np.where(used, weights**2 / np.maximum(count, 1), 0.0)
    return within(float((weights[used] * errors[used]).sum()), *grid.spread(squares))
