"""Tables that commands print: whole lines in a pipe, folded on a terminal."""

import re
import sys

import pytest

from weightdecay.cli.printing import print_table

Output = pytest.CaptureFixture[str]
ROWS = [
    ("landscape", "s, the coupling exponent", "best α"),
    ("AdamW", "s unknown: the best decay is at an edge of the grid for 3 of 5 rates", "2⁻⁶"),
    ("Adam\x1b[2J", "s = 0.93 [0.81, 1.05]", "0.001*2^-9"),
]
NUMBERS = [
    ("algorithm", "best lr", "best decay", "validation", "test error", "seeds"),
    ("adamw", "2^-6", "λ_norm 0.1", "54.12%", "49.90% ± 1.20%", "2"),
]


def test_a_table_in_a_pipe_has_whole_lines(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table(ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(ROWS)
    assert "at an edge of the grid for 3 of 5 rates  2⁻⁶" in lines[1]
    assert r"Adam\x1b[2J" in lines[2]


@pytest.mark.parametrize("columns", range(20, 100, 5))
@pytest.mark.parametrize(("rows", "narrowest"), [(ROWS, 35), (NUMBERS, 65)])
def test_a_table_on_a_terminal_is_folded_and_never_breaks_a_number(
    rows: list[tuple[str, ...]],
    narrowest: int,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(rows)
    out = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert "\x1b" not in out
    assert (max(map(len, out.splitlines())) <= columns) == (columns >= narrowest)
    words = " ".join(cell for row in rows for cell in row).replace("\x1b", r"\x1b").split()
    assert sorted(words) == sorted(word for word in out.split() if set(word) != {"─"})
