"""The budget exponents of a study's landscapes, which are the rows of their table."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weightdecay.labels import LAWS
from weightdecay.number_format import interval
from weightdecay.results import BudgetExponent, Landscape, budget_exponents
from weightdecay.studies.panel import titled

#: The title of the table.
BUDGETS = (
    "How the best λ moves with the budget: e at a fixed α, and along the ridge, where each budget "
    "has its own best α"
)


@dataclass(frozen=True)
class BudgetNumbers:
    """How the best decay of a method on a task moves with one factor of the budget."""

    method: str
    task: str
    factor: str
    exponent: BudgetExponent


def budget_numbers(scapes: Iterable[Landscape]) -> Iterator[BudgetNumbers]:
    """Yield a method's exponents on a task, from landscapes of raw and normalized decays."""
    groups: dict[tuple[str, str], list[Landscape]] = {}
    for one in scapes:
        groups.setdefault((titled(one), one.config.task), []).append(one)
    for (method, task), own in groups.items():
        for factor, exponent in budget_exponents(own).items():
            yield BudgetNumbers(method, task, factor, exponent)


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
