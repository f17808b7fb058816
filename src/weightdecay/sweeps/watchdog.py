"""An engine that reports workers that are silent for long, and kills them after a timeout."""

import time

from weightdecay import checks
from weightdecay.sweeps.engine import Died, Ended, Engine, Failed, Job, Message, Unheard

# Seconds of silence that are reported, and seconds between checks. Between two waits, at most
# `_COUNTED` seconds count as silence: if more have passed, this process itself was held up.
_SILENT, _LOOK_EVERY, _COUNTED = 30.0, 1.0, 5.0


class Watched:
    """Wraps an engine. A worker that is silent for `timeout` seconds is killed and has died.

    A job is watched from its first message on: before, it may be waiting for a free worker.
    """

    def __init__(self, engine: Engine, timeout: float | None = None) -> None:
        if timeout is not None:
            checks.number("timeout", timeout, above=0)
        self.workers, self.lanes, self.repeats = engine.workers, engine.lanes, engine.repeats
        self._engine, self._timeout = engine, timeout
        # Seconds counted so far, and the count at each job's last message.
        self._listened, self._heard = 0.0, dict[int, float]()
        self._now = self._looked_at = time.monotonic()

    def begin(self, job: Job) -> None:
        self._engine.begin(job)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return messages, including those about silent jobs."""
        messages = self._engine.wait(seconds)
        before, self._now = self._now, time.monotonic()
        self._listened += min(self._now - before, _COUNTED)
        for number, message in messages:
            if isinstance(message, Ended | Failed | Died):
                self._heard.pop(number, None)
            else:
                self._heard[number] = self._listened
        if self._now - self._looked_at > _LOOK_EVERY:
            self._looked_at = self._now
            messages += self._silent()
        return messages

    def _silent(self) -> list[tuple[int, Message]]:
        """Report jobs that are silent for long, and end those past the timeout."""
        found: list[tuple[int, Message]] = []
        for number, heard in list(self._heard.items()):
            silent = self._listened - heard
            if self._timeout is not None and silent > self._timeout:
                del self._heard[number]
                self._engine.end(number)
                reason = f"Its worker was silent for {self._timeout:g} seconds and was killed."
                found.append((number, Died(reason)))
            elif silent > _SILENT:
                found.append((number, Unheard(silent)))
        return found

    def end(self, number: int) -> None:
        self._heard.pop(number, None)
        self._engine.end(number)

    def ask_to_stop(self) -> None:
        self._engine.ask_to_stop()

    def close(self) -> None:
        self._engine.close()
