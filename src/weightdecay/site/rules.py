"""Rules for the two knobs in words: what each costs, and what to do with λ when α changes."""

import math
from collections.abc import Iterable, Iterator, Sequence

from weightdecay.number_format import between, interval, measured, number
from weightdecay.results import Estimate, Exponent, Knobs, Landscape, Recommendation, TransferRegret
from weightdecay.results.estimate import bound
from weightdecay.results.transfer import RULES

#: What each rule λ ∝ α^(−s) keeps.
KEPT = {-1.0: "λ/α", -0.5: "λ/√α", 0.0: "λ", 0.5: "λ·√α", 1.0: "λ·α", 2.0: "λ·α²"}
assert tuple(KEPT) == RULES
#: What a rule does if α is multiplied by 4.
DONE = {
    -1.0: "multiply λ by 4 too, which keeps λ/α",
    -0.5: "multiply λ by 2, which keeps λ/√α",
    0.0: "leave λ as it is",
    0.5: "divide λ by 2, which keeps λ·√α",
    1.0: "divide λ by 4, which keeps λ·α",
    2.0: "divide λ by 16, which keeps λ·α²",
}
# The common rules: the text says if they are excluded, and what they cost.
_USUAL = (-1.0, 0.0, 1.0)
# What it does to torch's weight_decay, λ/α.
_TORCH = {-1.0: "leaves", -0.5: "by 2", 0.0: "by 4", 0.5: "by 8", 1.0: "by 16", 2.0: "by 64"}
_UNKNOWN = "unknown"
_OUT = "an unknown amount, as it leads out of the grid"
_UNCERTAIN = "as fewer than three seeds trained all of these settings"


def costs(found: TransferRegret, metric: str | None) -> str:
    """Return what each rule costs, with its interval, and who judged that."""
    if not found.costs:
        return f"unknown: {found.why.rstrip('.')}"
    told = {KEPT[rule]: cost(found, rule, metric) for rule in found.costs}
    out = [kept for kept, one in told.items() if one == _UNKNOWN]
    if len(out) == len(told):
        return "unknown: every rule leads out of the grid"
    (first, one), *rest = ((kept, one) for kept, one in told.items() if kept not in out)
    unit = "points" if metric is None else f"of {metric}"
    others = "".join(f", {kept} {other}" for kept, other in rest)
    notes = [judges(found), *negative(found, metric)]
    notes += [f"keeping {_and(out)} leads out of the grid"] if out else []
    return f"keeping {first} costs {one} {unit}{others}; {'; '.join(notes)}"


#: What a negative cost is, for tables.
BELOW = "below 0, the carried λ did better than the one tuned there"


def negative(found: TransferRegret, metric: str | None) -> Iterator[str]:
    """Yield what negative costs mean, if some are: noise, or not, or nobody knows."""
    inside = {rule: one for rule, one in found.costs.items() if rule not in found.beyond}
    below = {rule: one for rule, one in inside.items() if _is_negative(one, metric)}
    beyond = [f"keeping {KEPT[rule]}" for rule, one in below.items() if one.high < 0]
    if beyond:
        yield f"{_and(beyond)} did better than the λ tuned there, by more than noise"
    left = [one for one in below.values() if not one.high < 0]
    if left:
        noise = (
            "whether by more than noise is unknown" if math.isnan(left[0].low) else "up to noise"
        )
        yield f"{BELOW}, {noise}"


def _is_negative(one: Estimate, metric: str | None) -> bool:
    """Whether a cost is printed with a minus sign."""
    return amount(one, metric).startswith("−")


def cost(found: TransferRegret, rule: float, metric: str | None) -> str:
    """Return what a rule costs, without a unit; of one that leads out of the grid, at least."""
    one = found.costs[rule]
    return at_least(one, metric) if rule in found.beyond else amount(one, metric)


def at_least(one: Estimate, metric: str | None) -> str:
    """Return what a rule that leads out of the grid costs at least.

    That is the low end of what the last decay there costs, or unknown if it may cost nothing.
    """
    least = bound(one)
    return _UNKNOWN if least is None else f"≥ {_amount(least, metric, _digits(one))}"


def _digits(one: Estimate) -> int:
    """Return the decimals of a cost; a narrow interval has more."""
    return 2 if one.high - one.low < 0.01 else 1


def amount(one: Estimate, metric: str | None) -> str:
    """Return a cost with its interval, in points or in the unit of a task's own metric.

    If the interval is narrow, both have more digits.
    """
    digits = _digits(one)
    value, low, high = (_amount(end, metric, digits) for end in (one.value, one.low, one.high))
    return value if math.isnan(one.low) else f"{value} {between(low, high)}"


def best(found: TransferRegret, metric: str | None) -> str:
    """Return the rule to use and what it costs, in a few words."""
    rule = found.least if found.rule is None else found.rule
    if rule is None:
        return "unknown"
    unit = " points" * (metric is None)
    tied = [KEPT[one] for one in found.tied if one not in (rule, *found.beyond)]
    also = f"; tied with {_and(tied)}" if tied else "" if found.tied else ", an estimate"
    return f"keep {KEPT[rule]}: {cost(found, rule, metric)}{unit}{also}"


def judges(found: TransferRegret) -> str:
    """Return who judged the costs."""
    if found.fresh:
        return f"judged by {found.seeds} fresh seeds"
    if found.tied:
        return "each seed judged what the others chose"
    return f"estimates without an interval, {_UNCERTAIN}"


def source(found: TransferRegret) -> str:
    """Return where the costs come from, in a few words for a table."""
    if found.fresh:
        return f"{found.seeds} fresh seeds"
    return "seeds left out" if found.tied else "an estimate"


def _amount(value: float, metric: str | None, digits: int = 1) -> str:
    """Return a difference of errors in points, or of a task's own metric as it is."""
    return number(100 * value, digits=digits) if metric is None else measured(value, metric)


def undecided(advice: Recommendation) -> bool:
    """Whether settings differ and no rule is left; the sentence then says why s is unknown."""
    return advice.differ is not False and advice.knobs.rule is None


def sentence(advice: Recommendation) -> str:
    """Return what to do with the decay when the learning rate changes."""
    knobs, scape = advice.knobs, advice.landscape
    if advice.differ is False:
        return "The settings do not differ by more than noise, so no rule for λ is better."
    if knobs.rule is None:
        return " ".join(_undecided(knobs))
    judged = _by_regret if knobs.by_regret else _by_exponent
    first = [*_by_direction(knobs.regret, scape)] if knobs.bent else []
    return " ".join([*first, *_done(knobs.rule, scape), *judged(knobs, knobs.rule, scape)])


def _done(rule: float, scape: Landscape) -> Iterable[str]:
    """Yield what a rule does to λ, and to torch's weight_decay."""
    yield f"If you multiply α by 4, {DONE[rule]}."
    if scape.way != "l2":
        yield of_torch(rule)


def of_torch(rule: float) -> str:
    """Return what a rule does to torch's weight_decay, in a sentence."""
    done = _TORCH[rule]
    if done == "leaves":
        return "That leaves torch's weight_decay, λ/α, as it is."
    return f"That divides torch's weight_decay, λ/α, {done}."


def _by_regret(knobs: Knobs, rule: float, scape: Landscape) -> Iterable[str]:
    found = knobs.regret
    others = [f"keeping {KEPT[one]}" for one in found.tied if one not in (rule, *found.beyond)]
    if others:
        yield f"These runs cannot tell its cost from that of {_and(others)}."
    unseen = [f"keeping {KEPT[one]}" for one in found.tied if one in found.beyond]
    if unseen:
        yield f"What {_and(unseen)} costs is unknown, as it leads out of the grid."
    if found.costs[rule].low > 0:
        yield f"It still cost {words(found, rule, scape)}, and no other rule measurably less."
    elif not knobs.free:
        yield f"It cost {words(found, rule, scape)} here."
    yield from _told(
        found, [one for one in _USUAL if one not in found.tied], scape, "In these runs"
    )
    yield from one_way(found)
    if knobs.contradicted:
        yield (
            f"The exponent says otherwise, {interval(knobs.exponent, reason=False)}, but this rule "
            "cost less."
        )


def one_way(found: TransferRegret) -> Iterable[str]:
    """Yield in which direction costs were measured, if in one alone."""
    upward = {used > tuned for tuned, used in found.pairs}
    if len(upward) == 1:
        way, other = ("larger", "smaller") if upward == {True} else ("smaller", "larger")
        yield f"These costs were measured for a {way} α; for a {other} one they are unknown."


def _by_direction(found: TransferRegret, scape: Landscape) -> Iterable[str]:
    """Yield the rules that cost least on either side of a knee, if they are not the same.

    They come first: one rule for both may be wrong for either.
    """
    sides = [found.of_pair(pair) for pair in found.sides or ()]
    known = [(side, rule) for side in sides if (rule := side.least) is not None]
    if len({rule for _, rule in known}) == 2:
        raised, lowered = (
            f"keeping {KEPT[rule]} cost {words(side, rule, scape)}" for side, rule in known
        )
        yield (
            f"The ridge has a knee. From the best α, {raised} if α was raised, and {lowered} if it "
            "was lowered: no other rule cost less there. One rule for both directions:"
        )


def _by_exponent(knobs: Knobs, rule: float, scape: Landscape) -> Iterable[str]:
    found = knobs.regret
    if not knobs.possible:
        yield _nearest(knobs.exponent)
    excluded = [f"keeping {KEPT[one]}" for one in _USUAL if one in knobs.excluded and one != rule]
    if excluded:
        yield f"The interval of s excludes {_and(excluded)}."
    usual = [one for one in _USUAL if one != rule]
    if found.tied:
        yield _unjudged(found, rule, scape)
        others = [one for one in RULES if one in usual or one == found.least]
        yield from _told(found, others, scape, "In these runs")
        yield from one_way(found)
        return
    yield from _told(found, usual, scape, "By an estimate without an interval")
    if found.least not in (None, rule):
        yield f"By that estimate, keeping {KEPT[found.least or 0.0]} costs least."
    yield from one_way(found)


def _unjudged(found: TransferRegret, rule: float, scape: Landscape) -> str:
    if rule not in found.beyond:
        return "No seed has judged this rule."
    if bound(found.costs[rule]) is None:
        return "This rule leads out of the grid, so what it costs is unknown."
    return f"This rule leads out of the grid, and costs {words(found, rule, scape)}."


def _told(
    found: TransferRegret, rules: Sequence[float], scape: Landscape, where: str
) -> Iterable[str]:
    told = [
        f"keeping {KEPT[one]} {'' if at else 'would have cost '}{words(found, one, scape)}"
        for at, one in enumerate(one for one in rules if one in found.costs)
    ]
    if told:
        yield f"{where}, {_and(told)}."


def words(found: TransferRegret, rule: float, scape: Landscape) -> str:
    """Return what a rule costs in words, with its interval if that includes 0."""
    unit = " points" * (scape.metric is None)
    one = found.costs[rule]
    if rule in found.beyond:
        said = cost(found, rule, scape.metric)
        return _OUT if bound(one) is None else f"{said.replace('≥', 'at least')}{unit}"
    digits = 1 if abs(one.value) >= 0.001 else 2
    said = f"{_amount(one.value, scape.metric, digits)}{unit}"
    if said.startswith("−"):
        return f"nothing ({said})"
    if not one.low <= 0:
        return said
    low, high = (_amount(end, scape.metric, digits) for end in (one.low, one.high))
    return f"{said} (uncertain: {between(low, high)})"


def _nearest(found: Exponent) -> str:
    """Return what the interval says if it contains none of the rules."""
    verb = "multiply" if found.high < 0 else "divide"
    low, high = sorted((4.0 ** abs(found.low), 4.0 ** abs(found.high)))
    factors = f"{number(low, digits=1)} to {number(high, digits=1)}"
    return f"This is only the nearest simple rule; the interval says to {verb} λ by {factors}."


def _undecided(knobs: Knobs) -> Iterable[str]:
    if knobs.exponent.value is None:
        why = knobs.exponent.why.strip() or "There is no fit."
        yield f"These runs do not decide what to do with λ when α changes. {why}"
    else:
        left_open = [f"keeping {KEPT[one]}" for one in knobs.left_open]
        if len(left_open) > 1:
            yield f"These runs do not decide between {_and(left_open)}."
        else:  # there is only a bound on s
            left = f"{left_open[0]}, or beyond it" if left_open else "none of the simple rules"
            yield f"These runs only bound s, which leaves {left}."
        excluded = [f"keeping {KEPT[one]}" for one in _USUAL if one in knobs.excluded]
        if excluded:
            yield f"They exclude {_and(excluded)}."
    if knobs.regret.least is not None:
        where = "Of the rules tried" if knobs.regret.tied else "By an estimate without an interval"
        yield f"{where}, keeping {KEPT[knobs.regret.least]} costs least."
        yield from one_way(knobs.regret)


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
