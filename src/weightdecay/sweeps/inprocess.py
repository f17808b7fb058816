"""Jobs done in this process, one after the other: for tests, and to follow with a debugger."""

import time
from collections.abc import Generator, Iterator

from weightdecay.sweeps.engine import Ended, Failed, Job, Message, done


class Here:
    """An engine with one worker: this process. A job goes on whenever it is waited for."""

    workers = 1

    def __init__(self, device: str | None = None, *, lanes: int = 64, repeats: float = 0.0) -> None:
        self.lanes, self.repeats = lanes, repeats
        self._device = device
        self._going: tuple[int, Iterator[Message]] | None = None

    def begin(self, job: Job) -> None:
        self._going = job.number, done(job, self._device)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        if self._going is None:
            time.sleep(seconds)
            return []
        number, messages = self._going
        message = next(messages)
        if isinstance(message, Ended | Failed):
            self._going = None
        return [(number, message)]

    def end(self, number: int) -> None:
        del number  # there is one
        self.close()

    def ask_to_stop(self) -> None:
        if self._going is not None:
            number = self._going[0]
            self.close()
            self._going = number, iter([Ended()])

    def close(self) -> None:
        if self._going is not None and isinstance(self._going[1], Generator):
            self._going[1].close()
        self._going = None
