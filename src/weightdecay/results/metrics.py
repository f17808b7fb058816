"""What a column of numbers measures, and its unit: an error, an accuracy or a loss.

Errors are fractions here. A column of fractions has no number above 1, a column of percent none in
(0, 1]. If a column has both, the unit must be given.
"""

import math
import numbers
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from weightdecay import checks
from weightdecay.results.points import is_result

UNITS = ("fraction", "percent")


@dataclass(frozen=True)
class MetricScale:
    """How a number becomes an error or a loss: its kind and its unit."""

    kind: str
    unit: str | None

    @property
    def said(self) -> str:
        """Return the unit in words, to be written after the kind."""
        return {"fraction": ", in fractions", "percent": ", in percent", None: ""}[self.unit]

    def read(self, cell: object, row: int) -> float | None:
        """Return a cell as an error or a loss; None if it is empty, infinite if it is huge."""
        value = _number(cell, row)
        if value is None or math.isnan(value):
            return value
        if self.kind == "loss" or math.isinf(value):
            return value if is_result(value) else math.inf
        whole = 100.0 if self.unit == "percent" else 1.0
        return (whole - value) / whole if self.kind == "accuracy" else value / whole


def scale_of(
    columns: Mapping[str, Sequence[Any]], kind: str | None, unit: str | None
) -> MetricScale:
    """Return the common scale of the metric's columns."""
    assert kind is not None
    if kind == "loss":
        if unit is not None:
            raise ValueError(f"`unit` must be left out for a loss, got {unit!r}. It has none.")
        return MetricScale(kind, None)
    if unit is not None:
        checks.one_of("unit", unit, UNITS)
    signed = [_signed(name, cells, unit) for name, cells in columns.items()]
    named = any(_in_percent(column) for column in columns)
    told = unit or ("percent" if any(signed) or named else None)
    units = {_unit(name, cells, kind, told) for name, cells in columns.items()} - {None}
    if len(units) > 1:
        raise ValueError(
            f"Columns {' and '.join(map(repr, columns))} must be in one unit, got fractions in one "
            "and percent in the other. Rewrite one of them."
        )
    return MetricScale(kind, next(iter(units), "fraction"))


def _unit(name: str, cells: Sequence[Any], kind: str, told: str | None) -> str | None:
    read = (_number(cell, row) for row, cell in enumerate(cells))
    values = [value for value in read if value is not None and math.isfinite(value)]
    most = {"fraction": 1.0, "percent": 100.0}.get(told or "percent", 100.0)
    beyond = next((value for value in values if not 0 <= value <= most), None)
    if beyond is not None:
        raise ValueError(
            f"Column {name!r} must be an {kind} between 0 and {most:g}, got {beyond!r}. If it is a "
            "loss, pass metric='loss'."
        )
    if told is not None or not values:
        return told
    if max(values) <= 1:
        return "fraction"
    small = next((value for value in values if 0 < value <= 1), None)
    if small is not None:
        raise ValueError(
            f"Column {name!r} must be in fractions or in percent, got both {small!r} and "
            f"{max(values)!r}. Pass unit='percent' if all are in percent; otherwise rewrite some."
        )
    return "percent"


def _signed(name: str, cells: Sequence[Any], unit: str | None) -> bool:
    """Whether numbers have a percent sign; all must, unless the unit is told."""
    known = [cell for cell in cells if cell is not None]
    signs = [isinstance(cell, str) and cell.endswith("%") for cell in known]
    if any(signs) and not all(signs) and unit is None:
        with_sign, without = known[signs.index(True)], known[signs.index(False)]
        raise ValueError(
            f"Column {name!r} must have a percent sign in every cell or in none, got {with_sign!r} "
            f"and {without!r}. Pass unit='percent' if all are in percent; otherwise rewrite some."
        )
    return any(signs)


def _in_percent(column: str) -> bool:
    name = column.lower()
    return "%" in name or "percent" in name or "pct" in name


def _number(cell: object, row: int) -> float | None:
    if cell is None:
        return None
    if isinstance(cell, str):
        with suppress(ValueError):
            return float(cell.removesuffix("%"))
    elif not isinstance(cell, bool) and isinstance(cell, (float, numbers.Real)):
        return float(cell)
    raise ValueError(
        f"Row {row + 1} of the metric must be a number, got {cell!r}. Correct it, with a "
        "decimal point, or leave the cell empty."
    )
