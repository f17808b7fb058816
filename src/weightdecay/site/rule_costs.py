"""What carrying a decay by each rule costs, in numbers and in words."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from weightdecay.number_format import between, joined, measured, number
from weightdecay.results import Estimate, Knobs, Landscape, TransferRegret
from weightdecay.results.estimate import bound
from weightdecay.results.transfer import RULES

#: What each rule λ ∝ α^(−s) keeps.
KEPT = {-1.0: "λ/α", -0.5: "λ/√α", 0.0: "λ", 0.5: "λ·√α", 1.0: "λ·α", 2.0: "λ·α²"}
assert tuple(KEPT) == RULES
#: What a negative cost is, for tables.
BELOW = "below 0, the carried λ did better than the one tuned there"
_UNKNOWN = "unknown"
_UNCERTAIN = "as fewer than three seeds trained all of these settings"


def costs(found: TransferRegret, metric: str | None) -> str:
    """Return what each rule costs, with its interval, and who judged that."""
    if not found.costs:
        return f"unknown: {found.why.rstrip('.')}"
    told = {KEPT[rule]: cost(found, rule, metric) for rule in found.costs}
    out = [kept for kept, one in told.items() if one == _UNKNOWN]
    if len(out) == len(told):
        return "unknown: every rule leads beyond the trained decays"
    (first, one), *rest = ((kept, one) for kept, one in told.items() if kept not in out)
    unit = "points" if metric is None else f"of {metric}"
    others = "".join(f", {kept} {other}" for kept, other in rest)
    notes = [judges(found), *negative(found, metric)]
    if out:
        notes.append(f"keeping {joined(out)} lead{'s' * (len(out) == 1)} beyond the trained decays")
    return f"keeping {first} costs {one} {unit}{others}; {'; '.join(notes)}"


def negative(found: TransferRegret, metric: str | None) -> Iterator[str]:
    """Yield what negative costs mean, if some are: noise, or not, or nobody knows."""
    inside = {rule: one for rule, one in found.costs.items() if rule not in found.beyond}
    below = {rule: one for rule, one in inside.items() if _is_negative(one, metric)}
    beyond = [f"keeping {KEPT[rule]}" for rule, one in below.items() if one.high < 0]
    if beyond:
        yield f"{joined(beyond)} did better than the λ tuned there, by more than noise"
    left = {rule: one for rule, one in below.items() if not one.high < 0}
    if left:
        noise = (
            "whether by more than noise is unknown"
            if math.isnan(next(iter(left.values())).low)
            else "up to noise"
        )
        others = joined([f"keeping {KEPT[rule]}" for rule in left])
        yield f"{others} did so up to noise" if beyond else f"{BELOW}, {noise}"


def _is_negative(one: Estimate, metric: str | None) -> bool:
    """Whether a cost is printed with a minus sign."""
    return amount(one, metric).startswith("−")


def cost(found: TransferRegret, rule: float, metric: str | None) -> str:
    """Return what a rule costs, without a unit; of one that leads too far, at least."""
    one = found.costs[rule]
    return at_least(one, metric) if rule in found.beyond else amount(one, metric)


def at_least(one: Estimate, metric: str | None) -> str:
    """Return what a rule that leads beyond the trained decays costs at least.

    That is the low end of what the last decay there costs, or unknown if it may cost nothing.
    """
    least = bound(one)
    if least is None:
        return _UNKNOWN
    return f"≥ {_amount(least, metric, max(_digits(one), _digits_of(least, metric)))}"


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


def best(knobs: Knobs, metric: str | None) -> str:
    """Return the rule to use and what it costs, in a few words; the same as `rules.sentence`."""
    found, rule = knobs.regret, knobs.rule
    least = found.least
    if rule is None:
        if least is None:
            return f"unknown: {found.why.rstrip('.')}" if found.why else _UNKNOWN
        return f"not decided; keeping {KEPT[least]} costs {_brief(found, least, metric)}"
    if knobs.by_regret:
        tied = [KEPT[one] for one in found.tied if one not in (rule, *found.beyond)]
        also = f"; tied with {joined(tied)}" if tied else ""
        return f"keep {KEPT[rule]}: {_brief(found, rule, metric)}{also}"
    sources = (one for one in (found, knobs.swept) if one is not None and rule in one.costs)
    told = [_brief(one, rule, metric) for one in sources][:1]
    said = f"keep {KEPT[rule]}, by s: {told[0] if told else _UNKNOWN}"
    if least is None or least == rule:
        return said
    return f"{said}; keeping {KEPT[least]} costs {_brief(found, least, metric)}"


def _brief(found: TransferRegret, rule: float, metric: str | None) -> str:
    """Return what a rule costs, with its unit, and whether that is an estimate."""
    said = cost(found, rule, metric)
    unit = " points" * (metric is None and said != _UNKNOWN)
    return f"{said}{unit}{'' if found.tied else ', an estimate'}"


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


def is_known(found: TransferRegret, rule: float) -> bool:
    """Whether a rule's cost is known, or a bound on it if the rule leads too far."""
    return rule not in found.beyond or bound(found.costs[rule]) is not None


def least_of(found: TransferRegret, rule: float) -> float | None:
    """Return what a rule costs, or costs at least if it leads too far; None if nobody knows."""
    one = found.costs[rule]
    return bound(one) if rule in found.beyond else one.value


@dataclass(frozen=True)
class Worded:
    """A cost in words: "nothing", "unknown", "at least" so much, or so much.

    `amount` has its unit, but for what is unknown. `ends` are those of its interval if it is
    uncertain whether it costs anything, or more than the margin; else it is empty.
    """

    kind: str
    amount: str = ""
    ends: str = ""

    @property
    def rises(self) -> bool:
        """Whether the error is higher, by a number that is not printed as 0."""
        return self.kind != "nothing" and bool(self.amount.split(" ")[0].strip("0."))


def worded(found: TransferRegret, rule: float, metric: str | None) -> Worded:
    """Return what a rule costs, and whether that is certain."""
    unit = " points" * (metric is None)
    one = found.costs[rule]
    if not is_known(found, rule):
        return Worded("unknown")
    if rule in found.beyond:
        return Worded("at least", f"{at_least(one, metric).removeprefix('≥ ')}{unit}")
    digits = _digits_of(one.value, metric)
    said = _amount(one.value, metric, digits)
    ends = between(*(_amount(end, metric, digits) for end in (one.low, one.high)))
    doubtful = one.high > found.margin
    if said.startswith("−"):
        return Worded("nothing", f"{said}{unit}", ends * doubtful)
    return Worded("so much", f"{said}{unit}", ends * (one.low <= 0 and doubtful))


def words(found: TransferRegret, rule: float, scape: Landscape) -> str:
    """Return what a rule costs in words, with its interval if it is uncertain."""
    one = worded(found, rule, scape.metric)
    match one.kind:
        case "unknown":
            return "an unknown amount, as it leads beyond the trained decays"
        case "at least":
            return f"at least {one.amount}"
        case "nothing":
            return f"nothing ({one.amount}{f', uncertain: {one.ends}' * bool(one.ends)})"
        case _:
            return f"{one.amount}{f' (uncertain: {one.ends})' * bool(one.ends)}"


def difference(higher: Estimate, lower: Estimate, metric: str | None) -> str:
    """Return how much more one rule costs than another, with its unit."""
    value = higher.value - lower.value
    return f"{_amount(value, metric, _digits_of(value, metric))}{' points' * (metric is None)}"


def _digits_of(value: float, metric: str | None) -> int:
    """Return the decimals of a cost: two if it is below 0.1 points, or three to show it at all."""
    digits = 1 if abs(value) >= 0.001 else 2
    return digits if _amount(value, metric, digits).strip("−0.") or value == 0 else 3
