"""The index over figures and tasks: every judged claim is one link, which leads somewhere."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.browser import browser, needs_browser
from weightdecay.site import PageClaim, interactive
from weightdecay.studies.index import write_index

pytestmark = pytest.mark.cpu("a page of finished runs does not depend on the device")
HELD: dict[str, Any] = {"claim": "SGDW < SGD", "outcome": "held", "rule": "Held if below 0."}
OPEN: dict[str, Any] = {"claim": "Adam is worse", "outcome": "not decided", "rule": "The same."}
MISSING: dict[str, Any] = {"claim": "Adam is worse", "outcome": "not decided", "rule": ""}


def told(folder: Path, verdicts: list[dict[str, Any]]) -> None:
    """Write a page and its verdicts."""
    folder.mkdir(parents=True)
    (folder / "verdicts.json").write_text(json.dumps(verdicts), "utf-8")
    claims = [PageClaim(one["claim"], one["outcome"], "", one["rule"]) for one in verdicts]
    page = interactive("A figure", [], command="", notes=[], claims=claims)
    (folder / "report.html").write_text(page, "utf-8")


def some(folder: Path) -> str:
    told(folder / "mnist1d-small" / "figure-2", [HELD, OPEN])
    told(folder / "text-small" / "figure-2", [HELD, MISSING])
    told(folder / "text-small" / "figure-1", [OPEN])
    told(folder / "text-small" / "supplement-1", [])
    return write_index(folder).read_text("utf-8")


def cells(page: str) -> list[list[str]]:
    """Return the text of the table, row by row."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page, flags=re.DOTALL)
    return [
        [
            unescape(re.sub(r"<[^>]+>", "", cell)).strip()
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL)
        ]
        for row in rows
    ]


def test_every_claim_has_a_row_and_every_task_a_column(tmp_path: Path) -> None:
    assert cells(some(tmp_path)) == [
        ["claim", "mnist1d-small", "text-small"],
        ["Figure 1", "–", "page"],
        ["Adam is worse", "–", "◐ not decided"],
        ["Figure 2", "page", "page"],
        ["SGDW < SGD", "● held", "● held"],
        ["Adam is worse", "◐ not decided", "–"],
        ["Supplement 1", "–", "page"],
    ]


def test_every_link_leads_to_a_page_and_to_its_claim(tmp_path: Path) -> None:
    links = re.findall(r'href="([^"]*)"', some(tmp_path))
    assert len(links) == 4 + 4
    for link in links:
        place, _, anchor = unquote(unescape(link)).partition("#")
        page = (tmp_path / place).read_text("utf-8")
        assert not anchor or f'id="{anchor}"' in page


def test_a_hostile_folder_and_a_hostile_claim_are_text(tmp_path: Path) -> None:
    hostile = '"><script>alert(1)<'
    told(tmp_path / hostile / "figure-2", [{**HELD, "claim": hostile}])
    page = write_index(tmp_path).read_text("utf-8")
    assert "<script" not in page
    assert cells(page)[0] == ["claim", hostile]
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_a_folder_without_pages_has_an_index_without_rows(tmp_path: Path) -> None:
    assert cells(write_index(tmp_path).read_text("utf-8")) == [["claim"]]


@needs_browser()
def test_a_link_opens_the_page_at_the_words_of_the_claim(tmp_path: Path) -> None:
    some(tmp_path)
    with browser(tmp_path) as shown:
        shown.open(tmp_path / "index.html", width=500, dark=True)
        shown.keep("index")
        assert shown.js("return document.documentElement.scrollWidth") <= 500
        shown.js("document.querySelector('a[href$=\"#claim-2\"]').click()")
        shown.settle()
        opened = "document.getElementById('claim-2').closest('details').open"
        assert shown.js(f"return {opened}")
        assert shown.complaints() == []
