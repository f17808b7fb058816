"""From columns to a frame of pandas or Polars, and back; neither library is required."""

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from weightdecay import checks

#: The libraries whose frames are made, in the order in which they are looked for.
LIBRARIES = ("pandas", "polars")


def frame(columns: Mapping[str, list[Any]], library: str | None = None) -> Any:
    """Return columns as a frame of the library, or of the first that is installed."""
    if library is not None:
        checks.one_of("library", library, LIBRARIES)
    wanted = LIBRARIES if library is None else (library,)
    for name in wanted:
        module = _installed(name)
        if module is not None:
            return module.DataFrame(dict(columns))
    raise ImportError(
        f"A frame needs {' or '.join(wanted)}, which is not installed: pip install {wanted[0]}. "
        "Without it, `to_columns()` has the same as lists."
    )


def columns_of(table: object) -> dict[str, list[Any]] | None:
    """Return a frame's columns as lists, by name; None if it is not a frame.

    Frames of pandas, Polars and pyarrow are, and so are a dictionary of columns and a list of
    dictionaries, one per row. A name of several parts, as pandas has, is joined by "_".
    """
    if isinstance(table, Mapping):
        return {_joined(name): list(values) for name, values in table.items()}
    if isinstance(table, (list, tuple)) and all(isinstance(row, Mapping) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        return {_joined(name): [row.get(name) for row in table] for name in names}
    library = type(table).__module__.partition(".")[0]
    frame: Any = table
    if library == "pandas":
        # By place, since two columns may have one name; and what pandas calls missing is None.
        places = range(frame.shape[1])
        cells = [frame.iloc[:, at].astype(object) for at in places]
        lists = [column.where(column.notna(), None).tolist() for column in cells]
        return {_joined(name): list(lists[at]) for at, name in enumerate(frame.columns)}
    if library == "polars":
        if hasattr(frame, "collect"):
            frame = frame.collect()
        return {name: frame[name].to_list() for name in frame.columns}
    if library == "pyarrow":
        columns: dict[str, list[Any]] = frame.to_pydict()
        return columns
    return None


def _installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _joined(name: object) -> str:
    """Return a column's name as text; that of a MultiIndex as Optuna joins its parts."""
    if isinstance(name, tuple):
        return "_".join(str(part) for part in name if str(part))
    return str(name)
