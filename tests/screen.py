"""A terminal for tests: what it shows of what is written to it."""

import re
import sys

import pytest

from weightdecay import progress

_CODES = re.compile(r"\x1b\[(\?)?(\d*(?:;\d+)*)([A-Za-z])|([^\x1b])")


class Screen:
    """What a terminal shows at the end, and all that it has shown before a carriage return.

    It knows the codes that Rich writes: up, erase a line, and colours and the cursor, which show
    nothing. Any other is an error.
    """

    def __init__(self, text: str) -> None:
        self._rows, self.frames = [""], list[tuple[str, ...]]()
        self.row = self.column = 0
        for private, number, code, sign in _CODES.findall(text):
            if sign:
                self._write(sign)
            elif code == "A":
                self.row -= int(number or 1)
                assert self.row >= 0
            elif code == "K":
                assert number == "2"
                self._rows[self.row] = ""
            else:
                assert code == "m" or (private and number == "25"), (private, number, code)
        assert _CODES.sub("", text) == ""

    def _write(self, sign: str) -> None:
        if sign == "\r":
            self.frames.append(self.shown)
            self.column = 0
        elif sign == "\n":
            self.row, self.column = self.row + 1, 0
            self._rows += [""] * (self.row == len(self._rows))
        else:
            line = self._rows[self.row].ljust(self.column)
            self._rows[self.row] = line[: self.column] + sign + line[self.column + 1 :]
            self.column += 1

    @property
    def shown(self) -> tuple[str, ...]:
        """The lines that are not empty."""
        return tuple(line.rstrip() for line in self._rows if line.strip())


def pretend_a_terminal(
    monkeypatch: pytest.MonkeyPatch, *, columns: int = 80, rows: int = 24
) -> None:
    """Have stderr be a terminal of some size, on which everything is drawn, however often."""
    monkeypatch.setattr(progress, "REDRAWN_EVERY", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")  # in which what is left of a bar is blank
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(rows))
