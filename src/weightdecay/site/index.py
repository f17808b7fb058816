"""The index of many pages: claims × tasks, each cell a link. It needs no script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from weightdecay.colours import OUTCOMES
from weightdecay.site.document import content_hash, opening
from weightdecay.site.parts import plain, text
from weightdecay.site.style import COLOURS

_STYLE = """\
* { box-sizing: border-box; }
html { color-scheme: light dark; }
body { margin: 0 auto; max-width: 80rem; padding: 1.5rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
a { color: inherit; text-underline-offset: 0.2em; }
:focus-visible { outline: 2px solid var(--held); outline-offset: 2px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: baseline; font-weight: 400;
  padding: 0.35rem 1.5rem 0.35rem 0; border-bottom: 1px solid var(--faint); }
thead th { color: var(--muted); }
.figure th, .figure td { padding-top: 1.25rem; font-weight: 650; }
td { white-space: nowrap; }
tbody th { max-width: 34rem; }
"""


@dataclass(frozen=True)
class Linked:
    """An outcome, and the address of what decided it, relative to the index."""

    outcome: str
    address: str


@dataclass(frozen=True)
class IndexedFigure:
    """A figure: the address of its page at each place, and its claims with their outcomes there."""

    name: str
    pages: Mapping[str, str]
    claims: Sequence[tuple[str, Mapping[str, Linked]]]


def index_page(title: str, lead: str, figures: Sequence[IndexedFigure]) -> str:
    """Return the index. Places are its columns."""
    places = sorted({place for one in figures for place in one.pages})
    head = "".join(f'<th scope="col">{escape(place)}</th>' for place in places)
    body = "".join(_rows(one, places) for one in figures)
    style = COLOURS + _STYLE
    policy = f"default-src 'none'; style-src {content_hash(style)}; base-uri 'none'"
    return f"""{opening(plain(title), policy=policy, style=style)}<h1>{text(title)}</h1>
<p>{text(lead)}</p>
<div class="wide" role="group" tabindex="0" aria-label="Claims and their outcomes">
<table>
<thead><tr><th scope="col">claim</th>{head}</tr></thead>
<tbody>
{body}</tbody>
</table>
</div>
</body>
</html>
"""


def _rows(one: IndexedFigure, places: Sequence[str]) -> str:
    pages = "".join(
        f'<td><a href="{escape(one.pages[place])}">page</a></td>'
        if place in one.pages
        else "<td>–</td>"
        for place in places
    )
    first = f'<tr class="figure"><th scope="row">{escape(one.name)}</th>{pages}</tr>\n'
    claims = "".join(
        f'<tr><th scope="row">{text(claim)}</th>'
        f"{''.join(_cell(found.get(place)) for place in places)}</tr>\n"
        for claim, found in one.claims
    )
    return first + claims


def _cell(found: Linked | None) -> str:
    if found is None:
        return "<td>–</td>"
    return (
        f'<td><a class="{found.outcome.replace(" ", "-")}" href="{escape(found.address)}">'
        f'<span aria-hidden="true">{OUTCOMES[found.outcome][0]}</span> {escape(found.outcome)}'
        "</a></td>"
    )
