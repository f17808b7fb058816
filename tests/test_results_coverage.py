"""Intervals cover the truth as often as they promise, and docs/exponents.md says how often."""

from pathlib import Path

import numpy as np
import pytest

from tests.landscapes import (
    BEGIN,
    END,
    EXPONENTS,
    SETTINGS,
    TITLES,
    Truth,
    coverage,
    inserted,
    settled,
)

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "exponents.md"
#: Another numpy draws other simulations than those of which the page tells.
SAME_DRAWS = f"numpy=={np.__version__}" in (ROOT / "constraints.txt").read_text("utf-8").split()
#: What share of intervals may cover: of 500 simulations, what was asked for; of 150, what is within
#: three standard deviations, √(0.95 · 0.05 / 150) each, of the 95 % that an interval promises.
ALLOWED = {500: (0.90, 0.98), 150: (0.896, 1.0)}


def page_rows() -> dict[tuple[str, ...], dict[str, str]]:
    """Return the rows of the page's table, by what they are of."""
    _, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    lines = rest.partition(END)[0].strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert tuple(rows[0]) == TITLES
    return {tuple(row[:4]): dict(zip(TITLES, row, strict=True)) for row in rows[2:]}


def share(percent: str) -> float:
    return float(percent.rstrip("%")) / 100


@pytest.mark.slow
@pytest.mark.parametrize("s", EXPONENTS)
@pytest.mark.parametrize(("size", "factor", "seeds"), [(7, 2.0, 3), (9, 2.0, 5), (7, 4.0, 3)])
def test_the_interval_covers_the_truth(s: float, size: int, factor: float, seeds: int) -> None:
    """Of 500 simulations at s = ½, 150 elsewhere."""
    simulations = 500 if s == 0.5 else 150
    truth = Truth(s=s, rates=size, decays=size, factor=factor)
    seen = coverage(truth, seeds, simulations=simulations)
    low, high = ALLOWED[simulations]
    assert seen.values >= 0.8 * simulations
    assert low <= seen.profile <= high
    assert seen.check >= 0.88
    assert abs(seen.bias) < seen.spread / 4
    # Of other simulations, the page may differ by chance; of the same, only by another rounding.
    apart = 0.005 if simulations == 500 and SAME_DRAWS else 0.06
    said = page_rows()[settled(size, factor, seeds, s)]
    assert share(said["profile"]) == pytest.approx(seen.profile, abs=apart)
    assert share(said["check"]) == pytest.approx(seen.check, abs=apart)


def test_the_page_has_every_setting_and_each_covers_as_was_asked() -> None:
    rows = page_rows()
    assert list(rows) == [settled(*setting, s) for setting in SETTINGS for s in EXPONENTS]
    low, high = ALLOWED[500]
    assert all(low <= share(row["profile"]) <= high for row in rows.values())
    assert all(row["values"].endswith("/500") for row in rows.values())


def test_the_table_is_put_between_its_marks_and_nowhere_else() -> None:
    page = f"# Before\n\n{BEGIN}\n\n| old |\n\n{END}\n\nAfter\n"
    once = inserted(page, [("s", "profile"), ("0", "95.6%")])
    table = "| s | profile |\n| --- | --- |\n| 0 | 95.6% |"
    assert once == f"# Before\n\n{BEGIN}\n\n{table}\n\n{END}\n\nAfter\n"
    assert inserted(once, [("s", "profile"), ("0", "95.6%")]) == once
    with pytest.raises(ValueError, match=r"must have the marks <!-- coverage: .* and has not"):
        inserted(page.replace(END, ""), [("s",)])


def test_more_seeds_give_a_narrower_interval() -> None:
    truth = Truth(s=0.5, rates=8, decays=8)
    few, many = (coverage(truth, seeds, simulations=30).width for seeds in (2, 8))
    assert many < 0.6 * few
