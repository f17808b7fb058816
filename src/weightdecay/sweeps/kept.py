"""An engine whose workers stay for the next sweep: a new one takes seconds to import torch."""

from types import TracebackType
from typing import Self

from weightdecay.sweeps.engine import Died, Ended, Engine, Failed, Job, Message


class Kept:
    """Wraps an engine. A sweep that ends leaves the workers alone; leaving the context ends them.

    A sweep that is stopped, or ends with jobs in training, ends the workers as usual.
    """

    def __init__(self, engine: Engine) -> None:
        self.workers, self.lanes, self.repeats = engine.workers, engine.lanes, engine.repeats
        self._engine = engine
        self._running: set[int] = set()
        self._stopping = False

    def begin(self, job: Job) -> None:
        self._running.add(job.number)
        self._engine.begin(job)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        messages = self._engine.wait(seconds)
        for number, message in messages:
            if isinstance(message, Ended | Failed | Died):
                self._running.discard(number)
        return messages

    def end(self, number: int) -> None:
        self._running.discard(number)
        self._engine.end(number)

    def ask_to_stop(self) -> None:
        self._stopping = True
        self._engine.ask_to_stop()

    def close(self) -> None:
        """End the workers, unless all of them wait for a job."""
        if self._running or self._stopping:
            self._running.clear()
            self._stopping = False
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.close()
