"""The same cells on every split, in every convention, and moved to other learning rates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.landscapes import Truth, exact, landscape_of, noisy, record, runs_of
from tests.scattered import search
from weightdecay.records import Run
from weightdecay.results import (
    Estimate,
    Landscape,
    Point,
    TransferRegret,
    by_split,
    cell_curves,
    cell_runs,
    coupling,
    landscapes,
    measure_moves,
    measure_transfer,
)
from weightdecay.results.transfer import RULES

pytestmark = pytest.mark.cpu("numbers of finished runs do not depend on the device")
BEST = 2.0**-7


def longer(run: Run, count: int = 3) -> Run:
    """Return a run with several records, whose training error falls to a tenth of its test's."""
    last = run.last
    assert last.test_error is not None
    records = tuple(
        record(
            run.config,
            epoch=run.config.epochs * at // count,
            updates=400 * at // count,
            train_error=last.test_error / 10 * count / at,
            validation_error=last.validation_error,
            test_error=min(1.0, last.test_error * count / at),
        )
        for at in range(1, count + 1)
    )
    return replace(run, records=records)


def some(seeds: int = 2) -> tuple[list[Run], Landscape]:
    truth = Truth(s=0.0)
    runs = [longer(run) for run in runs_of(truth, exact(truth.errors(), seeds))]
    return runs, landscapes(runs)[0]


def test_each_split_has_its_own_errors_and_the_landscapes_own_comes_first() -> None:
    runs, scape = some()
    [own] = cell_runs([scape], runs)
    found = by_split(scape, own)
    assert list(found) == ["test", "validation", "training"]
    assert found["test"] is scape
    for place, cell in found["training"].cells.items():
        assert cell.mean == pytest.approx(scape.cells[place].mean / 10)
        assert found["validation"].cells[place].mean == scape.cells[place].score
    assert found["training"].tested_on == "training"


def test_a_split_without_an_error_is_left_out() -> None:
    runs, _ = some()
    [top] = landscapes(runs, of="error_top5")
    assert list(by_split(top, *cell_runs([top], runs))) == ["test", "validation"]
    blind = [replace(run, records=(replace(run.last, train_error=None),)) for run in runs]
    [scape] = landscapes(blind)
    assert list(by_split(scape, *cell_runs([scape], blind))) == ["test", "validation"]


def test_points_made_elsewhere_have_the_splits_that_their_table_names() -> None:
    point = Point(lr=0.1, decay=0.01, way="weight_decay", tested=0.3)
    [unnamed] = landscapes([point])
    assert list(by_split(unnamed, {})) == [""]
    [named] = landscapes([replace(point, chosen=0.2, tested_on="test", chosen_on="validation")])
    found = by_split(named, {})
    assert [(name, one.best.mean) for name, one in found.items()] == [
        ("test", 0.3),
        ("validation", 0.2),
    ]


def test_runs_find_their_cells_and_the_first_of_two_counts() -> None:
    runs, scape = some(seeds=2)
    twice = replace(runs[0], records=(replace(runs[0].last, test_error=0.9),))
    other = [replace(run, config=replace(run.config, model="other")) for run in runs]
    [own] = cell_runs([scape], [*runs, twice, *other])
    assert own.keys() == scape.cells.keys()
    assert all(len(found) == 2 for found in own.values())
    assert runs[0] in own[runs[0].config.lr, runs[0].config.weight_decay or 0.0]


def test_a_cells_curve_ends_at_its_error_and_one_record_is_no_curve() -> None:
    runs, scape = some()
    [own] = cell_runs([scape], runs)
    place, found = next(iter(own.items()))
    curves = cell_curves(found, ["test", "training"], "error")
    assert list(curves) == ["test", "training"]
    assert curves["test"].x == (3.0, 6.0, 10.0)
    assert curves["test"].middle[-1] == pytest.approx(scape.cells[place].mean)
    short = [replace(run, records=run.records[-1:]) for run in found]
    assert cell_curves(short, ["test"], "error") == {}


def test_a_decay_is_stated_in_every_convention_that_applies() -> None:
    truth = Truth(s=0.0)
    scape = landscape_of(truth, exact(truth.errors()))
    assert scape.updates == 400
    stated = scape.stated(0.5, 0.01)
    assert stated.weight_decay == 0.01
    assert stated.normalized_decay == pytest.approx(0.01 * 20)
    assert stated.torch_weight_decay == pytest.approx(0.02)
    normalized = replace(scape, way="normalized_decay").stated(0.5, 0.2)
    assert normalized.weight_decay == pytest.approx(0.01)
    assert normalized.torch_weight_decay == pytest.approx(0.02)
    unknown = replace(scape, way="normalized_decay", updates=None).stated(0.5, 0.2)
    assert (unknown.weight_decay, unknown.normalized_decay) == (None, 0.2)
    assert set(vars(replace(scape, way="l2").stated(0.5, 0.2)).values()) == {None}


def test_s_in_torchs_convention_is_the_measured_one() -> None:
    scape = noisy(Truth(s=0.5), 3, np.random.default_rng(1))
    ours, theirs = (coupling(scape, convention=one).exponent for one in ("paper", "torch"))
    assert theirs.value is not None
    assert ours.in_torch.value == pytest.approx(theirs.value)
    assert (ours.in_torch.low, ours.in_torch.high) == pytest.approx((theirs.low, theirs.high))
    assert replace(ours, value=None).in_torch.value is None


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_move_costs_what_the_transfer_regret_of_its_pair_says(seeds: int) -> None:
    scape = noisy(Truth(s=0.5, decays=11), seeds, np.random.default_rng(0))
    regret = measure_transfer(scape)
    compared = 0
    for tuned, used in regret.pairs:
        moves = {move.used: move for move in measure_moves(scape, near=tuned * 1.1)}
        assert {move.tuned for move in moves.values()} == {tuned}
        assert dict(moves[used].regret.costs) == dict(regret.pairs[tuned, used])
        compared += 1
    assert compared == 4


def test_fresh_seeds_judge_the_moves_that_they_trained() -> None:
    scape = noisy(Truth(s=0.5, decays=11), 3, np.random.default_rng(0))
    moves = measure_moves(scape, near=BEST)
    pair = moves[-1].tuned, moves[-1].used
    cost = Estimate(0.01, 0.0, 0.02)
    found = TransferRegret({0.0: cost}, {pair: {0.0: cost}}, seeds=8, fresh=True)
    assert moves[-1].judged(found).regret.costs == {0.0: cost}
    assert moves[0].judged(found) is moves[0]
    assert moves[-1].judged(replace(found, fresh=False)) is moves[-1]


def test_each_rule_keeps_what_it_says() -> None:
    truth = Truth(s=0.0)
    moves = measure_moves(landscape_of(truth, exact(truth.errors())), near=BEST)
    assert [move.used for move in moves] == [lr for lr in truth.lrs if lr != BEST]
    for move in moves:
        for rule in RULES:
            kept = move.decay * move.tuned**rule
            assert move.decays[rule] * move.used**rule == pytest.approx(kept)


def test_a_move_that_cannot_be_judged_says_why() -> None:
    truth = Truth(s=1.0, decays=5)
    edge = measure_moves(landscape_of(truth, exact(truth.errors())), near=BEST)[-1]
    assert edge.regret.costs == {}
    assert edge.regret.why == "The best decay at α = 0.0625 is at an edge of the grid."
    truth = Truth(s=0.0)
    scape = landscape_of(truth, exact(truth.errors()))
    cells = {
        place: replace(cell, diverged=cell.seeds) if place[0] == 2 * BEST else cell
        for place, cell in scape.cells.items()
    }
    moves = {one.used: one for one in measure_moves(replace(scape, cells=cells), near=BEST)}
    assert "diverged" in moves[2 * BEST].regret.why
    assert math.isfinite(moves[BEST / 2].regret.costs[0.0].value)


def test_scattered_settings_have_no_moves() -> None:
    assert measure_moves(search(Truth(), np.random.default_rng(0), noise=0.01), near=BEST) == ()
