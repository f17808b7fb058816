"""The lines of a sweep's log: what they say, as text and back.

{"writer": …}    how many workers the file's writer has: the first line of each file
{"result": …}    a cell's configuration and environment, and its epochs in columns
{"repeat": …}    the same of a cell that was trained again, as a control
{"timing": …}    what it cost: apart, so that results can be compared byte for byte
{"failure": …}   why a cell could not be trained

Each ends in `"crc32": "89abcdef"`, the checksum of all that stands before it in the line: a line
that was changed since it was written is noticed. Lines from before November 2026 have none.
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

#: A line's kind, and what it says.
Line: TypeAlias = tuple[str, Mapping[str, Any]]
#: The same, and its text.
Entry: TypeAlias = tuple[str, Mapping[str, Any], bytes]
_CHECKSUM = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\r?\n?$')
_CHECKSUM_SIZE = len(', "crc32": "89abcdef"}\r\n')
#: The kinds of lines that hold a run.
RESULTS = ("result", "repeat")
# How such a line begins, and how it ends.
_NAME = re.compile(rb'\{"result": \{"run": "([0-9a-f]{20})"')
_NO_RESULT = re.compile(rb'\{"(?:writer|repeat|timing|failure)": ')
_HEAD = re.compile(rb'\{"(result|repeat)": \{"run": "([0-9a-f]{20})", "semantics": (\d+), ')
_COLUMN = re.compile(rb'"(\w{1,40})": \[')
_END = re.compile(rb'(?:\[|, )(true|false)\]\}\}, "crc32": "[0-9a-f]{8}"\}\r?\n$')
# What results that were checked whole say, but for the numbers, and their columns. Others like them
# need not be; those of another version may have columns or settings that this one cannot read.
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
    """The seconds a worker spent on epochs of a cell; those of a pack are divided by its lanes.

    What was trained before a resumption, by another worker, is not among these epochs.
    """

    run: str
    seconds: float
    epochs: int
    lanes: int


def as_line(values: Mapping[str, Any]) -> bytes:
    """Return values as a line of a file, which ends in its checksum."""
    return with_checksum(json.dumps(values).encode() + b"\n")


def with_checksum(line: bytes) -> bytes:
    """Return a line with its checksum, if it has none yet."""
    if _checksum(line) is not None:
        return line
    body = line.rstrip()[:-1]
    return b'%b, "crc32": "%08x"}\n' % (body, crc32(body))


def values_of(line: bytes) -> tuple[dict[str, Any], bool]:
    """Return a line's values, and whether it has a checksum; a ValueError says what is wrong."""
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
    """Return a line's kind, what it says, and whether it has a checksum.

    A ValueError says why it cannot be used. A result that has a checksum was checked before it was
    written: it is not checked again if others of its form were. A result of other semantics is
    "outdated".
    """
    if (seen := _glanced(line)) is not None and _is_unchanged(line):
        kind, run, semantics, diverged, form = seen
        if semantics == definition.SEMANTICS and form in _checked:
            return kind, {"run": run, "records": {"diverged": [diverged]}}, True
    values, checked = values_of(line)
    if len(values) != 1:
        raise ValueError(f"it must say one thing, got {', '.join(map(repr, values)) or 'none'}")
    [(kind, value)] = values.items()
    try:
        _check(kind, value)
        if kind in RESULTS and value["semantics"] != definition.SEMANTICS:
            return "outdated", {"run": value["run"], "now": _name_now(value)}, checked
        if kind in RESULTS:
            check(value)
            _checked.update([] if seen is None else [seen[-1]])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"it is incomplete or malformed ({error!r})") from error
    return kind, value, checked


def name_in(line: bytes) -> str | None:
    """Return the name of the cell that a damaged line is the result of, if it can be read."""
    found = _NAME.match(line)
    return None if found is None else found[1].decode()


def may_be_result(line: bytes) -> bool:
    """Whether a damaged line may be a result: it does not begin as another kind does."""
    return _NO_RESULT.match(line) is None


def run_in(line: bytes) -> Run:
    """Return the run of a line that holds one."""
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
            raise ValueError(f"{kind!r} is no kind of line that this version knows")


def _name_now(value: Mapping[str, Any]) -> str | None:
    """Return the name that a result of other semantics would have now; None if it has none."""
    try:
        return RunConfig.from_dict(value["config"]).identity
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _checksum(line: bytes) -> re.Match[bytes] | None:
    return _CHECKSUM.search(line, max(0, len(line) - _CHECKSUM_SIZE))


def _is_unchanged(line: bytes) -> bool:
    """Whether a line has a checksum, which must match."""
    found = _checksum(line)
    if found is not None and int(found[1], 16) != crc32(memoryview(line)[: found.start()]):
        raise ValueError("its checksum does not match, so it was changed after it was written")
    return found is not None


def _glanced(line: bytes) -> tuple[str, str, int, bool, _Form] | None:
    """Return of a result with a checksum its kind, name, semantics, whether it diverged, and form.

    None if it begins or ends otherwise than those that are written now.
    """
    head, end = _HEAD.match(line), _END.search(line, max(0, len(line) - 48))
    if head is None or end is None:
        return None
    at = line.find(b'"records": ')
    columns = _COLUMN.findall(line, at)
    if columns[-1:] != [b"diverged"]:
        return None
    form = line[head.end() : at].translate(None, b"0123456789.-+"), *columns
    return head[1].decode(), head[2].decode(), int(head[3]), end[1] == b"true", form
