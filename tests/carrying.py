"""What every rule that carries λ costs on the committed runs, and the powers of the best λ.

`python -m tests.carrying` prints the tables; with `--page docs/carrying.md` it writes those of that
page.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.choosing import NAMES
from tests.tables import all_inserted, tell
from weightdecay.labels import LAWS
from weightdecay.number_format import interval, number, power
from weightdecay.records import Run, read
from weightdecay.results import Landscape, TransferRegret, landscapes, pairs_over
from weightdecay.results.budget_moves import budget_moves, judged_moves
from weightdecay.results.proposed import (
    CHANGES,
    PROPOSALS,
    Outcome,
    Outcomes,
    Proposal,
    followed,
    over_budgets,
    over_rates,
    total,
)
from weightdecay.results.transfer import RULES
from weightdecay.site import rule_costs
from weightdecay.site.budgets import KEPT
from weightdecay.studies.budget_numbers import budget_numbers, budget_table
from weightdecay.studies.committed import found_in
from weightdecay.studies.docs_writer import place_of
from weightdecay.studies.findings import Findings
from weightdecay.studies.study import Evidence
from weightdecay.sweeps import Store

RESULTS = Path(__file__).parents[1] / "results"
#: Where rates are compared, where budgets are, and sweeps of budgets that are no study's.
RATES, BUDGETS, SWEEP = "figure-2", "exponents", "budgets"
#: Those whose λ is a fraction of the weight per update, which the rules are about.
DECOUPLED = ("adamw", "sgdw")
WORDS = {"alpha": "α", "batch": "batch size", "data": "data", "epochs": "epochs"}
#: A task's name where it is not its key.
TITLES = {"cifar10": "CIFAR-10"}


@dataclass(frozen=True)
class Group:
    """A method on a task: what carrying λ to another α costs, and its landscapes over budgets."""

    method: str
    place: str
    transfer: TransferRegret
    scapes: tuple[Landscape, ...]

    @property
    def title(self) -> str:
        """Return the method and the task in words."""
        return f"{NAMES[self.method]}, {TITLES.get(self.place, self.place)}"


@cache
def committed() -> list[Group]:
    """Return the groups of the committed results, AdamW first."""
    found = found_in(RESULTS, only=(RATES, BUDGETS))
    rates = [one for one in found if one[0].study.name == RATES]
    groups = [group for pair in rates for group in _groups(*pair, found)]
    return sorted(groups, key=lambda one: [*NAMES].index(one.method))


def _groups(
    rates: Findings, seen: Evidence, found: Iterable[tuple[Findings, Evidence]]
) -> Iterator[Group]:
    sweep = RESULTS / rates.scale.folder / SWEEP
    scapes = [
        panel.landscape
        for one, own in found
        if (one.study.name, place_of(one)) == (BUDGETS, place_of(rates))
        for panel in own.panels.values()
    ]
    if sweep.is_dir():
        runs: list[Run] = [*Store(sweep).runs(), *Store(sweep.with_name(RATES)).runs()]
        scapes += landscapes(run for run in runs if run.config.algorithm in DECOUPLED)
    for row in rates.numbers:
        if row.panel in NAMES and row.transfer.costs:
            own = tuple(one for one in scapes if one.config.algorithm == row.panel)
            yield Group(row.panel, place_of(rates), row.transfer, own)


def varied(groups: Iterable[Group]) -> list[Group]:
    """Return the groups in which a factor of the budget was varied."""
    return [
        one
        for one in groups
        if any(pairs_over(one.scapes, factor) for factor in CHANGES if factor != "alpha")
    ]


def outcomes(group: Group) -> dict[str, Outcomes]:
    """Return what each power costs by what changes."""
    return {
        change: over_rates(group.transfer)
        if change == "alpha"
        else over_budgets(group.scapes, change)
        for change in CHANGES
    }


def rate_rows(groups: Iterable[Group]) -> list[list[str]]:
    """Return what each rule over α costs, with those in bold that are best or tied."""
    groups = list(groups)
    tried = [s for s in RULES if any(s in one.transfer.costs for one in groups)]
    head = ["", *(f"keep {rule_costs.KEPT[s]}" for s in tried)]
    found = [(one.title, over_rates(one.transfer)) for one in groups]
    return [head, *([title, *(_cell(own.get(s)) for s in tried)] for title, own in found)]


def proposal_rows() -> list[list[str]]:
    """Return what each rule keeps if something changes; a dash where it says nothing."""
    head = ["rule", *(f"if {WORDS[change]} changes" for change in CHANGES)]
    return [
        head,
        *([_linked(rule), *(_kept(rule, change) for change in CHANGES)] for rule in PROPOSALS),
    ]


def _linked(rule: Proposal) -> str:
    return f"[{rule.name}](https://arxiv.org/abs/{rule.paper})" if rule.paper else rule.name


def _kept(rule: Proposal, change: str) -> str:
    power = rule.powers.get(change)
    return "–" if power is None else _words(change)[power]


def _words(change: str) -> Mapping[float, str]:
    return rule_costs.KEPT if change == "alpha" else KEPT


def rule_rows(groups: Iterable[Group]) -> list[list[str]]:
    """Return what each rule costs in each group, and which are best; the last rows count these."""
    rows = [["rule", *(WORDS[change] for change in CHANGES), "mean", "worst"]]
    every = {one.title: outcomes(one) for one in groups}
    for group in groups:
        found = every[group.title]
        rows.append([f"**{group.title}**", *_sizes(group), "", ""])
        for rule in PROPOSALS:
            own = followed(rule, found)
            cells = [_cell(own.get(change)) for change in CHANGES]
            rows.append([rule.name, *cells, *_total(rule, found)])
        rows.append(["*best or tied*", *(_best(found, change) for change in CHANGES), "", ""])
    rows.append(["**Best or tied in**", *("" for _ in CHANGES), "*all*", ""])
    for rule in PROPOSALS:
        told = [followed(rule, found) for found in every.values()]
        cells = [_count(own[change] for own in told if change in own) for change in CHANGES]
        rows.append([rule.name, *cells, _count(one for own in told for one in own.values()), ""])
    return rows


def _cell(one: Outcome | None) -> str:
    """Return a cost in points, in bold if it is best or tied with the best."""
    if one is None:
        return "–"
    told = rule_costs.at_least(one.cost, None) if one.beyond else rule_costs.amount(one.cost, None)
    return f"**{told}**" if one.best else told


def _total(rule: Proposal, found: Mapping[str, Outcomes]) -> list[str]:
    summed = total(rule, found)
    if summed is None:
        return ["–", "–"]
    return [
        f"{'≥ ' * summed.beyond}{number(100 * value, digits=1)}"
        for value in (summed.mean, summed.worst)
    ]


def _best(found: Mapping[str, Outcomes], change: str) -> str:
    """Return what the powers that are best or tied keep."""
    own = found[change]
    best = sorted((p for p, one in own.items() if one.best), key=lambda p: own[p].cost.value)
    return "keep " + ", ".join(_words(change)[power] for power in best) if best else "–"


def _count(own: Iterable[Outcome]) -> str:
    """Return how often a rule is best or tied, of where that is known."""
    known = [one.best for one in own if one.best is not None]
    return f"{sum(known)} of {len(known)}" if known else "–"


def _sizes(group: Group) -> list[str]:
    """Return how far α is changed, and the number of updates N."""
    factors = {max(pair) / min(pair) for pair in group.transfer.pairs}
    told = [f"α × or ÷ {_range(factors)}"]
    for factor in CHANGES[1:]:
        pairs = pairs_over(group.scapes, factor)
        ratios = {(used.updates or 0) / (tuned.updates or 1) for tuned, used in pairs}
        told.append(f"N × {_range(ratios)}" if ratios else "–")
    return told


def _range(ratios: Iterable[float]) -> str:
    low, *_, high = (*(found := sorted(round(one) for one in ratios)), found[-1])
    return f"{low}" if low == high else f"{low} to {high}"


def carried(group: Group) -> dict[str, TransferRegret]:
    """Return what fresh seeds say of carrying over each factor, if some trained what is carried."""
    path = RESULTS / f"{group.place}-{SWEEP}" / "carried.parquet"
    if not path.exists() or group.method != "adamw":
        return {}
    runs = read(path).runs
    return {
        factor: judged_moves([*budget_moves(pairs_over(group.scapes, factor))], runs)
        for factor in CHANGES
        if factor != "alpha"
    }


def fresh_rows(groups: Iterable[Group]) -> list[list[str]]:
    """Return what each power costs by seeds that chose nothing, and by those that chose."""
    head = ["", "N, updates", "judged by", *(f"keep {kept}" for kept in KEPT.values())]
    rows = [head]
    for group in groups:
        for factor, found in carried(group).items():
            fresh = f"{found.seeds} fresh seeds"
            told = [
                ("all", "seeds left out", over_budgets(group.scapes, factor)),
                ("all", fresh, over_rates(found)),
                *(
                    (f"{tuned:g} to {used:g}", fresh, over_rates(found.of_pair((tuned, used))))
                    for tuned, used in found.pairs
                ),
            ]
            rows.append([f"**{group.title}, {WORDS[factor]}**", "", "", *("" for _ in KEPT)])
            for at, (pair, by, own) in enumerate(told):
                cells = (_cell(own[p] if at < 2 else replace(own[p], best=None)) for p in KEPT)
                rows.append(["", pair, by, *cells])
    return rows


def exponent_rows(groups: Sequence[Group]) -> list[list[str]]:
    """Return how the best λ moves with the budget, at a fixed α and along the ridge."""
    return budget_table(row for group in groups for row in budget_numbers(group.scapes))


def changing_rows(groups: Iterable[Group]) -> list[list[str]]:
    """Return e at each α where it changes with α: the intervals of two of them do not overlap."""
    rows = [["method", "task", "law", "e at each α"]]
    for group in groups:
        for row in budget_numbers(group.scapes):
            rates = row.exponent.rates
            known = [one for one in rates.values() if one.value is not None]
            if known and max(one.low for one in known) > min(one.high for one in known):
                told = [f"{power(lr)}: {interval(one, symbol='e')}" for lr, one in rates.items()]
                rows.append([row.method, row.task, LAWS[row.factor], "; ".join(told)])
    return rows


def tables() -> dict[str, list[list[str]]]:
    """Return the page's tables by the names of their marks."""
    groups = committed()
    budgets = varied(groups)
    return {
        "rates": rate_rows(groups),
        "proposed": proposal_rows(),
        "rules": rule_rows(budgets),
        "fresh": fresh_rows(budgets),
        "powers": exponent_rows(budgets),
        "changing": changing_rows(budgets),
    }


def written(page: str) -> str:
    """Return the page with its tables made anew."""
    return all_inserted(page, tables(), "tests.carrying", "docs/carrying.md")


if __name__ == "__main__":
    tell("What the rules that carry λ cost.", tables, written)
