"""Intervals cover the truth as often as they promise, and docs/exponents.md says how often."""

from pathlib import Path

import numpy as np
import pytest

from tests import tilts
from tests.landscapes import (
    BEGIN,
    CLIFF,
    END,
    SCENARIOS,
    TITLES,
    Scenario,
    coverage,
    told,
)
from tests.tables import inserted
from weightdecay.results.estimate import student

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "exponents.md"
#: Another numpy draws other simulations than those of which the page tells.
SAME_DRAWS = f"numpy=={np.__version__}" in (ROOT / "constraints.txt").read_text("utf-8").split()
#: The least share of intervals that must cover the truth.
LEAST = 0.93
#: How many times as wide an interval may be as one of Student's t over seeds alone: it also allows
#: for best decays off their line. With little noise, what the estimators differ by is nearly all.
WIDEST = 1.6
#: The rows that the tests simulate again.
REPEATED = [
    *(("cliff", 3), ("drift +0.7", 3), ("near an edge", 3)),
    *(("tilting seeds", 2), ("half steps", 2)),
]


def page_rows() -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of the page's table, by landscape and seeds."""
    _, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    lines = rest.partition(END)[0].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert tuple(rows[0]) == TITLES
    return {(row[0], row[1]): dict(zip(TITLES, row, strict=True)) for row in rows[2:]}


def share(percent: str) -> float:
    return float(percent.rstrip("%")) / 100


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seeds"), REPEATED)
def test_the_interval_covers_the_truth(name: str, seeds: int) -> None:
    [scenario] = [one for one in SCENARIOS if (one.name, one.seeds) == (name, seeds)]
    found = dict(zip(TITLES, told(scenario, coverage(scenario)), strict=True))
    assert share(found["covered"]) >= LEAST
    # Of other simulations, the page may differ by chance; of the same, only by another rounding.
    apart = 0.005 if SAME_DRAWS else 0.04
    said = page_rows()[name, str(seeds)]
    for title in ("covered", "check", "s₋", "s₊", "disagree", "knee"):
        assert share(said[title]) == pytest.approx(share(found[title]), abs=apart)


def test_the_page_has_every_landscape_and_each_covers_as_often_as_it_must() -> None:
    rows = page_rows()
    assert list(rows) == [(one.name, str(one.seeds)) for one in SCENARIOS]
    for place, row in rows.items():
        assert row["values"].endswith("/1000")
        assert share(row["covered"]) >= LEAST, place
        over_seeds = student(int(place[1]) - 1) * float(row["sd"])
        assert float(row["±"]) <= WIDEST * over_seeds or "little noise" in place[0], place


def test_the_table_is_put_between_its_marks_and_nowhere_else() -> None:
    page = f"# Before\n\n{BEGIN}\n\n| old |\n\n{END}\n\nAfter\n"
    once = inserted(page, [("s", "profile"), ("0", "95.6%")], (BEGIN, END))
    table = "| s | profile |\n| --- | --- |\n| 0 | 95.6% |"
    assert once == f"# Before\n\n{BEGIN}\n\n{table}\n\n{END}\n\nAfter\n"
    assert inserted(once, [("s", "profile"), ("0", "95.6%")], (BEGIN, END)) == once
    with pytest.raises(ValueError, match=r"must have the marks <!-- coverage: .* and has not"):
        inserted(page.replace(END, ""), [("s",)], (BEGIN, END))


def test_the_page_says_what_seeds_can_show_of_tilts() -> None:
    _, _, rest = PAGE.read_text("utf-8").partition(tilts.BEGIN)
    lines = rest.partition(tilts.END)[0].strip().splitlines()
    said = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    found = tilts.rows()
    assert [row[:2] for row in (said[0], *said[2:])] == [list(row[:2]) for row in found]
    for before, row in zip(said[2:], found[1:], strict=True):
        for one, other in zip(before[2:], row[2:], strict=True):
            assert float(one.rstrip("%")) == pytest.approx(float(other.rstrip("%")), abs=0.31)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_students_interval_is_right_whatever_seeds_tilt(seeds: int) -> None:
    shown = np.exp(np.linspace(-9, 9, 91))
    half = tilts.RULES["the jackknife: Student's t over seeds"](shown, seeds)
    for tilt in tilts.TILTS:
        assert tilts.covered(half, seeds, tilt) == pytest.approx(0.95, abs=0.001)


def test_two_seeds_cannot_be_narrow_and_cover_every_tilt() -> None:
    narrow = tilts.narrowest(2)
    for tilt in tilts.TILTS:
        assert tilts.covered(narrow, 2, tilt) >= tilts.LEAST - 1e-6
    assert tilts.width(narrow, 2, 0.0) > 3 * 1.96
    assert tilts.width(tilts.narrowest(5), 5, 0.0) < 1.25 * 1.96


def test_more_seeds_give_a_narrower_interval() -> None:
    few, many = (
        coverage(Scenario("cliff", CLIFF, seeds), simulations=30).width for seeds in (2, 8)
    )
    assert many < 0.8 * few
