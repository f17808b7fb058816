"""The legend of heat maps: one entry for each kind of mark that is drawn."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from weightdecay.colours import FAINT, INK, MUTED, PAPER, RECOMMENDED
from weightdecay.results import Coupling, Landscape
from weightdecay.results.lowest import AS_GOOD

_PROBABLY = "where the best probably lies"

#: A panel's title, or None for its labels; its landscape; its coupling where that was measured.
Panel: TypeAlias = tuple[str | None, Landscape, Coupling | None]


def marks(panels: Sequence[Panel], *, doubted: bool, recommended: bool) -> list[Artist]:
    """Return the legend's entries for the marks that are drawn."""
    landscapes = [landscape for _, landscape, _ in panels]
    cells = [cell for landscape in landscapes for cell in landscape.cells.values()]
    splits = sorted({landscape.chosen_on for landscape in landscapes if landscape.chosen_on})
    chosen = f" on {' and '.join(splits)}" if splits else ""
    ring: dict[str, Any] = {"marker": "o", "markersize": 7, "color": INK, "linestyle": "none"}
    handles: list[Artist] = []
    if recommended:
        diamond: dict[str, Any] = {"marker": "D", "markersize": 6, "color": RECOMMENDED}
        label = f"recommended; lines: {_ranges(landscapes)}"
        handles.append(Line2D([], [], linewidth=1.6, markeredgecolor=PAPER, label=label, **diamond))
    if cells:
        handles.append(
            Line2D([], [], fillstyle="none", label=f"ten best{chosen}, ● the best", **ring)
        )
    if cells and not all(landscape.scattered for landscape in landscapes):
        frame = Patch(facecolor="none", edgecolor=INK, linewidth=1.5, label="tied with the best")
        handles.append(frame)
    measured = [coupling for _, _, coupling in panels if coupling is not None]
    if any(coupling.line is not None for coupling in measured):
        handles.append(Line2D([], [], color=INK, linewidth=1.4, label="fitted ridge, λ* ∝ α⁻ˢ"))
    if any(coupling.ridge for coupling in measured):
        point: dict[str, Any] = {
            "marker": "o",
            "markersize": 3.5,
            "color": INK,
            "markerfacecolor": PAPER,
        }
        label = "best λ at an α, ± standard error"
        handles.append(Line2D([], [], linewidth=0.7, markeredgewidth=0.8, label=label, **point))
    if any(cell.diverged for cell in cells):
        crossed: dict[str, Any] = {
            "marker": "x",
            "color": MUTED,
            "linestyle": "none",
            "markersize": 6,
        }
        handles.append(Line2D([], [], label="diverged (/ for some seeds)", **crossed))
    if doubted:
        label = "stands out from its neighbours"
        triangle: dict[str, Any] = {"marker": "^", "markersize": 7, "color": INK}
        shape = Line2D([], [], linestyle="none", fillstyle="none", label=label, **triangle)
        handles.append(shape)
    if any(
        not scape.scattered and len(scape.cells) < len(scape.lrs) * len(scape.decays)
        for scape in landscapes
    ):
        handles.append(Patch(facecolor="none", edgecolor=FAINT, label="not run"))
    return handles


def _ranges(landscapes: Iterable[Landscape]) -> str:
    """Describe the ranges of recommended settings, which scattered runs have of another kind."""
    kinds = {not landscape.in_columns for landscape in landscapes}
    as_good = f"expected error within {100 * AS_GOOD:g} % of it"
    if kinds == {True, False}:
        return f"{as_good}, or, of scattered runs, {_PROBABLY}"
    return _PROBABLY if kinds == {True} else as_good
