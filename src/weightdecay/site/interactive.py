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
from weightdecay.labels import AXES
from weightdecay.number_format import reported
from weightdecay.results import Decays
from weightdecay.site import advice, rules
from weightdecay.site.document import opening
from weightdecay.site.page_data import PageLandscape, page_data
from weightdecay.site.style import COLOURS
from weightdecay.table import shown

#: The scripts of the page, in the order in which they run.
SCRIPTS = (
    "positions.js",
    "heatmap.js",
    "cells.js",
    "curves.js",
    "rules.js",
    "downloads.js",
    "page.js",
)
_LIBRARY = "vendor/echarts.min.js"
# Which outcome of a claim has the colour and the shape of an answer.
_ANSWERS = {"yes": "held", "no": "not held", "not decided": "not decided"}
_QUESTION = "Which learning rate α, which decay λ, and may you change one alone?"


def interactive(
    title: str, found: Sequence[PageLandscape], *, command: str, notes: Sequence[str]
) -> str:
    """Return the page. `command` is what makes it again."""
    data = page_data(found) | {
        "command": command,
        "colours": {
            "stops": STOPS_OF_ERRORS,
            "ink": INK,
            "paper": PAPER,
            "muted": MUTED,
            "faint": FAINT,
            "recommended": RECOMMENDED,
        },
    }
    style = COLOURS + _read("page.css")
    library, own = _read(_LIBRARY), _own()
    small = "\n".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"""{opening(title, policy=_policy(style, library, own), style=style)}<header>
<h1>{escape(title)}</h1>
<p class="question">{_QUESTION}</p>
</header>
<main>
<section id="answers" aria-label="What to use">
{"".join(_answer(one, at) for at, one in enumerate(found))}</section>
<noscript><p>The pictures below need JavaScript. It runs in this file alone.</p></noscript>
{_read("page.html")}
<section id="small-print">
<h2>Small print</h2>
{small}
<p>Made by <code>{escape(command)}</code></p>
</section>
</main>
<script type="application/json" id="data">{embedded(data)}</script>
<script>{library}</script>
<script>{own}</script>
</body>
</html>
"""


def embedded(data: Any) -> str:
    """Return data as JSON for a script element: ASCII, without a character that could end it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _answer(one: PageLandscape, at: int) -> str:
    """Return a card: the setting to use, its error, and whether α may change alone."""
    head = f'<article class="answer" id="answer-{at}">\n<h2>{escape(one.title)}</h2>\n'
    if one.advice is None:
        return f"{head}<p>{escape(one.why)}</p>\n</article>\n"
    word, done = rules.alone(one.advice)
    best_run = "<p>The best run: no surface could be fitted.</p>\n" if one.advice.best_run else ""
    outcome = _ANSWERS[word]
    value, ends = advice.expected(one.advice)
    names = ["learning rate α", " ".join(AXES[one.landscape.way])]
    settings = advice.knobs(one.advice).values()
    rows = [
        *(_row(name, *_apart(text)) for name, text in zip(names, settings, strict=True)),
        *_in_torch(one.advice.decays),
        _row(reported([one.landscape]), value, ends),
    ]
    return (
        f'{head}<dl>{"".join(rows)}</dl>\n{best_run}<p class="alone {outcome.replace(" ", "-")}">'
        f'<span aria-hidden="true">{OUTCOMES[outcome][0]}</span> Change α alone? '
        f"{word.capitalize()}.</p>\n<p>{escape(done)}</p>\n"
        f"<details><summary>All numbers</summary>{_lines(one)}</details>\n</article>\n"
    )


def _in_torch(decays: Decays) -> list[str]:
    """Return the row with the number to type into torch's optimizers, if it is known."""
    found = decays.torch or decays.l2
    return [] if found is None else [_row("torch's weight_decay", shown(found.value, 3), "")]


def _row(label: str, value: str, more: str) -> str:
    small = f" <small>{escape(more)}</small>" if more else ""
    return f"<div><dt>{escape(label)}</dt><dd>{escape(value)}{small}</dd></div>"


def _apart(text: str) -> tuple[str, str]:
    """Return a value and its range in parentheses."""
    value, _, more = text.partition(" ")
    return value, more


def _lines(one: PageLandscape) -> str:
    assert one.advice is not None
    return "".join(
        f"<p>{f'<b>{escape(label)}</b> ' if label else ''}{escape(text)}</p>"
        for label, text in advice.block(one.advice)
    )


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
