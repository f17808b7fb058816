"""Reads and writes the rows of a table as CSV or Parquet."""

import csv
import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

from weightdecay.files import written
from weightdecay.records.table_columns import COLUMNS, TIMED, Column, ForeignTableError, matched

Row: TypeAlias = Sequence[Any]
#: A row's values by column name.
Named: TypeAlias = Mapping[str, Any]
CURE = "Export it again."
# Rows per record batch when a Parquet file is written, and record batches per row group.
_BATCH = 1 << 12
_GROUP = 1 << 2
_FLAGS = [n for n, column in enumerate(COLUMNS) if column.kind is bool]
_TEXTS = [n for n, column in enumerate(COLUMNS) if column.kind is str]
_KNOWN = COLUMNS + TIMED
_NULLABLE = {column.name for column in _KNOWN if column.optional}


def _write_csv(rows: Iterable[Row], path: Path, columns: Sequence[Column]) -> int:
    with written(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        count = write_rows(rows, text, columns)
        text.detach()  # `written` closes the file
    return count


def write_rows(rows: Iterable[Row], stream: IO[str], columns: Sequence[Column]) -> int:
    """Write rows of these columns to a stream as CSV and return their number."""
    count = 0
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.name for column in columns])
    for row in rows:
        writer.writerow(_csv_fields(row))
        count += 1
    return count


def _csv_fields(row: Row) -> Row:
    """Return a row with bools as true and false; csv.writer keeps every digit of a float."""
    values = list(row)
    for n in _FLAGS:
        values[n] = "true" if values[n] else "false"
    for n in _TEXTS:
        if values[n] is not None and "\r" in values[n]:  # Python before 3.13 does not quote it
            raise ValueError(
                f"A name in a CSV file must not contain a carriage return, got {values[n]!r}."
            )
    return values


def _read_csv(path: Path) -> Iterator[Named]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            columns = matched(next(reader, []), {column.name: column for column in _KNOWN})
            for texts in reader:
                yield _parsed(columns, texts)
        except ForeignTableError:
            raise ForeignTableError(f"{path} was not written by `weightdecay export`.") from None
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error} {CURE}") from error


def _parsed(columns: Sequence[Column], texts: Sequence[str]) -> Named:
    if len(texts) != len(columns):
        raise ValueError(f"A row must have {len(columns)} values, got {len(texts)}.")
    return {c.name: c.parsed(text) for c, text in zip(columns, texts, strict=True)}


def _write_parquet(rows: Iterable[Row], path: Path, columns: Sequence[Column]) -> int:
    pyarrow, parquet = _pyarrow()
    schema = _schema(pyarrow, columns)
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
    """Yield rows as pyarrow record batches, which take a tenth of the memory."""
    rows = iter(rows)
    while part := list(islice(rows, _BATCH)):
        columns = zip(schema.types, zip(*part, strict=True), strict=True)
        arrays = [pyarrow.array(values, kind) for kind, values in columns]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _read_parquet(path: Path) -> Iterator[Named]:
    pyarrow, parquet = _pyarrow()
    with path.open("rb") as file:
        try:
            table = parquet.ParquetFile(file)
            wanted = dict(zip(_described(_schema(pyarrow, _KNOWN)), _KNOWN, strict=True))
            described = _described(table.schema_arrow, nullable=_NULLABLE)
            names = [column.name for column in matched(described, wanted)]
            for batch in table.iter_batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield dict(zip(names, row, strict=True))
        except ForeignTableError:
            raise ForeignTableError(f"{path} was not written by `weightdecay export`.") from None
        except (ValueError, OSError) as error:  # pyarrow's own errors are subclasses of these
            raise ValueError(f"{path}: {error} {CURE}") from error


def _schema(pyarrow: Any, columns: Sequence[Column]) -> Any:
    kinds = {
        bool: pyarrow.bool_(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        str: pyarrow.string(),
    }
    return pyarrow.schema(
        [
            pyarrow.field(column.name, kinds[column.kind], nullable=column.optional)
            for column in columns
        ]
    )


def _described(schema: Any, nullable: Container[str] = ()) -> list[str]:
    """Return columns as names and types; in older tables fewer of them are nullable."""
    optional = {True: " or null", False: ""}
    return [
        f"{field.name} ({field.type}{optional[field.nullable or field.name in nullable]})"
        for field in schema
    ]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415 - an optional dependency, only for Parquet
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ImportError(
            "Parquet files need pyarrow: pip install 'weightdecay[parquet]'"
        ) from None
    return pyarrow, parquet


@dataclass(frozen=True)
class _Format:
    """A file format: how rows are written and read."""

    write: Callable[[Iterable[Row], Path, Sequence[Column]], int]
    read: Callable[[Path], Iterable[Named]]


_FORMATS = {
    ".csv": _Format(_write_csv, _read_csv),
    ".parquet": _Format(_write_parquet, _read_parquet),
}


def format_of(path: Path) -> _Format:
    """Return the format that a file's name ends in."""
    if path.suffix not in _FORMATS:
        raise ValueError(
            f"An export's name must end in {' or '.join(_FORMATS)}, got {path.name!r}. "
            "Choose one of them."
        )
    return _FORMATS[path.suffix]
