"""The events that a training yields, besides its records."""

import math
from dataclasses import dataclass
from typing import TypeAlias

from weightdecay.records.record import Environment, Record


@dataclass(frozen=True)
class Started:
    """A run starts, and where; its records follow."""

    run: str
    environment: Environment


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds spent on the epochs since the last record, and how many lanes shared them."""

    run: str
    epoch: int
    epochs: int
    training: float
    evaluation: float
    lanes: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a pack of lanes is, and the mean loss and error of its best lane in this epoch.

    `error` is a fraction, or a value of `metric` if that is named. `speed` is in updates per
    second, summed over all lanes.
    """

    update: int
    updates: int
    epoch: int
    epochs: int
    loss: float
    error: float
    multiplier: float
    speed: float
    lanes: int
    metric: str | None = None

    @property
    def seconds_left(self) -> float:
        """Return the seconds left at this speed."""
        return (self.updates - self.update) * self.lanes / self.speed if self.speed else math.inf


@dataclass(frozen=True)
class Notice:
    """A message for the user; a `problem` is also shown to users who asked for quiet."""

    text: str
    problem: bool = False


@dataclass(frozen=True)
class Saving:
    """A checkpoint is being written, which may take long."""


#: What a training yields.
Event: TypeAlias = Started | Record | Timing | Progress | Notice | Saving
