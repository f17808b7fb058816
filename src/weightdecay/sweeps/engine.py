"""The interface of an engine, which runs jobs on local processes or on Ray.

An engine has a number of workers. It is given a `Job`, which is a pack of cells, and returns
messages about it: the job has `Begun`, cells are `Finished`, it is alive (`Progress`, `Saving`). At
the end, it has `Ended`, it has `Failed` with an error, or its worker has `Died`. An engine stores
nothing, retries nothing and decides nothing.
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
from weightdecay.records.collecting import RunCollector
from weightdecay.sweeps.task_transfer import TaskProvider

if TYPE_CHECKING:
    from weightdecay.tasks import Task


@dataclass(frozen=True)
class Job:
    """Cells to train side by side. The coordinator gives every attempt a new number.

    `task` returns the task if it cannot be loaded by its name.
    """

    number: int
    cells: tuple[RunConfig, ...]
    folder: Path
    task: TaskProvider | None = None


@dataclass(frozen=True)
class Begun:
    """A worker has begun a job: from now on it sends messages."""


@dataclass(frozen=True)
class Unheard:
    """A job's worker has sent nothing for this many seconds."""

    seconds: float


@dataclass(frozen=True)
class Finished:
    """Finished cells of a job, with what they cost."""

    runs: tuple[tuple[Run, Cost], ...]


@dataclass(frozen=True)
class Ended:
    """A job is complete, or was asked to stop and has saved its state."""


@dataclass(frozen=True)
class Failed:
    """A job raised an error. `memory` says whether it ran out of memory.

    A worker that `leaves` takes no more jobs: the error has made the GPU unusable for its process.
    If any cell would have failed in the same way, as on a full disk, `cure` says what to do first.
    """

    reason: str
    trace: str
    memory: bool
    leaves: bool = False
    cure: str | None = None

    def refusal(self) -> OSError:
        """Return the error of a sweep that must stop because no cell can be trained."""
        return OSError(
            f"A worker could not write its files: {self.reason}. No cell counts as failed: "
            f"{self.cure}, then run the same command to continue with all of them."
        )


@dataclass(frozen=True)
class Died:
    """A job's worker has died."""

    reason: str


# What to do about an error of the system in the folder of checkpoints.
_CURES = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "change the folder's permissions"),
    errno.EROFS: "use a folder that is not read-only",
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST, errno.EISDIR), "remove what is in its place"),
}
Message: TypeAlias = Begun | Unheard | Finished | Progress | Notice | Saving | Ended | Failed | Died


class Engine(Protocol):
    """Runs jobs. After `close`, no worker is left."""

    @property
    def workers(self) -> int:
        """Return how many jobs can run at a time."""

    @property
    def lanes(self) -> int:
        """Return the most cells that a job should have."""

    @property
    def repeats(self) -> float:
        """Return the fraction of cells to train a second time, as a control."""

    def begin(self, job: Job) -> None:
        """Begin a job; the coordinator calls this only if a worker is free."""

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return messages with their job's number, after waiting at most this long for one."""

    def end(self, number: int) -> None:
        """Kill a job and its worker at once; no more messages come from it."""

    def ask_to_stop(self) -> None:
        """Ask every job to save its state and end."""

    def close(self) -> None:
        """Kill every worker at once."""


def train_job(
    job: Job, device: str | None = None, loaded: "dict[str, Task] | None" = None
) -> Iterator[Message]:
    """Train the cells of a job and yield messages about it. The workers of every engine run this.

    `loaded` keeps the task of the last job, for a process that only does jobs.
    """
    from weightdecay.runs import Keep, train_events  # noqa: PLC0415 - a coordinator needs no torch

    try:
        task = _load(job, {} if loaded is None else loaded)
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
            yield from _messages(job, events)
    except Exception as error:  # noqa: BLE001 - whatever it is, the coordinator must know
        trace = "".join(traceback.format_exception(error))
        cure = _cure(error, job.folder)
        yield Failed(_reason(error), trace, memory=_is_memory(error), cure=cure)
    else:
        yield Ended()


def _load(job: Job, loaded: "dict[str, Task]") -> "Task":
    """Return a job's task, loaded once for consecutive jobs that train on it."""
    from weightdecay.tasks import given  # noqa: PLC0415

    name = job.cells[0].task
    if name not in loaded:
        loaded.clear()  # before another one comes into memory
        loaded[name] = given(name, None if job.task is None else job.task())
    return loaded[name]


def _messages(job: Job, events: Iterator[Event]) -> Iterator[Message]:
    """Collect records into finished cells; cells that end together come in one message."""
    collector = RunCollector(job.cells)

    def finished() -> Iterator[Message]:
        if runs := collector.pop_finished():
            yield Finished(tuple(runs))

    for event in events:
        if (message := collector.add(event)) is not None:
            yield from finished()
            yield message
    yield from finished()


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


def _is_memory(error: BaseException) -> bool:
    named = type(error).__name__ in ("MemoryError", "OutOfMemoryError")
    return named or "can't allocate memory" in str(error)


def _cure(error: BaseException, folder: Path) -> str | None:
    """Return what to do before any cell can be trained; None if the error is of these cells alone.

    A full disk stops every cell, and so does any error of the system in the folder of checkpoints.
    Too many open files do not: half as many lanes open half as many files.
    """
    if not isinstance(error, OSError) or error.errno in (errno.EMFILE, errno.ENFILE):
        return None
    is_named = isinstance(error.filename, str | bytes | os.PathLike)
    is_ours = is_named and Path(os.fsdecode(error.filename)).is_relative_to(folder)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free space or inodes there"
    return _CURES.get(error.errno or 0, "solve this problem") if is_ours else None
