"""What a page says first about the two knobs, in words that need no explanation."""

from collections.abc import Iterator, Sequence

from weightdecay.results import Knobs, Recommendation
from weightdecay.site import rules


def alone(advice: Recommendation) -> tuple[str, str]:
    """Return whether α may change alone, and what to do if that is known.

    The first is "yes", "no", "at a cost" or "not decided".
    """
    if advice.differ is False:
        return "not decided", ""  # the card says that any setting will do
    rule = advice.knobs.rule
    if rule is None:
        return "not decided", _open(advice.knobs)
    if rule != 0 and advice.knobs.by_regret and 0.0 in advice.knobs.regret.tied:
        ways = f"{_plainly(rule)} or {_plainly(0.0)}"
        return (
            "not decided",
            f"If you multiply α by 4, {ways}: these runs cannot tell which costs less.",
        )
    if rule != 0:
        word = "no"
    elif advice.knobs.free:
        word = "yes"
    else:
        word = "at a cost" if advice.knobs.regret.costs[0.0].low > 0 else "not decided"
    done = [f"If you multiply α by 4, {_plainly(rule)}.", *_if_kept(advice, rule)]
    return word, " ".join(done)


def _plainly(rule: float) -> str:
    """Return what a rule does to λ, without its name."""
    return rules.DONE[rule].partition(",")[0]


def _if_kept(advice: Recommendation, rule: float) -> Iterator[str]:
    """Yield what it costs to leave λ as it is, if that was measured, and in which direction."""
    found = advice.knobs.regret
    if 0.0 not in found.costs:
        return
    rises = f"the error rises by {_rise(advice)}"
    if "nothing" in rises:
        rises = "the error does not rise"
    if rule == 0 and not advice.knobs.free:
        rises += ", and no other simple rule costs measurably less"
    yield f"{'Then' if rule == 0 else 'If λ stays,'} {rises}."
    yield from rules.one_way(found)


def least_kept(found: Sequence[Recommendation]) -> tuple[int, str] | None:
    """Return where leaving λ as it is costs least, and what; None if some cost is unknown."""
    regrets = [one.knobs.regret for one in found]
    if any(0.0 not in one.costs or 0.0 in one.beyond for one in regrets):
        return None
    at = min(range(len(found)), key=lambda at: regrets[at].costs[0.0].value)
    return at, _rise(found[at])


def _rise(advice: Recommendation, rule: float = 0.0) -> str:
    """Return by how much the error rises with a rule, in words that need no explanation."""
    said = rules.words(advice.knobs.regret, rule, advice.landscape)
    return said.replace(" points", " percentage points")


def in_torch(advice: Recommendation) -> str:
    """Return what the rule does to torch's weight_decay, and what it costs to leave that as it is.

    Nothing is said if no rule is known, or for L2.
    """
    rule = advice.knobs.rule
    if advice.differ is False or rule is None or advice.landscape.way == "l2":
        return ""
    if rule == -1 or -1.0 not in advice.knobs.regret.costs:
        return rules.of_torch(rule)
    return f"{rules.of_torch(rule)} If that stays, the error rises by {_rise(advice, -1.0)}."


def _open(knobs: Knobs) -> str:
    """Return in plain words what is left open."""
    left = [_plainly(one) for one in knobs.left_open] if knobs.exponent.bound is None else []
    if knobs.exponent.value is None or not 2 <= len(left) <= 3:
        said = "These runs do not decide what to do with λ when α changes."
    else:
        ways = f"{', '.join(left[:-1])} or {left[-1]}"
        said = f"These runs do not decide what to do with λ if you multiply α by 4: {ways}."
    least = knobs.regret.least
    if least is None or least not in knobs.possible:
        return said
    return f"{said} By a first estimate, {_plainly(least)}."
