"""The events that a sweep yields."""

from dataclasses import dataclass
from typing import TypeAlias

from weightdecay.records import Notice, Progress, RunConfig
from weightdecay.records.codec import Failure
from weightdecay.sweeps.status import Status


@dataclass(frozen=True)
class Working:
    """A worker's job: how many cells it has, and how far it is; None if it has just begun.

    `unheard` is the number of seconds since its last message, if that is long ago, or else 0.
    """

    worker: int
    cells: int
    progress: Progress | None
    unheard: float = 0.0


@dataclass(frozen=True)
class Idle:
    """A worker has nothing to do."""

    worker: int


@dataclass(frozen=True)
class CellFailed:
    """A cell could not be trained."""

    config: RunConfig
    failure: Failure


SweepEvent: TypeAlias = Status | Working | Idle | CellFailed | Notice
