"""A table from somewhere, as columns of plain values: CSV, Parquet, or a frame.

Cells of text become numbers where they are; numbers between semicolons may have decimal commas, if
none has a point. An empty cell is None. Dictionaries in cells, as a
frame of `wandb.Api().runs` has in `config` and `summary`, become columns: `config.lr`.
"""

import ast
import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weightdecay.results.frames import columns_of

_EMPTY = {"", "none", "null", "na", "n/a", "<na>"}
_POINT = re.compile(r"[+-]?\d*\.\d*(e[+-]?\d+)?%?", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?%?", re.IGNORECASE)
_BARE = re.compile(r"\b(nan|-?inf)\b")


def table_of(source: object) -> dict[str, list[Any]]:
    """Return the columns of a table: a path to a CSV or Parquet file, or a frame."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        columns = _parquet(path) if path.suffix in (".parquet", ".pq") else _csv(path)
    else:
        found = columns_of(source)
        if found is None:
            raise TypeError(
                "`source` must be a path to a CSV or Parquet file, a frame of pandas, Polars or "
                "pyarrow, a dictionary of columns or a list of dictionaries, got "
                f"{type(source).__module__}.{type(source).__name__}."
            )
        columns = found
    flat = _flat(columns)
    if not flat or not any(map(len, flat.values())):
        said = repr(str(source)) if isinstance(source, (str, Path)) else "one without"
        raise ValueError(f"A table must have a row of names and rows of values, got {said}.")
    return flat


def _csv(path: Path) -> dict[str, list[Any]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(
            f"A table must be a CSV file in UTF-8, or Parquet with the suffix .parquet, got "
            f"{str(path)!r}. Save it as one of them."
        ) from None
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = [(lines.line_num, row) for row in lines if any(cell.strip() for cell in row)]
    if not rows:
        return {}
    names = [name.strip() for name in rows[0][1]]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise ValueError(
            f"Every column must have a name of its own, got {', '.join(map(repr, twice))} twice in "
            f"{str(path)!r}. Rename one."
        )
    for number, row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"Line {number} of {str(path)!r} must have {len(names)} cells, as the names do, "
                f"got {len(row)}. A number may have a decimal comma: write a point."
            )
    cells = [[cell.strip() for cell in row] for _, row in rows[1:]]
    if delimiter == ";" and not any(_POINT.fullmatch(cell) for row in cells for cell in row):
        cells = [[_with_point(cell) for cell in row] for row in cells]
    # A column without a name is the index that pandas writes.
    return {name: [_value(row[at]) for row in cells] for at, name in enumerate(names) if name}


def _parquet(path: Path) -> dict[str, list[Any]]:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        raise ImportError(
            "Reading Parquet needs pyarrow: pip install 'weightdecay[parquet]'"
        ) from None
    try:
        columns: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
    except FileNotFoundError:
        raise
    except (ValueError, OSError) as error:  # pyarrow's own errors are subclasses of these
        said = str(error).rstrip(".")
        raise ValueError(f"{path} must be a Parquet file: {said}. Write it again.") from error
    return {
        name: values for name, values in columns.items() if not name.startswith("__index_level_")
    }


def _with_point(cell: str) -> str:
    """Return 0,001 as 0.001, as spreadsheets of many languages write it between semicolons."""
    return cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell


def _value(text: str) -> object:
    """Return a cell as a number, a boolean, None if it is empty, or its text."""
    text = text.strip()
    if text.lower() in _EMPTY:
        return None
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    if text.startswith("{") and text.endswith("}"):
        return _dictionary(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _dictionary(text: str) -> object:
    """Return a dictionary that Python printed into a cell, nan and inf in it as text."""
    try:
        return ast.literal_eval(_BARE.sub(r"'\1'", text))
    except (ValueError, SyntaxError):
        return text


def _flat(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return columns in which a dictionary's entries have columns of their own."""
    flat: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if not any(isinstance(value, Mapping) for value in values):
            flat[name] = list(values)
            continue
        rows = [value if isinstance(value, Mapping) else {} for value in values]
        keys = dict.fromkeys(str(key) for row in rows for key in row)
        inner = {f"{name}.{key}": [_plain(row.get(key)) for row in rows] for key in keys}
        flat |= _flat(inner)
    return flat


def _plain(value: object) -> object:
    return _value(value) if isinstance(value, str) else value
