"""The interactive page: one HTML file with its data, its scripts and a plotting library inside.

It fetches nothing. Its content security policy allows no script but its own, by their hashes. What
a person must know is in the page without any script: what to use, and whether one knob may change
alone. Names come from other people's files: in the page they are escaped text, and for the scripts
they are JSON without any character that HTML gives a meaning.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from weightdecay.colours import (
    FAINT,
    INK,
    MUTED,
    OUTCOMES,
    PAPER,
    RECOMMENDED,
    STOPS_OF_ERRORS,
)
from weightdecay.site.answers import QUESTION, answers
from weightdecay.site.claims import FOOTER, PageClaim, claims_data, claims_section, tally
from weightdecay.site.document import opening
from weightdecay.site.page_data import PageLandscape, page_data
from weightdecay.site.parts import PageTable, Picture, picture, plain, section, table, text
from weightdecay.site.style import COLOURS

#: The scripts of the page, in the order in which they run.
SCRIPTS = (
    "positions.js",
    "heatmap.js",
    "cells.js",
    "curves.js",
    "rules.js",
    "claims.js",
    "downloads.js",
    "page.js",
)
_LIBRARY = "vendor/echarts.min.js"


def interactive(
    title: str,
    found: Sequence[PageLandscape],
    *,
    lead: str = QUESTION,
    command: str,
    notes: Sequence[str],
    claims: Sequence[PageClaim] = (),
    pictures: Sequence[Picture] = (),
    tables: Sequence[PageTable] = (),
) -> str:
    """Return the page; empty parts are left out. `command` is what makes it again."""
    data = page_data(found) | {
        "command": command,
        "claims": claims_data(claims),
        "colours": {
            "stops": STOPS_OF_ERRORS,
            "ink": INK,
            "paper": PAPER,
            "muted": MUTED,
            "faint": FAINT,
            "recommended": RECOMMENDED,
            "outcomes": OUTCOMES,
        },
    }
    style = COLOURS + _read("page.css")
    library, own = _read(_LIBRARY), _own()
    drawn = [picture(one, f"picture-{at}") for at, one in enumerate(pictures, 1)]
    numbers = [table(one, f"numbers-{at}") for at, one in enumerate(tables, 1)]
    small = [f"<p>{text(note)}</p>\n" for note in notes]
    small.append(f"<p>Made by <code>{escape(command)}</code></p>\n")
    return f"""{opening(plain(title), policy=_policy(style, library, own), style=style)}<header>
<h1>{text(title)}</h1>
<p class="question">{text(lead)}</p>
</header>
<main>
{answers(found)}{tally(claims)}<noscript><p>The pictures below need JavaScript. It runs in this file
alone.</p></noscript>
{claims_section(claims)}{_read("page.html")}
{section("Figure", "pictures", drawn)}{section("Numbers", "numbers", numbers)}\
{section("Small print", "small-print", small)}</main>
{FOOTER if claims else ""}<script type="application/json" id="data">{embedded(data)}</script>
<script>{library}</script>
<script>{own}</script>
</body>
</html>
"""


def embedded(data: Any) -> str:
    """Return data as JSON for a script element: ASCII, without a character that could end it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _policy(style: str, *scripts: str) -> str:
    """Return a policy under which nothing is fetched and only these scripts run.

    The library sets style attributes, which cannot be named by a hash. Older browsers only know
    `style-src`.
    """
    hashes = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; style-src-elem "
        f"{_hash(style)}; style-src-attr 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _own() -> str:
    """Return the page's scripts as one, in a scope of their own."""
    return '(() => {\n"use strict";\n' + "\n".join(map(_read, SCRIPTS)) + "\n})();\n"


def _read(name: str) -> str:
    return (files("weightdecay.site") / "browser" / name).read_text("utf-8")
