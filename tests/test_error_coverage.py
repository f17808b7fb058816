"""The error to expect at a setting: its interval covers the truth as often as the page says."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.error_coverage import KINDS, MARK, SIMULATIONS, TITLES, coverage, row, simulated
from tests.landscapes import END, QUADRATIC, Truth, exact, landscape_of, noisy
from weightdecay.results import Point, landscapes, recommend
from weightdecay.results.kriging import expected_error
from weightdecay.site import advice
from weightdecay.sweeps import Store

pytestmark = pytest.mark.cpu("numbers of finished runs do not depend on the device")
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "landscape.md"
COMMITTED = ROOT / "results" / "cifar10-small"
#: The least share of intervals that must cover the truth: three standard deviations below 95 %.
LEAST = 0.95 - 3 * math.sqrt(0.95 * 0.05 / SIMULATIONS)
#: The rows that the tests simulate again: before, 0 to 60 % of such intervals covered the truth.
REPEATED = [
    ("steep bowl", "7 × 9, 3 seeds"),
    ("cliff", "7 × 11, 5 seeds"),
    ("bowl of ln e", "80 scattered"),
]


def page_rows() -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of the page's table, by landscape and runs."""
    _, _, rest = PAGE.read_text("utf-8").partition(MARK)
    lines = rest.partition(END)[0].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert tuple(rows[0]) == TITLES
    return {(row[0], row[1]): dict(zip(TITLES, row, strict=True)) for row in rows[2:]}


def share(percent: str) -> float:
    return float(percent.replace("−", "-").rstrip("% ")) / 100


@pytest.mark.slow
@pytest.mark.parametrize(("name", "runs"), REPEATED)
def test_the_interval_of_the_error_covers_the_truth(name: str, runs: str) -> None:
    [kind] = [one for one in KINDS if (one.name, one.runs) == (name, runs)]
    seen = coverage(kind, simulations=30)
    # Three standard deviations of 30 simulations below 95 %.
    assert seen.covered >= 0.83
    assert abs(seen.bias) < 0.03
    assert seen.half < 0.08


@pytest.mark.slow
@pytest.mark.parametrize(("name", "runs"), REPEATED)
def test_the_page_says_how_often_the_interval_covers_the_truth(name: str, runs: str) -> None:
    [kind] = [one for one in KINDS if (one.name, one.runs) == (name, runs)]
    found = dict(zip(TITLES, row(kind, 100), strict=True))
    said = page_rows()[name, runs]
    # A tenth as many simulations, and drawn by another numpy, may differ by chance.
    assert share(said["covered"]) == pytest.approx(share(found["covered"]), abs=0.05)
    assert share(said["bias"]) == pytest.approx(share(found["bias"]), abs=0.01)


def test_the_page_has_every_kind_of_landscape_and_each_covers_as_often_as_it_must() -> None:
    rows = page_rows()
    assert list(rows) == [(one.name, one.runs) for one in KINDS]
    assert f"{SIMULATIONS:,} simulations" in PAGE.read_text("utf-8")
    for place, one in rows.items():
        assert share(one["covered"]) >= LEAST, place
        assert share(one["regret"]) <= (0.04 if "scattered" in place[1] else 0.02), place


@pytest.mark.skipif(not COMMITTED.is_dir(), reason="a source distribution has no results")
def test_the_errors_of_fresh_seeds_on_cifar_10_lie_in_the_intervals_that_the_grid_gave() -> None:
    """Seeds that chose nothing trained 50 settings near the best, most of them off the grid."""
    pytest.importorskip("pyarrow")
    grids = {
        scape.config.algorithm: scape for scape in landscapes(Store(COMMITTED / "figure-2").runs())
    }
    covered = []
    for judged in landscapes(COMMITTED / "figure-2-judging.parquet"):
        grid = grids[judged.config.algorithm]
        places = np.log2([place for place in grid.cells if place[1] > 0])
        for cell in judged.cells.values():
            if not cell.decay:
                continue
            apart = np.abs(places - np.log2([cell.lr, cell.decay])).max(1).min()
            if cell.mean < 0.15 and apart < 0.75:
                error = expected_error(grid, cell.lr, cell.decay).error
                covered.append(error.low <= cell.mean <= error.high)
    assert len(covered) == 50
    assert sum(covered) >= 45


def test_one_seed_has_an_expected_error_and_says_why_it_has_no_interval() -> None:
    found = recommend(noisy(Truth(s=0.0), 1, np.random.default_rng(0)))
    assert found.error.value == pytest.approx(0.3, abs=0.02)
    assert math.isnan(found.error.low)
    assert found.no_interval == "one seed shows no noise"
    assert "; no interval: one seed shows no noise" in dict(advice.block(found))["error"]


def test_a_lucky_run_is_not_believed() -> None:
    """All settings are alike, and the best of them is no better than the mean."""
    random = np.random.default_rng(0)
    x, z = random.uniform(-3, 3, (2, 40))
    errors = random.normal(0.2, 0.01, 40)
    [scape] = landscapes(
        Point(lr=float(2.0**a), decay=float(2.0 ** (b - 9)), way="weight_decay", tested=float(e))
        for a, b, e in zip(x, z, errors, strict=True)
    )
    best = scape.best
    found = expected_error(scape, best.lr, best.decay).error
    assert best.mean < 0.185
    assert found.low < 0.2 < found.high
    assert abs(found.value - 0.2) < 0.6 * abs(best.mean - 0.2)


def test_losses_below_zero_have_an_interval_too() -> None:
    [kind] = [one for one in KINDS if one.name == "bowl"]
    scape = simulated(kind, np.random.default_rng(0)).landscape
    cells = {
        place: replace(cell, tested=tuple(error - 0.2 for error in cell.tested))
        for place, cell in scape.cells.items()
    }
    lower = expected_error(replace(scape, cells=cells, metric="loss"), 2.0**-7, 2.0**-11).error
    error = expected_error(scape, 2.0**-7, 2.0**-11).error
    assert lower.value == pytest.approx(error.value - 0.2, abs=0.002)
    assert lower.low < lower.value < lower.high < 0


@pytest.mark.parametrize(("rates", "decays"), [(2, 7), (7, 2), (1, 9)])
def test_few_values_of_a_knob_are_enough_for_an_expected_error(rates: int, decays: int) -> None:
    truth = replace(QUADRATIC, rates=rates, decays=decays)
    found = expected_error(landscape_of(truth, exact(truth.errors())), 2.0**-7, 2.0**-11)
    assert found.error.value == pytest.approx(0.3, rel=0.01)
