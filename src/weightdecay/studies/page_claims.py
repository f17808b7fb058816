"""Verdicts as rows of a forest plot: each measured number with its interval and its bounds."""

import math
from collections.abc import Iterator

from weightdecay.results import Estimate, Exponent
from weightdecay.site import PageClaim, PageInterval
from weightdecay.studies.formats import because, named, number_of, rule
from weightdecay.studies.reasons import Comparison, Difference, Quantity, Size
from weightdecay.studies.verdicts import AnyOf, Measures, Verdict

_PERCENT = "change of the error, in %"
_S = "s: the best λ moves as λ ∝ α⁻ˢ"
_OTHER = "other numbers"


def page_claim(one: Verdict, *, prefix: str = "") -> PageClaim:
    """Return a verdict as a page shows it."""
    return PageClaim(f"{prefix}{one.claim}", one.outcome, because(one), rule(one), intervals(one))


def intervals(verdict: Verdict, *, part: str = "") -> list[PageInterval]:
    """Return the numbers that decided a verdict, also of its parts; those without any have none."""
    match verdict.reason:
        case AnyOf(parts) | Measures(parts) | (tuple() as parts):
            return [row for one in parts for row in intervals(one, part=_joined(part, one.claim))]
    return list(_interval(verdict, part))


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _interval(verdict: Verdict, part: str) -> Iterator[PageInterval]:
    """Yield the one number of a verdict without parts, in the unit that people read it in."""
    match verdict.reason:
        case Difference() as one:
            factor = 100.0 if one.metric is None else 1.0
            unit = "percentage points of error" if one.metric is None else str(one.metric)
            ends = [factor * end for end in (*_ends(one.found), one.above, one.below)]
            what = _joined(part, named(one))
        case Comparison() as one:
            margin = 100 * (one.margin - 1)
            least = 100 * (1 / one.margin - 1) if one.both else -math.inf
            ends = [*map(_percent, _ends(one.found.ratio)), least, margin]
            unit, what = _PERCENT, _joined(part, named(one))
        case Quantity() as one:
            ends = [*_ends(one.found), one.above, one.below]
            unit, what = (_S, part) if one.what == "s" else (_OTHER, _joined(part, one.what))
        case Size() as one:
            less, half = one.size < 1, math.log(one.size) / 2
            told = [_percent(end) if less else math.exp(end) for end in (*_ends(one.found), half)]
            ends = [*told[:3], *((-math.inf, told[3]) if less else (told[3], math.inf))]
            unit, what = _PERCENT if less else "times", _joined(part, named(one))
        case _:
            return
    if not math.isnan(ends[0]):
        value, low, high, above, below = ends
        said = _said(verdict)
        yield PageInterval(what, verdict.outcome, unit, value, low, high, above, below, said)


def _said(verdict: Verdict) -> str:
    """Return the number with its interval, without the name of what was measured."""
    match verdict.reason:
        case Quantity() as one:
            return number_of(one.found, one.what).partition(" = ")[2]
        case _:
            told = because(verdict).partition(": ")[2].partition(";")[0]
            # The first interval is in the unit of the axis; others and remarks are in its words.
            end = max(told.find("]"), 0) or told.find(")")
            return told[: end + 1] or told


def _ends(found: Estimate | Exponent) -> tuple[float, float, float]:
    value = math.nan if found.value is None else found.value
    low, high = (value if math.isnan(end) else end for end in (found.low, found.high))
    return value, low, high


def _percent(log_ratio: float) -> float:
    return 100 * math.expm1(log_ratio)
