"""What a page says first about the two knobs, in words that need no explanation.

Whoever brings a table of torch's weight_decay, which is λ/α, reads what to do with that.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from weightdecay.number_format import joined, noun
from weightdecay.results import Knobs, Landscape, Recommendation
from weightdecay.site import rule_costs, rules


def asked(scape: Landscape) -> str:
    """Return the question that `alone` answers."""
    return f"Change α and leave {rules.decay_of(scape)}?"


def alone(advice: Recommendation) -> tuple[str, str]:
    """Return whether α may change alone, and what to do if that is known.

    The first is "yes", "no", "at a cost" or "not decided".
    """
    if advice.differ is False:
        return "not decided", ""  # the card says that any setting will do
    knobs, scape = advice.knobs, advice.landscape
    rule, kept = knobs.rule, scape.unchanged
    if rule is None:
        return "not decided", _open(knobs, scape)
    does, stays = _plainly(rule, scape), _plainly(kept, scape)
    if _either(knobs, scape):
        word, done = "not decided", [f"{does} or {stays}: these runs cannot tell which costs less."]
        done += rules.measured_over(knobs.regret)
    else:
        word = _answer(knobs, rule, kept)
        better = [f"A little better: {does}."] if word == "yes" and rule != kept else []
        if better:
            does = f"you may {stays}"
        elif word == "not decided":
            does = f"these runs favour this: {does}"
        done = [f"{does}.", *_if_kept(advice, rule), *better]
    sides = rules.by_direction(knobs.regret, scape) if knobs.bent else []
    return word, " ".join([*sides, "If you multiply α by 4,", *done])


def _either(knobs: Knobs, scape: Landscape) -> bool:
    """Whether leaving the decay may cost as little as the rule to use: both are tied."""
    found, kept = knobs.regret, scape.unchanged
    tied = kept in found.tied and kept not in found.beyond
    return knobs.rule != kept and knobs.by_regret and tied


def _answer(knobs: Knobs, rule: float, kept: float) -> str:
    """Return the answer in a word.

    What counts is whether leaving the decay raises the error by more than the margin, 3 % of it. If
    the exponent alone decides, an estimate of that rise must not speak against it.
    """
    found = knobs.regret
    if found.slight(kept):
        return "yes" if knobs.by_regret or rule == kept else "not decided"
    if rule != kept:
        return "no" if _costs_more(knobs, rule, kept) else "not decided"
    if kept not in found.costs:
        return "yes"
    return "at a cost" if knobs.by_regret and found.costs[kept].low > 0 else "not decided"


def _costs_more(knobs: Knobs, rule: float, kept: float) -> bool:
    """Whether leaving the decay, which is not slight, is known to cost more than the rule to use.

    Of a decay that leads beyond the trained ones, what it costs at least must be above the margin.
    If no cost is known, s must say to change the decay by a factor of 4, where α changes by that.
    """
    found = knobs.regret
    if kept not in found.costs:
        return abs(rule - kept) >= 1
    at_least = rule_costs.least_of(found, kept) or 0.0
    if kept in found.beyond and at_least <= found.margin:
        return False
    if knobs.by_regret:
        return kept not in found.tied
    known = rule in found.costs and rule not in found.beyond
    return at_least > found.margin and (not known or found.costs[rule].value < at_least)


def _plainly(rule: float, scape: Landscape) -> str:
    """Return what a rule does to the decay, without its name."""
    if scape.told_in_torch:
        return rules.done_in_torch(rule)
    return rules.DONE[rule].partition(",")[0]


def _if_kept(advice: Recommendation, rule: float) -> Iterator[str]:
    """Yield what leaving the decay costs, if that was measured, and in which direction."""
    knobs, scape = advice.knobs, advice.landscape
    found, kept = knobs.regret, scape.unchanged
    if kept not in found.costs:
        return
    no_less = ""
    if rule == kept and knobs.by_regret and not found.slight(kept):
        other = "one rule for both directions" if knobs.bent else "other simple rule"
        no_less = f", and no {other} costs measurably less"
    then = f"If {rules.decay_of(scape)} stays,"
    if rule == kept or (knobs.by_regret and found.slight(kept)):
        then = "Then"
    known = rule in found.costs and not {rule, kept} & {*found.beyond}
    if known and found.costs[kept].value <= 0 and not found.slight(kept):
        # Both rules did better than the decay that was tuned there.
        more = rule_costs.difference(found.costs[kept], found.costs[rule], scape.metric)
        more = more.replace(" points", " percentage points")
        yield f"{then} the {noun([scape])} is {more} higher than if you do so."
    else:
        yield f"{then} {_rise(advice, kept)}{no_less}."
    least = found.least
    if not knobs.by_regret and least not in (None, rule) and not found.slight(rule):
        yield from _otherwise(advice, rule, least or 0.0)
    yield from rules.measured_over(found)


def _otherwise(advice: Recommendation, rule: float, least: float) -> Iterator[str]:
    """Yield which other rule costs least, where s and not a cost speaks for the rule to use."""
    knobs, scape = advice.knobs, advice.landscape
    if not knobs.regret.tied:
        yield f"By that estimate, it costs least to {_plainly(least, scape)}."
        return
    swept = knobs.swept
    if swept is not None and rule in swept.costs and rule_costs.is_known(swept, rule):
        judged = replace(advice, knobs=replace(knobs, regret=swept))
        what = f"No fresh seed judged what it costs to {_plainly(rule, scape)}"
        yield f"{what}; by the sweep's own runs, {_rise(judged, rule)}."
    what = f"Of the rules that were judged, it costs least to {_plainly(least, scape)}"
    yield f"{what}: {_rise(advice, least)}."


def least_kept(found: Sequence[Recommendation]) -> tuple[int, str] | None:
    """Return where leaving the decay costs least, and what.

    None if that cannot be said: if some cost is unknown or none at all, if others are of another
    metric or of another change of α, or if intervals overlap.
    """
    kept = [(one.knobs.regret, one.landscape.unchanged) for one in found]
    if any(rule not in regret.costs or rule in regret.beyond for regret, rule in kept):
        return None
    of = {(one.landscape.of, one.landscape.metric) for one in found}
    ways = {frozenset(used > tuned for tuned, used in regret.pairs) for regret, _ in kept}
    if len(of) > 1 or len(ways) > 1:
        return None
    costs = [regret.costs[rule] for regret, rule in kept]
    at = min(range(len(found)), key=lambda at: costs[at].value)
    others = costs[:at] + costs[at + 1 :]
    if not (costs[at].value > 0 and all(costs[at].high < one.low for one in others)):
        return None
    regret, rule = kept[at]
    over = " ".join(rules.measured_over(regret))
    return at, f"{_rise(found[at], rule)} there.{f' {over}' * bool(over)}"


def _rise(advice: Recommendation, rule: float) -> str:
    """Return that the error rises with a rule, and by how much, in words for everybody."""
    found, scape = advice.knobs.regret, advice.landscape
    what = f"the {noun([scape])}"
    one = rule_costs.worded(found, rule, scape.metric)
    if one.kind == "unknown":
        return f"nobody knows how much {what} rises, as that leads beyond the trained decays"
    first = ", by a first estimate" * math.isnan(found.costs[rule].low)
    uncertain = f" (uncertain: {one.ends})" * bool(one.ends)
    if not one.rises:
        return f"{what} does not rise{uncertain}{first}"
    least = "at least " * (one.kind == "at least")
    amount = one.amount.replace(" points", " percentage points")
    return f"{what} rises by {least}{amount}{uncertain}{first}"


def restated(advice: Recommendation) -> str:
    """Return what the rule does to the decay in the other convention, and what leaving that costs.

    Nothing is said if no one rule is known, or for L2.
    """
    knobs, scape = advice.knobs, advice.landscape
    rule = knobs.rule
    if advice.differ is False or rule is None or _either(knobs, scape) or scape.way == "l2":
        return ""
    other = 0.0 if scape.told_in_torch else -1.0
    said = rules.of_decay(rule) if scape.told_in_torch else rules.of_torch(rule)
    if rule == other or other not in knobs.regret.costs:
        return said
    return f"{said} If that stays, {_rise(advice, other)}."


def _open(knobs: Knobs, scape: Landscape) -> str:
    """Return in plain words what is left open."""
    bounded = knobs.exponent.bound is not None
    left = [] if bounded else [_plainly(one, scape) for one in knobs.left_open]
    said = f"These runs do not decide what to do with {rules.decay_of(scape)}"
    if knobs.exponent.value is None or not 2 <= len(left) <= 3:
        said += " when α changes."
    else:
        said += f" if you multiply α by 4: {joined(left, last='or')}."
    least = knobs.regret.least
    if least is None or least not in knobs.possible:
        return said
    first = f"{said} By a first estimate, {_plainly(least, scape)}."
    return " ".join([first, *rules.measured_over(knobs.regret)])
