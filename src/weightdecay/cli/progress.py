"""How far the work is, in lines on stderr: redrawn in place on a terminal, seldom elsewhere."""

import math
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from weightdecay.cli.printing import say

#: Seconds between drawings on a terminal, and between lines in a log.
REDRAWN_EVERY, LOGGED_EVERY = 0.1, 30.0
_WIDEST, _NARROWEST = 30, 5
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Bars:
    """Lines that are drawn over themselves, and are gone at the end; in a log, the first of them.

    Each is a text, with a bar before it where it is known which share of the work is done. The
    first are drawn at once, in a log too: whoever reads it knows that something runs.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._redraws = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn: list[str] = []
        self._width = 0
        self._at = -math.inf

    def draw_all(self, lines: Sequence[tuple[float | None, str]]) -> None:
        """Show lines, each a share and a text."""
        now = time.monotonic()
        if self._quiet or now - self._at < (REDRAWN_EVERY if self._redraws else LOGGED_EVERY):
            return
        self._at = now
        if self._redraws:
            columns, rows = shutil.get_terminal_size()
            self._width = columns - len("^C") - 1  # which a terminal writes where the cursor is
            self._put(_fitted(lines, self._width, max(1, rows - 1)))
        else:
            say(lines[0][1], file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays, above the others."""
        drawn = self._drawn
        self._put([])
        say(text, file=sys.stderr, flush=True)
        self._put(drawn)

    def _put(self, lines: list[str]) -> None:
        if not lines and not self._drawn:
            return
        up = f"\x1b[{len(self._drawn) - 1}A" if len(self._drawn) > 1 else ""
        blank = "\n".join([" " * (self._width + len("^C"))] * len(self._drawn))
        text = "\n".join(lines)
        sys.stderr.write(f"\r{up}{blank}\r{up}{text}")
        sys.stderr.flush()
        self._drawn = lines

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put([])


class Bar(Bars):
    """One such line. Work that is soon done leaves none in a log."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        if not self._redraws:
            self._at = time.monotonic()

    def draw(self, share: float | None, text: str) -> None:
        """Show which share of the work is done, where that is known, beside a text."""
        self.draw_all([(share, text)])


def _fitted(lines: Sequence[tuple[float | None, str]], width: int, height: int) -> list[str]:
    """Return as many lines as fit: what has scrolled away cannot be drawn over.

    Bars are equally long, and as long as there is room for beside the longest of their texts. What
    would move the cursor, as in a reason of several lines, becomes a space.
    """
    lines = [(share, _CONTROLS.sub(" ", text)) for share, text in lines]
    if len(lines) > height > 1:
        lines = [*lines[: height - 1], (None, f"… and {len(lines) - height + 1} more")]
    longest = max((len(text) for share, text in lines if share is not None), default=0)
    cells = min(_WIDEST, width - longest - len("[]  "))
    return [_beside(share, text, cells)[:width] for share, text in lines[:height]]


def _beside(share: float | None, text: str, cells: int) -> str:
    """Return a text with a bar before it, where there is a share and room for one."""
    if share is None or cells < _NARROWEST:
        return text
    done = min(cells, int(share * cells))
    return f"[{'=' * done}{' ' * (cells - done)}]  {text}"


def duration(seconds: float) -> str:
    """Return 0:07, 12:34 or 1:02:03, and a dash for what does not end."""
    if not math.isfinite(seconds):
        return "–"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
