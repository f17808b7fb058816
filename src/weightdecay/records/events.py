"""What a training yields while it runs, beside its records."""

import math
from dataclasses import dataclass
from typing import TypeAlias

from weightdecay.records.record import Environment, Record


@dataclass(frozen=True)
class Started:
    """A run that is trained from here on, and where; its records come after it."""

    run: str
    environment: Environment


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What epochs took, until one that left a record, in seconds; how many lanes shared them."""

    run: str
    epoch: int
    epochs: int
    training: float
    evaluation: float
    lanes: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a pack of lanes has come, and the means of its best lane in this epoch.

    `error` is a fraction, or of the `metric` that is named.
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
        """Return what is left at this speed, which is in updates of all lanes a second."""
        return (self.updates - self.update) * self.lanes / self.speed if self.speed else math.inf


@dataclass(frozen=True)
class Notice:
    """Something the person who waits should read."""

    text: str


@dataclass(frozen=True)
class Saving:
    """What a run has come to is being saved, which may take long."""


#: What a training yields.
Event: TypeAlias = Started | Record | Timing | Progress | Notice | Saving
