"""An engine of a thousand workers that train nothing, for `benchmarks/scale.py` and the tests.

Workers are simulated by random draws, and so is their clock: it advances by the time that the
coordinator really takes, and jumps over the time that it would wait. A coordinator that is too slow
therefore finds a backlog of messages and workers that have waited, as it really would. Pickling
jobs and unpickling messages, as an engine of processes does, counts as its work; drawing the
results of workers does not.
"""

import heapq
import pickle
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias
from unittest import mock

from weightdecay.records import Progress, Record, Run, RunConfig
from weightdecay.records.codec import Cost
from weightdecay.sweeps import coordinator, pack_queue
from weightdecay.sweeps.engine import Died, Ended, Failed, Finished, Job, Message

# A future message of a worker: the cells that finish, or the message itself.
_Planned: TypeAlias = tuple[RunConfig, ...] | Message


@dataclass(frozen=True)
class Law:
    """How workers and cells behave. A cell's result depends on its name and the seed alone.

    `seconds` is a worker's time per cell: a pack takes their sum, times a log-normal draw.
    `failing` and `diverging` are fractions of cells, `dying` of jobs whose worker dies.
    """

    seconds: float = 10.0
    spread: float = 0.3
    failing: float = 0.001
    diverging: float = 0.05
    dying: float = 0.01
    seed: int = 0
    #: Seconds between reports of progress, as in a training.
    progress: float = 0.25

    def fails(self, config: RunConfig) -> bool:
        """Whether a cell raises an error whenever it is trained."""
        return self._draw("fails", config).random() < self.failing

    def epochs(self, config: RunConfig) -> int:
        """Return the number of epochs until a cell ends or diverges."""
        draw = self._draw("diverges", config)
        return draw.randint(1, config.epochs) if draw.random() < self.diverging else config.epochs

    def run(self, config: RunConfig) -> Run:
        """Return the run of a cell: numbers with as many digits as real ones."""
        draw, epochs = self._draw("trains", config), self.epochs(config)
        records = [self._record(config, epoch, draw) for epoch in range(1, epochs + 1)]
        if epochs < config.epochs:
            lost = {"train_loss": None, "weight_norm": None, "diverged": True}
            records[-1] = Record(**vars(records[-1]) | lost)
        return Run(config, tuple(records))

    def _record(self, config: RunConfig, epoch: int, draw: random.Random) -> Record:
        names = ("train_loss", "train_error", "validation_loss", "test_loss", "weight_norm")
        counted = ("validation_error", "validation_error_top5", "test_error", "test_error_top5")
        values: dict[str, Any] = {name: draw.random() for name in names}
        values |= {name: draw.randrange(1000) / 1000 for name in counted}
        multiplier = 1 - epoch / config.epochs
        return Record(
            run=config.identity,
            epoch=epoch,
            updates=56 * epoch,
            lr=config.lr * multiplier,
            decay=multiplier / 1001,
            cycle_ended=epoch == config.epochs,
            **values,
        )

    def _draw(self, what: str, config: RunConfig) -> random.Random:
        return random.Random(f"{self.seed} {what} {config.identity}")


@dataclass
class Measured:
    """What the coordinator and the workers did; seconds of the coordinator are real."""

    busy: float = 0.0
    busy_before_first_job: float = 0.0
    jobs: int = 0
    deaths: int = 0
    messages: int = 0
    most_claims: int = 0
    simulated: float = 0.0
    worked: float = 0.0
    #: Simulated seconds from a job's end to the next job of its worker.
    waited: float = 0.0


class Simulated:
    """An engine whose jobs take simulated time only."""

    def __init__(self, workers: int, lanes: int, law: Law) -> None:
        self.workers, self.lanes, self.repeats = workers, lanes, 0.0
        self.measured = Measured()
        self._law, self._draw = law, random.Random(law.seed)
        self._now, self._left_at = 0.0, time.perf_counter()
        self._events: list[tuple[float, int, int, _Planned]] = []
        self._order = count()
        self._running: dict[int, tuple[Job, float]] = {}
        self._claims = 0
        self._free: list[float] = []

    def monotonic(self) -> float:
        """Return the simulated time, for a coordinator that reads the clock."""
        return self._now + time.perf_counter() - self._left_at

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Let the coordinator use the simulated clock, and count its time from here on."""
        with (
            mock.patch.object(coordinator, "time", self),
            mock.patch.object(pack_queue, "time", self),
        ):
            self._left_at = time.perf_counter()
            yield
            with self._uncounted():
                self.measured.simulated = self._now

    def begin(self, job: Job) -> None:
        pickle.dumps(job)
        with self._uncounted():
            if len(self._running) == self.workers:
                raise RuntimeError("There must be a free worker for a job, but there is none.")
            if not self.measured.jobs:
                self.measured.busy_before_first_job = self.measured.busy
            self.measured.jobs += 1
            self._claims += len(job.cells)
            self.measured.most_claims = max(self.measured.most_claims, self._claims)
            if self._free:
                self.measured.waited += self._now - self._free.pop()
            self._plan(job)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        with self._uncounted():
            until = self._now + seconds
            if not self._events or self._events[0][0] > self._now:
                self._now = min([until, *(event[0] for event in self._events[:1])])
            due = list(self._due())
        self.measured.messages += len(due)
        return [(number, pickle.loads(message)) for number, message in due]

    def end(self, number: int) -> None:
        job, _ = self._running.pop(number)
        self._claims -= len(job.cells)

    def ask_to_stop(self) -> None:
        self._events = [(self._now, n, number, Ended()) for n, number in enumerate(self._running)]

    def close(self) -> None:
        self._events.clear()

    def _plan(self, job: Job) -> None:
        """Draw the course of a job: its messages, and when each of them comes."""
        law, draw, begun = self._law, self._draw, self._now
        length = law.seconds * len(job.cells) * draw.lognormvariate(0, law.spread)
        last: Message = Ended()
        if draw.random() < law.dying:
            last = Died("Its process was killed by signal 9.")
            self.measured.deaths += 1
        elif any(law.fails(config) for config in job.cells):
            last = Failed("ValueError: a cell of these is bad.", "Traceback …", memory=False)
        end = begun + length * (1 if isinstance(last, Ended) else draw.random())
        ends: dict[float, list[RunConfig]] = {}
        for config in job.cells:
            at = begun + length * law.epochs(config) / config.epochs
            if at < end or (isinstance(last, Ended) and not law.epochs(config) < config.epochs):
                ends.setdefault(min(at, end), []).append(config)
        for at, cells in ends.items():
            self._send(at, job.number, tuple(cells))
        self._send(end, job.number, last)
        self._send(begun + law.progress, job.number, _progress(len(job.cells)))
        self._running[job.number] = job, length
        self.measured.worked += end - begun

    def _send(self, at: float, number: int, message: _Planned) -> None:
        heapq.heappush(self._events, (at, next(self._order), number, message))

    def _due(self) -> Iterator[tuple[int, bytes]]:
        """Yield the messages that have come by now, pickled as in a pipe."""
        while self._events and self._events[0][0] <= self._now:
            at, _, number, message = heapq.heappop(self._events)
            if number not in self._running:
                continue  # progress of a worker that has ended meanwhile
            job, length = self._running[number]
            if isinstance(message, tuple):
                cost = length / len(job.cells)
                costs = (Cost(c.identity, cost, c.epochs, len(job.cells)) for c in message)
                message = Finished(tuple(zip(map(self._law.run, message), costs, strict=True)))
            elif isinstance(message, Progress):
                self._send(at + self._law.progress, number, message)
            else:
                del self._running[number]
                self._claims -= len(job.cells)
                self._free.append(at)
            yield number, pickle.dumps(message)

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        """Count the time until now as the coordinator's, and what follows not at all."""
        took = time.perf_counter() - self._left_at
        self._now += took
        self.measured.busy += took
        try:
            yield
        finally:
            self._left_at = time.perf_counter()


def _progress(lanes: int) -> Progress:
    return Progress(
        update=1,
        updates=1512,
        epoch=1,
        epochs=27,
        loss=1.23456789,
        error=0.5,
        multiplier=0.75,
        speed=4321.987654321,
        lanes=lanes,
    )


def cells(number: int, *, epochs: int = 27) -> list[RunConfig]:
    """Return this many configurations that can be lanes of one pack."""
    return [
        RunConfig(
            task="mnist1d",
            model="mlp",
            algorithm="adamw",
            lr=2 ** -(5 + seed % 64 / 8),
            normalized_decay=2 ** -(seed // 64 % 64 / 8),
            epochs=epochs,
            batch=64,
            seed=seed // 4096,
        )
        for seed in range(number)
    ]
