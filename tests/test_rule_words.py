"""What pages and commands say of the rules: what to do with the decay, and what else would cost."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.landscapes import QUADRATIC, Truth, exact, landscape_of, noisy
from tests.test_results_transfer import BEST, PAIRS, fresh
from weightdecay.results import (
    Estimate,
    Exponent,
    Knobs,
    Landscape,
    Recommendation,
    TransferRegret,
    measure_transfer,
    recommend,
)
from weightdecay.results.estimate import Array
from weightdecay.results.exponent import unknown
from weightdecay.results.transfer import of_fresh_seeds
from weightdecay.site import PageLandscape, plain_rules, rule_costs, rules
from weightdecay.site.answers import summary

pytestmark = pytest.mark.cpu("sentences do not depend on the device")
SURE = Exponent(0.0, -0.1, 0.1)


def _separate(s: float) -> Landscape:
    return landscape_of(truth := Truth(s=s, decays=15, cliff=5.0), exact(truth.errors()))


def _advised(
    regret: TransferRegret,
    exponent: Exponent = SURE,
    *,
    bent: bool = False,
    told_in: str | None = None,
    of: str = "error",
) -> Recommendation:
    """Return advice on a grid whose rules cost so much."""
    found = recommend(landscape_of(QUADRATIC, exact(QUADRATIC.errors())))
    return replace(
        found,
        landscape=replace(found.landscape, told_in=told_in, of=of),
        knobs=Knobs(exponent, fitted=False, regret=regret, bent=bent),
    )


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ([4.0], "measured for a larger α; for a smaller one they are unknown"),
        ([0.25], "measured for a smaller α; for a larger one they are unknown"),
        ([4.0, 0.25], None),
    ],
)
@pytest.mark.parametrize(
    ("exponent", "begins"),
    [
        (Exponent(0.0, -0.1, 0.1), "If you multiply α by 4, leave λ as it is."),
        (Exponent(-0.5, -0.6, -0.4), "If you multiply α by 4, multiply λ by 2"),
        (Exponent(-0.7, -1.1, -0.4), "These runs do not decide between"),
    ],
)
def test_the_sentence_says_so_if_costs_were_measured_in_one_direction_alone(
    factors: list[float], words: str | None, exponent: Exponent, begins: str
) -> None:
    """Also where s decides, because all rules with known costs cost something, or nothing does."""
    least = 0.0 if exponent.value == 0 else 0.01
    cost = {0.0: least + np.linspace(-0.001, 0.001, 8), 1.0: np.linspace(0.04, 0.05, 8)}
    regret = of_fresh_seeds(
        {(2**-7, 2**-7 * factor): cost for factor in factors}, error=0.1, best=BEST
    )
    advised = _advised(regret, exponent)
    told = rules.sentence(advised)
    assert told.startswith(begins)
    texts = [told]
    if not told.startswith("These runs do not decide"):
        texts.append(plain_rules.alone(advised)[1])  # what a page says first
    for text in texts:
        assert ("were measured for a" in text) == (words is not None)
        assert words is None or words in text


@pytest.mark.parametrize(
    ("cost", "scatter", "word", "does"),
    [
        (0.0, 0.001, "yes", "Then the error does not rise|Then the error rises by 0.0"),
        (0.002, 0.001, "yes", "Then the error rises by 0.2"),  # below 3 % of the error, 10 %
        (0.02, 0.001, "at a cost", "rises by 2.0 percentage points, and no other simple rule"),
        (0.02, 0.05, "not decided", r"favour this: leave λ .*\(uncertain: .*\), and no other"),
    ],
)
def test_leaving_a_decay_alone_is_not_called_free_if_it_cost_something(
    cost: float, scatter: float, word: str, does: str
) -> None:
    """It is the rule to use all the same, as each other costs more within every seed."""
    own = cost + scatter * np.linspace(-1, 1, 8)
    costs = dict.fromkeys((-1.0, -0.5, 1.0), own + 0.05) | {0.0: own}
    regret = of_fresh_seeds(dict.fromkeys(PAIRS, costs), error=0.1, best=BEST)
    assert regret.tied == (0.0,)
    advised = _advised(regret)
    assert plain_rules.alone(advised)[0] == word
    assert re.search(does, plain_rules.alone(advised)[1])
    assert (" cost " in rules.sentence(advised).partition("In these runs")[0]) == (cost > 0)


def test_a_rule_that_surely_costs_more_is_not_among_those_left_open() -> None:
    """Three rules lead too far, inside the interval of s; one costs 20 points at least."""
    scatter = np.linspace(-0.002, 0.002, 8)
    costs = {-1.0: 0.2 + scatter, -0.5: 0.012 - scatter, 0.0: 0.012 + scatter, 1.0: 0.012 + scatter}
    regret = replace(
        of_fresh_seeds({PAIRS[0]: costs}, error=0.1, best=BEST), beyond=(-1.0, -0.5, 0.0)
    )
    found = _advised(regret, Exponent(-0.5, -1.1, 0.1))
    assert regret.dearer == (-1.0,)
    assert found.knobs.rule is None
    assert "do not decide between keeping λ/√α and keeping λ." in rules.sentence(found)
    assert "by 4: multiply λ by 2 or leave λ as it is." in plain_rules.alone(found)[1]


def test_a_page_does_not_forbid_what_may_cost_as_little() -> None:
    """The rule is to keep λ·α; leaving λ is five points worse on average, within its noise."""
    wild = 0.05 + np.array([-0.2, 0.2, -0.1, 0.1, 0.15, -0.15, 0.05, -0.05])
    regret = of_fresh_seeds(
        {PAIRS[0]: {0.0: wild, 1.0: np.linspace(-0.001, 0.001, 8)}}, error=0.1, best=BEST
    )
    word, done = plain_rules.alone(_advised(regret))
    assert word == "not decided"
    assert "divide λ by 4 or leave λ as it is: these runs cannot tell which costs less" in done
    assert plain_rules.restated(_advised(regret)) == ""
    clear = of_fresh_seeds(
        {PAIRS[0]: {0.0: wild / 100 + 0.05, 1.0: wild / 100}}, error=0.1, best=BEST
    )
    word, _ = plain_rules.alone(_advised(clear))
    assert word == "no"


@pytest.mark.parametrize(
    ("regret", "exponent", "words"),
    [
        (fresh(m1=0.02, p0=0.0, p1=0.05), SURE, "by 4, leave λ as it is. That divides torch's"),
        (fresh(m1=0.0, p0=0.04, p1=0.05), SURE, "multiply λ by 4 too, which keeps λ/α. That leav"),
        (
            fresh(m1=0.02, p0=0.0, p1=0.05),
            SURE,
            "In these runs, keeping λ/α would have cost 2.0 points and keeping λ·α 5.0 points.",
        ),
        (
            fresh(m1=0.02, p0=0.0, p0_5=0.0),
            SURE,
            "These runs cannot tell its cost from that of keeping λ·√α.",
        ),
        (
            fresh(m1=0.05, p0=0.05, p1=0.01),
            SURE,
            "Keeping λ·α still cost 1.0 points, and no other rule",
        ),
        (
            fresh(m1=0.05, p0=0.05, p1=0.0),
            SURE,
            "The exponent says otherwise, s = 0.00 [−0.10, 0.10], but this rule cost less.",
        ),
        # If the second stage did not train what the exponent points to, and no rule is free.
        (
            fresh(m1=0.05, p0=0.04, p1=0.01),
            Exponent(2.0, 1.8, 2.2),
            "and keeping λ·α. No fresh seed has judged this rule. In these runs, keeping λ/α would",
        ),
        # Nor if it leads beyond the trained decays: the last decay there may cost nothing.
        (
            replace(fresh(m1=0.05, m0_5=0.0, p0=0.04), beyond=(-0.5,)),
            Exponent(-0.5, -0.6, -0.4),
            "This rule leads beyond the trained decays, so what it costs is unknown. In these runs",
        ),
        # But it decides if what leads out is known to cost more, even at its least.
        (
            replace(fresh(m1=0.05, m0_5=0.2, p0=0.01), beyond=(-0.5,)),
            Exponent(-0.5, -0.6, -0.4),
            "by 4, leave λ as it is.",
        ),
        # The cheapest known rule is named beside the one that s points to.
        (
            replace(fresh(p0_5=0.002, p1=0.0), beyond=(1.0,)),
            Exponent(0.8, 0.6, 1.1),
            "what it costs is unknown. In these runs, keeping λ·√α would have cost 0.2 points.",
        ),
        # So is what the last decay on its way costs, if that is known to cost something.
        (
            replace(fresh(noise=0.004, p0_5=0.009, p1=0.01), beyond=(1.0,)),
            Exponent(0.8, 0.6, 1.1),
            "This rule leads beyond the trained decays, and costs at least 0.83 points.",
        ),
        # A rule that surely costs more is none of those that s leaves, if others are.
        (
            replace(fresh(m1=0.2, m0_5=0.0, p0=0.01), beyond=(-1.0, -0.5)),
            Exponent(-0.75, -1.1, -0.4),
            "by 4, multiply λ by 2, which keeps λ/√α.",
        ),
    ],
)
def test_the_sentence_comes_from_the_regret(
    regret: TransferRegret, exponent: Exponent, words: str
) -> None:
    assert words in rules.sentence(_advised(regret, exponent))


@pytest.mark.parametrize(
    ("regret", "exponent", "told"),
    [
        (fresh(m1=0.05, p0=0.0, p1=0.05), SURE, "keep λ: "),
        # The second stage did not train the rule that s points to, and no rule is free.
        (
            fresh(m1=0.1, p0=0.05, p1=0.01),
            Exponent(1.94, 1.3, 2.6),
            "keep λ·α², by s: unknown; keeping λ·α costs ",
        ),
        (fresh(p0=0.01, p1=0.03), Exponent(-0.7, -1.1, -0.4), "not decided; keeping λ costs "),
        (
            TransferRegret({0.0: Estimate(0.01, math.nan, math.nan)}),
            SURE,
            "keep λ, by s: 1.0 points, an estimate",
        ),
        (TransferRegret(why="All runs have the same α."), unknown("one α"), "unknown: All runs "),
    ],
)
def test_a_table_names_the_rule_that_the_sentence_names(
    regret: TransferRegret, exponent: Exponent, told: str
) -> None:
    advised = _advised(regret, exponent)
    said = rule_costs.best(advised.knobs, None)
    assert said.startswith(told)
    kept = advised.knobs.rule
    assert said.startswith("keep") == (kept is not None)
    if kept is not None:
        assert said.split(":")[0].split(",")[0] == f"keep {rule_costs.KEPT[kept]}"
        assert rules.sentence(advised).startswith(f"If you multiply α by 4, {rules.DONE[kept]}")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (Estimate(-0.0007, math.nan, math.nan), "By an estimate of the sweep's own runs, it costs"),
        (Estimate(0.002, 0.001, 0.003), "By the sweep's own runs, it costs 0.2 points."),
    ],
)
def test_what_no_fresh_seed_judged_costs_what_the_sweep_says(own: Estimate, words: str) -> None:
    """It is said beside the rules that fresh seeds judged, in the sentence and in tables."""
    found = _advised(
        TransferRegret({2.0: own}, tied=() if math.isnan(own.low) else (2.0,)),
        Exponent(1.94, 1.3, 2.6),
    )
    judged = found.judged(fresh(m1=0.1, p0=0.05, p1=0.01))
    assert judged.knobs.rule == 2.0
    assert f"No fresh seed has judged this rule. {words}" in rules.sentence(judged)
    cost = rule_costs.cost(found.knobs.regret, 2.0, None)
    assert rule_costs.best(judged.knobs, None).startswith(f"keep λ·α², by s: {cost} points")


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Estimate(0.001, -0.002, 0.003), None),
        (Estimate(-0.00001, -0.002, 0.002), None),  # printed as 0.00
        (Estimate(-0.001, -0.003, 0.001), "did better than the one tuned there, up to noise"),
        (Estimate(-0.002, -0.003, -0.001), "keeping λ did better than the λ tuned there, by more"),
        (Estimate(-0.01, math.nan, math.nan), "tuned there, whether by more than noise is unknown"),
    ],
)
def test_a_negative_cost_is_explained(cost: Estimate, words: str | None) -> None:
    found = TransferRegret({0.0: cost, 1.0: Estimate(0.05, 0.04, 0.06)}, tied=(0.0,), seeds=8)
    told = rule_costs.costs(found, None)
    assert ("did better" in told) == (words is not None)
    assert words is None or words in told


def test_a_sentence_does_not_say_that_a_rule_costs_less_than_nothing() -> None:
    none = math.nan
    regret = TransferRegret({-1.0: Estimate(-0.02, none, none), 1.0: Estimate(0.03, none, none)})
    found = replace(recommend(_separate(0.0)), knobs=Knobs(SURE, fitted=False, regret=regret))
    assert "keeping λ/α would have cost nothing (−2.0 points) and" in rules.sentence(found)


@pytest.mark.parametrize(
    ("exponent", "contradicted"),
    [
        (SURE, False),
        (Exponent(0.15, 0.1, 0.2), False),  # the nearest rule is the one that costs least
        (Exponent(0.5, 0.4, 0.6), True),
        (Exponent(0.7, 0.7, math.inf, "at least"), True),
        (unknown("The ridge has a knee.", withheld=True), False),
    ],
)
def test_s_and_regret_disagree_if_no_rule_that_costs_least_is_one_that_s_leaves(
    exponent: Exponent, contradicted: bool
) -> None:
    knobs = Knobs(exponent, fitted=False, regret=measure_transfer(_separate(0.0)))
    assert knobs.rule == 0.0
    assert knobs.contradicted == contradicted
    found = recommend(_separate(0.0))
    said = "The exponent says otherwise" in rules.sentence(replace(found, knobs=knobs))
    assert said == contradicted


def test_with_few_seeds_the_exponent_decides_and_an_estimate_that_differs_is_named() -> None:
    found = recommend(noisy(Truth(s=0.0), 1, np.random.default_rng(0)))
    other = replace(
        found.knobs.regret,
        costs={0.0: Estimate(0.02, math.nan, math.nan), 1.0: Estimate(0.01, math.nan, math.nan)},
    )
    told = rules.sentence(replace(found, knobs=replace(found.knobs, regret=other)))
    assert told.startswith("If you multiply α by 4, leave λ as it is.")
    assert told.endswith("By that estimate, keeping λ·α costs least.")


@pytest.mark.parametrize(
    ("s", "word", "does", "restated"),
    [
        (-1.0, "yes", "leave weight_decay as it is. Then the error", "multiply λ by 4 too."),
        (
            0.0,
            "no",
            "divide weight_decay by 4. If weight_decay st",
            "leave λ as it is.",
        ),
        (1.0, "no", "divide weight_decay by 16. If weight_decay st", "divide λ by 4. If that"),
    ],
)
def test_whoever_states_torchs_decay_is_told_what_to_do_with_that(
    s: float, word: str, does: str, restated: str
) -> None:
    """Leaving weight_decay keeps λ/α: a ridge upright in λ is no leave to change α alone."""
    scape = replace(_separate(s), told_in="torch")
    found = recommend(scape)
    assert plain_rules.asked(scape) == "Change α and leave weight_decay?"
    answer, done = plain_rules.alone(found)
    assert answer == word
    assert done.startswith(f"If you multiply α by 4, {does}")
    assert plain_rules.restated(found).startswith("For λ, which is α · weight_decay, that means: ")
    assert f"that means: {restated}" in plain_rules.restated(found)
    assert rules.sentence(found).startswith(done[: done.index(".")])
    assert f"that means: {restated.partition('.')[0]}" in rules.sentence(found)
    assert "which keeps λ" in rules.sentence(found) or s == 0
    plain = replace(found, landscape=replace(scape, told_in=None))
    assert plain_rules.asked(plain.landscape) == "Change α and leave λ?"
    assert (plain_rules.alone(plain)[0] == "yes") == (s == 0)


_NONE = math.nan


@pytest.mark.parametrize(
    ("costs", "beyond", "exponent", "word", "told"),
    [
        # The exponent decides alone: nothing was carried, by any rule.
        ({}, (), SURE, "yes", "If you multiply α by 4, leave λ as it is."),
        # An estimate speaks against it: of 0.08, and of 0.001, which is within 3 % of the error.
        (
            {0.0: Estimate(0.08, _NONE, _NONE), 1.0: Estimate(0.01, _NONE, _NONE)},
            (),
            SURE,
            "not decided",
            (
                "rises by 8.0 percentage points, by a first estimate. By that estimate, it costs "
                "least to divide λ by 4."
            ),
        ),
        (
            {0.0: Estimate(0.001, _NONE, _NONE), 1.0: Estimate(0.0, _NONE, _NONE)},
            (),
            Exponent(1.0, 0.9, 1.1),
            "not decided",
            "these runs favour this: divide λ by 4. If λ stays, the error rises by 0.1",
        ),
        # The rule leads too far, so what it costs is unknown.
        (
            {0.0: Estimate(0.01, -0.02, 0.04), 0.5: Estimate(0.03, 0.02, 0.04)},
            (0.0,),
            SURE,
            "not decided",
            "Then nobody knows how much the error rises, as that leads beyond the trained decays.",
        ),
        # Another rule is measurably better, by less than counts.
        (
            {0.0: Estimate(0.002, 0.001, 0.003), 0.5: Estimate(-0.001, -0.002, 0.0)},
            (),
            Exponent(0.5, 0.4, 0.6),
            "yes",
            "you may leave λ as it is. Then the error rises by 0.2 percentage points. A little",
        ),
        # Also where nothing tells which is better,
        (
            {0.0: Estimate(0.002, -0.01, 0.014), 0.5: Estimate(0.0, -0.001, 0.001)},
            (),
            Exponent(0.5, 0.4, 0.6),
            "yes",
            "by 4, leave λ as it is. Then the error rises by 0.2 percentage points (uncertain:",
        ),
        # but not where that rule is better by more than counts.
        (
            {0.0: Estimate(0.002, 0.001, 0.003), 0.5: Estimate(-0.03, -0.04, -0.02)},
            (),
            Exponent(0.5, 0.4, 0.6),
            "no",
            "If you multiply α by 4, divide λ by 2. If λ stays, the error rises by 0.2 percentage",
        ),
        # Leaving λ surely costs more than another rule: by how much nobody knows, or 2 points.
        (
            {0.0: Estimate(0.01, -0.02, 0.04), 0.5: Estimate(0.0, -0.002, 0.002)},
            (0.0,),
            Exponent(0.5, 0.4, 0.6),
            "not decided",
            "these runs favour this: divide λ by 2. If λ stays, nobody knows how much the error",
        ),
        (
            {0.0: Estimate(0.03, 0.02, 0.04), 0.5: Estimate(0.0, -0.002, 0.002)},
            (0.0,),
            Exponent(0.5, 0.4, 0.6),
            "no",
            "divide λ by 2. If λ stays, the error rises by at least 2.0 percentage points.",
        ),
        # The rule that the exponent points to costs more, by an estimate.
        (
            {0.0: Estimate(0.04, _NONE, _NONE), 0.5: Estimate(0.05, _NONE, _NONE)},
            (),
            Exponent(0.5, 0.4, 0.6),
            "not decided",
            "rises by 4.0 percentage points, by a first estimate. By that estimate, it costs least",
        ),
        (
            {0.0: Estimate(0.04, _NONE, _NONE), 0.5: Estimate(0.002, _NONE, _NONE)},
            (),
            Exponent(0.5, 0.4, 0.6),
            "no",
            "divide λ by 2. If λ stays, the error rises by 4.0 percentage points, by a first est",
        ),
        # It is not if that rule alone is within 3 %.
        (
            {0.0: Estimate(0.02, 0.01, 0.03), 0.5: Estimate(0.002, 0.001, 0.003)},
            (),
            Exponent(0.5, 0.4, 0.6),
            "no",
            "by 4, divide λ by 2. If λ stays, the error rises by 2.0 percentage points.",
        ),
    ],
)
def test_the_answer_agrees_with_what_leaving_the_decay_costs(
    costs: dict[float, Estimate],
    beyond: tuple[float, ...],
    exponent: Exponent,
    word: str,
    told: str,
) -> None:
    inside = [rule for rule in costs if rule not in beyond and not math.isnan(costs[rule].low)]
    least = min(inside, key=lambda rule: costs[rule].value, default=None)
    tied = tuple(
        rule for rule in costs if least is not None and costs[rule].low <= costs[least].high
    )
    regret = TransferRegret(costs, tied=tied, beyond=beyond, margin=0.003, seeds=3)
    answer, done = plain_rules.alone(_advised(regret, exponent))
    assert answer == word
    assert told in done


def test_of_tied_rules_the_one_that_leaves_the_stated_decay_comes_first() -> None:
    even = TransferRegret(
        {rule: Estimate(0.001, -0.001, 0.003) for rule in (-1.0, 0.0)},
        tied=(-1.0, 0.0),
        margin=0.003,
        seeds=3,
    )
    assert even.rule == 0.0
    assert plain_rules.alone(_advised(even))[0] == "yes"
    torchs = replace(even, unchanged=-1.0)
    assert torchs.rule == -1.0
    answer, done = plain_rules.alone(_advised(torchs, told_in="torch"))
    assert answer == "yes"
    assert "leave weight_decay as it is" in done
    scape = replace(_separate(0.0), told_in="torch")
    assert measure_transfer(scape).unchanged == -1.0
    assert measure_transfer(_separate(0.0)).unchanged == 0.0


def test_what_leaving_the_other_decay_costs_is_that_of_the_other() -> None:
    regret = fresh(m1=0.07, p0=0.04, p0_5=0.0)
    half = Exponent(0.5, 0.4, 0.6)
    assert plain_rules.restated(_advised(regret, half)).endswith(
        "by 8. If that stays, the error rises by 7.0 percentage points."
    )
    assert plain_rules.restated(_advised(regret, half, told_in="torch")).endswith(
        "divide λ by 2. If that stays, the error rises by 4.0 percentage points."
    )


def test_a_rule_for_both_directions_is_not_said_to_cost_least_in_each() -> None:
    noise = np.linspace(-0.001, 0.001, 8)
    up = {-0.5: 0.06 + noise, 0.0: 0.02 + noise, 0.5: noise}
    down = {-0.5: noise, 0.0: 0.02 + noise, 0.5: 0.06 + noise}
    regret = of_fresh_seeds({(BEST, 4 * BEST): up, (BEST, BEST / 4): down}, error=0.1, best=BEST)
    knee = unknown("The ridge has a knee.", withheld=True)
    answer, done = plain_rules.alone(_advised(regret, knee, bent=True))
    assert answer == "at a cost"
    assert "keeping λ·√α cost nothing (−0.0" not in done
    assert done.endswith("points, and no one rule for both directions costs measurably less.")
    told = rules.sentence(_advised(regret, knee, bent=True))
    assert re.search("From the best α, keeping λ·√α .* raised, and keeping λ/√α .* lowered", told)
    assert "still cost 2.0 points, and no other rule for both directions measurably less" in told
    assert "weight_decay by 8 if" not in told
    torchs = rules.sentence(_advised(regret, knee, bent=True, told_in="torch"))
    assert (
        "That is: divide weight_decay by 8 if α is multiplied by 4, and multiply weight_decay by 2 "
        "if α is divided by 4. One rule for both directions:"
    ) in torchs


def test_beside_a_knee_both_directions_come_first_also_if_two_rules_may_cost_as_little() -> None:
    noise = np.linspace(-0.001, 0.001, 8)
    wild = np.linspace(-0.1, 0.1, 8)
    up = {-0.5: 0.06 + noise, 0.0: 0.02 + wild, 0.5: noise}
    down = {-0.5: noise, 0.0: 0.02 + wild, 0.5: 0.01 + noise}
    regret = of_fresh_seeds({(BEST, 4 * BEST): up, (BEST, BEST / 4): down}, error=0.1, best=BEST)
    answer, done = plain_rules.alone(_advised(regret, unknown("", withheld=True), bent=True))
    assert answer == "not decided"
    assert done.startswith("The ridge has a knee. From the best α, keeping λ·√α cost ")
    assert done.endswith(
        "One rule for both directions: If you multiply α by 4, divide λ by 2 or leave λ as it is: "
        "these runs cannot tell which costs less."
    )


def test_a_loss_is_not_called_an_error() -> None:
    regret = fresh(p0=0.0, p1=0.04)
    assert "the loss " in plain_rules.alone(_advised(regret, of="loss"))[1]
    assert "the error " in plain_rules.alone(_advised(regret))[1]


def test_what_is_undecided_is_undecided_about_the_decay_that_is_stated() -> None:
    nothing = TransferRegret(why="Nothing was carried.")
    unsure = unknown("The ridge bends.")
    for told_in, decay in ((None, "λ"), ("torch", "weight_decay")):
        advised = _advised(nothing, unsure, told_in=told_in)
        assert f"do not decide what to do with {decay} when" in rules.sentence(advised)
        flat = rules.sentence(replace(advised, differ=False))
        assert flat.endswith(f"so no rule for {decay} is better.")


def _page(title: str, advised: Recommendation) -> PageLandscape:
    return PageLandscape(title, advised, "", {"test": advised.landscape})


@pytest.mark.parametrize(
    ("told_in", "decay", "torchs"),
    [(None, "λ", "; in torch, divide weight_decay, which is λ/α"), ("torch", "weight_decay", "")],
)
def test_the_summary_names_the_decay_and_what_leaving_it_does(
    told_in: str | None, decay: str, torchs: str
) -> None:
    kept = 0.0 if told_in is None else -1.0
    zero, small, far = np.zeros(8), np.linspace(-0.001, 0.001, 8), np.linspace(-0.2, 0.2, 8)

    def page(title: str, leaving: Array, other: Array) -> PageLandscape:
        costs = {kept: leaving, 1.0: other}
        found = of_fresh_seeds(dict.fromkeys(PAIRS, costs), error=0.1, best=BEST)
        exponent = Exponent(kept, kept - 0.1, kept + 0.1)
        advised = _advised(replace(found, unchanged=kept), exponent, told_in=told_in)
        return _page(title, advised)

    free = page("A", small, 0.05 + small)
    dear, dearer = (page(name, 0.02 + small, 0.05 + small) for name in "BC")
    never, unsure = page("D", 0.05 + small, zero), page("E", 0.05 + far, zero)
    yes, no, cost, open_ = summary([free, dear, never, unsure])[1:]
    assert yes.startswith(f"You may change α and leave {decay} as it is with A{torchs}")
    assert ("; in torch" in yes) == bool(torchs)
    assert no == f"You may not with D: change {decay} with α."
    assert cost == (
        f"With B, changing α and leaving {decay} costs something, and no simple rule for both "
        "directions costs measurably less."
    )
    assert open_ == "For E, these runs do not decide whether you may change α alone."
    both = summary([dear, dearer])[1]
    assert both.startswith(f"With B and C, changing α and leaving {decay} costs something")
    worse = page("F", 0.09 + small, zero)
    for order in ([never, worse], [worse, never]):
        none, least = summary(order)[1:]
        assert none == f"Neither of these two lets you change α alone: change {decay} with it."
        assert least == (
            f"D suffers least: if α becomes 4 times as large or small and {decay} stays, the error "
            "rises by 5.0 percentage points there."
        )


@pytest.mark.parametrize(("s", "cost"), [(-1.0, None), (0.0, "the error rises by ")])
def test_the_least_that_leaving_a_decay_costs_is_of_the_decay_that_is_stated(
    s: float, cost: str | None
) -> None:
    """None suffers least if none suffers."""
    least = plain_rules.least_kept([recommend(replace(_separate(s), told_in="torch"))])
    assert (least is None) == (cost is None)
    assert least is None or (cost is not None and least[1].startswith(cost))


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, pairs={pair: one.pairs[pair] for pair in one.pairs if up(pair)}),
        lambda one: replace(one, beyond=(0.0,)),
        lambda one: replace(one, costs={0.0: Estimate(0.045, 0.035, 0.055)}),
        lambda one: replace(one, costs={0.0: Estimate(0.02, math.nan, math.nan)}),
        lambda one: replace(one, costs={}),
    ],
)
def test_none_is_said_to_suffer_least_where_costs_cannot_be_compared(
    change: Callable[[TransferRegret], TransferRegret],
) -> None:
    """Of one direction alone, beyond the grid, with overlapping intervals, of another metric."""
    one, other = (_advised(fresh(p0=cost, p1=0.0)) for cost in (0.05, 0.09))
    assert plain_rules.least_kept([other, one]) is not None
    changed = replace(other, knobs=replace(other.knobs, regret=change(other.knobs.regret)))
    assert plain_rules.least_kept([changed, one]) is None
    assert plain_rules.least_kept([_advised(other.knobs.regret, of="loss"), one]) is None


def up(pair: tuple[float, float]) -> bool:
    """Whether a decay is carried to a larger learning rate."""
    return pair[1] > pair[0]


@pytest.mark.parametrize(
    ("exponent", "word", "told"),
    [
        (Exponent(0.5, 0.4, 0.6), "not decided", "these runs favour this: divide λ by 2."),
        (Exponent(1.0, 0.9, 1.1), "no", "divide λ by 4."),
        (Exponent(0.0, -0.1, 0.1), "yes", "leave λ as it is."),
    ],
)
def test_what_no_runs_measured_costs_more_only_if_s_is_far_from_leaving_it(
    exponent: Exponent, word: str, told: str
) -> None:
    """A grid whose learning rates are a factor of 10 apart has s, and no costs."""
    answer, done = plain_rules.alone(_advised(TransferRegret(why="No such rates."), exponent))
    assert answer == word
    assert done == f"If you multiply α by 4, {told}"


def test_a_page_tells_what_fresh_seeds_judged_from_what_the_sweep_estimates() -> None:
    none = math.nan
    found = _advised(
        TransferRegret({2.0: Estimate(0.001, none, none), 1.0: Estimate(0.012, none, none)}),
        Exponent(1.94, 1.3, 2.6),
    )
    judged = found.judged(fresh(p0=0.05, p1=0.02))
    answer, done = plain_rules.alone(judged)
    assert answer == "no"
    assert "divide λ by 16. If λ stays, the error rises by 5.0 percentage points." in done
    assert (
        "No fresh seed judged what it costs to divide λ by 16; by the sweep's own runs, the error "
        "rises by 0.1 percentage points, by a first estimate. Of the rules that were judged, it "
        "costs least to divide λ by 4: the error rises by 2.0 percentage points."
    ) in done


def test_how_far_alpha_was_moved_is_said_if_it_is_not_by_four() -> None:
    for factors, said in (
        ((4.0, 0.25), None),
        ((5.0, 0.2), "α was changed by a factor of 5, not 4."),
        ((3.0, 0.3), "α was changed by factors of 3 to 3.3."),
    ):
        costs = {0.0: np.linspace(-0.001, 0.001, 8), 1.0: np.linspace(0.04, 0.05, 8)}
        moves = {(BEST, BEST * factor): costs for factor in factors}
        advised = _advised(of_fresh_seeds(moves, error=0.1, best=BEST))
        for told in (rules.sentence(advised), plain_rules.alone(advised)[1]):
            assert ("α was changed" in told) == (said is not None)
            assert said is None or said in told


def test_a_rule_that_did_better_still_is_compared_with_leaving_the_decay() -> None:
    """Both did better than the decay that was tuned there, so no error rises."""
    advised = _advised(fresh(p0=-0.006, p0_5=-0.02), Exponent(0.5, 0.4, 0.6))
    answer, done = plain_rules.alone(advised)
    assert answer == "no"
    assert re.search("If λ stays, the error is 1.4 percentage points higher than if you do", done)


@pytest.mark.parametrize(("p0", "said"), [(0.002, True), (0.006, False)])
def test_the_sentence_says_so_if_leaving_the_decay_costs_hardly_more(p0: float, said: bool) -> None:
    """So a page's "Yes" and the sentence of another rule do not contradict each other."""
    advised = _advised(fresh(p0=p0, p0_5=0.0, p1=0.03), Exponent(0.5, 0.4, 0.6))
    assert advised.knobs.rule == 0.5
    told = "You may also leave λ as it is: that costs at most 3 % of the error."
    assert (told in rules.sentence(advised)) == said
    assert (plain_rules.alone(advised)[0] == "yes") == said


@pytest.mark.parametrize(
    ("exponent", "said"),
    [
        (Exponent(0.0, -0.1, 0.1), "but this rule cost less."),
        (Exponent(2.0, 1.8, 2.2), "but no rule that was tried cost less."),
    ],
)
def test_a_rule_is_not_said_to_cost_less_than_one_that_was_not_tried(
    exponent: Exponent, said: str
) -> None:
    advised = _advised(fresh(m1=0.05, p0=0.05, p1=0.0), exponent)
    assert advised.knobs.contradicted
    assert said in rules.sentence(advised)


def test_a_small_cost_has_as_many_digits_as_it_takes() -> None:
    wide = Estimate(0.02, 0.0004, 0.04)
    found = TransferRegret({0.0: wide, 1.0: Estimate(0.0004, 0.0002, 0.0006)}, tied=(1.0,))
    assert rule_costs.cost(replace(found, beyond=(0.0,)), 0.0, None) == "≥ 0.04"
    assert rule_costs.worded(found, 1.0, None).amount == "0.04 points"
    none = replace(found, costs={0.0: wide, 1.0: Estimate(1e-9, 1e-10, 2e-9)}, margin=0.003)
    advised = _advised(none, Exponent(1.0, 0.9, 1.1))
    assert "still cost" not in rules.sentence(advised)


def test_on_either_side_of_a_knee_a_page_says_first_what_to_do_there() -> None:
    truth = Truth(s=-0.6, knee=1.2, decays=15, curvature=0.05, plateau=0.5)
    found = recommend(noisy(truth, 3, np.random.default_rng(0), spread=0.001))
    assert found.knobs.bent
    [sides] = rules.by_direction(found.knobs.regret, found.landscape)
    assert plain_rules.alone(found)[1].startswith(f"{sides} If you multiply α by 4, ")
    straight = replace(found, knobs=replace(found.knobs, bent=False))
    assert "knee" not in plain_rules.alone(straight)[1]


@pytest.mark.parametrize(
    ("rise", "low", "high", "told"),
    [
        (-0.001, -0.012, 0.010, "does not rise (uncertain: [−1.2, 1.0])."),
        (-0.001, -0.003, 0.001, "does not rise."),
        (0.001, -0.008, 0.010, "rises by 0.1 percentage points (uncertain: [−0.8, 1.0])."),
        (0.001, -0.001, 0.003, "rises by 0.1 percentage points."),
    ],
)
def test_a_rise_is_uncertain_if_it_may_be_none_or_larger_than_the_margin(
    rise: float, low: float, high: float, told: str
) -> None:
    regret = TransferRegret(
        {-1.0: Estimate(0.05, 0.04, 0.06), 0.0: Estimate(rise, low, high)},
        tied=(0.0,),
        seeds=8,
        margin=0.003,
    )
    assert f"Then the error {told}" in plain_rules.alone(_advised(regret))[1]


def test_rules_whose_cost_nobody_knows_are_named_together() -> None:
    unknown_costs = Estimate(0.01, -0.02, 0.04)
    regret = TransferRegret(
        {-1.0: unknown_costs, 0.0: Estimate(0.001, -0.001, 0.002), 1.0: unknown_costs},
        tied=(0.0,),
        seeds=8,
        beyond=(-1.0, 1.0),
    )
    told = rules.sentence(_advised(regret))
    assert (
        "What keeping λ/α and keeping λ·α would have cost is unknown, as they lead beyond the "
        "trained decays."
    ) in told
    tied = rules.sentence(_advised(replace(regret, tied=(-1.0, 0.0))))
    assert tied.count("unknown") == 1
    bounded = Estimate(0.05, 0.03, 0.07)
    least = replace(regret, tied=(-1.0, 0.0), costs={**regret.costs, -1.0: bounded})
    assert "keeping λ/α would have cost at least 3.0 points" in rules.sentence(_advised(least))
    known = rules.sentence(_advised(replace(regret, beyond=(1.0,))))
    assert "keeping λ/α would have cost 1.0 points (uncertain: [−2.0, 4.0])." in known
    assert (
        "What keeping λ·α would have cost is unknown, as it leads beyond the trained decays."
        in known
    )


def test_a_rule_that_did_better_is_not_called_noise_beside_one_that_may_be() -> None:
    regret = TransferRegret(
        {0.0: Estimate(-0.02, -0.03, -0.01), 0.5: Estimate(-0.01, -0.03, 0.01)}, tied=(0.0, 0.5)
    )
    sure, unsure = rule_costs.negative(regret, None)
    assert sure == "keeping λ did better than the λ tuned there, by more than noise"
    assert unsure == "keeping λ·√α did so up to noise"
