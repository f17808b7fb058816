"""The interactive page: one HTML file with its data, its scripts and a plotting library inside.

It fetches nothing. Its content security policy allows no script but its own, by their hashes. What
a person must know is in the page without any script: what to use, and whether one knob may change
alone. Names come from other people's files: in the page they are escaped text, and for the scripts
they are JSON without any character that HTML gives a meaning.
"""

import json
from collections.abc import Mapping, Sequence
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
from weightdecay.site.document import content_hash, opening
from weightdecay.site.page_data import page_data
from weightdecay.site.page_landscape import PageLandscape
from weightdecay.site.parts import PageTable, Picture, picture, plain, section, table, text
from weightdecay.site.style import COLOURS

#: The scripts of the page, in the order in which they run.
SCRIPTS = (
    "positions.js",
    "heatmap.js",
    "marks.js",
    "cells.js",
    "curves.js",
    "rules.js",
    "claims.js",
    "downloads.js",
    "live.js",
    "page.js",
)
_LIBRARY = "vendor/echarts.min.js"
# What a page says until its scripts have run.
_LOADING = "Loading the pictures. They need JavaScript, which runs in this page alone."
_NOW = """\
<section id="now" hidden aria-label="Progress">
<p id="connection" role="status"></p>
<div id="stages"></div>
</section>
"""


def interactive(
    title: str,
    found: Sequence[PageLandscape],
    *,
    lead: str = QUESTION,
    top: Sequence[str] = (),
    command: str,
    notes: Sequence[str],
    claims: Sequence[PageClaim] = (),
    to_judge: str = "",
    pictures: Sequence[Picture] = (),
    tables: Sequence[PageTable] = (),
) -> str:
    """Return the page; empty parts are left out. `command` is what makes it again.

    `top` are its first sentences, and `to_judge` says which claims cannot be judged yet.
    """
    data = page_data(found) | fixed_data(command) | {"claims": claims_data(claims)}
    drawn = [picture(one, f"picture-{at}") for at, one in enumerate(pictures, 1)]
    numbers = [table(one, f"numbers-{at}") for at, one in enumerate(tables, 1)]
    return _page(
        title,
        data,
        lead=lead,
        first=f"{answers(found, top)}{tally(claims)}",
        middle=claims_section(claims, to_judge),
        last=f"{section('Figure', 'pictures', drawn)}{section('Numbers', 'numbers', numbers)}"
        f"{small_print(notes, command)}",
        footer=FOOTER if claims else "",
    )


def live_page(title: str, data: Mapping[str, Any], *, command: str) -> str:
    """Return a page that asks its own server for news. `data` has all that it shows first."""
    return _page(
        title,
        data,
        lead=QUESTION,
        first=data["answers"],
        middle=f'<div id="judged">\n{data["judged"]}</div>\n',
        last=small_print(data["notes"], command),
        connect="'self'",
    )


def fixed_data(command: str) -> dict[str, Any]:
    """Return what every page's scripts are given."""
    colours = {"ink": INK, "paper": PAPER, "muted": MUTED, "faint": FAINT}
    marks = {"stops": STOPS_OF_ERRORS, "recommended": RECOMMENDED, "outcomes": OUTCOMES}
    return {"command": command, "claims": [], "colours": colours | marks}


def small_print(notes: Sequence[str], command: str) -> str:
    """Return notes and the command that makes the page, as HTML."""
    small = [f"<p>{text(note)}</p>\n" for note in notes]
    made = f"<p>Made by <code>{escape(command)}</code></p>\n"
    return section("Small print", "small-print", [*small, made])


def _page(
    title: str,
    data: Mapping[str, Any],
    *,
    lead: str,
    first: str,
    middle: str = "",
    last: str,
    footer: str = "",
    connect: str = "",
) -> str:
    style = COLOURS + _read("page.css")
    library, own = _read(_LIBRARY), _own()
    policy = _policy(style, library, own, connect=connect)
    return f"""{opening(plain(title), policy=policy, style=style)}<header>
<h1>{text(title)}</h1>
<p class="question">{text(lead)}</p>
</header>
<main>
{_NOW if connect else ""}<div id="first">
{first}</div>
<p id="loading" role="status">{_LOADING}</p>
{middle}{_read("page.html")}
{last}</main>
{footer}<script type="application/json" id="data">{embedded(data)}</script>
<script>{library}</script>
<script>{own}</script>
</body>
</html>
"""


def embedded(data: Any) -> str:
    """Return data as JSON for a script element: ASCII, without a character that could end it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _policy(style: str, *scripts: str, connect: str = "") -> str:
    """Return a policy under which only these scripts run, and nothing is fetched but by `connect`.

    The library sets style attributes, which cannot be named by a hash. Older browsers only know
    `style-src`.
    """
    hashes = " ".join(map(content_hash, scripts))
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; style-src-elem "
        f"{content_hash(style)}; style-src-attr 'unsafe-inline'; img-src data: blob:; "
        f"base-uri 'none'; form-action 'none'{f'; connect-src {connect}' if connect else ''}"
    )


def _own() -> str:
    """Return the page's scripts as one, in a scope of their own."""
    return '(() => {\n"use strict";\n' + "\n".join(map(_read, SCRIPTS)) + "\n})();\n"


def _read(name: str) -> str:
    return (files("weightdecay.site") / "browser" / name).read_text("utf-8")
