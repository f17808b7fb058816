"""How a table is laid out: which columns are the settings, labels and metrics, and their scale."""

import math
import numbers
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from weightdecay.results.column_names import (
    LABELS,
    SETTINGS,
    Metric,
    find,
    find_all,
    metrics,
    named,
    naming,
    present,
    unused,
    words_of,
)
from weightdecay.results.metrics import MetricScale, scale_of
from weightdecay.results.optimizer_names import decays_by
from weightdecay.results.points import CONVENTIONS, Label, Remark

# Numbers that differ by less than this are one: 0.001 * 0.1 and 0.01 * 0.01, or 0.3 and 3 * 0.1.
_ALIKE = 1e-9
_SPELLED = {"lr": "a column with the learning rate", "decay": "a column with the decay"}
_MADE_ON = ("error", "validation_error")
_A = {"error": "an error", "accuracy": "an accuracy", "loss": "a loss"}


class TableLayout:
    """A table, and what each of its columns is."""

    def __init__(
        self,
        table: Mapping[str, Sequence[Any]],
        convention: str,
        *,
        columns: Mapping[str, str],
        metric: str | None,
        unit: str | None,
        labels: Sequence[str],
    ) -> None:
        words = words_of(table, columns)
        columns = {role: columns[word] for role, word in words.items()}
        for label in labels:
            present(table, label)
        self.table = table
        self.convention = convention
        self._alike: dict[str, dict[float, float]] = {}
        self._spellings: dict[str, dict[str, str]] = {}
        self.settings = {role: columns.get(role) or find(table, role) for role in SETTINGS}
        missing = [role for role in _SPELLED if self.settings[role] is None]
        if missing:
            raise ValueError(
                f"A table must have {_and([_SPELLED[role] for role in missing])}, got "
                f"{', '.join(map(repr, table))}. Name {'it' if len(missing) == 1 else 'them'}: "
                f"{naming(table, missing)}."
            )
        found = {role: columns.get(role) or find(table, role) for role in LABELS}
        self.labels = {role: column for role, column in found.items() if column is not None}
        self.labels |= {label: label for label in labels}
        if self.settings["updates"] is not None:
            self.labels["updates"] = self.settings["updates"]
        self.progress = [columns["epoch"]] if "epoch" in columns else find_all(table, "epoch")
        self.progress_named = "epoch" in columns
        if self.progress_named:
            self.labels = {
                role: column for role, column in self.labels.items() if column != columns["epoch"]
            }
        used = {*self.settings.values(), *self.labels.values()}
        self.progress = [column for column in self.progress if column not in used]
        self.runs = [columns["run"]] if "run" in columns else find_all(table, "run")
        self.metrics = _metrics(table, columns, words, metric)
        kept = [self.metrics[role] for role in _MADE_ON if role in self.metrics]
        self.scale: MetricScale = scale_of(
            {one.column: table[one.column] for one in kept}, kept[0].kind, unit
        )

    @property
    def reported(self) -> Metric:
        """Return the metric to report: the test metric, or the only one that there is."""
        return self.metrics.get("error") or self.metrics["validation_error"]

    @property
    def deciding(self) -> Metric:
        """Return the metric that choices are made on."""
        return self.metrics.get("validation_error") or self.metrics["error"]

    @property
    def of(self) -> str:
        """Return what the metric is as part of a point."""
        if self.scale.kind == "loss":
            return "loss"
        return "error_top5" if self.reported.top5 else "error"

    @property
    def columns(self) -> dict[str, str]:
        """Return the columns that are used, by what they are."""
        settings = {role: column for role, column in self.settings.items() if column is not None}
        metrics = {role: metric.column for role, metric in self.metrics.items()}
        ordered = {role: settings[role] for role in ("lr", "decay")} | metrics
        return ordered | settings | self.labels

    @property
    def rows(self) -> range:
        """Return the numbers of its rows."""
        return range(len(next(iter(self.table.values()))))

    def cell(self, row: int, role: str) -> Any:
        """Return a setting as it is in the table; None if it is empty or the table has none."""
        column = self.settings[role]
        return None if column is None else _or_none(self.table[column][row])

    def number(self, row: int, role: str) -> float | None:
        """Return a setting that must be a number; None if it is empty."""
        value = self.cell(row, role)
        if value is None:
            return None
        if not isinstance(value, bool) and isinstance(value, (float, numbers.Real)):
            return self._as_one(role).get(float(value), float(value))
        raise ValueError(
            f"Row {row + 1} of column {self.settings[role]!r} must be a number, got {value!r}. "
            f"Correct it, with a decimal point, or name another column: columns={{{role!r}: …}}."
        )

    def _as_one(self, role: str) -> dict[float, float]:
        """Return what each number of a setting is read as: those that are alike are one."""
        if role not in self._alike:
            cells = (self.cell(row, role) for row in self.rows)
            read = {float(one) for one in cells if isinstance(one, (float, numbers.Real))}
            self._alike[role] = _as_one(read)
        return self._alike[role]

    def run_of(self, row: int) -> str:
        """Return the name of a row's run, of one part per column that names it."""
        return ", ".join(str(self.table[column][row]) for column in self.runs)

    def labels_of(self, row: int) -> dict[str, Label]:
        """Return a row's labels, without empty ones; of several spellings, the first counts."""
        cells = ((name, _or_none(self.table[column][row])) for name, column in self.labels.items())
        read = {name: _label(value) for name, value in cells if value is not None}
        return {name: self._spelled(name).get(str(value), value) for name, value in read.items()}

    def _spelled(self, name: str) -> dict[str, str]:
        """Return the first spelling of each label that is spelled in several ways.

        Only case and spaces at the ends may differ. Columns that the caller named stay as they are.
        """
        if name not in self._spellings:
            first: dict[str, str] = {}
            texts = [one for one in self.table[self.labels[name]] if isinstance(one, str)]
            same = {one: first.setdefault(one.strip().casefold(), one) for one in texts}
            several = {one: told for one, told in same.items() if one != told}
            self._spellings[name] = several if name in LABELS else {}
        return self._spellings[name]

    def way(self, row: int) -> str:
        """Return how a row's decay is stated; torch's Adam and SGD have L2."""
        if self.convention == "torch" and self._optimizer(row) == "l2":
            return "l2"
        return CONVENTIONS[self.convention][0]

    def decays(self) -> list[float | None]:
        """Return each row's decay, that of torch's AdamW as λ = lr · decay; None if unknown."""
        stated = [self.number(row, "decay") for row in self.rows]
        if self.convention != "torch":
            return stated
        rates = [self.number(row, "lr") for row in self.rows]
        products = [
            None if lr is None or decay is None or self.way(row) == "l2" else _product(lr, decay)
            for row, lr, decay in zip(self.rows, rates, stated, strict=True)
        ]
        as_one = _as_one({one for one in products if one is not None})
        return [
            decay if product is None else as_one[product]
            for product, decay in zip(products, stated, strict=True)
        ]

    def errors(self, row: int) -> tuple[float | None, float | None]:
        """Return the number to report and the number to choose on; None if missing.

        If there is one metric, it serves for both.
        """
        read = {
            role: self.scale.read(self.table[self.metrics[role].column][row], row)
            for role in _MADE_ON
            if role in self.metrics
        }
        chosen = read.get("validation_error")
        if "error" not in read:
            return chosen, None
        if "validation_error" in read and chosen is None:
            return None, None
        return read["error"], chosen

    def measured(self, row: int) -> bool:
        """Return whether a row has a number in any of the metric's columns."""
        cells = (
            self.table[self.metrics[role].column][row] for role in _MADE_ON if role in self.metrics
        )
        values = (self.scale.read(cell, row) for cell in cells)
        return any(value is not None and not math.isnan(value) for value in values)

    def remarks(self) -> list[Remark]:
        """Return remarks on which columns are used and which other knobs varied."""
        read = dict.fromkeys(_MADE_ON, f" ({self.scale.kind}{self.scale.said})")
        used = [f"{role}={column}{read.get(role, '')}" for role, column in self.columns.items()]
        none = "" if "seed" in self.columns else "; no seed"
        told = [Remark("columns", 0, f"Columns used: {', '.join(used)}{none}.")]
        told += [Remark("unused", 1, text) for text in unused(self.table, self.metrics)]
        for name in self.labels:
            for other, first in self._spelled(name).items():
                text = f"{other!r} in column {self.labels[name]!r} is read as {first!r}."
                told.append(Remark("spelling", 1, text))
        taken = set(self.columns.values())
        knobs = [
            column
            for column, values in self.table.items()
            if column.startswith(("params_", "config.", "config/"))
            and column not in taken
            and len({repr(value) for value in values}) > 1
        ]
        if knobs:
            text = (
                f"{', '.join(map(repr, knobs))} varied too, and counts as noise. To separate runs "
                "by it, name it in `labels`."
            )
            told.append(Remark("unused", len(knobs), text))
        return told + self._of_optimizers()

    def _optimizer(self, row: int) -> str | None:
        column = self.labels.get("algorithm")
        return None if column is None else decays_by(self.table[column][row])

    def _of_optimizers(self) -> list[Remark]:
        """Return remarks on rows whose optimizer has another decay than the convention says.

        If the convention is torch's, the optimizers that are not known are named too.
        """
        ours = CONVENTIONS[self.convention][0]
        other = "l2" if ours != "l2" else "weight_decay"
        if self.convention == "torch":
            does = "read as L2: that is what torch's weight_decay is there."
        else:
            what = "L2 regularization" if other == "l2" else "decoupled decay"
            does = (
                f"read as convention={self.convention!r} says, but in torch it has {what}. "
                "For torch's own optimizers, pass convention='torch'."
            )
        told = self._of_rows([row for row in self.rows if self._optimizer(row) == other], does)
        if self.convention == "torch" and "algorithm" in self.labels:
            cells = self.table[self.labels["algorithm"]]
            unknown = [r for r in self.rows if cells[r] is not None and not self._optimizer(r)]
            told += self._of_rows(
                unknown,
                "read as decoupled, λ = lr * decay: the optimizer is not known. If its decay "
                "goes through the gradient, write 'SGD' or 'Adam' there.",
            )
        return told

    def _of_rows(self, rows: Sequence[int], read: str) -> list[Remark]:
        """Return a remark that names the optimizers of some rows and how they are read."""
        if not rows:
            return []
        column = self.labels["algorithm"]
        names = _and([repr(name) for name in dict.fromkeys(self.table[column][r] for r in rows)])
        count = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
        are = "is" if len(rows) == 1 else "are"
        return [Remark("optimizer", len(rows), f"{count} of {names} {are} {read}")]


def _metrics(
    table: Mapping[str, Sequence[Any]],
    columns: Mapping[str, str],
    words: Mapping[str, str],
    kind: str | None,
) -> dict[str, Metric]:
    given = {role: named(columns[role], words[role], kind) for role in _MADE_ON if role in columns}
    found = given or metrics(table, kind)
    if "train_loss" in columns:
        found["train_loss"] = Metric(columns["train_loss"], "loss", "training")
    main = found.get("error") or found.get("validation_error")
    pair = [found[role] for role in _MADE_ON if role in found and found[role].kind is not None]
    if len({one.kind for one in pair}) > 1:
        told = _and([f"{one.column!r} ({one.kind})" for one in pair])
        raise ValueError(
            "The metric to choose on and the one to report must be of the same kind, got "
            f"{told}. Convert one of the columns, or name only one."
        )
    if main is None:
        raise ValueError(_no_metric(table, kind))
    if main.kind is None:
        raise ValueError(
            f"Column {main.column!r} must be known to be an error, an accuracy or a loss, and "
            "its name does not say. Pass metric='error', metric='accuracy' or metric='loss'."
        )
    return found


def _no_metric(table: Mapping[str, Sequence[Any]], kind: str | None) -> str:
    """Return what to do about a table without a metric, or without one of the kind asked for."""
    try:
        other = {} if kind is None else metrics(table, None)
    except ValueError:  # its other metrics cannot be told apart, and are not asked for
        other = {}
    found = other.get("error") or other.get("validation_error")
    if kind is None or found is None:
        return (
            "A table must have a column with an error, an accuracy or a loss, got "
            f"{', '.join(map(repr, table))}. Name it: columns={{'error': …}}, "
            "columns={'accuracy': …} or columns={'loss': …}."
        )
    return (
        f"A table must have a column whose name says that it is {_A[kind]}, got {found.column!r}, "
        f"whose name says otherwise. If it is one, name it: columns={{{kind!r}: {found.column!r}}}."
    )


def _as_one(values: set[float]) -> dict[float, float]:
    """Return the smallest of those alike for each of some numbers that are not negative."""
    found: dict[float, float] = {}
    last = -math.inf
    for value in sorted(values):
        if not value <= last * (1 + _ALIKE):
            last = value
        found[value] = last
    return found


def _product(one: float, other: float) -> float:
    """Return the product of two decimal numbers as they are written, rounded once."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return one * other
    return float(Fraction(repr(one)) * Fraction(repr(other)))


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _or_none(value: Any) -> Any:
    """Return a cell's value; None for NaN, which some tables have in empty cells."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _label(value: object) -> Label:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, (str, int, float, bool)) else str(value)
