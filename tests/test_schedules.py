"""Schedules: restarts land exactly, far into a run, and bad ones cannot be built."""

import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from math import cos, floor, pi
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay import (
    Constant,
    Cosine,
    Cycle,
    Normalized,
    Schedule,
    StepDrop,
    WarmRestarts,
    Warmup,
)
from weightdecay.schedules import as_schedule, cycles

FACTORS = [1, 2, 3, 10, 1.5, Fraction(7, 3), 1.1, 1.7]
EVERY: dict[str, Schedule] = {
    "constant": Constant(),
    "drops": StepDrop(at=(3, 9)),
    "cosine": Cosine(10, low=0.2),
    "restarts": WarmRestarts(3, factor=1.5),
    "listed": WarmRestarts((3, 5), factor=2, high=(1, 0.5), low=0.1),
    "warm-up": Warmup(4, WarmRestarts(3)),
}
every_schedule = pytest.mark.parametrize("schedule", EVERY.values(), ids=EVERY)


def test_the_papers_example_ends_cycles_at_100_300_700_1500() -> None:
    schedule = WarmRestarts(first=100, factor=2)
    assert [cycle.end for cycle in cycles(schedule, 1500)] == [100, 300, 700, 1500]
    for start in (0, 100, 300, 700, 1500):
        assert schedule(start) == 1.0
    assert schedule(99) == pytest.approx(0.5 + 0.5 * cos(pi * 0.99), rel=1e-9)


@pytest.mark.parametrize("factor", FACTORS, ids=str)
@pytest.mark.parametrize("first", [1, 5, 100])
def test_restarts_land_exactly_far_into_a_run(first: int, factor: Any) -> None:
    """PEERS 4: no logarithm. Each start has η = high, the update before it is the old cycle's."""
    schedule = WarmRestarts(first, factor=factor)
    start, exact = 0, Fraction(str(factor))
    for index in range(40):
        length = floor(first * exact**index + Fraction(1, 2))
        assert schedule.cycle(start) == Cycle(index=index, start=start, length=length)
        assert schedule.cycle(start + length - 1) == Cycle(index=index, start=start, length=length)
        assert schedule(start) == 1.0
        if length > 1:
            assert schedule(start + length - 1) < 1
        start += length


@given(
    first=st.integers(1, 50),
    factor=st.fractions(1, 4, max_denominator=20),
    t=st.integers(0, 10**9),
)
def test_an_update_is_in_its_own_cycle(first: int, factor: Fraction, t: int) -> None:
    cycle = WarmRestarts(first, factor=max(factor, Fraction(11, 10))).cycle(t)
    assert cycle.end is not None
    assert cycle.start <= t < cycle.end


def test_a_fraction_and_a_float_that_are_equal_are_not_the_same_factor() -> None:
    """1.7 is 17/10; Fraction(1.7) is what binary makes of it, a little less."""
    assert WarmRestarts(5, factor=Fraction(1.7)).cycle(6).length == 8
    assert WarmRestarts(5, factor=1.7).cycle(6).length == 9


@given(first=st.integers(1, 50), t=st.integers(0, 10**15))
def test_equal_cycles_need_no_list(first: int, t: int) -> None:
    assert WarmRestarts(first, factor=1).cycle(t) == Cycle(
        index=t // first, start=t - t % first, length=first
    )


@given(
    steps=st.integers(1, 100_000),
    cycles_wanted=st.integers(1, 8),
    factor=st.sampled_from(FACTORS),
)
def test_a_run_from_a_budget_ends_where_a_cycle_ends(
    steps: int, cycles_wanted: int, factor: Any
) -> None:
    exact = Fraction(str(factor))
    share = steps / sum(exact**i for i in range(cycles_wanted))
    if share < 1:
        return
    schedule = WarmRestarts.from_budget(steps, cycles=cycles_wanted, factor=factor)
    found = list(cycles(schedule, steps))
    assert len(found) == cycles_wanted
    assert found[-1].end == steps
    for cycle in found:
        assert cycle.length is not None
        assert abs(cycle.length - share * exact**cycle.index) <= 1


def test_a_budget_too_small_for_its_cycles_is_refused() -> None:
    with pytest.raises(ValueError, match="one update per cycle, got 3 for 4 cycles"):
        WarmRestarts.from_budget(3, cycles=4)


@given(
    high=st.floats(0, 2),
    low=st.floats(0, 1),
    first=st.integers(1, 1000),
    t=st.integers(0, 5000),
)
def test_restarts_follow_the_papers_formula(high: float, low: float, first: int, t: int) -> None:
    low = min(low, high)
    schedule = WarmRestarts(first, high=high, low=low)
    cycle = schedule.cycle(t)
    assert cycle.length is not None
    expected = low + 0.5 * (high - low) * (1 + cos(pi * (t - cycle.start) / cycle.length))
    assert schedule(t) == pytest.approx(expected, abs=1e-12)
    assert schedule(cycle.start) == high
    assert WarmRestarts(first, high=high + 0.7, low=0.1)(cycle.start) == high + 0.7


def test_peaks_and_floors_may_differ_from_cycle_to_cycle() -> None:
    listed = WarmRestarts(2, factor=1, high=[1, 0.5], low=[0.2, 0.1])
    assert [listed(t) for t in (0, 2, 4, 100)] == [1, 0.5, 0.5, 0.5]
    assert listed(1) == pytest.approx(0.6)
    assert listed(3) == pytest.approx(0.3)
    computed = WarmRestarts(2, factor=1, high=lambda i: 0.5**i)
    assert [computed(t) for t in (0, 2, 4)] == [1, 0.5, 0.25]


def test_after_a_cosine_ends_it_stays_low() -> None:
    schedule = Cosine(10, low=0.2)
    assert schedule(0) == 1
    assert schedule(5) == pytest.approx(0.6)
    assert [schedule(t) for t in (10, 11, 10**9)] == [0.2] * 3
    assert schedule.cycle(10**9) == Cycle(index=0, start=0, length=10)


def test_drops_happen_at_their_updates() -> None:
    schedule = StepDrop(at=[3, 6], drop=0.5)
    assert [schedule(t) for t in (0, 2, 3, 5, 6, 99)] == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_warm_up_comes_before_the_first_cycle_and_does_not_count_in_it() -> None:
    schedule = Warmup(3, WarmRestarts(4, high=0.8))
    assert [schedule(t) for t in range(4)] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert schedule(3) == schedule(7) == 0.8
    assert schedule.cycle(0) == schedule.cycle(3) == Cycle(index=0, start=3, length=4)
    assert schedule.cycle(7) == Cycle(index=1, start=7, length=8)


def test_any_function_is_a_schedule() -> None:
    def halves(t: int) -> float:
        return 0.5**t

    assert as_schedule(halves)(3) == 0.125
    assert as_schedule(halves).cycle(3) == Cycle(index=0, start=0, length=None)
    assert Warmup(2, halves)(3) == 0.5


def test_a_functions_own_cycles_are_used() -> None:
    class Sawtooth:
        def __call__(self, t: int) -> float:
            return 1 - t % 5 / 5

        def cycle(self, t: int) -> Cycle:
            return Cycle(index=t // 5, start=t - t % 5, length=5)

    assert as_schedule(Sawtooth()).cycle(12) == Cycle(index=2, start=10, length=5)


@every_schedule
def test_a_schedule_is_a_value(schedule: Schedule) -> None:
    again = pickle.loads(pickle.dumps(schedule))
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert [again(t) for t in range(30)] == [schedule(t) for t in range(30)]
    with pytest.raises(AttributeError):
        schedule.low = 3  # type: ignore[attr-defined]


@every_schedule
def test_updates_are_numbered_from_0(schedule: Schedule) -> None:
    with pytest.raises(ValueError, match="`t` must be at least 0, got -1"):
        schedule(-1)
    with pytest.raises(ValueError, match="`t` must be at least 0, got -1"):
        schedule.cycle(-1)


NAN, INF = float("nan"), float("inf")
BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Cosine(0), ValueError, r"`steps` must be at least 1, got 0"),
    (lambda: Cosine(1.5), TypeError, r"`steps` must be a whole number, got 1.5"),  # type: ignore[arg-type]
    (lambda: Cosine(True), TypeError, r"`steps` must be a whole number, got True"),
    (lambda: Cosine(5, low=-0.1), ValueError, r"`low` must be finite and at least 0, got -0.1"),
    (lambda: Cosine(5, low=1.1), ValueError, r"`low` must be at most 1"),
    (lambda: Cosine(5, low=NAN), ValueError, r"`low` must be finite and at least 0, got nan"),
    (lambda: StepDrop(at=()), ValueError, r"`at` must not be empty"),
    (lambda: StepDrop(at=7), TypeError, r"`at` must be a sequence of numbers, got 7"),  # type: ignore[arg-type]
    (lambda: StepDrop(at=(5, 5)), ValueError, r"`at` must be strictly increasing"),
    (lambda: StepDrop(at=(0,)), ValueError, r"`at` must be at least 1, got 0"),
    (lambda: StepDrop(at=(5,), drop=INF), ValueError, r"`drop` must be finite"),
    (lambda: WarmRestarts(0), ValueError, r"`first` must be at least 1, got 0"),
    (lambda: WarmRestarts(()), ValueError, r"`first` must not be empty"),
    (lambda: WarmRestarts(9.5), TypeError, r"`first` must be a whole number"),  # type: ignore[arg-type]
    (lambda: WarmRestarts(9, factor=0.5), ValueError, r"`factor` must be finite and at least 1"),
    (lambda: WarmRestarts(9, factor=NAN), ValueError, r"`factor` must be .*got nan"),
    (lambda: WarmRestarts(9, factor="2"), TypeError, r"`factor` must be a number"),  # type: ignore[arg-type]
    (lambda: WarmRestarts(9, high=-1), ValueError, r"`high` must be .*got -1"),
    (lambda: WarmRestarts(9, high=[]), ValueError, r"`high` must not be empty"),
    (lambda: WarmRestarts(9, high=[1, NAN]), ValueError, r"`high` must be .*got nan"),
    (lambda: WarmRestarts(9, low=1.5), ValueError, r"`low` must be at most `high`"),
    (lambda: WarmRestarts(9, high=[1, 0.1], low=0.5), ValueError, r"high 0.1 in cycle 1"),
    (lambda: WarmRestarts(9, high=lambda _: INF), ValueError, r"`high\(0\)` must be finite"),
    (lambda: WarmRestarts.from_budget(9, cycles=0), ValueError, r"`cycles` must be at least 1"),
    (lambda: Warmup(-1, Constant()), ValueError, r"`steps` must be at least 0, got -1"),
    (lambda: Warmup(1, 0.5), TypeError, r"`then` must be a schedule or a function of t, got 0.5"),  # type: ignore[arg-type]
    (lambda: as_schedule(Constant), TypeError, r"`schedule` must be a schedule or a function"),
    (lambda: StepDrop(at=(5,), drop=10), ValueError, r"`drop` must be at most 1, got 10"),
    (lambda: WarmRestarts.from_budget(3, cycles=4, factor=1), ValueError, r"per cycle, got 3 for"),
    (lambda: Cosine(10)(NAN), TypeError, r"`t` must be a whole number, got nan"),  # type: ignore[arg-type]
    (lambda: Constant()(1.5), TypeError, r"`t` must be a whole number, got 1.5"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "error", "text"), BAD, ids=[text for *_, text in BAD])
def test_a_bad_schedule_says_requirement_and_value(
    build: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        build()


@pytest.mark.parametrize(
    ("build", "arguments", "text"),
    [
        (Cosine, {"step": 9}, "Cosine has no `step`. Did you mean `steps`? It has `steps`, `low`."),
        (Cosine, {"T_max": 9}, "Cosine has no `T_max`. Did you mean `steps`?"),
        (StepDrop, {"milestones": [9]}, "StepDrop has no `milestones`. Did you mean `at`?"),
        (WarmRestarts, {"first": 9, "factr": 2}, "no `factr`. Did you mean `factor`?"),
        (WarmRestarts, {"T_0": 9}, "WarmRestarts has no `T_0`. Did you mean `first`?"),
        (WarmRestarts.from_budget, {"step": 9}, "Did you mean `steps`? It has `steps`, `cycles`,"),
        (Warmup, {"step": 9, "then": Cosine(9)}, "Warmup has no `step`. Did you mean `steps`?"),
        (Constant, {"value": 1}, "Constant has no `value`."),
        (Normalized, {"value": 1, "step": 9}, "no `step`. Did you mean `steps`?"),
    ],
)
def test_an_unknown_argument_is_told_what_was_meant(
    build: Callable[..., Any], arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        build(**arguments)
