"""A claim is ruled on by its interval: inside, outside, or both, and then nothing is decided."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay.results import Estimate, Exponent
from weightdecay.results.estimate import UNKNOWN, within
from weightdecay.results.exponent import unknown
from weightdecay.studies import verdicts
from weightdecay.studies.formats import because
from weightdecay.studies.formats import rule as rule_of
from weightdecay.studies.reasons import Difference, Missing, Quantity, Size
from weightdecay.studies.verdict_json import as_json
from weightdecay.studies.verdicts import HELD, NOT_DECIDED, NOT_HELD, Verdict

Rule = Callable[[float, float], Verdict]


def middle(low: float, high: float) -> float:
    return (low + high) / 2 if math.isfinite(low + high) else 0.0


#: The rival's error, of which the margin is 3 %: a tenth of a percentage point per 3.33 points.
RIVAL = 1 / 3


def on_errors(rule: Callable[[str, Estimate, str], Verdict]) -> Rule:
    """Return a rule about percentage points as one about an interval."""
    return lambda low, high: rule(
        "It is so", Estimate(middle(low, high) / 100, low / 100, high / 100), "one less the other"
    )


def on_exponents(rule: Callable[[str, Exponent], Verdict]) -> Rule:
    return lambda low, high: rule("It is so", Exponent(middle(low, high), low, high))


def bounds(above: float, below: float) -> Rule:
    return on_exponents(
        lambda claim, found: verdicts.between(claim, found, "e", above=above, below=below)
    )


def on_sizes(size: float) -> Rule:
    """Return the rule about a size as one about an interval of ten times the logarithm."""
    return lambda low, high: verdicts.sized(
        "It is so", Size("this", Estimate(middle(low, high) / 10, low / 10, high / 10), size)
    )


RULES: dict[str, Rule] = {
    "better": on_errors(verdicts.better),
    "no worse": on_errors(partial(verdicts.no_worse, rival=RIVAL)),
    "worse": on_errors(partial(verdicts.worse, rival=RIVAL)),
    "alike": on_errors(partial(verdicts.alike, rival=RIVAL)),
    "diagonal": on_exponents(verdicts.diagonal),
    "between": bounds(0.25, 0.75),
    "above": bounds(0, math.inf),
    "lower by a seventh": on_sizes(6 / 7),
    "ten times": on_sizes(10),
}
# Points of error for the first four, where one is the margin; s or e for the others.
OUTCOMES = [
    ("better", -5, -3, HELD),
    ("better", -0.4, -0.2, HELD),  # little, but surely
    ("better", 1, 3, NOT_HELD),
    ("better", -0.9, 0.5, NOT_DECIDED),
    ("better", -3, 0.5, NOT_DECIDED),
    ("better", -3, 5, NOT_DECIDED),
    ("no worse", -5, -3, HELD),
    ("no worse", -0.5, 0.9, HELD),
    ("no worse", 1.1, 3, NOT_HELD),
    ("no worse", 0.5, 1.5, NOT_DECIDED),
    ("worse", 1.1, 3, HELD),
    ("worse", -0.5, 0.9, NOT_HELD),
    ("worse", 0.5, 1.5, NOT_DECIDED),
    ("alike", -0.9, 0.9, HELD),
    ("alike", 0.5, 0.9, HELD),  # different, but by less than a point
    ("alike", -3, -1.1, NOT_HELD),
    ("alike", 1.1, 3, NOT_HELD),
    ("alike", -3, 0, NOT_DECIDED),
    ("alike", -3, 3, NOT_DECIDED),
    ("diagonal", 0.6, 1.4, HELD),
    ("diagonal", 0.6, math.inf, HELD),
    ("diagonal", -0.2, 0.4, NOT_HELD),
    ("diagonal", -math.inf, 0.4, NOT_HELD),
    ("diagonal", 0.4, 1.4, NOT_DECIDED),
    ("diagonal", 0.4, math.inf, NOT_DECIDED),
    ("between", 0.4, 0.6, HELD),
    ("between", 0.8, 1.2, NOT_HELD),
    ("between", -0.2, 0.2, NOT_HELD),
    ("between", 0.8, math.inf, NOT_HELD),
    ("between", 0.2, 0.6, NOT_DECIDED),
    ("between", 0.4, math.inf, NOT_DECIDED),
    ("above", 0.1, 2, HELD),
    ("above", 0.1, math.inf, HELD),
    ("above", -2, -0.1, NOT_HELD),
    ("above", -0.1, math.inf, NOT_DECIDED),
]
# Logarithms times ten: half of 6/7's is −0.77, and half of 10's is 11.5.
OUTCOMES += [
    ("lower by a seventh", -2, -1, HELD),
    ("lower by a seventh", -3, -2, HELD),
    ("lower by a seventh", -0.7, -0.5, NOT_HELD),
    ("lower by a seventh", 1, 2, NOT_HELD),
    ("lower by a seventh", -2, -0.5, NOT_DECIDED),
    ("ten times", 12, 25, HELD),
    ("ten times", -1, 11, NOT_HELD),
    ("ten times", 11, 25, NOT_DECIDED),
]
SCALED = st.floats(-6, 6)


@pytest.mark.parametrize(("name", "low", "high", "outcome"), OUTCOMES)
def test_an_interval_decides(name: str, low: float, high: float, outcome: str) -> None:
    assert RULES[name](low, high).outcome == outcome


@pytest.mark.parametrize("name", RULES)
def test_nothing_known_is_nothing_decided(name: str) -> None:
    assert RULES[name](math.nan, math.nan).outcome == NOT_DECIDED


def test_an_exponent_that_is_unknown_decides_nothing_and_says_why() -> None:
    verdict = verdicts.diagonal("It is so", unknown("The grid is too small."))
    assert verdict.outcome == NOT_DECIDED
    assert "The grid is too small" in because(verdict)


@given(SCALED, SCALED, SCALED)
def test_the_value_alone_decides_nothing(one: float, other: float, value: float) -> None:
    low, high = sorted((one, other))
    for below in (0.0, 0.01):
        found = Estimate(value / 100, low / 100, high / 100)
        elsewhere = replace(found, value=-value / 100)
        unknown_but = replace(UNKNOWN, value=value)
        first, second, third = (
            verdicts.judged("", Difference("", one, below=below)).outcome
            for one in (found, elsewhere, unknown_but)
        )
        assert (first, third) == (second, NOT_DECIDED)
    assert (
        verdicts.diagonal("", Exponent(value, low, high)).outcome
        == verdicts.diagonal("", Exponent(-value, low, high)).outcome
    )


@given(SCALED, SCALED, st.floats(0, 6), st.floats(0, 6))
def test_less_certainty_decides_nothing_more(
    one: float, other: float, left: float, right: float
) -> None:
    low, high = sorted((one, other))
    for name, rule in RULES.items():
        if rule(low, high).outcome == NOT_DECIDED:
            assert rule(low - left, high + right).outcome == NOT_DECIDED, name


@given(SCALED, SCALED, st.floats(0, 6), st.floats(0, 6))
def test_less_certainty_does_not_turn_an_outcome_into_its_opposite(
    one: float, other: float, left: float, right: float
) -> None:
    low, high = sorted((one, other))
    for name, rule in RULES.items():
        outcome = rule(low, high).outcome
        assert rule(low - left, high + right).outcome in (outcome, NOT_DECIDED), name


@pytest.mark.parametrize("whole", [verdicts.all_of, verdicts.any_of, verdicts.by_measures])
def test_a_part_that_was_not_measured_leaves_no_gap_in_the_rule(
    whole: Callable[[str, list[Verdict]], Verdict],
) -> None:
    missing = verdicts.unseen("one", "There are no runs.")
    found = verdicts.better("other", Estimate(-0.1, -0.2, -0.05), "the difference")
    for parts in ([missing], [missing, found], [found, missing]):
        told = rule_of(whole("It is so", parts))
        assert told == " ".join(told.split())


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_written_with_its_numbers(name: str) -> None:
    limits = {
        "better": "below 0",
        "no worse": "below +1.00 points (3 % of 33.33\N{NO-BREAK SPACE}%),",
        "worse": "above +1.00 points (3 % of 33.33\N{NO-BREAK SPACE}%),",
        "alike": "within ±1.00 points (3 % of 33.33\N{NO-BREAK SPACE}%),",
        "diagonal": "above 0.5",
        "between": "between 0.25 and 0.75",
        "above": "above 0,",
        "lower by a seventh": "nearer to the paper's −14.3 % than to no effect",
        "ten times": "nearer to the paper's 10.00 times than",
    }
    rule = rule_of(RULES[name](0, 1))
    assert rule.startswith("Held if the interval of ")
    assert "not held if" in rule
    assert limits[name] in rule


def test_a_reason_has_the_number_and_its_interval() -> None:
    found = Estimate(-0.016, -0.0344, 0.0002)
    assert because(verdicts.better("", found, "one less the other")).startswith(
        "one less the other: −1.6 points [−3.4, 0.0]"
    )
    assert because(verdicts.better("", UNKNOWN, "less")) == "less: unknown from so few runs"
    assert because(verdicts.diagonal("", Exponent(0.75, 0.6, 0.9))) == "s = 0.75 [0.60, 0.90]"
    apart = verdicts.between("", Estimate(-0.2, -0.9, 0.5), "doublings", above=-1, below=1)
    assert because(apart) == "doublings = −0.20 [−0.90, 0.50]"
    assert "within ±1," in rule_of(apart)


OUTCOME = st.sampled_from((HELD, NOT_DECIDED, NOT_HELD))


@given(st.lists(OUTCOME, min_size=1))
def test_a_claim_of_parts_is_as_good_as_its_worst_part(outcomes: list[str]) -> None:
    parts = [Verdict(f"part {n}", outcome, Missing("so")) for n, outcome in enumerate(outcomes)]
    whole = verdicts.all_of("All are so", parts)
    worst = NOT_HELD if NOT_HELD in outcomes else NOT_DECIDED if NOT_DECIDED in outcomes else HELD
    assert whole.outcome == worst
    assert whole.reason == tuple(parts)
    assert because(whole).count(": so (") == len(parts)


@given(st.lists(OUTCOME, min_size=1))
def test_a_claim_of_which_a_part_is_enough_is_as_good_as_its_best_part(outcomes: list[str]) -> None:
    parts = [Verdict(f"part {n}", outcome, Missing("so")) for n, outcome in enumerate(outcomes)]
    whole = verdicts.any_of("One is so", parts)
    best = HELD if HELD in outcomes else NOT_DECIDED if NOT_DECIDED in outcomes else NOT_HELD
    assert whole.outcome == best
    assert because(whole).count(": so (") == len(parts)


@given(st.lists(OUTCOME, min_size=1))
def test_the_first_measure_decides_unless_another_says_the_opposite(outcomes: list[str]) -> None:
    parts = [Verdict(f"part {n}", outcome, Missing("so")) for n, outcome in enumerate(outcomes)]
    whole = verdicts.by_measures("It is so", parts)
    disagree = {HELD, NOT_HELD} <= {*outcomes}
    assert whole.outcome == (NOT_DECIDED if disagree else outcomes[0])
    assert because(whole).endswith("these disagree") == disagree


def test_one_part_of_several_is_held_only_by_the_wider_interval() -> None:
    """t of nine degrees of freedom: 2.26 for one part, 3.11 for the wider interval of four."""
    barely = verdicts.sized("barely", Size("this", within(0.026, 0.01**2, 9), 1.0001))
    no = verdicts.sized("no", Size("this", within(-1.0, 0.01**2, 9), 1.0001))
    assert (barely.outcome, no.outcome) == (HELD, NOT_HELD)
    assert verdicts.any_of("any", [barely]).outcome == HELD
    assert verdicts.any_of("any", [barely, no, no, no]).outcome == NOT_DECIDED
    clearly = verdicts.sized("clearly", Size("this", within(0.033, 0.01**2, 9), 1.0001))
    assert verdicts.any_of("any", [clearly, no, no, no]).outcome == HELD


def barely(way: int) -> Verdict:
    """Return a verdict by t = 2.6, at nine degrees of freedom: sure alone, and not as one of two.

    2.26 is needed for a 95 % interval, 2.69 for that of one in two, and 3.11 for one in four.
    """
    return verdicts.better("barely", within(way * 0.026, 0.01**2, 9), "this")


def clearly(way: int) -> Verdict:
    return verdicts.better("clearly", within(way * 0.029, 0.01**2, 9), "this")


def surely(way: int) -> Verdict:
    return verdicts.better("surely", within(way * 1.0, 0.01**2, 9), "this")


NESTED: dict[str, Callable[[Verdict], Verdict]] = {
    "the first of measures": lambda one: verdicts.by_measures("so", [one, RULES["better"](-9, 9)]),
    "all parts, of one": lambda one: verdicts.all_of("so", [one]),
    "any part, of one": lambda one: verdicts.any_of("so", [one]),
    "measures of parts": lambda one: verdicts.by_measures("so", [verdicts.all_of("so", [one])]),
}


@pytest.mark.parametrize("nested", NESTED)
def test_a_nested_part_decides_only_by_the_wider_interval(nested: str) -> None:
    """A part of two must be as certain within measures, or within parts, as on its own."""
    inside = NESTED[nested]
    assert inside(barely(1)).outcome == NOT_HELD
    assert verdicts.all_of("both", [inside(barely(1)), surely(-1)]).outcome == NOT_DECIDED
    assert verdicts.all_of("both", [inside(clearly(1)), surely(-1)]).outcome == NOT_HELD
    assert inside(barely(-1)).outcome == HELD
    assert verdicts.any_of("one", [inside(barely(-1)), surely(1)]).outcome == NOT_DECIDED
    assert verdicts.any_of("one", [inside(clearly(-1)), surely(1)]).outcome == HELD


def test_one_of_two_parts_in_one_of_two_parts_is_one_of_four() -> None:
    """Of parts of which one is enough, each has its share of the claim's 5 %."""
    inner = verdicts.all_of("inner", [clearly(1), surely(-1)])
    assert inner.outcome == NOT_HELD
    assert verdicts.all_of("outer", [inner, surely(-1)]).outcome == NOT_DECIDED
    certain = verdicts.all_of("inner", [surely(1), surely(-1)])
    assert verdicts.all_of("outer", [certain, surely(-1)]).outcome == NOT_HELD
    # That all are held needs no share: each has the whole of what the outer claim leaves.
    both = verdicts.all_of("inner", [clearly(-1), clearly(-1)])
    assert verdicts.any_of("outer", [both, surely(1)]).outcome == HELD
    either = verdicts.all_of("inner", [barely(-1), clearly(-1)])
    assert verdicts.any_of("outer", [either, surely(1)]).outcome == NOT_DECIDED


def test_measures_that_disagree_are_sure_of_nothing() -> None:
    apart = verdicts.by_measures("so", [surely(1), surely(-1)])
    assert verdicts.all_of("both", [apart, surely(-1)]).outcome == NOT_DECIDED


def test_an_open_claim_says_what_would_have_been_seen() -> None:
    """(t.975 + t.8) standard errors, of nine degrees of freedom: 2.262 + 0.883."""
    found = within(0.001, 0.01**2, 9)
    said = "; a difference of 3.1 points would have been seen"
    assert because(verdicts.better("", found, "this")).endswith(said)
    sized = verdicts.sized("", Size("this", found, 0.98))
    assert because(sized).endswith("; a difference of 3.1 % would have been seen")
    number = verdicts.between("", found, "e", above=0.0, below=1)
    assert because(number).endswith("; a difference of 0.03 would have been seen")
    assert "seen" not in because(verdicts.better("", within(-1.0, 0.01**2, 9), "this"))
    assert "seen" not in because(verdicts.better("", UNKNOWN, "this"))


def test_every_kind_of_parts_is_written_with_its_numbers() -> None:
    size = verdicts.sized("size", Size("its {error}", within(-0.2, 0.01**2, 9), 0.85))
    some = as_json(verdicts.any_of("some", [size]))
    [part] = some["parts"]
    assert part["measured"]["what"] == "its error"
    assert part["measured"]["log_ratio"]["value"] == -0.2
    assert part["measured"]["points"] is None
    assert part["measured"]["size"] == 0.85
    beside = [Quantity("s of AdamW", Exponent(0.1, 0.0, 0.2))]
    both = as_json(verdicts.by_measures("both", [size], beside))
    assert both["parts"] == some["parts"]
    assert both["beside"] == {"s of AdamW": {"value": 0.1, "low": 0.0, "high": 0.2}}


@pytest.mark.parametrize(
    "found",
    [
        Exponent(1.0, 0.6, 1.4, freedom=2),
        Exponent(0.6, 0.6, math.inf, "at least", freedom=2, standard_error=0.1),
    ],
)
def test_one_of_two_parts_is_not_held_only_by_an_interval_that_few_seeds_widen(
    found: Exponent,
) -> None:
    """With two degrees of freedom, 97.5 % intervals are 1.44 times as wide as 95 % ones."""
    part = verdicts.between("s is 0", found, "s", above=-0.5, below=0.5)
    known = replace(found, freedom=math.inf, standard_error=found.standard_error / 3)
    certain = verdicts.between("s is 0", known, "s", above=-0.5, below=0.5)
    none = Exponent(0.0, -0.1, 0.1)
    other = verdicts.between("s is 0", none, "s", above=-0.5, below=0.5)
    assert (part.outcome, certain.outcome, other.outcome) == (NOT_HELD, NOT_HELD, HELD)
    assert verdicts.all_of("one", [part]).outcome == NOT_HELD
    assert verdicts.all_of("both", [part, other]).outcome == NOT_DECIDED
    assert verdicts.all_of("both", [certain, other]).outcome == NOT_HELD


def test_a_widened_interval_is_students() -> None:
    wide = Exponent(1.0, 0.0, 2.0, freedom=2).widened(0.9875)
    assert (wide.low, wide.high) == pytest.approx((1 - 6.205 / 4.303, 1 + 6.205 / 4.303), abs=1e-3)
    most = Exponent(1.0, -math.inf, 1.0, "at most", freedom=2, standard_error=0.1).widened(0.9875)
    assert most.low == -math.inf
    assert most.value == most.high == pytest.approx(1 + 0.1902, abs=1e-3)


def test_what_was_not_measured_is_not_decided() -> None:
    unseen = verdicts.unseen("It is so", "No run.")
    assert unseen == Verdict("It is so", NOT_DECIDED, Missing("No run."))
    assert (because(unseen), rule_of(unseen)) == ("No run.", "")


BEYOND = [("SGD", ["highest lr"])]
INSIDE: list[tuple[str, list[str]]] = [("AdamW", [])]


@pytest.mark.parametrize(
    ("value", "settings", "outcome"),
    [
        (-0.05, [*INSIDE, *INSIDE], HELD),
        (-0.05, [*INSIDE, *BEYOND], NOT_DECIDED),
        (-0.05, [*BEYOND, *INSIDE], NOT_DECIDED),
        (0.05, [*INSIDE, *INSIDE], NOT_HELD),
        (0.05, [*INSIDE, *BEYOND], NOT_DECIDED),
        (0.0, [*BEYOND], NOT_DECIDED),
    ],
)
def test_a_claim_is_withdrawn_if_a_setting_is_at_an_edge_of_its_grid(
    value: float, settings: list[tuple[str, list[str]]], outcome: str
) -> None:
    plain = verdicts.better("claim", Estimate(value, value - 0.01, value + 0.01), "this")
    found = verdicts.unless_beyond(plain, settings)
    assert found.outcome == outcome
    said = ", but SGD's best setting is at the edge of its grid (highest lr): widen it there"
    assert because(found).endswith(said) == (BEYOND[0] in settings)
    assert rule_of(found).endswith("Not decided if a best setting is at the edge of its grid.")


def test_a_verdict_keeps_its_numbers_until_it_is_written() -> None:
    found = Estimate(-0.0162, -0.0344, 0.0002)
    part = verdicts.no_worse("part", found, "AdamW's {error} minus Adam's", rival=0.5)
    beyond = verdicts.unless_beyond(part, [*INSIDE, *BEYOND])
    whole = verdicts.all_of("whole", [beyond, verdicts.diagonal("s is 1", unknown("No seeds."))])
    written = as_json(whole)
    assert written["measured"] is None
    first, second = written["parts"]
    assert first["measured"] == {
        "what": "AdamW's error minus Adam's",
        "value": -0.0162,
        "low": -0.0344,
        "high": 0.0002,
        "above": None,
        "below": 0.015,
        "metric": None,
        "rival": 0.5,
        "detectable": 0.0260152,
    }
    assert first["at_edge"] == {"SGD": ["highest lr"]}
    assert first["because"] in written["because"]
    assert second["measured"]["value"] is None
    assert (second["measured"]["above"], second["measured"]["below"]) == (0.5, None)


def test_a_difference_of_a_tasks_own_metric_is_written_in_its_own_unit() -> None:
    found = Estimate(1.5, 1.0, 2.0)
    verdict = verdicts.no_worse("", found, "its {error}", rival=-80.0, metric="squared error")
    assert verdict.outcome == HELD
    assert because(verdict) == "its squared error: +1.5 [+1, +2]"
    assert rule_of(verdict) == (
        "Held if the interval of its squared error lies below +2.4 (3 % of −80), not held if it "
        "lies above."
    )


@pytest.mark.parametrize(("rival", "outcome"), [(0.1206, NOT_HELD), (0.4, HELD)])
def test_a_point_of_error_is_much_on_an_easy_task_and_little_on_a_hard_one(
    rival: float, outcome: str
) -> None:
    cost = Estimate(0.0080, 0.0062, 0.0098)
    assert verdicts.no_worse("It is as good", cost, "this", rival=rival).outcome == outcome


@given(SCALED, SCALED, st.floats(0.01, 10))
def test_what_is_as_good_does_not_depend_on_how_large_errors_are(
    one: float, other: float, factor: float
) -> None:
    low, high = sorted((one, other))
    for rule in (verdicts.no_worse, verdicts.worse, verdicts.alike):
        hard, easy = (
            rule("", Estimate(0, k * low / 100, k * high / 100), "", rival=k * RIVAL)
            for k in (1, factor)
        )
        near = min(abs(abs(end) - 1) for end in (low, high)) < 1e-9  # rounding decides
        assert near or hard.outcome == easy.outcome
