"""Progress of a command on stderr: redrawn on a terminal, and a line every 30 seconds in a log."""

import math
import sys
import time
from collections.abc import Sequence

from weightdecay import progress
from weightdecay.cli.printing import echo, escaped

#: Seconds between two lines in a log.
LOGGED_EVERY = 30.0


class Bars(progress.Bars):
    """Lines that are redrawn on a terminal. A log gets the first of them every 30 seconds.

    A log gets one at once, so that its reader knows that something runs. For work that may end
    soon, `at_once` is False.
    """

    def __init__(self, *, quiet: bool = False, at_once: bool = True) -> None:
        super().__init__(quiet=quiet)
        self._logs = self._view is None and not quiet
        self._logged_at = -math.inf if at_once else time.monotonic()

    def draw(self, lines: Sequence[progress.Line]) -> None:
        """Draw the lines, or log the first."""
        super().draw(lines)
        now = time.monotonic()
        if self._logs and now - self._logged_at >= LOGGED_EVERY:
            self._logged_at = now
            echo(lines[0][1], file=sys.stderr, flush=True)

    def echo(self, text: str) -> None:
        """Print a text above the lines."""
        if self._view is None:
            echo(text, file=sys.stderr, flush=True)
        else:
            self._view.echo(escaped(text))
