"""What places work: the one small interface behind which processes and Ray are alike.

An engine has so many workers. It is handed a `Job`, which is a pack of cells, and tells what comes
of it: that it has `Begun`, `Finished` cells, signs of life (`Progress`, `Saving`), and at the end
that it has `Ended`, has `Failed` by an error, or that its worker has `Died`. It keeps nothing,
retries nothing and decides nothing.
"""

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from weightdecay.records import Event, Notice, Progress, Run, RunConfig, Saving
from weightdecay.records.codec import Cost
from weightdecay.records.collecting import Gathered
from weightdecay.sweeps.task_transfer import Handed

if TYPE_CHECKING:
    from weightdecay.tasks import Task


@dataclass(frozen=True)
class Job:
    """Cells to train side by side. The number is the planner's, and new for every attempt.

    `task` gives what they are trained on, where it is not what their task's name stands for.
    """

    number: int
    cells: tuple[RunConfig, ...]
    folder: Path
    task: Handed | None = None


@dataclass(frozen=True)
class Begun:
    """A job has a worker: from now on there are signs of life."""


@dataclass(frozen=True)
class Unheard:
    """A job's worker has said nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Finished:
    """Cells of a job that have come to their end, with what they cost."""

    runs: tuple[tuple[Run, Cost], ...]


@dataclass(frozen=True)
class Ended:
    """A job has nothing left to do, or was told to stop and has saved what it had."""


@dataclass(frozen=True)
class Failed:
    """A job raised. `memory` is whether it was for want of that.

    A worker that `leaves` takes no more jobs: the error has made its GPU unusable to its process.
    `surroundings` is whether any cell would have failed here, as on a full disk.
    """

    reason: str
    trace: str
    memory: bool
    leaves: bool = False
    surroundings: bool = False

    def refusal(self) -> OSError:
        """Return the error of a sweep whose surroundings let no cell be trained."""
        return OSError(
            f"A sweep's workers must be able to write their files, and one was refused: "
            f"{self.reason}. No cell counts as failed: free space or inodes, or change the "
            "folder's permissions, and the same command goes on with all of them."
        )


@dataclass(frozen=True)
class Died:
    """A job's worker is gone."""

    reason: str


Message: TypeAlias = Begun | Unheard | Finished | Progress | Notice | Saving | Ended | Failed | Died


class Engine(Protocol):
    """Where jobs are done. Used as a context: at its end no worker is left."""

    @property
    def workers(self) -> int:
        """Return how many jobs can be done at a time."""

    @property
    def lanes(self) -> int:
        """Return how many cells a job should have at most."""

    @property
    def repeats(self) -> float:
        """Return the share of cells that are trained a second time, as a control."""

    def begin(self, job: Job) -> None:
        """Begin a job; the planner sees to it that a worker is free."""

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return the messages that have come, by their job's number, after so long at most."""

    def end(self, number: int) -> None:
        """End a job and its worker at once, without another message."""

    def ask_to_stop(self) -> None:
        """Ask every job to save what it has, and to end."""

    def close(self) -> None:
        """End every worker at once."""


def done(
    job: Job, device: str | None = None, held: "dict[str, Task] | None" = None
) -> Iterator[Message]:
    """Do a job: train its cells, and tell of it. This is what a worker of any engine runs.

    A process that does nothing else keeps the task of its last job in `held`.
    """
    from weightdecay.runs import Keep, train_events  # noqa: PLC0415 - the planner does without torch

    try:
        task = _loaded(job, {} if held is None else held)
        events = train_events(
            list(job.cells),
            folder=job.folder,
            device=device,
            task=task,
            keep=Keep(solutions=False, checkpoints=False),
            wait=True,
            stacked=True,
        )
        with closing(events):  # type: ignore[type-var]
            yield from _told(job, events)
    except Exception as error:  # noqa: BLE001 - whatever it is, the planner must know
        trace = "".join(traceback.format_exception(error))
        outside = _is_of_surroundings(error, job.folder)
        yield Failed(_reason(error), trace, memory=_is_memory(error), surroundings=outside)
    else:
        yield Ended()


def _loaded(job: Job, held: "dict[str, Task]") -> "Task":
    """Load a task once for all jobs in a row that train on it."""
    from weightdecay.tasks import given  # noqa: PLC0415

    name = job.cells[0].task
    if name not in held:
        held.clear()  # before another comes into memory
        held[name] = given(name, None if job.task is None else job.task())
    return held[name]


def _told(job: Job, events: Iterator[Event]) -> Iterator[Message]:
    """Gather epochs into finished cells; cells that end together are told together."""
    gathered = Gathered(job.cells)

    def finished() -> Iterator[Message]:
        if runs := gathered.ended():
            yield Finished(tuple(runs))

    for event in events:
        if (sign := gathered.take(event)) is not None:
            yield from finished()
            yield sign
    yield from finished()


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no more is said'}"


def _is_memory(error: BaseException) -> bool:
    named = type(error).__name__ in ("MemoryError", "OutOfMemoryError")
    return named or "can't allocate memory" in str(error)


def _is_of_surroundings(error: BaseException, folder: Path) -> bool:
    """Whether a disk is full, or the system refuses what is in the folder of checkpoints.

    Too many open files are no such error: half as many lanes open half as many.
    """
    if not isinstance(error, OSError) or error.errno in (errno.EMFILE, errno.ENFILE):
        return False
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    named = isinstance(error.filename, str | bytes | os.PathLike)
    return named and Path(os.fsdecode(error.filename)).is_relative_to(folder)
