"""Grids as people make them: 1, 3, 10 or 1, 2, 5, rounded, in λ or in torch's weight_decay."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.landscapes import Truth
from tests.uneven import (
    FIVES,
    IN_LAMBDA,
    IN_TORCH,
    THREES,
    TWOS,
    TWOS_IN_TORCH,
    Grid,
    rounded,
    swept,
    truth_of,
)
from weightdecay.results import (
    Estimate,
    Exponent,
    Landscape,
    Point,
    TransferRegret,
    coupling,
    landscapes,
    measure_transfer,
    recommend,
)
from weightdecay.results.arrays import grid as grid_of
from weightdecay.results.carrying import Knobs
from weightdecay.results.choosing import choose
from weightdecay.results.vertices import vertices
from weightdecay.site import advice

# What rules cost, as fractions of 1: the last two are tied.
COSTS = {-1.0: 0.09, -0.5: 0.05, 0.0: 0.03, 0.5: 0.01, 1.0: 0.001, 2.0: -0.001}


@pytest.mark.parametrize("s", [0.0, 0.5])
@pytest.mark.parametrize("name", IN_LAMBDA)
def test_uneven_steps_show_s_and_the_rule(name: str, s: float) -> None:
    """A neighbour a little farther away than usual counted as missing, and nothing was known."""
    _is_found(s, [swept(IN_LAMBDA[name], truth_of(s, draw), draw) for draw in range(8)])


@pytest.mark.parametrize("s", [0.0, -0.5])
@pytest.mark.parametrize("name", IN_TORCH)
def test_grids_in_torchs_decay_show_s_and_the_rule(name: str, s: float) -> None:
    """Where learning rates share few λ, they share λ/α, and each has a column of decays."""
    found = [swept(IN_TORCH[name], truth_of(s, draw), draw, torch=True) for draw in range(8)]
    assert all(one.in_columns for one in found)
    coarse = name.startswith("factors") and s != 0  # costs between steps of 4 are hardly known
    _is_found(s, found, rules=0.0 if coarse else 0.75)


def _is_found(s: float, scapes: Sequence[Landscape], *, rules: float = 0.75) -> None:
    found = [coupling(scape) for scape in scapes]
    known = [one.exponent for one in found if one.exponent.value is not None]
    assert len(known) >= 0.75 * len(scapes)
    assert np.mean([one.low <= s <= one.high for one in known]) >= 0.85
    assert abs(np.mean([one.value for one in known if one.value is not None]) - s) < 0.1
    assert all(np.isfinite(one.below.low) or np.isfinite(one.above.low) for one in found)
    right = [recommend(scape).knobs.rule == s for scape in scapes]
    assert np.mean(right) >= rules


@pytest.mark.parametrize("torch", [False, True])
@pytest.mark.parametrize("digits", [2, 3])
def test_rounding_a_table_changes_s_by_next_to_nothing(digits: int, *, torch: bool) -> None:
    """Powers of two, as a person writes them: 0.00195, 0.00391, 0.00781, 0.0156."""
    grid, truth = TWOS_IN_TORCH if torch else TWOS, truth_of(0.0, 1)
    exact = coupling(swept(grid, truth, 1, torch=torch))
    typed = coupling(swept(grid, truth, 1, torch=torch, table=rounded(grid, digits)))
    assert rounded(grid, digits) != grid
    for name in ("exponent", "check", "below", "above"):
        one, other = getattr(exact, name), getattr(typed, name)
        assert one.value is not None
        assert other.value == pytest.approx(one.value, abs=0.02 if digits == 3 else 0.06)
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.25)


@pytest.mark.parametrize("factor", [2, 4])
@pytest.mark.parametrize("digits", [2, 3])
def test_rounding_a_table_changes_what_rules_cost_by_next_to_nothing(
    digits: int, factor: int
) -> None:
    """A step of 4.1 was too large to say what lies between, and one of 2.05 had a missing decay."""
    grid = TWOS[0], [2.0**-11 * factor**k for k in range(-4, 4)]
    truth = truth_of(0.0, 1)
    exact = measure_transfer(swept(grid, truth, 1))
    typed = measure_transfer(swept(grid, truth, 1, table=rounded(grid, digits)))
    assert exact.rule == typed.rule == 0.0
    for one, other in zip(exact.pairs, typed.pairs, strict=True):
        assert other == pytest.approx(one, rel=0.05)
    for rule in (-1.0, 0.0, 1.0):
        assert typed.costs[rule].value == pytest.approx(exact.costs[rule].value, abs=0.01)


def test_a_neighbour_as_far_as_rounding_makes_it_is_no_missing_decay() -> None:
    """From 0.00012 to 0.00025 is more than a doubling, and the best decay is at the latter."""
    grid = TWOS[0], [6.2e-5, 1.2e-4, 2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3]
    scape = swept(grid, replace(truth_of(0.0, 1), centre=(0.0, -1.0)), 1)
    assert {column.decay < 3.5e-4 for column in choose(scape).columns.values()} == {True}
    assert coupling(scape).exponent.value == pytest.approx(0, abs=0.2)
    assert measure_transfer(scape).rule == 0


def test_one_seed_has_the_s_of_the_surface_where_no_lambda_is_shared() -> None:
    """A column needs two seeds to show noise."""
    grid = IN_TORCH["factors of 2 and 4"]
    found = recommend(swept(grid, truth_of(0.0, 3), 3, torch=True, seeds=1))
    assert found.landscape.scattered
    assert found.knobs.exponent.value == pytest.approx(0, abs=0.3)


def shared_and_alone(truth: Truth, draw: int) -> tuple[Landscape, Landscape]:
    """Return a grid in torch's decay as it is, and so that no λ occurs at two learning rates."""
    lrs, decays = TWOS_IN_TORCH
    nudged = [lr * (1 + 1e-5 * by) for lr, by in zip(lrs, (-3, 2, 0, 5, -1), strict=True)]
    shared = swept(TWOS_IN_TORCH, truth, draw, torch=True)
    alone = swept(TWOS_IN_TORCH, truth, draw, torch=True, table=(nudged, decays))
    assert (shared.scattered, alone.scattered) == (False, True)
    return shared, alone


def test_columns_that_share_no_lambda_have_the_s_of_those_that_do() -> None:
    one, other = map(coupling, shared_and_alone(truth_of(0.0, 2), 2))
    assert one.exponent.value is not None
    for name in ("exponent", "check", "below", "above", "apart", "knee"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert theirs.value == pytest.approx(ours.value, abs=1e-3)
        assert (theirs.low, theirs.high) == pytest.approx((ours.low, ours.high), abs=1e-2)
    for point, twin in zip(one.ridge, other.ridge, strict=True):
        assert twin.decay == pytest.approx(point.decay, rel=1e-3)


@pytest.mark.parametrize(("s", "beyond"), [(0.0, -4), (0.0, 4), (1.0, -4), (1.0, 6)])
def test_columns_that_share_no_lambda_have_the_same_bound(s: float, beyond: int) -> None:
    """Errors rise inwards from the last decay of each column, wherever those of others lie."""
    truth = replace(truth_of(s, 4), centre=(0.0, float(beyond)))
    one, other = (coupling(scape).exponent for scape in shared_and_alone(truth, 4))
    assert one.bound is not None
    assert other.bound == one.bound
    assert other.value == pytest.approx(one.value, abs=1e-3)


def test_torchs_convention_adds_one_where_no_lambda_occurs_twice() -> None:
    scape = swept(IN_TORCH["factors of 2 and 4"], truth_of(0.0, 3), 3, torch=True)
    assert scape.scattered
    paper, torchs = (coupling(scape, convention=name) for name in ("paper", "torch"))
    for name in ("exponent", "check", "below", "above"):
        one, other = getattr(paper, name), getattr(torchs, name)
        assert one.value is not None
        assert other.value == pytest.approx(one.value + 1, abs=1e-9)
        assert (other.low, other.high) == pytest.approx((one.low + 1, one.high + 1), abs=1e-9)


@pytest.mark.parametrize("draw", range(3))
def test_values_between_are_asked_for_where_steps_are_too_large(draw: int) -> None:
    """More seeds would not say what lies between decays that are a factor of 10 apart."""
    grid = ([1e-3, 1e-2, 1e-1], [0.006, 0.06, 0.6, 6.0])
    found = recommend(swept(grid, truth_of(0.0, draw), draw, torch=True))
    assert found.knobs.rule is None
    assert found.repeat is None
    assert {one.knob for one in found.add} == {"lr", "torch"}
    assert {one.end for one in found.add} == {"between"}
    for one in found.add:
        trained = grid[0] if one.knob == "lr" else grid[1]
        assert not {*one.values} & {*trained}
        assert min(trained) < min(one.values) <= max(one.values) < max(trained)
    lines = advice.additions(found)
    assert all(line.endswith("between those trained, which are too far apart") for line in lines)
    assert lines[0].startswith("lr = 0.0032, 0.032: between")


def test_a_missing_step_is_asked_for_wherever_it_is() -> None:
    """The best learning rate has its neighbours; at others, best decays lie beside the gap."""
    grid = THREES[0], [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
    truth = replace(truth_of(2.0, 0), centre=(0.0, 0.0))
    found = recommend(swept(grid, truth, 0))
    assert found.knobs.regret.costs == {}
    assert (found.add[0].knob, found.add[0].end) == ("decay", "between")
    assert found.add[0].values == pytest.approx([3.2e-5])
    wider = (grid[0], sorted([3e-5, *grid[1]]))
    assert recommend(swept(wider, truth, 0)).knobs.rule == 2.0


@pytest.mark.parametrize("torch", [False, True])
def test_decays_are_asked_for_where_those_of_other_learning_rates_lie_at_the_ends(
    *, torch: bool
) -> None:
    """At the best learning rate, both sides are there; at the next, the best is the last one."""
    grid = TWOS[0], [2.0**k for k in ((-5, -4, -3) if torch else (-12, -11, -10))]
    truth = replace(truth_of(0.0 if torch else 1.0, 5), centre=(0.0, 0.4))
    found = recommend(swept(grid, truth, 5, torch=torch))
    assert found.knobs.rule is None
    assert found.repeat is None
    knob = "torch" if torch else "decay"
    assert [(one.knob, one.end, one.edge) for one in found.add] == [
        (knob, "lowest", False),
        (knob, "highest", False),
    ]
    assert found.add[1].values == (2 * grid[1][-1], 4 * grid[1][-1])
    assert all(
        line.endswith("of the grid, where the best may be at other learning rates")
        for line in advice.additions(found)
    )


def test_a_small_grid_in_torchs_decay_has_a_surface_as_one_in_lambda_has() -> None:
    """Nine settings are enough on a grid, and it is one although no λ occurs twice."""
    grid = ([0.0016, 0.0078, 0.04], [0.012, 0.06, 0.3])
    scape = swept(grid, truth_of(0.0, 0), 0, torch=True)
    assert scape.in_columns
    found = recommend(scape)
    assert not found.best_run
    assert found.lr.low < found.lr.value < found.lr.high
    alone = recommend(swept(grid, truth_of(0.0, 0), 0, torch=True, seeds=1))
    assert alone.no_interval == "one seed shows no noise"


def test_what_s_excludes_is_not_recommended_though_it_costs_the_same() -> None:
    costs = {rule: Estimate(cost, cost - 0.004, cost + 0.004) for rule, cost in COSTS.items()}
    regret = TransferRegret(costs=costs, tied=(1.0, 2.0), seeds=3, margin=0.002)
    exponent = Exponent(0.9, 0.3, 1.5)
    assert regret.rule == 2.0
    knobs = Knobs(exponent, fitted=False, regret=regret)
    assert (knobs.rule, knobs.tied) == (1.0, (1.0, 2.0))
    assert Knobs(exponent, fitted=False, regret=replace(regret, fresh=True)).rule == 2.0
    elsewhere = Knobs(Exponent(0.0, -0.2, 0.2), fitted=False, regret=regret)
    assert elsewhere.rule == 2.0
    assert elsewhere.contradicted
    # To leave the decay alone is simplest, and is never worse than by the margin.
    free = replace(regret, costs=costs | {0.0: costs[1.0]}, tied=(0.0, 1.0, 2.0))
    assert Knobs(exponent, fitted=False, regret=free).rule == regret.unchanged == 0.0


SEARCHES = {
    "decays from a list": (None, [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]),
    "two digits": (2, None),
    "two decays alike": (None, None),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_random_search_in_which_some_decays_are_shared_is_no_grid(name: str) -> None:
    """A learning rate with one decay is no column, and one surface shows s."""
    digits, listed = SEARCHES[name]
    found = []
    for draw in range(6):
        random = np.random.default_rng(draw)
        lrs = 2 ** random.uniform(-10, -4, 60)
        decays = random.choice(listed, 60) if listed else 10 ** random.uniform(-2.5, 0, 60)
        decays[:2] = 0.01
        axes: Grid = lrs.tolist(), decays.tolist()
        settings = zip(*(rounded(axes, digits) if digits else axes), strict=True)
        truth = truth_of(0.0, draw)
        [scape] = landscapes(
            Point(
                lr=lr,
                decay=lr * decay,
                way="weight_decay",
                seed=0,
                tested=float(truth.at(lr, lr * decay)) + 0.002 * random.normal(),
            )
            for lr, decay in dict.fromkeys(settings)
        )
        assert scape.in_torchs_decay
        assert not scape.in_columns
        found.append(coupling(scape).exponent)
    known = [one for one in found if one.value is not None]
    assert len(known) >= 2
    assert sum(one.low <= 0 <= one.high for one in known) >= len(known) - 1


@pytest.mark.parametrize(("s", "beyond"), [(1.0, -3.5), (-1.0, -3.0)])
def test_rounding_moves_a_bound_by_next_to_nothing(s: float, beyond: float) -> None:
    """Whatever is left out of its direction must not be left out of its slope."""
    truth = replace(truth_of(s, 4), centre=(0.0, beyond))
    exact = coupling(swept(TWOS, truth, 4)).exponent
    scape = swept(TWOS, truth, 4, table=rounded(TWOS, 2))
    typed, torchs = (coupling(scape, convention=one).exponent for one in ("paper", "torch"))
    assert exact.bound is not None
    assert typed.bound == exact.bound
    assert typed.value == pytest.approx(exact.value, abs=0.03)
    assert typed.value is not None
    assert torchs.value == pytest.approx(typed.value + 1, abs=1e-9)


def test_a_missing_cell_is_no_step_that_is_too_large() -> None:
    """Both of its values are trained elsewhere, and new ones beside them would tell nothing."""
    scape = swept(THREES, truth_of(0.0, 0), 0, seeds=2)
    holed = replace(
        scape, cells={at: cell for at, cell in scape.cells.items() if at != (0.01, 3e-4)}
    )
    assert all(one.end != "between" for one in recommend(holed).add)


@pytest.mark.parametrize("draw", range(4))
def test_the_best_learning_rate_is_found_among_uneven_ones(draw: int) -> None:
    """The ridge is followed to it, for exponents of budgets."""
    truth = replace(truth_of(0.0, draw), centre=(0.0, 0.0))
    measured_ones = grid_of(swept(FIVES, truth, draw), zero=False)
    every = np.ones(len(measured_ones.lrs), dtype=np.bool_)
    logs = np.log2(measured_ones.decays) + np.zeros((len(every), 1))
    found = vertices(measured_ones, logs, every).at_best_rate()
    assert found is not None
    assert np.log2(found.lrs[0]) == pytest.approx(-7, abs=0.7)
