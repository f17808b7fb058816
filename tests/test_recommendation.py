"""What is recommended is better than the luckiest cell, and says what the runs do not know."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes import CLIFF, QUADRATIC, Truth, exact, landscape_of, measured, noisy, reseen
from tests.scattered import DECAY, RATE, search
from weightdecay.results import (
    Estimate,
    Exponent,
    Landscape,
    Point,
    Recommendation,
    TransferRegret,
    fit_surface,
    landscapes,
    recommend,
)
from weightdecay.results.carrying import Knobs
from weightdecay.results.estimate import of_error
from weightdecay.results.exponent import FLAT, unknown
from weightdecay.results.fit import fit
from weightdecay.results.lowest import lowest
from weightdecay.results.transfer import RULES
from weightdecay.site import advice
from weightdecay.site.rules import sentence
from weightdecay.sweeps import Store

pytestmark = pytest.mark.cpu("numbers of finished runs do not depend on the device")
COMMITTED = Path(__file__).parents[1] / "results" / "cifar10-small"
MNIST = COMMITTED.parent / "mnist1d-medium" / "records.parquet"
FIGURE_2 = {"schedule": "cosine", "epochs": 48, "batch": 64, "data": 2000}
NOISY: dict[str, Any] = {"spread": 0.02, "examples": 500}
#: A basin of which random searches of any size see something.
CLIFFLESS = Truth(s=0.0, curvature=0.01, level=0.01)
CLEAN: dict[str, Any] = {"spread": 1e-6, "examples": 10**8}


def simulated(
    truth: Truth, *, simulations: int, seeds: int = 1, **noise: Any
) -> Iterator[tuple[Truth, Landscape]]:
    """Yield landscapes of one grid, the optimum somewhere about its middle."""
    random = np.random.default_rng(0)
    kept = landscape_of(truth, exact(truth.errors(), seeds))
    for _ in range(simulations):
        x, z = random.uniform(-0.5, 0.5, 2)
        moved = replace(truth, centre=(truth.centre[0] + float(x), truth.centre[1] + float(z)))
        yield moved, reseen(kept, measured(moved.errors(), seeds, random, **noise))


def costs(truth: Truth, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what the best setting and the lowest cell truly cost, in points above the best."""
    found, of_cells = [], []
    for moved, landscape in simulated(truth, **options):
        one = lowest(landscape)
        assert one is not None
        x, z = one.best
        found.append(100 * float(moved.at(2.0**x, 2.0**z) - moved.lowest))
        best = landscape.best
        of_cells.append(100 * float(moved.at(best.lr, best.decay) - moved.lowest))
    return np.array(found), np.array(of_cells)


@pytest.mark.slow
@pytest.mark.parametrize("s", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("seeds", [1, 3])
def test_on_noisy_landscapes_the_fitted_setting_is_better_than_the_lowest_cell(
    s: float, seeds: int
) -> None:
    truth = Truth(s=s, decays=7 if s < 2 else 11)
    found, of_cells = costs(truth, simulations=60, seeds=seeds, **NOISY)
    assert found.mean() < 0.75 * of_cells.mean()


@pytest.mark.slow
@pytest.mark.parametrize("s", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("factor", [2.0, 4.0])
def test_on_clean_landscapes_it_is_never_much_worse(s: float, factor: float) -> None:
    truth = Truth(s=s, decays=11, factor=factor)
    found, of_cells = costs(truth, simulations=30, **CLEAN)
    assert (found - of_cells).max() < 0.2
    assert found.mean() < of_cells.mean()


@pytest.mark.parametrize("cliff", [CLIFF, replace(CLIFF, drift=0.7), replace(CLIFF, drift=-0.7)])
def test_at_the_foot_of_a_cliff_the_setting_is_nearly_the_best(cliff: Truth) -> None:
    """The lowest point of a bowl fitted over the cliff costs 0.27 points of 12 %."""
    found, of_cells = costs(cliff, simulations=15, seeds=3, spread=0.004, examples=10_000)
    assert found.mean() < 0.15
    assert found.mean() < of_cells.mean()


@pytest.mark.skipif(not MNIST.is_file(), reason="a source distribution has no results")
def test_on_mnist1d_the_setting_is_as_good_as_the_one_that_fresh_seeds_judged() -> None:
    """Errors rise by 25 to 40 points within two doublings above the best decay."""
    pytest.importorskip("pyarrow")
    judged = {"adamw": 0.3767, "sgd": 0.3853, "sgdw": 0.3868, "adam": 0.3846}
    found = {
        scape.config.algorithm: recommend(scape)
        for scape in landscapes(MNIST)
        if FIGURE_2.items() <= scape.labels.items() and scape.config.algorithm in judged
        if scape.way != "normalized_decay"
    }
    assert found.keys() == judged.keys()
    for name, fresh in judged.items():
        # Fitted bowls were lowest 1.3 to 2.1 points above that.
        assert found[name].error.value < fresh + 0.005, name


@pytest.mark.parametrize("diverged", [False, True])
def test_how_badly_the_worst_runs_end_moves_nothing(diverged: bool) -> None:
    """From 2.5 times the lowest error on, a cliff counts as far, and not as farther."""
    truth = Truth(s=0.0, centre=(0.0, 1.5))
    landscape = landscape_of(truth, exact(truth.errors()))

    def ended(error: float) -> Landscape:
        cells = {
            place: replace(
                cell, chosen=(error,) * 3, tested=(error,) * 3, diverged=cell.seeds * diverged
            )
            if place[1] == max(landscape.decays)
            else cell
            for place, cell in landscape.cells.items()
        }
        return replace(landscape, cells=cells)

    # What a run that diverged had come to before says nothing.
    near, far = recommend(ended(0.31 if diverged else 0.8)), recommend(ended(0.95))
    assert far.decay.value == pytest.approx(near.decay.value, rel=0.02)
    assert far.decay.high == pytest.approx(near.decay.high, rel=0.02)
    assert far.decay.high < max(landscape.decays)


@pytest.mark.parametrize("s", [0.0, 1.0])
def test_half_steps_and_holes_are_fitted_as_they_come(s: float) -> None:
    truth = replace(QUADRATIC, s=s, factor=2**0.5, rates=9, decays=17)
    whole = landscape_of(truth, exact(truth.errors()))
    random = np.random.default_rng(0)
    kept = {place: cell for place, cell in whole.cells.items() if random.random() < 0.5}
    found = recommend(replace(whole, cells=kept))
    assert found.lr.value == pytest.approx(2**-7, rel=0.1)
    assert found.decay.value == pytest.approx(2**-11, rel=0.1)


def test_a_ragged_grid_has_a_recommendation_between_its_rows() -> None:
    """With two cells in five, no cell may be within half a step of the lowest point."""
    for seed in range(40, 100):
        random = np.random.default_rng(seed)
        points = [
            Point(
                lr=2.0**a, decay=2.0**b, way="weight_decay", tested=error + random.normal(0, 3e-3)
            )
            for a in range(-5, 0)
            for b in range(-9, -4)
            for error in (0.2 + 0.01 * (a + 3) ** 2 + 0.01 * (b + 7) ** 2,)
            if random.random() < 0.4
        ]
        [landscape] = landscapes(points)
        found = recommend(landscape)
        assert min(landscape.lrs) <= found.lr.value <= max(landscape.lrs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "noise"),
    [
        (Truth(s=0.0), {}),
        (Truth(s=1.0), {}),
        (Truth(s=2.0, decays=11), {}),
        (Truth(s=0.5, rates=9, decays=9), {"spread": 0.03, "examples": 300}),
    ],
)
def test_the_surfaces_interval_of_s_covers_the_truth_with_one_seed(
    truth: Truth, noise: dict[str, Any]
) -> None:
    covered = []
    for _, landscape in simulated(truth, simulations=120, **noise):
        fitted = fit(landscape)
        assert fitted is not None
        seen = fitted.exponent()
        if seen.value is not None:
            covered.append(seen.low <= truth.s <= seen.high)
    # Three standard deviations below the 95 % that an interval promises.
    assert np.mean(covered) > 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(covered))


def test_within_its_ranges_the_error_stays_near_the_lowest() -> None:
    truth = Truth(s=0.5)
    found = recommend(landscape_of(truth, exact(truth.errors())))
    lowest = float(truth.at(found.lr.value, found.decay.value))
    for lr in (found.lr.low, found.lr.high):
        assert 1.005 * lowest < float(truth.at(lr, found.decay.value)) < 1.04 * lowest
    for decay in (found.decay.low, found.decay.high):
        assert 1.005 * lowest < float(truth.at(found.lr.value, decay)) < 1.04 * lowest


def test_one_seed_has_a_recommendation_and_no_interval_of_the_error() -> None:
    truth = Truth(s=0.0)
    found = recommend(noisy(truth, 1, np.random.default_rng(0)))
    assert float(truth.at(found.lr.value, found.decay.value)) < truth.lowest + 0.01
    assert found.error.value == pytest.approx(0.3, abs=0.02)
    assert math.isnan(found.error.low)
    assert found.tied is None
    assert found.knobs.regret.costs
    assert all(math.isnan(cost.low) for cost in found.knobs.regret.costs.values())
    assert found.knobs.fitted


def test_a_decoupled_decay_is_stated_in_every_convention() -> None:
    truth = Truth(s=0.0)
    found = recommend(landscape_of(truth, exact(truth.errors())))
    decays, lr = found.decays, found.lr.value
    assert decays.weight_decay == found.decay
    assert decays.normalized is not None
    assert decays.torch is not None
    assert decays.l2 is None
    assert decays.normalized.value == pytest.approx(found.decay.value * math.sqrt(400))
    assert decays.torch.value == pytest.approx(found.decay.value / lr)
    assert decays.torch.high == pytest.approx(found.decay.high / lr)


def test_a_normalized_decay_is_divided_by_the_root_of_the_updates() -> None:
    truth = Truth(s=0.0)
    found = recommend(landscape_of(truth, exact(truth.errors()), way="normalized_decay"))
    assert found.decays.normalized == found.decay
    assert found.decays.weight_decay is not None
    assert found.decays.weight_decay.value == pytest.approx(found.decay.value / 20)


def test_l2_has_no_other_convention_and_is_called_so() -> None:
    truth = Truth(s=1.0)
    found = recommend(landscape_of(truth, exact(truth.errors()), way="l2"))
    assert found.decays.l2 == found.decay
    assert (found.decays.weight_decay, found.decays.torch) == (None, None)
    said = dict(advice.block(found))
    assert "L2 factor" in said["use"]
    assert "torch" not in said["knobs"]


@pytest.mark.parametrize(
    ("centre", "knob", "end", "values"),
    [
        ((-3.4, 0.0), "lr", "lowest", (2**-11, 2**-12)),
        ((3.4, 0.0), "lr", "highest", (2**-3, 2**-2)),
        ((0.0, -3.4), "decay", "lowest", (2**-15, 2**-16)),
        ((0.0, 3.4), "decay", "highest", (2**-7, 2**-6)),
    ],
)
def test_at_an_edge_two_more_steps_are_to_be_added(
    centre: tuple[float, float], knob: str, end: str, values: tuple[float, ...]
) -> None:
    truth = Truth(s=0.0, centre=centre)
    found = recommend(landscape_of(truth, exact(truth.errors())))
    [one] = found.add
    assert (one.knob, one.end) == (knob, end)
    assert one.values == pytest.approx(values)
    named = "lr" if knob == "lr" else "weight_decay"
    told = dict(advice.block(found))["add"]
    assert told.startswith(f"{named} = 2^-")
    assert told.endswith(f"the {end} of the grid, where the best may be")


def test_inside_the_grid_nothing_is_to_be_added() -> None:
    truth = Truth(s=0.5)
    found = recommend(landscape_of(truth, exact(truth.errors())))
    assert (found.add, found.repeat) == ((), None)
    assert "add" not in dict(advice.block(found))


def test_two_learning_rates_are_too_few_and_more_are_named() -> None:
    truth = Truth(s=0.0, rates=2)
    found = recommend(landscape_of(truth, exact(truth.errors())))
    assert {(one.knob, one.end) for one in found.add} == {("lr", "lowest"), ("lr", "highest")}
    near = {one.end for one in found.add if one.edge}  # the best is at one of the two
    assert len(near) == 1
    for one, told in zip(found.add, advice.additions(found), strict=True):
        why = (
            "where the best may be"
            if one.end in near
            else "at the best decay, where fewer than three learning rates are"
        )
        assert why in told
    assert found.knobs.rule is None
    assert sentence(found).startswith("These runs do not decide")


def test_where_noise_leaves_the_rule_open_two_more_seeds_are_to_be_added() -> None:
    truth = Truth(s=0.25)
    landscape = noisy(truth, 2, np.random.default_rng(0), spread=0.03)
    found = recommend(landscape)
    assert found.knobs.rule is None
    assert found.repeat is not None
    assert found.repeat.seeds == (2, 3)
    assert set(found.repeat.lrs) <= set(landscape.lrs)
    assert "seeds 2 and 3 for lr from 2^-" in dict(advice.block(found))["add"]
    alone = replace(found, repeat=replace(found.repeat, lrs=(0.002,)))
    assert "seeds 2 and 3 for lr 0.002 and weight_decay from " in dict(advice.block(alone))["add"]


@pytest.mark.parametrize("seeds", [1, 3])
def test_without_a_setting_that_ended_there_is_no_recommendation(seeds: int) -> None:
    truth = Truth()
    landscape = landscape_of(truth, exact(truth.errors()))
    lost = {at: replace(cell, diverged=cell.seeds[:seeds]) for at, cell in landscape.cells.items()}
    needed = "needs a setting with a decay above 0 of which no run diverged, got none"
    with pytest.raises(ValueError, match=needed):
        recommend(replace(landscape, cells=lost))


@pytest.mark.parametrize(
    ("exponent", "rule", "possible"),
    [
        (Exponent(0.03, -0.1, 0.2), 0.0, (0.0,)),
        (Exponent(-0.9, -1.2, -0.6), -1.0, (-1.0,)),
        (Exponent(1.25, 1.04, 1.36), 1.0, ()),
        (Exponent(0.2, -0.2, 0.7), None, (0.0, 0.5)),
        (Exponent(0.7, 0.7, math.inf, "at least"), None, (1.0, 2.0)),
        (unknown("The ridge has a knee.", withheld=True), None, RULES),
    ],
)
def test_without_costs_the_rule_is_the_only_one_that_s_leaves_or_else_the_nearest(
    exponent: Exponent, rule: float | None, possible: tuple[float, ...]
) -> None:
    found = Knobs(exponent, fitted=False)
    assert (found.rule, found.possible) == (rule, possible)
    assert {*found.possible, *found.excluded} == set(RULES)


@pytest.mark.parametrize(
    ("exponent", "way", "words"),
    [
        (Exponent(-1.0, -1.1, -0.9), "weight_decay", "which keeps λ/α. That leaves torch's weight"),
        (Exponent(-0.5, -0.6, -0.4), "weight_decay", "by 4, multiply λ by 2, which keeps λ/√α."),
        (Exponent(0.0, -0.1, 0.1), "weight_decay", "leave λ as it is. That divides torch's weigh"),
        (Exponent(0.5, 0.4, 0.6), "weight_decay", "by 4, divide λ by 2, which keeps λ·√α."),
        (Exponent(1.0, 0.9, 1.1), "l2", "multiply α by 4, divide λ by 4, which keeps λ·α. The"),
        (Exponent(2.0, 1.9, 2.1), "l2", "multiply α by 4, divide λ by 16, which keeps λ·α². The"),
        (Exponent(1.25, 1.04, 1.36), "l2", "the interval says to divide λ by 4.2 to 6.6."),
        (Exponent(-0.8, -0.9, -0.6), "l2", "the interval says to multiply λ by 2.3 to 3.5."),
        (Exponent(1.0, 0.9, 1.1), "l2", "excludes keeping λ/α and keeping λ."),
        (Exponent(0.2, -0.2, 0.7), "l2", "do not decide between keeping λ and keeping λ·√α."),
        (Exponent(0.2, -0.2, 0.7), "l2", "They exclude keeping λ/α and keeping λ·α."),
        (Exponent(1.1, 1.1, math.inf, "at least"), "l2", "leaves keeping λ·α², or beyond it."),
        (Exponent(2.1, 2.1, math.inf, "at least"), "l2", "leaves none of the simple rules."),
        (unknown("All is flat."), "l2", "These runs do not decide what to do with λ when α chan"),
    ],
)
def test_without_costs_the_sentence_says_what_s_says(
    exponent: Exponent, way: str, words: str
) -> None:
    truth = Truth(s=0.0)
    found = recommend(landscape_of(truth, exact(truth.errors()), way=way))
    told = replace(found.knobs, exponent=exponent, regret=TransferRegret())
    assert words in sentence(replace(found, knobs=told))


def test_s_is_unknown_for_the_reason_that_the_grid_has() -> None:
    """The best λ may lie beyond the grid, and the surface only sees that it does not rise there."""
    truth = Truth(s=0.5, centre=(0.0, 2.0))
    found = recommend(noisy(truth, 3, np.random.default_rng(0)))
    assert found.knobs.by_regret
    told = dict(advice.block(found))
    assert told["s"].startswith("s unknown: The best decay is the highest of the grid: what is")
    assert "flat" not in " ".join(told.values())


@pytest.mark.parametrize("by_regret", [True, False])
def test_the_reason_why_s_is_unknown_is_said_once(by_regret: bool) -> None:
    truth = Truth(s=0.0)
    found = recommend(landscape_of(truth, exact(truth.errors())))
    assert found.knobs.by_regret
    regret = found.knobs.regret if by_regret else TransferRegret()
    knobs = Knobs(unknown("The ridge has a knee."), fitted=False, regret=regret)
    lines = dict(advice.block(replace(found, knobs=knobs)))
    assert lines["s"] == ("s unknown: The ridge has a knee" if by_regret else "s unknown")
    assert " ".join(lines.values()).count("The ridge has a knee") == 1


def test_costs_with_intervals_are_not_called_estimates_where_s_is_only_bounded() -> None:
    """The second stage does not train the rule that a bound on s leaves."""
    costs = {s: Estimate(0.03 - 0.01 * s, 0.01, 0.05) for s in RULES if s < 2}
    regret = TransferRegret(costs, tied=(1.0,), seeds=4, fresh=True)
    knobs = Knobs(Exponent(1.5, 1.5, math.inf, "at least"), fitted=False, regret=regret)
    truth = Truth(s=0.0)
    found = replace(recommend(landscape_of(truth, exact(truth.errors()))), knobs=knobs)
    assert sentence(found).endswith("Of the rules tried, keeping λ·α costs least.")


def test_a_cost_that_may_be_nothing_has_its_interval_and_a_small_one_its_digits() -> None:
    costs = {-1.0: Estimate(0.033, -0.013, 0.08), 0.0: Estimate(0.0, 0.0, 0.0)}
    costs[1.0] = Estimate(0.0003, 0.0001, 0.0005)
    regret = TransferRegret(costs, tied=(0.0,), seeds=4)
    knobs = Knobs(Exponent(0.0, -0.1, 0.1), fitted=False, regret=regret)
    truth = Truth(s=0.0)
    found = replace(recommend(landscape_of(truth, exact(truth.errors()))), knobs=knobs)
    assert sentence(found).endswith(
        "keeping λ/α would have cost 3.3 points (uncertain: [−1.3, 8.0]) and keeping λ·α 0.03 "
        "points."
    )


def test_an_interval_of_an_error_has_no_end_below_0_or_above_1() -> None:
    """Two seeds that are far apart leave one degree of freedom for the noise that they share."""

    def told(of: str) -> Estimate:
        [landscape] = landscapes(
            Point(lr=lr, decay=decay, way="l2", of=of, seed=seed, tested=error + 0.05 * seed)
            for lr in (0.1, 0.2, 0.4)
            for decay, error in ((0.01, 0.13), (0.02, 0.12), (0.04, 0.13))
            for seed in (0, 1)
        )
        return recommend(landscape).error

    error, loss = told("error"), told("loss")
    assert error.value == loss.value
    assert 0 < error.low < error.value < error.high < 1
    # A loss may be negative, and its interval is even.
    assert loss.low < 0
    assert loss.value - loss.low == pytest.approx(loss.high - loss.value)


def test_of_a_narrow_interval_only_the_last_digits_depend_on_the_scale() -> None:
    found = of_error(Estimate(0.12, 0.119, 0.121))
    assert (found.low, found.high) == pytest.approx((0.119, 0.121), abs=1e-5)
    assert of_error(Estimate(0.0, -0.1, 0.1)) == Estimate(0.0, 0.0, 0.1)
    assert math.isnan(of_error(Estimate(0.12, math.nan, math.nan)).low)


def test_a_search_of_small_errors_has_an_interval_above_0() -> None:
    small = replace(CLIFFLESS, lowest=0.002)
    for seed in range(5):
        random = np.random.default_rng(seed)
        error = fit_surface(search(small, random, noise=0.01, count=40)).error
        assert 0 <= error.low <= error.value <= error.high <= 1


@pytest.mark.skipif(not COMMITTED.is_dir(), reason="a source distribution has no results")
def test_cifar_10s_four_methods_are_told_what_fresh_seeds_have_found() -> None:
    """AdamW's and SGDW's λ stays, SGD's λ·α does, and Adam's λ·α²: docs/reproduction.md says so."""
    found = {
        scape.config.algorithm: recommend(scape)
        for scape in landscapes(Store(COMMITTED / "figure-2").runs())
    }
    assert {name: one.knobs.rule for name, one in found.items()} == {
        "adamw": 0.0,
        "sgdw": 0.0,
        "sgd": 1.0,
        "adam": 2.0,
    }
    assert sentence(found["adamw"]).startswith("If you multiply α by 4, leave λ as it is.")
    assert "By an estimate without an interval, keeping λ/α would have cost 3.3 points" in sentence(
        found["adamw"]
    )
    assert {-1.0, -0.5, 0.5, 1.0, 2.0} <= {*found["adamw"].knobs.excluded}


@pytest.mark.parametrize(("s", "factor"), [(-0.5, 2), (0.0, 4), (0.5, 8), (1.0, 16)])
def test_each_rule_says_what_becomes_of_torchs_number(s: float, factor: int) -> None:
    """torch's weight_decay is λ/α: if α is multiplied by 4, so many times less is as before."""
    steep = Truth(s=s, decays=15, curvature=0.05, plateau=0.5)
    found = recommend(noisy(steep, 3, np.random.default_rng(0), spread=0.001))
    assert found.knobs.rule == s
    assert f"That divides torch's weight_decay, λ/α, by {factor}." in sentence(found)


@pytest.mark.parametrize(("knee", "compromise"), [(1.2, True), (0.0, False)])
def test_beside_a_knee_the_sentence_says_which_rule_is_for_which_direction(
    knee: float, compromise: bool
) -> None:
    """The best λ grows with α up to the best one, and falls beyond it."""
    bent = Truth(s=-0.6, knee=knee, decays=15, curvature=0.05, plateau=0.5)
    found = recommend(noisy(bent, 3, np.random.default_rng(0), spread=0.001))
    assert found.knobs.bent == compromise
    told = sentence(found)
    assert told.startswith("The ridge has a knee. From the best α, keeping ") == compromise
    if compromise:
        raised, lowered = told.partition("From the best α, ")[2].split(" if α was raised, and ")
        assert raised.startswith("keeping λ·√α cost ")
        assert lowered.startswith("keeping λ/√α cost ")
        assert " One rule for both directions: If you multiply α by 4, " in lowered


def test_pure_noise_has_no_rule() -> None:
    flat = Truth(curvature=0.0, level=0.0, lowest=0.3)
    found = recommend(noisy(flat, 3, np.random.default_rng(1)))
    assert found.differ is False
    assert sentence(found).endswith("so no rule for λ is better.")


def test_a_search_beside_a_cliff_is_not_led_away_from_it() -> None:
    """A cubic's lowest point costs 0.28 points of 12 % on average, or is nowhere."""
    random = np.random.default_rng(0)
    costs = []
    for _ in range(12):
        found = recommend(search(CLIFF, random, noise=0.004, count=40, reach=3.0))
        off = np.log2([found.lr.value, found.decay.value]) - (RATE, DECAY)
        costs.append(100 * float(CLIFF.errors_at(*off) - CLIFF.lowest))
        assert not found.best_run
    assert np.mean(costs) < 0.22


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 30, 60])
def test_of_a_random_search_the_surface_is_recommended_and_beats_the_best_run(count: int) -> None:
    random = np.random.default_rng(count)
    found: list[float] = []
    lowest: list[float] = []
    for _ in range(20):
        scape = search(CLIFFLESS, random, noise=0.004, count=count)
        advised, surface = recommend(scape), fit_surface(scape)
        assert advised.lr.low <= advised.lr.value <= advised.lr.high
        assert not advised.add
        assert min(scape.lrs) <= advised.lr.value <= max(scape.lrs)
        if math.isfinite(surface.lr.value):
            assert (advised.lr.value, advised.decay.value) == (
                surface.lr.value,
                surface.decay.value,
            )
            assert advised.error == surface.error
        for at, costs in (
            ((advised.lr.value, advised.decay.value), found),
            (_place(scape), lowest),
        ):
            off = np.log2(at) - (RATE, DECAY)
            costs.append(float(CLIFFLESS.errors_at(*off)) - CLIFFLESS.lowest)
    assert np.mean(found) < np.mean(lowest)


def test_of_too_few_scattered_runs_the_best_is_recommended_without_a_range() -> None:
    scape = search(CLIFFLESS, np.random.default_rng(0), noise=0.004, count=7)
    advised = recommend(scape)
    assert (advised.lr.value, advised.decay.value) == _place(scape)
    assert advised.lr.low == advised.lr.high == advised.lr.value
    (_, said), *_ = advice.block(advised)
    assert said.endswith("the best run, as no surface could be fitted")
    assert "of the 18 that a surface needs" in sentence(advised)


def _true_error(place: tuple[float, float]) -> float:
    return float(CLIFFLESS.errors_at(*(np.log2(place) - (RATE, DECAY))))


def _place(scape: Landscape) -> tuple[float, float]:
    return scape.best.lr, scape.best.decay


def told_by(points: list[Point]) -> tuple[Recommendation, dict[str, str]]:
    [landscape] = landscapes(points)
    found = recommend(landscape)
    return found, {label: text for label, text in advice.block(found) if label}


def test_of_a_few_runs_of_a_grid_the_best_is_named_and_what_to_add_about_it() -> None:
    errors = {(0.1, 0.01): 0.2, (0.2, 0.01): 0.21, (0.1, 0.02): 0.22}
    found, said = told_by(
        [Point(lr=lr, decay=decay, way="l2", tested=error) for (lr, decay), error in errors.items()]
    )
    assert found.best_run
    assert (found.lr.low, found.lr.value, found.lr.high) == (0.1, 0.1, 0.1)
    assert found.error.value == 0.2
    assert said["use"].endswith(": the best run, as no surface could be fitted")
    assert "no interval: it needs 9 settings that did not diverge, and there are 3" in said["error"]
    assert [(one.knob, one.end, one.values) for one in found.add] == [
        ("lr", "lowest", (0.05, 0.025)),
        ("decay", "lowest", (0.005, 0.0025)),
    ]


@pytest.mark.parametrize("seeds", [1, 3])
def test_of_pure_noise_it_is_said_that_settings_do_not_differ(seeds: int) -> None:
    alike = 0
    for simulation in range(10):
        random = np.random.default_rng(simulation)
        found, said = told_by(
            [
                Point(lr=2.0**a, decay=2.0**b, way="l2", seed=seed, tested=random.normal(0.2, 0.01))
                for a in range(-5, 0)
                for b in range(-9, -4)
                for seed in range(seeds)
            ]
        )
        alike += found.differ is False
        if found.differ is False:
            assert said["ties"].startswith("the settings do not differ by more than noise")
            assert found.lr.low == found.lr.high
            assert not found.add
            # The lowest of 25 runs is about 0.18.
            assert found.error.value == pytest.approx(0.2, abs=0.01)
    assert alike >= 8


@pytest.mark.parametrize("error", [0.0, 0.3, 0.9, 1.0])
def test_runs_that_all_ended_with_the_same_error_have_advice_without_s(error: float) -> None:
    truth = replace(QUADRATIC, rates=5, decays=5)
    found = recommend(landscape_of(truth, exact(np.full((5, 5), error))))
    assert found.error.value == pytest.approx(error)
    assert found.differ is False
    assert found.knobs.exponent.value is None
    assert found.knobs.exponent.why == FLAT


def test_settings_of_a_basin_are_said_to_differ() -> None:
    for seeds in (1, 3):
        found = recommend(noisy(Truth(s=0.5), seeds, np.random.default_rng(0)))
        assert found.differ
        assert "do not differ" not in dict(advice.block(found)).get("ties", "")


def test_a_recommendation_is_shown_in_one_line() -> None:
    landscape = landscape_of(QUADRATIC, exact(QUADRATIC.errors()))
    advice = recommend(landscape)
    setting = f"lr {advice.lr.value:.4g}, {landscape.way} {advice.decay.value:.4g}"
    fitted = f"expected error {advice.error.value:.4g}"
    assert repr(advice) == f"<Recommendation {setting}, {fitted}, for {landscape!r}>"


@pytest.mark.parametrize("cut", [-6.9, -6.5, -6.1])
def test_nothing_is_recommended_between_a_setting_and_one_that_diverged(cut: float) -> None:
    """The lowest decay survives high learning rates: a hull of what did spans those that did not.

    Errors fall towards the rate at which training fails, so the field is lowest beyond it.
    """
    noise = np.random.default_rng(0)
    [found] = landscapes(
        Point(
            lr=2.0**x,
            decay=2.0**z,
            way="weight_decay",
            tested=0.1 + 0.005 * ((x + 5.5) ** 2 + (z + 8.5) ** 2) + 0.001 * noise.normal(),
            seed=seed,
            diverged=x > cut and z > -14,
        )
        for x in range(-11, -3)
        for z in range(-14, -6)
        for seed in range(3)
    )
    best = recommend(found)
    assert math.log2(best.lr.high) == pytest.approx(-7)


@pytest.mark.parametrize("level", [0.1, 1.0, 0.0])
@pytest.mark.parametrize("seeds", [1, 3])
def test_of_equal_settings_a_trained_one_is_recommended(level: float, seeds: int) -> None:
    """Rounding made one between them look better."""
    random = np.random.default_rng(0)
    grid = [(x, z) for x in range(-11, -6) for z in range(-14, -9)]
    scattered = random.uniform((-12, -15), (-4, -7), (40, 2)).tolist()
    for settings in (grid, scattered):
        [found] = landscapes(
            Point(lr=2.0**x, decay=2.0**z, way="weight_decay", tested=level, seed=seed)
            for x, z in settings
            for seed in range(seeds)
        )
        best = recommend(found)
        assert best.error.value == pytest.approx(level)
        apart = np.log2([best.lr.value, best.decay.value]) - np.array(settings)
        assert np.abs(apart).max(1).min() < 1e-9


def test_no_error_below_0_is_expected() -> None:
    """Where errors reach 0, a smooth surface goes on below it."""
    [found] = landscapes(
        Point(
            lr=2.0**x,
            decay=2.0**z,
            way="weight_decay",
            tested=max(0.0, 0.005 * ((x + 8) ** 2 + (z + 11) ** 2) - 0.02),
        )
        for x in range(-11, -6)
        for z in range(-14, -9)
    )
    assert recommend(found).error.value >= 0


@pytest.mark.parametrize("digits", [3, 4, 5, 7, 10, 13, 17])
def test_a_search_at_one_torch_decay_has_a_recommendation(digits: int) -> None:
    """λ = 0.1·lr, rounded when it was written, lies almost on a line."""
    noise = np.random.default_rng(0)
    [found] = landscapes(
        Point(
            lr=lr,
            decay=float(f"{lr * 0.1:.{digits}g}"),
            way="weight_decay",
            tested=0.1 + 0.005 * (math.log2(lr) + 8) ** 2 + 0.001 * noise.normal(),
        )
        for lr in np.geomspace(1e-4, 0.1, 13).tolist()
    )
    assert abs(math.log2(recommend(found).lr.value) + 8) < 1


@pytest.mark.parametrize("level", [0.0, -0.1, -0.15, -3.0])
def test_a_cliff_is_left_out_if_errors_are_0_or_below(level: float) -> None:
    """The lowest one cannot be multiplied there: all were used, and the cliff led far away."""
    noise = np.random.default_rng(0)
    [found] = landscapes(
        Point(
            lr=2.0**x,
            decay=2.0**z,
            way="weight_decay",
            tested=(100 * (1 + noise.uniform()) if z > -11 else 0.1 + rise) + level,
            seed=seed,
            of="loss",
        )
        for x in range(-11, -4)
        for z in range(-14, -7)
        for seed in range(2)
        for rise in [0.005 * ((x + 8) ** 2 + (z + 11) ** 2) + 0.001 * noise.normal()]
    )
    best = recommend(found)
    assert math.log2(best.lr.value) == pytest.approx(-8, abs=0.3)
    assert math.log2(best.decay.value) == pytest.approx(-11, abs=0.3)
    assert best.error.value == pytest.approx(0.1 + level, abs=0.01)
