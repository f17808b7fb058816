"""Runs that must agree are compared: twins without decay, and one configuration trained twice."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.landscapes import Truth, ended, measured, runs_of
from weightdecay.records import Run, RunConfig, or_infinite
from weightdecay.results import agreement, doubts
from weightdecay.results.agreement import twin
from weightdecay.site.doubts import lines

TRUTH = Truth(rates=7, decays=8, zero=True)


def config(algorithm: str, **values: Any) -> RunConfig:
    base: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "lr": 0.1, "epochs": 1, "batch": 9}
    return RunConfig(algorithm=algorithm, **(base | values))


def sweep(first: int = 0, **values: Any) -> list[Run]:
    """Return two landscapes with noise of their own, L2 and decoupled, both with λ = 0."""
    random = np.random.default_rng(first)
    return [
        run
        for way in ("l2", "weight_decay")
        for run in runs_of(
            TRUTH,
            measured(TRUTH.errors(), 1, random, spread=0.004, examples=10_000),
            way=way,
            **values,
        )
    ]


def raised(runs: Iterable[Run], wanted: RunConfig, factor: float) -> list[Run]:
    return [
        Run(run.config, (replace(run.last, test_error=or_infinite(run.last.test_error) * factor),))
        if run.config == wanted
        else run
        for run in runs
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (config("sgd", l2=0), config("sgdw", weight_decay=0)),
        (config("sgd", l2=0), config("sgdw", normalized_decay=0)),
        (config("adam", l2=0), config("adamw", weight_decay=0)),
        (config("adam,betas=0.9/0.98", l2=0), config("adamw,betas=0.9/0.98", normalized_decay=0)),
        (config("torch.optim:NAdam", l2=0), config("torch.optim:NAdam", weight_decay=0)),
    ],
)
def test_without_decay_l2_and_decoupled_decay_are_twins(one: RunConfig, other: RunConfig) -> None:
    assert twin(one) == twin(other)
    pair = [ended(one, test_error=0.2), ended(other, test_error=0.2002)]
    found = agreement(pair)
    assert [(p.one, p.other) for p in found.pairs] == [tuple(pair)]
    assert found.largest == pytest.approx(0.0002)
    assert found.broken == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (config("sgd", l2=0), config("sgdw", weight_decay=0.1)),
        (config("sgd", l2=0.1), config("sgdw", weight_decay=0.1)),
        (config("sgd", l2=0), config("adamw", weight_decay=0)),
        (config("sgd", l2=0), config("sgdw", weight_decay=0, seed=1)),
        (config("sgd", l2=0), config("sgdw", weight_decay=0, lr=0.2)),
        (config("sgd,momentum=0", l2=0), config("sgdw", weight_decay=0)),
        (config("sgd", l2=0), config("sgdw", weight_decay=0, schedule="constant")),
    ],
)
def test_runs_that_differ_in_anything_else_are_no_twins(one: RunConfig, other: RunConfig) -> None:
    assert agreement([ended(one), ended(other, test_error=0.9)]).pairs == ()


@pytest.mark.slow
def test_twins_differ_by_no_more_than_noise_however_it_falls() -> None:
    """Each has noise of its own here: on a GPU rounding grows to about that."""
    broken = pairs = 0
    for first in range(40):
        found = agreement(sweep(first))
        pairs += len(found.pairs)
        broken += len(found.broken)
    assert pairs == 40 * 7
    assert broken == 0


def test_a_twin_with_a_frozen_schedule_disagrees() -> None:
    runs = sweep()
    wrong = runs[3 * len(TRUTH.lambdas)].config
    assert wrong.l2 == 0
    found = agreement(raised(runs, wrong, 1.2))
    assert [pair.one.config for pair in found.broken] == [wrong]
    assert found.largest == found.broken[0].difference > found.broken[0].allowed


@pytest.mark.parametrize("given", ["as repeats", "among the runs"])
def test_a_configuration_trained_twice_is_compared_with_itself(given: str) -> None:
    runs = sweep()
    middle = runs[3 * len(TRUTH.lambdas) + 4]
    [again] = raised([middle], middle.config, 1.01)
    [wrong] = raised([middle], middle.config, 1.3)
    for second, broken in ((again, 0), (wrong, 1)):
        repeats = [second] if given == "as repeats" else []
        found = agreement(runs if repeats else [*runs, second], repeats)
        assert (middle, second) in [(pair.one, pair.other) for pair in found.pairs]
        assert len(found.pairs) == 7 + 1
        assert len(found.broken) == broken


def test_a_repeat_is_compared_with_its_own_configuration_before_a_twin() -> None:
    one, other = config("sgd", l2=0), config("sgdw", weight_decay=0)
    runs = [ended(one, test_error=0.2), ended(other, test_error=0.21)]
    repeat = ended(other, test_error=0.211)
    found = agreement(runs, [repeat])
    assert [(pair.one, pair.other) for pair in found.pairs] == [tuple(runs), (runs[1], repeat)]


def test_a_run_that_diverged_agrees_with_one_that_did_too() -> None:
    one, other = config("sgd", l2=0), config("sgdw", weight_decay=0)
    lost = ended(one, test_error=0.9, diverged=True)
    assert agreement([lost, ended(other, test_error=0.8, diverged=True)]).broken == ()
    [pair] = agreement([lost, ended(other, test_error=0.2)]).broken
    assert pair.difference == pytest.approx(0.7)


def test_runs_without_records_are_not_compared() -> None:
    one = config("sgd", l2=0)
    assert agreement([Run(one, ()), ended(one)], [ended(one)]).largest == 0


def test_doubts_are_said_in_words() -> None:
    runs = sweep()
    size = len(TRUTH.lambdas)
    twins, alone = runs[3 * size].config, runs[(3 + 7) * size + 5].config
    found = doubts(raised(raised(runs, twins, 1.2), alone, 1.5))
    told = lines(found)
    assert told[0].startswith("7 pairs of twins compared; the largest difference is ")
    assert told[1] == "1 pair disagrees by more than noise explains:"
    assert told[2].startswith("  adam and adamw, lr 2⁻⁷, no decay, seed 0: ")
    stands_out = [line for line in told if line.startswith("  adamw, lr 2⁻⁷, weight_decay 2⁻¹¹: ")]
    assert len(stands_out) == 1
    assert " where its neighbours say " in stands_out[0]
    assert len(found.outliers) == 2
    assert told[3] == "2 cells stand out from their neighbours:"


def test_nothing_to_compare_is_nothing_to_say() -> None:
    nothing = doubts([])
    assert not nothing
    assert lines(nothing) == []
    fine = doubts(sweep())
    assert not fine
    assert len(lines(fine)) == 1


def test_what_tells_landscapes_apart_is_named_with_a_cell() -> None:
    short, long = sweep(), sweep(epochs=20)
    wrong = long[3 * len(TRUTH.lambdas) + 5].config
    found = doubts([*short, *raised(long, wrong, 1.5)])
    assert found.varied == ("epochs",)
    assert [line for line in lines(found) if "adam, epochs 20, lr 2⁻⁷, l2 2⁻¹¹: " in line]


def test_many_are_counted_and_some_named() -> None:
    one = config("sgd", l2=0)
    runs = [ended(replace(one, seed=seed), test_error=0.2) for seed in range(15)]
    repeats = [ended(run.config, test_error=0.4) for run in runs]
    told = lines(doubts(runs, repeats))
    assert told[1] == "15 pairs disagree by more than noise explains:"
    assert told[2] == (
        "  sgd, trained twice, lr 0.1, no decay, seed 0: 20.00\N{NO-BREAK SPACE}% and "
        "40.00\N{NO-BREAK SPACE}%, where noise explains 3.04 points"
    )
    assert told[-1] == "  and 5 more"
    assert len(told) == 2 + 10 + 1
