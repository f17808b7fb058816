"""Rules for the two knobs in words: what to do with the decay when the learning rate changes."""

from collections.abc import Iterable, Sequence

from weightdecay.number_format import interval, joined, noun, number
from weightdecay.results import Exponent, Knobs, Landscape, Recommendation, TransferRegret
from weightdecay.results.transfer import RULES
from weightdecay.site.rule_costs import KEPT, is_known, worded, words

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


def decay_of(scape: Landscape) -> str:
    """Return what the decay is called, in the table's own convention."""
    return "weight_decay" if scape.told_in_torch else "λ"


def undecided(advice: Recommendation) -> bool:
    """Whether settings differ and no rule is left; the sentence then says why s is unknown."""
    return advice.differ is not False and advice.knobs.rule is None


def sentence(advice: Recommendation) -> str:
    """Return what to do with the decay when the learning rate changes."""
    knobs, scape = advice.knobs, advice.landscape
    if advice.differ is False:
        return (
            "The settings do not differ by more than noise, so no rule for "
            f"{decay_of(scape)} is better."
        )
    if knobs.rule is None:
        return " ".join(_undecided(knobs, decay_of(scape)))
    judged = _by_regret if knobs.by_regret else _by_exponent
    first = [*by_direction(knobs.regret, scape)] if knobs.bent else []
    return " ".join([*first, *_done(knobs.rule, scape), *judged(knobs, knobs.rule, scape)])


def _done(rule: float, scape: Landscape) -> Iterable[str]:
    """Yield what a rule does to λ and to torch's weight_decay, the table's own first."""
    if scape.told_in_torch:
        yield f"If you multiply α by 4, {done_in_torch(rule)}."
        yield f"For λ, which is α · weight_decay, that means: {DONE[rule]}."
        return
    yield f"If you multiply α by 4, {DONE[rule]}."
    if scape.way != "l2":
        yield of_torch(rule)


def of_torch(rule: float) -> str:
    """Return what a rule does to torch's weight_decay, in a sentence."""
    done = _TORCH[rule]
    if done == "leaves":
        return "That leaves torch's weight_decay, λ/α, as it is."
    return f"That divides torch's weight_decay, λ/α, {done}."


def done_in_torch(rule: float) -> str:
    """Return what to do with torch's weight_decay if α is multiplied by 4."""
    done = _TORCH[rule]
    return "leave weight_decay as it is" if done == "leaves" else f"divide weight_decay {done}"


def of_decay(rule: float) -> str:
    """Return what a rule does to λ, for those who state torch's weight_decay, in a sentence."""
    return f"For λ, which is α · weight_decay, that means: {DONE[rule].partition(',')[0]}."


def _by_regret(knobs: Knobs, rule: float, scape: Landscape) -> Iterable[str]:
    found = knobs.regret
    others = [f"keeping {KEPT[one]}" for one in found.tied if one not in (rule, *found.beyond)]
    if others:
        yield f"These runs cannot tell its cost from that of {joined(others)}."
    kept, unchanged = f"Keeping {KEPT[rule]}", scape.unchanged
    if rule != unchanged and unchanged not in found.tied and found.slight(unchanged):
        what = f"leave {decay_of(scape)} as it is"
        yield f"You may also {what}: that costs at most 3 % of the {noun([scape])}."
    if found.costs[rule].low > 0 and worded(found, rule, scape.metric).rises:
        no_other = "no other rule for both directions" if knobs.bent else "no other rule"
        yield f"{kept} still cost {words(found, rule, scape)}, and {no_other} measurably less."
    elif not found.slight(rule):
        yield f"{kept} cost {words(found, rule, scape)} here."
    asked = [one for one in RULES if one in (found.beyond if one in found.tied else _USUAL)]
    yield from _told(found, asked, scape, "In these runs")
    yield from measured_over(found)
    if knobs.contradicted:
        less = "this rule cost less" if knobs.tried else "no rule that was tried cost less"
        yield (
            f"The exponent says otherwise, {interval(knobs.exponent, reason=False)}, but {less}."
        )


def measured_over(found: TransferRegret) -> Iterable[str]:
    """Yield by how much and in which direction α changed, if not by 4 in both."""
    upward = {used > tuned for tuned, used in found.pairs}
    if len(upward) == 1:
        way, other = ("larger", "smaller") if upward == {True} else ("smaller", "larger")
        yield f"These costs were measured for a {way} α; for a {other} one they are unknown."
    factors = [max(one) / min(one) for one in found.pairs]
    shown = list(dict.fromkeys(f"{one:.2g}" for one in sorted(factors)))
    if len(shown) > 1:
        yield f"α was changed by factors of {shown[0]} to {shown[-1]}."
    elif factors and shown != ["4"]:
        yield f"α was changed by a factor of {shown[0]}, not 4."


def by_direction(found: TransferRegret, scape: Landscape) -> Iterable[str]:
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
            f"was lowered: no other rule cost less there.{_in_torch(known, scape)} One rule for "
            "both directions:"
        )


def _in_torch(sides: Sequence[tuple[object, float]], scape: Landscape) -> str:
    """Return what rules for a larger and a smaller α mean for weight_decay, if that is stated."""
    if not scape.told_in_torch:
        return ""
    raised, lowered = (done_in_torch(rule) for _, rule in sides)
    return (
        f" That is: {raised} if α is multiplied by 4, and {lowered.replace('divide', 'multiply')} "
        "if α is divided by 4."
    )


def _by_exponent(knobs: Knobs, rule: float, scape: Landscape) -> Iterable[str]:
    found = knobs.regret
    if not knobs.possible:
        yield _nearest(knobs.exponent)
    excluded = [f"keeping {KEPT[one]}" for one in _USUAL if one in knobs.excluded and one != rule]
    if excluded:
        yield f"The interval of s excludes {joined(excluded)}."
    usual = [one for one in _USUAL if one != rule]
    if found.tied:
        yield _unjudged(knobs, rule, scape)
        others = [one for one in RULES if one in usual or one == found.least]
        yield from _told(found, others, scape, "In these runs")
        yield from measured_over(found)
        return
    yield from _told(found, usual, scape, "By an estimate without an interval")
    if found.least not in (None, rule):
        yield f"By that estimate, keeping {KEPT[found.least or 0.0]} costs least."
    yield from measured_over(found)


def _unjudged(knobs: Knobs, rule: float, scape: Landscape) -> str:
    found, swept = knobs.regret, knobs.swept
    if rule not in found.beyond:
        unjudged = "No fresh seed has judged this rule."
        if swept is None or rule not in swept.costs or not is_known(swept, rule):
            return unjudged
        by = "By" if swept.tied else "By an estimate of"
        return f"{unjudged} {by} the sweep's own runs, it costs {words(swept, rule, scape)}."
    if not is_known(found, rule):
        return "This rule leads beyond the trained decays, so what it costs is unknown."
    return f"This rule leads beyond the trained decays, and costs {words(found, rule, scape)}."


def _told(
    found: TransferRegret, rules: Sequence[float], scape: Landscape, where: str
) -> Iterable[str]:
    asked = [one for one in rules if one in found.costs]
    known = [one for one in asked if is_known(found, one)]
    told = [
        f"keeping {KEPT[one]} {'' if at else 'would have cost '}{words(found, one, scape)}"
        for at, one in enumerate(known)
    ]
    if told:
        yield f"{where}, {joined(told)}."
    unknown = joined([f"keeping {KEPT[one]}" for one in asked if one not in known])
    if unknown:
        leads = "it leads" if len(asked) - len(known) == 1 else "they lead"
        yield f"What {unknown} would have cost is unknown, as {leads} beyond the trained decays."


def _nearest(found: Exponent) -> str:
    """Return what the interval says if it contains none of the rules."""
    verb = "multiply" if found.high < 0 else "divide"
    low, high = sorted((4.0 ** abs(found.low), 4.0 ** abs(found.high)))
    factors = f"{number(low, digits=1)} to {number(high, digits=1)}"
    return f"This is only the nearest simple rule; the interval says to {verb} λ by {factors}."


def _undecided(knobs: Knobs, decay: str) -> Iterable[str]:
    if knobs.exponent.value is None:
        why = knobs.exponent.why.strip() or "There is no fit."
        yield f"These runs do not decide what to do with {decay} when α changes. {why}"
    else:
        left_open = [f"keeping {KEPT[one]}" for one in knobs.left_open]
        if len(left_open) > 1:
            yield f"These runs do not decide between {joined(left_open)}."
        else:  # there is only a bound on s
            left = f"{left_open[0]}, or beyond it" if left_open else "none of the simple rules"
            yield f"These runs only bound s, which leaves {left}."
        excluded = [f"keeping {KEPT[one]}" for one in _USUAL if one in knobs.excluded]
        if excluded:
            yield f"They exclude {joined(excluded)}."
    if knobs.regret.least is not None:
        where = "Of the rules tried" if knobs.regret.tied else "By an estimate without an interval"
        yield f"{where}, keeping {KEPT[knobs.regret.least]} costs least."
        yield from measured_over(knobs.regret)
