"""Parts of a page: pictures, tables, and text in which only `backticks` mean something."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from weightdecay.site.inline import inline

_NUMBER = re.compile(r"[+−-]?\d[\d,]*(\.\d+)?(e[+−-]?\d+)?\s?%?|[+−-]?∞|–")


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, with its title and caption."""

    title: str
    svg: str
    caption: str


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


def section(heading: str, key: str, body: Sequence[str]) -> str:
    """Return a section of a page; nothing if it has nothing to show."""
    return f'<section id="{key}">\n<h2>{heading}</h2>\n{"".join(body)}</section>\n' if body else ""


def picture(one: Picture, key: str) -> str:
    """Return a picture with its title and caption, as HTML."""
    label = plain(one.title)
    drawn = inline(one.svg, key=key, label=label)
    return (
        f'<figure class="still">\n<h3>{text(one.title)}</h3>\n'
        f"{_scrolling(drawn, f'Picture: {label}')}\n"
        f'<figcaption id="{key}-caption">{text(one.caption)}</figcaption>\n</figure>\n'
    )


def table(one: PageTable, key: str) -> str:
    """Return a table as HTML. Columns of numbers stand to the right."""
    head, *body = one.rows
    aligned = [
        ' class="number"' if all(map(_NUMBER.fullmatch, cells)) else ""
        for cells in zip(*body, strict=True)
    ] or [""] * len(head)
    titles = zip(head, aligned, strict=True)
    first = "".join(f'<th scope="col"{how}>{text(cell)}</th>' for cell, how in titles)
    lines = "\n".join(f"<tr>{_cells(row, aligned)}</tr>" for row in body)
    grid = (
        f'<table aria-labelledby="{key}">\n<thead>\n<tr>{first}</tr>\n</thead>\n'
        f"<tbody>\n{lines}\n</tbody>\n</table>"
    )
    return f'<h3 id="{key}">{text(one.title)}</h3>\n{_scrolling(grid, f"Table: {one.title}")}\n'


def _cells(row: Sequence[str], aligned: Sequence[str]) -> str:
    tags = ['th scope="row"', *["td"] * (len(row) - 1)]
    return "".join(
        f"<{tag}{how}>{text(cell)}</{tag[:2]}>"
        for tag, how, cell in zip(tags, aligned, row, strict=True)
    )


def _scrolling(content: str, label: str) -> str:
    """Make wide content scroll on its own, also by keyboard."""
    name = escape(plain(label))
    return f'<div class="wide" role="group" tabindex="0" aria-label="{name}">{content}</div>'


def plain(words: str) -> str:
    """Return text without the marks of code."""
    return words.replace("`", "")


def text(words: str) -> str:
    """Return text as HTML, with code where backticks are."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(words))
