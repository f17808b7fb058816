"""What pages and commands say of the rules: what to do with the decay, and what else would cost."""

import math
import re
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
from weightdecay.results.exponent import unknown
from weightdecay.results.transfer import of_fresh_seeds
from weightdecay.site import plain_rules, rule_costs, rules

pytestmark = pytest.mark.cpu("sentences do not depend on the device")
SURE = Exponent(0.0, -0.1, 0.1)


def _separate(s: float) -> Landscape:
    return landscape_of(truth := Truth(s=s, decays=15, cliff=5.0), exact(truth.errors()))


def _advised(regret: TransferRegret) -> Recommendation:
    """Return advice on a grid whose rules cost so much."""
    found = recommend(landscape_of(QUADRATIC, exact(QUADRATIC.errors())))
    return replace(found, knobs=Knobs(SURE, fitted=False, regret=regret))


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
    found = recommend(landscape_of(QUADRATIC, exact(QUADRATIC.errors())))
    advised = replace(found, knobs=Knobs(exponent, fitted=False, regret=regret))
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
        (0.02, 0.05, "not decided", r"rises by .*\(uncertain: .*\), and no other simple rule"),
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
    found = recommend(landscape_of(QUADRATIC, exact(QUADRATIC.errors())))
    advised = replace(found, knobs=Knobs(SURE, fitted=False, regret=regret))
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
    knobs = Knobs(Exponent(-0.5, -1.1, 0.1), fitted=False, regret=regret)
    assert regret.dearer == (-1.0,)
    assert knobs.rule is None
    found = replace(recommend(landscape_of(QUADRATIC, exact(QUADRATIC.errors()))), knobs=knobs)
    assert "do not decide between keeping λ/√α and keeping λ." in rules.sentence(found)
    assert "by 4: multiply λ by 2 or leave λ as it is." in plain_rules.alone(found)[1]


def test_a_page_does_not_forbid_what_may_cost_as_little() -> None:
    """The rule is to keep λ·α; leaving λ is five points worse on average, within its noise."""
    wild = 0.05 + np.array([-0.2, 0.2, -0.1, 0.1, 0.15, -0.15, 0.05, -0.05])
    regret = of_fresh_seeds(
        {PAIRS[0]: {0.0: wild, 1.0: np.linspace(-0.001, 0.001, 8)}}, error=0.1, best=BEST
    )
    found = recommend(landscape_of(QUADRATIC, exact(QUADRATIC.errors())))
    word, done = plain_rules.alone(replace(found, knobs=Knobs(SURE, fitted=False, regret=regret)))
    assert word == "not decided"
    assert "divide λ by 4 or leave λ as it is: these runs cannot tell which costs less" in done
    clear = of_fresh_seeds(
        {PAIRS[0]: {0.0: wild / 100 + 0.05, 1.0: wild / 100}}, error=0.1, best=BEST
    )
    word, _ = plain_rules.alone(replace(found, knobs=Knobs(SURE, fitted=False, regret=clear)))
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
        (fresh(m1=0.05, p0=0.05, p1=0.01), SURE, "It still cost 1.0 points, and no other rule"),
        (
            fresh(m1=0.05, p0=0.05, p1=0.0),
            SURE,
            "The exponent says otherwise, s = 0.00 [−0.10, 0.10], but this rule cost less.",
        ),
        # If the second stage did not train what the exponent points to, and no rule is free.
        (
            fresh(m1=0.05, p0=0.04, p1=0.01),
            Exponent(2.0, 1.8, 2.2),
            "and keeping λ·α. No seed has judged this rule. In these runs, keeping λ/α would",
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
    found = recommend(landscape_of(QUADRATIC, exact(QUADRATIC.errors())))
    told = rules.sentence(replace(found, knobs=Knobs(exponent, fitted=False, regret=regret)))
    assert words in told


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
    assert f"that means: {restated.partition('.')[0]}." in rules.sentence(found)
    plain = replace(found, landscape=replace(scape, told_in=None))
    assert plain_rules.asked(plain.landscape) == "Change α and leave λ?"
    assert (plain_rules.alone(plain)[0] == "yes") == (s == 0)


@pytest.mark.parametrize(("s", "word"), [(-1.0, "yes"), (0.0, "no")])
def test_the_least_that_leaving_a_decay_costs_is_of_the_decay_that_is_stated(
    s: float, word: str
) -> None:
    found = recommend(replace(_separate(s), told_in="torch"))
    least = plain_rules.least_kept([found])
    assert least is not None
    assert least[1].startswith("0.0") == (word == "yes")


def test_on_either_side_of_a_knee_a_page_says_first_what_to_do_there() -> None:
    truth = Truth(s=-0.6, knee=1.2, decays=15, curvature=0.05, plateau=0.5)
    found = recommend(noisy(truth, 3, np.random.default_rng(0), spread=0.001))
    assert found.knobs.bent
    [sides] = rules.by_direction(found.knobs.regret, found.landscape)
    assert plain_rules.alone(found)[1].startswith(f"{sides} If you multiply α by 4, ")
    straight = replace(found, knobs=replace(found.knobs, bent=False))
    assert "knee" not in plain_rules.alone(straight)[1]


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (-0.012, 0.010, "does not rise (uncertain: [−1.2, 1.0])."),
        (-0.003, 0.001, "does not rise."),
    ],
)
def test_a_rise_below_zero_is_uncertain_if_it_may_be_larger_than_the_margin(
    low: float, high: float, told: str
) -> None:
    regret = TransferRegret(
        {-1.0: Estimate(0.05, 0.04, 0.06), 0.0: Estimate(-0.001, low, high)},
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
