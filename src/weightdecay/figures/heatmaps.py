"""Heat maps of errors over learning rate and decay, with marks, on one common colour scale.

    ○  the ten best by the errors that choices are made on, the best one filled
    ▢  tied with the best
    ×  diverged: every seed; a single stroke, some of them
    —  the fitted ridge: the best decay at each learning rate, λ* ∝ α⁻ˢ
    △  stands out from its neighbours by more than noise explains, or was trained with such cells
    ◆  the recommended setting, with lines along its ranges

`results` computes all of these.
"""

import math
from collections.abc import Sequence
from itertools import zip_longest

from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from weightdecay import checks
from weightdecay.colours import COLOURS_OF_ERRORS, error_range
from weightdecay.figures.cell_positions import CellPositions
from weightdecay.figures.heatmap import along_words, draw, upward_words
from weightdecay.figures.legend import Panel, marks
from weightdecay.figures.sheet import (
    HEADING,
    MARGIN,
    TEXT,
    WIDTH,
    NothingToDrawError,
    Sheet,
    fitting,
    height_of,
    page,
    styled,
    width_of,
    wrapped,
)
from weightdecay.labels import titled
from weightdecay.number_format import in_units, interval, measured, number, reported
from weightdecay.results import Landscape, Outlier, Recommendation, outliers

_LARGEST_CELL = 0.46
_LABEL = 0.22  # inches for the label beside a panel
_BAR, _BAR_GAP, _BAR_WORDS = 0.16, 0.22, 0.52
_NARROWEST = 4.6


@styled()
def heatmaps(
    panels: Sequence[Panel],
    *,
    columns: int,
    title: str | None = None,
    small_print: str = "",
    quantity: str | None = None,
    recommended: Sequence[Recommendation | None] = (),
) -> Figure:
    """Draw landscapes side by side, in rows of `columns`, on one scale of colours.

    The scale is that of `error_range`, for the mean errors of cells that did not diverge. Worse
    cells get the last colour, and the colour bar then ends in an arrow. `quantity` is what the bar
    shows.
    `recommended` are settings to mark, one per panel or None.
    """
    checks.whole("columns", columns, at_least=1)
    if recommended and len(recommended) != len(panels):
        raise ValueError(
            f"`recommended` must have one entry per panel, got {len(recommended)} for "
            f"{len(panels)}. Pass None for a panel without a recommendation."
        )
    advice = recommended or [None] * len(panels)
    if not panels:
        raise NothingToDrawError(f"`panels` must hold a landscape to draw, got {panels!r}.")
    for name, _, coupling in panels:
        if coupling is not None and coupling.convention != "paper":
            raise ValueError(
                f"A panel's coupling must be in the paper's convention, in which its axes are, got "
                f"{coupling.convention!r} for {name!r}. Measure it with convention='paper'."
            )
    quantity = quantity or _quantity([landscape for _, landscape, _ in panels])
    norm, beyond = scale([landscape for _, landscape, _ in panels])
    layout = _Layout(panels, columns)
    doubted = [outliers(landscape) for _, landscape, _ in panels]
    handles = marks(panels, doubted=any(doubted), recommended=any(advice))
    per_row = fitting(handles, width=layout.width - 2 * MARGIN)
    legend = math.ceil(len(handles) / per_row) * 0.19 + 0.06
    sheet = page(
        width=layout.width, body=layout.height + legend, title=title, small_print=small_print
    )
    for index, panel in enumerate(panels):
        _panel(sheet, layout, index, panel, norm, doubted=doubted[index], recommended=advice[index])
    _bar(sheet, layout, norm, beyond=beyond, quantity=quantity)
    sheet.legend(handles, left=MARGIN, top=layout.height + 0.06, columns=per_row)
    return sheet.figure


def scale(landscapes: Sequence[Landscape]) -> tuple[Normalize, bool]:
    """Return the colour scale, errors in percent, and whether some cell is beyond it."""
    low, high, beyond = error_range(
        *(
            [
                in_units(cell.mean, landscape.metric)
                for cell in landscape.cells.values()
                if len(cell.diverged) < len(cell.seeds)
            ]
            for landscape in landscapes
        )
    )
    return Normalize(low, high), beyond


class _Layout:
    """The positions of panels, in inches from the upper left; all cells have the same size."""

    def __init__(self, panels: Sequence[Panel], columns: int) -> None:
        self.columns = min(columns, len(panels))
        self.grids = [CellPositions(landscape) for _, landscape, _ in panels]
        rows = [self.grids[at : at + columns] for at in range(0, len(panels), columns)]
        widths = [max(g.width for g in column if g) for column in zip_longest(*rows)]
        ticks = max(widest(grid.upward) for grid in self.grids) + 0.1
        sides = [ticks + _LABEL] + [
            ticks + 0.1 + _LABEL * self._worded(column) for column in range(1, self.columns)
        ]
        around = MARGIN * 2 + sum(sides) + _BAR_GAP + _BAR + _BAR_WORDS
        self.cell = min(_LARGEST_CELL, (WIDTH - around) / sum(widths))
        self.width = max(_NARROWEST, around + self.cell * sum(widths))
        rooms = [self.cell * grid.width + 0.1 for grid in self.grids]
        self.titles = [
            wrapped(
                titled(landscape.labels) if title is None else title,
                size=HEADING,
                width=room,
                bold=True,
            )
            for (title, landscape, _), room in zip(panels, rooms, strict=True)
        ]
        self.texts = [_said(panel, room) for panel, room in zip(panels, rooms, strict=True)]
        self.lefts = [
            MARGIN + sum(sides[: column + 1]) + self.cell * sum(widths[:column])
            for column in range(self.columns)
        ]
        self.right = self.lefts[-1] + self.cell * widths[-1]
        self.heads: list[float] = []  # where a row's titles begin
        self.tops: list[float] = []  # where its cells do
        self.bottom = self.height = 0.0
        for place, row in enumerate(rows):
            these = slice(place * columns, (place + 1) * columns)
            self.heads.append(self.height)
            heading = max(
                height_of(title, HEADING) + height_of(text, TEXT - 0.5)
                for title, text in zip(self.titles[these], self.texts[these], strict=True)
            )
            self.tops.append(self.height + heading + 0.06)
            self.bottom = self.tops[-1] + self.cell * max(grid.height for grid in row)
            self.height = self.bottom + 0.2 + _LABEL + 0.14 * (row is not rows[-1])

    def _worded(self, column: int) -> bool:
        """Whether a column labels its y axis: if that differs from the column on its left."""
        return any(
            upward_words(grid.landscape) != upward_words(self.grids[index - 1].landscape)
            for index, grid in enumerate(self.grids)
            if index % self.columns == column
        )

    def says_y(self, index: int) -> bool:
        return index % self.columns == 0 or self._worded(index % self.columns)


def _quantity(landscapes: Sequence[Landscape]) -> str:
    """Return what the numbers measure."""
    if len({landscape.metric for landscape in landscapes}) > 1:
        raise ValueError(
            "Panels of one figure must all be of errors, or all of one metric, got several. Draw "
            "a figure of each."
        )
    return reported(landscapes, unit=" (%)")


def widest(labels: Sequence[str]) -> float:
    """Return the width of the widest label of an axis, in inches."""
    return 1.04 * max((width_of(label, TEXT - 0.5) for label in labels), default=0.0)


def _said(panel: Panel, room: float) -> str:
    """Return the text under a title, the exponent and the best error, on one line if it fits."""
    _, landscape, coupling = panel
    said = []
    if coupling is not None and coupling.bent:
        sides = (number(side.value or 0.0) for side in (coupling.below, coupling.above))
        said.append("a knee: s = {} below the best α, {} above".format(*sides))
    elif coupling is not None:
        said.append(interval(coupling.exponent, reason=False))
    if landscape.cells:
        said.append(f"best {measured(landscape.best.mean, landscape.metric)}")
    line = "  ·  ".join(said)
    if width_of(line, TEXT - 0.5) <= room:
        return line
    return wrapped("\n".join(said), size=TEXT - 0.5, width=room)


def _panel(
    sheet: Sheet,
    layout: _Layout,
    index: int,
    panel: Panel,
    norm: Normalize,
    *,
    doubted: Sequence[Outlier],
    recommended: Recommendation | None,
) -> None:
    _, landscape, coupling = panel
    grid = layout.grids[index]
    left, top = layout.lefts[index % layout.columns], layout.tops[index // layout.columns]
    size = layout.cell
    axes = sheet.axes(left=left, top=top, width=size * grid.width, height=size * grid.height)
    stride = max(1, math.ceil((widest(grid.along) + 0.07) / size))
    draw(axes, grid, coupling, norm=norm, stride=stride, doubted=doubted, recommended=recommended)
    along = along_words(landscape)
    if width_of(along, TEXT) > size * grid.width:
        along = along_words(landscape, brief=True)
    axes.set_xlabel(along, labelpad=2)
    if layout.says_y(index):
        axes.set_ylabel(upward_words(landscape), labelpad=2)
    head = layout.heads[index // layout.columns]
    title = layout.titles[index]
    sheet.text(title, left=left, top=head, size=HEADING, bold=True)
    under = head + height_of(title, HEADING)
    sheet.text(layout.texts[index], left=left, top=under, size=TEXT - 0.5)


def _bar(sheet: Sheet, layout: _Layout, norm: Normalize, *, beyond: bool, quantity: str) -> None:
    top = layout.tops[0]
    height = layout.bottom - top
    axes = sheet.axes(left=layout.right + _BAR_GAP, top=top, width=_BAR, height=height)
    bar = sheet.figure.colorbar(
        ScalarMappable(norm, COLOURS_OF_ERRORS),
        cax=axes,
        extend="max" if beyond else "neither",
        extendfrac=0.03,
        ticks=MaxNLocator(6),
    )
    bar.outline.set_visible(False)
    bar.set_label(quantity)
    axes.tick_params(length=2.5)
