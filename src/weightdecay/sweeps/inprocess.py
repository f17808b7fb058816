"""Runs jobs in this process, one after the other: for tests and debugging."""

import time
from collections.abc import Generator, Iterator

from weightdecay.sweeps.engine import Ended, Failed, Job, Message, train_job


class InProcess:
    """An engine with one worker, this process. A job only runs while `wait` is called."""

    workers = 1

    def __init__(self, device: str | None = None, *, lanes: int = 64, repeats: float = 0.0) -> None:
        self.lanes, self.repeats = lanes, repeats
        self._device = device
        self._job: tuple[int, Iterator[Message]] | None = None

    def begin(self, job: Job) -> None:
        self._job = job.number, train_job(job, self._device)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        if self._job is None:
            time.sleep(seconds)
            return []
        number, messages = self._job
        message = next(messages)
        if isinstance(message, Ended | Failed):
            self._job = None
        return [(number, message)]

    def end(self, number: int) -> None:
        del number  # there is only one job
        self.close()

    def ask_to_stop(self) -> None:
        if self._job is not None:
            number = self._job[0]
            self.close()
            self._job = number, iter([Ended()])

    def close(self) -> None:
        if self._job is not None and isinstance(self._job[1], Generator):
            self._job[1].close()
        self._job = None
