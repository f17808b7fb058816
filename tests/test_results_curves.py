"""Curves are medians with bands; what a cycle's middle reaches is no recommendation."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.landscapes import record
from weightdecay.records import Run, RunConfig
from weightdecay.results import against_training_loss, anytime, curve

BASE: dict[str, Any] = {
    "task": "mnist1d",
    "model": "mlp",
    "algorithm": "adamw",
    "lr": 0.01,
    "weight_decay": 0.001,
    "batch": 100,
}


def run(
    *errors: float,
    seed: int = 0,
    schedule: str = "cosine",
    ends: tuple[int, ...] = (),
    diverged: bool = False,
    an_epoch: int = 10,
) -> Run:
    config = RunConfig(**BASE, epochs=10, schedule=schedule, seed=seed)
    records = [
        record(
            config,
            epoch=epoch,
            updates=epoch * an_epoch,
            test_error=error,
            train_loss=error if math.isfinite(error) else None,
            cycle_ended=epoch in ends,
            diverged=diverged and epoch == len(errors),
        )
        for epoch, error in enumerate(errors, 1)
    ]
    return Run(config, tuple(records))


def test_a_curve_is_the_median_and_the_band_from_20_to_80_percent() -> None:
    seen = curve([run(error, seed=seed) for seed, error in enumerate((0.5, 0.1, 0.4, 0.2, 0.3))])
    assert list(seen.x) == [1]
    assert seen.middle == pytest.approx((0.3,))
    assert seen.low == pytest.approx((0.18,))
    assert seen.high == pytest.approx((0.42,))


def test_a_curve_goes_over_epochs_or_updates() -> None:
    runs = [run(0.4, 0.2, an_epoch=5)]
    assert curve(runs, label="AdamW").x == (1, 2)
    assert curve(runs, by="updates").x == (5, 10)
    assert curve(runs, label="AdamW").label == "AdamW"
    with pytest.raises(ValueError, match="`by` must be one of 'epoch', 'updates', got 'hour'"):
        curve(runs, by="hour")
    with pytest.raises(ValueError, match="`of` must be one of 'train_loss', 'train_error'"):
        curve(runs, of="identity")
    with pytest.raises(ValueError, match="must have a run with a record, got none"):
        curve([])


def test_a_run_that_diverged_holds_its_last_value() -> None:
    seen = curve([run(0.5, 0.9, diverged=True), run(0.5, 0.4, 0.3, 0.1, seed=1)])
    assert seen.middle == pytest.approx((0.5, 0.65, 0.6, 0.5))


def test_a_shorter_run_says_nothing_of_what_lies_beyond() -> None:
    seen = curve([run(0.5, 0.9), run(0.5, 0.4, 0.3, 0.1, seed=1)])
    assert seen.middle == pytest.approx((0.5, 0.65, 0.3, 0.1))


def test_a_loss_that_is_not_finite_is_infinite() -> None:
    runs = [run(0.5, math.inf, diverged=True), run(0.5, 0.4, seed=1), run(0.5, 0.3, seed=2)]
    seen = curve(runs, of="train_loss")
    assert seen.middle == (0.5, 0.4)
    assert seen.high == (0.5, math.inf)


def test_without_restarts_the_anytime_curve_is_the_plain_one() -> None:
    runs = [run(0.5, 0.3, 0.4, ends=(3,)), run(0.6, 0.2, 0.1, seed=1, ends=(3,))]
    assert anytime(runs) == curve(runs)


RESTARTS = "restarts,first=2,factor=1"


def test_with_restarts_a_value_counts_from_its_cycles_end_to_the_next() -> None:
    seen = anytime([run(0.5, 0.4, 0.1, 0.3, 0.2, schedule=RESTARTS, ends=(2, 4))])
    assert list(seen.x) == [1, 2, 3, 4, 5]
    assert math.isnan(seen.middle[0])
    assert seen.middle[1:] == (0.4, 0.4, 0.3, 0.3)


@given(
    errors=st.lists(st.floats(0, 1), min_size=4, max_size=10),
    ends=st.sets(st.integers(1, 10)),
    spoilt=st.floats(-9, 9),
)
def test_what_a_cycles_middle_comes_to_never_counts(
    errors: list[float], ends: set[int], spoilt: float
) -> None:
    others = [error if epoch in ends else spoilt for epoch, error in enumerate(errors, 1)]
    one, other = (
        anytime([run(*values, schedule=RESTARTS, ends=tuple(ends))]) for values in (errors, others)
    )
    assert one.middle == pytest.approx(other.middle, nan_ok=True)


def test_what_a_cycle_left_is_kept_when_the_next_diverges() -> None:
    diverged = run(0.5, 0.4, 0.9, schedule=RESTARTS, ends=(2,), diverged=True)
    longer = run(0.5, 0.2, 0.3, 0.2, seed=1, schedule=RESTARTS, ends=(2, 4))
    assert anytime([diverged, longer]).middle[1:] == pytest.approx((0.3, 0.3, 0.3))


def test_last_training_losses_stand_beside_test_errors() -> None:
    runs = [run(0.5, 0.3), run(0.5, math.inf, diverged=True), run(0.6, 0.4, seed=1)]
    assert against_training_loss(runs) == ((0.3, 0.3), (0.4, 0.4))
