"""The report page: one HTML file without network access or scripts, which also prints well.

Pictures come first, then the verdict on each claim, then the numbers, then the small print. Text is
plain, except that `backticks` mark code. The same data give the same bytes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from weightdecay import checks
from weightdecay.colours import OUTCOMES
from weightdecay.site.document import opening
from weightdecay.site.inline import inline
from weightdecay.site.style import STYLE

_PAPER = "https://arxiv.org/abs/1711.05101"
_FOOTER = f"""<footer>
<p>The claims are those of I. Loshchilov and F. Hutter, <cite>Decoupled Weight Decay
Regularization</cite>, ICLR 2019, <a href="{_PAPER}">arXiv:1711.05101</a>.</p>
</footer>
"""
# The browser must fetch nothing and run nothing, whatever a picture contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_NUMBER = re.compile(r"[+−-]?\d[\d,]*(\.\d+)?(e[+−-]?\d+)?\s?%?|[+−-]?∞|–")


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, with its title and caption."""

    title: str
    svg: str
    caption: str


@dataclass(frozen=True)
class PageVerdict:
    """The outcome of a claim as a page shows it: what decided it, and the rule, as text."""

    claim: str
    outcome: str
    because: str
    rule: str

    def __post_init__(self) -> None:
        checks.one_of("outcome", self.outcome, OUTCOMES)


@dataclass(frozen=True)
class PageTable:
    """A table; its first row is the header."""

    title: str
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        lengths = [len(row) for row in self.rows]
        if len(set(lengths)) != 1 or not lengths[0]:
            raise ValueError(
                f"`rows` must be a header and rows as long as it, got lengths {lengths} in "
                f"{self.title!r}. Fill what is not known with a dash."
            )


def report(
    title: str,
    *,
    lead: str,
    pictures: Sequence[Picture],
    verdicts: Sequence[PageVerdict],
    tables: Sequence[PageTable],
    small_print: Sequence[str],
) -> str:
    """Return the page; empty parts are left out."""
    parts = {
        "Pictures": [_figure(one, f"picture-{at}") for at, one in enumerate(pictures, 1)],
        "Claims": _listed(_verdict(one, f"claim-{at}") for at, one in enumerate(verdicts, 1)),
        "Numbers": [_table(one, f"numbers-{at}") for at, one in enumerate(tables, 1)],
        "Small print": [f"<p>{_text(one)}</p>" for one in small_print],
    }
    shown = {heading: "\n".join(body) for heading, body in parts.items() if body}
    contents = "".join(f'<li><a href="#{_key(one)}">{one}</a></li>' for one in shown)
    start = opening(_plain(title), policy=_POLICY, style=f"\n{STYLE}")
    return f"""{start}<header>
<h1>{_text(title)}</h1>
<p class="lead">{_text(lead)}</p>
{_tally(verdicts)}<nav aria-label="Contents"><ul>{contents}</ul></nav>
</header>
<main>
{"".join(_section(heading, body) for heading, body in shown.items())}</main>
{_FOOTER if verdicts else ""}</body>
</html>
"""


def _tally(verdicts: Sequence[PageVerdict]) -> str:
    """Return how many claims had each outcome, zeros included."""
    if not verdicts:
        return ""
    outcomes = [verdict.outcome for verdict in verdicts]
    counted = (_outcome(word, f"{outcomes.count(word)} {word}") for word in OUTCOMES)
    return f'<p class="tally">{", ".join(counted)}</p>\n'


def _section(heading: str, body: str) -> str:
    key = _key(heading)
    return f'<section id="{key}">\n<h2>{heading}</h2>\n{body}\n</section>\n'


def _figure(picture: Picture, key: str) -> str:
    label = _plain(picture.title)
    drawn = inline(picture.svg, key=key, label=label)
    return (
        f"<figure>\n<h3>{_text(picture.title)}</h3>\n{_scrolling(drawn, f'Picture: {label}')}\n"
        f'<figcaption id="{key}-caption">{_text(picture.caption)}</figcaption>\n</figure>'
    )


def _listed(items: Iterable[str]) -> list[str]:
    items = list(items)
    return ["<ol>", *items, "</ol>"] if items else []


def _verdict(verdict: PageVerdict, key: str) -> str:
    return (
        f'<li id="{key}">\n<p class="verdict">{_outcome(verdict.outcome, verdict.outcome)}</p>\n'
        f"<div>\n<h3>{_text(verdict.claim)}</h3>\n<p>{_text(verdict.because)}</p>\n"
        f'<p class="rule"><b>Rule</b> {_text(verdict.rule)}</p>\n</div>\n</li>'
    )


def _outcome(word: str, said: str) -> str:
    glyph = OUTCOMES[word][0]
    return (
        f'<span class="outcome {_key(word)}"><span class="glyph" aria-hidden="true">{glyph}</span>'
        f" {escape(said)}</span>"
    )


def _table(table: PageTable, key: str) -> str:
    head, *body = table.rows
    aligned = [
        ' class="number"' if all(map(_NUMBER.fullmatch, cells)) else ""
        for cells in zip(*body, strict=True)
    ] or [""] * len(head)
    titles = zip(head, aligned, strict=True)
    first = "".join(f'<th scope="col"{how}>{_text(one)}</th>' for one, how in titles)
    lines = "\n".join(f"<tr>{_cells(row, aligned)}</tr>" for row in body)
    grid = (
        f'<table aria-labelledby="{key}">\n<thead>\n<tr>{first}</tr>\n</thead>\n'
        f"<tbody>\n{lines}\n</tbody>\n</table>"
    )
    return f'<h3 id="{key}">{_text(table.title)}</h3>\n{_scrolling(grid, f"Table: {table.title}")}'


def _cells(row: Sequence[str], aligned: Sequence[str]) -> str:
    tags = ['th scope="row"', *["td"] * (len(row) - 1)]
    return "".join(
        f"<{tag}{how}>{_text(cell)}</{tag[:2]}>"
        for tag, how, cell in zip(tags, aligned, row, strict=True)
    )


def _scrolling(content: str, label: str) -> str:
    """Make wide content scroll on its own, also by keyboard."""
    name = escape(_plain(label))
    return f'<div class="wide" role="group" tabindex="0" aria-label="{name}">{content}</div>'


def _key(words: str) -> str:
    return words.lower().replace(" ", "-")


def _plain(text: str) -> str:
    return text.replace("`", "")


def _text(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
