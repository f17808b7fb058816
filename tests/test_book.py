"""What the pages say is what the records say: no number in them is typed by hand."""

import html
import json
import math
import random
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.landscapes import ended, record
from weightdecay.records import Run, RunConfig
from weightdecay.studies import STUDIES, book, scale
from weightdecay.studies.findings import Findings, command, draw, find, tell, thinned
from weightdecay.sweeps.export import export

ROOT = Path(__file__).parents[1]
RESULTS, PAGE, README = ROOT / "results", ROOT / "docs" / "reproduction.md", ROOT / "README.md"
AT = scale("mnist1d", "small")


def run_of(cell: RunConfig) -> Run:
    """Return a run in a bowl: diagonal with L2, upright without, and better."""
    noise = random.Random(cell.identity).gauss(0, 0.004)
    rate = math.log2(cell.lr) + (4 if "sgd" in cell.algorithm else 7)
    if cell.l2 is not None:
        off = math.log2(cell.l2 + 2**-20) + 8 + rate
    else:
        off = math.log2((cell.weight_decay or 0) + 2**-20) + 8
    error = 0.3 + 0.04 * (cell.l2 is not None) + 0.006 * (off**2 + rate**2)
    error = min(error, 0.9) + noise
    return ended(cell, test_error=error, validation_error=error)


@pytest.fixture(scope="module")
def figure_2() -> list[Run]:
    return [run_of(cell) for cell in STUDIES["figure-2"].cells(AT)]


@pytest.fixture(scope="module")
def committed() -> tuple[str, str]:
    return book.texts(RESULTS, README.read_text("utf-8"))


def test_the_page_says_what_the_committed_results_come_to(committed: tuple[str, str]) -> None:
    assert PAGE.read_text("utf-8") == committed[0], "`make book` brings it up to date"


def test_the_readme_says_what_the_committed_results_come_to(committed: tuple[str, str]) -> None:
    assert README.read_text("utf-8") == committed[1], "`make book` brings it up to date"


@pytest.mark.parametrize("page", [PAGE, README], ids=lambda page: page.name)
def test_pictures_and_pages_that_are_linked_are_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
    local = [link for link in links if "://" not in link]
    assert any(link.endswith("figure.png") for link in local)
    assert not [link for link in local if not (page.parent / link).exists()]


def test_committed_rulings_are_those_of_the_page() -> None:
    for path in RESULTS.glob("*/*/rulings.json"):
        for ruling in json.loads(path.read_text("utf-8")):
            row = f"| {ruling['claim']} | **{ruling['outcome']}** | {ruling['because']} |"
            assert row in PAGE.read_text("utf-8"), path


def test_every_study_of_both_small_tasks_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    for task in ("mnist1d", "text"):
        for name in STUDIES.keys() - {"supplement-1"}:
            assert f"    {command(STUDIES[name], scale(task, 'small'))}\n" in text


def judged(runs: list[Run]) -> Findings:
    return find(STUDIES["figure-2"], AT, runs)[0]


def test_a_study_is_judged_by_its_own_runs(figure_2: list[Run]) -> None:
    strangers = [
        ended(replace(run.config, batch=32), test_error=0.01, validation_error=0.01)
        for run in figure_2
    ]
    assert judged(figure_2 + strangers) == judged(figure_2)
    assert judged(figure_2).runs == len(figure_2)
    assert judged(strangers).rulings == ()


def test_the_order_of_runs_does_not_matter(figure_2: list[Run]) -> None:
    assert judged(figure_2[::-1] + figure_2) == judged(figure_2)


def test_claims_hold_on_landscapes_that_were_made_so(figure_2: list[Run]) -> None:
    outcomes = {ruling.claim: ruling.outcome for ruling in judged(figure_2).rulings}
    assert outcomes["Adam's basin lies on a diagonal"] == "held"
    assert outcomes["AdamW's basin stands upright"] == "held"
    assert outcomes["AdamW's best is better than Adam's"] == "held"
    assert outcomes["AdamW's best rivals SGD's and SGDW's"] == "held"
    assert outcomes["Adam gains nothing from L2 over λ = 0"] == "not held"
    assert outcomes["L2 and decay are the same for SGD, and not for Adam"] == "not held"


@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"supplement-1"}))
def test_every_claim_is_listed_whatever_is_missing(name: str) -> None:
    """With one run alone nothing is decided, and as much is claimed as on the page."""
    study = STUDIES[name]
    found, _ = find(study, AT, [run_of(study.cells(AT)[0])])
    text = (RESULTS / AT.folder / name / "rulings.json").read_text("utf-8")
    assert [ruling.claim for ruling in found.rulings] == [row["claim"] for row in json.loads(text)]
    assert {ruling.outcome for ruling in found.rulings} == {"not decided"}


def test_the_small_print_says_how_much_there_was(figure_2: list[Run]) -> None:
    assert judged(figure_2).small_print == (
        f"{len(figure_2)} runs of mlp on mnist1d (2000 examples); 48 epochs (1 of those that are "
        "compared in pairs); seeds 0 to 2; settings chosen by validation error, test error of the "
        "last epoch shown. "
        "weightdecay reproduce figure-2 --task mnist1d --scale small"
    )


def test_a_report_tells_all_that_was_found(figure_2: list[Run], tmp_path: Path) -> None:
    found, seen = find(STUDIES["figure-2"], AT, figure_2)
    draw(found, seen, tmp_path, formats=("svg",))
    page = tell(found, tmp_path).read_text("utf-8")
    rows = json.loads((tmp_path / "rulings.json").read_text("utf-8"))
    assert rows == [asdict(ruling) for ruling in found.rulings]
    for ruling in found.rulings:
        assert html.escape(ruling.claim) in page
    assert "<svg" in page


def test_a_study_that_lacks_a_run_is_left_out(figure_2: list[Run], tmp_path: Path) -> None:
    place = tmp_path / AT.folder
    place.mkdir()
    export(figure_2, place / "records.parquet")
    names = [found.study.name for found, _ in book.found_in(tmp_path)]
    assert names == ["figure-2", "supplement-1"]
    export(figure_2[:-1], place / "records.parquet")
    assert [found.study.name for found, _ in book.found_in(tmp_path)] == ["supplement-1"]
    with pytest.raises(ValueError, match="must have all runs of figure-2 on mnist1d-small"):
        book.texts(tmp_path, README.read_text("utf-8"))


def test_only_what_stands_between_the_marks_is_replaced(committed: tuple[str, str]) -> None:
    text = committed[1]
    again = book.inserted(text, "Nothing.\n")
    [begin, end] = re.findall(r"<!-- /?reproduction.*-->", text)
    assert again == f"{text.split(begin)[0]}{begin}\n\nNothing.\n\n{end}{text.split(end)[1]}"


@pytest.mark.parametrize("text", ["", "# A title\n", "<!-- /reproduction -->"])
def test_a_readme_without_marks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must have the marks <!-- reproduction.*has not"):
        book.inserted(text, "Nothing.\n")


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert book._markdown([["a|b", "c"], ["d", "e"]]) == "| a\\|b | c |\n| --- | --- |\n| d | e |\n"


def test_curves_keep_their_epochs_and_the_rest_the_last() -> None:
    for name, kept in (("figure-4", 3), ("figure-1", 1)):
        cell = STUDIES[name].cells(AT)[0]
        run = Run(cell, tuple(record(cell, epoch=epoch) for epoch in (1, 2, 3)))
        [left] = thinned([run], AT, STUDIES.values())
        assert left.records == run.records[-kept:]
