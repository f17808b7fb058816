"""Numbers that verdicts are made of, on runs of which one knows what they must come to."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from tests.landscapes import QUADRATIC, landscape_of, measured, record
from weightdecay.records import Run, RunConfig
from weightdecay.results import Landscape
from weightdecay.studies import STUDIES, Panel, scale
from weightdecay.studies.differences import gains_nothing, normalized_apart, paired
from weightdecay.studies.formats import because
from weightdecay.studies.long_runs import long_of
from weightdecay.studies.study import Evidence, NotMeasuredError
from weightdecay.studies.verdicts import HELD, NOT_DECIDED, NOT_HELD, Verdict

AT = scale("mnist1d", "small")
LONG = long_of(AT)


def test_a_paired_difference_has_student_s_interval() -> None:
    found = paired([0.1, 0.2, 0.6])
    half = 4.302652730 * stdev([0.1, 0.2, 0.6]) / math.sqrt(3)
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx((0.3 - half, 0.3 + half))


@pytest.mark.parametrize("differences", [[], [0.1], [0.1, math.inf], [math.nan, 0.1, 0.2]])
def test_fewer_than_two_seeds_or_an_unknown_number_say_nothing(differences: list[float]) -> None:
    assert math.isnan(paired(differences).low)


def twins(sgd: float | None, adam: float | None) -> Verdict:
    """Rule on pairs in which the decoupled run's loss is 1, and the coupled one's is given."""
    losses = {"sgd,momentum=0": sgd, "adam": adam}
    runs = [
        Run(cell, (record(cell, train_loss=losses.get(cell.algorithm, 1.0)),))
        for cell in STUDIES["figure-2"].cells(AT)
        if cell.epochs == 1
    ]
    return ruled_first(runs)


def ruled_first(runs: Sequence[Run]) -> Verdict:
    """Rule on Figure 2's first claim."""
    figure = STUDIES["figure-2"]
    return figure.claims(AT)[0].verdict(figure.evidence(AT, runs))


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
    assert "6 pairs of SGD" in because(twins(sgd, adam))


def test_runs_that_are_no_twins_are_not_compared() -> None:
    cells = [cell for cell in STUDIES["figure-2"].cells(AT) if cell.epochs == 1]
    halved = [cell for cell in cells if cell.l2 is not None or (cell.weight_decay or 0) > 2**-8]
    runs = [Run(cell, (record(cell),)) for cell in halved]
    assert "3 pairs of SGD" in because(ruled_first(runs))
    alone = [run for run in runs if run.config.l2 is not None]
    assert ruled_first(alone).outcome == NOT_DECIDED


BASE: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "lr": 0.001, "batch": 64, "epochs": 12}


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ([0.30, 0.305, 0.303, 0.32], HELD),  # at decays 0, 1, 2 and 3
        ([0.30, 0.31, 0.25, 0.32], NOT_HELD),
        ([0.30, 0.40, 0.35, 0.305], NOT_DECIDED),  # it may gain beyond the grid
    ],
)
def test_l2_gains_what_its_best_has_less_than_no_decay(errors: list[float], outcome: str) -> None:
    runs = []
    for number, error in enumerate(errors):
        for rate in (0.001, 0.01, 0.1):
            for seed in range(4):
                base: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "batch": 64, "epochs": 1}
                cell = RunConfig(**base, algorithm="adam", lr=rate, l2=number / 10, seed=seed)
                mine = error + 0.02 * (rate != 0.01) + 0.0002 * (-1) ** (seed + number)
                runs.append(Run(cell, (record(cell, test_error=mine, validation_error=mine),)))

    def ruled(own: list[Run]) -> Verdict:
        rates = [0.001, 0.01, 0.1]
        l2 = [number / 10 for number in range(len(errors))]
        axes = {**BASE, "epochs": 1, "algorithm": "adam", "lr": rates, "l2": l2}
        found = Panel("adam", "Adam", {**axes, "seed": range(4)}).measured(
            {run.config.identity: run for run in own}
        )
        assert found is not None
        return gains_nothing("It gains nothing", Evidence(AT, {"adam": found}), "adam")

    assert ruled(runs).outcome == outcome
    with pytest.raises(NotMeasuredError, match="no runs with λ = 0"):
        ruled([run for run in runs if run.config.l2])


def shifted(doublings: float, *, seed: int, way: str = "normalized_decay") -> Landscape:
    """Return a landscape whose best decay is so many doublings from the grid's middle."""
    truth = replace(QUADRATIC, s=0.0, centre=(0.0, doublings))
    splits = measured(truth.errors(), 4, np.random.default_rng(seed))
    return landscape_of(truth, splits, way=way)


def test_normalized_decays_are_as_many_doublings_apart_as_they_were_made() -> None:
    pairs = [(shifted(1, seed=2 * n), shifted(0, seed=2 * n + 1)) for n in range(30)]
    found = [one for one in (normalized_apart(*pair) for pair in pairs) if one.value is not None]
    assert len(found) >= 25
    assert fmean(one.value or 0 for one in found) == pytest.approx(1, abs=0.2)
    assert sum(one.low <= 1 <= one.high for one in found) >= 0.88 * len(found)


def test_a_raw_decay_is_compared_by_the_normalized_one_that_it_is() -> None:
    raw, normalized = shifted(0, seed=1, way="weight_decay"), shifted(0, seed=1)
    assert raw.updates == normalized.updates == 400
    assert normalized_apart(raw, normalized).value == pytest.approx(math.log2(400) / 2)


def test_normalized_decays_are_compared_whatever_the_budget() -> None:
    """Four times the updates halve the raw decay that a normalized one stands for."""
    one, other = shifted(1, seed=1), shifted(0, seed=2)
    longer = replace(one, updates=1600)
    assert normalized_apart(longer, other).value == pytest.approx(
        normalized_apart(one, other).value
    )
    assert "has finished" in normalized_apart(replace(one, updates=None), other).why


def test_a_best_decay_at_the_grid_s_edge_is_not_compared() -> None:
    found = normalized_apart(shifted(-4, seed=1), shifted(0, seed=2))
    assert found.value is None
    assert "lowest of the grid" in found.why
