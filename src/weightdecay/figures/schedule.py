"""Schedules as pictures: η over the updates, or epochs, with a mark where each cycle ends."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from weightdecay import checks
from weightdecay.colours import INK, PAPER, Stroke, stroke
from weightdecay.figures.sheet import MARGIN, drawn, fitting, page, styled
from weightdecay.schedules import Schedule, cycles

_STROKES = [Stroke(INK), *map(stroke, ("adamw", "sgdw", "adagradw", "amsgradw"))]
_SAMPLES = 1500
_WIDTH, _HEIGHT = 6.4, 2.6


@styled()
def multipliers(
    schedules: Sequence[tuple[str, Schedule]],
    *,
    updates: int,
    updates_per_epoch: int = 1,
    title: str | None = None,
    small_print: str = "",
) -> Figure:
    """Draw η over the first `updates` updates, or over epochs if `updates_per_epoch` is given.

    A dot marks the end of a cycle. The ends are labelled on the x axis as far as there is room.
    """
    checks.whole("updates", updates, at_least=1)
    checks.whole("updates_per_epoch", updates_per_epoch, at_least=1)
    if not 0 < len(schedules) <= len(_STROKES):
        raise ValueError(
            f"`schedules` must be between 1 and {len(_STROKES)}, got {len(schedules)}. "
            "Draw more of them in several figures."
        )
    handles = [
        Line2D([], [], label=name, **drawn(look))
        for (name, _), look in zip(schedules, _STROKES, strict=False)
    ]
    legend = 0.28 if len(handles) > 1 else 0.0
    body = 0.06 + _HEIGHT + 0.45 + legend
    sheet = page(width=_WIDTH, body=body, title=title, small_print=small_print)
    beside = MARGIN + 0.5
    axes = sheet.axes(left=beside, top=0.06, width=_WIDTH - beside - 0.25, height=_HEIGHT)
    written: list[float] = []
    for (_, schedule), look in zip(schedules, _STROKES, strict=False):
        times = _times(schedule, updates)
        x = [t / updates_per_epoch for t in times]
        axes.plot(x, [schedule(t) for t in times], **drawn(look))
        ends = [e for c in cycles(schedule, updates) if (e := c.end) is not None and e <= updates]
        x = [end / updates_per_epoch for end in ends]
        dots = [schedule(end - 1) for end in ends]
        axes.plot(x, dots, "o", color=look.colour, markersize=5, mec=PAPER, clip_on=False)
        written += x
    last = updates / updates_per_epoch
    axes.set_xlim(0, last)
    axes.set_ylim(0, None)
    if written:
        axes.set_xticks(_apart(sorted([0.0, *written]), 0.06 * last))
    axes.set_xlabel("epochs" if updates_per_epoch > 1 else "updates", labelpad=2)
    axes.set_ylabel("schedule multiplier η", labelpad=3)
    axes.tick_params(length=2.5)
    axes.grid(visible=True, axis="y")
    if legend:
        per_row = fitting(handles, width=_WIDTH - 2 * MARGIN)
        sheet.legend(handles, left=MARGIN, top=_HEIGHT + 0.55, columns=per_row)
    return sheet.figure


def _times(schedule: Schedule, updates: int) -> list[int]:
    """Return the updates to draw: evenly spread, and the two at every restart."""
    step = max(1, updates // _SAMPLES)
    turns = [
        t for cycle in cycles(schedule, updates) for t in (cycle.start - 1, cycle.start) if t >= 0
    ]
    return sorted({*range(0, updates, step), *turns, updates - 1})


def _apart(places: Sequence[float], distance: float) -> list[float]:
    """Return the places that can be labelled side by side; of two close ones, the later."""
    kept: list[float] = []
    for spot in reversed(places):
        if not kept or kept[-1] - spot >= distance:
            kept.append(spot)
    return kept[::-1]
