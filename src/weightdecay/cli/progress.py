"""How far the work is, in a line on stderr: redrawn in place on a terminal, seldom elsewhere."""

import math
import os
import shutil
import sys
import time
from types import TracebackType
from typing import Self

#: Seconds between drawings on a terminal, and between lines in a log.
REDRAWN_EVERY, LOGGED_EVERY = 0.1, 30.0
_WIDEST, _NARROWEST = 30, 5


class Bar:
    """A line that is drawn over itself, and is gone at the end."""

    def __init__(self) -> None:
        self._redraws = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = ""
        self._at = -REDRAWN_EVERY if self._redraws else time.monotonic()

    def draw(self, share: float | None, text: str) -> None:
        """Show which share of the work is done, where that is known, beside a text."""
        now = time.monotonic()
        if now - self._at < (REDRAWN_EVERY if self._redraws else LOGGED_EVERY):
            return
        self._at = now
        if self._redraws:
            self._put(_beside(share, text, shutil.get_terminal_size().columns - 1))
        else:
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays, above the bar."""
        drawn = self._drawn
        self._put("")
        print(text, file=sys.stderr, flush=True)
        self._put(drawn)

    def _put(self, line: str) -> None:
        if line or self._drawn:
            blank = " " * len(self._drawn)
            print(f"\r{blank}\r{line}", end="", file=sys.stderr, flush=True)
        self._drawn = line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put("")


def _beside(share: float | None, text: str, width: int) -> str:
    """Return a text with as long a bar before it as there is room for."""
    cells = min(_WIDEST, width - len(text) - len("[]  "))
    if share is None or cells < _NARROWEST:
        return text[:width]
    done = min(cells, int(share * cells))
    return f"[{'=' * done}{' ' * (cells - done)}]  {text}"


def duration(seconds: float) -> str:
    """Return 0:07, 12:34 or 1:02:03, and a dash for what does not end."""
    if not math.isfinite(seconds):
        return "–"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
