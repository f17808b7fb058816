"""What a page says first about the two knobs, in words that need no explanation.

Whoever brings a table of torch's weight_decay, which is λ/α, reads what to do with that.
"""

from collections.abc import Iterator, Sequence

from weightdecay.number_format import joined
from weightdecay.results import Knobs, Landscape, Recommendation
from weightdecay.site import rule_costs, rules


def asked(scape: Landscape) -> str:
    """Return the question that `alone` answers."""
    return f"Change α and leave {decay_of(scape)}?"


def alone(advice: Recommendation) -> tuple[str, str]:
    """Return whether α may change alone, and what to do if that is known.

    The first is "yes", "no", "at a cost" or "not decided".
    """
    if advice.differ is False:
        return "not decided", ""  # the card says that any setting will do
    knobs, scape, kept = advice.knobs, advice.landscape, _kept(advice.landscape)
    rule = knobs.rule
    if rule is None:
        return "not decided", _open(knobs, scape)
    if rule != kept and knobs.by_regret and kept in knobs.regret.tied:
        ways = f"{_plainly(rule, scape)} or {_plainly(kept, scape)}"
        return (
            "not decided",
            f"If you multiply α by 4, {ways}: these runs cannot tell which costs less.",
        )
    if rule != kept:
        word = "no"
    elif knobs.free:
        word = "yes"
    else:
        word = "at a cost" if knobs.regret.costs[kept].low > 0 else "not decided"
    done = [f"If you multiply α by 4, {_plainly(rule, scape)}.", *_if_kept(advice, rule)]
    sides = rules.by_direction(knobs.regret, scape) if knobs.bent else []
    return word, " ".join([*sides, *done])


def _kept(scape: Landscape) -> float:
    """Return the rule that leaves the decay as it is, in the table's own convention."""
    return -1.0 if scape.told_in_torch else 0.0


def decay_of(scape: Landscape) -> str:
    """Return what the decay is called, in the table's own convention."""
    return "weight_decay" if scape.told_in_torch else "λ"


def _plainly(rule: float, scape: Landscape) -> str:
    """Return what a rule does to the decay, without its name."""
    if scape.told_in_torch:
        return rules.done_in_torch(rule)
    return rules.DONE[rule].partition(",")[0]


def _if_kept(advice: Recommendation, rule: float) -> Iterator[str]:
    """Yield what leaving the decay costs, if that was measured, and in which direction."""
    found, kept = advice.knobs.regret, _kept(advice.landscape)
    if kept not in found.costs:
        return
    said = _rise(advice, kept)
    rises = f"the error rises by {said}"
    if said.startswith("nothing"):
        _, uncertain, ends = said.partition("uncertain: ")
        rises = f"the error does not rise{f' (uncertain: {ends}' if uncertain else ''}"
    if rule == kept and not advice.knobs.free:
        rises += ", and no other simple rule costs measurably less"
    yield f"{'Then' if rule == kept else f'If {decay_of(advice.landscape)} stays,'} {rises}."
    yield from rules.one_way(found)


def least_kept(found: Sequence[Recommendation]) -> tuple[int, str] | None:
    """Return where leaving the decay costs least, and what; None if some cost is unknown."""
    kept = [(one.knobs.regret, _kept(one.landscape)) for one in found]
    if any(rule not in regret.costs or rule in regret.beyond for regret, rule in kept):
        return None
    at = min(range(len(found)), key=lambda at: kept[at][0].costs[kept[at][1]].value)
    return at, _rise(found[at], kept[at][1])


def _rise(advice: Recommendation, rule: float) -> str:
    """Return by how much the error rises with a rule, in words that need no explanation."""
    said = rule_costs.words(advice.knobs.regret, rule, advice.landscape)
    return said.replace(" points", " percentage points")


def restated(advice: Recommendation) -> str:
    """Return what the rule does to the decay in the other convention, and what leaving that costs.

    Nothing is said if no rule is known, or for L2.
    """
    rule, scape = advice.knobs.rule, advice.landscape
    if advice.differ is False or rule is None or scape.way == "l2":
        return ""
    other = 0.0 if scape.told_in_torch else -1.0
    said = rules.of_decay(rule) if scape.told_in_torch else rules.of_torch(rule)
    if rule == other or other not in advice.knobs.regret.costs:
        return said
    return f"{said} If that stays, the error rises by {_rise(advice, other)}."


def _open(knobs: Knobs, scape: Landscape) -> str:
    """Return in plain words what is left open."""
    bounded = knobs.exponent.bound is not None
    left = [] if bounded else [_plainly(one, scape) for one in knobs.left_open]
    if knobs.exponent.value is None or not 2 <= len(left) <= 3:
        said = f"These runs do not decide what to do with {decay_of(scape)} when α changes."
    else:
        said = (
            f"These runs do not decide what to do with {decay_of(scape)} if you multiply α by 4: "
            f"{joined(left, last='or')}."
        )
    least = knobs.regret.least
    if least is None or least not in knobs.possible:
        return said
    return f"{said} By a first estimate, {_plainly(least, scape)}."
