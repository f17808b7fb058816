"""Runs as a table, and back without loss: a row per epoch, in CSV or in Parquet.

The same runs give the same bytes, with the same pyarrow. A table that was written before a column
was added still loads.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from weightdecay.records.config import RunConfig
from weightdecay.records.record import Environment, Record, Run
from weightdecay.records.table_columns import MEASURED, PLACE, SETTINGS, Column
from weightdecay.records.table_files import CURE, Named, Row, form_of, write_rows


def export(runs: Iterable[Run], path: Path) -> int:
    """Write a row for every epoch of every run, in the order given, and return their number."""
    return form_of(path).write(_rows(runs), path)


def write_csv(runs: Iterable[Run], stream: IO[str]) -> int:
    """Write the same to a stream, as CSV."""
    return write_rows(_rows(runs), stream)


def imported(path: Path) -> list[Run]:
    """Return the runs of an exported file, as they were given."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any], list[Record]]] = {}
    for row in form_of(path).read(path):
        settings, measured, place = (_by_field(part, row) for part in (SETTINGS, MEASURED, PLACE))
        record = Record(**measured)
        first, where, records = found.setdefault(record.run, (settings, place, []))
        if (settings, place) != (first, where):
            raise ValueError(
                f"{path} must have one configuration and environment per run, got two of "
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
        raise ValueError(f"{path} must state all of an environment or none of it. {CURE}")
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
                "A run must have records, all of one name, to be exported, got "
                f"{', '.join(sorted(names)) or 'none'} for {run.config}."
            )
        if names & seen:
            raise ValueError(
                f"A run must be exported once, got {names.pop()} again. Leave the second out."
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
