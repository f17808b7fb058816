"""Text tables: columns as wide as their widest cell, and numbers as people read them."""

import math
from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines, columns aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in padded)


def shown(value: float | None, digits: int = 6) -> str:
    """Return a number with so many significant digits, and a dash for one that is not known."""
    return "–" if value is None else f"{value:.{digits}g}"


def error(value: float | None, metric: str | None = None, *, digits: int = 2) -> str:
    """Return an error in percent; of a `metric` that a task has of its own, the number as it is."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{digits}%}" if metric is None else f"{value:.4g}"
