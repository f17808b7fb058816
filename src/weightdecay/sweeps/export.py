"""Runs as a table, and back without loss: a row an epoch, in CSV or in Parquet.

A row has the configuration's fields, as RunConfig names them, then the record's, then those of the
environment. Where configuration and record both have a field, the record's is the epoch's: `lr` is
α, and `epoch_lr` α·η of its last update. What is not known is empty. The same runs give the same
bytes, with the same pyarrow. A table that was written before a column was added still loads.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias, get_args

from weightdecay.files import written
from weightdecay.records import Environment, Record, Run, RunConfig

Row: TypeAlias = Sequence[Any]
#: A row's values by their columns.
Named: TypeAlias = Mapping[str, Any]
# So many rows are in memory at a time when they are written, and so many times that in a row group.
_TOGETHER = 1 << 12
_GROUP = 1 << 2
_CURE = "Export it again."
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class _Column:
    """A field's column; `mixed` is one of whole numbers and words, which is text in a table."""

    name: str
    field: str
    kind: type
    optional: bool
    mixed: bool

    def stored(self, value: Any) -> Any:
        """Return the value as the column keeps it."""
        if value is None and not self.optional:
            raise ValueError(f"`{self.field}` must be {_KINDS[self.kind]}, got None.")
        return None if value is None else self.kind(value)

    def restored(self, value: Any) -> Any:
        """Return the value that was stored."""
        return int(value) if self.mixed and value is not None and value.isdecimal() else value

    def parsed(self, text: str) -> Any:
        """Return the value that a CSV file's cell says."""
        if not text and self.optional:
            return None
        try:
            return _TRUTHS[text] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            said = f"`{self.name}` must be {_KINDS[self.kind]}, got {text!r}."
            raise ValueError(said) from None


def _column(field: Field[Any], name: str) -> _Column:
    kinds = set(get_args(field.type) or [field.type])
    optional, mixed = NoneType in kinds, {int, str} <= kinds
    [kind] = {str} if mixed else kinds - {NoneType}
    return _Column(name, field.name, kind, optional, mixed)


_SETTINGS = [_column(field, field.name) for field in fields(RunConfig)]
_TAKEN = {column.name for column in _SETTINGS}
_MEASURED = [
    _column(field, f"epoch_{field.name}" if field.name in _TAKEN else field.name)
    for field in fields(Record)
]
_PLACE = [replace(_column(field, field.name), optional=True) for field in fields(Environment)]
_COLUMNS = _SETTINGS + _MEASURED + _PLACE
_FLAGS = [n for n, column in enumerate(_COLUMNS) if column.kind is bool]
_TEXTS = [n for n, column in enumerate(_COLUMNS) if column.kind is str]
# Columns that tables from before do not have.
_ADDED = {"keep_missed", "budget", "cycle_updates", "missed", *(column.name for column in _PLACE)}


def export(runs: Iterable[Run], path: Path) -> int:
    """Write a row for every epoch of every run, in the order given, and return their number."""
    return _form(path).write(_rows(runs), path)


def imported(path: Path) -> list[Run]:
    """Return the runs of an exported file, as they were given."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any], list[Record]]] = {}
    for row in _form(path).read(path):
        settings, measured, place = (
            _by_field(part, row) for part in (_SETTINGS, _MEASURED, _PLACE)
        )
        record = Record(**measured)
        first, where, records = found.setdefault(record.run, (settings, place, []))
        if (settings, place) != (first, where):
            raise ValueError(
                f"{path} must have one configuration and environment per run, got two of "
                f"{record.run}. {_CURE}"
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
        raise ValueError(f"{path}: {error} {_CURE}") from error


def _environment(path: Path, place: Mapping[str, Any]) -> Environment | None:
    known = {name: value for name, value in place.items() if value is not None}
    if known and len(known) < len(_PLACE):
        raise ValueError(f"{path} must state all of an environment or none of it. {_CURE}")
    return Environment(**known) if known else None


def _by_field(columns: Sequence[_Column], row: Named) -> dict[str, Any]:
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
        settings = _stored(_SETTINGS, vars(run.config))
        place = [getattr(run.environment, column.field, None) for column in _PLACE]
        for record in run.records:
            yield [*settings, *_stored(_MEASURED, vars(record)), *place]


def _stored(columns: Sequence[_Column], values: Mapping[str, Any]) -> list[Any]:
    return [
        value if type(value := values[column.field]) is column.kind else column.stored(value)
        for column in columns
    ]


def _write_csv(rows: Iterable[Row], path: Path) -> int:
    count = 0
    with written(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in _COLUMNS])
        for row in rows:
            writer.writerow(_cells(row))
            count += 1
        text.detach()  # what is written stays open for `written` to close
    return count


def _cells(row: Row) -> Row:
    """Return what the writer says as it should: of a float, the shortest that reads back as it."""
    cells = list(row)
    for n in _FLAGS:
        cells[n] = "true" if cells[n] else "false"
    for n in _TEXTS:
        if cells[n] is not None and "\r" in cells[n]:  # Python before 3.13 does not quote it
            said = f"A name in a CSV file must have no carriage return, got {cells[n]!r}."
            raise ValueError(said)
    return cells


def _read_csv(path: Path) -> Iterator[Named]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            columns = _columns(next(reader, []), {column.name: column for column in _COLUMNS})
            for cells in reader:
                yield _parsed(columns, cells)
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error} {_CURE}") from error


def _parsed(columns: Sequence[_Column], cells: Sequence[str]) -> Named:
    if len(cells) != len(columns):
        raise ValueError(f"A row must have {len(columns)} cells, got {len(cells)}.")
    return {c.name: c.parsed(cell) for c, cell in zip(columns, cells, strict=True)}


def _write_parquet(rows: Iterable[Row], path: Path) -> int:
    pyarrow, parquet = _pyarrow()
    schema = _schema(pyarrow)
    batches, count = _batches(rows, pyarrow, schema), 0
    with (
        written(path) as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        while group := list(islice(batches, _GROUP)):
            writer.write_table(pyarrow.Table.from_batches(group, schema=schema))
            count += sum(map(len, group))
    return count


def _batches(rows: Iterable[Row], pyarrow: Any, schema: Any) -> Iterator[Any]:
    """Yield rows as pyarrow's arrays, which take a tenth of the memory."""
    rows = iter(rows)
    while part := list(islice(rows, _TOGETHER)):
        columns = zip(schema.types, zip(*part, strict=True), strict=True)
        arrays = [pyarrow.array(values, kind) for kind, values in columns]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _read_parquet(path: Path) -> Iterator[Named]:
    pyarrow, parquet = _pyarrow()
    with path.open("rb") as file:
        try:
            table = parquet.ParquetFile(file)
            wanted = dict(zip(_described(_schema(pyarrow)), _COLUMNS, strict=True))
            names = [column.name for column in _columns(_described(table.schema_arrow), wanted)]
            for batch in table.iter_batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield dict(zip(names, row, strict=True))
        except (ValueError, OSError) as error:  # pyarrow's own errors are one or the other
            raise ValueError(f"{path}: {error} {_CURE}") from error


def _schema(pyarrow: Any) -> Any:
    kinds = {
        bool: pyarrow.bool_(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        str: pyarrow.string(),
    }
    return pyarrow.schema(
        [
            pyarrow.field(column.name, kinds[column.kind], nullable=column.optional)
            for column in _COLUMNS
        ]
    )


def _described(schema: Any) -> list[str]:
    optional = {True: " or null", False: ""}
    return [f"{field.name} ({field.type}{optional[field.nullable]})" for field in schema]


def _columns(found: Sequence[str], wanted: Mapping[str, _Column]) -> list[_Column]:
    """Return the columns of a table, by how they are described."""
    missing = [
        f"no {name}"
        for name, column in wanted.items()
        if name not in found and column.name not in _ADDED
    ]
    unknown = [f"also {name}" for name in found if name not in wanted]
    if missing or unknown:
        raise ValueError(
            f"An export must have a run's columns alone, got {', '.join(missing + unknown)}."
        )
    if list(found) != [name for name in wanted if name in found]:
        raise ValueError(f"An export must have its columns in the order {', '.join(wanted)}.")
    return [wanted[name] for name in found]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415 - an optional dependency, for this form alone
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ImportError(
            "A Parquet file needs pyarrow to write and read it: pip install 'weightdecay[parquet]'"
        ) from None
    return pyarrow, parquet


@dataclass(frozen=True)
class _Form:
    """A kind of file: how rows are written to it and read from it."""

    write: Callable[[Iterable[Row], Path], int]
    read: Callable[[Path], Iterable[Named]]


_FORMS = {
    ".csv": _Form(_write_csv, _read_csv),
    ".parquet": _Form(_write_parquet, _read_parquet),
}


def _form(path: Path) -> _Form:
    if path.suffix not in _FORMS:
        raise ValueError(
            f"An export's name must end in {' or '.join(_FORMS)}, got {path.name!r}. "
            "Choose one of them."
        )
    return _FORMS[path.suffix]
