"""An engine whose workers are listened for: who is silent for long is told of, or ended."""

import time

from weightdecay import checks
from weightdecay.sweeps.engine import Died, Ended, Engine, Failed, Job, Message, Unheard

# Seconds of silence that are told of, and between looks; and the longest of those between two
# looks that count: where this process was held up itself, no worker was silent for longer.
_SILENT, _LOOK_EVERY, _COUNTS = 30.0, 1.0, 5.0


class Watched:
    """Another engine. A worker that says nothing for `timeout` seconds is ended, and has died.

    A job is listened for from its first message on: before, it may wait for a place.
    """

    def __init__(self, engine: Engine, timeout: float | None = None) -> None:
        if timeout is not None:
            checks.number("timeout", timeout, above=0)
        self.workers, self.lanes, self.repeats = engine.workers, engine.lanes, engine.repeats
        self._engine, self._timeout = engine, timeout
        # Seconds that this was listening, and at which of them each job was heard last.
        self._listened, self._heard = 0.0, dict[int, float]()
        self._now = self._looked_at = time.monotonic()

    def begin(self, job: Job) -> None:
        self._engine.begin(job)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return what has come, and who is silent."""
        messages = self._engine.wait(seconds)
        before, self._now = self._now, time.monotonic()
        self._listened += min(self._now - before, _COUNTS)
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
        """Tell of jobs that were not heard for long, and end those that are past the limit."""
        found: list[tuple[int, Message]] = []
        for number, heard in list(self._heard.items()):
            silent = self._listened - heard
            if self._timeout is not None and silent > self._timeout:
                del self._heard[number]
                self._engine.end(number)
                reason = f"Its worker said nothing for {self._timeout:g} seconds, and was ended."
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
