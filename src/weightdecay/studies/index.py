"""The index over all figures and tasks in a folder, made from the verdicts beside their pages."""

import json
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

from weightdecay import files
from weightdecay.site.index import IndexedFigure, Linked, index_page
from weightdecay.studies import STUDIES

_LEAD = (
    "What was judged of each claim of the paper, on each task. A link leads to what was measured. "
    "A dash means that nothing was trained to judge the claim there."
)


def write_index(folder: Path) -> Path:
    """Write index.html about every page in a folder: FOLDER/<task>-<scale>/<figure>/report.html."""
    path = folder / "index.html"
    with files.written(path) as file:
        text = index_page("The paper's claims, by figure and task", _LEAD, _figures(folder))
        file.write(text.encode())
    return path


def _figures(folder: Path) -> list[IndexedFigure]:
    pages = sorted(folder.glob("*/*/report.html"))
    found = []
    for name in STUDIES:
        own = {page.parent.parent.name: page for page in pages if page.parent.name == name}
        if own:
            found.append(_figure(name, own))
    return found


def _figure(name: str, pages: dict[str, Path]) -> IndexedFigure:
    verdicts = {place: _verdicts(page) for place, page in pages.items()}
    addresses = {place: quote(f"{place}/{name}/report.html") for place in pages}
    claims = []
    for at, row in enumerate(zip_longest(*verdicts.values()), 1):
        judged = {place: one for place, one in zip(verdicts, row, strict=True) if one is not None}
        words = " / ".join(dict.fromkeys(one["claim"] for one in judged.values()))
        outcomes = {
            place: Linked(one["outcome"], f"{addresses[place]}#claim-{at}")
            for place, one in judged.items()
            # Nothing was measured where there is no rule to judge it by.
            if one["rule"]
        }
        claims.append((words, outcomes))
    return IndexedFigure(name.replace("-", " ").capitalize(), addresses, claims)


def _verdicts(page: Path) -> list[dict[str, Any]]:
    file = page.with_name("verdicts.json")
    found: list[dict[str, Any]] = json.loads(file.read_text("utf-8")) if file.exists() else []
    return found
