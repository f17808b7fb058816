"""A grid of lr × torch's weight_decay, the table that most people have, is not a grid in λ."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.landscapes import CLIFF, Truth
from weightdecay.results import (
    Landscape,
    Point,
    coupling,
    landscapes,
    measure_moves,
    measure_transfer,
    recommend,
)
from weightdecay.results.choosing import choose
from weightdecay.results.fit import fit
from weightdecay.results.next_runs import again
from weightdecay.results.scatter import fit_surface
from weightdecay.results.transfer import RULES
from weightdecay.site import advice

DECADES = ((1e-4, 1e-3, 1e-2), (0.01, 0.1, 1.0))
THREES = ((3e-4, 1e-3, 3e-3, 1e-2), (0.01, 0.03, 0.1, 0.3))


def error(lr: float, torchs: float) -> float:
    """Return the true error: the best λ is 0.0008 at every learning rate, so s = 0."""
    x, z = np.log2(lr / 0.00276), np.log2(lr * torchs / 0.000793)
    return float(0.1 * (1 + 0.05 * x**2 + 0.06 * z**2))


def steep(lr: float, torchs: float) -> float:
    """Return such an error that rises three times as far."""
    return 3 * error(lr, torchs) - 0.2


def scape(
    settings: Sequence[tuple[float, float]],
    draw: int,
    *,
    seeds: int = 3,
    true: Callable[[float, float], float] = error,
) -> Landscape:
    """Return the landscape of settings in torch's convention, with noise of 0.2 points."""
    noise = np.random.default_rng(draw)
    [found] = landscapes(
        Point(
            lr=lr,
            decay=lr * torchs,
            way="weight_decay",
            tested=true(lr, torchs) + 0.002 * noise.normal(),
            seed=seed,
        )
        for lr, torchs in settings
        for seed in range(seeds)
    )
    return found


def rectangle(lrs: Sequence[float], torchs: Sequence[float]) -> list[tuple[float, float]]:
    return [(lr, decay) for lr in lrs for decay in torchs]


@pytest.mark.parametrize("draw", range(4))
def test_a_bound_on_s_is_true_where_the_optimum_lies_just_inside_of_an_edge(draw: int) -> None:
    """At lr 0.001 the highest λ, 0.001, has the lowest error, and 0.0008 would have been best."""
    found = coupling(scape(rectangle(*DECADES), draw)).exponent
    assert found.bound == "at least"
    assert found.value is not None
    assert found.value <= 0


@pytest.mark.parametrize("draw", range(4))
@pytest.mark.parametrize("grid", [DECADES, THREES])
def test_no_decay_is_recommended_beyond_those_trained(
    grid: tuple[Sequence[float], Sequence[float]], draw: int
) -> None:
    """λ of one learning rate may be far outside of those that another was trained with."""
    found = recommend(scape(rectangle(*grid), draw))
    torchs = found.decays.torch
    assert torchs is not None
    assert min(grid[1]) <= torchs.low <= torchs.value
    assert torchs.value <= max(grid[1]) * 1.0001


@pytest.mark.parametrize("draw", range(4))
def test_what_is_to_be_added_is_in_torchs_decay_and_beyond_the_grid(draw: int) -> None:
    found = recommend(scape(rectangle(*THREES), draw))
    assert found.landscape.in_torchs_decay
    assert [(one.knob, one.end) for one in found.add] == [("torch", "highest")]
    assert all(value > 0.3 for value in found.add[0].values)
    assert dict(advice.block(found))["add"].startswith("torch's weight_decay = 0.9, 2.7: above")


def test_settings_to_train_again_are_in_torchs_decay_too() -> None:
    grid = rectangle([0.001, 0.002, 0.004, 0.008], [0.05, 0.1, 0.2, 0.4, 0.8])
    landscape = scape(grid, 0)
    surface = fit(landscape)
    assert surface is not None
    found = again(landscape, surface)
    assert found.knob == "torch"
    assert {*found.decays} <= {torchs for _, torchs in grid}
    [line] = advice.additions(replace(recommend(landscape), add=(), repeat=found))
    assert line.split(" and ")[-1] == (
        f"torch's weight_decay from {min(found.decays):g} to {max(found.decays):g}"
    )


def test_a_grid_in_lambda_is_not_taken_for_one_in_torchs_decay() -> None:
    settings = [(lr, decay / lr) for lr, decay in rectangle((1e-3, 2e-3, 4e-3), (1e-4, 2e-4, 4e-4))]
    assert not scape(settings, 0).in_torchs_decay


def test_a_search_in_torchs_decay_is_not_extrapolated() -> None:
    """The optimum's λ was run, but never at a learning rate as low as the best."""
    draw = np.random.default_rng(3)
    places = zip(draw.uniform(-4, -1, 60), draw.uniform(-4, -1, 60), strict=True)
    settings = [(10.0**lr, 10.0**torchs) for lr, torchs in places]
    found = fit_surface(scape(settings, 3, seeds=1))
    assert found.why == (
        "The surface is lowest beyond the highest decay λ/α that was run. Add runs there."
    )


def test_the_best_decay_is_not_called_the_highest_where_it_is_the_middle_one() -> None:
    """After smoothing it is: the errors fall steeply, and rise little at the last step."""
    errors = {0.01: 0.25, 0.1: 0.126, 1.0: 0.129}
    points = [
        Point(lr=lr, decay=lr * torchs, way="weight_decay", tested=value + 1e-4 * seed, seed=seed)
        for lr in DECADES[0]
        for torchs, value in errors.items()
        for seed in range(2)
    ]
    [landscape] = landscapes(points)
    why = coupling(landscape).exponent.why
    assert why.startswith("Errors are low up to the highest decay of the grid")


def unaligned(truth: Truth, seeds: int, random: np.random.Generator | None) -> Landscape:
    """Return a grid of doubled learning rates × tripled weight_decay: no λ occurs twice."""
    effects = np.zeros(seeds) if random is None else random.normal(0, 0.002, seeds)
    points = []
    for lr in 2.0 ** np.arange(-10, -3):
        for torchs in 3.0 ** np.arange(-6, 3):
            true = float(truth.at(lr, lr * torchs))
            for seed in range(seeds):
                chosen = tested = true
                if random is not None:
                    rate = np.clip(true + effects[seed] + random.normal(0, 0.002), 0.001, 0.999)
                    chosen, tested = random.binomial(10_000, rate, 2) / 10_000
                points.append(
                    Point(
                        lr=float(lr),
                        decay=float(lr * torchs),
                        way="weight_decay",
                        seed=seed,
                        tested=float(tested),
                        chosen=float(chosen),
                    )
                )
    [found] = landscapes(points)
    return found


@pytest.mark.parametrize("s", [-0.5, 0.0, 0.5])
def test_a_grid_in_which_no_lambda_occurs_twice_has_a_regret_and_it_is_true(s: float) -> None:
    """Each learning rate has a column of decays, and carried decays lie between these."""
    random = np.random.default_rng(0)
    tied, extra, covered = [], [], []
    for _ in range(12):
        x, z = random.uniform(-0.5, 0.5, 2)
        truth = replace(CLIFF, s=s, centre=(float(x), float(z)))
        landscape = unaligned(truth, 3, random)
        assert landscape.scattered
        found = measure_transfer(landscape)
        columns = choose(unaligned(truth, 1, None)).columns
        costs = np.zeros(len(RULES))
        for tuned, used in found.pairs:
            carried = columns[tuned].decay * (used / tuned) ** -np.array(RULES)
            best = truth.at(used, columns[used].decay)
            costs += (truth.at(used, carried) - best) / len(found.pairs)
        assert found.rule is not None
        tied.append(RULES[int(costs.argmin())] in found.tied)
        extra.append(100 * (costs[RULES.index(found.rule)] - costs.min()))
        for rule, cost in zip(RULES, costs, strict=True):
            if rule not in found.beyond:
                covered.append(found.costs[rule].low <= cost <= found.costs[rule].high)
    assert np.mean(tied) >= 0.8
    # Points of error: steps of 3 are coarse beside a cliff.
    assert np.mean(extra) < 0.3
    # Three standard deviations below 95 %, as if costs of one sweep were one.
    assert np.mean(covered) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(tied))
    assert measure_moves(landscape, 2.0**-7)


def test_a_search_in_torchs_decay_has_no_regret() -> None:
    draw = np.random.default_rng(0)
    places = zip(draw.uniform(-4, -1, 60), draw.uniform(-4, -1, 60), strict=True)
    found = scape([(10.0**lr, 10.0**torchs) for lr, torchs in places], 0)
    assert not found.in_columns
    assert measure_transfer(found).why.startswith("Scattered settings:")


@pytest.mark.parametrize("draw", range(4))
@pytest.mark.parametrize("height", [math.nan, 0.9])
def test_a_cliff_beside_a_carried_decay_does_not_make_it_cheaper(height: float, draw: int) -> None:
    """A parabola up the cliff would dip below the errors at its foot: λ/√α cost −2 points."""
    noise = np.random.default_rng(draw)
    lrs, torchs = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    [found] = landscapes(
        Point(
            lr=lr,
            decay=lr * decay,
            way="weight_decay",
            tested=error(lr, decay) * (1 + 0.003 * noise.normal()) if sound else height,
            seed=seed,
            diverged=not sound and math.isnan(height),
        )
        for lr, decay in rectangle(lrs, torchs)
        for sound in [lr * decay < 0.0029]
        for seed in range(3)
    )
    regret = measure_transfer(found)
    assert regret.least == 0
    assert regret.costs[-0.5].value > 0


@pytest.mark.parametrize("draw", range(6))
def test_a_small_grid_with_most_best_decays_at_an_edge_has_no_s(draw: int) -> None:
    """The columns are shifted against each other, so that a bowl extrapolates, and wrongly."""
    found = scape(rectangle((0.0007, 0.0028, 0.0112), (0.07, 0.28, 1.12)), draw, true=steep)
    inside = [column.inside for column in choose(found).columns.values()]
    assert sum(inside) == 1
    knobs = recommend(found).knobs
    assert knobs.exponent.value is None
    assert knobs.rule is None
