"""Converts runs to a table and back without loss: one row per epoch, as CSV or Parquet.

The same results give the same bytes (for Parquet, with the same pyarrow), unless timings are asked
for. Tables written before a column was added still load.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from weightdecay.records.config import RunConfig
from weightdecay.records.record import Environment, Record, Run
from weightdecay.records.table_columns import COLUMNS, MEASURED, PLACE, SETTINGS, TIMED, Column
from weightdecay.records.table_files import CURE, Named, Row, format_of, write_rows


def export(runs: Iterable[Run], path: Path, *, seconds: bool = False) -> int:
    """Write one row per run and epoch, in the order given, and return the number of rows.

    With `seconds`, they say how long each run trained. A folder that does not exist is created.
    """
    return format_of(path).write(_rows(runs, seconds=seconds), path, _columns(seconds=seconds))


def write_csv(runs: Iterable[Run], stream: IO[str], *, seconds: bool = False) -> int:
    """Write the same rows to a stream, as CSV."""
    return write_rows(_rows(runs, seconds=seconds), stream, _columns(seconds=seconds))


def _columns(*, seconds: bool) -> list[Column]:
    return COLUMNS + TIMED if seconds else COLUMNS


def imported(path: Path) -> list[Run]:
    """Return the runs of an exported file, in their order."""
    found: dict[str, tuple[list[dict[str, Any]], list[Record]]] = {}
    for row in format_of(path).read(path):
        record = Record(**_by_field(MEASURED, row))
        own = [_by_field(part, row) for part in (SETTINGS, PLACE, TIMED)]
        first, records = found.setdefault(record.run, (own, []))
        if own != first:
            raise ValueError(
                f"{path} must have one configuration, environment and timing per run, got two for "
                f"{record.run}. {CURE}"
            )
        records.append(record)
    return [
        Run(
            _config(path, settings),
            tuple(records),
            _environment(path, place),
            _timing(path, timed),
        )
        for (settings, place, timed), records in found.values()
    ]


def _config(path: Path, settings: Mapping[str, Any]) -> RunConfig:
    try:
        return RunConfig(**settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error} {CURE}") from error


def _environment(path: Path, place: Mapping[str, Any]) -> Environment | None:
    known = _all_or_none(path, PLACE, place)
    return Environment(**known) if known else None


def _timing(path: Path, timed: Mapping[str, Any]) -> tuple[float, int] | None:
    known = _all_or_none(path, TIMED, timed)
    if not known:
        return None
    seconds, epochs = known.values()
    if not 0 <= seconds < math.inf:
        raise ValueError(
            f"{path} must have finite `seconds` of at least 0, got {seconds!r}. {CURE}"
        )
    if epochs < 1:
        raise ValueError(f"{path} must have `timed_epochs` of at least 1, got {epochs!r}. {CURE}")
    return seconds, epochs


def _all_or_none(
    path: Path, columns: Sequence[Column], values: Mapping[str, Any]
) -> dict[str, Any]:
    known = {name: value for name, value in values.items() if value is not None}
    if known and len(known) < len(columns):
        raise ValueError(
            f"{path} must have all of {', '.join(c.name for c in columns)} for a run, or none, got "
            f"{', '.join(known)}. {CURE}"
        )
    return known


def _by_field(columns: Sequence[Column], row: Named) -> dict[str, Any]:
    return {
        column.field: column.restored(row[column.name]) for column in columns if column.name in row
    }


def _rows(runs: Iterable[Run], *, seconds: bool) -> Iterator[Row]:
    seen: set[str] = set()
    for run in runs:
        names = {record.run for record in run.records}
        if len(names) != 1:
            raise ValueError(
                "A run must have records, all under one name, to be exported, got "
                f"{', '.join(sorted(names)) or 'none'} for {run.config}."
            )
        if names & seen:
            raise ValueError(
                f"Each run must be exported once, got {names.pop()} twice. Leave one out."
            )
        seen |= names
        settings = _stored(SETTINGS, vars(run.config))
        place = [getattr(run.environment, column.field, None) for column in PLACE]
        if seconds:
            place += run.pack or (None, None)
        for record in run.records:
            yield [*settings, *_stored(MEASURED, vars(record)), *place]


def _stored(columns: Sequence[Column], values: Mapping[str, Any]) -> list[Any]:
    return [
        value if type(value := values[column.field]) is column.kind else column.stored(value)
        for column in columns
    ]
