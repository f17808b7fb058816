"""Two knobs that are separate cost nothing to tune apart; two that are not, do."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.landscapes import (
    QUADRATIC,
    Array,
    Truth,
    exact,
    landscape_of,
    measured,
    noisy,
    reseen,
    runs_of,
)
from weightdecay.results import (
    Estimate,
    Landscape,
    interaction_share,
    landscapes,
    regret,
    sensitivity,
)

SEPARATE = replace(QUADRATIC, s=0.0, rates=5, decays=6, level=0.01, curvature=0.01)
DIAGONAL = replace(SEPARATE, s=1.0)


def of(errors: Array, seeds: int = 3) -> Landscape:
    truth = Truth(rates=errors.shape[0], decays=errors.shape[1])
    return landscape_of(truth, exact(errors, seeds))


@given(
    rates=st.lists(st.floats(0, 0.3), min_size=2, max_size=5),
    decays=st.lists(st.floats(0, 0.3), min_size=2, max_size=5),
)
def test_a_separable_landscape_has_no_regret(rates: list[float], decays: list[float]) -> None:
    seen = regret(of(0.1 + np.add.outer(np.array(rates), np.array(decays))))
    assert seen.mean.value == pytest.approx(0, abs=1e-12)
    assert seen.worst.value == pytest.approx(0, abs=1e-12)


def test_a_diagonal_landscape_has_regret() -> None:
    seen = regret(landscape_of(DIAGONAL, exact(DIAGONAL.errors())))
    assert 0.005 < seen.mean.value < seen.worst.value


def test_regret_of_a_landscape_that_is_counted_by_hand() -> None:
    """Starting at decay 0: rate 0, decay 0, error 0.30. At decay 1: rate 1, decay 1, the best.

    At rate 0: decay 0, rate 0, error 0.30; at rate 1: decay 1, rate 1. The best is 0.20.
    """
    seen = regret(of(np.array([[0.30, 0.40], [0.35, 0.20]])))
    assert seen.mean.value == pytest.approx(0.05)
    assert seen.worst.value == pytest.approx(0.10)
    assert seen.first == "lr"
    assert seen.start == 2.0**-12


def test_settings_are_chosen_by_some_seeds_and_judged_by_others() -> None:
    """Each seed's validation errors point at the cell where its own test error is lowest.

    Whoever chose and judged with the same seed would find every excess to be flattering.
    """
    chosen = np.full((2, 1, 2), 0.5)
    tested = np.full((2, 1, 2), 0.5)
    for seed in (0, 1):
        chosen[seed, 0, seed] = 0.1
        tested[seed, 0, seed] = 0.1
    landscape = landscape_of(Truth(rates=2, decays=1), (chosen, tested))
    # The best is chosen by the other seed: the fresh one's error there is 0.5, elsewhere 0.1.
    assert sensitivity(landscape).value == pytest.approx((0.1 + 0.5) / 2 - 0.5)


def test_sensitivity_is_the_mean_excess_over_rates_at_their_best_decay() -> None:
    errors = np.array([[0.9, 0.5], [0.2, 0.3], [0.9, 0.9]])
    assert sensitivity(of(errors)).value == pytest.approx((0.3 + 0 + 0.7) / 3)


@pytest.mark.slow
@given(shift=st.floats(-0.05, 0.3))
def test_a_level_that_all_errors_share_changes_neither_regret_nor_sensitivity(shift: float) -> None:
    errors = DIAGONAL.errors()
    one, other = of(errors), of(errors + shift)
    assert regret(other).mean.value == pytest.approx(regret(one).mean.value)
    assert sensitivity(other).value == pytest.approx(sensitivity(one).value)


def test_interaction_share_is_0_where_effects_add_and_grows_with_the_coupling() -> None:
    shares = [
        interaction_share(landscape_of(truth, exact(truth.errors()))).value
        for truth in (SEPARATE, replace(SEPARATE, s=0.5), DIAGONAL)
    ]
    assert shares[0] == pytest.approx(0, abs=1e-9)
    assert 0.02 < shares[1] < shares[2] < 1


def test_a_pure_interaction_is_the_whole_variance() -> None:
    assert interaction_share(of(np.array([[0.30, 0.31], [0.31, 0.30]]))).value == pytest.approx(1)


@pytest.mark.slow
def test_noise_is_not_taken_for_interaction() -> None:
    """Without the correction, the share of this landscape would be 0.1 and more."""
    truth = replace(SEPARATE, rates=7, decays=7, level=0.004, curvature=0.004)
    random = np.random.default_rng(0)
    shares = [interaction_share(noisy(truth, 3, random)) for _ in range(60)]
    assert np.mean([share.value for share in shares]) < 0.05
    assert np.mean([share.low == 0 for share in shares]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_intervals_cover_the_true_excess_of_what_was_chosen(seeds: int) -> None:
    """Fewer than 90 of 100 would be a missing root or seeds mixed up; 100 of 100, a double one."""
    truth = Truth(s=0.5, rates=6, decays=6)
    errors = truth.errors()
    random = np.random.default_rng(seeds)
    kept = landscape_of(truth, exact(errors, seeds))
    covered: list[list[bool]] = []
    for _ in range(200):
        chosen, tested = measured(errors, seeds, random)
        seen, true = (
            reseen(kept, (chosen, errors_seen)) for errors_seen in (tested, exact(errors, seeds)[0])
        )
        pairs = [
            (regret(seen).mean, regret(true).mean),
            (regret(seen).worst, regret(true).worst),
            (sensitivity(seen), sensitivity(true)),
        ]
        covered.append([one.low <= other.value <= one.high for one, other in pairs])
    assert (np.mean(covered, axis=0) >= 0.90).all()
    assert (np.mean(covered, axis=0) <= 0.99).all()


def test_the_noise_of_a_setting_far_from_the_best_is_in_its_interval() -> None:
    """Nine rates are alike and quiet; at the tenth errors are double, and ten times as noisy."""
    errors, spread = np.full((10, 1), 0.3), np.full((10, 1, 1), 0.002)
    errors[-1], spread[-1] = 0.6, 0.02
    random = np.random.default_rng(0)
    kept = of(errors)
    covered = []
    for _ in range(200):
        chosen, tested = (
            errors[..., None] + spread * random.normal(size=(10, 1, 3)) for _ in range(2)
        )
        seen = sensitivity(reseen(kept, (chosen, tested)))
        covered.append(seen.low <= 0.03 <= seen.high)
    assert np.mean(covered) >= 0.90


@pytest.mark.parametrize("measure", [sensitivity, interaction_share, lambda one: regret(one).mean])
def test_one_seed_estimates_nothing(measure) -> None:  # type: ignore[no-untyped-def]
    seen: Estimate = measure(noisy(SEPARATE, 1, np.random.default_rng(0)))
    assert math.isnan(seen.value)
    assert math.isnan(seen.low)


def test_half_a_sweep_is_measured_as_far_as_it_goes() -> None:
    truth = Truth(rates=3, decays=3)
    runs = runs_of(truth, measured(truth.errors(), 2, np.random.default_rng(0)))
    for count in range(1, len(runs) + 1):
        [landscape] = landscapes(runs[:count])
        for seen in (regret(landscape).mean, sensitivity(landscape), interaction_share(landscape)):
            assert math.isnan(seen.low) or seen.low <= seen.value <= seen.high


def test_what_diverged_is_chosen_last() -> None:
    errors = np.array([[0.1, 0.1], [0.3, 0.2]])
    landscape = of(errors)
    cells = {
        place: replace(cell, diverged=cell.seeds) if place[0] == landscape.lrs[0] else cell
        for place, cell in landscape.cells.items()
    }
    # The rate at which all diverged counts with the error it ended with, and is not the best.
    assert sensitivity(replace(landscape, cells=cells)).value == pytest.approx((0.1 - 0.2) / 2)


def test_a_seed_that_diverged_has_no_part_in_what_is_chosen_for_it() -> None:
    """Seed 0 diverged at the first rate, which the others find the best: its error there counts."""
    errors = np.repeat(np.array([[[0.1]], [[0.3]]]), 3, axis=2)
    tested = errors.copy()
    tested[0, 0, 0] = 0.9
    landscape = landscape_of(Truth(rates=2, decays=1), (errors, tested))
    first = landscape.lrs[0], landscape.decays[0]
    cells = {**landscape.cells, first: replace(landscape.cells[first], diverged=(0,))}
    # Seed 0's excess is over the first rate, the others' over the second: seed 0 chose for them.
    excess = [(0.9 + 0.3) / 2 - 0.9, (0.1 + 0.3) / 2 - 0.3, (0.1 + 0.3) / 2 - 0.3]
    assert sensitivity(replace(landscape, cells=cells)).value == pytest.approx(np.mean(excess))


def test_a_seed_without_errors_near_the_best_has_no_part_in_the_interaction() -> None:
    """As where nearly every run diverged: nothing is averaged over no settings."""
    chosen, tested = exact(SEPARATE.errors())
    tested = tested.copy()
    tested[:, :, 0] = np.nan
    landscape = reseen(landscape_of(SEPARATE, exact(SEPARATE.errors())), (chosen, tested))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert interaction_share(landscape).value == pytest.approx(0)
