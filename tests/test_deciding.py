"""What is not decided says what it could have seen, and what would decide it."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds import Basin, noisy, seen_in
from weightdecay.records import Environment, Run, RunConfig
from weightdecay.results import Estimate, Exponent, Judgement
from weightdecay.results.estimate import detectable, student, within
from weightdecay.results.exponent import unknown
from weightdecay.studies import verdicts
from weightdecay.studies.deciding import (
    Blocked,
    Effort,
    effort,
    of_judgement,
    seems,
    smallest,
)
from weightdecay.studies.formats import because
from weightdecay.studies.reasons import Comparison, Difference, Quantity, Sample, Size
from weightdecay.studies.samples import of_carriers, of_grids, of_judges, sample_of
from weightdecay.studies.verdict_json import as_json
from weightdecay.studies.verdicts import HELD, NOT_DECIDED, NOT_HELD, Verdict

Number = Comparison | Difference | Quantity | Size

CELL = RunConfig(task="t", model="m", algorithm="sgd", lr=0.1, l2=0.0, epochs=1, batch=8)
#: Ten seeds of two settings, and the time that they took.
TEN = Sample(10, 20, 600.0, "GPU")


@pytest.mark.parametrize(
    ("known", "workers", "seconds"),
    [
        (3, {"core"}, 60.0),
        (3, {"GPU"}, 60.0),
        (3, {"core", "GPU"}, None),
        (2, {"core"}, None),
        (3, set(), 60.0),
    ],
)
def test_the_time_of_runs_is_known_if_each_is_and_one_kind_of_worker_trained_them(
    known: int, workers: set[str], seconds: float | None
) -> None:
    cells = [CELL, replace(CELL, seed=1), replace(CELL, lr=0.2)]
    costs = {cell.identity: 20.0 for cell in cells[:known]}
    found = sample_of(cells, costs, workers)
    assert (found.seeds, found.runs, found.seconds) == (2, 3, seconds)
    assert len(workers) != 1 or {found.worker} == workers


def test_a_worker_is_that_of_the_runs_that_are_counted() -> None:
    """The first stage ran on a GPU, judges on cores, and seeds that carry decays on both."""
    same = dict.fromkeys(("torch", "python", "version", "commit", "source"), "same")
    core, gpu = (Environment(device=one, **same) for one in ("x86_64, 2 threads", "NVIDIA H200"))
    names = "adamw", "sgdw"

    def train(cell: RunConfig) -> Run:
        on_core = 1000 <= cell.seed < 2000 or (cell.seed >= 2000 and cell.algorithm == "adamw")
        run = noisy(cell, Basin().error(cell), 0.001)
        return replace(run, environment=core if on_core else gpu)

    seen = seen_in("figure-2", train, stages=2)
    assert seen.registration is not None
    every = {
        cell.identity: 1.0 for cell in (*(r.config for r in seen.runs), *seen.registration.cells())
    }
    seen = replace(seen, costs=every)
    assert of_grids(seen, *names).worker == "GPU"
    assert of_judges(seen, *names).worker == "core"
    assert of_carriers(seen, "adamw").worker == "core"
    assert of_carriers(seen, "sgdw").worker == "GPU"
    assert of_carriers(seen, *names).seconds is None
    assert of_carriers(seen, "sgdw").seconds == of_carriers(seen, "sgdw").runs > 0


def lower(value: float, error: float = 0.01, by: Sample | None = TEN) -> Verdict:
    """Judge whether a number is below 0, from ten seeds with a standard error of their mean."""
    return verdicts.better(f"{value:+g}", within(value, error**2, 9), "this", by=by)


def compared(value: float, error: float = 0.01, shared: float | None = None) -> Verdict:
    found = within(value, error**2, 9)
    of_test_set = None if shared is None else (shared, shared)
    reason = Comparison("this", Judgement(10, found, found, of_test_set), by=TEN)
    return verdicts.compared("compared", reason)


NEAR = within(0.01, 0.01**2, 9)
#: A number of each kind whose interval holds its bound.
OPEN: dict[str, tuple[Number, str]] = {
    "difference": (
        Difference("this", NEAR, below=0.0, by=TEN),
        "a difference of 3.1 points would have been seen",
    ),
    "comparison": (
        Comparison("this", Judgement(10, NEAR, NEAR, None), by=TEN),
        "a difference of 3.2 % would have been seen",
    ),
    "number": (
        Quantity("e", NEAR, above=0.0, by=TEN),
        "a difference of 0.03 would have been seen",
    ),
    "number of infinite freedom": (
        Quantity("share", Estimate(0.01, -0.01, 0.03), below=0.0, by=TEN),
        "a difference of 0.03 would have been seen",
    ),
    "exponent": (
        Quantity("s", Exponent(0.6, 0.4, 0.8, freedom=9), above=0.5, by=TEN),
        "a difference of 0.28 would have been seen",
    ),
    "bound": (
        Quantity(
            "s",
            Exponent(0.4, 0.4, math.inf, "at least", "Edge.", freedom=9, standard_error=0.1),
            above=0.5,
            by=TEN,
        ),
        "a difference of 0.31 would have been seen",
    ),
    "size": (
        Size("this", within(-0.09, 0.01**2, 9), 0.85, by=TEN),
        "a difference of 3.1 % would have been seen",
    ),
    "share of curves": (
        Quantity("share", Estimate(0.4, 0.0, 1.0), above=0.5, by=TEN, apart=within(0, 0.01**2, 9)),
        "curves that differ by 3.2 % would have been told apart",
    ),
}


def judged(reason: Number) -> Verdict:
    match reason:
        case Comparison():
            return verdicts.compared("claim", reason)
        case Size():
            return verdicts.sized("claim", reason)
        case Difference() | Quantity():
            return verdicts.judged("claim", reason)
    raise AssertionError


@pytest.mark.parametrize("kind", OPEN)
def test_every_number_that_decides_nothing_says_what_it_could_have_seen_and_what_would_decide_it(
    kind: str,
) -> None:
    reason, seen = OPEN[kind]
    verdict = judged(reason)
    assert verdict.outcome == NOT_DECIDED
    said = because(verdict)
    assert seen in said
    assert " seeds would decide it (" in said
    assert " minutes of one GPU)" in said or " hours of one GPU)" in said
    written = as_json(verdict)
    assert written["to_decide"]["seeds"] > 10
    assert written["to_decide"]["runs"] == 2 * written["to_decide"]["seeds"]
    assert any(name.startswith("detectable") for name in written["measured"])
    assert "GPU" not in written["because"]  # the same runs, trained again, take another time


@pytest.mark.parametrize("kind", OPEN)
def test_so_many_seeds_as_would_decide_a_number_decide_it(kind: str) -> None:
    """With their smaller variance, what can be seen is the distance from the bound."""
    reason, _ = OPEN[kind]
    needed = effort(judged(reason))
    assert isinstance(needed, Effort)
    many = replace(reason, **_known_better(reason, math.ceil(needed.seeds) / 10))
    least = smallest(many)
    assert least is not None
    assert 0.93 * _distance(reason) < least <= _distance(reason)


def _known_better(reason: Number, times: float) -> dict[str, Any]:
    """Return a number's fields as so many times more seeds would leave them."""

    def better(found: Estimate) -> Estimate:
        half = found.high - found.value
        was = within(0.0, 1.0, found.freedom).high if math.isfinite(found.freedom) else 1.96
        return within(found.value, (half / was) ** 2 / times, (10 * times - 1) / 9 * found.freedom)

    match reason:
        case Comparison():
            ratio = better(reason.found.ratio)
            return {"found": Judgement(round(10 * times), ratio, ratio, None)}
        case Quantity(found=Exponent() as one) if one.bound:
            freedom = (10 * times - 1) / 9 * one.freedom
            error = one.standard_error / math.sqrt(times)
            return {"found": replace(one, standard_error=error, freedom=freedom)}
        case Quantity(found=Exponent() as one):
            assert one.value is not None
            found = better(Estimate(one.value, one.low, one.high, one.freedom))
            return {"found": Exponent(one.value, found.low, found.high, freedom=found.freedom)}
        case Quantity(apart=Estimate() as apart):
            return {"apart": better(apart)}
        case Difference() | Size() | Quantity():
            assert isinstance(reason.found, Estimate)
            return {"found": better(reason.found)}
    raise AssertionError


def _distance(reason: Number) -> float:
    match reason:
        case Quantity(apart=Estimate()):
            return math.log(verdicts.AS_GOOD)
        case Quantity(found=Exponent() as one) if one.bound:
            return 0.4 + 2.262 * 0.1 - 0.5
        case Quantity(found=Exponent()):
            return 0.1
        case Size():
            return abs(-0.09 - math.log(0.85) / 2)
    return 0.01


def test_what_is_decided_or_unknown_takes_no_seeds() -> None:
    assert effort(lower(-1.0)) is None
    assert "would decide" not in because(lower(-1.0))
    for verdict in (
        verdicts.unseen("It is so", "There are no runs."),
        verdicts.diagonal("It is so", unknown("The grid is too small."), by=TEN),
        verdicts.unless_beyond(lower(-1.0), [("SGD", ["highest lr"])]),
    ):
        assert verdict.outcome == NOT_DECIDED
        assert effort(verdict) == Blocked()
        assert as_json(verdict)["to_decide"] is None
        assert "seeds would" not in because(verdict)


def test_an_edge_is_to_be_widened() -> None:
    verdict = verdicts.unless_beyond(lower(-1.0), [("SGD", ["highest lr"])])
    said = "but SGD's best setting is at the edge of its grid (highest lr): widen it there"
    assert because(verdict).endswith(said)


def test_a_bound_shows_nothing_on_its_other_side() -> None:
    """What is at least 0.6 may be anything above, and no seeds show that it is below 1."""
    found = Exponent(0.6, 0.6, math.inf, "at least", "Edge.", freedom=9, standard_error=0.1)
    verdict = verdicts.between("It is so", found, "s", above=-math.inf, below=1.0, by=TEN)
    assert verdict.outcome == NOT_DECIDED
    assert effort(verdict) == Blocked()
    assert seems(verdicts.diagonal("It is so", replace(found, value=0.4, low=0.4))) == HELD
    above = verdicts.between("It is so", found, "s", above=-0.5, below=0.7, by=TEN)
    assert seems(above) == NOT_HELD
    assert isinstance(effort(above), Effort)


def test_an_estimate_on_its_bound_is_decided_by_no_number_of_seeds() -> None:
    on, near = because(lower(0.0)), because(lower(0.0001))
    assert on.endswith("; no number of seeds on this test set would decide it")
    assert near.endswith("; more than 1,000 seeds would decide it")
    assert as_json(lower(0.0))["to_decide"]["seeds"] is None


def test_seeds_do_not_make_up_for_a_small_test_set() -> None:
    """The test set alone leaves ± 0.02 open, so that a difference of 0.01 stays hidden."""
    verdict = compared(0.01, error=0.012, shared=0.01**2)
    assert because(verdict).endswith("no number of seeds on this test set would decide it")


def test_of_parts_that_seem_to_hold_the_dearest_counts() -> None:
    cheap, dear = lower(-0.015), lower(-0.010)
    whole = verdicts.all_of("whole", [cheap, dear, lower(-1.0)])
    found, alone = effort(whole), effort(dear)
    assert isinstance(found, Effort)
    assert isinstance(alone, Effort)
    assert (found.part, found.share) == ("-0.01", 1)
    assert alone.seeds < found.seeds < 1.5 * alone.seeds  # both parts must be shown
    assert f"about {math.ceil(found.seeds)} seeds would decide it (-0.01: " in because(whole)


def test_a_part_that_seems_not_to_hold_decides_alone_by_its_wider_interval() -> None:
    whole = verdicts.all_of("whole", [lower(0.015), lower(0.010), lower(-0.001)])
    found, alone = effort(whole), effort(lower(0.015))
    assert isinstance(found, Effort)
    assert isinstance(alone, Effort)
    assert (found.part, found.share) == ("+0.015", 3)
    assert alone.seeds < found.seeds < 2 * alone.seeds
    assert "would decide it by an interval of 1 − 0.05/3 (+0.015: " in because(whole)


def test_a_part_that_only_the_wider_interval_leaves_open_says_how_many_seeds_would_close_it() -> (
    None
):
    part = lower(0.025)
    assert part.outcome == NOT_HELD
    whole = verdicts.all_of("whole", [part, lower(-1.0)])
    assert whole.outcome == NOT_DECIDED
    said = because(whole)
    assert "would decide it by an interval of 1 − 0.05/2 (+0.025: " in said
    assert "; +0.025: a difference of 3.1 points would have been seen; -1: " in said


def test_for_a_claim_of_which_one_part_is_enough_it_is_the_other_way_round() -> None:
    hopeful = effort(verdicts.any_of("any", [lower(-0.015), lower(-0.01), lower(0.001)]))
    assert isinstance(hopeful, Effort)
    assert (hopeful.part, hopeful.share) == ("-0.015", 3)
    bleak = effort(verdicts.any_of("any", [lower(0.015), lower(0.01)]))
    assert isinstance(bleak, Effort)
    assert (bleak.part, bleak.share) == ("+0.01", 1)


def test_the_first_measure_is_what_seeds_must_decide() -> None:
    whole = verdicts.by_measures("so", [lower(-0.015), lower(0.001)])
    assert because(whole).count("would decide it (-0.015: ") == 1
    apart = verdicts.by_measures("so", [lower(-1.0), lower(1.0)])
    assert effort(apart) == Blocked()


def test_a_part_that_was_not_measured_is_named() -> None:
    missing = verdicts.unseen("the other", "There are no runs.")
    whole = verdicts.all_of("whole", [lower(-0.015), missing])
    assert because(whole).endswith("; how many seeds would decide it is unknown (the other)")
    # Nothing must be known of it if another part is on the way to decide alone.
    assert "would decide it by an interval" in because(
        verdicts.all_of("whole", [lower(0.015), missing])
    )


def power(within_bounds: list[tuple[float, float, float]], seeds: int) -> float:
    """Return in what share of simulations so many seeds show all numbers between their bounds.

    Seeds have a standard deviation of 1; each number has a true value and two bounds.
    """
    draw = np.random.default_rng(0)
    held = np.ones(4000, dtype=bool)
    for value, above, below in within_bounds:
        sample = draw.normal(value, 1.0, (len(held), seeds))
        half = student(seeds - 1) * sample.std(1, ddof=1) / math.sqrt(seeds)
        held &= (sample.mean(1) - half > above) & (sample.mean(1) + half < below)
    return float(held.mean())


@pytest.mark.parametrize(
    "numbers",
    [
        [(-0.25, -math.inf, 0.0)],
        [(0.0, -0.25, 0.25)],
        [(0.1, -0.25, 0.25)],
        [(-0.25, -math.inf, 0.0)] * 3,
        [(0.0, -0.25, 0.25), (-0.25, -math.inf, 0.0)],
    ],
)
def test_so_many_seeds_decide_in_four_of_five_simulations(
    numbers: list[tuple[float, float, float]],
) -> None:
    """Bounds on both sides, and parts that must all hold, are missed more often than one bound."""
    parts = [
        verdicts.between(
            f"part {at}", within(value, 0.1, 9), "this", above=above, below=below, by=TEN
        )
        for at, (value, above, below) in enumerate(numbers)
    ]
    whole = parts[0] if len(parts) == 1 else verdicts.all_of("whole", parts)
    found = effort(whole)
    assert isinstance(found, Effort)
    assert 0.785 < power(numbers, math.ceil(found.seeds)) < 0.9


@pytest.mark.parametrize("outer", [verdicts.all_of, verdicts.any_of])
@pytest.mark.parametrize("inner", [verdicts.all_of, verdicts.any_of])
@given(st.lists(st.floats(-0.05, 0.05), min_size=2, max_size=4))
def test_what_would_decide_a_part_of_a_part_is_known(
    outer: Any, inner: Any, values: list[float]
) -> None:
    """Parts that 95 % intervals decide may be open by the wider ones of a claim around them."""
    half = len(values) // 2
    parts = [
        inner("part", [lower(value) for value in some]) for some in (values[:half], values[half:])
    ]
    whole = outer("whole", parts)
    assert (effort(whole) is None) == (whole.outcome != NOT_DECIDED)
    assert because(whole)


def test_curves_that_differ_by_the_margin_are_told_apart_by_no_number_of_seeds() -> None:
    """Little noise, and yet ten seeds have not decided it."""
    near = within(0, 0.001**2, 9)
    share = Quantity("share", Estimate(0.4, 0.3, 0.6), above=0.5, by=TEN, apart=near)
    assert effort(verdicts.judged("so", share)) == Blocked()


def test_what_could_have_been_seen_has_the_digits_of_its_interval() -> None:
    verdict = verdicts.better("so", within(0.0001, 0.0001**2, 9), "this", by=TEN)
    assert "a difference of 0.03 points would have been seen" in because(verdict)


VALUE = st.floats(-0.02, 0.02).filter(lambda value: abs(value) > 1e-4)


@given(st.lists(VALUE, min_size=1, max_size=4), st.booleans())
def test_a_claim_seems_to_come_out_as_its_values_say(values: list[float], every: bool) -> None:
    parts = [lower(value) for value in values]
    whole = (verdicts.all_of if every else verdicts.any_of)("whole", parts)
    held = (all if every else any)(value < 0 for value in values)
    assert whole.outcome in (NOT_DECIDED, HELD if held else NOT_HELD)
    assert seems(whole) == (HELD if held else NOT_HELD)
    assert (effort(whole) is None) == (whole.outcome != NOT_DECIDED)


@pytest.mark.parametrize(
    ("value", "distance"),
    [(-0.01, math.log(1.03) + 0.01), (0.005, math.log(1.03) - 0.005), (0.025, 0.025), (0.05, 0.05)],
)
def test_a_comparison_is_decided_by_whatever_is_nearest_to_be_shown(
    value: float, distance: float
) -> None:
    """Better, worse or as good: of two methods that differ by 0.5 %, that they are as good."""
    found = within(value, 0.04**2, 9)
    judgement = Judgement(10, found, found, None)
    assert of_judgement(judgement, TEN).seeds == pytest.approx(judgement.needed(distance))
    assert detectable(found) > distance
