"""The lines of a sweep's log: what they say, as text and back.

{"writer": …}    how many workers the file's writer has: the first line of each file
{"result": …}    a cell's configuration and environment, and its epochs in columns, which are
                 shorter than rows
{"repeat": …}    the same of a cell that was trained again, as a control
{"timing": …}    what it cost: apart, so that results can be compared byte for byte
{"failure": …}   why a cell could not be trained
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

from weightdecay.records import SEMANTICS, Environment, Record, Run, RunConfig

#: A line's kind, and what it says.
Line: TypeAlias = tuple[str, dict[str, Any]]
# How a result of ours begins and ends.
_RUN = re.compile(rb'\{"result": \{"run": "([0-9a-f]{20})", ')
_END = re.compile(rb"(?:\[|, )(true|false)\]\}\}\}\n$")
_COLUMNS = [f.name for f in fields(Record) if f.name != "run"]
# Those that lines from before do not have.
_ADDED = ("budget", "cycle_updates", "missed")


@dataclass(frozen=True)
class Failure:
    """Why a cell could not be trained."""

    run: str
    reason: str
    trace: str = ""


@dataclass(frozen=True)
class Cost:
    """The seconds a worker spent on epochs of a cell; those of a pack are divided by its lanes.

    What was trained before a resumption, by another worker, is not among these epochs.
    """

    run: str
    seconds: float
    epochs: int
    lanes: int


def as_text(kind: str, value: Mapping[str, Any]) -> str:
    """Return a line as it stands in the log, without its end."""
    return json.dumps({kind: value})


def as_result(run: Run) -> dict[str, Any]:
    """Return a finished run as what a result says."""
    columns = {name: [getattr(record, name) for record in run.records] for name in _COLUMNS}
    columns = {k: v for k, v in columns.items() if k not in _ADDED or any(v)}
    config, place = run.config, run.environment
    head = {"run": config.identity, "semantics": SEMANTICS, "config": config.as_dict()}
    where = {} if place is None else {"environment": asdict(place)}
    return {**head, **where, "records": columns}


def run_of(value: Mapping[str, Any]) -> Run | None:
    """Return the run of a result; None of one that other semantics, or other hands, have made."""
    try:
        config = RunConfig.from_dict(value["config"])
        columns = value["records"]
        if value["semantics"] != SEMANTICS or config.identity != value["run"]:
            return None
        names = [name for name in _COLUMNS if name not in _ADDED or name in columns]
        rows = zip(*(columns[name] for name in names), strict=True)
        named = (dict(zip(names, row, strict=True)) for row in rows)
        records = tuple(Record(run=value["run"], **row) for row in named)
        place = Environment(**value["environment"]) if "environment" in value else None
        return Run(config, records, place) if records else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def parsed(line: bytes) -> Line | None:
    """Return a line's kind and what it says; None where it cannot be read."""
    try:
        [(kind, value)] = json.loads(line).items()
        whole = isinstance(value["run"], str) if kind != "writer" else value["workers"] >= 0
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    return (kind, value) if whole else None


def glanced(line: bytes) -> Line | None:
    """Return of a result the name, and whether it diverged: a line of ours has them at its ends."""
    run, end = _RUN.match(line), _END.search(line, max(0, len(line) - 32))
    if run is None or end is None:
        return None
    return "result", {"run": run[1].decode(), "records": {"diverged": [end[1] == b"true"]}}
