"""A finished run as it is written in the log: records as columns, which are shorter than rows.

Runs are checked when they are written and when they are read: a file may have been changed in
between, by a failing disk or by hand.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from types import NoneType
from typing import Any, get_args

from weightdecay.records import config as definition
from weightdecay.records.config import RunConfig
from weightdecay.records.record import Environment, Record, Run

#: The types that a column's values may have. A whole float may be written as an int.
_KINDS: dict[str, set[type]] = {
    field.name: {*(kinds := get_args(field.type) or (field.type,)), *((int,) * (float in kinds))}
    for field in fields(Record)
    if field.name != "run"
}
_DESCRIBED = {bool: "true or false", float: "a finite number", int: "a whole number", str: "text"}
# Columns that may be null only if the task has its own metric.
_ERRORS = {name for name in _KINDS if "_error" in name}
# Columns that older lines do not have.
_ADDED = ("budget", "cycle_updates", "missed", "metric")
_LARGEST = 2**63


def as_result(run: Run) -> dict[str, Any]:
    """Return a finished run as the values of a result line."""
    columns = {name: [getattr(record, name) for record in run.records] for name in _KINDS}
    columns = {k: v for k, v in columns.items() if k not in _ADDED or any(v)}
    config, environment = run.config, run.environment
    try:
        _check_records(config, columns)
    except ValueError as error:
        raise ValueError(f"Run {config.identity} cannot be recorded: {error}.") from error
    version = definition.semantics(config.task)
    head = {"run": config.identity, "semantics": version, "config": config.as_dict()}
    where = {} if environment is None else {"environment": asdict(environment)}
    return {**head, **where, "records": columns}


def run_of(value: Mapping[str, Any]) -> Run:
    """Return the run that a result line holds; raise ValueError if it holds none."""
    config, environment = check(value)
    columns = value["records"]
    rows = zip(*columns.values(), strict=True)
    named = (dict(zip(columns, row, strict=True)) for row in rows)
    return Run(config, tuple(Record(run=value["run"], **row) for row in named), environment)


def check(value: Mapping[str, Any]) -> tuple[RunConfig, Environment | None]:
    """Return a result's configuration and environment; raise ValueError if it is not complete."""
    try:
        config = RunConfig.from_dict(value["config"])
        if config.identity != value["run"]:
            raise ValueError(f"its configuration belongs to run {config.identity}")
        _check_records(config, value["records"])
        environment = _environment(value["environment"]) if "environment" in value else None
    except (AttributeError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"it is incomplete or malformed ({error!r})") from error
    return config, environment


def _check_records(config: RunConfig, columns: Mapping[str, Sequence[Any]]) -> None:
    unknown = [f"unknown {name}" for name in columns if name not in _KINDS]
    missing = [f"no {name}" for name in _KINDS if name not in columns and name not in _ADDED]
    if unknown or missing:
        raise ValueError(f"it has the wrong columns: {', '.join(unknown + missing)}")
    own_metric = any(columns.get("metric", ()))
    for name, column in columns.items():
        excluded = {NoneType} if name in _ERRORS and not own_metric else set()
        _check_column(name, column, _KINDS[name] - excluded)
    if len(set(map(len, columns.values()))) != 1:
        raise ValueError("its columns differ in length")
    epochs, diverged = columns["epoch"], columns["diverged"]
    for name in ("epoch", "updates"):
        if not columns[name] or columns[name][0] < 1 or not _is_increasing(columns[name]):
            raise ValueError(f"`{name}` must increase from at least 1, got {_shown(columns[name])}")
    if epochs[-1] > config.epochs or (epochs[-1] < config.epochs and not diverged[-1]):
        raise ValueError(
            f"its last epoch must be {config.epochs} unless it diverged, got {epochs[-1]}"
        )
    if any(diverged[:-1]):
        raise ValueError("it has records after the epoch it diverged in")


def _check_column(name: str, column: Sequence[Any], kinds: set[type]) -> None:
    fits = isinstance(column, list) and set(map(type, column)) <= kinds
    known = [value for value in column if value is not None] if fits else []
    if known and float in kinds:
        fits = all(map(math.isfinite, known))
    elif known and int in kinds:
        fits = min(known) >= 0 and max(known) < _LARGEST
    if not fits:
        kind = next(kind for kind in _DESCRIBED if kind in kinds)
        or_null = " or null" * (NoneType in kinds)
        raise ValueError(f"`{name}` must be {_DESCRIBED[kind]}{or_null}, got {_shown(column)}")


def _environment(values: Mapping[str, Any]) -> Environment:
    if not all(isinstance(value, str) for value in values.values()):
        raise ValueError(f"its environment must be text, got {_shown(values)}")
    return Environment(**values)


def _is_increasing(column: Sequence[int]) -> bool:
    return all(map(operator.lt, column, column[1:]))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}…"
