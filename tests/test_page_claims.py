"""The forest plot of a study's page: every interval that decided something, where it belongs."""

import math
import re
from pathlib import Path

import pytest

from tests.browser import browser, needs_browser
from tests.pages import embedded_in, text_of
from weightdecay.colours import OUTCOMES
from weightdecay.results import Estimate, Exponent, Judgement
from weightdecay.site import PageClaim, PageInterval, interactive
from weightdecay.studies import STUDIES, scale
from weightdecay.studies.committed import _imported, _registered
from weightdecay.studies.findings import find
from weightdecay.studies.page import tell
from weightdecay.studies.page_claims import intervals
from weightdecay.studies.reasons import Comparison, Difference, Quantity
from weightdecay.studies.reasons import Size as Sized
from weightdecay.studies.verdicts import Verdict, all_of, compared, diagonal, judged, sized, unseen

pytestmark = pytest.mark.cpu("a page of finished runs does not depend on the device")
RESULTS = Path(__file__).parents[1] / "results"
LESS = Estimate(-0.02, -0.03, -0.01, 5)
MORE = Estimate(0.02, 0.01, 0.03, 5)
NEITHER = Estimate(0.0, -0.01, 0.02, 5)


def judgement(ratio: Estimate) -> Judgement:
    return Judgement(8, ratio, ratio, None)


VERDICTS = [
    *(judged("a difference", Difference("", one, below=0.0)) for one in (LESS, MORE, NEITHER)),
    *(judged("within", Difference("", one, above=-0.01, below=0.01)) for one in (LESS, MORE)),
    *(compared("a ratio", Comparison("", judgement(one))) for one in (LESS, MORE, NEITHER)),
    *(compared("alike", Comparison("", judgement(one), 1.03, both=True)) for one in (LESS, MORE)),
    *(sized("a size", Sized("", one, 0.97)) for one in (LESS, MORE, NEITHER)),
    *(sized("times", Sized("", one, 1.05)) for one in (LESS, MORE, NEITHER)),
    diagonal("s", Exponent(1.0, 0.8, 1.2)),
    diagonal("s", Exponent(0.0, -0.2, 0.2)),
    diagonal("s", Exponent(0.0, -math.inf, 0.2)),
    judged("a share", Quantity("its share", LESS, below=0.0)),
]


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda one: f"{one.claim}-{one.outcome}")
def test_an_interval_lies_in_the_shaded_range_if_and_only_if_the_claim_holds(
    verdict: Verdict,
) -> None:
    [row] = intervals(verdict)
    inside = row.low > row.above and row.high < row.below
    outside = row.high < row.above or row.low > row.below
    assert inside == (verdict.outcome == "held")
    assert outside == (verdict.outcome == "not held")
    assert row.low <= row.value <= row.high


def test_every_part_of_a_claim_has_a_row_and_what_was_not_measured_has_none() -> None:
    parts = [VERDICTS[0], unseen("a run", "There are no runs."), all_of("more", VERDICTS[1:3])]
    rows = intervals(all_of("all", parts))
    assert [row.part.partition(",")[0] for row in rows] == ["a difference", "more", "more"]
    assert intervals(diagonal("s", Exponent(None, -math.inf, math.inf, why="few"))) == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of Figure 2 on mnist1d, as `make reproduce` writes it."""
    at, study = scale("mnist1d", "medium"), STUDIES["figure-2"]
    runs, second = (
        _imported(RESULTS, f"{at.folder}/{name}.parquet")[at.folder]
        for name in ("records", "judging")
    )
    registration = _registered(RESULTS / at.folder / study.name)
    found, seen = find(study, at, runs, registration=registration, second=second)
    return tell(found, seen, tmp_path_factory.mktemp("page"), drawn=False)


def test_the_first_screen_answers_for_every_method_in_plain_words(page: Path) -> None:
    told = text_of(page.read_text("utf-8"))
    first = told[: told.index("Every claim in words")]
    for method in ("SGD", "SGDW", "Adam", "AdamW"):
        assert f" {method} learning rate α " in first
    assert first.count("Change α and leave λ? ") == 4
    assert first.count("If you multiply α by 4, ") >= 4
    # Readers who know torch alone must not pass λ, and see what their own habit costs.
    assert re.search(
        r"AdamW, [\d.]+ % with α = \S+ and λ = \S+; torch's weight_decay is then ", first
    )
    assert first.count("If that stays, the error rises by ") == 2  # SGDW and AdamW
    before_numbers = first.partition("All numbers")[0]
    for riddle in ("ties", " s = ", "[", "("):
        assert riddle not in before_numbers


def test_the_settings_of_a_registered_figure_are_those_that_fresh_seeds_judged(page: Path) -> None:
    text = page.read_text("utf-8")
    at = scale("mnist1d", "medium")
    registration = _registered(RESULTS / at.folder / "figure-2")
    assert registration is not None
    for scape in embedded_in(text)["landscapes"]:
        choice = registration.methods[scape["title"].lower()].choice
        for own, wanted in (
            (scape["advice"]["lr"], choice.lr),
            (scape["advice"]["decay"], choice.decay),
        ):
            assert own == pytest.approx([wanted] * 3, rel=1e-5)
    assert f"its error measured by {len(registration.judges)} other seeds" in text_of(text)
    said = embedded_in(text)["aboutMarks"]
    assert "use: the one that was registered and that other seeds have judged." in said


def test_a_hostile_claim_does_nothing() -> None:
    hostile = "</script><script>alert(1)</script>"
    row = PageInterval(hostile, "held", hostile, 0, -1, 1, -2, 2, hostile)
    text = interactive(
        "t", [], command="", notes=[], claims=[PageClaim(hostile, "held", hostile, hostile, [row])]
    )
    assert hostile not in text
    assert embedded_in(text)["claims"][0]["part"] == hostile


@needs_browser()
def test_the_plot_draws_every_interval_and_says_it_in_words(page: Path, tmp_path: Path) -> None:
    rows = embedded_in(page.read_text("utf-8"))["claims"]
    assert len(rows) > 10
    with browser(tmp_path) as shown:
        for width, dark in ((1280, False), (500, True)):
            shown.open(page, width=width, dark=dark)
            shown.settle()
            drawn = "return document.querySelector('#forest .picture')"
            label = shown.js(f"{drawn}.getAttribute('aria-label')")
            for row in rows:
                assert f"{row['outcome']}: {row['claim']}" in label
            fills = shown.js(
                "return [...document.querySelectorAll('#forest svg path')]"
                ".map((one) => one.getAttribute('fill'))"
            )
            for outcome, (_, light, black) in OUTCOMES.items():
                colour = black if dark else light
                count = sum(row["outcome"] == outcome for row in rows)
                assert fills.count(colour) >= count
            shown.keep(f"reproduce-{width}{'-dark' * dark}")
            assert shown.js("return document.documentElement.scrollWidth") <= width
            assert shown.complaints() == []
