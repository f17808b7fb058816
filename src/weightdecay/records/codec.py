"""Encodes and decodes the lines of a sweep's log.

{"writer": …}    how many workers the file's writer has: the first line of each file
{"result": …}    a cell's configuration and environment, and its records as columns
{"repeat": …}    the same for a cell that was trained a second time, as a control
{"timing": …}    what a cell cost: separate, so that results can be compared byte for byte
{"failure": …}   why a cell could not be trained

Each line ends in `"crc32": "89abcdef"`, the checksum of everything before it in the line, so that
later changes are detected. Lines written before November 2026 have no checksum.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from zlib import crc32

from weightdecay import checks
from weightdecay.records import config as definition
from weightdecay.records.columnar import check, run_of
from weightdecay.records.config import RunConfig
from weightdecay.records.record import Run

#: A line's kind and its values.
Line: TypeAlias = tuple[str, Mapping[str, Any]]
#: The same, with the line's text.
Entry: TypeAlias = tuple[str, Mapping[str, Any], bytes]
_CHECKSUM = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\r?\n?$')
_CHECKSUM_SIZE = len(', "crc32": "89abcdef"}\r\n')
#: The kinds of lines that hold a run.
RESULTS = ("result", "repeat")
# The beginning and the end of such a line.
_NAME = re.compile(rb'\{"result": \{"run": "([0-9a-f]{20})"')
_NO_RESULT = re.compile(rb'\{"(?:writer|repeat|timing|failure)": ')
_HEAD = re.compile(
    rb'\{"(result|repeat)": \{"run": "([0-9a-f]{20})", "semantics": (\d+), '
    rb'"config": \{"task": "([^"\\]*)", '
)
_COLUMN = re.compile(rb'"(\w{1,40})": \[')
_END = re.compile(rb'(?:\[|, )(true|false)\]\}\}, "crc32": "[0-9a-f]{8}"\}\r?\n$')
# The forms of results that were checked in full: their text without the numbers, and their columns.
# Others of the same form need no full check; those of another version may have columns or settings
# that this version cannot read.
_Form: TypeAlias = tuple[bytes, ...]
_checked: set[_Form] = set()


@dataclass(frozen=True)
class Failure:
    """Why a cell could not be trained."""

    run: str
    reason: str
    trace: str = ""


@dataclass(frozen=True)
class Cost:
    """The seconds a worker spent on a cell's epochs: a pack's seconds are divided by its lanes.

    Epochs trained by another worker before the cell was resumed are not included.
    """

    run: str
    seconds: float
    epochs: int
    lanes: int


def as_line(values: Mapping[str, Any]) -> bytes:
    """Return values as a line with a checksum."""
    return with_checksum(json.dumps(values).encode() + b"\n")


def with_checksum(line: bytes) -> bytes:
    """Return a line with a checksum, adding one if it has none."""
    if _checksum(line) is not None:
        return line
    body = line.rstrip()[:-1]
    return b'%b, "crc32": "%08x"}\n' % (body, crc32(body))


def values_of(line: bytes) -> tuple[dict[str, Any], bool]:
    """Return a line's values and whether it has a checksum; raise ValueError if it is damaged."""
    checked = _is_unchanged(line)
    try:
        values = json.loads(line)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"it is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - no argument has a wrong type
    if checked:
        del values["crc32"]
    return values, checked


def read(line: bytes) -> tuple[str, dict[str, Any], bool]:
    """Return a line's kind, its values, and whether it has a checksum.

    Raises ValueError if the line cannot be used. A result with a checksum was checked before it was
    written, so it is not checked again if another result of the same form was. A result of other
    semantics has the kind "outdated".
    """
    if (seen := _glance(line)) is not None and _is_unchanged(line):
        kind, run, is_current, diverged, form = seen
        if is_current and form in _checked:
            return kind, {"run": run, "records": {"diverged": [diverged]}}, True
    values, checked = values_of(line)
    if len(values) != 1:
        raise ValueError(f"it must have one key, got {', '.join(map(repr, values)) or 'none'}")
    [(kind, value)] = values.items()
    try:
        _check(kind, value)
        if kind in RESULTS and not _is_current(value["semantics"], value["config"]["task"]):
            return "outdated", {"run": value["run"], "now": _name_now(value)}, checked
        if kind in RESULTS:
            check(value)
            _checked.update([] if seen is None else [seen[-1]])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"it is incomplete or malformed ({error!r})") from error
    return kind, value, checked


def name_in(line: bytes) -> str | None:
    """Return the name of the cell whose result a damaged line is, if the name can be read."""
    found = _NAME.match(line)
    return None if found is None else found[1].decode()


def may_be_result(line: bytes) -> bool:
    """Whether a damaged line may be a result: it does not begin like a line of another kind."""
    return _NO_RESULT.match(line) is None


def run_in(line: bytes) -> Run:
    """Return the run in a line of kind result or repeat."""
    values, _ = values_of(line)
    [value] = values.values()
    return run_of(value)


def _check(kind: str, value: dict[str, Any]) -> None:
    if kind == "writer":
        checks.whole("workers", value["workers"], at_least=0)
        return
    checks.text("run", value["run"])
    match kind:
        case "result" | "repeat":
            checks.whole("semantics", value["semantics"], at_least=0)
        case "timing":
            checks.number("seconds", value["seconds"], at_least=0)
            checks.whole("epochs", value["epochs"], at_least=0)
        case "failure":
            checks.text("reason", value["reason"])
            checks.text("trace", value.get("trace", ""))
        case _:
            raise ValueError(f"this version does not know lines of kind {kind!r}")


def _is_current(version: int, task: str) -> bool:
    return version == definition.semantics(task)


def _name_now(value: Mapping[str, Any]) -> str | None:
    """Return the name that a cell of other semantics has now; None if its fields are unknown."""
    try:
        return RunConfig.from_dict(value["config"]).identity
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _checksum(line: bytes) -> re.Match[bytes] | None:
    return _CHECKSUM.search(line, max(0, len(line) - _CHECKSUM_SIZE))


def _is_unchanged(line: bytes) -> bool:
    """Whether a line has a checksum; raise ValueError if it does not match."""
    found = _checksum(line)
    if found is not None and int(found[1], 16) != crc32(memoryview(line)[: found.start()]):
        raise ValueError("its checksum does not match, so it was changed after it was written")
    return found is not None


def _glance(line: bytes) -> tuple[str, str, bool, bool, _Form] | None:
    """Return a result's kind, name, whether its semantics are today's, divergence and form.

    The line is not parsed. Returns None if it does not begin and end as lines written now do.
    """
    head, end = _HEAD.match(line), _END.search(line, max(0, len(line) - 48))
    if head is None or end is None:
        return None
    at = line.find(b'"records": ')
    columns = _COLUMN.findall(line, at)
    if columns[-1:] != [b"diverged"]:
        return None
    form = line[head.end() : at].translate(None, b"0123456789.-+"), *columns
    current = _is_current(int(head[3]), head[4].decode())
    return head[1].decode(), head[2].decode(), current, end[1] == b"true", form
