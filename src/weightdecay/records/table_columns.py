"""The columns of a table of runs, and how values are stored in them.

A row has the fields of the configuration, then of the record, then of the environment, under their
own names. If configuration and record both have a field, the record's column begins with `epoch_`:
`lr` is α, and `epoch_lr` is α·η of the epoch's last update. Unknown values are empty.

Timings differ from sweep to sweep. They have columns only if they are asked for: `seconds` that one
worker spent on the run, and `timed_epochs`, the epochs that it trained in them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from types import NoneType
from typing import Any, get_args

from weightdecay.records.config import RunConfig
from weightdecay.records.record import Environment, Record

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class Column:
    """A field's column; a `mixed` one holds whole numbers and words, stored as text."""

    name: str
    field: str
    kind: type
    optional: bool
    mixed: bool

    def stored(self, value: Any) -> Any:
        """Return a value as the column stores it."""
        if value is None and not self.optional:
            raise ValueError(f"`{self.field}` must be {_KINDS[self.kind]}, got None.")
        return None if value is None else self.kind(value)

    def restored(self, value: Any) -> Any:
        """Return the value that was stored."""
        return int(value) if self.mixed and value is not None and value.isdecimal() else value

    def parsed(self, text: str) -> Any:
        """Return the value of a field of a CSV file."""
        if not text and self.optional:
            return None
        try:
            return _TRUTHS[text] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            message = f"`{self.name}` must be {_KINDS[self.kind]}, got {text!r}."
            raise ValueError(message) from None


def _column(field: Field[Any], name: str) -> Column:
    kinds = set(get_args(field.type) or [field.type])
    optional, mixed = NoneType in kinds, {int, str} <= kinds
    [kind] = {str} if mixed else kinds - {NoneType}
    return Column(name, field.name, kind, optional, mixed)


SETTINGS = [_column(field, field.name) for field in fields(RunConfig)]
_TAKEN = {column.name for column in SETTINGS}
MEASURED = [
    _column(field, f"epoch_{field.name}" if field.name in _TAKEN else field.name)
    for field in fields(Record)
]
PLACE = [replace(_column(field, field.name), optional=True) for field in fields(Environment)]
COLUMNS = SETTINGS + MEASURED + PLACE
TIMED = [
    Column("seconds", "seconds", float, optional=True, mixed=False),
    Column("timed_epochs", "timed_epochs", int, optional=True, mixed=False),
]
# Columns that older tables do not have.
_ADDED = {
    *("keep_missed", "budget", "cycle_updates", "missed", "metric"),
    *(column.name for column in (*PLACE, *TIMED)),
}


class ForeignTableError(ValueError):
    """A table that was not exported from runs of this package: it has few of their columns."""


def matched(found: Sequence[str], wanted: Mapping[str, Column]) -> list[Column]:
    """Return the columns that a table has, given the wanted ones by their descriptions."""
    missing = [
        f"no {name}"
        for name, column in wanted.items()
        if name not in found and column.name not in _ADDED
    ]
    unknown = [f"unknown {name}" for name in found if name not in wanted]
    if found and len(missing) > len(wanted) / 2:
        raise ForeignTableError("It lacks most columns of an export.")
    if missing or unknown:
        raise ValueError(
            f"An export must have the columns of a run, got {', '.join(missing + unknown)}."
        )
    if list(found) != [name for name in wanted if name in found]:
        raise ValueError(f"An export must have its columns in this order: {', '.join(wanted)}.")
    return [wanted[name] for name in found]
