"""Transfer regret says what carrying a decay costs, which rule to use, and how sure that is."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes import (
    QUADRATIC,
    Array,
    Truth,
    exact,
    landscape_of,
    measured,
    noisy,
    reseen,
)
from tests.regrets import (
    BEGIN,
    END,
    SCENARIOS,
    TITLES,
    counted,
    simulated,
    true_costs,
)
from tests.scattered import search
from tests.test_results_coverage import share
from weightdecay.results import (
    Cell,
    Estimate,
    Exponent,
    Knobs,
    Landscape,
    Point,
    TransferRegret,
    landscapes,
    measure_transfer,
    recommend,
)
from weightdecay.results.choosing import PAIRS as MOVES
from weightdecay.results.choosing import choose
from weightdecay.results.estimate import student
from weightdecay.results.exponent import unknown
from weightdecay.results.interpolation import between, doubt
from weightdecay.results.judging import mean_of
from weightdecay.results.transfer import RULES, measure_moves, of_fresh_seeds
from weightdecay.results.transfer_contrast import extra_cost, shared_moves
from weightdecay.results.transfer_folds import Judges
from weightdecay.site import rule_costs
from weightdecay.studies.registration import registered
from weightdecay.studies.registration_file import read
from weightdecay.studies.second_stage import judge
from weightdecay.sweeps import Store

pytestmark = pytest.mark.cpu("numbers of finished runs do not depend on the device")
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "landscape.md"
COMMITTED = ROOT / "results" / "cifar10-small"
BEST = 2.0**-7
PAIRS = [(BEST / 2, 2 * BEST), (2 * BEST, BEST / 2), (BEST, 4 * BEST), (BEST, BEST / 4)]
WIDE = Truth(decays=15, cliff=5.0)


@pytest.mark.parametrize("s", [-1.0, -0.5, 0.0, 0.5, 1.0])
def test_the_true_rule_costs_nothing_and_others_what_they_truly_cost(s: float) -> None:
    truth = replace(WIDE, s=s)
    found = measure_transfer(landscape_of(truth, exact(truth.errors())))
    expected = true_costs(truth, PAIRS)
    assert list(found.pairs) == PAIRS
    assert found.costs[s].value == pytest.approx(0, abs=0.001)
    for rule, cost in found.costs.items():
        if rule not in found.beyond:
            assert cost.value == pytest.approx(expected[rule], abs=0.003), rule
    assert (found.rule, found.tied, found.seeds) == (s, (s,), 3)


def test_pairs_count_alike() -> None:
    found = measure_transfer(noisy(Truth(s=0.0), 3, np.random.default_rng(0)))
    for rule, cost in found.costs.items():
        own = [costs[rule].value for costs in found.pairs.values()]
        assert cost.value == pytest.approx(np.mean(own))


def test_a_learning_rate_whose_best_decay_is_at_an_edge_is_left_out() -> None:
    """With s = 1, four times the best rate needs a decay two steps lower: the lowest there is."""
    truth = Truth(s=1.0, decays=7, centre=(0.0, -1.0))
    found = measure_transfer(landscape_of(truth, exact(truth.errors())))
    assert list(found.pairs) == [*PAIRS[:2], PAIRS[3]]


def test_a_learning_rate_at_which_every_setting_diverged_is_left_out() -> None:
    landscape = _separate()
    cells = {
        (lr, decay): replace(cell, diverged=cell.seeds[:1]) if lr == 4 * BEST else cell
        for (lr, decay), cell in landscape.cells.items()
    }
    found = measure_transfer(replace(landscape, cells=cells))
    assert list(found.pairs) == [*PAIRS[:2], PAIRS[3]]
    assert found.tied


def test_a_best_decay_at_the_end_of_a_column_is_not_lost_by_its_rounding() -> None:
    """Without one of the seeds, another decay may be the best: here the highest, 0.0078125."""
    truth = Truth(s=0.0, decays=7, centre=(0.0, 0.0))
    chosen, tested = exact(truth.errors())
    chosen = chosen.copy()
    chosen[truth.lrs == 4 * BEST, -1, :2] = 0.01
    chosen[truth.lrs == 4 * BEST, -1, 2] = 0.99
    found = measure_transfer(landscape_of(truth, (chosen, tested)))
    assert (4 * BEST in {used for _, used in found.pairs}, found.seeds) == (True, 3)


def test_rates_that_are_no_exact_multiples_stand_for_those_nearby() -> None:
    """As in 0.001, 0.003, 0.01: a factor of 3.2 is used as such."""
    truth = Truth(s=1.0, factor=10**0.5, decay_factor=2.0, decays=15)
    found = measure_transfer(landscape_of(truth, exact(truth.errors())))
    factors = [round(used / tuned, 1) for tuned, used in found.pairs]
    assert factors == [3.2, 0.3]
    assert found.rule == 1.0


def test_a_rule_that_leads_out_of_the_grid_costs_at_least_the_last_decay_and_is_not_used() -> None:
    truth = Truth(s=0.0, decays=5)
    found = measure_transfer(landscape_of(truth, exact(truth.errors())))
    assert 2.0 in found.beyond
    assert 0.0 not in found.beyond
    assert 0 < found.costs[2.0].value < true_costs(truth, list(found.pairs))[2.0]
    assert rule_costs.cost(found, 2.0, None).startswith("≥ ")
    # A bound has no interval: it is the low end, and unknown if that is not above 0.
    bounds = {1.0: Estimate(0.023, 0.011, 0.035), 2.0: Estimate(0.023, -0.073, 0.12)}
    wide = replace(found, costs={**found.costs, **bounds}, beyond=(1.0, 2.0))
    assert [rule_costs.cost(wide, rule, None) for rule in bounds] == ["≥ 1.1", "unknown"]
    scape = landscape_of(truth, exact(truth.errors()))
    assert rule_costs.words(wide, 1.0, scape) == "at least 1.1 points"
    assert (
        rule_costs.words(wide, 2.0, scape)
        == "an unknown amount, as it leads beyond the trained decays"
    )
    assert "keeping λ·α² leads beyond the trained decays" in rule_costs.costs(wide, None)
    assert "[−7.3, 12.0]" not in rule_costs.costs(wide, None)
    # Even if it seems to cost least.
    free = replace(found, costs={**found.costs, 2.0: Estimate(-1, -1, -1)}, tied=(0.0, 2.0))
    assert free.least == 0.0
    assert free.rule == 0.0


@pytest.mark.parametrize(("seeds", "certain"), [(1, False), (2, False), (3, True), (5, True)])
def test_an_interval_needs_two_seeds_to_choose_and_one_to_judge(seeds: int, certain: bool) -> None:
    found = measure_transfer(noisy(Truth(s=0.0), seeds, np.random.default_rng(0)))
    assert set(found.costs) == set(RULES)
    assert all(math.isfinite(cost.low) == certain for cost in found.costs.values())
    assert bool(found.tied) == certain
    assert (found.rule is not None) == certain
    assert ("estimates without an interval" in rule_costs.costs(found, None)) != certain


def test_a_seed_that_did_not_train_the_settings_does_not_judge() -> None:
    """As when more seeds were trained near the best alone: no interval from two cells."""
    landscape = noisy(Truth(s=0.0), 3, np.random.default_rng(0))
    cells = {
        place: cell
        if place[0] == BEST
        else replace(cell, seeds=(0,), chosen=cell.chosen[:1], tested=cell.tested[:1], losses=())
        for place, cell in landscape.cells.items()
    }
    found = measure_transfer(replace(landscape, cells=cells))
    assert found.costs
    assert found.tied == ()


def test_seeds_that_cannot_judge_do_not_make_a_cost_surer() -> None:
    """Three of eight seeds have every learning rate: hardly surer than these three alone."""
    widths: dict[int, list[float]] = {3: [], 8: []}
    for draw in range(10):
        whole = noisy(Truth(s=0.0), 8, np.random.default_rng(draw))
        last = max(used for _, used in measure_transfer(whole).pairs)
        for seeds, own in widths.items():
            cells = {
                place: _of_seeds(cell, 3 if place[0] == last else seeds)
                for place, cell in whole.cells.items()
            }
            found = measure_transfer(replace(whole, cells=cells))
            assert found.seeds == 3
            elsewhere = [costs for pair, costs in found.pairs.items() if pair[1] != last]
            own += [one.high - one.low for costs in elsewhere for one in costs.values()]
    assert np.median(widths[8]) > 0.6 * np.median(widths[3])


def _of_seeds(cell: Cell, count: int) -> Cell:
    return replace(
        cell,
        seeds=cell.seeds[:count],
        chosen=cell.chosen[:count],
        tested=cell.tested[:count],
        losses=(),
    )


@pytest.mark.slow
def test_seeds_that_choose_do_not_judge() -> None:
    """In a flat landscape every rule is free; judged by the seeds that chose, none would be."""
    flat = replace(Truth(s=0.0, curvature=0.0, level=0.0), rates=5)
    random = np.random.default_rng(0)
    kept = landscape_of(flat, exact(flat.errors()))
    costs = []
    for _ in range(150):
        errors, _ = measured(flat.errors(), 3, random, spread=0.02)
        found = measure_transfer(reseen(kept, (errors, errors)))
        if found.tied:
            costs.append(np.mean([cost.value for cost in found.costs.values()]))
    assert len(costs) > 20
    assert abs(np.mean(costs)) < 3 * np.std(costs) / math.sqrt(len(costs))


def test_a_diverged_run_counts_as_the_worst() -> None:
    """What it came to before it diverged says nothing."""
    truth = Truth(s=0.0, diverges=1.5)

    def cost(ended: float) -> float:
        landscape = landscape_of(truth, exact(truth.errors()))
        lost = reseen(landscape, exact(np.where(truth.diverged(), ended, truth.errors())))
        cells = {
            (lr, decay): replace(lost.cells[lr, decay], diverged=(0, 1, 2))
            if truth.diverges_at(lr, decay)
            else lost.cells[lr, decay]
            for lr, decay in lost.cells
        }
        return measure_transfer(replace(lost, cells=cells)).costs[-1.0].value

    assert cost(0.01) == pytest.approx(cost(0.99))
    assert cost(0.01) > 0.01


@pytest.mark.parametrize(
    ("landscape", "why"),
    [
        (search(Truth(), np.random.default_rng(0), noise=0.01, count=40), "Scattered settings"),
        (
            landscape_of(one := Truth(rates=2), exact(one.errors())),
            "No two learning rates near the best are about a factor of 4 apart, over which",
        ),
        (
            landscape_of(ten := Truth(s=0.0, factor=10.0, decay_factor=2.0), exact(ten.errors())),
            "No two learning rates near the best are about a factor of 4 apart, over which",
        ),
        (
            landscape_of(out := Truth(s=0.0, centre=(0.0, 4.0)), exact(out.errors())),
            "No two learning rates near the best that are a factor of 4 apart have their best",
        ),
        (
            landscape_of(far := Truth(s=0.0, decay_factor=16.0, decays=5), exact(far.errors())),
            "more than a factor of 4 apart",
        ),
    ],
)
def test_what_is_missing_for_a_regret_is_said(landscape: Landscape, why: str) -> None:
    found = measure_transfer(landscape)
    assert (found.costs, found.rule) == ({}, None)
    assert why in found.why
    assert rule_costs.costs(found, None).startswith("unknown: ")
    knobs = Knobs(unknown("no line"), fitted=False, regret=found)
    assert rule_costs.best(knobs, None) == rule_costs.costs(found, None)


def test_between_two_rates_only_rules_that_lead_out_there_cost_at_least_so_much() -> None:
    """Above the best decay are one and a half doublings, below it two and a half."""
    truth = Truth(s=0.0, decays=5, centre=(0.0, 0.5))
    found = measure_transfer(landscape_of(truth, exact(truth.errors())))
    assert len(found.pairs) == 4
    for tuned, used in found.pairs:
        own = found.of_pair((tuned, used))
        upward, downward = (-1.0, 1.0) if used > tuned else (1.0, -1.0)
        assert upward in own.beyond
        assert downward not in own.beyond
        assert rule_costs.cost(own, upward, None).startswith("≥ ")
        assert not rule_costs.cost(own, downward, None).startswith("≥ ")
    assert {-1.0, 1.0} <= {*found.beyond}


def test_a_grid_in_torchs_decay_is_not_said_to_lack_several_decays_per_rate() -> None:
    """Its λ = lr · weight_decay are shared by few learning rates, but each has four of them."""
    points = [
        Point(lr=lr, decay=lr * decay, way="weight_decay", tested=0.1 + lr + abs(decay - 0.01))
        for lr in (1e-4, 3e-4, 1e-3, 3e-3)
        for decay in (0.001, 0.01, 0.1, 1.0)
    ]
    [landscape] = landscapes(points)
    assert landscape.scattered
    assert measure_transfer(landscape).why.startswith(
        "The decays that were trained are more than a factor of 4 apart"
    )


def test_a_parabola_is_interpolated_exactly_and_nothing_is_extrapolated() -> None:
    places = np.array([0.0, 0.5, 1.5, 2.0, 4.0])

    def square(x: Any) -> Any:
        return 3 * (np.asarray(x) - 1.3) ** 2 + 0.4

    for place in (0.0, 0.2, 0.5, 1.0, 1.7, 2.0, 3.5, 4.0):
        assert between(places, place) @ square(places) == pytest.approx(square(place))
    for outside in (-0.1, 4.1):
        assert np.isnan(between(places, outside)).all()
    assert np.isnan(between(np.array([0.0, 2.5]), 1.0)).all()
    assert between(np.array([0.0, 2.0]), 0.5) == pytest.approx([0.75, 0.25])


def fresh(*, noise: float = 0.0005, **costs: float) -> TransferRegret:
    """Return the regret of a second stage with such mean costs, by s as in m1, 0 or p1."""
    draw = np.random.default_rng(0)
    own = {
        float(name.replace("m", "-").lstrip("p").replace("_", ".")): costs[name] for name in costs
    }
    return of_fresh_seeds(
        {pair: {s: mean + draw.normal(0, noise, 8) for s, mean in own.items()} for pair in PAIRS},
        error=0.1,
        best=BEST,
    )


@pytest.mark.parametrize(
    ("costs", "tied", "rule"),
    [
        ({"m1": 0.05, "p0": 0.0, "p1": 0.05}, (0.0,), 0.0),
        ({"m1": 0.0, "p0": 0.05, "p1": 0.05}, (-1.0,), -1.0),
        ({"m1": 0.05, "p0": 0.05, "p1": 0.0}, (1.0,), 1.0),
        # Leaving λ alone is the simplest of what costs the same, and then keeping λ/α.
        ({"m1": 0.0, "p0": 0.0, "p1": 0.05}, (-1.0, 0.0), 0.0),
        ({"m1": 0.0, "p0": 0.05, "p1": 0.0}, (-1.0, 1.0), -1.0),
        ({"m1": 0.05, "p0": 0.05, "p0_5": 0.0, "p1": 0.0}, (0.5, 1.0), None),
    ],
)
def test_of_rules_that_cost_the_same_the_simplest_is_recommended(
    costs: dict[str, float], tied: tuple[float, ...], rule: float | None
) -> None:
    found = fresh(**costs)
    assert found.tied == tied
    assert found.rule == (found.least if rule is None else rule)
    assert (found.fresh, found.seeds) == (True, 8)


def test_rules_are_compared_within_a_seed() -> None:
    """What a seed does to both rules drops out of their difference."""
    shared = np.random.default_rng(0).normal(0, 0.05, 8)
    found = of_fresh_seeds(
        {PAIRS[0]: {0.0: shared, 1.0: shared + 0.01 + 0.1 * shared**2}}, error=0.1, best=BEST
    )
    assert found.costs[1.0].low < found.costs[0.0].high
    assert found.tied == (0.0,)


def of_moves(costs: dict[tuple[float, float], Array], best: float) -> TransferRegret:
    """Return what fresh seeds found of keeping λ, by changes of α, as multiples of the best one."""
    own = {(best * one, best * other): {0.0: cost} for (one, other), cost in costs.items()}
    return of_fresh_seeds(own, error=0.1, best=best)


def test_what_surely_costs_more_is_known_within_a_seed() -> None:
    """Seeds scatter by five points, and do so alike under both rules: the intervals overlap."""
    wild = np.random.default_rng(0).normal(0.1, 0.05, 8)
    costs = {0.5: wild, 1.0: wild + 0.01 + np.linspace(-0.001, 0.001, 8)}
    found = replace(of_fresh_seeds({PAIRS[0]: costs}, error=0.1, best=BEST), beyond=(1.0,))
    assert found.costs[1.0].low < found.costs[0.5].high
    assert found.dearer == (1.0,)
    assert Knobs(Exponent(1.0, 0.8, 1.2), fitted=False, regret=found).rule == 0.5


def test_methods_are_compared_over_the_changes_of_the_learning_rate_that_both_have() -> None:
    """Keeping λ is as dear for both, but one has no best decay where it is dearest."""
    noise = np.random.default_rng(0).normal(0, 0.001, (len(MOVES), 8))
    costs = {move: 0.01 * 4**at + noise[at] for at, move in enumerate(MOVES)}
    whole, some = of_moves(costs, 2**-5), of_moves(dict(list(costs.items())[:3]), 2**-8)
    assert abs(whole.costs[0.0].value - some.costs[0.0].value) > 0.05
    both = shared_moves([whole, some])
    assert both == [*MOVES[:3]]
    assert extra_cost([(whole, some)], 0.0, both).value == pytest.approx(0)
    assert shared_moves([some, of_moves({MOVES[3]: costs[MOVES[3]]}, 2**-5)]) == []


def test_fresh_seeds_and_a_sweep_are_compared_over_the_same_changes() -> None:
    """Those of the one have judged all changes, and the other sweep has a single one."""
    noise = np.random.default_rng(0).normal(0, 0.001, (len(MOVES), 8))
    costs = {move: 0.01 * 4**at + noise[at] for at, move in enumerate(MOVES)}
    judged = of_moves(costs, 2**-5)
    alone = replace(of_moves({MOVES[0]: costs[MOVES[0]]}, 2**-8), fresh=False)
    both = shared_moves([judged, alone])
    assert both == [MOVES[0]]
    found = extra_cost([(judged, alone)], 0.0, both)
    assert found.value == pytest.approx(0)
    one = mean_of(costs[MOVES[0]])
    assert found.high > one.high - one.value  # they count as independent


def test_methods_are_compared_within_a_seed() -> None:
    """What a fresh seed does to both methods, or to both under another schedule, drops out."""
    shared, own = np.random.default_rng(0).normal(0, (0.05, 0.001), (8, 2)).T
    one = of_moves(dict.fromkeys(MOVES, shared + own + 0.01), 2**-5)
    rival = of_moves(dict.fromkeys(MOVES, shared), 2**-7)
    found = extra_cost([(one, rival)], 0.0, MOVES)
    assert (found.low, found.value, found.high) == pytest.approx(
        (mean_of(own + 0.01).low, float(own.mean()) + 0.01, mean_of(own + 0.01).high)
    )
    twice = extra_cost([(one, rival), (rival, rival)], 0.0, MOVES)
    assert (twice.low, twice.high) == pytest.approx((found.low, found.high))
    again = extra_cost([(one, rival), (one, rival)], 0.0, MOVES)
    assert (again.low, again.high) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_a_sweep_can_be_measured_over_some_changes_of_the_learning_rate_alone() -> None:
    whole = measure_transfer(noisy(Truth(s=0.5), 3, np.random.default_rng(0)))
    assert [*whole.moves] == [*MOVES]
    for move, pair in whole.moves.items():
        alone = measure_transfer(noisy(Truth(s=0.5), 3, np.random.default_rng(0)), [move])
        assert [*alone.pairs] == [pair]
        assert alone.costs[0.0] == whole.pairs[pair][0.0]


def test_a_simpler_rule_that_noise_alone_keeps_is_named_and_not_recommended() -> None:
    """Leaving λ cost five points more on average, and its seeds scatter far more than that."""
    wild = 0.05 + np.array([-0.2, 0.2, -0.1, 0.1, 0.15, -0.15, 0.05, -0.05])
    found = of_fresh_seeds(
        {PAIRS[0]: {0.0: wild, 1.0: np.linspace(-0.001, 0.001, 8)}}, error=0.1, best=BEST
    )
    assert found.tied == (0.0, 1.0)
    assert found.rule == 1.0
    near = of_fresh_seeds(
        {PAIRS[0]: {0.0: wild - 0.048, 1.0: np.linspace(-0.001, 0.001, 8)}}, error=0.1, best=BEST
    )
    assert near.rule == 0.0


def test_where_several_rules_cost_the_same_more_seeds_are_asked_for() -> None:
    random = np.random.default_rng(3)
    found = recommend(noisy(Truth(s=0.25, cliff=5.0), 3, random, spread=0.02))
    assert len(found.knobs.tied) > 1
    assert found.knobs.rule is not None
    assert found.repeat is not None


@pytest.mark.skipif(not COMMITTED.is_dir(), reason="a source distribution has no results")
def test_on_cifar_10_a_sweep_estimates_what_fresh_seeds_have_found() -> None:
    """Eight seeds trained the carried decays."""
    registration = read(COMMITTED / "figure-2")
    first, second = (Store(COMMITTED / one).runs() for one in ("figure-2", "figure-2/judging"))
    scapes = registered(registration, first)
    regrets = judge(registration, scapes, first, second).regrets
    assert len(scapes) == 4
    for name, landscape in scapes.items():
        found = measure_transfer(landscape)
        assert len(regrets[name].costs) == 5
        for s, cost in regrets[name].costs.items():
            if s not in found.beyond:
                assert found.costs[s].value == pytest.approx(cost.value, rel=0.06, abs=0.0045)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cliff, s = 0", "noisy, 7×7, s = 0.5"])
def test_the_true_rule_is_among_the_tied_ones_and_the_page_says_how_often(name: str) -> None:
    [scenario] = [one for one in SCENARIOS if (one.name, one.seeds) == (name, 3)]
    seen = counted(simulated(scenario, simulations=60))
    assert seen.tied >= 0.95
    said = page_rows()[name, "3"]
    for title, found in (("right rule", seen.right), ("one rule left", seen.alone)):
        # Three standard deviations of 60 simulations.
        assert share(said[title]) == pytest.approx(found, abs=0.2)
    if name.startswith("cliff"):
        assert seen.right >= 0.95
        assert seen.covered >= 0.9


def test_between_cells_errors_are_doubted_only_where_they_are_no_parabola() -> None:
    places = np.array([0.0, 0.5, 1.5, 2.0, 4.0])
    for place in (0.0, 0.7, 1.0, 1.7, 4.0):
        assert doubt(places, place) @ (places - 1.3) ** 2 == pytest.approx(0)
    kinked = np.abs(np.arange(4.0) - 1.0)
    # Through the first three cells, the parabola at 1.5 is 0.25; through the last three, 0.5.
    assert doubt(np.arange(4.0), 1.5) @ kinked == pytest.approx((0.25 - 0.5) / 2)
    assert doubt(np.arange(4.0), 1.0) @ kinked == 0
    # With three cells there is one parabola, and the straight line to compare it with.
    assert doubt(np.arange(3.0), 1.5) @ kinked[:3] == pytest.approx(0.25 - 0.5)


def tilted() -> Landscape:
    """Return a quadratic landscape, so that parabolas agree, of four seeds whose ridges tilt."""
    own = np.linspace(-0.2, 0.4, 4)
    errors = np.stack([replace(QUADRATIC, s=s, decays=15).errors() for s in own], -1)
    return landscape_of(replace(QUADRATIC, decays=15), (errors, errors))


def without(landscape: Landscape, seed: int) -> Landscape:
    kept = [at for at in range(4) if at != seed]
    cells = {
        place: replace(
            cell,
            seeds=tuple(kept),
            chosen=tuple(cell.chosen[at] for at in kept),
            tested=tuple(cell.tested[at] for at in kept),
            losses=(),
            packs=(),
        )
        for place, cell in landscape.cells.items()
    }
    return replace(landscape, cells=cells)


def test_an_interval_is_what_costs_do_if_a_seed_neither_chooses_nor_judges() -> None:
    """A seed whose ridge tilts moves the chosen decays and the errors there."""
    landscape = tilted()
    found = measure_transfer(landscape)
    pairs = [*found.pairs]
    for at, rule in enumerate(RULES):
        left = []
        for seed in range(4):
            others = without(landscape, seed)
            together = Judges(others, choose(others)).together(pairs)
            left.append(float((together.weights[at].mean(0) * together.errors).sum()))
        error = math.sqrt(3 * float(np.var(left)))
        said = found.costs[rule]
        if rule not in found.beyond:
            assert said.high - said.value == pytest.approx(student(3) * error, rel=1e-3), rule


def test_what_is_uncertain_between_cells_widens_intervals() -> None:
    """Seeds agree exactly, so that nothing else does."""
    smooth, cliff = (
        measure_transfer(landscape_of(truth, exact(truth.errors())))
        for truth in (replace(QUADRATIC, decays=15), WIDE)
    )
    assert smooth.costs[-1.0].high - smooth.costs[-1.0].low == pytest.approx(0, abs=1e-9)
    assert cliff.costs[-1.0].high - cliff.costs[-1.0].low > 0.0005


def test_a_decay_missing_beside_the_best_one_leaves_its_learning_rate_out() -> None:
    truth = replace(WIDE, s=0.0)
    landscape = landscape_of(truth, exact(truth.errors()))
    best = 2.0**-11

    def holed(*places: tuple[float, float]) -> Landscape:
        kept = {place: cell for place, cell in landscape.cells.items() if place not in places}
        return replace(landscape, cells=kept)

    for missing in (best, best / 2, 2 * best):
        found = measure_transfer(holed((2 * BEST, missing)))
        assert [*found.pairs] == PAIRS[2:], missing
        moves = measure_moves(holed((2 * BEST, missing)), BEST)
        [why] = [one.regret.why for one in moves if one.used == 2 * BEST]
        assert why == "A decay next to the best one at α = 0.0156 was not trained."
    assert [*measure_transfer(holed((2 * BEST, best / 4))).pairs] == PAIRS
    none = measure_transfer(holed(*((factor * BEST, 2 * best) for factor in (0.5, 1, 2))))
    assert none.costs == {}
    assert "between trained neighbours" in none.why


@pytest.mark.slow
def test_intervals_of_other_rules_cover_beside_runs_that_diverge() -> None:
    """Parabolas do not follow errors to a cliff, and three seeds may choose alike by chance."""
    name = "diverged corner, s = 0.5"
    [scenario] = [one for one in SCENARIOS if (one.name, one.seeds) == (name, 3)]
    assert counted(simulated(scenario, simulations=20)).others >= 0.9


def page_rows() -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of the page's table, by landscape and seeds."""
    _, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    lines = rest.partition(END)[0].strip().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert tuple(cells[0]) == TITLES
    return {(one[0], one[1]): dict(zip(TITLES, one, strict=True)) for one in cells[2:]}


#: The least share of intervals of other rules that must cover, where it is not 93 %.
HARD = {
    ("steep cliff, s = 0.5", "3"): 0.91,
    ("steep cliff, s = 0.5", "5"): 0.89,
    ("new: strongly tilting seeds, cliff ×4, s = 0.5", "3"): 0.90,
    ("new: strongly tilting seeds, cliff ×4, s = 0.5", "5"): 0.90,
    ("new: half steps, a fifth missing, drift −0.5, s = 0.5", "5"): 0.91,
}


def test_the_page_has_every_landscape_and_in_each_the_true_rule_is_rarely_excluded() -> None:
    rows = page_rows()
    assert list(rows) == [(one.name, str(one.seeds)) for one in SCENARIOS]
    for place, said in rows.items():
        assert said["measured"].endswith("/1000")
        strong = "strongly" in place[0]
        # 95 % are due (93.5 % if seeds tilt strongly); chance makes it 0.7 points more or less.
        assert share(said["true rule tied"]) >= (0.93 if strong else 0.945), place
        assert share(said["covered"]) >= (0.87 if strong else 0.93), place
        assert HARD.get(place, 0.93) <= share(said["of other rules"]) <= 0.97, place


def _separate() -> Landscape:
    truth = replace(WIDE, s=0.0)
    return landscape_of(truth, exact(truth.errors()))
