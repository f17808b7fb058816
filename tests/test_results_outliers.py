"""Cells that stand out are found wherever noise does not explain them, and nothing else is.

`python -m tests.planted` measures both at length; what is here is its short version.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.landscapes import Truth, exact, landscape_of, measured, noisy
from tests.planted import (
    CLIFFS,
    TASKS,
    at_their_bounds,
    committed,
    found_places,
    frozen,
    inner,
    of_schedule,
    of_seeds,
    pack,
    planted,
    power,
    seeds_of,
    simulated,
)
from weightdecay.records import RunConfig
from weightdecay.results import Cell, Landscape, outliers
from weightdecay.results.outliers import smallest_rises

DECAYS = (0.0, *(0.001 * 2.0**power for power in range(-5, 3)))
# Test errors, in percent, of one seed of a convolutional network on CIFAR-10 on a GPU: SGD and Adam
# with L2 and with decoupled decay, a row for each learning rate. The cells named below trained with
# a schedule that did not move; all others are right.
SGD = """
22.74 22.70 22.56 22.65 22.96 22.42 22.40 22.08 21.07
21.98 19.07 18.85 18.55 18.68 18.28 18.02 17.20 16.06
16.41 16.71 16.04 16.28 16.00 16.38 15.74 24.26 12.94
14.98 15.58 15.06 15.04 14.59 13.98 13.52 12.93 12.14
14.78 14.43 14.37 14.42 13.68 24.16 12.75 12.37 14.15
18.51 17.17 17.22 16.47 15.35 14.70 14.60 15.76 18.94
42.81 34.04 31.35 31.68 21.10 17.94 16.93 18.93 30.03"""
SGDW = """
22.74 23.07 22.59 22.20 21.72 19.71 17.45 14.85 18.19
18.95 18.92 18.04 18.49 17.83 16.68 14.58 12.82 14.55
16.41 16.53 16.42 15.86 15.63 14.77 13.54 12.14 13.52
14.98 15.20 14.99 14.67 14.67 13.93 12.85 12.04 12.73
14.78 14.61 13.71 14.57 14.17 13.42 13.00 12.31 13.13
18.51 17.36 17.37 17.80 17.04 15.28 15.02 14.19 15.11
42.81 58.40 37.29 38.09 29.93 26.46 20.39 18.08 17.58"""
ADAM = """
25.75 25.66 25.65 25.44 25.48 25.44 24.96 24.54 23.20
19.82 19.66 19.53 19.68 19.62 26.64 18.66 17.72 16.96
15.81 15.86 15.92 15.56 15.25 15.26 14.79 14.11 13.60
14.17 13.91 14.07 18.43 13.45 13.03 13.26 13.17 13.11
14.31 14.04 13.60 13.80 13.02 12.92 12.88 13.81 15.56
14.33 17.74 13.18 12.96 13.45 14.46 16.59 19.22 22.94
14.93 13.46 13.84 14.52 16.45 19.14 22.69 28.57 30.37"""
ADAMW = """
25.75 25.59 25.56 25.40 25.06 24.25 22.68 23.82 54.10
19.82 19.77 19.37 19.44 18.95 17.71 16.07 15.00 26.87
15.81 16.03 15.86 15.71 15.21 14.55 13.33 12.86 16.23
14.17 14.47 14.12 13.90 13.93 13.42 12.14 11.68 12.91
14.31 14.25 14.34 14.12 13.77 13.15 12.36 11.59 12.91
14.33 14.63 14.34 14.22 13.82 13.37 13.06 12.62 13.15
14.93 14.87 14.93 14.61 13.92 13.70 13.27 13.01 14.77"""
# Row and column of the cells that were wrong. Two do not stand out themselves: the fourth of SGD is
# on a cliff, between 31.35 % and 21.10 %; that of Adam is a corner, where the right error would be
# as high. But they were trained together with the others: cells took turns in 16 packs, and the
# first cell of each table was in the pack of the number given here.
FROZEN = {
    "sgd": (SGD, 0, {(1, 0), (2, 7), (4, 5)}, {(6, 3)}),
    "sgdw": (SGDW, 15, set(), set()),
    "adam": (ADAM, 14, {(1, 5), (3, 3), (5, 1)}, {(6, 8)}),
    "adamw": (ADAMW, 13, set(), set()),
}


def of_table(text: str, first: int | None = None) -> Landscape:
    """Return the landscape of a table of percentages; `first` is the first cell's pack."""
    errors = np.array([row.split() for row in text.split("\n") if row], dtype=np.float64) / 100
    lrs = tuple(2.0 ** (row - 7) for row in range(len(errors)))
    cells = {
        (lr, decay): Cell(lr, decay, (0,), (error,), (error,))
        for lr, row in zip(lrs, errors.tolist(), strict=True)
        for decay, error in zip(DECAYS, row, strict=True)
    }
    if first is not None:
        cells = in_packs(cells, [(first + place) % 16 for place in range(len(cells))])
    config = RunConfig(
        task="cifar10", model="convnet", algorithm="sgd", lr=1, l2=0, epochs=8, batch=128
    )
    return Landscape(config, "l2", lrs, DECAYS, cells, "validation")


def places(landscape: Landscape) -> set[tuple[int, int]]:
    return {
        (landscape.lrs.index(lr), landscape.decays.index(decay))
        for lr, decay in found_places(landscape)
    }


def in_packs(
    cells: dict[tuple[float, float], Cell], packs: Iterable[int]
) -> dict[tuple[float, float], Cell]:
    """Return cells of one seed that were trained in these packs."""
    return {
        place: replace(cell, packs=((float(pack), 8),))
        for (place, cell), pack in zip(cells.items(), packs, strict=True)
    }


@pytest.mark.parametrize("name", FROZEN)
def test_cells_with_a_frozen_schedule_are_found_and_no_other(name: str) -> None:
    table, first, stand_out, companions = FROZEN[name]
    scape = of_table(table, first)
    assert places(scape) == stand_out | companions
    assert places(of_table(table)) == stand_out
    said = {(one.lr, one.decay): one.companions for one in outliers(scape)}
    expected = [(place, 0) for place in stand_out] + [(place, 3) for place in companions]
    assert said == {
        (scape.lrs[row], scape.decays[column]): count for (row, column), count in expected
    }


@pytest.mark.parametrize(("wrong", "right", "suspected"), [(1, 1, 0), (2, 1, 1), (2, 2, 0)])
def test_a_pack_is_doubted_if_several_of_its_cells_stand_out_and_most_do(
    wrong: int, right: int, suspected: int
) -> None:
    clean = of_table(ADAMW)
    lanes = inner(clean)[:: len(inner(clean)) // 4][: wrong + right]
    cells = in_packs(dict(clean.cells), [int(place in lanes) for place in clean.cells])
    others = {place: replace(cell, packs=(None,)) for place, cell in clean.cells.items()}
    scape = replace(clean, cells={**others, **{place: cells[place] for place in lanes}})
    found = outliers(planted(scape, {(*place, 0): 1.6 for place in lanes[:wrong]}))
    assert {(one.lr, one.decay) for one in found if not one.companions} == set(lanes[:wrong])
    assert [one.companions for one in found if one.companions] == [wrong] * suspected


@pytest.mark.parametrize("beyond", [1.001, 1.5])
def test_a_cell_is_found_if_it_is_raised_above_its_bound(beyond: float) -> None:
    """The bound is what the landscape states of itself, before anything is wrong."""
    lost, total = at_their_bounds(of_table(ADAMW), beyond)
    assert not lost
    assert total > 50
    lost, total = at_their_bounds(of_table(ADAMW), 0.999)
    assert len(lost) == total


#: Cells that are not named if they are raised to their bounds: algorithm, lr and decay. The one
#: beside it is, which is much lower than its other neighbours as well.
SWAPPED = {("torch.optim:RMSprop", 2.0**-6, 0.011049)}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("task", TASKS)
def test_every_cell_of_committed_records_is_found_above_its_bound(task: str, seeds: int) -> None:
    """Every third landscape is tried here, and all by `python -m tests.planted`."""
    scapes = [of_seeds(one, seeds_of(one)[:seeds]) for one in committed(task)[::3]]
    total = 0
    for scape in scapes:
        if outliers(scape):  # another cell would stand out less beside one that does
            continue
        lost, count = at_their_bounds(scape, 1.001)
        named = {(scape.config.algorithm, lr, round(decay, 6)) for lr, decay in lost}
        assert named <= SWAPPED, scape.config
        total += count
    assert total > 80


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "constant", "least"),
    [
        ("mnist1d-medium", "mnist1d-medium", 5),
        ("text-medium", "text-medium", 0),
        ("cifar10-small", "cifar10-small, figure 1", 90),
    ],
)
def test_every_cell_that_trained_with_a_constant_schedule_is_found_above_its_bound(
    task: str, constant: str, least: int
) -> None:
    """It is what a frozen schedule does to a cell. On text, noise hides all of them."""
    wrong = of_schedule(constant, "constant", 0)
    found, above, higher = frozen(of_schedule(task, "cosine", 0), wrong)
    assert found == above >= least
    assert higher > 50


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.002, 0.008, 0.025])
def test_every_cell_of_simulated_landscapes_is_found_above_its_bound(spread: float) -> None:
    random = np.random.default_rng(3)
    for seeds, shape in product((1, 3), ({}, CLIFFS)):
        truth = Truth(s=0.5, rates=7, decays=8, **shape)  # type: ignore[arg-type]
        scape = noisy(truth, seeds, random, spread=spread, examples=10_000)
        lost, total = at_their_bounds(scape, 1.001)
        assert not lost
        assert total > 20


def test_bounds_are_infinite_where_nothing_is_judged() -> None:
    clean = of_table(ADAMW)
    rises = smallest_rises(clean)
    corners = set(product((clean.lrs[0], clean.lrs[-1]), (clean.decays[0], clean.decays[-1])))
    assert {place for place, rise in rises.items() if np.isinf(rise)} >= corners
    assert smallest_rises(replace(clean, cells={}, lrs=(), decays=())) == {}
    few = {place: cell for place, cell in clean.cells.items() if place[0] < clean.lrs[2]}
    assert set(smallest_rises(replace(clean, lrs=clean.lrs[:2], cells=few)).values()) == {np.inf}


def test_a_landscape_without_any_error_has_rises_and_no_warning() -> None:
    truth = Truth()
    rises = smallest_rises(landscape_of(truth, exact(0 * truth.errors())))
    assert len(rises) == 49
    assert not np.isnan(list(rises.values())).any()


def test_what_neighbours_say_is_near_what_the_cell_would_have_come_to() -> None:
    """SGDW's cell without decay is the same training, and was right: 18.95 %."""
    [one] = [one for one in outliers(of_table(SGD)) if one.decay == 0]
    assert one.seed == 0
    assert one.error == pytest.approx(0.2198)
    assert one.expected == pytest.approx(0.1895, abs=0.002)
    assert one.allowed < one.error - one.expected


#: Cells that stand out and are right: algorithm, lr, decay and seed. All are of text, next to rates
#: at which some seeds fail. The first three were trained again on a CPU, and had 31.2, 51.9 and
#: 78.9 % where a GPU had 31.2, 48.7 and 83.8 %.
REAL = {
    ("adamw", 2.0**-4, 0.353553, 2),
    ("adam,amsgrad=true", 2.0**-4, 0.001381, 5),
    ("sgdw", 2.0**-1, 0.176777, 5),
    ("adam", 2.0**-4, 0.003906, 5),
    ("adam", 2.0**-4, 0.0, 2),
    ("adam", 2.0**-4, 0.0, 5),
    ("sgdw", 2.0**-0.5, 0.002762, 0),
    ("sgdw", 2.0**-0.5, 0.003906, 4),
    ("sgdw", 2.0**-1, 0.000488, 0),
    ("sgdw", 2.0**-1.5, 0.000977, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_nothing_stands_out_of_committed_records_whichever_seeds_are_there(task: str) -> None:
    for scape in committed(task):
        seeds = seeds_of(scape)
        for kept in [*((seed,) for seed in seeds), seeds[:2], seeds]:
            found = {
                (scape.config.algorithm, one.lr, round(one.decay, 6), one.seed)
                for one in outliers(of_seeds(scape, kept))
            }
            assert found <= REAL, (scape.config, kept)


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "seeds"), [(0.002, 1), (0.008, 1), (0.025, 1), (0.008, 3)])
def test_simulated_landscapes_with_cliffs_seldom_raise_an_alarm(spread: float, seeds: int) -> None:
    """At length it was 2 in 6480."""
    seen = simulated(5, spread=spread, seeds=seeds)
    assert seen.landscapes == 90
    assert seen.false <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "rise", "share"), [(1, 1.8, 0.9), (5, 1.5, 0.9), (1, 1.05, 0)])
def test_a_raised_cell_of_a_basin_is_found_above_the_noise(
    seeds: int, rise: float, share: float
) -> None:
    """Noise is some 4 % of the error there; 5 % is not told from it."""
    whole = [one for one in committed("mnist1d-medium") if len(seeds_of(one)) == 6]
    scapes = [of_seeds(one, seeds_of(one)[:seeds]) for one in whole]
    found, others, total = power(scapes, rise)
    assert total > 100
    assert found >= share * total
    assert found <= 0.02 * total or share > 0
    assert others <= 0.02 * total


@pytest.mark.parametrize("factor", [1.4, 0.6])
def test_too_high_and_too_low_are_both_found(factor: float) -> None:
    clean = of_table(ADAMW)
    for lr, decay in inner(clean)[::3]:
        assert found_places(planted(clean, {(lr, decay, 0): factor})) == {(lr, decay)}


def test_all_lanes_of_a_pack_are_found_together() -> None:
    """They are every n-th run, so they are spread out, and each is judged without the others."""
    clean = of_table(ADAMW)
    for start, stride in product(range(3), (16, 17, 19)):
        lanes = pack(clean, start, stride)
        found = found_places(planted(clean, dict.fromkeys(lanes, 1.6)))
        wrong = {(lr, decay) for lr, decay, _ in lanes}
        assert found <= wrong
        assert found >= wrong & set(inner(clean))


def test_the_seed_that_is_wrong_is_named() -> None:
    random = np.random.default_rng(0)
    clean = noisy(Truth(rates=7, decays=8), 3, random, spread=0.004, examples=10_000)
    assert outliers(clean) == ()
    lr, decay = clean.lrs[3], clean.decays[4]
    [one] = outliers(planted(clean, {(lr, decay, 2): 1.6}))
    assert (one.lr, one.decay, one.seed) == (lr, decay, 2)


def test_a_cell_all_seeds_of_which_are_wrong_is_named_as_one() -> None:
    random = np.random.default_rng(1)
    clean = noisy(Truth(rates=7, decays=8), 3, random, spread=0.004, examples=10_000)
    lr, decay = clean.lrs[3], clean.decays[4]
    [one] = outliers(planted(clean, {(lr, decay, seed): 1.4 for seed in range(3)}))
    assert (one.lr, one.decay, one.seed) == (lr, decay, None)


@pytest.mark.slow
def test_more_seeds_in_the_basin_and_half_steps_along_the_ridge_change_nothing() -> None:
    """One seed everywhere, two more in the basin, and decays between those near the best."""
    found: list[set[tuple[float, float]]] = []
    alarms = 0
    for first in range(20):
        landscape = _irregular(np.random.default_rng(first))
        alarms += bool(outliers(landscape))
        middle = min(landscape.decays, key=lambda decay: abs(np.log2(decay) + 11.5))
        wrong = (landscape.lrs[3], middle)
        assert len(landscape.cells[wrong].seeds) == 3
        raised = planted(landscape, {(*wrong, 1): 1.7})
        found.append(found_places(raised) & {wrong})
    assert alarms == 0
    assert sum(map(len, found)) == 20


def _irregular(random: np.random.Generator) -> Landscape:
    fine = Truth(s=0.5, rates=7, decays=17, factor=2.0)
    # Twice as many decays, in half steps: every other one is kept but for those near the ridge.
    errors = Truth(s=0.5, rates=7, decays=9).errors()
    between = np.sqrt(errors[:, :-1] * errors[:, 1:])
    whole = np.empty((7, 17))
    whole[:, ::2], whole[:, 1::2] = errors, between
    splits = measured(whole, 3, random, spread=0.004, examples=10_000)
    scape = landscape_of(fine, splits)
    lambdas = 2.0 ** (np.arange(17) / 2 - 15)
    best = whole.min()
    cells = {}
    for (i, lr), (j, decay) in product(enumerate(scape.lrs), enumerate(lambdas.tolist())):
        near = whole[i, j] < 1.15 * best
        if j % 2 == 0 or near:
            cell = replace(scape.cells[lr, scape.decays[j]], decay=decay)
            kept = 3 if near else 1
            cells[lr, decay] = replace(
                cell,
                seeds=cell.seeds[:kept],
                chosen=cell.chosen[:kept],
                tested=cell.tested[:kept],
                losses=cell.losses[:kept],
            )
    decays = tuple(sorted({decay for _, decay in cells}))
    return replace(scape, decays=decays, cells=cells)


def test_what_is_beside_a_diverged_cell_is_not_judged() -> None:
    clean = of_table(ADAMW)
    wrong, beside = (clean.lrs[3], clean.decays[4]), (clean.lrs[4], clean.decays[5])
    raised = planted(clean, {(*wrong, 0): 1.6})
    assert found_places(raised) == {wrong}
    lost = {**raised.cells, beside: replace(raised.cells[beside], diverged=(0,))}
    assert outliers(replace(raised, cells=lost)) == ()


def test_a_landscape_too_small_to_know_its_noise_has_nothing_to_say() -> None:
    truth = Truth(rates=3, decays=3)
    small = landscape_of(truth, exact(truth.errors(), 1))
    assert outliers(planted(small, {(small.lrs[1], small.decays[1], 0): 3.0})) == ()
    assert outliers(replace(small, cells={}, lrs=(), decays=())) == ()


def test_a_missing_cell_is_not_an_outlier_and_makes_none() -> None:
    clean = of_table(ADAMW)
    for place in list(clean.cells)[::5]:
        cells = {key: cell for key, cell in clean.cells.items() if key != place}
        assert outliers(replace(clean, cells=cells)) == ()
