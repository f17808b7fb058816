"""Verdicts on the paper's claims: held, not held, or not decided by this much data.

The same rules apply to every task. Not all of them were fixed before the first records were seen;
docs/reproduction.md says which. A rule looks at a 95 % interval, never at the value alone. If the
interval allows both answers, nothing is decided. "As good" allows a margin of 3 % of the other
error; "better" means surely better, by however little.

A verdict carries the numbers that decided it. `formats` turns them into text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from weightdecay import checks
from weightdecay.colours import OUTCOMES
from weightdecay.results import Estimate, Exponent, judging
from weightdecay.studies.reasons import (
    Comparison,
    Difference,
    Missing,
    Quantity,
    Sample,
    Size,
    StepGaps,
)

HELD, NOT_HELD, NOT_DECIDED = "held", "not held", "not decided"
#: Errors count as equal up to this ratio.
AS_GOOD = judging.MARGIN
#: The limit between separate knobs, s = 0, and a diagonal, s = 1.
BETWEEN = 0.5


@dataclass(frozen=True)
class AnyOf:
    """Verdicts on parts of which one is enough."""

    parts: tuple["Verdict", ...]


@dataclass(frozen=True)
class Measures:
    """Verdicts by several measures of the same thing, and other numbers to state beside them."""

    parts: tuple["Verdict", ...]
    beside: tuple[Quantity, ...] = ()

    @property
    def disagree(self) -> bool:
        """Whether one measure says the opposite of another."""
        return {HELD, NOT_HELD} <= {part.outcome for part in self.parts}


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim, and what decided it: one measurement, or verdicts on its parts.

    `at_edge` lists landscapes whose best setting lies at an edge of their grid, each with its
    edges, where that took the outcome back. It is None if edges play no role in the rule.
    """

    claim: str
    outcome: str
    reason: "Reason"
    at_edge: tuple[tuple[str, tuple[str, ...]], ...] | None = None

    def __post_init__(self) -> None:
        checks.one_of("outcome", self.outcome, OUTCOMES)


#: What decided a verdict.
Reason: TypeAlias = (
    Difference
    | Comparison
    | Quantity
    | Size
    | StepGaps
    | Missing
    | AnyOf
    | Measures
    | tuple[Verdict, ...]
)
#: The landscapes that are compared: each name, and the grid edges its best lies at.
Edges: TypeAlias = Sequence[tuple[str, Sequence[str]]]


def margin_of(rival: float) -> float:
    """Return the margin within which an error is as good as a rival's: 3 % of the latter.

    On CIFAR-10, one percentage point would be more than most effects. Training losses have no such
    margin: they are compared by their difference alone, since 3 % of a loss near 0 means nothing.
    """
    return (AS_GOOD - 1) * abs(rival)


def compared(claim: str, reason: Comparison) -> Verdict:
    """Compare the interval of a ratio of errors with the margin."""
    ratio, limit = reason.found.ratio, math.log(reason.margin)
    least = -limit if reason.both else -math.inf
    outcome = NOT_DECIDED
    if ratio.low > least and ratio.high < limit:
        outcome = HELD
    elif ratio.low > limit or ratio.high < least:
        outcome = NOT_HELD
    return Verdict(claim, outcome, reason)


def sized(claim: str, reason: Size) -> Verdict:
    """Judge an effect by the size that the paper states.

    Held if the whole interval is nearer to that size than to no effect, on a logarithmic scale; not
    held if it is nearer to no effect.
    """
    limit = math.log(reason.size) / 2
    way = math.copysign(1.0, limit)
    low, high = sorted(way * end for end in (reason.found.low, reason.found.high))
    outcome = HELD if low > abs(limit) else NOT_HELD if high < abs(limit) else NOT_DECIDED
    return Verdict(claim, outcome, reason)


def judged(claim: str, reason: Difference | Quantity) -> Verdict:
    """Compare an interval with its bounds: held if it lies inside, not held if outside.

    A bound that is infinite is no bound, so that an open interval can lie inside.
    """
    low, high, above, below = reason.found.low, reason.found.high, reason.above, reason.below
    outcome = NOT_DECIDED
    if math.isnan(low) or math.isnan(high):
        outcome = NOT_DECIDED
    elif (low > above or above == -math.inf) and (high < below or below == math.inf):
        outcome = HELD
    elif high < above or low > below:
        outcome = NOT_HELD
    return Verdict(claim, outcome, reason)


def better(
    claim: str,
    less: Estimate,
    what: str,
    *,
    metric: str | None = None,
    by: Sample | None = None,
) -> Verdict:
    """Judge whether an error is lower: the difference is negative if it is."""
    return judged(claim, Difference(what, less, below=0.0, metric=metric, by=by))


def no_worse(
    claim: str,
    more: Estimate,
    what: str,
    *,
    rival: float,
    metric: str | None = None,
    by: Sample | None = None,
) -> Verdict:
    """Judge whether an error is no higher than a rival's, up to the margin."""
    within = Difference(what, more, below=margin_of(rival), metric=metric, rival=rival, by=by)
    return judged(claim, within)


def worse(
    claim: str,
    more: Estimate,
    what: str,
    *,
    rival: float,
    metric: str | None = None,
    by: Sample | None = None,
) -> Verdict:
    """Judge whether an error is higher than a rival's, by more than the margin."""
    beyond = Difference(what, more, above=margin_of(rival), metric=metric, rival=rival, by=by)
    return judged(claim, beyond)


def alike(
    claim: str,
    apart: Estimate,
    what: str,
    *,
    rival: float,
    metric: str | None = None,
    by: Sample | None = None,
) -> Verdict:
    """Judge whether an error equals a rival's, up to the margin."""
    margin = margin_of(rival)
    within = Difference(what, apart, -margin, margin, metric=metric, rival=rival, by=by)
    return judged(claim, within)


def diagonal(claim: str, exponent: Exponent, *, by: Sample | None = None) -> Verdict:
    """Judge whether a basin is diagonal: the best decay falls as the learning rate grows."""
    return judged(claim, Quantity("s", exponent, above=BETWEEN, by=by))


def between(
    claim: str,
    found: Exponent | Estimate,
    what: str,
    *,
    above: float,
    below: float,
    by: Sample | None = None,
) -> Verdict:
    """Judge whether a number lies between two others."""
    return judged(claim, Quantity(what, found, above=above, below=below, by=by))


def unless_beyond(verdict: Verdict, settings: Edges) -> Verdict:
    """Take a verdict back if the best setting of a landscape may lie beyond its grid."""
    at_edge = tuple((name, tuple(edges)) for name, edges in settings if edges)
    outcome = NOT_DECIDED if at_edge else verdict.outcome
    return replace(verdict, outcome=outcome, at_edge=at_edge)


def all_of(claim: str, parts: Sequence[Verdict]) -> Verdict:
    """Judge a claim of k parts: held if all are held, not held if one surely is not.

    That all intervals agree by chance is unlikely, so "held" needs no correction. That one of k
    disagrees by chance is not, so "not held" needs an interval of 1 − 0.05/k.
    """
    return Verdict(claim, _all(parts, HELD, NOT_HELD), tuple(parts))


def any_of(claim: str, parts: Sequence[Verdict]) -> Verdict:
    """Judge a claim of which one of k parts is enough: the same, the other way round."""
    return Verdict(claim, _all(parts, NOT_HELD, HELD), AnyOf(tuple(parts)))


def by_measures(claim: str, parts: Sequence[Verdict], beside: Sequence[Quantity] = ()) -> Verdict:
    """Judge a claim by the first measure, unless another of the same thing says the opposite."""
    reason = Measures(tuple(parts), tuple(beside))
    return Verdict(claim, NOT_DECIDED if reason.disagree else parts[0].outcome, reason)


def _all(parts: Sequence[Verdict], every: str, some: str) -> str:
    """Return `every` if it is the outcome of all parts, and `some` if it surely is one's."""
    if all(part.outcome == every for part in parts):
        return every
    return some if any(surely(part, some, len(parts)) for part in parts) else NOT_DECIDED


def surely(part: Verdict, outcome: str, count: int) -> bool:
    """Whether a part has an outcome by the wider interval of one claim in `count`.

    Parts of a part share its interval where one of them is enough, and have the whole of it where
    all must agree. Of measures, the first must be as sure; the others do not contradict it.
    """
    if part.outcome != outcome:
        return False
    match part.reason:
        case Measures(parts):
            return surely(parts[0], outcome, count)
        case AnyOf(parts) | (tuple() as parts):
            if outcome == (HELD if isinstance(part.reason, AnyOf) else NOT_HELD):
                return any(surely(one, outcome, count * len(parts)) for one in parts)
            return all(surely(one, outcome, count) for one in parts)
    return _widened(part, 1 - 0.025 / count).outcome == outcome


def _widened(verdict: Verdict, level: float) -> Verdict:
    """Judge a number again by an interval that ends at another quantile than 0.975."""
    claim = verdict.claim
    match verdict.reason:
        case Comparison() as one:
            ratio = one.found.ratio.widened(level)
            return compared(claim, replace(one, found=replace(one.found, ratio=ratio)))
        case Difference() as less:
            return judged(claim, replace(less, found=less.found.widened(level)))
        case Quantity() as value:
            return judged(claim, replace(value, found=value.found.widened(level)))
        case Size() as effect:
            return sized(claim, replace(effect, found=effect.found.widened(level)))
    return verdict


def unseen(claim: str, why: str) -> Verdict:
    """Return the verdict on a claim for which nothing was measured."""
    return Verdict(claim, NOT_DECIDED, Missing(why))
