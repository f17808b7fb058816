"""Converts runs to a table and back without loss: one row per epoch, as CSV or Parquet.

The same runs give the same bytes (for Parquet, with the same pyarrow). Tables written before a
column was added still load.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from weightdecay.records.config import RunConfig
from weightdecay.records.record import Environment, Record, Run
from weightdecay.records.table_columns import MEASURED, PLACE, SETTINGS, Column
from weightdecay.records.table_files import CURE, Named, Row, format_of, write_rows


def export(runs: Iterable[Run], path: Path) -> int:
    """Write one row per run and epoch, in the order given, and return the number of rows.

    A folder that does not exist is created.
    """
    return format_of(path).write(_rows(runs), path)


def write_csv(runs: Iterable[Run], stream: IO[str]) -> int:
    """Write the same rows to a stream, as CSV."""
    return write_rows(_rows(runs), stream)


def imported(path: Path) -> list[Run]:
    """Return the runs of an exported file, in their order."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any], list[Record]]] = {}
    for row in format_of(path).read(path):
        settings, measured, place = (_by_field(part, row) for part in (SETTINGS, MEASURED, PLACE))
        record = Record(**measured)
        first, where, records = found.setdefault(record.run, (settings, place, []))
        if (settings, place) != (first, where):
            raise ValueError(
                f"{path} must have one configuration and environment per run, got two for "
                f"{record.run}. {CURE}"
            )
        records.append(record)
    return [
        Run(_config(path, settings), tuple(records), _environment(path, place))
        for settings, place, records in found.values()
    ]


def _config(path: Path, settings: Mapping[str, Any]) -> RunConfig:
    try:
        return RunConfig(**settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error} {CURE}") from error


def _environment(path: Path, place: Mapping[str, Any]) -> Environment | None:
    known = {name: value for name, value in place.items() if value is not None}
    if known and len(known) < len(PLACE):
        raise ValueError(
            f"{path} must have all of {', '.join(c.name for c in PLACE)} for a run, or none, got "
            f"{', '.join(known)}. {CURE}"
        )
    return Environment(**known) if known else None


def _by_field(columns: Sequence[Column], row: Named) -> dict[str, Any]:
    return {
        column.field: column.restored(row[column.name]) for column in columns if column.name in row
    }


def _rows(runs: Iterable[Run]) -> Iterator[Row]:
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
        for record in run.records:
            yield [*settings, *_stored(MEASURED, vars(record)), *place]


def _stored(columns: Sequence[Column], values: Mapping[str, Any]) -> list[Any]:
    return [
        value if type(value := values[column.field]) is column.kind else column.stored(value)
        for column in columns
    ]
