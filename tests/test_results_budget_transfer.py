"""What it costs to carry λ from one budget to another: on landscapes that say what it must cost."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.landscapes import QUADRATIC, Truth, ended, exact, landscape_of, measured, reseen
from weightdecay.records import Run, RunConfig
from weightdecay.results import Cell, Landscape, budget_regret, compare_powers, pairs_over
from weightdecay.results.budget_moves import budget_moves, judged_moves
from weightdecay.results.budget_transfer import POWERS, _judged
from weightdecay.results.estimate import student
from weightdecay.site.budgets import lines

#: A fine grid, so that the line between two decays is the truth itself.
FINE = replace(QUADRATIC, s=0.0, rates=5, decays=49, decay_factor=2**0.25, level=0.01)


def over(power: float, *, truth: Truth = FINE, way: str = "weight_decay") -> list[Landscape]:
    """Return the landscapes of 400, 1600 and 6400 updates; the best λ·N^power is the same."""
    sets = []
    for epochs, updates in ((10, 400), (40, 1600), (160, 6400)):
        moved = -power * math.log2(updates / 1600)
        if way == "normalized_decay":
            moved += math.log2(updates / 1600) / 2
        step = math.log2(truth.decay_factor or truth.factor)
        own = replace(truth, centre=(0.0, moved / step))
        found = landscape_of(own, exact(own.errors()), way=way, epochs=epochs)
        sets.append(replace(found, updates=updates))
    return sets


@pytest.mark.parametrize("best_rate", [False, True])
@pytest.mark.parametrize("way", ["weight_decay", "normalized_decay"])
@pytest.mark.parametrize("true", POWERS)
def test_only_the_true_rule_is_free_and_others_cost_what_their_decays_cost(
    true: float, way: str, best_rate: bool
) -> None:
    first, _, last = over(true, way=way)
    for power in POWERS:
        off = (true - power) * 4
        found = budget_regret([(first, last)], power, best_rate=best_rate)
        assert found.cost.value == pytest.approx(FINE.curvature * off**2, abs=2e-3)
        assert found.rates == (1 if best_rate else 5)
        other = budget_regret([(first, last)], power, instead=true, best_rate=best_rate)
        assert other.cost.value == pytest.approx(found.cost.value, abs=2e-3)


@pytest.mark.parametrize("way", ["weight_decay", "normalized_decay"])
@pytest.mark.parametrize("true", POWERS)
def test_the_true_rule_carries_a_budgets_best_decay_to_that_of_another(
    true: float, way: str
) -> None:
    """As the other budget states it: best decays have three digits."""
    moves = [*budget_moves(pairs_over(over(true, way=way), "epochs"))]
    assert len(moves) == 3 * FINE.rates
    for one in moves:
        assert one.tuned.updates is not None
        assert one.used.updates is not None
        longer = one.used.updates / one.tuned.updates
        assert longer > 1
        assert one.carried[true] == pytest.approx(one.best, rel=0.02)
        for power in POWERS:
            shorter = one.carried[0.0] / longer**power
            assert one.carried[power] == pytest.approx(shorter, rel=2e-3)


def test_all_pairs_of_a_factor_have_fewer_updates_first_and_equal_weights() -> None:
    sets = over(1.0)
    pairs = pairs_over([sets[2], sets[0], sets[1]], "epochs")
    assert [(a.updates, b.updates) for a, b in pairs] == [(400, 1600), (400, 6400), (1600, 6400)]
    alone = [budget_regret([pair], 0.0).cost.value for pair in pairs]
    assert budget_regret(pairs, 0.0).cost.value == pytest.approx(sum(alone) / 3)
    assert pairs_over(sets, "batch") == []


def test_budgets_without_a_decay_above_0_have_no_decay_to_carry() -> None:
    first, middle, last = (
        replace(one, decays=(0.0,), cells={(lr, 0.0): Cell(lr, 0.0, (0,), (0.3,), (0.3,))})
        for one in over(0.5)
        for lr in one.lrs[:1]
    )
    assert pairs_over([first, middle, last], "epochs") == []
    assert len(lines([first, middle, last])) == 1
    assert len(pairs_over([first, *over(0.5)[1:]], "epochs")) == 1


def test_budgets_of_a_table_are_not_named_after_one_of_them() -> None:
    named = [
        replace(one, run_config=None, labels={"model": "vit", "epochs": epochs, "updates": 40})
        for epochs, one in zip((10, 40, 160), over(0.5), strict=True)
    ]
    assert lines(named)[0].startswith("vit, over epochs: λ* ∝ epochs^−e at a fixed α, ")


def test_a_decay_that_leads_out_of_the_grid_is_reported_and_not_clipped() -> None:
    narrow = replace(FINE, decays=29)
    first, _, last = over(1.0, truth=narrow)
    found = budget_regret([(first, last)], -1.0)
    assert found.beyond == pytest.approx(2 + 4 - 3.5, abs=0.05)
    assert math.isnan(found.cost.value)
    # The last decays are 5.5 doublings from the best ones.
    assert found.least.value == pytest.approx(FINE.curvature * 5.5**2, abs=2e-3)
    assert found.least.low <= found.least.value < FINE.curvature * 8**2
    other_way = budget_regret([(last, first)], -1.0)
    assert other_way.beyond == pytest.approx(-2.5, abs=0.05)
    assert other_way.least.value == pytest.approx(found.least.value, abs=2e-3)


@pytest.mark.parametrize("true", POWERS)
def test_the_powers_that_are_tied_are_those_that_noise_does_not_tell_apart(true: float) -> None:
    random = np.random.default_rng(1)
    noise: dict[str, Any] = {"spread": 1e-4, "examples": 10_000_000}
    sets = [
        reseen(one, measured(np.array(errors), 3, random, **noise))
        for one in over(true)
        for errors in [[[one.cells[lr, at].mean for at in one.decays] for lr in one.lrs]]
    ]
    found = compare_powers(pairs_over(sets, "epochs"))
    assert (found.least, found.tied) == (true, (true,))
    # With noise as large as what a rule costs, more than one is left.
    noise = {"spread": 0.05, "examples": 10_000}
    loud = [reseen(one, measured(FINE.errors(), 3, random, **noise)) for one in sets]
    assert len(compare_powers(pairs_over(loud, "epochs")).tied) > 1


def test_without_intervals_no_powers_are_tied_and_without_pairs_none_is_least() -> None:
    few = [
        replace(one, cells={at: replace(cell, **two(cell)) for at, cell in one.cells.items()})
        for one in over(0.5)
    ]
    found = compare_powers(pairs_over(few, "epochs"))
    assert (found.least, found.tied) == (0.5, ())
    assert compare_powers([]).least is None


def two(cell: Cell) -> dict[str, Any]:
    """Return a cell's values for its first two seeds."""
    return {"seeds": (0, 1), "chosen": cell.chosen[:2], "tested": cell.tested[:2], "losses": ()}


def test_two_seeds_give_a_cost_without_an_interval() -> None:
    few = []
    for one in over(0.5):
        cells = {
            place: Cell(*place, (0, 1), chosen=cell.chosen[:2], tested=cell.tested[:2])
            for place, cell in one.cells.items()
        }
        few.append(replace(one, cells=cells))
    found = budget_regret([(few[0], few[2])], 0.0)
    assert found.cost.value == pytest.approx(FINE.curvature * 4, abs=2e-3)
    assert math.isnan(found.cost.low)
    # The longer budget may have three seeds: they cannot judge for one that has two.
    mixed = budget_regret([(few[0], over(0.5)[2])], 0.0)
    assert mixed.cost.value == pytest.approx(found.cost.value, abs=1e-4)
    assert math.isnan(mixed.cost.low)


def test_a_budget_that_is_left_out_takes_no_interval_from_the_others() -> None:
    """It has one seed, and its best decay is the lowest of its grid: nothing is carried there."""
    first, middle, last = over(0.5)
    decays = [decay for decay in middle.decays if decay >= middle.best.decay]
    cells = {
        place: Cell(*place, (0,), chosen=cell.chosen[:1], tested=cell.tested[:1])
        for place, cell in middle.cells.items()
        if cell.decay in decays
    }
    edged = replace(middle, decays=tuple(decays), cells=cells)
    alone = budget_regret([(first, last)], 0.0)
    assert math.isfinite(alone.cost.low)
    assert budget_regret(pairs_over([first, edged, last], "epochs"), 0.0) == alone


def test_seeds_that_share_few_decays_still_choose() -> None:
    """Two seeds have every third decay: left alone, they would look like scattered settings."""
    sets = []
    for one in (over(0.5)[0], over(0.5)[2]):
        cells = {
            place: cell
            if one.decays.index(cell.decay) % 3 == 0
            else Cell(*place, (0,), chosen=cell.chosen[:1], tested=cell.tested[:1])
            for place, cell in one.cells.items()
        }
        sets.append(replace(one, cells=cells))
    judged = [*_judged(sets[0], sets[1], 0.0, None, False)]
    assert {one.seed for one in judged} == {0, 1, 2}


def test_a_budget_in_which_every_run_of_the_others_diverged_carries_nothing() -> None:
    first, _, last = over(0.5)
    lost = {place: replace(cell, diverged=cell.seeds) for place, cell in first.cells.items()}
    assert budget_regret([(replace(first, cells=lost), last)], 0.0).why


@pytest.mark.parametrize("error", [0.01, 0.9, 1e30, math.nan])
def test_a_carried_decay_with_which_runs_diverge_costs_the_worst_error(error: float) -> None:
    """What diverging runs end with means nothing; a metric of the task's own may have no limit."""
    first, _, last = over(1.0)
    lost = {
        place: replace(cell, diverged=cell.seeds, tested=(error,) * 3, chosen=(error,) * 3)
        if cell.decay > 8 * last.best.decay
        else cell
        for place, cell in last.cells.items()
    }
    found = budget_regret([(first, replace(last, cells=lost))], 0.0)
    worst = max(cell.mean for cell in lost.values() if not cell.diverged)
    assert found.beyond == 0
    best = [cell.mean for cell in _best_cells(last)]
    assert worst - max(best) - 1e-6 <= found.cost.value <= worst - min(best) + 1e-6


def _best_cells(landscape: Landscape) -> list[Cell]:
    """Return the lowest cell of each learning rate."""
    cells = landscape.cells.values()
    rows = [[cell for cell in cells if cell.lr == lr] for lr in landscape.lrs]
    return [min(row, key=lambda cell: cell.tested[0]) for row in rows]


def test_a_seed_judges_what_the_others_chose() -> None:
    """Its own validation errors move what the others judge, and never what it judges."""
    first, _, last = over(0.5)
    misled = {
        place: replace(cell, chosen=(0.01 if cell.decay > last.best.decay * 2 else 0.5, *rest))
        for place, cell in last.cells.items()
        for _, *rest in [cell.chosen]
    }
    before, after = (
        [*_judged(first, one, 0.0, None, False)] for one in (last, replace(last, cells=misled))
    )
    for seed, same in ((0, True), (1, False), (2, False)):
        told = [[one for one in judged if one.seed == seed] for judged in (before, after)]
        assert (told[0] == told[1]) == same


def test_a_budget_whose_best_decay_is_at_an_edge_carries_nothing() -> None:
    beyond = replace(FINE, centre=(0.0, -40.0))
    at_edge = replace(landscape_of(beyond, exact(beyond.errors()), epochs=10), updates=400)
    found = budget_regret([(at_edge, over(0.5)[2])], 0.0)
    assert "learning rate with the best decays of both inside" in found.why


@pytest.mark.slow
def test_the_interval_covers_what_a_rule_costs() -> None:
    """The truth is the cost of what the seeds chose, as far as noise let them choose well."""
    truth = replace(FINE, decays=25, decay_factor=2**0.5, lowest=0.12, curvature=0.004)
    sets = over(0.5, truth=truth)[::2]
    truths = [replace(truth, centre=(0.0, shift)) for shift in (2.0, -2.0)]
    random = np.random.default_rng(0)
    noise: dict[str, Any] = {"spread": 0.003, "examples": 10_000}
    covered = []
    for _ in range(100):
        pair = [
            reseen(one, measured(own.errors(), 3, random, **noise))
            for one, own in zip(sets, truths, strict=True)
        ]
        found = budget_regret([(pair[0], pair[1])], 0.0, instead=0.5).cost
        costs = [
            truths[1].at(one.lr, 2.0**one.carried) - truths[1].at(one.lr, 2.0**one.other)
            for one in _judged(pair[0], pair[1], 0.0, 0.5, False)
        ]
        covered.append(found.low <= float(np.mean(costs)) <= found.high)
    assert np.mean(covered) >= 0.9


def trained(cell: RunConfig, error: float, *, diverged: bool = False) -> Run:
    run = ended(cell, test_error=error)
    return Run(cell, (replace(run.last, diverged=diverged),)) if diverged else run


def test_fresh_seeds_judge_what_all_seeds_carried_exactly() -> None:
    """The mean over learning rates, then over pairs, within a seed; Student's t over seeds."""
    moves = [*budget_moves(pairs_over(over(0.5, way="normalized_decay"), "epochs"))]
    # Rates of one pair are left out, so that pairs and rates weigh differently.
    moves = [one for one in moves if one.tuned is not moves[0].tuned or one.lr == moves[0].lr]
    noise = np.random.default_rng(0)
    errors: dict[RunConfig, float] = {}
    by_hand: dict[float, list[float]] = {p: [] for p in POWERS}
    for seed in (7, 8, 9):
        for one in moves:
            for decay in (one.best, *one.carried.values()):
                errors[one.cell(decay, seed)] = float(noise.uniform(0.2, 0.4))
        for p, own in by_hand.items():
            pairs: dict[tuple[int, int], list[float]] = {}
            for one in moves:
                cost = errors[one.cell(one.carried[p], seed)] - errors[one.cell(one.best, seed)]
                pairs.setdefault((id(one.tuned), id(one.used)), []).append(cost)
            own.append(float(np.mean([np.mean(costs) for costs in pairs.values()])))
    runs = [trained(cell, error) for cell, error in errors.items()]
    extra = trained(moves[0].cell(moves[0].best, 10), 0.9)  # a seed that did not train the others
    found = judged_moves(moves, [*runs, extra])
    assert (found.seeds, found.fresh) == (3, True)
    for p, own in by_hand.items():
        off = student(2) * float(np.std(own, ddof=1)) / math.sqrt(3)
        assert found.costs[p].value == pytest.approx(float(np.mean(own)))
        assert found.costs[p].high - found.costs[p].value == pytest.approx(off)
    lost = moves[0].cell(moves[0].carried[0.0], 7)
    others = [run for run in runs if run.config != lost]
    with_lost = judged_moves(moves, [*others, trained(lost, 0.1, diverged=True)])
    risen = (max(errors.values()) - errors[lost]) / (3 * 3)  # of three pairs and three seeds
    rates = sum(one.tuned is moves[0].tuned and one.used is moves[0].used for one in moves)
    assert with_lost.costs[0.0].value == pytest.approx(found.costs[0.0].value + risen / rates)
    assert "Fewer than two seeds" in judged_moves(moves, runs[:5]).why
