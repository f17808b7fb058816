"""What is printed: what a terminal would obey is shown to it as text.

Names, reasons and messages come from files that others wrote, and may hold escape sequences.
"""

import io
import re
import sys
from typing import IO, TextIO

# Controls but for tab and newline, those of eight bits too, and bytes of a file's name that
# would be such.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udc9f]")


def shown(text: str) -> str:
    r"""Return a text with its control characters as in \x1b."""
    return _OBEYED.sub(_escaped, text)


def say(text: str, *, file: TextIO | None = None, flush: bool = False) -> None:
    r"""Print a text, its control characters as in \x1b."""
    print(shown(text), file=sys.stdout if file is None else file, flush=flush)


class _Terminal(io.TextIOBase):
    """A terminal that is told nothing it would obey."""

    def write(self, text: str) -> int:
        sys.stdout.write(shown(text))
        return len(text)


def csv_stream() -> IO[str]:
    """Return a stream for CSV on stdout: to a file or a pipe the bytes that a CSV file would have.

    A terminal is shown control characters as text.
    """
    if sys.stdout.isatty():
        return _Terminal()  # type: ignore[return-value]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict", newline="")
    return sys.stdout


def _escaped(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]) & 0xFF:02x}"
