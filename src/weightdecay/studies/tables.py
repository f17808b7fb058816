"""Tables of a study's landscapes and of its second stage, as rows of text under a header."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median, stdev

from weightdecay.labels import NAMES, SYMBOLS
from weightdecay.number_format import interval, measured, metric_words, power
from weightdecay.results import Exponent
from weightdecay.site import rule_costs
from weightdecay.studies.formats import points_of, shares_of
from weightdecay.studies.landscape_numbers import Numbers
from weightdecay.studies.registration import Registration
from weightdecay.studies.second_stage import Judged


def in_torch(numbers: Numbers) -> str:
    """Return the exponent in torch's convention; a dash where there is none."""
    return "–" if numbers.in_torch is None else interval(numbers.in_torch, reason=False)


def _brief(found: Exponent) -> str:
    """Return an exponent with its interval; a dash where it is unknown."""
    return "–" if found.value is None else interval(found, reason=False)


def _error(numbers: Numbers) -> str:
    best = numbers.best
    mean, off = (
        measured(value, numbers.metric, digits=1) for value in (best.mean, best.standard_error)
    )
    return f"{mean} ± {off}"


#: The title of the table of judged settings.
JUDGED = "The chosen settings, and the errors of the seeds that judge them"


def judged_table(registration: Registration | None, second: Judged | None) -> list[list[str]]:
    """Return each method's setting and its fresh seeds' errors, as rows of text under a header."""
    if registration is None or second is None:
        return []
    metric = _metric_of(second)
    rows = []
    for name, runs in second.runs.items():
        method, errors = registration.methods[name], second.errors(name)
        if len(errors) > 1:
            mean, spread, middle = (
                measured(value, metric) for value in (fmean(errors), stdev(errors), median(errors))
            )
            setting = f"{method.choice.lr:g}", f"{SYMBOLS[method.way]} {method.choice.decay:g}"
            rows.append([titled(name), *setting, f"{mean} ± {spread}", middle, str(len(runs))])
    head = ["method", "α", "decay", f"test {metric or 'error'}", "median", "seeds"]
    return [head, *rows] if rows else []


def titled(name: str) -> str:
    """Return a panel's name, or that of a part of it, with its method as the paper spells it."""
    method, comma, rest = name.partition(",")
    return f"{NAMES.get(method, method)}{comma}{rest}"


def _metric_of(second: Judged) -> str | None:
    return next((runs[0].last.metric for runs in second.runs.values() if runs), None)


#: The title of the table of carried decays.
CARRYING = (
    "Transfer regret, in points or in the task's metric: what it costs to tune λ at one learning "
    f"rate and carry it to another by λ ∝ α^(−s); {rule_costs.BELOW}"
)


def carrying_table(rows: Iterable[Numbers], *, pairs: bool = False) -> list[list[str]]:
    """Return what each rule costs, and with `pairs` between each two learning rates, as text.

    An empty list if nothing was measured.
    """
    known = [row for row in rows if row.transfer.costs]
    slopes = sorted({s for row in known for s in row.transfer.costs})
    head = ["landscape", *(f"s = {s:g}".replace("-", "−") for s in slopes), "judged by"]
    table = [head]
    for row in known:
        found = row.transfer
        own = [rule_costs.cost(found, s, row.metric) if s in found.costs else "–" for s in slopes]
        table.append([row.label, *own, rule_costs.source(found)])
        for tuned, used in found.pairs if pairs else ():
            one = found.of_pair((tuned, used))
            own = [rule_costs.cost(one, s, row.metric) if s in one.costs else "–" for s in slopes]
            table.append([f"α = {power(tuned)} to {power(used)}", *own, "–"])
    return table if known else []


#: The columns of a table of landscapes: the name of each, and how its cells are written.
COLUMNS: Mapping[str, Callable[[Numbers], str]] = {
    "landscape": lambda row: row.label,
    "s, the coupling exponent": lambda row: interval(row.exponent),
    "rule to use, and its transfer regret": lambda row: rule_costs.best(row.knobs, row.metric),
    "s in torch's convention": in_torch,
    "s below the best α": lambda row: _brief(row.below),
    "s above it": lambda row: _brief(row.above),
    "s, second estimator": lambda row: _brief(row.check),
    "best α": lambda row: power(row.best.lr),
    "best λ": lambda row: power(row.best.decay),
    "test error there": _error,
    "regret, one knob at a time": lambda row: points_of(row.regret.mean, row.metric),
    "at worst": lambda row: points_of(row.regret.worst, row.metric),
    "sensitivity to α": lambda row: points_of(row.sensitivity, row.metric),
    "interaction": lambda row: shares_of(row.interaction),
    "tied": lambda row: f"{row.tied} of {row.settings}",
}
#: The columns that fit into a terminal.
BRIEF = (
    *("landscape", "s, the coupling exponent", "rule to use, and its transfer regret"),
    *("best α", "best λ", "test error there"),
)


def table_of(rows: Iterable[Numbers], columns: Sequence[str] = tuple(COLUMNS)) -> list[list[str]]:
    """Return landscapes as rows of text under a header; an empty list if there are none."""
    rows = list(rows)
    error = metric_words(rows)
    head = [name.replace("error", error) for name in columns]
    cells = [[COLUMNS[name](row) for name in columns] for row in rows]
    return [head, *cells] if cells else []
