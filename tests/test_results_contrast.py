"""A gain here is held against a gain there seed by seed; each seed judges what others chose."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.landscapes import Array, Truth, exact, landscape_of, measured, reseen
from weightdecay.results import (
    Estimate,
    Landscape,
    chosen_by_others,
    contrast,
    difference,
    equal_loss,
)

TRUTHS = tuple(
    Truth(s=s, rates=5, decays=5, lowest=lowest)
    for s, lowest in ((0.0, 0.26), (0.5, 0.30), (0.0, 0.29), (0.5, 0.30))
)
GAIN = (0.26 - 0.30) - (0.29 - 0.30)


def pairs(four: list[Landscape]) -> Estimate:
    return contrast((four[0], four[1]), (four[2], four[3]))


def four_of(splits: list[tuple[Array, Array]]) -> list[Landscape]:
    return [landscape_of(truth, split) for truth, split in zip(TRUTHS, splits, strict=True)]


def numbered(landscape: Landscape, first: int) -> Landscape:
    """Return the landscape as that of other seeds."""
    cells = {
        place: replace(cell, seeds=tuple(seed + first for seed in cell.seeds))
        for place, cell in landscape.cells.items()
    }
    return replace(landscape, cells=cells)


def diverged(landscape: Landscape, rate: int, *seeds: int) -> Landscape:
    """Return the landscape with seeds that diverged at a rate."""
    cells = {
        place: replace(cell, diverged=seeds) if cell.lr == landscape.lrs[rate] else cell
        for place, cell in landscape.cells.items()
    }
    return replace(landscape, cells=cells)


def test_a_contrast_is_the_first_difference_less_the_second() -> None:
    four = four_of([exact(truth.errors()) for truth in TRUTHS])
    assert pairs(four).value == pytest.approx(GAIN)
    assert pairs([*four[2:], *four[:2]]).value == pytest.approx(-GAIN)
    random = np.random.default_rng(0)
    four = four_of([measured(truth.errors(), 3, random) for truth in TRUTHS])
    apart = difference(four[0], four[1]).value - difference(four[2], four[3]).value
    assert pairs(four).value == pytest.approx(apart)


def test_what_a_seed_does_to_all_four_leaves_no_trace() -> None:
    """Nor does what it does to both of a pair."""
    random = np.random.default_rng(0)
    splits = [measured(truth.errors(), 3, random) for truth in TRUTHS]
    everywhere, here = np.array([0.03, -0.04, 0.01]), np.array([-0.02, 0.05, 0.02])
    moves = [everywhere + here, everywhere + here, everywhere, everywhere]
    moved = [(chosen, tested + by) for (chosen, tested), by in zip(splits, moves, strict=True)]
    one, other = pairs(four_of(splits)), pairs(four_of(moved))
    assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high))
    apart = [numbered(side, 100 * place) for place, side in enumerate(four_of(moved))]
    assert pairs(apart).high - pairs(apart).low > 2 * (other.high - other.low)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "noise"), [(3, {}), (5, {}), (5, {"spread": 0.03, "shared": 0.9})]
)
@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_covers_the_true_contrast_of_what_was_chosen(
    seeds: int, paired: bool, noise: dict[str, Any]
) -> None:
    random = np.random.default_rng(10 + seeds)
    exactly = [exact(truth.errors(), seeds) for truth in TRUTHS]
    kept = [
        numbered(landscape_of(truth, split), 0 if paired else 100 * place)
        for place, (truth, split) in enumerate(zip(TRUTHS, exactly, strict=True))
    ]
    covered = []
    for _ in range(150):
        splits = [measured(truth.errors(), seeds, random, **noise) for truth in TRUTHS]
        truths = [(split[0], true[0]) for split, true in zip(splits, exactly, strict=True)]
        seen, true = (pairs(list(map(reseen, kept, errors))) for errors in (splits, truths))
        covered.append(seen.low <= true.value <= seen.high)
    assert 0.90 <= np.mean(covered) <= 0.99


def test_a_difference_is_the_contrast_with_none() -> None:
    """Two landscapes alike differ by nothing, and their noise is all that they add."""
    random = np.random.default_rng(0)
    one, other, *_ = four_of([measured(truth.errors(), 4, random) for truth in TRUTHS])
    nothing = landscape_of(TRUTHS[1], exact(TRUTHS[1].errors(), 4))
    seen, plain = contrast((one, other), (nothing, nothing)), difference(one, other)
    assert (seen.value, seen.low, seen.high) == pytest.approx((plain.value, plain.low, plain.high))


def test_one_seed_says_no_contrast() -> None:
    four = four_of([exact(truth.errors(), 1) for truth in TRUTHS])
    assert math.isnan(pairs(four).value)


@pytest.mark.parametrize("compare", [difference, equal_loss])
def test_top_1_errors_are_not_held_against_top_5(compare) -> None:  # type: ignore[no-untyped-def]
    one, other, *_ = four_of([exact(truth.errors()) for truth in TRUTHS])
    with pytest.raises(ValueError, match="must be of one error, got error and error_top5"):
        compare(one, replace(other, of="error_top5"))


def test_the_noise_of_a_chosen_setting_far_from_the_best_is_in_the_interval() -> None:
    """Three seeds find a setting the best, and choose it for the fourth, which finds it so bad
    that all four together do not count it among the good ones. It is twenty times as noisy.
    """
    chosen = np.repeat([[[0.25]], [[0.30]], [[0.31]], [[0.32]]], 4, axis=2)
    chosen[0, 0, 3] = 1.0
    errors, spread = np.full((4, 1, 1), 0.3), np.full((4, 1, 1), 0.002)
    errors[0], spread[0] = 0.6, 0.04
    truth = Truth(rates=4, decays=1)
    kept, other = (
        landscape_of(truth, (chosen, chosen)),
        landscape_of(truth, exact(errors[..., 0], 4)),
    )
    taken = [chosen_by_others(kept)[seed][0] for seed in range(4)]
    assert taken == [kept.lrs[1]] * 3 + [kept.lrs[0]]
    random = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        seen = difference(
            reseen(kept, (chosen, errors + spread * random.normal(size=(4, 1, 4)))), other
        )
        covered.append(seen.low <= (0.6 - 0.3) / 4 <= seen.high)
    assert np.mean(covered) >= 0.90


def test_for_each_seed_all_others_choose() -> None:
    """Each finds a rate of its own the best, and only the first two agree."""
    chosen = np.full((3, 1, 4), 0.5)
    for seed, rate in enumerate((0, 0, 1, 2)):
        chosen[rate, 0, seed] = 0.1
    landscape = landscape_of(Truth(rates=3, decays=1), (chosen, chosen))
    [decay] = landscape.decays
    first, second, _ = landscape.lrs
    assert chosen_by_others(landscape) == {
        0: (first, decay),  # one of three that are equally good
        1: (first, decay),
        2: (first, decay),
        3: (first, decay),
    }
    chosen[1, 0, 3] = 0.0
    landscape = reseen(landscape, (chosen, chosen))
    assert {seed: rate for seed, (rate, _) in chosen_by_others(landscape).items()} == {
        0: second,
        1: second,
        2: first,
        3: first,
    }


def test_a_seed_judges_no_setting_that_it_has_not_run() -> None:
    landscape = landscape_of(Truth(rates=2, decays=1), exact(np.array([[0.2], [0.3]])))
    best = landscape.best
    cells = {**landscape.cells}
    cells[best.lr, best.decay] = replace(
        best, seeds=(0, 1), chosen=(0.2, 0.2), tested=(0.2, 0.2), losses=(0.5, 0.5)
    )
    choices = chosen_by_others(replace(landscape, cells=cells))
    assert {seed: rate for seed, (rate, _) in choices.items()} == {
        0: landscape.lrs[0],
        1: landscape.lrs[0],
        2: landscape.lrs[1],
    }
    assert chosen_by_others(landscape_of(TRUTHS[0], exact(TRUTHS[0].errors(), 1))) == {}


def test_a_seed_that_diverged_has_no_part_in_what_is_chosen_for_it() -> None:
    """The others choose for it the setting in which it diverged, and its error there counts."""
    chosen = np.repeat([[[0.1]], [[0.3]]], 3, axis=2)
    tested = chosen.copy()
    tested[0, 0, 0] = 0.9
    truth = Truth(rates=2, decays=1)
    landscape = diverged(landscape_of(truth, (chosen, tested)), 0, 0)
    first, second = landscape.lrs
    choices = chosen_by_others(landscape)
    assert [choices[seed][0] for seed in range(3)] == [first, second, second]
    even = landscape_of(truth, exact(np.full((2, 1), 0.3)))
    assert difference(landscape, even).value == pytest.approx((0.9 + 0.3 + 0.3) / 3 - 0.3)


def test_a_setting_in_which_a_choosing_seed_diverged_comes_last() -> None:
    landscape = landscape_of(Truth(rates=2, decays=1), exact(np.array([[0.1], [0.9]])))
    choices = chosen_by_others(diverged(landscape, 0, 0, 1))
    assert [rate for rate, _ in choices.values()] == [landscape.lrs[1]] * 3
    everywhere = diverged(diverged(landscape, 0, 0, 1, 2), 1, 0, 1, 2)
    assert [rate for rate, _ in chosen_by_others(everywhere).values()] == [landscape.lrs[0]] * 3
