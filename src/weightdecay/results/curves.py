"""Errors as training goes on: the median over seeds, and the band that holds the middle 60 %."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weightdecay import checks
from weightdecay.records import Record, Run, Spec
from weightdecay.results.estimate import Array

# The fields of a record that can be drawn.
_SPLITS = ("train", "validation", "test")
_OF = (
    *(f"{split}_{number}" for split in _SPLITS for number in ("loss", "error")),
    "validation_error_top5",
    "test_error_top5",
    "weight_norm",
)


@dataclass(frozen=True)
class Curve:
    """A median with its 20 % and 80 % quantiles, at each x: epochs, or updates."""

    label: str
    x: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def curve(
    runs: Iterable[Run], of: str = "test_error", by: str = "epoch", *, label: str = ""
) -> Curve:
    """Return a field of the records over epochs or updates; a diverged run keeps its last value.

    A value that was not finite is infinite here.
    """
    return _banded(list(runs), of, by, label, lambda run: run.records)


def anytime(
    runs: Iterable[Run], of: str = "test_error", by: str = "epoch", *, label: str = ""
) -> Curve:
    """Return the result of stopping at each time: with restarts, that of the last finished cycle.

    The middle of a cycle does not count, however good it is, and before the end of the first cycle
    there is no result (NaN). Without restarts this equals `curve`.
    """
    return _banded(list(runs), of, by, label, _recommended)


def against_training_loss(
    runs: Iterable[Run], of: str = "test_error"
) -> tuple[tuple[float, float], ...]:
    """Return each run's last training loss and test error, if the loss is finite."""
    checks.one_of("of", of, _OF)
    return tuple(
        (run.last.train_loss, float(getattr(run.last, of)))
        for run in runs
        if run.records and run.last.train_loss is not None
    )


def _recommended(run: Run) -> list[Record]:
    """Return the records whose weights one would use, each until the next one."""
    if Spec.parse("schedule", run.config.schedule).name != "restarts":
        return list(run.records)
    return [record for record in run.records if record.cycle_ended]


def _banded(
    runs: list[Run], of: str, by: str, label: str, seen: Callable[[Run], Sequence[Record]]
) -> Curve:
    checks.one_of("of", of, _OF)
    checks.one_of("by", by, ("epoch", "updates"))
    runs = [run for run in runs if run.records]
    if not runs:
        raise ValueError("A curve must have a run with a record, got none.")
    places = sorted({getattr(record, by) for run in runs for record in run.records})
    values = np.array([_held(run, seen(run), of, by, places) for run in runs])
    if np.isnan(values).any():
        bands = np.array([_quantiles(column) for column in values.T]).T
    else:
        bands = _quantiles(values)
    low, middle, high = (tuple(map(float, band)) for band in bands)
    return Curve(label, tuple(map(float, places)), middle, low, high)


def _held(
    run: Run, records: Sequence[Record], of: str, by: str, places: Sequence[int]
) -> list[float]:
    """Return, at each place, the value of the last record so far; NaN if there is none.

    A finished run that is shorter than others has no values beyond its end.
    """
    end = max(places) if run.diverged else getattr(run.last, by)
    reached = [getattr(record, by) for record in records]
    values = []
    for place in places:
        until = bisect_right(reached, place) if place <= end else 0
        number = getattr(records[until - 1], of) if until else math.nan
        values.append(math.inf if number is None else float(number))
    return values


def _quantiles(values: Array) -> Array:
    """Return the quantiles of a column without its unknown values, or of columns without any."""
    known = values if values.ndim > 1 else values[~np.isnan(values)]
    if not len(known):
        return np.full(3, np.nan)
    if len(known) == 1:
        return np.stack([known[0]] * 3)
    # Interpolating with infinity gives infinity.
    finite = np.where(np.isinf(known), np.finfo(float).max / 4, known)
    quantiles = np.quantile(finite, [0.2, 0.5, 0.8], axis=0)
    return np.where(quantiles > np.finfo(float).max / 1e9, np.inf, quantiles)
