"""Numbers that rulings are made of, on runs of which one knows what they must come to."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from tests.landscapes import QUADRATIC, landscape_of, measured, record
from weightdecay.records import Run, RunConfig
from weightdecay.results import Estimate, Landscape, landscapes
from weightdecay.results.budget import optimum
from weightdecay.results.estimate import UNKNOWN
from weightdecay.studies import STUDIES, Evidence, scale
from weightdecay.studies.differences import (
    apart,
    first_half,
    normalized_apart,
    paired,
    reached,
    same_steps,
)
from weightdecay.studies.rulings import HELD, NOT_DECIDED, NOT_HELD, Ruling

AT = scale("mnist1d", "small")


def run_of(config: RunConfig, errors: Sequence[float], ends: Sequence[int] = ()) -> Run:
    """Return a run with these test errors, an epoch each."""
    records = [
        record(config, epoch=epoch, test_error=error, cycle_ended=epoch in ends)
        for epoch, error in enumerate(errors, start=1)
    ]
    return Run(config, tuple(records))


def test_a_paired_difference_has_student_s_interval() -> None:
    found = paired([0.1, 0.2, 0.6])
    half = 4.30265 * stdev([0.1, 0.2, 0.6]) / math.sqrt(3)
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx((0.3 - half, 0.3 + half))


@pytest.mark.parametrize("differences", [[], [0.1]])
def test_fewer_than_two_seeds_say_nothing(differences: list[float]) -> None:
    assert math.isnan(paired(differences).low)


def test_what_was_measured_apart_differs_within_both_intervals() -> None:
    found = apart(Estimate(3, 0, 6), Estimate(1, -3, 5))
    assert found == Estimate(2, -3, 7)
    assert math.isnan(apart(found, UNKNOWN).low)


def twins(sgd: float | None, adam: float | None) -> Ruling:
    """Rule on pairs in which the decoupled run's loss is 1, and the coupled one's is given."""
    losses = {"sgd,momentum=0": sgd, "adam": adam}
    runs = [
        Run(cell, (record(cell, train_loss=losses.get(cell.algorithm, 1.0)),))
        for cell in STUDIES["figure-2"].cells(AT)
        if cell.epochs == 1
    ]
    return same_steps(Evidence(AT, runs))


@pytest.mark.parametrize(
    ("sgd", "adam", "outcome"),
    [
        (1.0, 1.1, HELD),
        (1.0 + 1e-6, 0.9, HELD),
        (1.1, 1.1, NOT_HELD),
        (1.0, 1.0, NOT_HELD),
        (None, 1.1, NOT_HELD),  # diverged, and its twin did not
        (1.0, None, HELD),
        (1.005, 1.1, NOT_DECIDED),
        (1.0, 1.005, NOT_DECIDED),
    ],
)
def test_the_same_steps_leave_the_same_losses(
    sgd: float | None, adam: float | None, outcome: str
) -> None:
    assert twins(sgd, adam).outcome == outcome
    assert "6 pairs of SGD" in twins(sgd, adam).because


def test_runs_that_are_no_twins_are_not_compared() -> None:
    cells = [cell for cell in STUDIES["figure-2"].cells(AT) if cell.epochs == 1]
    halved = [cell for cell in cells if cell.l2 is not None or (cell.weight_decay or 0) > 2**-8]
    runs = [Run(cell, (record(cell),)) for cell in halved]
    assert "3 pairs of SGD" in same_steps(Evidence(AT, runs)).because
    alone = [run for run in runs if run.config.l2 is not None]
    assert same_steps(Evidence(AT, alone)).outcome == NOT_DECIDED


def halves(adam: Sequence[float], adamw: Sequence[float], *, seeds: int = 3) -> Ruling:
    """Rule on the curves of the best settings, of eight epochs; another setting has other ones."""
    base: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "lr": 0.001}
    base |= {"batch": 64, "epochs": 8}
    runs = []
    for algorithm, way, errors in (("adam", "l2", adam), ("adamw", "weight_decay", adamw)):
        for decay, chosen, worse in ((0.01, 0.1, 0.0), (0.1, 0.9, 0.3)):
            for seed in range(seeds):
                config = RunConfig(**base | {"algorithm": algorithm, "seed": seed, way: decay})
                own = [
                    record(config, epoch=epoch, test_error=error + worse, validation_error=chosen)
                    for epoch, error in enumerate(errors, start=1)
                ]
                runs.append(Run(config, tuple(own)))
    return first_half("They coincide", Evidence(AT, runs), *landscapes(runs))


def test_only_the_first_half_says_whether_curves_coincide() -> None:
    first, second = [0.5, 0.45, 0.4, 0.35], [0.3, 0.3, 0.2, 0.2]
    better = [error - 0.05 for error in first], [error - 0.05 for error in second]
    assert halves(first + second, first + better[1]).outcome == HELD
    assert halves(first + second, better[0] + second).outcome == NOT_HELD
    assert halves(first + second, first + second, seeds=1).outcome == NOT_DECIDED


def test_half_of_training_is_not_half_of_what_a_run_that_diverged_has_left() -> None:
    assert halves([0.5] * 8, [0.5, 0.5, 0.9, 0.9]).outcome == NOT_HELD


ENDS = (12, 36, 84, 180)


def restarts(
    at_ends: dict[int, float], *, ends: Sequence[int] = ENDS, seeds: int = 4
) -> tuple[Ruling, Ruling]:
    """Rule on restarts after which, at these epochs, errors differ so from the final ones without.

    Elsewhere they are much worse.
    """
    cells = [cell for cell in STUDIES["figure-4"].cells(AT) if cell.seed < seeds]
    plain: dict[str, list[Run]] = {"adamw": [], "sgdw": []}
    again: dict[str, list[Run]] = {"adamw": [], "sgdw": []}
    for cell in cells:
        own, spread = 0.3 + 0.01 * cell.seed, 0.0005 * (-1) ** cell.seed
        if cell.schedule != "cosine":
            errors = [own + at_ends.get(epoch, 0.5) + spread for epoch in range(1, AT.long + 1)]
            again[cell.algorithm].append(run_of(cell, errors, ends))
        elif cell.algorithm in plain:
            plain[cell.algorithm].append(run_of(cell, [0.9] * (AT.long - 1) + [own]))
    early, last = reached(plain, again, AT)
    return early, last


def test_restarts_are_early_by_the_first_end_that_is_as_good() -> None:
    ruling, _ = restarts({12: 0.2, 36: 0.005, 84: -0.01, 180: -0.02})
    assert ruling.outcome == HELD
    assert f"{180 / 36:.1f} times as early" in ruling.because
    assert "epoch 12: +20.0 points" in ruling.because
    assert "epoch 13" not in ruling.because  # a cycle's middle does not count


def test_restarts_that_are_as_good_at_the_last_end_alone_are_not_early() -> None:
    ruling, _ = restarts({12: 0.2, 36: 0.1, 84: 0.05, 180: -0.02})
    assert ruling.outcome == NOT_HELD
    assert "1.0 times as early" in ruling.because


def test_restarts_that_may_be_as_good_are_not_decided() -> None:
    assert restarts({12: 0.2, 36: 0.1, 84: 0.01, 180: -0.02})[0].outcome == NOT_DECIDED
    assert restarts({12: 0.0, 36: 0.0, 84: 0.0}, seeds=1)[0].outcome == NOT_DECIDED


def test_a_cycle_that_ends_with_the_run_says_nothing_of_earliness() -> None:
    assert restarts({180: -0.1}, ends=(180,))[0].outcome == NOT_DECIDED


def test_what_restarts_end_at_is_their_last_cycle_s_end() -> None:
    """A run that is longer than its last whole cycle ends in the middle of one."""
    better = dict.fromkeys(ENDS, -0.02)
    assert restarts(better)[1].outcome == HELD
    assert restarts({84: -0.02, 180: 0.4}, ends=ENDS[:3])[1].outcome == HELD
    assert restarts({84: -0.02, 180: 0.4})[1].outcome == NOT_HELD


def test_without_runs_nothing_is_said_ofrestarts() -> None:
    rulings = reached({"adamw": [], "sgdw": []}, {"adamw": [], "sgdw": []}, AT)
    assert [ruling.outcome for ruling in rulings] == [NOT_DECIDED] * 2


def shifted(doublings: float, *, seed: int, way: str = "normalized_decay") -> Landscape:
    """Return a landscape whose best decay is so many doublings from the grid's middle."""
    truth = replace(QUADRATIC, s=0.0, centre=(0.0, doublings))
    splits = measured(truth.errors(), 4, np.random.default_rng(seed))
    return landscape_of(truth, splits, way=way)


def test_normalized_decays_are_as_many_doublings_apart_as_they_were_made() -> None:
    found = [normalized_apart(shifted(1, seed=2 * n), shifted(0, seed=2 * n + 1)) for n in range(8)]
    assert fmean(one.value for one in found) == pytest.approx(1, abs=0.15)
    assert sum(one.low <= 1 <= one.high for one in found) >= 7


def test_a_raw_decay_is_compared_by_the_normalized_one_that_it_is() -> None:
    raw, normalized = shifted(0, seed=1, way="weight_decay"), shifted(0, seed=1)
    assert raw.updates == normalized.updates == 400
    assert normalized_apart(raw, normalized).value == pytest.approx(math.log2(400) / 2)


def test_normalized_decays_are_compared_whatever_the_budget() -> None:
    """Four times the updates halve the raw decay that a normalized one stands for."""
    one, other = shifted(1, seed=1), shifted(0, seed=2)
    longer = replace(one, updates=1600)
    assert optimum(longer).log_decay == pytest.approx(optimum(one).log_decay - 1)
    assert normalized_apart(longer, other).value == pytest.approx(
        normalized_apart(one, other).value
    )
    assert math.isnan(normalized_apart(replace(one, updates=None), other).low)


def test_a_best_decay_at_the_grid_s_edge_is_not_compared() -> None:
    assert math.isnan(normalized_apart(shifted(-4, seed=1), shifted(0, seed=2)).low)
