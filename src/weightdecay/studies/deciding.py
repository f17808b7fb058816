"""What it would take to decide a claim that is not decided.

If more seeds were trained and the estimates stayed what they are, the intervals would shrink with
the root of the number of seeds, and exclude their bounds in the end. How many seeds do so in 80 %
of cases is computed here. It is too few where a part of the noise stays: that of s comes from its
two estimators too.

Of a claim whose parts must all hold, and seem to, the part that costs most counts. The parts, and
two bounds of a number, share the 20 % of cases in which something is missed. If a part seems not to
hold, it alone decides, by its wider interval. For a claim of which one part is enough, it is the
other way round.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weightdecay.results import Estimate, Exponent, Judgement
from weightdecay.results.estimate import detectable, seeds_needed, student, variance_of, within
from weightdecay.studies.reasons import Comparison, Difference, Quantity, Sample, Size
from weightdecay.studies.verdicts import (
    AS_GOOD,
    HELD,
    NOT_DECIDED,
    NOT_HELD,
    AnyOf,
    Measures,
    Reason,
    Verdict,
    surely,
)


@dataclass(frozen=True)
class Effort:
    """The seeds that would decide a claim, the runs that they take, and the seconds of these.

    `seeds` is infinite if no number would do. Runs and the seconds of one `worker`, a core or a
    GPU, are None if they are unknown. `part` names the part of the claim that they are for, if it
    has parts; it decides by the interval of 1 − 0.05/`share`.
    """

    seeds: float
    runs: int | None = None
    seconds: float | None = None
    worker: str = "core"
    part: str = ""
    share: int = 1


@dataclass(frozen=True)
class _Test:
    """What a verdict is to be decided by: the interval of one claim in `share`.

    It may miss what is there in this share of cases, `missed`.
    """

    share: int = 1
    missed: float = 0.2

    @property
    def level(self) -> float:
        """The quantile at which the interval ends."""
        return 1 - 0.025 / self.share

    def one_of(self, count: int) -> "_Test":
        """Return the test of each of so many numbers, all of which must be shown."""
        return replace(self, missed=self.missed / count)


@dataclass(frozen=True)
class Blocked:
    """Why more seeds alone decide nothing: this part of a claim is not measured by its runs."""

    part: str = ""


def effort(verdict: Verdict) -> Effort | Blocked | None:
    """Return what would decide a claim; None if it is decided."""
    return None if verdict.outcome != NOT_DECIDED else _effort(verdict, _Test())


def of_judgement(found: Judgement, by: Sample) -> Effort:
    """Return what would show that one method is better than another, worse, or as good.

    Whichever is nearest to be shown counts.
    """
    value = found.ratio.value
    needed = found.needed(max(abs(value), math.log(AS_GOOD) - value))
    return _scaled(needed, found.seeds, by, 1)


def smallest(reason: Reason) -> float | None:
    """Return the smallest effect that the data behind a number show in 80 % of cases.

    It is (t.975 + t.8) standard errors, in the unit of the number; of comparisons and sizes, and of
    curves that are alike, it is a logarithm of a ratio. None if it is unknown.
    """
    if isinstance(reason, Comparison):
        return reason.found.detectable
    found = _number(reason)
    return None if found is None else detectable(found.found)


def _effort(verdict: Verdict, by: _Test) -> Effort | Blocked:
    """Return what would decide a verdict by a test."""
    reason = verdict.reason
    if verdict.at_edge:
        return Blocked()
    match reason:
        case Measures(parts):
            return Blocked() if reason.disagree else _of_part(parts[0], by)
        case AnyOf(parts) | (tuple() as parts):
            some, every = (HELD, NOT_HELD) if isinstance(reason, AnyOf) else (NOT_HELD, HELD)
            return _of_parts(parts, by, some=some, every=every)
    return _of_number(reason, by)


def _of_part(part: Verdict, by: _Test) -> Effort | Blocked:
    found = _effort(part, by)
    return replace(found, part=", ".join(filter(None, (part.claim, found.part))))


def _of_parts(parts: Sequence[Verdict], by: _Test, *, some: str, every: str) -> Effort | Blocked:
    """Return the least effort by which one part is `some`, or else the most for `every` one."""
    telling = [part for part in parts if seems(part) == some]
    wider = replace(by, share=by.share * len(parts))
    tried = [_of_part(part, wider) for part in telling]
    if known := [one for one in tried if isinstance(one, Effort)]:
        return min(known, key=_cost)
    left = [part for part in parts if not surely(part, every, by.share)]
    found = tried or [_of_part(part, by.one_of(len(left))) for part in left]
    blocked = next((one for one in found if isinstance(one, Blocked)), None)
    return blocked or max((one for one in found if isinstance(one, Effort)), key=_cost)


def _cost(one: Effort) -> tuple[float, float]:
    return (one.seeds if one.runs is None else one.runs), one.seeds


def seems(verdict: Verdict) -> str:
    """Return the outcome that the values alone would give; "not decided" where there are none."""
    reason = verdict.reason
    if verdict.outcome != NOT_DECIDED or verdict.at_edge:
        return verdict.outcome
    match reason:
        case Measures(parts):
            return NOT_DECIDED if reason.disagree else seems(parts[0])
        case AnyOf(parts) | (tuple() as parts):
            some, every = (HELD, NOT_HELD) if isinstance(reason, AnyOf) else (NOT_HELD, HELD)
            found = {seems(part) for part in parts}
            return some if some in found else every if found == {every} else NOT_DECIDED
    number = _number(reason)
    return NOT_DECIDED if number is None else number.outcome


def bounds(reason: Comparison | Difference | Quantity | Size) -> tuple[float, float]:
    """Return the bounds between which a number must lie for its claim to hold."""
    match reason:
        case Comparison():
            limit = math.log(reason.margin)
            return -limit if reason.both else -math.inf, limit
        case Size():
            half = math.log(reason.size) / 2
            return (half, math.inf) if half > 0 else (-math.inf, half)
    return reason.above, reason.below


@dataclass(frozen=True)
class _Number:
    """An estimate, the outcome that its value alone would give, and its distance from the bound."""

    found: Estimate
    outcome: str
    distance: float


def _of_number(reason: Reason, by: _Test) -> Effort | Blocked:
    """Return the seeds with which the interval of a number would exclude its bounds."""
    number = _number(reason)
    if number is None or number.outcome == NOT_DECIDED:
        return Blocked()
    assert isinstance(reason, Comparison | Difference | Quantity | Size)
    two = number.outcome == HELD and all(map(math.isfinite, bounds(reason)))
    shown = {"level": by.level, "power": 1 - by.one_of(2 if two else 1).missed}
    if isinstance(reason, Comparison):
        seeds = reason.found.seeds
        needed = reason.found.needed(number.distance, **shown)
    else:
        if reason.by is None:
            return Blocked()
        seeds, spread = reason.by.seeds, variance_of(number.found)
        needed = seeds_needed(number.distance, *spread, seeds=seeds, **shown)
    # Curves that differ by the margin itself are told apart by no number of seeds.
    return _scaled(needed, seeds, reason.by, by.share) if needed > seeds else Blocked()


def _scaled(needed: float, seeds: int, by: Sample | None, share: int) -> Effort:
    """Return the effort of so many seeds, given what `seeds` of them took."""
    if by is None or math.isinf(needed):
        return Effort(needed, share=share)
    more = math.ceil(needed) / seeds
    seconds = None if by.seconds is None else more * by.seconds
    return Effort(needed, math.ceil(more * by.runs), seconds, by.worker, share=share)


def _number(reason: Reason) -> _Number | None:
    """Return what a reason has measured; None if that is nothing, or has no interval."""
    match reason:
        case Comparison():
            found = reason.found.ratio
        case Quantity(found=Exponent() as one):
            if one.value is None:
                return None
            if one.bound is not None:
                return _bound(one, bounds(reason))
            found = Estimate(one.value, one.low, one.high, one.freedom)
        case Difference(found=Estimate() as found) | Size(found=Estimate() as found):
            pass
        case Quantity(found=Estimate() as found):
            pass
        case _:
            return None
    if not math.isfinite(found.low + found.high):
        return None
    above, below = bounds(reason)
    outcome = HELD if above < found.value < below else NOT_HELD
    if isinstance(reason, Quantity) and reason.apart is not None:
        return _Number(reason.apart, outcome, math.log(AS_GOOD))
    return _Number(found, outcome, min(abs(found.value - end) for end in (above, below)))


def _bound(one: Exponent, ends: tuple[float, float]) -> _Number | None:
    """Return what a bound on an exponent would come to with less noise.

    An exponent that is at least 1 can be shown to lie above something, and below nothing.
    """
    if one.value is None or not one.standard_error > 0:
        return None
    sign = 1 if one.bound == "at least" else -1
    value = one.value + sign * student(one.freedom) * one.standard_error
    found = within(value, one.standard_error**2, one.freedom)
    near, far = ends[::sign]
    outcome, end = (NOT_HELD, far) if math.isfinite(far) else (HELD, near)
    beyond = sign * (value - end)
    return _Number(found, outcome if beyond > 0 else NOT_DECIDED, abs(beyond))
