"""Fresh seeds judge chosen settings, and know how much the test set itself is worth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.landscapes import ended
from weightdecay.records import Run, RunConfig, packed
from weightdecay.results import Judgement, judged, transfer_regret
from weightdecay.results.estimate import safely_summed, seeds_needed, student, within
from weightdecay.results.judging import Carried, mean_of, shared_variance

CONFIG = RunConfig(
    task="mnist1d",
    model="mlp",
    algorithm="adamw",
    lr=0.001,
    weight_decay=0.01,
    epochs=10,
    batch=100,
    keep_missed=True,
)
EXAMPLES, SEEDS = 400, 8


def run_of(seed: int, missed: np.ndarray) -> Run:
    return ended(
        replace(CONFIG, seed=seed),
        test_error=float(missed.mean()),
        missed=packed(missed.tolist()),
    )


def hard(share: float, random: np.random.Generator, size: int) -> np.ndarray:
    """Return how likely each example is missed: some nearly always, most hardly ever."""
    return np.where(random.random(size) < share, 0.85, 0.02)


def compared(
    random: np.random.Generator, *, keep: bool = True, seeds: int = SEEDS, examples: int = EXAMPLES
) -> Judgement:
    """Compare two methods that find different examples hard; one misses 10 %, the other 12 %."""
    chances = [hard(share, random, examples) for share in (0.10, 0.12)]
    drawn = [random.random((seeds, examples)) < chance for chance in chances]
    sides = [[run_of(seed, row) for seed, row in enumerate(side)] for side in drawn]
    if not keep:
        sides = [
            [Run(run.config, (replace(run.records[-1], missed=None),)) for run in side]
            for side in sides
        ]
    return judged(*sides)


TRUTH = 0.83 * (0.10 - 0.12)  # of all examples there could be, in points


def test_the_interval_covers_the_difference_over_all_examples_there_could_be() -> None:
    random = np.random.default_rng(0)
    seen = [compared(random) for _ in range(300)]
    covered = np.mean([one.points.low <= TRUTH <= one.points.high for one in seen])
    assert covered >= 0.92
    assert all(one.of_test_set is not None and one.of_test_set[1] > 0 for one in seen)


@pytest.mark.parametrize("seeds", [2, 3, 4])
def test_few_seeds_do_not_make_the_test_sets_own_error_less_certain(seeds: int) -> None:
    """Its part of the interval is that of a normal, not of Student's t of so few seeds."""
    random = np.random.default_rng(seeds)
    seen = [compared(random, seeds=seeds) for _ in range(400)]
    covered = np.mean([one.points.low <= TRUTH <= one.points.high for one in seen])
    assert 0.93 <= covered <= 0.99
    for one in seen[:20]:
        assert one.of_test_set is not None
        assert one.needed(one.detectable) == pytest.approx(seeds)


def test_seeds_alone_do_not_know_that_the_test_set_is_a_sample() -> None:
    random = np.random.default_rng(0)
    seen = [compared(random, keep=False) for _ in range(300)]
    assert np.mean([one.points.low <= TRUTH <= one.points.high for one in seen]) < 0.6
    assert all(one.of_test_set is None for one in seen)


def test_runs_that_kept_their_missed_examples_are_not_mixed_with_others() -> None:
    random = np.random.default_rng(0)
    kept = [run_of(seed, random.random(EXAMPLES) < 0.1) for seed in range(3)]
    other = [run_of(seed, random.random(EXAMPLES) < 0.1) for seed in range(3)]
    lacks = Run(other[2].config, (replace(other[2].records[-1], missed=None),))
    with pytest.raises(ValueError, match=r"or none of them, got 5 of 6 .* with `keep_missed`\."):
        judged(kept, [*other[:2], lacks])


def test_noise_of_single_runs_is_not_taken_for_the_test_sets() -> None:
    random = np.random.default_rng(1)
    found = [shared_variance(random.normal(size=(6, 500))) for _ in range(200)]
    assert np.mean(found) < 0.2 / (6 * 500)  # noise alone gives its mean a variance of 1/(6 · 500)
    of_examples = random.normal(size=500)
    both = shared_variance(of_examples + random.normal(size=(6, 500)))
    assert both == pytest.approx(of_examples.var(ddof=1) / 500, rel=0.3)


def of_errors(errors: list[float], first: int = 0) -> list[Run]:
    return [
        ended(replace(CONFIG, seed=first + k), test_error=error) for k, error in enumerate(errors)
    ]


def test_ratios_and_points_are_those_of_a_hand_written_sum() -> None:
    seen = judged(of_errors([0.10, 0.12, 0.11]), of_errors([0.20, 0.21, 0.25]))
    ratios = np.log(np.array([0.10 / 0.20, 0.12 / 0.21, 0.11 / 0.25]))
    half = 4.30265 * ratios.std(ddof=1) / math.sqrt(3)
    assert seen.seeds == 3
    assert seen.ratio.value == pytest.approx(ratios.mean())
    assert (seen.ratio.low, seen.ratio.high) == pytest.approx(
        (ratios.mean() - half, ratios.mean() + half)
    )
    assert seen.points.value == pytest.approx(-0.11)
    assert seen.better
    assert seen.as_good


@pytest.mark.parametrize(("factor", "as_good"), [(1.02, True), (1.04, False)])
def test_as_good_means_at_most_three_percent_worse(factor: float, as_good: bool) -> None:
    other = [0.100, 0.101, 0.099, 0.1005]
    seen = judged(of_errors([factor * error for error in other]), of_errors(other))
    assert not seen.better
    assert seen.as_good is as_good


def test_only_seeds_of_both_are_compared_and_two_are_needed() -> None:
    assert judged(of_errors([0.1, 0.2, 0.3]), of_errors([0.2, 0.3, 0.4], first=1)).seeds == 2
    with pytest.raises(ValueError, match="must share at least two seeds, got 1"):
        judged(of_errors([0.1, 0.2]), of_errors([0.2, 0.3], first=1))


def test_runs_of_several_settings_are_not_taken_for_one() -> None:
    twice = of_errors([0.1, 0.2]) + of_errors([0.3, 0.4])
    with pytest.raises(ValueError, match="a seed of its own, got 4 runs of 2 seeds"):
        judged(twice, of_errors([0.2, 0.3]))


def test_an_error_of_zero_has_no_ratio() -> None:
    with pytest.raises(ValueError, match=r"must be above 0, since their ratios .*, got 0\. Use"):
        judged(of_errors([0.1, 0.0]), of_errors([0.1, 0.2]))


def test_a_diverged_run_counts_as_chance() -> None:
    lost = [
        Run(run.config, (replace(run.records[-1], diverged=True),)) for run in of_errors([0.1] * 2)
    ]
    assert judged(lost, of_errors([0.4, 0.5])).points.value == pytest.approx(0.9 - 0.45)


def test_regret_is_the_mean_within_a_seed_over_what_was_carried() -> None:
    errors = {
        (4.0, 0.1): {0: 0.30, 1: 0.32},
        (4.0, 0.2): {0: 0.25, 1: 0.26},
        (1.0, 0.3): {0: 0.50, 1: 0.51, 2: 0.9},
        (1.0, 0.4): {0: 0.40, 1: 0.43, 2: 0.1},
    }
    carried = [Carried(1.0, 4.0, 0.0, 0.1), Carried(4.0, 1.0, 0.0, 0.3)]
    found = transfer_regret(errors, {4.0: 0.2, 1.0: 0.4}, carried)
    assert found == pytest.approx([(0.05 + 0.10) / 2, (0.06 + 0.08) / 2])


def test_tokens_of_a_sequence_are_not_counted_as_independent_examples() -> None:
    random = np.random.default_rng(0)
    of_sequences = np.repeat(random.normal(0, 0.3, 200), 64)
    tokens = of_sequences + random.normal(0, 1, 200 * 64)
    found = shared_variance(tokens + random.normal(0, 1, (6, 200 * 64)))
    # A mean over 200 sequences: 0.3² of their own, and what is left of their tokens' difficulty.
    assert found == pytest.approx((0.3**2 + 1 / 64) / 200, rel=0.3)
    shuffled = random.permutation(200 * 64)
    alone = shared_variance((tokens + random.normal(0, 1, (6, 200 * 64)))[:, shuffled])
    assert alone == pytest.approx((1 + 0.3**2) / (200 * 64), rel=0.1)


def test_one_seed_has_no_interval() -> None:
    """It had one of no width, as if the seed were certain."""
    found = mean_of(np.array([0.1]))
    assert found.value == 0.1
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_a_sum_with_an_unknown_part_has_no_interval() -> None:
    found = within(0.1, *safely_summed((math.nan, 0.0), (1e-6, math.inf)))
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize(("seeds", "level"), [(3, 0.975), (10, 0.975), (10, 1 - 0.025 / 3)])
def test_so_many_seeds_as_are_needed_show_an_effect_in_four_of_five_cases(
    seeds: int, level: float
) -> None:
    """Each seed has noise of 1, and the effect is 0.7; Student's t of many seeds is smaller."""
    count = math.ceil(seeds_needed(0.7, 1 / seeds, seeds - 1, seeds=seeds, level=level))
    draws = 0.7 + np.random.default_rng(0).normal(size=(4000, count))
    errors = draws.std(1, ddof=1) / math.sqrt(count)
    shown = float((draws.mean(1) > student(count - 1, level) * errors).mean())
    assert 0.76 < shown < 0.86


def test_a_variance_that_seeds_do_not_lower_may_hide_an_effect_from_any_number() -> None:
    assert seeds_needed(0.1, 0.01, 9, seeds=10, shared=0.01) == math.inf
    assert seeds_needed(0.0, 0.01, 9, seeds=10) == math.inf
    assert seeds_needed(0.5, 0.01, 9, seeds=10, shared=0.01) < math.inf
