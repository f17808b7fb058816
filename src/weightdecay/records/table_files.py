"""The kinds of file that a table of runs may be: CSV and Parquet, rows in and rows out."""

import csv
import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

from weightdecay.files import written
from weightdecay.records.table_columns import COLUMNS, Column, matched

Row: TypeAlias = Sequence[Any]
#: A row's values by their columns.
Named: TypeAlias = Mapping[str, Any]
CURE = "Export it again."
# So many rows are in memory at a time when they are written, and so many times that in a row group.
_TOGETHER = 1 << 12
_GROUP = 1 << 2
_FLAGS = [n for n, column in enumerate(COLUMNS) if column.kind is bool]
_TEXTS = [n for n, column in enumerate(COLUMNS) if column.kind is str]
_NULLABLE = {column.name for column in COLUMNS if column.optional}


def _write_csv(rows: Iterable[Row], path: Path) -> int:
    with written(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        count = write_rows(rows, text)
        text.detach()  # what is written stays open for `written` to close
    return count


def write_rows(rows: Iterable[Row], stream: IO[str]) -> int:
    """Write rows to a stream as CSV, and return their number."""
    count = 0
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.name for column in COLUMNS])
    for row in rows:
        writer.writerow(_cells(row))
        count += 1
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
            columns = matched(next(reader, []), {column.name: column for column in COLUMNS})
            for cells in reader:
                yield _parsed(columns, cells)
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error} {CURE}") from error


def _parsed(columns: Sequence[Column], cells: Sequence[str]) -> Named:
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
            wanted = dict(zip(_described(_schema(pyarrow)), COLUMNS, strict=True))
            described = _described(table.schema_arrow, nullable=_NULLABLE)
            names = [column.name for column in matched(described, wanted)]
            for batch in table.iter_batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield dict(zip(names, row, strict=True))
        except (ValueError, OSError) as error:  # pyarrow's own errors are one or the other
            raise ValueError(f"{path}: {error} {CURE}") from error


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
            for column in COLUMNS
        ]
    )


def _described(schema: Any, nullable: Container[str] = ()) -> list[str]:
    """Return columns as names and types; in tables from before fewer may be null."""
    optional = {True: " or null", False: ""}
    return [
        f"{field.name} ({field.type}{optional[field.nullable or field.name in nullable]})"
        for field in schema
    ]


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


def form_of(path: Path) -> _Form:
    """Return the kind of file that a name says."""
    if path.suffix not in _FORMS:
        raise ValueError(
            f"An export's name must end in {' or '.join(_FORMS)}, got {path.name!r}. "
            "Choose one of them."
        )
    return _FORMS[path.suffix]
