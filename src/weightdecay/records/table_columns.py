"""The columns of a table of runs: which there are, and how a value is kept in one.

A row has the configuration's fields, as RunConfig names them, then the record's, then those of the
environment. Where configuration and record both have a field, the record's is the epoch's: `lr` is
α, and `epoch_lr` α·η of its last update. What is not known is empty.
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
    """A field's column; `mixed` is one of whole numbers and words, which is text in a table."""

    name: str
    field: str
    kind: type
    optional: bool
    mixed: bool

    def stored(self, value: Any) -> Any:
        """Return the value as the column keeps it."""
        if value is None and not self.optional:
            raise ValueError(f"`{self.field}` must be {_KINDS[self.kind]}, got None.")
        return None if value is None else self.kind(value)

    def restored(self, value: Any) -> Any:
        """Return the value that was stored."""
        return int(value) if self.mixed and value is not None and value.isdecimal() else value

    def parsed(self, text: str) -> Any:
        """Return the value that a CSV file's cell says."""
        if not text and self.optional:
            return None
        try:
            return _TRUTHS[text] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            said = f"`{self.name}` must be {_KINDS[self.kind]}, got {text!r}."
            raise ValueError(said) from None


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
# Columns that tables from before do not have.
_ADDED = {
    *("keep_missed", "budget", "cycle_updates", "missed", "metric"),
    *(column.name for column in PLACE),
}


def matched(found: Sequence[str], wanted: Mapping[str, Column]) -> list[Column]:
    """Return the columns of a table, by how they are described."""
    missing = [
        f"no {name}"
        for name, column in wanted.items()
        if name not in found and column.name not in _ADDED
    ]
    unknown = [f"also {name}" for name in found if name not in wanted]
    if missing or unknown:
        raise ValueError(
            f"An export must have a run's columns alone, got {', '.join(missing + unknown)}."
        )
    if list(found) != [name for name in wanted if name in found]:
        raise ValueError(f"An export must have its columns in the order {', '.join(wanted)}.")
    return [wanted[name] for name in found]
