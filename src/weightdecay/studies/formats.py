"""Numbers into words: the one place that says how the terminal, a page and the docs write them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from weightdecay.number_format import interval, percent, power
from weightdecay.results import Estimate, Exponent
from weightdecay.studies.landscape_numbers import Numbers


def points(value: float) -> str:
    """Return a difference of errors in percentage points."""
    return f"{_signed(value)} points"


def points_of(found: Estimate) -> str:
    """Return such a difference with its interval."""
    if math.isnan(found.low):
        return "unknown from so few runs"
    return f"{points(found.value)} ({_signed(found.low)} to {_signed(found.high)})"


def _signed(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def shares_of(found: Estimate) -> str:
    """Return a share with its interval, in percent."""
    if math.isnan(found.low):
        return "–"
    return f"{100 * found.value:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"


def number_of(found: Exponent | Estimate, what: str) -> str:
    """Return a number by its symbol, with its interval, or with the reason why it is unknown."""
    if isinstance(found, Exponent):
        return interval(found, symbol=what)
    if math.isnan(found.low):
        return f"{what} = unknown"
    text = f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
    return f"{what} = {text.replace('-', '−')}"


def in_torch(numbers: Numbers) -> str:
    """Return the exponent in torch's convention; a dash where there is none."""
    return "–" if numbers.in_torch is None else interval(numbers.in_torch, reason=False)


def _error(numbers: Numbers) -> str:
    best = numbers.best
    return f"{percent(best.mean, digits=1)} ± {percent(best.standard_error, digits=1)}"


#: The columns of a table of landscapes: what each is called, and how it is written.
COLUMNS: Mapping[str, Callable[[Numbers], str]] = {
    "landscape": lambda row: row.label,
    "s, the coupling exponent": lambda row: interval(row.exponent),
    "s in torch's convention": in_torch,
    "best α": lambda row: power(row.best.lr),
    "best λ": lambda row: power(row.best.decay),
    "test error there": _error,
    "regret, one knob at a time": lambda row: points_of(row.regret.mean),
    "at worst": lambda row: points_of(row.regret.worst),
    "sensitivity to α": lambda row: points_of(row.sensitivity),
    "interaction": lambda row: shares_of(row.interaction),
    "tied": lambda row: f"{row.tied} of {row.settings}",
}
#: Those that fit into a terminal.
BRIEF = ("landscape", "s, the coupling exponent", "best α", "best λ", "test error there")


def table_of(rows: Iterable[Numbers], columns: Sequence[str] = tuple(COLUMNS)) -> list[list[str]]:
    """Return landscapes as rows of text under a header; nothing where there are none."""
    told = [[COLUMNS[name](row) for name in columns] for row in rows]
    return [list(columns), *told] if told else []
