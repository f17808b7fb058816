"""Held, not held, or not decided by this much data: rules that were written down beforehand.

A rule looks at a 95 % interval and never at the value alone. Where the interval allows both
answers, nothing is decided. A difference of errors below one percentage point is none to speak of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from weightdecay.look import interval
from weightdecay.results import Estimate, Exponent

HELD, NOT_HELD, NOT_DECIDED = "held", "not held", "not decided"
#: What errors must differ by to speak of it: one percentage point.
MARGIN = 0.01
#: Between upright, s = 0, and diagonal, s = 1.
BETWEEN = 0.5
_ORDER = (NOT_HELD, NOT_DECIDED, HELD)


@dataclass(frozen=True)
class Ruling:
    """What becomes of a claim: by which rule, and because of which numbers."""

    claim: str
    outcome: str
    because: str
    rule: str


class _Interval(Protocol):
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def _outcome(found: _Interval, *, above: float = -math.inf, below: float = math.inf) -> str:
    """Return held if the interval lies between two numbers, not held if it lies outside."""
    if math.isnan(found.low) or math.isnan(found.high):
        return NOT_DECIDED
    if found.low > above and found.high < below:
        return HELD
    return NOT_HELD if found.high < above or found.low > below else NOT_DECIDED


def better(claim: str, less: Estimate, what: str) -> Ruling:
    """Rule on whether something has less error: a difference that is negative if it has."""
    outcome = HELD if less.high < 0 else NOT_HELD if less.low > -MARGIN else NOT_DECIDED
    rule = (
        f"Held if the interval of {what} lies below 0; not held if all of it lies above "
        f"{points(-MARGIN)}: then what is gained, if anything, is less than that."
    )
    return Ruling(claim, outcome, f"{what}: {points_of(less)}", rule)


def no_worse(claim: str, more: Estimate, what: str) -> Ruling:
    """Rule on whether something has no more error, but for the margin."""
    outcome = _outcome(more, below=MARGIN)
    rule = (
        f"Held if the interval of {what} lies below {points(MARGIN)}, not held if it lies above it."
    )
    return Ruling(claim, outcome, f"{what}: {points_of(more)}", rule)


def alike(claim: str, apart: Estimate, what: str) -> Ruling:
    """Rule on whether two errors are the same, but for the margin."""
    outcome = _outcome(apart, above=-MARGIN, below=MARGIN)
    rule = (
        f"Held if the interval of {what} lies within ±{points(MARGIN)[1:]}, not held if it lies "
        "outside."
    )
    return Ruling(claim, outcome, f"{what}: {points_of(apart)}", rule)


def upright(claim: str, exponent: Exponent) -> Ruling:
    """Rule on whether a basin stands upright: the best decay does not move with the rate."""
    outcome = _outcome(exponent, above=-BETWEEN, below=BETWEEN)
    rule = f"Held if the interval of s lies within ±{BETWEEN}, not held if it lies outside."
    return Ruling(claim, outcome, said(exponent), rule)


def diagonal(claim: str, exponent: Exponent) -> Ruling:
    """Rule on whether a basin lies on a diagonal: the best decay falls as the rate grows."""
    outcome = _outcome(exponent, above=BETWEEN)
    rule = f"Held if the interval of s lies above {BETWEEN}, not held if it lies below."
    return Ruling(claim, outcome, said(exponent), rule)


def between(
    claim: str, found: Exponent | Estimate, what: str, *, above: float, below: float
) -> Ruling:
    """Rule on whether a number lies between two."""
    low, high = (f"{end:g}" for end in (above, below))
    limits = f"between {low} and {high}" if below < math.inf else f"above {low}"
    rule = f"Held if the interval of {what} lies {limits}, not held if it lies outside."
    told = said(found, what) if isinstance(found, Exponent) else f"{what} = {numbers_of(found)}"
    return Ruling(claim, _outcome(found, above=above, below=below), told, rule)


def all_of(claim: str, rulings: Sequence[Ruling]) -> Ruling:
    """Rule on a claim of several parts: it holds if all do, and not if one does not."""
    outcome = min((ruling.outcome for ruling in rulings), key=_ORDER.index)
    because = "; ".join(
        f"{ruling.claim}: {ruling.because} ({ruling.outcome})" for ruling in rulings
    )
    rules = " ".join(dict.fromkeys(ruling.rule for ruling in rulings))
    return Ruling(claim, outcome, because, f"All parts must hold. {rules}")


def renamed(ruling: Ruling, claim: str) -> Ruling:
    """Return a ruling under another claim."""
    return replace(ruling, claim=claim)


def unseen(claim: str, why: str) -> Ruling:
    """Return that nothing was measured."""
    return Ruling(claim, NOT_DECIDED, why, "")


def points(value: float) -> str:
    """Return a difference of errors in percentage points."""
    return f"{100 * value:+.1f} points".replace("-", "−")


def points_of(found: Estimate) -> str:
    """Return such a difference with its interval."""
    if math.isnan(found.low):
        return "too few seeds to say"
    ends = " to ".join(f"{100 * end:+.1f}" for end in (found.low, found.high))
    return f"{100 * found.value:+.1f} points ({ends})".replace("-", "−")


def numbers_of(found: Estimate) -> str:
    """Return a number with its interval."""
    if math.isnan(found.low):
        return "unknown"
    text = f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
    return text.replace("-", "−")


def said(exponent: Exponent, symbol: str = "s") -> str:
    """Return an exponent as a figure says it, with the reason where there is no value."""
    return interval(exponent, symbol=symbol)
