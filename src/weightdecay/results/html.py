"""A landscape in a notebook: an HTML table whose cells are shaded by their error."""

import html
import math
from collections.abc import Mapping, Sequence

# Light is good, as in the figures; the three ends of the scale, in red, green and blue.
_SCALE = ((253, 231, 37), (33, 145, 140), (68, 1, 84))
_CELL = "padding:2px 6px;text-align:right;"


def shaded(
    values: Mapping[tuple[float, float], float],
    lrs: Sequence[float],
    decays: Sequence[float],
    *,
    title: str,
    axes: tuple[str, str],
    best: tuple[float, float] | None,
) -> str:
    """Return a table of learning rates (down) × decays (across); the best has a frame."""
    finite = sorted(value for value in values.values() if math.isfinite(value))
    # The upper half of a landscape is often failures: the scale ends at the median.
    low, high = (finite[0], finite[len(finite) // 2]) if finite else (0.0, 1.0)
    head = "".join(f"<th>{decay:.4g}</th>" for decay in decays)
    rows = [f"<tr><th>{_text(axes[0])} \\ {_text(axes[1])}</th>{head}</tr>"]
    for lr in reversed(lrs):
        cells = []
        for decay in decays:
            value = values.get((lr, decay))
            style = _CELL if value is None else _CELL + _colours(value, low, high)
            if (lr, decay) == best:
                style += "outline:2px solid #000;font-weight:bold;"
            said = "" if value is None else f"{value:.4g}"
            cells.append(f'<td style="{style}">{said}</td>')
        rows.append(f"<tr><th>{lr:.4g}</th>{''.join(cells)}</tr>")
    return f"<p>{_text(title)}</p><table>{''.join(rows)}</table>"


def ranking(head: Sequence[str], rows: Sequence[Sequence[float]], *, title: str) -> str:
    """Return a table of rows of numbers under a title, in their order."""
    lines = ["<tr>" + "".join(f"<th>{_text(name)}</th>" for name in head) + "</tr>"]
    lines += [
        "<tr>" + "".join(f'<td style="{_CELL}">{value:.4g}</td>' for value in row) + "</tr>"
        for row in rows
    ]
    return f"<p>{_text(title)}</p><table>{''.join(lines)}</table>"


def _text(text: str) -> str:
    return html.escape(text)


def _colours(value: float, low: float, high: float) -> str:
    """Return the background colour of a value, and a text colour that is readable on it."""
    place = (value - low) / (high - low) if high > low else 0.0
    place = min(1.0, max(0.0, place)) if math.isfinite(place) else 1.0
    first = int(place * 2) if place < 1 else 1
    part = 2 * place - first
    mixed = [
        round(one + (other - one) * part)
        for one, other in zip(_SCALE[first], _SCALE[first + 1], strict=True)
    ]
    ink = "#000" if place < 0.5 else "#fff"
    return f"background:rgb({mixed[0]},{mixed[1]},{mixed[2]});color:{ink};"
