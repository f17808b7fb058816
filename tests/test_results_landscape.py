"""A landscape says of its cells what is certain, and of a half-finished sweep what it can."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.landscapes import (
    Truth,
    ended,
    exact,
    landscape_of,
    measured,
    noisy,
    record,
    reseen,
    runs_of,
)
from weightdecay.records import Run, RunConfig
from weightdecay.results import Landscape, coupling, landscapes
from weightdecay.results.estimate import student
from weightdecay.results.noise import effects, noise, tied

SMALL = Truth(rates=3, decays=4, zero=True)
BASE: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "algorithm": "adamw", "batch": 100}


def config(**values: Any) -> RunConfig:
    return RunConfig(**BASE | {"lr": 0.01, "weight_decay": 0.001, "epochs": 4} | values)


def sweep(seeds: int = 3) -> list[Run]:
    return runs_of(SMALL, measured(SMALL.errors(), seeds, np.random.default_rng(0)))


def test_runs_that_differ_in_rate_decay_and_seed_alone_are_one_landscape() -> None:
    ways = [
        runs_of(SMALL, exact(SMALL.errors(), 1), way=way, epochs=epochs)
        for epochs in (10, 20)
        for way in ("weight_decay", "normalized_decay", "l2")
    ]
    found = landscapes(run for runs in ways for run in runs)
    assert [(one.way, one.config.epochs) for one in found] == [
        ("weight_decay", 10),
        ("normalized_decay", 10),
        ("l2", 10),
        ("weight_decay", 20),
        ("normalized_decay", 20),
        ("l2", 20),
    ]
    assert all(len(one.cells) == 3 * 5 and one.decays[0] == 0 for one in found)


@given(order=st.permutations(range(45)))
def test_the_order_of_runs_changes_nothing(order: list[int]) -> None:
    runs = sweep()
    assert landscapes([runs[place] for place in order]) == landscapes(runs)


def test_a_cell_has_mean_standard_error_and_score() -> None:
    runs = [
        ended(config(seed=seed), test_error=error, validation_error=error / 2)
        for seed, error in ((7, 0.4), (2, 0.1), (5, 0.4))
    ]
    [landscape] = landscapes(runs)
    [cell] = landscape.cells.values()
    assert cell.seeds == (2, 5, 7)
    assert cell.tested == (0.1, 0.4, 0.4)
    assert cell.mean == pytest.approx(0.3)
    assert cell.standard_error == pytest.approx(0.1)
    assert cell.score == pytest.approx(0.15)
    [alone] = landscapes(runs[:1])
    assert math.isnan(alone.best.standard_error)


def test_choices_are_made_on_the_validation_split_unless_the_papers_way_is_asked_for() -> None:
    runs = [
        ended(config(lr=0.01), validation_error=0.2, test_error=0.4),
        ended(config(lr=0.02), validation_error=0.3, test_error=0.1),
    ]
    [ours], [papers] = landscapes(runs), landscapes(runs, choose_on="test")
    assert (ours.chosen_on, ours.best.lr, ours.best.mean) == ("validation", 0.01, 0.4)
    assert (papers.chosen_on, papers.best.lr, papers.best.mean) == ("test", 0.02, 0.1)
    [held_none_out] = landscapes([ended(config(validation="test"))])
    assert held_none_out.chosen_on == "test"
    with pytest.raises(ValueError, match="`choose_on` must be one of 'validation', 'test', got"):
        landscapes(runs, choose_on="training")


@pytest.mark.parametrize(
    ("of", "choose_on", "best", "error"),
    [
        ("error", "validation", 0.01, 0.5),
        ("error_top5", "validation", 0.02, 0.3),
        ("error", "test", 0.02, 0.4),
        ("error_top5", "test", 0.01, 0.2),
    ],
)
def test_a_landscape_is_of_top_1_or_of_top_5_errors(
    of: str, choose_on: str, best: float, error: float
) -> None:
    errors: list[dict[str, Any]] = [
        {"validation_error": 0.2, "test_error": 0.5},
        {"validation_error": 0.3, "test_error": 0.4},
    ]
    errors[0] |= {"validation_error_top5": 0.1, "test_error_top5": 0.2}
    errors[1] |= {"validation_error_top5": 0.0, "test_error_top5": 0.3}
    runs = [ended(config(lr=lr), **own) for lr, own in zip((0.01, 0.02), errors, strict=True)]
    [landscape] = landscapes(runs, choose_on=choose_on, of=of)
    assert (landscape.of, landscape.best.lr, landscape.best.mean) == (of, best, error)
    assert landscapes(runs) == landscapes(runs, of="error")
    with pytest.raises(ValueError, match="`of` must be one of 'error', 'error_top5', got 'loss'"):
        landscapes(runs, of="loss")


def test_errors_are_those_of_the_last_epoch() -> None:
    one = config()
    records = (record(one, epoch=1, test_error=0.1), record(one, epoch=2, test_error=0.6))
    [landscape] = landscapes([Run(one, records)])
    assert landscape.best.mean == 0.6


def test_of_a_configuration_that_comes_twice_the_first_counts() -> None:
    twice = [ended(config(), test_error=0.1), ended(config(), test_error=0.9)]
    [landscape] = landscapes(twice)
    assert landscape.best.tested == (0.1,)


def test_the_ten_best_are_sorted_and_best_first() -> None:
    landscape = noisy(replace(SMALL, rates=5), 3, np.random.default_rng(1))
    scores = [cell.score for cell in landscape.ten_best]
    assert scores == sorted(scores)
    assert len(scores) == 10
    assert landscape.best == landscape.ten_best[0]
    assert landscape.best.score == min(cell.score for cell in landscape.cells.values())


def test_a_cell_that_diverged_is_named_and_never_the_best() -> None:
    runs = [
        ended(config(lr=0.01), validation_error=0.5),
        ended(config(lr=0.02), validation_error=0.1, diverged=True),
        ended(config(lr=0.02, seed=1), validation_error=0.1),
    ]
    [landscape] = landscapes(runs)
    assert [(cell.lr, cell.diverged) for cell in landscape.diverged] == [(0.02, (0,))]
    assert landscape.best.lr == 0.01
    assert [cell.lr for cell in landscape.tied] == [0.01]
    [all_diverged] = landscapes(runs[1:2])
    assert all_diverged.tied == (all_diverged.best,)


@pytest.mark.parametrize(
    ("centre", "edges"),
    [
        ((0.0, 0.0), ()),
        ((-9.0, 0.0), ("lowest lr",)),
        ((0.0, 9.0), ("highest decay",)),
        ((9.0, -9.0), ("highest lr", "lowest decay")),
    ],
)
def test_the_edges_that_the_best_touches_are_named(
    centre: tuple[float, float], edges: tuple[str, ...]
) -> None:
    truth = Truth(s=0, rates=3, decays=3, centre=centre, plateau=9.0, chance=9.0)
    assert landscape_of(truth, exact(truth.errors() / 20)).edges == edges


def test_a_knob_with_one_value_has_no_edge() -> None:
    [landscape] = landscapes([ended(config())])
    assert landscape.edges == ()


@given(st.integers(0, 2**32 - 1))
def test_the_best_is_tied_with_itself(seed: int) -> None:
    landscape = noisy(SMALL, 3, np.random.default_rng(seed))
    assert landscape.tied[0] == landscape.best


def test_without_noise_only_equals_are_tied() -> None:
    errors = np.array([[0.3, 0.3001], [0.3, 0.5]])
    truth = Truth(rates=2, decays=2)
    landscape = landscape_of(truth, exact(errors))
    assert {cell.score for cell in landscape.tied} == {0.3}
    assert len(landscape.tied) == 2


def test_with_one_seed_the_best_stands_alone() -> None:
    landscape = noisy(SMALL, 1, np.random.default_rng(0))
    assert landscape.tied == (landscape.best,)


def test_of_equally_good_cells_any_one_is_tied_in_95_of_100_experiments() -> None:
    """The least favourable case, in which the rule's critical value must be exact."""
    random = np.random.default_rng(3)
    held = [tied(random.normal(0.3, 0.01, (20, 3)))[0] for _ in range(2000)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_ties_are_by_differences_of_the_same_seeds() -> None:
    """A seed's own effect, however large, is in no difference: ties do not widen with it."""
    random = np.random.default_rng(0)
    errors = 0.3 + np.linspace(0, 0.02, 8)[:, None] + random.normal(0, 0.001, (8, 3))
    kept = tied(errors)
    assert 1 <= kept.sum() < 8
    assert (tied(errors + np.array([0.05, -0.02, 0.01])) == kept).all()


def test_a_cell_that_lacks_the_worst_seed_is_not_better_for_it() -> None:
    errors = np.random.default_rng(0).normal(0.30, 0.0005, (6, 3)) + np.array([0.0, 0.0, 0.05])
    errors[1, 2] = np.nan
    assert tied(errors).all()


def test_a_seed_that_some_cells_lack_does_not_shift_them() -> None:
    """Two cells alike; one lacks the seed that makes everything worse."""
    errors = np.array([[0.30, 0.30, 0.40], [0.30, 0.30, np.nan], [0.31, 0.31, 0.41]])
    of_cell, of_seed = effects(errors)
    assert of_cell[0] == pytest.approx(of_cell[1])
    assert of_seed[2] - of_seed[0] == pytest.approx(0.1)
    variance, freedom = noise(errors, np.ones(3, dtype=np.bool_))
    assert variance == pytest.approx(0, abs=1e-12)
    assert freedom == 8 - 3 - 2


def test_noise_is_the_variance_about_cell_and_seed() -> None:
    random = np.random.default_rng(0)
    errors = random.normal(0, 0.02, (400, 4)) + random.normal(0, 1, (400, 1)) + [1.0, 2, 3, 4]
    variance, freedom = noise(errors, np.ones(400, dtype=np.bool_))
    assert math.sqrt(variance) == pytest.approx(0.02, rel=0.05)
    assert freedom == 399 * 3


def test_half_a_sweep_has_a_landscape() -> None:
    runs = sweep()
    for count in range(1, len(runs)):
        [landscape] = landscapes(runs[:count])
        assert sum(len(cell.seeds) for cell in landscape.cells.values()) == count
        assert landscape.best in landscape.tied
        coupling(landscape)


def test_a_run_that_has_no_record_yet_is_left_out() -> None:
    assert landscapes([Run(config(), ())]) == []


def test_the_updates_are_those_of_the_last_cycle() -> None:
    def of(schedule: str, *ends: int) -> Landscape:
        one = config(schedule=schedule)
        records = [
            record(one, epoch=epoch, updates=10 * epoch, cycle_ended=epoch in ends)
            for epoch in range(1, 5)
        ]
        [landscape] = landscapes([Run(one, tuple(records))])
        return landscape

    assert of("cosine", 4).updates == 40
    assert of("cosine,warmup=1", 4).updates == 30
    assert of("restarts,first=1,factor=3", 1, 4).updates == 30
    assert of("cosine", 4).examples == 1000
    [unfinished] = landscapes([ended(config(), diverged=True)])
    assert unfinished.updates is None


def test_reseen_is_the_landscape_of_the_same_runs() -> None:
    splits = measured(SMALL.errors(), 3, np.random.default_rng(5))
    assert reseen(landscape_of(SMALL, exact(SMALL.errors())), splits) == landscape_of(SMALL, splits)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (1.5, 6.0167), (2, 4.3027), (4.7, 2.6207), (10, 2.2281), (math.inf, 1.9600)],
)
def test_students_quantile_is_exact_between_whole_numbers_too(
    freedom: float, quantile: float
) -> None:
    assert student(freedom) == pytest.approx(quantile, abs=1e-4)


def test_the_page_about_landscapes_names_the_columns_of_their_frames() -> None:
    [landscape] = landscapes(sweep())
    page = (Path(__file__).parents[1] / "docs" / "landscape.md").read_text(encoding="utf-8")
    told = page.partition("`landscape.to_frame()`")[2]
    columns = [name for name in landscape.to_columns() if name not in landscape.labels]
    assert "tested_error" in columns
    assert [name for name in columns if f"`{name}`" not in told] == []
