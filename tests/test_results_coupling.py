"""The coupling exponent is what it says, covers the truth, and is silent where it must be."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.landscapes import (
    CLIFF,
    LITTLE,
    QUADRATIC,
    Array,
    Scenario,
    Truth,
    coverage,
    exact,
    landscape_of,
    measured,
    noisy,
    reseen,
    runs_of,
)
from weightdecay.results import Cell, Exponent, Landscape, coupling, landscapes, ridge
from weightdecay.results.arrays import grid
from weightdecay.results.column import PARABOLA
from weightdecay.results.exponent import bend
from weightdecay.results.ridge import optima
from weightdecay.results.vertices import Vertices, vertices
from weightdecay.site import advice

SOME = Truth(s=0.5, rates=8, decays=8)


def some(seed: int = 0, truth: Truth = SOME) -> Landscape:
    return noisy(truth, 3, np.random.default_rng(seed))


def ends(exponent: Exponent) -> tuple[float, float, float]:
    assert exponent.value is not None
    return exponent.value, exponent.low, exponent.high


@settings(max_examples=30)
@given(s=st.floats(-1, 1.2), factor=st.sampled_from([2.0, 4.0, 2**0.5, 3.0]))
def test_without_noise_a_quadratic_basin_gives_its_exponent(s: float, factor: float) -> None:
    """The first estimator is exact if ln e is quadratic, and the second if e is."""
    truth = replace(QUADRATIC, s=s, factor=factor, rates=7, decays=11)
    assert coupling(landscape_of(truth, exact(truth.errors()))).check.value == pytest.approx(
        s, abs=0.002
    )
    seen = coupling(landscape_of(truth, exact(np.exp(truth.errors() / 10))))
    assert seen.exponent.value == pytest.approx(s, abs=1e-6)
    assert (seen.below.value, seen.above.value) == pytest.approx((s, s), abs=1e-6)
    assert seen.line is not None
    assert seen.line.slope == pytest.approx(-s, abs=1e-6)
    for point in seen.ridge:
        assert math.log2(point.decay) + 11 == pytest.approx(
            -s * (math.log2(point.lr) + 7), abs=1e-6
        )
        assert seen.line.intercept + seen.line.slope * math.log2(point.lr) == pytest.approx(
            math.log2(point.decay), abs=1e-6
        )


def test_a_point_off_the_line_counts_whether_or_not_the_others_are_known_exactly() -> None:
    """It moves the line by as much. Some best decays have no noise: all draws find them alike."""
    x, y = np.arange(5.0), np.array([0.0, 1.0, 2.0, 3.0, 7.0])
    alike, apart = (bend(x, y, np.array([*[v] * 4, 0.25])) for v in (0.25, 0.0))
    assert 0.5 < alike < apart


def test_points_on_a_line_do_not_bend() -> None:
    x = np.arange(5.0)
    assert bend(x, 2 - 0.5 * x, np.full(5, 0.01)) == 0


def test_what_points_are_off_their_line_beyond_their_errors_is_found() -> None:
    random = np.random.default_rng(0)
    x, errors = np.arange(700.0) % 7, np.full(700, 0.2)
    y = 1 - 0.3 * x + random.normal(scale=errors) + random.normal(scale=0.5, size=700)
    assert bend(x, y, errors**2) == pytest.approx(0.25, rel=0.2)


def test_a_knee_leaves_two_slopes_and_no_single_one() -> None:
    """The best decay rises with the learning rate up to the best one, and falls beyond it."""
    truth = Truth(rates=7, decays=11)
    x = np.arange(-3.0, 4.0)[:, None]
    off = np.arange(-5.0, 6.0) - np.where(x < 0, 0.8 * x, -0.4 * x)
    errors = np.exp(-1.2 + 0.03 * off**2 + 0.02 * x**2)[..., None]
    random = np.random.default_rng(0)
    splits = [errors * np.exp(0.002 * random.normal(size=(7, 11, 4))) for _ in range(2)]
    seen = coupling(landscape_of(truth, (splits[0], splits[1])))
    assert ends(seen.below)[0] == pytest.approx(-0.8, abs=0.05)
    assert ends(seen.above)[0] == pytest.approx(0.4, abs=0.05)
    assert seen.knee.high < 0
    assert seen.exponent.value is None
    assert seen.exponent.withheld
    assert seen.bent
    assert seen.line is None
    assert len(seen.ridge) == 5
    assert "The ridge has a knee: s is −0.8" in seen.exponent.why


@pytest.mark.parametrize(("side", "other", "sign"), [("above", "below", 1), ("below", "above", -1)])
def test_where_one_side_of_the_best_has_no_slope_the_reason_is_said(
    side: str, other: str, sign: int
) -> None:
    whole = some()
    searched = grid(whole, zero=False)
    best = math.log2(searched.lrs[ridge.best_rate(searched)])
    kept = {
        place: cell
        for place, cell in whole.cells.items()
        if sign * (math.log2(cell.lr) - best) < 1e-6
    }
    seen = coupling(replace(whole, cells=kept))
    assert getattr(seen, side).value is None
    assert getattr(seen, other).value is not None
    [(_, known), (_, missing)] = advice._slopes(seen)
    assert f"{other} the best α" in known
    assert missing == (
        f"s unknown {side} the best α: 1 learning rate at or {side} the best has the best decay "
        "inside the grid, and a slope needs two: widen the grid or make it finer"
    )
    none = getattr(seen, side)
    assert not advice._slopes(replace(seen, below=none, above=none, check=none))


def test_where_the_two_estimators_disagree_there_is_no_value_and_both_are_said() -> None:
    """A cliff that steepens with the learning rate moves a parabola's vertex, and never halves'."""
    truth = replace(CLIFF, s=0.0, drift=0.7, centre=(0.0, 0.5))
    quiet = measured(truth.errors(), 5, np.random.default_rng(0), spread=1e-4, examples=10**7)
    seen = coupling(landscape_of(truth, quiet))
    assert seen.exponent.value is None
    assert seen.exponent.withheld
    assert not seen.bent
    assert abs(ends(seen.check)[0] - truth.s) < 0.05 < ends(seen.parabola)[0] - truth.s
    assert seen.apart.low > 0
    for one, after in (
        (seen.parabola, " by parabolas"),
        (seen.check, " by half"),
        (seen.apart, " ["),
    ):
        assert f" {one.value:.2f}{after}" in seen.exponent.why
    # What they differ by is a part of the interval of each.
    for one in (seen.parabola, seen.check):
        assert one.low <= truth.s <= one.high


def test_with_little_noise_what_lies_between_the_decays_of_a_grid_is_no_disagreement() -> None:
    """Each estimator errs by where a best decay lies in its step, and seeds do not show that."""
    truth = replace(CLIFF, power=1.5, cliff=4.0, s=0.75)
    quiet = Scenario("little noise", truth, 3, **LITTLE)
    seen = coverage(quiet, simulations=60)
    assert seen.disagreed + seen.kneed <= 0.1 * seen.simulations
    assert min(seen.profile, seen.check) >= 0.93


def test_a_cliff_does_not_move_the_best_decay_by_a_whole_step() -> None:
    """A symmetric quadratic over two doublings puts the vertex on the wrong side of a cliff."""
    truth = replace(CLIFF, s=0.0, cliff=50.0, curvature=0.003)
    for seeds in (2, 5):
        seen = coupling(noisy(truth, seeds, np.random.default_rng(1), spread=0.002, examples=10**5))
        assert len(seen.ridge) == 5
        for point in seen.ridge:
            assert math.log2(point.decay) + 11 == pytest.approx(0, abs=0.5)


def test_only_learning_rates_within_two_doublings_of_the_best_count() -> None:
    truth = replace(SOME, rates=9, decays=11)
    errors = truth.errors()
    before = coupling(landscape_of(truth, measured(errors, 3, np.random.default_rng(0))))
    far = np.abs(np.arange(9) - 4) > 2
    moved = np.where(far[:, None], np.roll(errors, 2, axis=1), errors)
    after = coupling(landscape_of(truth, measured(moved, 3, np.random.default_rng(0))))
    assert len(before.ridge) == 5
    assert ends(after.exponent)[0] == pytest.approx(ends(before.exponent)[0], abs=0.1)


def test_seeds_whose_ridge_tilts_widen_the_interval() -> None:
    random = np.random.default_rng(0)
    alike, tilting = (
        coupling(
            landscape_of(CLIFF, Scenario("", CLIFF, 5, tilt=tilt).splits(CLIFF, random)[0])
        ).parabola
        for tilt in (0.0, 0.3)
    )
    assert tilting.high - tilting.low > 2 * (alike.high - alike.low)


def located(without: Array, fewest: int) -> Vertices:
    """Return vertices at three learning rates, of noise that is drawn and seeds that are given."""
    seeds = len(without)
    draws = np.random.default_rng(0).standard_normal((200, 2, 3))
    depths, lrs = np.zeros((201 + seeds, 3)), np.array([0.25, 0.5, 1.0])
    left = np.zeros((seeds, 2, 3))
    left[:, PARABOLA] = without[:, None] * np.array([-1.0, 0.0, 1.0])
    parts = np.zeros((2, 3)), draws, left, depths
    return Vertices(lrs, *parts, tuple(range(seeds)), 10.0, 0, fewest)


WEIGHTS = np.array([[-0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("slopes", [(1.0, 2.0, 6.0), (0.0, 1.0, 2.0, 3.0, 4.0)])
def test_the_interval_of_three_seeds_or_more_is_students_over_seeds(
    slopes: tuple[float, ...],
) -> None:
    """Without seed k, the slope is the mean of the others."""
    own, seeds = np.array(slopes), len(slopes)
    found = located((own.sum() - own) / (seeds - 1), seeds)
    _, variance, freedom = found.weighed(WEIGHTS, by_seeds=True)
    assert variance == pytest.approx(float(np.var(own, ddof=1)) / seeds)
    assert freedom == seeds - 1


@pytest.mark.parametrize("slopes", [(0.1, 0.2, 0.6), (0.3, 0.3, 0.3)])
def test_seeds_that_agree_by_luck_leave_an_interval_as_wide_as_noise_makes_it(
    slopes: tuple[float, ...],
) -> None:
    found = located(np.array(slopes), len(slopes))
    assert found.weighed(WEIGHTS, by_seeds=True) == found.weighed(WEIGHTS)


def test_two_seeds_that_agree_by_luck_still_have_noise_and_one_square_of_it() -> None:
    found = located(np.zeros(2), 2)
    _, noise, freedom = found.weighed(WEIGHTS)
    assert freedom == 10
    _, variance, fewer = found.weighed(WEIGHTS, by_seeds=True)
    assert variance == pytest.approx(2 * noise)
    assert fewer == pytest.approx(4 / (1 / 10 + 1))


@pytest.mark.parametrize("fewest", [1, 2])
def test_a_third_seed_that_few_settings_have_does_not_count(fewest: int) -> None:
    agree = located(np.zeros(3), fewest).weighed(WEIGHTS, by_seeds=True)
    assert agree == pytest.approx(located(np.zeros(2), 2).weighed(WEIGHTS, by_seeds=True))
    truth = replace(CLIFF, decays=11)
    landscape = noisy(truth, 3, np.random.default_rng(0), spread=0.003, examples=10_000)
    place = min(landscape.cells, key=lambda at: landscape.cells[at].score)
    cell = landscape.cells[place]
    parts = {name: getattr(cell, name)[:fewest] for name in ("seeds", "chosen", "tested")}
    fewer_seeds = replace(cell, **parts, losses=(), packs=())
    fewer = replace(landscape, cells={**landscape.cells, place: fewer_seeds})
    for one, seeds in ((landscape, 3), (fewer, fewest)):
        measured = grid(one, zero=False)
        rates = np.ones(len(measured.lrs), dtype=np.bool_)
        logs = np.log2(measured.decays) + 0 * measured.lrs[:, None]
        assert vertices(measured, logs, rates).fewest == seeds


def test_a_seed_that_is_left_out_takes_its_whole_tilt_with_it() -> None:
    """In the window of both seeds, ridges that tilt by 1 would be cut at one doubling."""
    truth = replace(QUADRATIC, rates=5, decays=15)
    errors = np.stack([replace(truth, s=s).errors() for s in (-0.8, 0.8)], -1)
    measured = grid(landscape_of(truth, (errors, errors)), zero=False)
    logs = np.log2(measured.decays) + 0 * measured.lrs[:, None]
    found = vertices(measured, logs, np.ones(5, dtype=np.bool_))
    slopes = np.polyfit(found.x, found.without[:, PARABOLA].T, 1)[0]
    assert slopes == pytest.approx([-0.8, 0.8], abs=0.05)


def test_basins_may_differ_in_curvature() -> None:
    truth = replace(QUADRATIC, s=0.3, decays=11)
    off = np.log2(truth.lambdas)[None, :] + 11 + truth.s * (np.log2(truth.lrs)[:, None] + 7)
    errors = np.exp(-1.2 + np.linspace(0.012, 0.036, truth.rates)[:, None] * off**2)
    seen = coupling(landscape_of(truth, exact(errors)))
    assert seen.exponent.value == pytest.approx(0.3, abs=1e-6)
    for point in seen.ridge:
        best = -truth.s * (math.log2(point.lr) + 7) - 11
        assert math.log2(point.decay) == pytest.approx(best, abs=1e-6)


def test_without_noise_a_basin_that_flattens_gives_nearly_its_exponent() -> None:
    for s in (0.0, 0.5, 1.0):
        truth = Truth(s=s, rates=9, decays=9)
        seen = coupling(landscape_of(truth, exact(truth.errors())))
        assert seen.parabola.value == pytest.approx(s, abs=0.03)
        assert seen.check.value == pytest.approx(s, abs=0.03)


@pytest.mark.parametrize("way", ["weight_decay", "normalized_decay"])
@pytest.mark.parametrize("seed", range(5))
def test_torchs_convention_adds_exactly_one(way: str, seed: int) -> None:
    splits = measured(SOME.errors(), 3, np.random.default_rng(seed))
    landscape = landscape_of(SOME, splits, way=way)
    papers, torchs = coupling(landscape), coupling(landscape, convention="torch")
    for ours, theirs in ((papers.exponent, torchs.exponent), (papers.check, torchs.check)):
        assert np.subtract(ends(theirs), ends(ours)) == pytest.approx(np.ones(3), abs=1e-9)
    for point, other in zip(papers.ridge, torchs.ridge, strict=True):
        assert other.decay == pytest.approx(point.decay / point.lr)
        assert other.standard_error == pytest.approx(point.standard_error)
    assert torchs.convention == "torch"


def test_torchs_convention_is_no_way_to_state_l2() -> None:
    landscape = landscape_of(SOME, exact(SOME.errors()), way="l2")
    with pytest.raises(ValueError, match="must be 'paper' for a landscape of l2, got 'torch'"):
        coupling(landscape, convention="torch")
    with pytest.raises(ValueError, match="`convention` must be one of 'paper', 'torch'"):
        coupling(landscape, convention="tensorflow")


def test_the_order_of_runs_changes_no_exponent() -> None:
    runs = runs_of(SOME, measured(SOME.errors(), 3, np.random.default_rng(0)))
    [one], [other] = landscapes(runs), landscapes(reversed(runs))
    assert coupling(one) == coupling(other)


def test_a_column_without_decay_changes_no_exponent() -> None:
    with_zero = some(truth=replace(SOME, zero=True))
    cells = {place: cell for place, cell in with_zero.cells.items() if cell.decay > 0}
    without = replace(with_zero, decays=with_zero.decays[1:], cells=cells)
    assert coupling(with_zero) == coupling(without)


@pytest.mark.slow
@given(rates=st.floats(0.01, 100), decays=st.floats(0.01, 1.0))
def test_scaling_all_rates_or_all_decays_leaves_the_exponent_alone(
    rates: float, decays: float
) -> None:
    landscape = some()
    cells = [
        replace(cell, lr=cell.lr * rates, decay=cell.decay * decays)
        for cell in landscape.cells.values()
    ]
    scaled = replace(
        landscape,
        lrs=tuple(lr * rates for lr in landscape.lrs),
        decays=tuple(decay * decays for decay in landscape.decays),
        cells={(cell.lr, cell.decay): cell for cell in cells},
    )
    assert ends(coupling(scaled).exponent) == pytest.approx(ends(coupling(landscape).exponent))


def test_an_effect_of_the_seed_that_all_runs_share_changes_no_exponent() -> None:
    splits = measured(SOME.errors(), 3, np.random.default_rng(0))
    effect = np.array([1.03, 0.96, 1.01])
    one = coupling(landscape_of(SOME, splits))
    other = coupling(landscape_of(SOME, (splits[0], splits[1] * effect)))
    assert ends(other.exponent) == pytest.approx(ends(one.exponent))


@pytest.mark.slow
def test_a_ridges_standard_errors_are_those_of_its_points() -> None:
    random = np.random.default_rng(0)
    truth = replace(SOME, decays=9, plateau=np.inf, chance=np.inf)
    kept = landscape_of(truth, exact(truth.errors()))
    off = [
        (math.log2(point.decay) + 11 + truth.s * (math.log2(point.lr) + 7)) / point.standard_error
        for _ in range(100)
        for point in coupling(reseen(kept, measured(truth.errors(), 3, random))).ridge
    ]
    assert np.mean(off) == pytest.approx(0, abs=0.15)
    # Three seeds estimate them, so a few points lie many of them away: a share says more.
    assert np.mean(np.abs(off) < 1) == pytest.approx(0.68, abs=0.06)


def test_a_cell_that_one_seed_alone_has_stays_when_that_seed_is_left_out() -> None:
    """Without it, a column would have no parabola, and its best decay would jump to the cell."""
    truth = replace(QUADRATIC, s=0.3, rates=5, decays=11, centre=(0.0, 0.3))
    whole = landscape_of(truth, exact(np.exp(truth.errors())))
    lowest = {
        lr: min(whole.decays, key=lambda decay: whole.cells[lr, decay].mean) for lr in whole.lrs
    }
    cells = {
        (lr, decay): cell
        if decay == lowest[lr]
        else Cell(lr, decay, (0,), cell.chosen[:1], cell.tested[:1])
        for (lr, decay), cell in whole.cells.items()
    }
    seen = coupling(replace(whole, cells=cells)).exponent
    assert seen.value == pytest.approx(0.3, abs=1e-3)
    assert seen.high - seen.low < 0.01


def test_a_ridge_that_is_not_straight_widens_the_interval() -> None:
    """However quiet the noise: optima that lie off the line by half a power of two say so."""
    truth = replace(QUADRATIC, s=0.0, rates=7, decays=11)
    off = np.where(np.arange(7) % 2, 0.5, -0.5)[:, None]
    bent = 0.3 + truth.curvature * (np.log2(truth.lambdas)[None, :] + 11 - off) ** 2
    bent += truth.level * (np.arange(7)[:, None] - 3.0) ** 2
    random = np.random.default_rng(0)
    for spread in (1e-5, 1e-4):
        quiet = 0.3 + (bent - 0.3)[..., None] + random.normal(0, spread, (*bent.shape, 3))
        seen = coupling(landscape_of(truth, (quiet, quiet))).exponent
        assert 0.15 < seen.high - seen.low < 1.2
        assert seen.low < 0 < seen.high


def test_a_grid_so_fine_that_a_window_is_wider_has_an_exponent() -> None:
    truth = replace(QUADRATIC, s=0.5, factor=2**0.125, rates=5, decays=9)
    seen = coupling(landscape_of(truth, exact(np.exp(truth.errors()))))
    assert seen.exponent.value == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("s", [0.0, 1.0])
def test_half_steps_at_one_learning_rate_leave_the_others_their_exponent(s: float) -> None:
    truth = replace(QUADRATIC, s=s, factor=2**0.5, rates=9, decays=33)
    whole = landscape_of(truth, exact(np.exp(truth.errors())))
    kept = {
        (lr, decay): cell
        for (lr, decay), cell in whole.cells.items()
        if math.log2(lr) % 1 == 0 and (math.log2(decay) % 1 == 0 or lr == 2**-7)
    }
    lrs, decays = (tuple(sorted({place[axis] for place in kept})) for axis in (0, 1))
    coarse = replace(whole, cells=kept, lrs=lrs, decays=decays)
    assert len(decays) > 20
    assert coupling(coarse).exponent.value == pytest.approx(s, abs=1e-6)


@given(
    s=st.sampled_from([0.0, 0.5, 1.0]),
    beyond=st.sampled_from([-4.0, 4.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_where_the_best_is_at_the_edge_there_is_no_value(
    s: float, beyond: float, seed: int
) -> None:
    landscape = some(seed, Truth(s=s, centre=(0, beyond)))
    best = min(landscape.cells.values(), key=lambda cell: cell.score)
    seen = coupling(landscape).exponent
    if best.decay in (landscape.decays[0], landscape.decays[-1]):
        assert seen.value is None or seen.bound is not None
        assert "of the grid" in seen.why


@pytest.mark.parametrize(
    ("s", "beyond", "bound"), [(1.0, -2.6, "at least"), (-1.0, 2.6, "at most")]
)
def test_a_bound_holds(s: float, beyond: float, bound: str) -> None:
    """High rates have their optimum at the edge; what lies beyond makes the line only steeper."""
    truth = replace(QUADRATIC, s=s, rates=9, decays=9, level=0.0, centre=(0.0, beyond))
    errors = truth.errors() - 0.002 * np.arange(9)[:, None]  # the best rates are the highest
    seen = coupling(landscape_of(truth, exact(errors))).exponent
    assert seen.bound == bound
    assert seen.value is not None
    assert abs(seen.value) <= 1
    assert seen.low <= s <= seen.high
    assert math.isinf(seen.high - seen.low)


def test_where_every_rate_is_at_the_edge_nothing_is_known() -> None:
    truth = replace(QUADRATIC, s=0.0, centre=(0.0, 9.0))
    seen = coupling(landscape_of(truth, exact(truth.errors() / 4)))
    assert seen.exponent.value is None
    assert seen.line is None
    assert "highest of the grid" in seen.exponent.why


def test_one_seed_is_not_enough() -> None:
    seen = coupling(noisy(SOME, 1, np.random.default_rng(0)))
    assert seen.exponent.value is None
    assert "run at least two" in seen.exponent.why


def test_two_rates_make_no_line() -> None:
    truth = replace(SOME, rates=2)
    seen = coupling(noisy(truth, 3, np.random.default_rng(0)))
    assert seen.exponent.value is None
    assert "2 learning rates near the best" in seen.exponent.why
    assert "a line needs three: widen the grid" in seen.exponent.why


@pytest.mark.slow
def test_a_flat_landscape_has_no_exponent() -> None:
    flat = replace(SOME, curvature=0.0, level=0.0)
    known = [coupling(some(seed, flat)).exponent.value is not None for seed in range(100)]
    assert np.mean(known) < 0.05


def test_a_grid_without_decay_has_no_exponent() -> None:
    landscape = some(truth=replace(SOME, zero=True))
    none = {place: cell for place, cell in landscape.cells.items() if cell.decay == 0}
    seen = coupling(replace(landscape, decays=(0.0,), cells=none))
    assert seen.exponent.value is None


def test_what_diverged_is_not_fitted() -> None:
    landscape = landscape_of(QUADRATIC, exact(np.exp(QUADRATIC.errors())))
    cells = {
        place: replace(cell, diverged=(0,), tested=(0.9,) * 3, chosen=(0.9,) * 3)
        if cell.decay == landscape.decays[-1]
        else cell
        for place, cell in landscape.cells.items()
    }
    seen = coupling(replace(landscape, cells=cells))
    assert seen.exponent.value == pytest.approx(QUADRATIC.s, abs=1e-6)


def test_noise_keeps_a_bound_away_from_the_line_through_the_edges() -> None:
    truth = replace(QUADRATIC, s=1.0, rates=9, decays=9, level=0.0, centre=(0.0, -2.6))
    errors = truth.errors() - 0.002 * np.arange(9)[:, None]
    quiet = measured(errors, 2, np.random.default_rng(0), spread=0.001, examples=10**6)
    landscape = landscape_of(truth, quiet)
    seen = coupling(landscape)
    known = {point.lr: (point.decay, point.standard_error) for point in seen.ridge}
    place = grid(landscape)
    said = optima(place.scores(), place.lost())
    near = place.lrs >= place.lrs[ridge.best_rate(place)] / 4
    lrs = place.lrs[said.basin & near & (place.lrs <= place.lrs[ridge.best_rate(place)] * 4)]
    # The optimum may lie between the edge and its neighbour.
    decay, error = np.array([known.get(lr, (place.decays[1], 0.0)) for lr in lrs]).T
    lean = np.log2(lrs) - np.log2(lrs).mean()
    share = lean / (lean**2).sum()
    line, noise = -share @ np.log2(decay), math.sqrt((share**2) @ (error**2))
    assert noise > 0
    assert seen.exponent.bound == "at least"
    assert line - 13 * noise <= ends(seen.exponent)[0] <= line - 2 * noise


def test_the_same_landscape_gives_the_same_numbers() -> None:
    assert coupling(some(4)) == coupling(some(4))
    assert coupling(some(4)) != coupling(some(5))


def test_reseen_errors_are_what_is_fitted() -> None:
    """The simulations above rest on it."""
    splits = measured(SOME.errors(), 3, np.random.default_rng(8))
    kept = landscape_of(SOME, exact(SOME.errors()))
    assert coupling(reseen(kept, splits)) == coupling(landscape_of(SOME, splits))
