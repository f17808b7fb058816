"""Held, not held, or not decided by this much data: one set of rules for every task.

The rules were not all fixed before the first records were seen, as `book` says. A rule looks at a
95 % interval and never at the value alone. Where the interval allows both answers, nothing is
decided. To be as good is to be so but for one percentage point of error; to be better is to be
surely better, by however little.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from weightdecay.results import Estimate, Exponent
from weightdecay.site import Verdict
from weightdecay.studies.formats import number_of, points, points_of

HELD, NOT_HELD, NOT_DECIDED = "held", "not held", "not decided"
#: Errors that differ by less are as good: one percentage point.
MARGIN = 0.01
#: Between upright, s = 0, and diagonal, s = 1.
BETWEEN = 0.5
_ORDER = (NOT_HELD, NOT_DECIDED, HELD)


class _Interval(Protocol):
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def _outcome(found: _Interval, *, above: float = -math.inf, below: float = math.inf) -> str:
    """Return held if the interval lies between two numbers, not held if it lies outside.

    An interval that is open upward lies below infinity.
    """
    if math.isnan(found.low) or math.isnan(found.high):
        return NOT_DECIDED
    if (found.low > above or above == -math.inf) and (found.high < below or below == math.inf):
        return HELD
    return NOT_HELD if found.high < above or found.low > below else NOT_DECIDED


def better(claim: str, less: Estimate, what: str) -> Verdict:
    """Rule on whether something has less error: a difference that is negative if it has."""
    outcome = _outcome(less, below=0)
    rule = f"Held if the interval of {what} lies below 0, not held if it lies above."
    return Verdict(claim, outcome, f"{what}: {points_of(less)}", rule)


def no_worse(claim: str, more: Estimate, what: str) -> Verdict:
    """Rule on whether something has no more error, but for the margin."""
    outcome = _outcome(more, below=MARGIN)
    rule = (
        f"Held if the interval of {what} lies below {points(MARGIN)}, not held if it lies above it."
    )
    return Verdict(claim, outcome, f"{what}: {points_of(more)}", rule)


def alike(claim: str, apart: Estimate, what: str) -> Verdict:
    """Rule on whether two errors are the same, but for the margin."""
    outcome = _outcome(apart, above=-MARGIN, below=MARGIN)
    rule = (
        f"Held if the interval of {what} lies within ±{points(MARGIN)[1:]}, not held if it lies "
        "outside."
    )
    return Verdict(claim, outcome, f"{what}: {points_of(apart)}", rule)


def upright(claim: str, exponent: Exponent) -> Verdict:
    """Rule on whether a basin stands upright: the best decay does not move with the rate."""
    outcome = _outcome(exponent, above=-BETWEEN, below=BETWEEN)
    rule = f"Held if the interval of s lies within ±{BETWEEN}, not held if it lies outside."
    return Verdict(claim, outcome, number_of(exponent, "s"), rule)


def diagonal(claim: str, exponent: Exponent) -> Verdict:
    """Rule on whether a basin lies on a diagonal: the best decay falls as the rate grows."""
    outcome = _outcome(exponent, above=BETWEEN)
    rule = f"Held if the interval of s lies above {BETWEEN}, not held if it lies below."
    return Verdict(claim, outcome, number_of(exponent, "s"), rule)


def between(
    claim: str, found: Exponent | Estimate, what: str, *, above: float, below: float
) -> Verdict:
    """Rule on whether a number lies between two."""
    low, high = (f"{end:g}".replace("-", "−") for end in (above, below))
    inside, beyond = f"between {low} and {high}", "outside"
    if below == math.inf:
        inside, beyond = f"above {low}", "below"
    rule = f"Held if the interval of {what} lies {inside}, not held if it lies {beyond}."
    outcome = _outcome(found, above=above, below=below)
    return Verdict(claim, outcome, number_of(found, what), rule)


#: What is compared, by name, with the edges of its grid that its best lies at.
Edges: TypeAlias = Sequence[tuple[str, Sequence[str]]]


def unless_beyond(verdict: Verdict, *, ones: Edges, rivals: Edges) -> Verdict:
    """Take back a verdict where the best of whoever loses may lie beyond its grid.

    Where a claim is held the rivals lose, and where it is not the ones that it is about.
    """
    losers = {HELD: rivals, NOT_HELD: ones}.get(verdict.outcome, ())
    told = [
        f"{name}'s best is at its grid's edge ({', '.join(edges)})"
        for name, edges in losers
        if edges
    ]
    rule = f"{verdict.rule} Not decided if the best of what loses is at its grid's edge."
    if not told:
        return replace(verdict, rule=rule)
    because = f"{verdict.because}, but {' and '.join(told)}"
    return replace(verdict, outcome=NOT_DECIDED, because=because, rule=rule)


def all_of(claim: str, verdicts: Sequence[Verdict]) -> Verdict:
    """Rule on a claim of several parts: it holds if all do, and not if one does not."""
    outcome = min((verdict.outcome for verdict in verdicts), key=_ORDER.index)
    because = "; ".join(
        f"{verdict.claim}: {verdict.because} ({verdict.outcome})" for verdict in verdicts
    )
    rules = " ".join(dict.fromkeys(verdict.rule for verdict in verdicts))
    return Verdict(claim, outcome, because, f"All parts must hold. {rules}")


def unseen(claim: str, why: str) -> Verdict:
    """Return that nothing was measured."""
    return Verdict(claim, NOT_DECIDED, why, "")
