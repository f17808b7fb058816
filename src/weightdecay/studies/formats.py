"""How studies write their numbers: the one place that turns them into text.

The terminal, the report page, verdicts.json and the docs all use it.
"""

import math
from collections.abc import Callable, Sequence

from weightdecay.number_format import between, interval, measured, number, steady
from weightdecay.results import Estimate, Exponent
from weightdecay.studies.deciding import Blocked, Effort, effort, smallest
from weightdecay.studies.reasons import Comparison, Difference, Missing, Quantity, Size, StepGaps
from weightdecay.studies.verdicts import AS_GOOD, NOT_DECIDED, AnyOf, Measures, Reason, Verdict


def points(value: float, metric: str | None = None, *, digits: int = 1) -> str:
    """Return a difference of errors in percentage points, or of a task's own metric as it is."""
    told = _signed(value, metric, digits)
    return f"{told} points" if metric is None else told


def points_of(found: Estimate, metric: str | None = None) -> str:
    """Return such a difference with its interval, with more digits if that is narrow."""
    if math.isnan(found.low):
        return "unknown from so few runs"
    digits = _digits(found)
    low, high = (_signed(end, metric, digits) for end in (found.low, found.high))
    return f"{points(found.value, metric, digits=digits)} {between(low, high)}"


def _digits(found: Estimate) -> int:
    return 2 if found.high - found.low < 0.01 else 1


def _signed(value: float, metric: str | None, digits: int) -> str:
    text = f"{steady(100 * value):+.{digits}f}" if metric is None else f"{value:+.3g}"
    if float(text) == 0:
        return f"{0:.{digits}f}" if metric is None else "0"
    return text.replace("-", "−")


def shares_of(found: Estimate) -> str:
    """Return a share with its interval, in percent."""
    if math.isnan(found.low):
        return "–"
    value, low, high = (f"{100 * end:.0f}" for end in (found.value, found.low, found.high))
    return f"{value} % {between(low, high)}"


def number_of(found: Exponent | Estimate, what: str) -> str:
    """Return a number by its symbol, with its interval, or with the reason why it is unknown."""
    if isinstance(found, Exponent):
        return interval(found, symbol=what)
    if math.isnan(found.low):
        return f"{what} = unknown"
    return f"{what} = {number(found.value)} {between(number(found.low), number(found.high))}"


def because(verdict: Verdict, *, timed: bool = True) -> str:
    """Return what decided a verdict, in words and numbers; if nothing did, what would.

    Without `timed`, it says nothing of times, which change when the same runs are trained again.
    """
    return _because(verdict) + would_decide(effort(verdict), timed=timed)


def _because(verdict: Verdict) -> str:
    told = _reason(verdict.reason)
    if verdict.outcome == NOT_DECIDED and not verdict.at_edge:
        told += _seen_at_least(verdict.reason) + _seen_by_parts(verdict.reason)
    edges = [
        f"{name}'s best setting is at the edge of its grid ({', '.join(ends)}): widen it there"
        for name, ends in verdict.at_edge or ()
    ]
    return f"{told}, but {' and '.join(edges)}" if edges else told


def _reason(reason: Reason) -> str:
    match reason:
        case Comparison():
            return f"{named(reason)}: {_comparison(reason)}"
        case Difference():
            return f"{named(reason)}: {points_of(reason.found, reason.metric)}"
        case Quantity():
            return number_of(reason.found, reason.what)
        case StepGaps():
            return (
                f"training losses of the first epoch differ by {reason.largest:.1e} at most in "
                f"{reason.sgd_pairs} pairs of SGD, and by {reason.typical:.1e} (median) in "
                f"{reason.adam_pairs} of Adam"
            )
        case Size():
            told = f"{named(reason)}: {_ratio(reason.found, reason.size)}"
            points = reason.points
            return told if points is None else f"{told}, {points_of(points, reason.metric)}"
        case Missing():
            return reason.why
        case AnyOf():
            return _parts(reason.parts)
        case Measures():
            beside = "".join(f"; {number_of(one.found, one.what)}" for one in reason.beside)
            return _parts(reason.parts) + beside + "; these disagree" * reason.disagree
    return _parts(reason)


def _parts(parts: Sequence[Verdict]) -> str:
    return "; ".join(f"{part.claim}: {_because(part)} ({part.outcome})" for part in parts)


def _ratio(found: Estimate, size: float) -> str:
    """Return a ratio, given by its logarithm, as a change in percent or as a number of times."""
    if math.isnan(found.low):
        return "unknown from so few runs"
    ends = (found.value, found.low, found.high)
    if size < 1:
        value, low, high = (_percent(end) for end in ends)
        return f"{value} % {between(low, high)}"
    value, low, high = (number(math.exp(end)) for end in ends)
    return f"{value} times {between(low, high)}"


def _percent(log_ratio: float) -> str:
    return f"{100 * math.expm1(log_ratio):+.1f}".replace("-", "−")


def _seen_at_least(reason: Reason) -> str:
    """Return the smallest effect that this much data shows in 80 % of cases, where it is known."""
    least = smallest(reason)
    if least is None:
        return ""
    match reason:
        case Difference():
            told = points(least, reason.metric, digits=_digits(reason.found)).removeprefix("+")
        case Quantity(apart=None):
            told = number(least)
        case Quantity():
            least = 100 * math.expm1(least)
            return f"; curves that differ by {least:.1f} % would have been told apart"
        case Size():
            told = _ratio(Estimate(least, least, least), 10).partition(" [")[0]
            if reason.size < 1:
                told = f"{_percent(-least)} %".removeprefix("−")
        case _:
            told = f"{100 * math.expm1(least):.1f} %"
    return f"; a difference of {told} would have been seen{_at_the_margin(reason)}"


def _seen_by_parts(reason: Reason) -> str:
    """Return the same for parts that are all decided, though not by their wider intervals."""
    parts = reason.parts if isinstance(reason, AnyOf) else reason
    if not isinstance(parts, tuple) or any(part.outcome == NOT_DECIDED for part in parts):
        return ""
    seen = ((part.claim, _seen_at_least(part.reason)) for part in parts)
    return "".join(f"; {claim}: {told.removeprefix('; ')}" for claim, told in seen if told)


def _at_the_margin(reason: Reason) -> str:
    """Return how many seeds would show a difference of the margin, if more than there are."""
    if not isinstance(reason, Comparison):
        return ""
    needed = reason.found.needed(math.log(AS_GOOD))
    if needed <= reason.found.seeds:
        return ""
    return f", and one of {100 * (AS_GOOD - 1):.0f} % by {_seeds(needed)}"


#: More seeds than these are not counted: an estimate is then too near its bound.
_MOST = 1000


def _seeds(needed: float) -> str:
    if math.isinf(needed):
        return "no number of seeds on this test set"
    return f"about {math.ceil(needed)} seeds" if needed <= _MOST else f"more than {_MOST:,} seeds"


def would_decide(found: Effort | Blocked | None, *, timed: bool = True) -> str:
    """Return what would decide a claim, as the end of a sentence; nothing if it is decided."""
    match found:
        case Blocked(part) if part:
            return f"; how many seeds would decide it is unknown ({part})"
        case Effort():
            by = f" by an interval of 1 − 0.05/{found.share}" * (found.share > 1)
            known = _cost(found, timed=timed) if found.seeds <= _MOST else ""
            beside = ": ".join(filter(None, (found.part, known)))
            return f"; {_seeds(found.seeds)} would decide it{by}" + f" ({beside})" * bool(beside)
    return ""


def _cost(one: Effort, *, timed: bool) -> str:
    """Return the runs of so many seeds, and how long one worker trains them, where known."""
    if one.runs is None:
        return ""
    told = f"{one.runs:,} runs"
    if one.seconds is not None and timed:
        told += f", {_minutes(one.seconds)} of one {one.worker}"
    return told


def _minutes(seconds: float) -> str:
    """Return a time in minutes, or in hours if it is long."""
    if seconds < 120 * 60:
        return f"{seconds / 60:.{1 if seconds < 600 else 0}f} minutes"
    return f"{seconds / 3600:.{1 if seconds < 36000 else 0}f} hours"


def _comparison(one: Comparison) -> str:
    """Return a comparison in percent and in points."""
    found = one.found
    ends = (found.ratio.value, found.ratio.low, found.ratio.high)
    value, low, high = (_percent(end) for end in ends)
    in_points = points_of(found.points, one.metric)
    return f"{value} % {between(low, high)}, {in_points}, {found.seeds} seeds"


def named(one: Difference | Comparison | Size) -> str:
    """Return what was compared, with the word for the error."""
    return one.what.format(error=one.metric or "error")


def rule(verdict: Verdict) -> str:
    """Return the rule that a verdict follows; nothing if nothing was measured."""
    said = _rule(verdict.reason)
    if verdict.at_edge is not None and said:
        said += " Not decided if a best setting is at the edge of its grid."
    return said


def _rule(reason: Reason) -> str:
    match reason:
        case Comparison():
            limit = f"{100 * (reason.margin - 1):.0f} %" if reason.margin > 1 else "0"
            inside, outside = f"below {limit}", "above"
            if reason.both:
                inside, outside = f"within ±{limit}", "outside"
            return (
                f"Held if the interval of {named(reason)}, relative to the latter, lies {inside}, "
                f"not held if it lies {outside}. Settings were chosen and registered before these "
                "seeds were trained."
            )
        case Difference():
            return _bounds(named(reason), reason, lambda end: _margin(end, reason))
        case Quantity():
            return _bounds(reason.what, reason, lambda end: f"{end:g}".replace("-", "−"))
        case StepGaps():
            same, other = f"{reason.same:g}", f"{reason.other:g}"
            return (
                f"Held if, with λ′ = λ/α, training losses of the first epoch differ by less than "
                f"{same} of the loss in all pairs of SGD without momentum, and by more than "
                f"{other} in half of Adam's; not held if by more than {other} in a pair of SGD, or "
                f"by less than {same} in more than half of Adam's."
            )
        case Size():
            size = math.log(reason.size)
            paper = _ratio(Estimate(size, size, size), reason.size).partition(" [")[0]
            return (
                f"Held if the interval of {named(reason)} lies nearer to the paper's {paper} than "
                "to no effect, not held if it lies nearer to none, on a logarithmic scale."
            )
        case Missing():
            return ""
        case AnyOf():
            return (
                f"One part must hold, by its interval of 1 − 0.05/parts.{_rules(reason.parts)} "
                "Not held if no part is."
            )
        case Measures():
            return (
                "The first measure decides, unless another says the opposite: then nothing is "
                f"decided.{_rules(reason.parts)}"
            )
    return (
        f"All parts must hold.{_rules(reason)} Not held if a part is not, by its interval of "
        "1 − 0.05/parts."
    )


def _margin(end: float, one: Difference) -> str:
    """Return a bound of a difference; if it is the margin, with the error that it is a share of."""
    if one.rival is None:
        return points(end, one.metric)
    share = f"{100 * (AS_GOOD - 1):.0f} % of {measured(one.rival, one.metric)}"
    return f"{points(end, one.metric, digits=2)} ({share})"


def _rules(parts: Sequence[Verdict]) -> str:
    """Return the rules of parts, each once and after a space; what was not measured has none."""
    told = filter(None, dict.fromkeys(rule(part) for part in parts))
    return "".join(f" {one}" for one in told)


def _bounds(what: str, one: Difference | Quantity, written: Callable[[float], str]) -> str:
    above, below = one.above, one.below
    if above == -math.inf:
        inside, outside = f"below {written(below) if below else 0}", "above"
    elif below == math.inf:
        inside, outside = f"above {written(above) if above else 0}", "below"
    elif above == -below:
        inside, outside = f"within ±{written(below).removeprefix('+')}", "outside"
    else:
        inside, outside = f"between {written(above)} and {written(below)}", "outside"
    return f"Held if the interval of {what} lies {inside}, not held if it lies {outside}."
