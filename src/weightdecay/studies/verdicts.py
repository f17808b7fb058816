"""Verdicts on the paper's claims: held, not held, or not decided by this much data.

The same rules apply to every task. Not all of them were fixed before the first records were seen;
docs/reproduction.md says which. A rule looks at a 95 % interval, never at the value alone. If the
interval allows both answers, nothing is decided. "As good" allows a margin of one percentage point
of error; "better" means surely better, by however little.

A verdict carries the numbers that decided it. `formats` turns them into text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from weightdecay import checks
from weightdecay.colours import OUTCOMES
from weightdecay.results import Estimate, Exponent, Judgement, Landscape, judging

HELD, NOT_HELD, NOT_DECIDED = "held", "not held", "not decided"
#: Errors that differ by less count as equal: one percentage point.
MARGIN = 0.01
#: In a second stage, errors count as equal up to this ratio.
AS_GOOD = judging.MARGIN
#: The limit between separate knobs, s = 0, and a diagonal, s = 1.
BETWEEN = 0.5


@dataclass(frozen=True)
class Difference:
    """A difference between test errors, and the bounds that its interval is compared with.

    `what` names it; "{error}" in it stands for the word "error", or for the task's own `metric`.
    """

    what: str
    found: Estimate
    above: float = -math.inf
    below: float = math.inf
    metric: str | None = None


@dataclass(frozen=True)
class Comparison:
    """Two methods at registered settings, judged by seeds that chose nothing.

    `found` has the mean of ln(error / other error), which is compared with the logarithm of
    `margin`: 1 for "better", and a little more for "as good". With `both`, the ratio must also be
    above 1 / `margin`.
    """

    what: str
    found: Judgement
    margin: float = 1.0
    metric: str | None = None
    both: bool = False


@dataclass(frozen=True)
class Quantity:
    """Any other measured number, and the bounds that its interval is compared with."""

    what: str
    found: Exponent | Estimate
    above: float = -math.inf
    below: float = math.inf


@dataclass(frozen=True)
class StepGaps:
    """Relative differences between the training losses of twin runs after one epoch.

    `largest` is over the pairs of SGD, `typical` the median over the pairs of Adam. Twins took the
    same steps if they differ by less than `same`, and other steps if by more than `other`.
    """

    largest: float
    sgd_pairs: int
    typical: float
    adam_pairs: int
    same: float
    other: float


@dataclass(frozen=True)
class Size:
    """An effect whose size the paper states, as a ratio: 0.85 for 15 % less, 10 for ten times.

    `found` estimates the logarithm of the ratio. Without any effect it is 0.
    """

    what: str
    found: Estimate
    size: float
    metric: str | None = None


@dataclass(frozen=True)
class Missing:
    """Why nothing was measured."""

    why: str


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
#: The landscapes on one side of a comparison: each name, and the grid edges its best lies at.
Edges: TypeAlias = Sequence[tuple[str, Sequence[str]]]


def margin_of(rival: Landscape) -> float:
    """Return the margin within which an error is as good as a rival's.

    It is one percentage point. For a metric of the task's own it is 1 % of the rival's best value.
    """
    return MARGIN if rival.metric is None else MARGIN * abs(rival.best.mean)


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


def better(claim: str, less: Estimate, what: str, *, metric: str | None = None) -> Verdict:
    """Judge whether an error is lower: the difference is negative if it is."""
    return judged(claim, Difference(what, less, below=0.0, metric=metric))


def no_worse(
    claim: str, more: Estimate, what: str, *, margin: float = MARGIN, metric: str | None = None
) -> Verdict:
    """Judge whether an error is no higher, up to the margin."""
    return judged(claim, Difference(what, more, below=margin, metric=metric))


def alike(
    claim: str, apart: Estimate, what: str, *, margin: float = MARGIN, metric: str | None = None
) -> Verdict:
    """Judge whether two errors are equal, up to the margin."""
    return judged(claim, Difference(what, apart, above=-margin, below=margin, metric=metric))


def diagonal(claim: str, exponent: Exponent) -> Verdict:
    """Judge whether a basin is diagonal: the best decay falls as the learning rate grows."""
    return judged(claim, Quantity("s", exponent, above=BETWEEN))


def between(
    claim: str, found: Exponent | Estimate, what: str, *, above: float, below: float
) -> Verdict:
    """Judge whether a number lies between two others."""
    return judged(claim, Quantity(what, found, above=above, below=below))


def unless_beyond(verdict: Verdict, *, ones: Edges, rivals: Edges) -> Verdict:
    """Take a verdict back if the loser's best setting may lie beyond its grid.

    If the claim is held, the rivals lose; if it is not held, those that the claim is about do.
    """
    losers = {HELD: rivals, NOT_HELD: ones}.get(verdict.outcome, ())
    at_edge = tuple((name, tuple(edges)) for name, edges in losers if edges)
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
    return some if any(_surely(part, some, len(parts)) for part in parts) else NOT_DECIDED


def _surely(part: Verdict, outcome: str, count: int) -> bool:
    """Whether a part has an outcome by the wider interval of one claim in `count`."""
    if part.outcome != outcome:
        return False
    level = 1 - 0.025 / count
    match part.reason:
        case Comparison() as one:
            ratio = one.found.ratio.widened(level)
            again = compared(part.claim, replace(one, found=replace(one.found, ratio=ratio)))
        case Difference() as less:
            again = judged(part.claim, replace(less, found=less.found.widened(level)))
        case Quantity() as value:
            again = judged(part.claim, replace(value, found=value.found.widened(level)))
        case Size() as effect:
            again = sized(part.claim, replace(effect, found=effect.found.widened(level)))
        case _:
            return True
    return again.outcome == outcome


def unseen(claim: str, why: str) -> Verdict:
    """Return the verdict on a claim for which nothing was measured."""
    return Verdict(claim, NOT_DECIDED, Missing(why))
