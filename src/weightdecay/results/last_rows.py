"""Tables with one row per epoch: of each run, the last row counts.

Rows belong to one run if they agree in setting, seed, labels and the run's name. If such rows
differ in a column such as `epoch` or `step`, the table logs a run as it trains.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

from weightdecay.results.table_layout import TableLayout


def earlier_rows(layout: TableLayout, decays: Mapping[int, float]) -> set[int]:
    """Return the rows that have a later row of the same run; `decays` are those of all rows."""
    reached = _reached([layout.table[column] for column in layout.progress])
    if not reached:
        return set()
    _check_rates(layout, list(decays), reached)
    runs: dict[Hashable, list[int]] = {}
    for row, decay in decays.items():
        setting = (layout.number(row, "lr"), decay, layout.cell(row, "seed"))
        labels = tuple(layout.labels_of(row).items())
        runs.setdefault((setting, labels, layout.run_of(row)), []).append(row)
    named = layout.settings["seed"] is not None or bool(layout.runs)
    for rows in runs.values():
        if not named and len(set(Counter(reached[row] for row in rows).values())) > 1:
            column = layout.progress[0]
            raise ValueError(
                f"Each run of a table with a column {column!r} must be told from the others, got "
                f"several of different lengths with lr {layout.number(rows[0], 'lr'):g} and the "
                "same decay. Add a column with a name or a seed per run: columns={'run': …}."
            )
    ends = {row: max(reached[one] for one in rows) for rows in runs.values() for row in rows}
    return {row for row, end in ends.items() if reached[row] < end}


def _reached(columns: Sequence[Sequence[Any]]) -> list[tuple[float, ...]]:
    """Return how far each row is, by the columns of numbers."""
    numbers = [values for values in columns if all(map(_is_number, values))]
    return [
        tuple(-math.inf if value is None or math.isnan(value) else float(value) for value in row)
        for row in zip(*numbers, strict=True)
    ]


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, Real) and not isinstance(value, bool))


def _check_rates(layout: TableLayout, rows: list[int], reached: list[tuple[float, ...]]) -> None:
    """Raise if the column of the learning rate holds what a schedule made of it."""
    if not layout.runs:
        return
    runs: dict[Hashable, list[int]] = {}
    for row in rows:
        runs.setdefault(layout.run_of(row), []).append(row)
    for run, logged in runs.items():
        rates = sorted({layout.number(row, "lr") or 0.0 for row in logged})
        once = len({reached[row] for row in logged}) == len(logged)
        if len(runs) > 1 and len(rates) > 1 and once:
            raise ValueError(
                f"A run must have one learning rate, got {rates[0]:g} to {rates[-1]:g} in the rows "
                f"of {run}. If a schedule changed it, name a column with the rate "
                "that it started from: columns={'lr': …}."
            )
