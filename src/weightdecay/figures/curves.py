"""Panels of lines and points in rows: learning curves, anytime curves, and final errors."""

import math
from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from weightdecay import checks
from weightdecay.figures.charts import Chart
from weightdecay.figures.sheet import (
    HEADING,
    MARGIN,
    WIDTH,
    NothingToDrawError,
    fitting,
    height_of,
    page,
    styled,
)

_BESIDE, _BELOW = 0.55, 0.42  # inches for the numbers and words beside a panel, and under it


@styled()
def curves(
    panels: Sequence[Chart],
    *,
    columns: int = 2,
    title: str | None = None,
    small_print: str = "",
) -> Figure:
    """Draw `Curves`, `Settings` and `Scatter` panels in rows of `columns`, under one legend."""
    checks.whole("columns", columns, at_least=1)
    handles = _merged(handle for panel in panels for handle in panel.handles())
    if not handles:
        raise NothingToDrawError(f"`panels` must hold something to draw, got {panels!r}.")
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    wide = (WIDTH - 2 * MARGIN) / columns - _BESIDE - 0.1
    high = min(0.66 * wide, 3.4)
    heading = height_of("X", HEADING) + 0.06
    per_row = fitting(handles, width=WIDTH - 2 * MARGIN)
    legend = math.ceil(len(handles) / per_row) * 0.19 + 0.1
    row = heading + high + _BELOW
    sheet = page(width=WIDTH, body=rows * row + legend, title=title, small_print=small_print)
    for index, panel in enumerate(panels):
        down, across = divmod(index, columns)
        left = MARGIN + across * (wide + _BESIDE + 0.1) + _BESIDE
        top = down * row
        sheet.text(panel.title, left=left, top=top, size=HEADING, bold=True)
        panel.draw(sheet.axes(left=left, top=top + heading, width=wide, height=high))
    sheet.legend(handles, left=MARGIN, top=rows * row + 0.06, columns=per_row)
    return sheet.figure


def _merged(handles: Iterable[Line2D]) -> list[Line2D]:
    """Merge legend entries with the same label, also a line in one panel and a mark in another."""
    merged: dict[object, Line2D] = {}
    for handle in handles:
        known = merged.setdefault(handle.get_label(), handle)
        if known.get_marker() == "None":
            known.set_marker(handle.get_marker())
            known.set_markersize(handle.get_markersize())
            known.set_markerfacecolor(handle.get_markerfacecolor())
        if known.get_linestyle() == "None":
            known.set_linestyle(handle.get_linestyle())
    return list(merged.values())
