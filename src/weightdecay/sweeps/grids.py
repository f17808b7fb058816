"""A few words that a person writes, and every configuration they stand for.

    grid(task="mnist1d", model="mlp", algorithm=["adamw", "sgdw"], epochs=27, batch=64,
         lr="2^-12..2^-5", normalized_decay=[0, "2^-8..2^0"], seed="0..4")

An axis is a field of `RunConfig`: a value, or several. Where the field is a number, a text is
notation, and may be a range; where it is a name, it is the name. A task may also be a function
that can be imported. A study is the same in a file.
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
    """Return every combination of the axes' values, once.

    They come in the order of RunConfig's fields, the last of them changing fastest, and on each
    axis in the order they are written in; the order of the arguments does not matter.
    """
    return list(_cells(_read(axes)))


def read_study(path: Path | str) -> list[RunConfig]:
    """Return the configurations of a study: a TOML file of axes.

    The file's own keys are a grid. Where it has `[[grid]]` tables, those are its grids, and its
    own keys are common to them; a table's keys go before these. A `[[run]]` table is such a grid
    with one value on each axis. Grids come before runs, and no configuration comes twice.
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
            said = f"Unknown field `{name}`. {checks.did_you_mean(name, (*_KNOWN, *tables))}"
            raise ValueError(f"{said.rstrip()} The fields are {', '.join(_KNOWN)}.")
    return {name: _values(name, axis) for name, axis in axes.items()}


def _values(name: str, axis: Any) -> list[Any]:
    stated = axis if isinstance(axis, (list, tuple, range)) else [axis]
    values = [value for one in stated for value in _understood(name, one)]
    if not values:
        raise ValueError(f"`{name}` must have a value, got {axis!r}. State one, or leave it out.")
    return values


def _understood(name: str, value: Any) -> Iterable[Any]:
    """Return the values that one stands for; what is not text is left to RunConfig to judge."""
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
    """Return the configurations as the keys of a dictionary, which are ordered and distinct."""
    missing = [name for name in _REQUIRED if name not in axes]
    if missing:
        raise ValueError(f"A grid must state {', '.join(f'`{name}`' for name in missing)} as well.")
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
                "State it in the run, or make the run a [[grid]]."
            )


def _parsed(path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise IsADirectoryError(
            f"A study must be a TOML file, and {path} is a folder. Name a file."
        )
    if not path.exists():
        raise FileNotFoundError(f"A study must be a TOML file, and {path} is not there.")
    try:
        study = tomllib.loads(path.read_text("utf-8-sig"))
    except ValueError as error:  # of TOML, or of UTF-8
        raise ValueError(
            f"{path} must be TOML, and is not: {error}. Write names and ranges in quotes, as in "
            'lr = "2^-12..2^-5".'
        ) from error
    if not study:
        raise ValueError(f'{path} must state a grid, and is empty. Begin with task = "mnist1d".')
    return study


def _tables(path: Path, kind: str, found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise ValueError(
            f"{path}: `{kind}` must be a list of tables, got {found!r}. "
            f"Begin each with a line [[{kind}]]."
        )
    return found


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Let an error say where it is."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from error
