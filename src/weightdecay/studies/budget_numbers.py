"""How the best decay moves with the budget in a study's landscapes, and what carrying it costs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weightdecay.labels import LAWS
from weightdecay.number_format import interval
from weightdecay.results import (
    BudgetExponent,
    Landscape,
    PowerCosts,
    budget_exponents,
    compare_powers,
    pairs_over,
)
from weightdecay.site import rule_costs
from weightdecay.site.budgets import KEPT
from weightdecay.studies.panel import titled

#: The titles of the tables.
BUDGETS = (
    "How the best λ moves with the budget: e at a fixed α, and along the ridge, where each budget "
    "has its own best α"
)
CARRIED = (
    "Transfer regret over budgets, in points or in the task's metric: what it costs to tune λ on "
    "one budget and carry it to one with more updates N at the same α. Each seed judges what the "
    "others chose"
)


@dataclass(frozen=True)
class BudgetNumbers:
    """How the best decay of a method on a task moves with one factor of the budget.

    `costs` are those of the rules that carry it from fewer updates to more.
    """

    method: str
    task: str
    factor: str
    exponent: BudgetExponent
    costs: PowerCosts
    metric: str | None


def budget_numbers(scapes: Iterable[Landscape]) -> Iterator[BudgetNumbers]:
    """Yield a method's exponents on a task, from landscapes of raw and normalized decays."""
    groups: dict[tuple[str, str], list[Landscape]] = {}
    for one in scapes:
        groups.setdefault((titled(one), one.config.task), []).append(one)
    for (method, task), own in groups.items():
        for factor, exponent in budget_exponents(own).items():
            costs = compare_powers(pairs_over(own, factor))
            yield BudgetNumbers(method, task, factor, exponent, costs, own[0].metric)


def budget_table(rows: Iterable[BudgetNumbers]) -> list[list[str]]:
    """Return exponents as rows of text under a header; an empty list if there are none.

    Where there is no exponent, the cell says why.
    """
    head = ["method", "task", "law", "e at a fixed α", "e along the ridge"]
    told = [
        [row.method, row.task, LAWS[row.factor]]
        + [interval(one, symbol="e") for one in (row.exponent.fixed, row.exponent.ridge)]
        for row in rows
    ]
    return [head, *told] if told else []


def carried_table(rows: Iterable[BudgetNumbers]) -> list[list[str]]:
    """Return what each rule costs over each factor as text; an empty list if nothing is known."""
    head = ["method", "task", "over", *(f"keep {kept}" for kept in KEPT.values()), "best or tied"]
    known = [row for row in rows if any(not one.why for one in row.costs.costs.values())]
    told = [[row.method, row.task, row.factor, *_costs(row), _best(row.costs)] for row in known]
    return [head, *told] if told else []


def _costs(row: BudgetNumbers) -> Iterator[str]:
    for one in row.costs.costs.values():
        if one.why:
            yield "unknown"
        elif one.beyond:
            yield rule_costs.at_least(one.least, row.metric)
        else:
            yield rule_costs.amount(one.cost, row.metric)


def _best(found: PowerCosts) -> str:
    """Return the rules that cost least, up to noise if that is known."""
    least = () if found.least is None else (found.least,)
    return ", ".join(KEPT[power] for power in found.tied or least) or "unknown"
