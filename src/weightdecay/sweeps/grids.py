"""Grids: every configuration that a few axes stand for.

    grid(task="mnist1d", model="mlp", algorithm=["adamw", "sgdw"], epochs=27, batch=64,
         lr="2^-12..2^-5", normalized_decay=[0, "2^-8..2^0"], seed="0..4")

An axis is a field of `RunConfig` with one value or several. For a field that is a number, text is
parsed and may be a range; for a field that is a name, text is the name. A task may also be a
function that can be imported. A study is a grid in a TOML file.
"""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from weightdecay import checks
from weightdecay.notation import numbers
from weightdecay.records import DECAYS, RunConfig

Value: TypeAlias = str | float | Callable[[], Any] | None
Axis: TypeAlias = Value | Sequence[Value]

#: The most cells that a grid may have.
LARGEST = 100_000
_KNOWN = tuple(field.name for field in fields(RunConfig))
_REQUIRED = tuple(field.name for field in fields(RunConfig) if field.default is MISSING)
_REAL = ("lr", *DECAYS)
_WHOLE = ("epochs", "batch", "data", "validation", "seed", "evaluate_every")
_TABLES = ("grid", "run")


def grid(**axes: Axis) -> list[RunConfig]:
    """Return every combination of the axes' values, without duplicates.

    They are ordered by RunConfig's fields, of which the last changes fastest, and on each axis by
    the order of its values; the order of the arguments does not matter.
    """
    return list(_cells(_read(axes)))


def read_study(path: Path | str) -> list[RunConfig]:
    """Return the configurations of a study, which is a TOML file of axes.

    The top-level keys are a grid. If the file has `[[grid]]` tables, each of those is a grid, and
    the top-level keys apply to all of them unless a table overrides them. A `[[run]]` table is a
    grid with one value per axis. Grids come before runs, and no configuration comes twice.
    """
    path = Path(path)
    study = _parsed(path)
    tables = [
        (kind, place, table)
        for kind in _TABLES
        for place, table in enumerate(_tables(path, kind, study.pop(kind, [])), start=1)
    ]
    with _named(f"{path}"):
        common = _read(study, tables=_TABLES)
        cells = {} if tables else _cells(common)
    for kind, place, table in tables:
        with _named(f"{path}, {kind} {place}"):
            axes = common | _read(table)
            if kind == "run":
                _check_single(axes)
            cells |= _cells(axes)
    return list(cells)


def _read(axes: Mapping[str, Any], tables: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return all values of each axis."""
    for name in axes:
        if name not in _KNOWN:
            unknown = f"Unknown field `{name}`. {checks.did_you_mean(name, (*_KNOWN, *tables))}"
            raise ValueError(f"{unknown.rstrip()} The fields are {', '.join(_KNOWN)}.")
    return {name: _values(name, axis) for name, axis in axes.items()}


def _values(name: str, axis: Any) -> list[Any]:
    stated = axis if isinstance(axis, (list, tuple, range)) else [axis]
    values = [value for one in stated for value in _expanded(name, one)]
    if not values:
        raise ValueError(f"`{name}` must have a value, got {axis!r}. Give one, or leave it out.")
    return values


def _expanded(name: str, value: Any) -> Iterable[Any]:
    """Return the values that text stands for; RunConfig checks any other value."""
    if not isinstance(value, str) or name not in _REAL + _WHOLE:
        return [value]
    if name == "validation" and value == "test":
        return [value]
    wanted = "whole numbers such as 60, 2^6 or 0..4" if name in _WHOLE else "numbers such as 2^-9"
    if name == "validation":
        wanted += ', or "test"'
    try:
        found = numbers(value)
    except ValueError as error:
        raise ValueError(f"`{name}` must be {wanted}. {error}") from None
    if name in _REAL:
        return found
    if any(each != int(each) for each in found):
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}.")
    return map(int, found)


def _cells(axes: Mapping[str, Sequence[Any]]) -> dict[RunConfig, None]:
    """Return the configurations as the keys of a dictionary: ordered, without duplicates."""
    missing = [name for name in _REQUIRED if name not in axes]
    if missing:
        raise ValueError(f"A grid must also have {', '.join(f'`{name}`' for name in missing)}.")
    names = [name for name in _KNOWN if name in axes]
    columns = [axes[name] for name in names]
    size = math.prod(map(len, columns))
    if size > LARGEST:
        shape = " · ".join(str(len(column)) for column in columns if len(column) > 1)
        raise ValueError(
            f"A grid must have at most {LARGEST:,} cells, got {shape} = {size:,}. Make it coarser."
        )
    return dict.fromkeys(
        RunConfig(**dict(zip(names, values, strict=True))) for values in product(*columns)
    )


def _check_single(axes: Mapping[str, Sequence[Any]]) -> None:
    for name, values in axes.items():
        if len(values) > 1:
            raise ValueError(
                f"`{name}` of a run must be one value, got {len(values)}. "
                "Set it in the run, or make the run a [[grid]]."
            )


def _parsed(path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise IsADirectoryError(
            f"A study must be a TOML file, but {path} is a folder. Give a file."
        )
    if not path.exists():
        raise FileNotFoundError(f"A study must be a TOML file, but {path} does not exist.")
    try:
        study = tomllib.loads(path.read_text("utf-8-sig"))
    except ValueError as error:  # from TOML or UTF-8
        raise ValueError(
            f"{path} is not valid TOML: {error}. Write names and ranges in quotes, as in "
            'lr = "2^-12..2^-5".'
        ) from error
    if not study:
        raise ValueError(f'{path} must have a grid, but is empty. Begin with task = "mnist1d".')
    return study


def _tables(path: Path, kind: str, found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise ValueError(
            f"{path}: `{kind}` must be a list of tables, got {found!r}. "
            f"Begin each table with a line [[{kind}]]."
        )
    return found


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Add the place to an error."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from error
