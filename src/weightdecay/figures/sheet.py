"""The sheet that panels are drawn on, with positions in inches, so that nothing is cut off.

Drawing does not use pyplot or the settings of the machine. It starts from matplotlib's defaults, so
that the same input gives the same picture everywhere.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from weightdecay.colours import FAINT, INK, MUTED, PAPER, Stroke
from weightdecay.labels import AXES

#: Inches: the width of a README at 100 dots per inch, or of a page of paper with margins.
WIDTH = 9.0
MARGIN = 0.12
TITLE, HEADING, TEXT, SMALL = 12.0, 10.0, 8.5, 7.0
_SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": PAPER,
    "axes.formatter.use_mathtext": True,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 200,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "font.size": TEXT,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
    "legend.fontsize": TEXT - 0.5,
    "lines.dash_capstyle": "butt",
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,  # text stays text, so that the file can be edited and searched
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "weightdecay",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": TEXT - 0.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": TEXT - 0.5,
}


class NothingToDrawError(ValueError):
    """There is nothing to show in a figure."""


@contextmanager
def styled() -> Iterator[None]:
    """Draw with our settings only, and restore the previous ones."""
    with style.context(["default", _SETTINGS]):
        yield


@dataclass(frozen=True)
class Sheet:
    """A figure with a title, a body measured in inches, and small print."""

    figure: Figure
    width: float
    height: float
    head: float

    def axes(self, *, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes at a position in inches from the left and from the top of the body."""
        bottom = self.height - self.head - top - height
        box = (
            left / self.width,
            bottom / self.height,
            width / self.width,
            height / self.height,
        )
        return self.figure.add_axes(box)

    def text(
        self,
        text: str,
        *,
        left: float,
        top: float,
        size: float,
        colour: str = INK,
        bold: bool = False,
    ) -> None:
        """Write text whose upper left corner is at a position in inches, as for `axes`."""
        self.figure.text(
            left / self.width,
            1 - (self.head + top) / self.height,
            text,
            size=size,
            color=colour,
            weight="bold" if bold else "normal",
            va="top",
            linespacing=SPACING,
            parse_math=False,
        )

    def legend(self, handles: Sequence[Artist], *, left: float, top: float, columns: int) -> None:
        """Draw the legend in columns, with its upper left corner at a position as for `axes`."""
        self.figure.legend(
            handles=list(handles),
            loc="upper left",
            bbox_to_anchor=(left / self.width, 1 - (self.head + top) / self.height),
            ncols=columns,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=2.0,
            handletextpad=0.6,
            columnspacing=1.8,
        )


SPACING = 1.3


def page(*, width: float, body: float, title: str | None, small_print: str) -> Sheet:
    """Return a white page with a body of this height, and as much room as the texts need."""
    usable = width - 2 * MARGIN
    heading = wrapped(title or "", size=TITLE, width=usable, bold=True)
    notes = wrapped(small_print, size=SMALL, width=usable)
    head = MARGIN + (height_of(heading, TITLE) + 0.08 if heading else 0.0)
    foot = MARGIN + (height_of(notes, SMALL) + 0.10 if notes else 0.0)
    height = head + body + foot
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    sheet = Sheet(figure, width, height, head)
    if heading:
        sheet.text(heading, left=MARGIN, top=MARGIN - head, size=TITLE, bold=True)
    if notes:
        sheet.text(notes, left=MARGIN, top=body + 0.10, size=SMALL, colour=MUTED)
    return sheet


def decay_words(way: str, *, brief: bool = False) -> str:
    """Return the label of an axis of decays, with the paper's subscript; `brief` is the symbol."""
    words, symbol = AXES[way]
    said = symbol if brief else f"{words} {symbol}"
    return said.replace("λ_norm", r"$\lambda_\mathrm{norm}$")


def drawn(look: Stroke) -> dict[str, Any]:
    """Return matplotlib's options for such a line."""
    style = (0, look.dashes) if look.dashes else "solid"
    return {"color": look.colour, "linestyle": style, "linewidth": 1.5}


@cache
def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line of text, in inches."""
    if not text.strip():
        return 0.0
    letters = _LETTERS[bold]
    return float(TextPath((0, 0), text, size=size, prop=letters).get_extents().width) / 72


def height_of(text: str, size: float) -> float:
    """Return the height of lines of text, in inches."""
    return len(text.splitlines()) * size * SPACING / 72


def fitting(handles: Sequence[Artist], *, width: float) -> int:
    """Return the largest number of columns in which a legend fits into a width, at least one."""
    # The line before the text and the space after it; on a screen, letters are a little wider.
    widths = [1.04 * width_of(str(h.get_label()), TEXT - 0.5) + 0.55 for h in handles]
    for columns in range(len(widths), 1, -1):
        if sum(column.max() for column in np.array_split(widths, columns)) <= width:
            return columns
    return 1


def wrapped(text: str, *, size: float, width: float, bold: bool = False) -> str:
    """Return text wrapped between words to a width in inches; its own line breaks are kept."""
    # Words are measured one by one, as they repeat and so are cached; lines do not repeat.
    gap = width_of("n n", size, bold=bold) - 2 * width_of("n", size, bold=bold)
    lines = []
    for paragraph in text.splitlines():
        line: list[str] = []
        reach = -gap
        for word in paragraph.split(" "):
            reach += gap + width_of(word, size, bold=bold)
            if line and reach > width:
                lines.append(" ".join(line))
                line, reach = [], width_of(word, size, bold=bold)
            line.append(word)
        lines.append(" ".join(line))
    return "\n".join(lines)


_LETTERS = [FontProperties(family="DejaVu Sans", weight=weight) for weight in ("normal", "bold")]
