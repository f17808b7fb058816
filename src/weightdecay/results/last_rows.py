"""Tables with one row per epoch: of each run, the last row with a result counts.

Rows belong to one run if they agree in setting, seed, labels and the run's name. If such rows
differ in a column such as `epoch` or `step`, the table logs a run as it trains. If neither a seed
nor a name tells runs apart, it may also say where repeats of a setting stopped: it is a log if most
settings start at one epoch, early on, or have epochs at equal distances.

In such a table an empty metric and NaN mean the same: the run was not evaluated then, or it had
diverged. It had diverged if it goes on without a metric where other runs have one.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

from weightdecay.results.table_layout import TableLayout

# The share of learning rates that occur at one epoch only if a schedule changes them.
_NEARLY = 0.9


@dataclass(frozen=True)
class Logged:
    """The rows that have a later row of the same run, by some columns; and where runs end.

    `diverged` has one row of each run whose metric ended before the run did; `empty` are other
    rows without a metric. `ends` are the first and the last end, in the first of the columns.
    `stops` is the column that says where each run stopped, if rows of a setting differ in it.
    """

    earlier: Set[int] = frozenset()
    diverged: Set[int] = frozenset()
    empty: Set[int] = frozenset()
    columns: Sequence[str] = ()
    ends: tuple[float, float] = (0.0, 0.0)
    stops: str | None = None


def logged(layout: TableLayout, decays: Mapping[int, float], results: Set[int]) -> Logged:
    """Return which rows are earlier rows of a run.

    `decays` are those of all rows with a setting; `results` the rows with a number to report, or
    that say that the run diverged.
    """
    columns = [name for name in layout.progress if all(map(_is_number, layout.table[name]))]
    if not columns or not decays:
        return Logged()
    reached = _reached([layout.table[name] for name in columns])
    _check_rates(layout, [row for row in decays if row in results], reached, columns[0])
    runs: dict[Hashable, list[int]] = {}
    for row, decay in decays.items():
        setting = (layout.number(row, "lr"), decay, layout.cell(row, "seed"))
        labels = tuple(layout.labels_of(row).items())
        runs.setdefault((setting, labels, layout.run_of(row)), []).append(row)
    places = [sorted({reached[row] for row in rows}) for rows in runs.values()]
    if all(len(own) == 1 for own in places):
        return Logged()
    seeded = layout.settings["seed"] is not None
    named = seeded or bool(layout.runs)
    # A name that several settings have is not that of a run.
    own_names = named and len({layout.run_of(row) for row in decays}) == len(runs)
    if not (seeded or own_names or layout.progress_named or _are_of_a_log(places)):
        return Logged(stops=columns[0])
    measured = {row for row in decays if row in results or layout.measured(row)}
    anywhere = sorted({reached[row] for row in measured})
    earlier: set[int] = set()
    diverged: set[int] = set()
    ends: list[tuple[float, ...]] = []
    for rows in runs.values():
        own = [row for row in rows if row in results]
        if not named and len(set(Counter(reached[row] for row in own).values())) > 1:
            raise ValueError(
                f"The runs of a table with a column {columns[0]!r} must be told apart, got some "
                f"of different lengths with lr {layout.number(rows[0], 'lr'):g} and equal decay. "
                "Add a column with a name or a seed per run: columns={'run': …}."
            )
        if _stops_short(rows, measured, reached, anywhere):
            last = max(rows, key=lambda row: reached[row])
            diverged.add(last)
            earlier.update(row for row in rows if row != last)
            ends.append(reached[last])
        elif own:
            ends.append(max(reached[row] for row in own))
            earlier.update(row for row in own if reached[row] < ends[-1])
    measured_runs = [rows for rows in runs.values() if measured.intersection(rows)]
    empty = {row for rows in measured_runs for row in rows} - results - earlier - diverged
    return Logged(
        earlier, diverged, empty, columns, (min(ends)[0], max(ends)[0]) if ends else (0.0, 0.0)
    )


def _are_of_a_log(places: Sequence[Sequence[tuple[float, ...]]]) -> bool:
    """Return whether the places of most settings are those of a log.

    They start at one place, which is no later than the largest distance between two, or they are
    regular.
    """
    found = [sorted({place[0] for place in own if place[0] > -math.inf}) for own in places]
    several = [own for own in found if len(own) > 1]
    if not several:
        return True
    [(start, _)] = Counter(own[0] for own in several).most_common(1)
    spaced = [[later - one for one, later in pairwise(own)] for own in several]
    early = start <= max(map(max, spaced))
    regular = sum(len(one) > 1 and len(set(one)) == 1 for one in spaced)
    together = sum(own[:1] == [start] for own in found)
    return 2 * max(regular, together * early) > len(found)


def _stops_short(
    rows: Sequence[int],
    measured: Set[int],
    reached: Sequence[tuple[float, ...]],
    anywhere: Sequence[tuple[float, ...]],
) -> bool:
    """Return whether a run goes on without a metric where it should have one.

    Other runs have one there, and its own were never so far apart. `anywhere` is sorted.
    """
    own = {reached[row] for row in rows if row in measured}
    places = sorted({reached[row] for row in rows})
    at = [index for index, place in enumerate(places) if place in own]
    if not at:
        return len(places) > 1 and bisect_right(anywhere, places[-1]) > 0
    longest = max((later - one for one, later in pairwise(at)), default=1)
    later = bisect_right(anywhere, places[-1]) > bisect_right(anywhere, places[at[-1]])
    return later and len(places) - at[-1] > longest


def _reached(columns: Sequence[Sequence[Any]]) -> list[tuple[float, ...]]:
    """Return how far each row is; an empty cell comes before any number."""
    return [
        tuple(-math.inf if value is None or math.isnan(value) else float(value) for value in row)
        for row in zip(*columns, strict=True)
    ]


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, Real) and not isinstance(value, bool))


def _check_rates(
    layout: TableLayout, rows: list[int], reached: list[tuple[float, ...]], column: str
) -> None:
    """Raise if the column of the learning rate holds what a schedule made of it."""
    runs: dict[str, list[int]] = {}
    for row in rows:
        runs.setdefault(layout.run_of(row), []).append(row)
    if len(runs) == 1:
        _check_unnamed_rates(layout, rows, reached, column)
    for run, own in runs.items():
        rates = sorted({layout.number(row, "lr") or 0.0 for row in own})
        decays = {layout.number(row, "decay") for row in own}
        once = len({reached[row] for row in own}) == len(own)
        # Several settings under one name are no run: they differ in the decay, or repeat epochs.
        if len(runs) > 1 and len(rates) > 1 and len(decays) == 1 and once:
            raise ValueError(
                f"A run must have one learning rate, got {rates[0]:g} to {rates[-1]:g} in the rows "
                f"of {run}. If a schedule changed it, name a column with the rate "
                "that it started from: columns={'lr': …}."
            )


def _check_unnamed_rates(
    layout: TableLayout, rows: list[int], reached: list[tuple[float, ...]], column: str
) -> None:
    """Raise if nearly every learning rate occurs at one epoch only, as a schedule has it.

    Rows that agree in all but the rate must have regular epochs from the start: a search with early
    stopping has others.
    """
    epochs: dict[float | None, set[float]] = {}
    runs: dict[Hashable, set[float]] = {}
    for row in rows:
        epoch = reached[row][0]
        epochs.setdefault(layout.number(row, "lr"), set()).add(epoch)
        but_lr = (layout.number(row, "decay"), layout.cell(row, "seed"))
        runs.setdefault((but_lr, *layout.labels_of(row).items()), set()).add(epoch)
    once = sum(len(own) == 1 for own in epochs.values())
    from_start = sum(_is_from_start(sorted(own)) for own in runs.values())
    if once >= _NEARLY * len(epochs) and 2 * from_start > len(runs):
        raise ValueError(
            "A run must have one learning rate, got a table in which nearly every rate occurs at "
            f"one {column!r} only. If a schedule changed it, name a column with the rate that it "
            "started from: columns={'lr': …}. If every row is a run, add a column with a name per "
            "run: columns={'run': …}."
        )


def _is_from_start(epochs: Sequence[float]) -> bool:
    """Return whether there are three epochs or more, at equal distances from a first one on."""
    distances = {later - one for one, later in pairwise(epochs)}
    return len(epochs) > 2 and len(distances) == 1 and epochs[0] <= distances.pop()
