"""Numbers that verdicts are made of, on runs of which one knows what they must come to."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from tests.landscapes import QUADRATIC, landscape_of, measured, record
from weightdecay.records import Run, RunConfig
from weightdecay.results import Landscape
from weightdecay.results.budget import optimum
from weightdecay.studies import STUDIES, Measurement, Panel, scale
from weightdecay.studies.curve_figures import CHOICES
from weightdecay.studies.differences import first_half, gains_nothing, normalized_apart, paired
from weightdecay.studies.formats import because
from weightdecay.studies.long_runs import long_of
from weightdecay.studies.scales import values
from weightdecay.studies.study import Evidence, NotMeasuredError
from weightdecay.studies.verdicts import HELD, NOT_DECIDED, NOT_HELD, Verdict

AT = scale("mnist1d", "small")
LONG = long_of(AT)


def run_of(
    config: RunConfig, errors: Sequence[float], ends: Sequence[int] = (), *, chosen: bool = True
) -> Run:
    """Return a run with these test errors, an epoch each, and whether to choose it."""
    own = {"validation_error": 0.1 if chosen else 0.9}
    records = [
        record(config, epoch=epoch, test_error=error, cycle_ended=epoch in ends, **own)
        for epoch, error in enumerate(errors, start=1)
    ]
    return Run(config, tuple(records))


def test_a_paired_difference_has_student_s_interval() -> None:
    found = paired([0.1, 0.2, 0.6])
    half = 4.302652730 * stdev([0.1, 0.2, 0.6]) / math.sqrt(3)
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx((0.3 - half, 0.3 + half))


@pytest.mark.parametrize("differences", [[], [0.1]])
def test_fewer_than_two_seeds_say_nothing(differences: list[float]) -> None:
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


def measured_panel(
    method: str, decays: Sequence[float], seeds: int, run: Callable[[RunConfig], Run]
) -> Measurement:
    """Return a panel of one learning rate, with a run of each of its cells."""
    way = "l2" if method == "adam" else "weight_decay"
    axes = {**BASE, "algorithm": method, way: list(decays), "seed": range(seeds)}
    panel = Panel(method, method, axes)
    found = panel.measured({cell.identity: run(cell) for cell in panel.cells})
    assert found is not None
    return found


def halves(adam: Sequence[float], adamw: Sequence[float], *, seeds: int = 3) -> Verdict:
    """Rule on the curves of the best settings, of twelve epochs; another has other ones."""

    def sided(method: str, errors: Sequence[float]) -> Measurement:
        def run(cell: RunConfig) -> Run:
            best = 0.01 in (cell.l2, cell.weight_decay)
            return run_of(cell, [error + (not best) * 0.3 for error in errors], chosen=best)

        return measured_panel(method, (0.01, 0.1), seeds, run)

    return first_half("They coincide", sided("adam", adam), sided("adamw", adamw), epochs=12)


def test_only_the_first_half_says_whether_curves_coincide() -> None:
    first, second = [0.5, 0.5, 0.45, 0.45, 0.4, 0.4], [0.3, 0.3, 0.3, 0.2, 0.2, 0.2]
    better = [error - 0.05 for error in first], [error - 0.05 for error in second]
    assert halves(first + second, first + better[1]).outcome == HELD
    assert halves(first + second, better[0] + second).outcome == NOT_HELD
    assert halves(first + second, first + second, seeds=1).outcome == NOT_DECIDED


def test_a_gap_in_a_part_is_not_made_up_for_by_another() -> None:
    apart = [0.45, 0.45, 0.5, 0.5, 0.55, 0.55]
    verdict = halves([0.5] * 12, apart + [0.5] * 6)
    assert verdict.outcome == NOT_HELD
    assert "epochs 3 to 4: AdamW's mean test error minus Adam's: 0.0 points" in because(verdict)


def test_a_run_that_diverged_in_the_first_half_holds_its_last_error() -> None:
    assert halves([0.5] * 12, [0.5, 0.9]).outcome == NOT_HELD


def test_curves_are_compared_by_seeds_that_did_not_choose_them() -> None:
    """Each seed finds another setting the best, and is not judged by that one."""
    decays = (0.001, 0.01, 0.1)

    def run(cell: RunConfig) -> Run:
        own = decays[cell.seed] in (cell.l2, cell.weight_decay)
        return run_of(cell, [0.2 if own else 0.5] * 12, chosen=own)

    for method in ("adam", "adamw"):
        fresh = measured_panel(method, decays, 3, run).fresh
        assert [found.config.seed for found in fresh.values()] == list(fresh) == [0, 1, 2]
        assert {found.last.test_error for found in fresh.values()} == {0.5}


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


ENDS = (12, 36, 84, 180)


def restarts(
    at_ends: dict[int, float],
    *,
    ends: Sequence[int] = ENDS,
    seeds: int = 4,
    best: int = 1,
) -> list[Verdict]:
    """Rule on restarts after which, at these epochs, errors differ so from the final ones without.

    Elsewhere, and with other settings than the best of three decays, they are much worse.
    """
    runs = []
    for cell in STUDIES["figure-4"].cells(AT):
        decay = cell.l2 if cell.normalized_decay is None else cell.normalized_decay
        decays = values(CHOICES["mnist1d"]["adamw"][1])
        number = {value: n for n, value in enumerate(decays[:3])}.get(decay or 0)
        if cell.algorithm == "adam" or cell.seed >= seeds or number is None:
            continue
        chosen = number == best and cell.lr in (2**-9, 2**-7)
        own, spread = 0.3 + 0.01 * cell.seed, 0.0005 * (-1) ** cell.seed
        if not chosen:
            runs.append(run_of(cell, [0.9] * LONG.epochs, ends, chosen=False))
        elif cell.schedule == "cosine":
            runs.append(run_of(cell, [0.9] * (LONG.epochs - 1) + [own]))
        else:
            errors = [own + at_ends.get(epoch, 0.5) + spread for epoch in range(1, LONG.epochs + 1)]
            runs.append(run_of(cell, errors, ends))
    return ruled_restarts(runs)


def ruled_restarts(runs: Sequence[Run]) -> list[Verdict]:
    figure = STUDIES["figure-4"]
    return figure.verdicts(figure.evidence(AT, runs))


def test_restarts_are_early_by_the_first_end_that_is_as_good() -> None:
    verdict, first, _ = restarts({12: 0.2, 36: 0.005, 84: -0.01, 180: -0.02})
    assert verdict.outcome == HELD
    assert f"{180 / 36:.1f} times as early" in because(verdict)
    assert "epoch 12: +20.0 points" in because(verdict)
    assert "epoch 13" not in because(verdict)  # a cycle's middle does not count
    assert first.outcome == NOT_HELD
    assert "15 times as early" in first.claim


def test_the_first_restart_may_be_enough() -> None:
    _, first, _ = restarts({12: 0.005, 36: 0.2, 84: 0.2, 180: -0.02})
    assert first.outcome == HELD


def test_restarts_that_are_as_good_at_the_last_end_alone_are_not_early() -> None:
    verdict, *_ = restarts({12: 0.2, 36: 0.1, 84: 0.05, 180: -0.02})
    assert verdict.outcome == NOT_HELD
    assert "Below +1.0 points: at the end" in because(verdict)


def test_restarts_that_may_be_as_good_are_not_decided() -> None:
    assert restarts({12: 0.2, 36: 0.1, 84: 0.01, 180: -0.02})[0].outcome == NOT_DECIDED
    assert restarts({12: 0.0, 36: 0.0, 84: 0.0}, seeds=1)[0].outcome == NOT_DECIDED


def test_a_cycle_that_ends_with_the_run_says_nothing_of_earliness() -> None:
    assert restarts({180: -0.1}, ends=(180,))[0].outcome == NOT_DECIDED


def test_restarts_are_judged_by_what_they_end_at() -> None:
    assert restarts(dict.fromkeys(ENDS, -0.02))[2].outcome == HELD
    assert restarts({84: -0.02, 180: 0.4})[2].outcome == NOT_HELD


def test_restarts_that_lose_at_their_grids_edge_are_not_decided() -> None:
    assert restarts({12: 0.2, 36: 0.1, 84: 0.05, 180: 0.2}, best=0)[0].outcome == NOT_DECIDED


def test_a_rival_that_may_be_better_beyond_its_grid_leaves_restarts_undecided() -> None:
    found = restarts(dict.fromkeys(ENDS, -0.02), best=0)
    assert [verdict.outcome for verdict in found] == [NOT_DECIDED] * 3
    assert "AdamW's best setting is at the edge of its grid (lowest decay)" in because(found[0])


def test_without_runs_nothing_is_said_of_restarts() -> None:
    verdicts = ruled_restarts([])
    assert [verdict.outcome for verdict in verdicts] == [NOT_DECIDED] * 3


def shifted(doublings: float, *, seed: int, way: str = "normalized_decay") -> Landscape:
    """Return a landscape whose best decay is so many doublings from the grid's middle."""
    truth = replace(QUADRATIC, s=0.0, centre=(0.0, doublings))
    splits = measured(truth.errors(), 4, np.random.default_rng(seed))
    return landscape_of(truth, splits, way=way)


def test_normalized_decays_are_as_many_doublings_apart_as_they_were_made() -> None:
    found = [normalized_apart(shifted(1, seed=2 * n), shifted(0, seed=2 * n + 1)) for n in range(8)]
    assert fmean(one.value or 0 for one in found) == pytest.approx(1, abs=0.15)
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
    assert "has finished" in normalized_apart(replace(one, updates=None), other).why


def test_a_best_decay_at_the_grid_s_edge_is_not_compared() -> None:
    found = normalized_apart(shifted(-4, seed=1), shifted(0, seed=2))
    assert found.value is None
    assert "lowest of the grid" in found.why
