"""Progress of a command on stderr: redrawn in place on a terminal, a line now and then in a log."""

import math
import sys
import time
from collections.abc import Sequence

from weightdecay import progress
from weightdecay.cli.printing import say, shown

#: Seconds between two lines in a log.
LOGGED_EVERY = 30.0


class Bars(progress.Bars):
    """Lines that are redrawn on a terminal; a log gets the first of them now and then.

    A log gets the first at once, so that its reader knows that something runs; unless `at_once` is
    False, for work that may end soon.
    """

    def __init__(self, *, quiet: bool = False, at_once: bool = True) -> None:
        super().__init__(quiet=quiet)
        self._logs = self._view is None and not quiet
        self._logged_at = -math.inf if at_once else time.monotonic()

    def draw(self, lines: Sequence[progress.Line]) -> None:
        """Show lines, or log the first."""
        super().draw(lines)
        now = time.monotonic()
        if self._logs and now - self._logged_at >= LOGGED_EVERY:
            self._logged_at = now
            say(lines[0][1], file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a text that stays, above the lines."""
        if self._view is None:
            say(text, file=sys.stderr, flush=True)
        else:
            self._view.say(shown(text))
