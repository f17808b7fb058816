"""Every way to state a decay leads to every other and back."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay.decay import NORMALIZED, TIMESCALE, WAYS, Budget, Normalized, convert, transfer

RUN: dict[str, Any] = {"lr": 3e-4, "batch": 128, "data": 50_000, "epochs": 100}
CIFAR = Budget(batch=128, data=50_000, epochs=100)


@given(weight_decay=st.floats(1e-9, 0.9), way=st.sampled_from(sorted(WAYS)))
def test_there_and_back_is_the_same_decay(weight_decay: float, way: str) -> None:
    stated = getattr(convert(weight_decay=weight_decay, **RUN), way)
    assert convert(**{way: stated}, **RUN).weight_decay == pytest.approx(weight_decay, rel=1e-9)


def test_the_papers_numbers() -> None:
    """λ_norm = 0.05 on CIFAR-10, batch 128, 100 epochs: λ = 0.05 · √(128/(50000 · 100))."""
    decay = convert(normalized=0.05, **RUN)
    assert decay.weight_decay == pytest.approx(0.05 * math.sqrt(128 / (50_000 * 100)))
    assert decay.torch == pytest.approx(decay.weight_decay / 3e-4)
    assert decay.timescale == pytest.approx(1 / decay.weight_decay)
    assert decay.timescale_epochs == pytest.approx(decay.timescale * 128 / 50_000)
    assert decay.half_life_epochs == pytest.approx(decay.half_life * 128 / 50_000)


@given(weight_decay=st.floats(1e-6, 0.5))
def test_a_weight_halves_in_a_half_life(weight_decay: float) -> None:
    half_life = convert(weight_decay=weight_decay).half_life
    assert (1 - weight_decay) ** half_life == pytest.approx(0.5)


def test_no_decay_never_halves() -> None:
    decay = convert(torch=0, **RUN)
    assert decay.weight_decay == 0
    assert decay.half_life == decay.timescale == math.inf


def test_what_the_context_does_not_say_is_none() -> None:
    decay = convert(weight_decay=1e-4, steps=400)
    assert decay.normalized == pytest.approx(2e-3)
    assert decay.torch is decay.half_life_epochs is decay.timescale_epochs is None
    assert convert(weight_decay=1e-4, batch=10, data=100).timescale_epochs == pytest.approx(1000)


def test_normalized_decay_is_the_decay_of_a_single_update() -> None:
    assert Normalized(0.05).weight_decay(1) == 0.05
    assert Normalized(0.05).weight_decay(100) == 0.005
    assert Normalized(0.05, power=1).weight_decay(100) == 0.0005
    assert Normalized(0.05, steps=4).weight_decay(100) == 0.025
    assert Normalized(0.05, steps=4).weight_decay(None) == 0.025


@given(
    epochs=st.floats(1, 1000),
    data=st.floats(10, 1e6),
    batch=st.floats(1, 4096),
    weight_decay=st.floats(1e-9, 1e-6),
)
def test_transfer_keeps_what_its_rule_keeps(
    epochs: float, data: float, batch: float, weight_decay: float
) -> None:
    now = Budget(batch=batch, data=data, epochs=epochs)
    target = {"batch": batch, "data": data, "epochs": epochs}
    tuned = convert(weight_decay=weight_decay, **RUN)
    by_paper = transfer(weight_decay, tuned=CIFAR, now=now)
    assert convert(weight_decay=by_paper, **target).normalized == pytest.approx(tuned.normalized)
    by_timescale = transfer(weight_decay, tuned=CIFAR, now=now, rule=TIMESCALE)
    there = convert(weight_decay=by_timescale, **target)
    assert there.timescale_epochs == pytest.approx(tuned.timescale_epochs)


def test_a_rule_must_be_a_rule() -> None:
    with pytest.raises(TypeError, match="`rule` must be NORMALIZED, TIMESCALE or BudgetExponents"):
        transfer(1e-4, tuned=CIFAR, now=CIFAR, rule="timescale")  # type: ignore[arg-type]


def test_it_prints_as_a_table() -> None:
    first, second, *_ = str(convert(weight_decay=1e-4, steps=400)).splitlines()
    assert first.split()[-1] == "0.0001"
    assert second.split()[-1] == "0.002"


def test_transfer_to_the_same_budget_changes_nothing() -> None:
    for rule in (NORMALIZED, TIMESCALE):
        assert transfer(1e-4, tuned=CIFAR, now=CIFAR, rule=rule) == 1e-4


def test_the_papers_factor_between_cifar_and_imagenet32() -> None:
    """An epoch 24 times as long: raw λ would be √24, roughly 5 times, too large."""
    longer = Budget(batch=128, data=24 * 50_000, epochs=100)
    assert 1e-4 / transfer(1e-4, tuned=CIFAR, now=longer) == pytest.approx(math.sqrt(24))


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, ValueError, "Exactly one decay must be stated, got none"),
    ({"weight_decay": 0.1, "torch": 1}, ValueError, "got weight_decay, torch"),
    ({"wd": 0.1}, TypeError, "Unknown way to state a decay: `wd`. Did you mean `weight_decay`"),
    ({"torch": 0.1}, ValueError, "Converting this decay also needs `lr`, which was not given"),
    ({"normalized": 0.1}, ValueError, "also needs `steps`, or `batch`, `data` and `epochs`"),
    ({"half_life_epochs": 3}, ValueError, "also needs `batch` and `data`"),
    (
        {"weight_decay": 1.0},
        ValueError,
        r"must give a λ below 1, got 1.0, which is λ = 1",
    ),
    ({"weight_decay": -0.1}, ValueError, "`weight_decay` must be finite and at least 0, got -0.1"),
    ({"weight_decay": float("nan")}, ValueError, "got nan"),
    ({"half_life": 0}, ValueError, "`half_life` must be finite and above 0, got 0"),
    ({"half_life": float("inf")}, ValueError, "`half_life` must be finite and above 0, got inf"),
    ({"timescale": 0.5}, ValueError, r"`timescale` must give a λ below 1, got 0.5, which is λ = 2"),
    ({"torch": 1, "lr": 0}, ValueError, "`lr` must be finite and above 0, got 0"),
    ({"torch": "1", "lr": 0.1}, TypeError, "`torch` must be a number, got '1'"),
    (
        {"weight_decay": 0.1, "steps": 9, "epochs": 3},
        ValueError,
        "`steps` and `epochs` must not both be given",
    ),
]


@pytest.mark.parametrize(("stated", "error", "text"), BAD, ids=[str(case[0]) for case in BAD])
def test_a_bad_statement_says_requirement_and_value(
    stated: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        convert(**stated)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: Normalized(-1), ValueError, "`value` must be finite and at least 0, got -1"),
        (lambda: Normalized(float("nan")), ValueError, "`value` must be .*got nan"),
        (lambda: Normalized("a"), TypeError, "`value` must be a number, got 'a'"),  # type: ignore[arg-type]
        (
            lambda: Normalized(1, power=float("inf")),
            ValueError,
            "`power` must be finite and at least 0, got inf",
        ),
        (lambda: Normalized(1, steps=0), ValueError, "`steps` must be at least 1, got 0"),
        (lambda: Normalized(1).weight_decay(1), ValueError, "must be below 1, got 1 from"),
        (lambda: Normalized(1).weight_decay(None), ValueError, r"pass Normalized\(1, steps=…\)"),
        (
            lambda: Budget(batch=0, data=1, epochs=1),
            ValueError,
            "`batch` must be finite and above 0, got 0",
        ),
    ],
)
def test_a_bad_normalization_cannot_be_built(build: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        build()
