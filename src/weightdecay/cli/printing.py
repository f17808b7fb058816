r"""Printing of text and tables. Control characters are printed as text, as in \x1b.

Names, reasons and error messages come from files that others wrote: they may hold sequences that a
terminal would execute.
"""

import io
import re
import sys
from collections.abc import Sequence
from typing import IO, Literal, TextIO

from weightdecay.progress import is_screen, writable
from weightdecay.table import table

# Control characters except tab and newline, with 8-bit ones and such bytes in a file's name.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udc9f]")


def escaped(text: str) -> str:
    r"""Return a text with control characters written as in \x1b."""
    return _CONTROLS.sub(_code_of, text)


def echo(
    text: str, *, file: TextIO | Literal["stdout"] | None = "stdout", flush: bool = False
) -> None:
    r"""Print a text, with control characters written as in \x1b.

    A stream that is None, as in a process without a console, gets nothing.
    """
    stream = sys.stdout if file == "stdout" else file
    if stream is not None:  # `print` would take None for stdout
        print(escaped(text), file=stream, flush=flush)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first row is the header. A terminal gets it folded to its width.

    Only the widest column is folded, between words. Pipes, and terminals too narrow for that, get
    one whole line per row: numbers are never broken or cut off.
    """
    if not (is_screen(sys.stdout) and _folded(rows)):
        echo(table(rows))


def _folded(rows: Sequence[Sequence[str]]) -> bool:
    """Print a table with Rich if it fits, and return whether it did."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.cells import cell_len
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    cells = [[writable(escaped(cell), sys.stdout) for cell in row] for row in rows]
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
    """Standard output that gets control characters as text."""

    def write(self, text: str) -> int:
        sys.stdout.write(escaped(text))
        return len(text)


def csv_stream() -> IO[str]:
    """Return a stream that writes CSV to stdout.

    A pipe gets the same bytes as a CSV file. A terminal gets control characters as text.
    """
    if sys.stdout.isatty():
        return _Terminal()  # type: ignore[return-value]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict", newline="")
    return sys.stdout


def _code_of(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]) & 0xFF:02x}"
