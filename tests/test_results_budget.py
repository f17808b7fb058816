"""The best decay's powers of epochs, data and batch, with the signs that the paper's rule has."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.budgets import (
    BEGIN,
    BUDGET,
    END,
    SCENARIOS,
    TITLES,
    VARIED,
    WIDE,
    coverage,
    landscape,
)
from tests.landscapes import exact, landscape_of, measured, noisy, runs_of
from weightdecay.decay import NORMALIZED, TIMESCALE, BudgetExponents
from weightdecay.results import Landscape, budget_exponents, landscapes
from weightdecay.results.exponent import bounded

PAGE = Path(__file__).parents[1] / "docs" / "exponents.md"
#: The rows that the tests simulate again, fewer times.
REPEATED = [("cliff", 3), ("half steps, three α", 3), ("cliff drifts ×1.6 per budget", 3)]


@pytest.mark.parametrize("way", ["weight_decay", "normalized_decay", "l2"])
@pytest.mark.parametrize(
    "rule", [NORMALIZED, TIMESCALE, BudgetExponents(epochs=0.3, data=-0.2, batch=0.7)]
)
def test_the_exponents_of_a_rule_are_found(way: str, rule: BudgetExponents) -> None:
    sets = [
        landscape(rule, way=way, **{name: value})
        for name, values in VARIED.items()
        for value in values
    ]
    found = budget_exponents(sets)
    assert {name: one.fixed.value for name, one in found.items()} == pytest.approx(
        {"epochs": rule.epochs, "data": rule.data, "batch": rule.batch}, abs=1e-3
    )
    assert [one.ridge.value for one in found.values()] == pytest.approx(
        [one.fixed.value for one in found.values()], abs=5e-3
    )


def test_at_a_fixed_rate_and_along_the_ridge_the_exponents_may_differ() -> None:
    """If α* falls by half a doubling per doubling of epochs, λ*(α*) rises by half of s with it."""
    sets = []
    for epochs, place in ((8, 0.5), (16, 0.0), (32, -0.5)):
        truth = replace(WIDE, s=0.6, centre=(place, 0.0))
        sets.append(landscape_of(truth, exact(truth.errors()), **BUDGET | {"epochs": epochs}))
    found = budget_exponents(sets)["epochs"]
    assert found.ridge.value == pytest.approx(0.0, abs=0.01)
    assert found.fixed.value == pytest.approx(0.3, abs=0.01)
    assert len(found.rates) == 4
    assert [one.value for one in found.rates.values()] == pytest.approx([0.3] * 4, abs=0.01)


def test_what_a_seed_does_to_every_budget_alike_widens_no_interval() -> None:
    """Each seed has its own best decay, moved alike in all budgets, or mixed up between them."""

    def of(order: tuple[int, ...], epochs: int) -> Landscape:
        truths = [replace(WIDE, centre=(0.0, (-0.6, 0.0, 0.6)[place])) for place in order]
        errors = np.stack([truth.errors() for truth in truths], -1)
        return landscape_of(WIDE, (errors, errors), **BUDGET | {"epochs": epochs})

    alike = [of((0, 1, 2), epochs) for epochs in (8, 16, 32)]
    mixed = [of(order, e) for order, e in (((0, 1, 2), 8), ((1, 2, 0), 16), ((2, 0, 1), 32))]
    widths = []
    for sets in (alike, mixed):
        found = budget_exponents(sets)["epochs"]
        assert found.fixed.value == pytest.approx(0.0, abs=0.02)
        widths.append([one.high - one.low for one in (found.fixed, found.ridge)])
    assert all(one < 0.5 * other for one, other in zip(*widths, strict=True))


def test_a_best_rate_at_the_end_of_the_grid_leaves_the_fixed_rates() -> None:
    sets = []
    for epochs, moved in ((8, 0.5), (16, 0.0), (32, -0.5)):
        truth = replace(WIDE, centre=(-4.0, moved))
        sets.append(landscape_of(truth, exact(truth.errors()), **BUDGET | {"epochs": epochs}))
    found = budget_exponents(sets)["epochs"]
    assert found.fixed.value == pytest.approx(0.5, abs=0.01)
    assert found.ridge.value is None
    assert "3 of 3 landscapes are left out" in found.ridge.why
    assert "best learning rate is the lowest" in found.ridge.why


@pytest.mark.parametrize("name", sorted(VARIED))
def test_what_does_not_vary_alone_has_no_exponent(name: str) -> None:
    first, *_, last = VARIED[name]
    pair = [landscape(NORMALIZED, **{name: value}) for value in (first, last)]
    assert budget_exponents(pair).keys() == {name}
    other = next(one for one in VARIED if one != name)
    both = landscape(NORMALIZED, **{name: last, other: VARIED[other][0]})
    assert budget_exponents([pair[0], both]) == {}
    assert budget_exponents(pair[:1]) == {}


def test_sets_that_differ_otherwise_share_the_slope_and_have_levels_of_their_own() -> None:
    rule = BudgetExponents(epochs=0.5, data=0, batch=1)
    crossed = [
        landscape(rule, epochs=epochs, batch=batch) for epochs in (8, 32) for batch in (50, 200)
    ]
    found = budget_exponents(crossed)
    assert found["epochs"].fixed.value == pytest.approx(0.5, abs=1e-5)
    assert found["batch"].fixed.value == pytest.approx(1.0, abs=1e-5)


def test_all_the_data_are_as_many_as_an_epoch_shows() -> None:
    rule = BudgetExponents(epochs=0, data=0.8, batch=0)
    some, everything = landscape(rule, data=2000), landscape(rule, data=8000)
    everything = replace(everything, run_config=replace(everything.config, data=None))
    assert budget_exponents([some, everything])["data"].fixed.value == pytest.approx(0.8, abs=1e-3)


@given(order=st.permutations(range(3)))
def test_the_order_of_landscapes_changes_nothing(order: list[int]) -> None:
    sets = [landscape(NORMALIZED, epochs=epochs) for epochs in VARIED["epochs"]]
    one, other = budget_exponents(sets), budget_exponents([sets[place] for place in order])
    assert other["epochs"].fixed.value == pytest.approx(one["epochs"].fixed.value)


@pytest.mark.parametrize(("epochs", "bound"), [(16 * 2**8, "at least"), (16 // 2**3, None)])
def test_at_the_grids_edge_there_is_a_bound(epochs: int, bound: str | None) -> None:
    """With 2^8 times the epochs the best decay leaves the grid below: the power is larger."""
    rule = BudgetExponents(epochs=1, data=0, batch=0)
    found = budget_exponents([landscape(rule), landscape(rule, epochs=epochs)])["epochs"].fixed
    assert found.bound == bound
    assert found.low - 1e-5 <= 1 <= found.high + 1e-5
    assert ("lowest of the grid" in found.why) == (bound is not None)


def test_where_no_landscape_can_say_there_is_a_reason() -> None:
    one_seed = [landscape_of(WIDE, exact(WIDE.errors(), 1), epochs=epochs) for epochs in (4, 16)]
    found = budget_exponents(one_seed)["epochs"].fixed
    assert found.value is None
    assert "one seed" in found.why


def of_one_seed(epochs: int) -> Landscape:
    """Return a landscape that cannot say where its best decay is."""
    return landscape_of(WIDE, exact(WIDE.errors(), 1), **BUDGET | {"epochs": epochs})


@pytest.mark.parametrize(
    ("missing", "said"),
    [((), ""), ((32,), "1 of 3 landscapes is"), ((32, 64), "2 of 4 landscapes are")],
)
def test_a_value_says_how_many_landscapes_it_was_had_without(
    missing: tuple[int, ...], said: str
) -> None:
    whole = [landscape(NORMALIZED, epochs=epochs) for epochs in (4, 16)]
    alone = budget_exponents(whole)["epochs"].fixed
    found = budget_exponents([*whole, *map(of_one_seed, missing)])["epochs"].fixed
    assert (found.value, found.low, found.high) == (alone.value, alone.low, alone.high)
    reason = " left out: A landscape has one seed, which shows no noise."
    assert found.why == (said + reason if said else "")


def test_so_does_a_bound() -> None:
    rule = BudgetExponents(epochs=1, data=0, batch=0)
    at_edge = [landscape(rule), landscape(rule, epochs=16 * 2**8)]
    found = budget_exponents([*at_edge, of_one_seed(32)])["epochs"].fixed
    assert found.bound == "at least"
    assert "lowest of the grid" in found.why
    assert "1 of 3 landscapes is left out: A landscape has one seed" in found.why


@pytest.mark.parametrize(("freedom", "quantile"), [(1.0, 12.706), (2.0, 4.303), (np.inf, 1.960)])
def test_a_bound_is_as_cautious_as_its_seeds_are_few(freedom: float, quantile: float) -> None:
    """The second of two points is an edge, so that the first has all the noise."""
    found = bounded(
        np.array([0.0, 1.0]),
        np.array([0.0, 1.0]),
        np.array([0.01, 0.0]),
        np.array([0, 1]),
        freedom=np.array([freedom, np.inf]),
        sign=1,
        why="The best decay is the highest of the grid.",
    )
    assert found.bound == "at least"
    assert found.value == pytest.approx(1 - quantile * 0.1, abs=1e-3)


def test_noise_keeps_a_bound_away_from_the_line() -> None:
    rule = BudgetExponents(epochs=1, data=0, batch=0)
    splits = measured(WIDE.errors(), 2, np.random.default_rng(0), spread=0.002)
    at_edge = landscape(rule, epochs=16 * 2**8)
    one, other = (
        budget_exponents([scape, at_edge])["epochs"].fixed
        for scape in (landscape(rule), landscape_of(WIDE, splits, **BUDGET))
    )
    assert one.bound == other.bound == "at least"
    assert one.value is not None
    assert other.value is not None
    assert other.value < one.value - 0.005


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seeds"), REPEATED)
def test_the_interval_covers_the_truth(name: str, seeds: int) -> None:
    [scenario] = [one for one in SCENARIOS if (one.name, one.seeds) == (name, seeds)]
    for seen in coverage(scenario, simulations=60, first=1):
        assert seen.values >= 45
        assert seen.covered >= 0.9
        assert seen.width < 0.3


def test_the_page_has_every_sweep_and_each_covers_as_often_as_it_must() -> None:
    _, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    lines = rest.partition(END)[0].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert tuple(rows[0]) == TITLES
    assert [tuple(row[:2]) for row in rows[2:]] == [(one.name, str(one.seeds)) for one in SCENARIOS]
    for _, seeds, *numbers in rows[2:]:
        for values, covered in (numbers[:2], numbers[5:7]):
            assert values.endswith("/1000")
            if seeds == "1":
                assert (values, covered) == ("0/1000", "–")
            else:
                assert float(covered.rstrip("%")) >= 92.0


def test_half_a_sweep_does_not_stop_the_others() -> None:
    whole = [landscape(NORMALIZED, epochs=epochs) for epochs in (4, 16)]
    runs = runs_of(WIDE, exact(WIDE.errors()), **BUDGET | {"epochs": 32})
    [begun] = landscapes(runs[:5])
    found = budget_exponents([*whole, begun])
    assert found["epochs"].fixed.value == pytest.approx(0.5, abs=1e-5)
    noisy_one = noisy(WIDE, 3, np.random.default_rng(0))
    assert budget_exponents([noisy_one]) == {}
