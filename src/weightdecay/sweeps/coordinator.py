"""Runs a sweep: gives the planned cells that are not done to an engine, pack by pack.

Everything is reported as an event at once, after it is recorded in the store. A coordinator keeps
nothing that is needed to resume a sweep.
"""

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

from weightdecay.records import Notice, Progress, RunConfig, Saving
from weightdecay.records.codec import Failure
from weightdecay.sweeps.claims import Claims
from weightdecay.sweeps.engine import (
    Died,
    Ended,
    Engine,
    Failed,
    Finished,
    Job,
    Message,
    Unheard,
)
from weightdecay.sweeps.events import CellFailed, Idle, SweepEvent, Working
from weightdecay.sweeps.pack_queue import LOOK_EVERY, PackQueue
from weightdecay.sweeps.packing import Pack
from weightdecay.sweeps.progress_file import RunningPack, SweepProgress
from weightdecay.sweeps.retries import Retries
from weightdecay.sweeps.status import Status, Tally
from weightdecay.sweeps.store import Store, Writer
from weightdecay.sweeps.task_transfer import TaskProvider

# Seconds between status events, seconds between reports to other processes, and how long a stop
# waits for a message from jobs that are not saving.
_COUNT_EVERY, _REPORT_EVERY, _STOP_WITHIN = 0.2, 1.0, 10.0
# The numbers of jobs, never used twice: an engine may outlast a sweep, and get late messages.
_NUMBERS = count(1)


@dataclass
class _RunningJob:
    """A job that a worker is doing."""

    worker: int
    pack: Pack
    furthest: int = 0
    progress: Progress | None = None
    saving: bool = False

    def estimate(self) -> RunningPack | None:
        """Return how much of its pack is trained, if it has reported that."""
        if self.progress is None or not self.pack or not self.progress.speed:
            return None
        epochs = self.pack[0].epochs
        share = self.progress.update / self.progress.updates
        cost = self.progress.updates / self.progress.speed / epochs
        trained = share * epochs * len(self.pack)
        return RunningPack(self.pack[0].identity, trained, cost, self.progress.seconds_left)


class Coordinator:
    """Tracks which cells are left, which jobs are running, and what came of them."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        claims: Claims,
        engine: Engine,
        cells: dict[str, RunConfig],
        *,
        task: TaskProvider | None = None,
    ) -> None:
        self._task = task
        self._store, self._writer, self._claims, self._engine = store, writer, claims, engine
        self._cells, self._tally = cells, Tally(cells)
        self._idle = list(range(engine.workers))  # a heap: the lowest number is used first
        self._running: dict[int, _RunningJob] = {}
        self._inbox: deque[tuple[int, Message]] = deque()
        self._queue, self._retries = PackQueue(store, claims, engine), Retries()
        self._counted_at = self._reported_at = -math.inf
        # Texts of notices that were already passed on.
        self._noticed: set[str] = set()
        # Cells trained by this sweep; and whether some are now trained again, as a control.
        self._trained: list[str] = []
        self._repeating = False

    def run(self, *, retry: bool) -> Iterator[SweepEvent]:
        """Train the cells that are not done; with `retry`, also those that have failed."""
        ledger = self._store.refresh()
        yield from (Notice(text, problem=True) for text in ledger.left_out)
        self._store.forget_checkpoints(run for run in self._cells if run in ledger.finished)
        left = [
            config
            for run, config in self._cells.items()
            if run not in ledger.finished and (retry or run not in ledger.failures)
        ]
        if retry:
            failures = ledger.failures
            self._queue.forgive({run: failures[run] for run in self._cells if run in failures})
        self._queue.add(left)
        yield self._status()
        yield from self._train()
        yield self._status()

    def repeat(self) -> Iterator[SweepEvent]:
        """Train a few cells again in other packs, as a control: the results must be the same.

        The cells are chosen from those that this sweep has trained, on the same device and with the
        same code.
        """
        ledger = self._store.refresh()
        done = sorted(run for run in self._trained if ledger.finished.get(run) is False)
        chosen = done[: math.floor(len(done) * self._engine.repeats + 0.5)]
        left = [self._cells[run] for run in chosen if run not in ledger.repeated]
        if left:
            yield Notice(f"Training {len(left)} of {len(done)} cells again, as a control.")
            self._repeating = True
            self._queue = PackQueue(self._store, self._claims, self._engine, repeats=True)
            self._queue.add(left)
            yield from self._train()
            yield self._status()

    def _train(self) -> Iterator[SweepEvent]:
        try:
            while self._queue or self._running:
                yield from self._begin_jobs()
                self._inbox += self._wait(LOOK_EVERY)
                while self._inbox:
                    yield from self._handle(*self._inbox.popleft())
                self._queue.look_elsewhere()
                yield from self._due_status()
        except GeneratorExit:
            self._stop()
            raise

    def _begin_jobs(self) -> Iterator[SweepEvent]:
        while self._idle and (pack := self._queue.pop()) is not None:
            number, worker = next(_NUMBERS), heappop(self._idle)
            self._running[number] = _RunningJob(worker, pack)
            self._engine.begin(Job(number, pack, self._folder().absolute(), self._task))
            yield Working(worker, len(pack), None)

    def _folder(self) -> Path:
        """Return the folder that holds the checkpoints."""
        return self._store.repeats_folder if self._repeating else self._store.folder

    def _wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Wait for messages, and record all finished cells with one write."""
        messages = self._engine.wait(seconds)
        runs = [
            run for _, message in messages if isinstance(message, Finished) for run in message.runs
        ]
        names = [run.config.identity for run, _ in runs]
        if runs and self._repeating:
            self._writer.repeats(runs)
            self._store.forget_checkpoints(names, of=self._store.repeats_folder)
        elif runs:
            self._writer.results(runs)
            self._trained += names
            self._store.forget_checkpoints(names)
        for name in names:
            self._claims.free(name)
        return messages

    def _handle(self, number: int, message: Message) -> Iterator[SweepEvent]:
        job = self._running[number]
        match message:
            case Finished():
                finished = {run.config.identity for run, _ in message.runs}
                job.pack = tuple(c for c in job.pack if c.identity not in finished)
                yield from self._due_status()
            case Saving():
                job.saving = True
            case Progress():
                job.furthest = max(job.furthest, message.update)
                job.progress, job.saving = message, False
                yield Working(job.worker, message.lanes, message)
            case Unheard():
                yield Working(job.worker, len(job.pack), job.progress, message.seconds)
            case Notice():
                if message.text not in self._noticed:
                    self._noticed.add(message.text)
                    yield message
            case Failed(cure=str()):
                del self._running[number]
                self._stop()
                raise message.refusal()
            case Ended() | Failed() | Died():
                del self._running[number]
                heappush(self._idle, job.worker)
                yield Idle(job.worker)
                ended = self._repeat_ended if self._repeating else self._ended
                yield from ended(job, message)

    def _repeat_ended(
        self, job: _RunningJob, message: Ended | Failed | Died
    ) -> Iterator[SweepEvent]:
        """Give up repeats that could not be trained: that is not a failure of the cells."""
        for config in job.pack:
            self._claims.free(config.identity)
        if job.pack and not isinstance(message, Ended):
            yield Notice(
                f"{len(job.pack)} cells could not be trained again: {message.reason}", problem=True
            )

    def _ended(self, job: _RunningJob, message: Ended | Failed | Died) -> Iterator[SweepEvent]:
        """Try the unfinished cells of a job again, or give them up."""
        pack = job.pack
        if not pack:
            return
        if isinstance(message, Failed) and message.memory and len(pack) > 1:
            yield Notice(f"{len(pack)} lanes do not fit into memory; trying half as many.")
        outcome = self._retries.after(message, pack, furthest=job.furthest)
        if isinstance(outcome, Failure):  # before the claim ends, or another sweep would try again
            self._queue.forgiven.pop(outcome.run, None)
            self._writer.failure(outcome)
        for config in pack:
            self._claims.free(config.identity)
        if isinstance(outcome, Failure):
            yield CellFailed(pack[0], outcome)
            yield from self._due_status()
        else:
            self._queue.put_back(outcome)

    def _stop(self) -> None:
        """Have all running jobs save their state, and record the cells that finish meanwhile.

        Jobs that do not answer are not waited for long; jobs that are saving are, until they end.
        """
        self._engine.ask_to_stop()
        saving = {number for number, job in self._running.items() if job.saving}
        until = time.monotonic() + _STOP_WITHIN
        while self._running and (saving & self._running.keys() or time.monotonic() < until):
            for number, message in self._inbox or self._wait(LOOK_EVERY):
                if isinstance(message, Saving):
                    saving.add(number)
                if isinstance(message, Ended | Failed | Died):
                    self._running.pop(number, None)
                    until = time.monotonic() + _STOP_WITHIN
            self._inbox.clear()

    def _due_status(self) -> Iterator[Status]:
        """Yield a status, unless the last one is recent: each looks at every failure."""
        if time.monotonic() - self._counted_at > _COUNT_EVERY:
            yield self._status()

    def _status(self) -> Status:
        self._counted_at = time.monotonic()
        jobs = self._running.values()
        progress = SweepProgress(
            packs=len(jobs) + len(self._queue),
            running=tuple(one for job in jobs if (one := job.estimate()) is not None),
        )
        if self._counted_at - self._reported_at > _REPORT_EVERY:
            self._reported_at = self._counted_at
            self._writer.progress.write(progress)
        return self._tally.status(
            self._store.ledger,
            running=sum(len(job.pack) for job in jobs),
            workers=self._engine.workers,
            progress=progress,
            forgiven=self._queue.forgiven,
        )
