"""The report: one whole page that fetches nothing, says what it was given, and says it to all."""

import io
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pages import bare
from weightdecay.colours import OUTCOMES, luminance
from weightdecay.schedules import Cosine
from weightdecay.site import PageClaim, PageInterval, PageTable, Picture, interactive

pytest.importorskip("matplotlib")
from weightdecay.figures import multipliers

ARXIV = "https://arxiv.org/abs/1711.05101"
VOID = {"meta"}
SVG = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg"
 width="72pt" height="36pt" viewBox="0 0 72 36"><metadata>by someone</metadata>
<defs><style>*{stroke-linejoin: round}</style><clipPath id="clip"><path d="M 0 0"/></clipPath>
<path id="letter" d="M 0 0"/></defs>
<g id="axes_1" clip-path="url(#clip)"><use xlink:href="#letter" style="filter: url('#clip')"/></g>
</svg>"""
PICTURE = Picture("A bowl", SVG, "Bright is good.")
INTERVAL = PageInterval(
    "AdamW", "held", "s", 0.02, -0.1, 0.1, -math.inf, 0.5, said="0.02 [−0.1, 0.1]"
)
CLAIM = PageClaim("Two knobs", "held", "s = 0.02 [−0.1, 0.1]", "Held if below 0.5.", [INTERVAL])
TABLE = PageTable("Best", [("algorithm", "error", "s"), ("AdamW", "2.86 %", "0.02 [−0.1, 0.1]")])
WHOLE: dict[str, Any] = {
    "title": "A report",
    "found": [],
    "lead": "All went well.",
    "pictures": [PICTURE, PICTURE],
    "claims": [CLAIM, replace(CLAIM, outcome="not held"), replace(CLAIM, outcome="held")],
    "tables": [TABLE, TABLE],
    "notes": ["One seed.", "Made by `make reproduce`."],
    "command": "make reproduce",
}


class Page(HTMLParser):
    """A page taken apart: its elements with their attributes, and the text a screen reader says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.said = ""
        self.hidden: int | None = None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, f"<{tag}/> closes itself only in a picture"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> says the same twice: {attrs}"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
            if ("aria-hidden", "true") in attrs and self.hidden is None:
                self.hidden = len(self.open)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1] == tag, f"</{tag}> closes {self.open}"
        if self.hidden == len(self.open):
            self.hidden = None
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.hidden is None and "style" not in self.open and "head" not in self.open:
            self.said += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def references(self) -> list[str]:
        """What the page refers to within itself, however it does."""
        found = []
        for _, attributes in self.elements:
            found += [attributes[name] for name in attributes if name.endswith("by")]
            found += [attributes["href"][1:]] if attributes.get("href", "")[:1] == "#" else []
            for value in attributes.values():
                found += re.findall(r"""url\(["']?#([^"')]+)""", value)
        return found


def made(**changed: Any) -> str:
    """Return the page without what is in its scripts."""
    return bare(interactive(**{**WHOLE, **changed}))


def drawn() -> Picture:
    """Return a figure of matplotlib's."""
    file = io.StringIO()
    multipliers([("cosine", Cosine(30))], updates=30).savefig(file, format="svg")
    return Picture("η", file.getvalue(), "It falls.")


def test_a_page_is_whole_and_its_headings_skip_no_level() -> None:
    page = Page(made())
    assert page.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(deeper <= level + 1 for level, deeper in pairwise(levels))


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).map(
    lambda text: text.replace("`", "'")
)


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXT, min_size=13, max_size=13))
def test_text_is_never_markup(words: list[str]) -> None:
    a, b, c, d, e, f, g, h, i, j, k, m, n = (
        f"<script>&amp;\"{at}'{w}" for at, w in enumerate(words)
    )
    page = Page(
        made(
            title=a,
            lead=b,
            pictures=[Picture(c, SVG, d)],
            claims=[PageClaim(e, "held", f, g)],
            tables=[PageTable(h, [(i, j), (k, m)])],
            notes=[n],
        )
    )
    assert len(page.all("script")) == 3
    assert [text for text in (a, b, c, d, e, f, g, h, i, j, k, m, n) if text not in page.said] == []
    [svg] = page.all("svg")
    assert svg["aria-label"] == c


def test_only_backticks_mean_something() -> None:
    page = made(notes=["`a < b` and *c* and one ` alone"])
    assert "<code>a &lt; b</code> and *c* and one ` alone" in page


def test_a_page_needs_nothing_but_itself() -> None:
    text = made(pictures=[drawn(), PICTURE])
    page = Page(text)
    without_hashes = re.sub("'sha256-[^']*'", "", text)  # which may have two slashes by chance
    assert re.findall(r"(?:https?:)?//[^\"'\s<]*", without_hashes) == [ARXIV]
    assert {ARXIV} == {link["href"] for link in page.all("a") if not link["href"].startswith("#")}
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert not re.search(r"@import|url\((?![\"']?#)", text)
    assert "default-src 'none'" in page.all("meta")[1]["content"]


def test_names_are_unique_and_every_reference_finds_its_own_picture() -> None:
    page = Page(made(pictures=[drawn(), drawn(), PICTURE, PICTURE]))
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.references) <= set(page.ids)
    picture = ""
    letters = 0
    for tag, attributes in page.elements:
        picture = attributes["id"] if tag == "svg" else picture
        if tag == "use":
            letters += 1
            assert attributes["href"].startswith(f"#{picture}-")
    assert letters > 20


def test_a_picture_brings_neither_a_prolog_nor_rules_for_the_whole_page() -> None:
    text = made()
    assert text.startswith("<!DOCTYPE html>\n")
    assert text.count("<!DOCTYPE") == 1
    assert not re.search(r"<\?xml|<metadata|xmlns", text)
    assert text.count("<style>") == 1
    assert [one["style"] for one in Page(text).all("svg")] == [
        "--width: 72pt; stroke-linejoin: round"
    ] * 2


def test_a_picture_is_named_and_described_and_keeps_its_shape() -> None:
    first, second = Page(made()).all("svg")
    assert first["role"] == "img"
    assert first["aria-label"] == PICTURE.title
    assert [first["aria-describedby"], second["aria-describedby"]] == [
        "picture-1-caption",
        "picture-2-caption",
    ]
    assert first["viewbox"] == "0 0 72 36"
    assert first["width"] == "72pt"
    assert "height" not in first


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["held"] * 7 + ["not decided"] * 3 + ["not held"] * 2, (7, 2, 3)),
        (["not decided"], (0, 0, 1)),
    ],
)
def test_outcomes_are_counted_in_words(outcomes: list[str], expected: tuple[int, int, int]) -> None:
    said = Page(made(claims=[replace(CLAIM, outcome=one) for one in outcomes])).said
    held, not_held, not_decided = expected
    words = " ".join(said.split())
    assert f" {held} held, {not_held} not held, {not_decided} not decided" in words


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_is_said_by_its_word_and_its_shape(outcome: str) -> None:
    shape = OUTCOMES[outcome][0]
    text = made(claims=[replace(CLAIM, outcome=outcome)])
    [verdict] = re.findall(r'<p class="verdict">(.*)</p>', text)
    assert re.sub("<[^>]*>", "", verdict) == f"{shape} {outcome}"


def test_a_table_says_what_its_columns_and_rows_are_and_numbers_stand_to_the_right() -> None:
    page = Page(made(tables=[TABLE]))
    scopes = [cell["scope"] for cell in page.all("th")]
    assert scopes == ["col", "col", "col", "row"]
    assert [cell.get("class") for cell in page.all("th")] == [None, "number", None, None]
    assert [cell.get("class") for cell in page.all("td")] == ["number", None]
    assert Page(made(tables=[PageTable("Only a header", [("a", "b")])])).all("td") == []


def test_a_part_with_nothing_to_show_is_left_out() -> None:
    nothing: dict[str, Any] = dict.fromkeys(("pictures", "claims", "tables", "notes"), ())
    page = Page(made(**nothing))
    assert not {"article", "figure", "ol", "table"} & {tag for tag, _ in page.elements}
    assert "held" not in page.said
    for part, tag in (("pictures", "figure"), ("claims", "ol"), ("tables", "table")):
        assert Page(made(**nothing | {part: WHOLE[part]})).all(tag)


def test_all_text_can_be_read_in_light_and_dark() -> None:
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", line))
        for line in made().splitlines()
        if ":root {" in line
    )
    for colours in (light, dark):
        for text in ("ink", "muted", *(word.replace(" ", "-") for word in OUTCOMES)):
            low, high = sorted(luminance(colours[one]) for one in (text, "paper"))
            assert (high + 0.05) / (low + 0.05) >= 4.5, text
    assert luminance(light["paper"]) > luminance(dark["paper"])
    assert light["card"] == dark["card"] == "#ffffff"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: replace(CLAIM, outcome="won"),
            "`outcome` must be one of 'held', 'not held', 'n",
        ),
        (lambda: PageTable("Best", [("a", "b"), ("c",)]), r"lengths \[2, 1\] in 'Best'. Fill"),
        (lambda: PageTable("Best", []), r"`rows` must be a header and rows as long as it, got len"),
        (lambda: PageTable("Best", [()]), r"got lengths \[0\]"),
        (
            lambda: made(pictures=[replace(PICTURE, svg="a.svg")]),
            "`svg` must be an SVG document, got 'a.svg' in 'A bowl', .*weightdecay.figures.save",
        ),
        (
            lambda: made(pictures=[replace(PICTURE, svg=SVG.replace("#letter", "//x/y.png"))]),
            "`svg` must refer to nothing outside itself, got '//x/y.png'. Embed",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


def test_the_same_data_give_the_same_bytes_and_need_neither_torch_nor_matplotlib() -> None:
    code = f"""
import sys
from math import inf
from weightdecay.site import PageClaim, PageInterval, PageTable, Picture, interactive
print(interactive(**{WHOLE!r}))
assert not {{"torch", "matplotlib"}} & set(sys.modules)
"""
    pages = [
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        ).stdout
        for seed in ("1", "2")
    ]
    assert pages == [interactive(**WHOLE) + "\n"] * 2
