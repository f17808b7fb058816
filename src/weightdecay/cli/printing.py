"""What is printed: what a terminal would obey is shown to it as text.

Names, reasons and messages come from files that others wrote, and may hold escape sequences.
"""

import io
import re
import sys
from collections.abc import Sequence
from typing import IO, TextIO

from weightdecay.progress import is_screen, writable
from weightdecay.table import table

# Controls but for tab and newline, those of eight bits too, and bytes of a file's name that
# would be such.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udc9f]")


def shown(text: str) -> str:
    r"""Return a text with its control characters as in \x1b."""
    return _OBEYED.sub(_escaped, text)


def say(text: str, *, file: TextIO | None = None, flush: bool = False) -> None:
    r"""Print a text, its control characters as in \x1b."""
    print(shown(text), file=sys.stdout if file is None else file, flush=flush)


def say_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header: in a pipe as whole lines, on a terminal folded to its width.

    Only the widest column is folded, between words. A terminal that is too narrow for that gets the
    same lines as a pipe: numbers are never broken or cut off.
    """
    if not (is_screen(sys.stdout) and _folded(rows)):
        say(table(rows))


def _folded(rows: Sequence[Sequence[str]]) -> bool:
    """Print a table with Rich, and return whether there was room for it."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.cells import cell_len
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    cells = [[writable(shown(cell), sys.stdout) for cell in row] for row in rows]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    widest = widths.index(max(widths))
    word = max(cell_len(word) for cell in columns[widest] for word in cell.split() or [""])
    console = Console(file=sys.stdout, force_terminal=True, force_jupyter=False)
    gaps = len(" │ ") * (len(widths) - 1)
    if sum(widths) - widths[widest] + word + gaps > console.width:
        return False
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, title in enumerate(cells[0]):
        drawn.add_column(Text(title), no_wrap=number != widest)
    for row in cells[1:]:
        drawn.add_row(*map(Text, row))
    console.print(drawn)
    return True


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
