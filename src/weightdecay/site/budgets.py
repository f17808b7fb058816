"""How the best decay moves with the budget, in words, and which rule carries it to a longer one."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from weightdecay.labels import LAWS
from weightdecay.number_format import between, in_units, interval, number
from weightdecay.results import Estimate, Landscape, budget_exponents, compare_powers, pairs_over
from weightdecay.results.budget import FACTORS, varied_alone
from weightdecay.results.budget_transfer import POWERS, Pair
from weightdecay.site.advice import title

#: What each rule λ ∝ N^(−p) keeps.
KEPT = {0.0: "λ", 0.5: "λ√N", 1.0: "λ·N"}
assert tuple(KEPT) == POWERS


def lines(landscapes: Sequence[Landscape], varied: Sequence[str] = ()) -> list[str]:
    """Return some sentences for each set of landscapes that differ in one factor of the budget.

    `varied` are the settings in which landscapes differ.
    """
    grids = [one for one in landscapes if not one.scattered]
    told = []
    for factor in FACTORS:
        for group in varied_alone(grids, factor):
            own = [one for _, one in group]
            kept = {k: v for k, v in own[0].labels.items() if k not in (factor, "updates")}
            named = title(replace(own[0], labels=kept), [name for name in varied if name != factor])
            found = budget_exponents(own)[factor]
            fixed, ridge = (interval(one, symbol="e") for one in (found.fixed, found.ridge))
            told.append(
                f"{named}, over {factor}: {LAWS[factor]} at a fixed α, {fixed}. Along the ridge, "
                f"where each has its own best α, {ridge}."
            )
            told += _rules(pairs_over(own, factor), own[0].metric)
    return told


def _rules(pairs: Sequence[Pair], metric: str | None) -> Iterator[str]:
    """Yield which rule carries λ to more updates at the lowest cost."""
    if not pairs:
        return
    found = compare_powers(pairs)
    costs = found.inside
    if not costs:
        return
    best, *others = sorted(costs, key=lambda power: costs[power].value)
    cost = f"it cost {_points(costs[best], metric)} of error here"
    if number(in_units(costs[best].value, metric)).startswith("−"):
        cost += ", less than the λ tuned there"
    against = [f"{_points(costs[power], metric)} for {KEPT[power]}" for power in others]
    said = f", against {' and '.join(against)}" if against else ""
    out = [KEPT[power] for power in found.costs if power not in costs]
    far = [f" Keeping {kept} led beyond the trained decays." for kept in out]
    kept = f"To carry λ to more updates N, keep {KEPT[best]}: {cost}{said}."
    if math.isnan(costs[best].low):
        kept += " This is an estimate without an interval, from fewer than three seeds."
    elif rivals := [f"keeping {KEPT[power]}" for power in others if power in found.tied]:
        kept += f" These runs cannot tell its cost from that of {' and '.join(rivals)}."
    yield f"{kept}{''.join(far)}"


def _points(cost: Estimate, metric: str | None) -> str:
    value, low, high = (in_units(end, metric) for end in (cost.value, cost.low, cost.high))
    unit = " points" if metric is None else ""
    ends = "" if math.isnan(low) else f" {between(number(low), number(high))}"
    return f"{number(value)}{unit}{ends}"
