"""Progress of `train` and `sweep`, called from Python: on a terminal, in a notebook, elsewhere."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.screen import Screen, pretend_a_terminal
from tests.toys import config
from weightdecay import progress
from weightdecay.cli import main
from weightdecay.cli.encoding import spell_out
from weightdecay.runs import pack, train
from weightdecay.sweeps import InProcess, sweep

pytestmark = pytest.mark.cpu("what is drawn does not depend on the device")
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every update reported."""
    monkeypatch.setattr(pack, "PROGRESS_EVERY", 0.0)


def training(folder: Path, **options: Any) -> None:
    train(config(epochs=3), device="cpu", **options)


def sweeping(folder: Path, **options: Any) -> None:
    cells = [config(seed=seed) for seed in range(2)]
    sweep(cells, folder=folder, engine=InProcess("cpu"), **options)


#: What is called, and what its last line must hold.
CALLS = pytest.mark.parametrize(
    ("call", "last"),
    [(training, "epoch 3/3  loss "), (sweeping, "2 of 2 done · 0 running · time left 0:00")],
)
Call = Callable[..., None]


@CALLS
def test_on_a_terminal_bars_show_the_progress_and_are_gone_at_the_end(
    call: Call, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    pretend_a_terminal(monkeypatch, columns=120)
    call(tmp_path / "s")
    out, err = capsys.readouterr()
    screen = Screen(err)
    assert (out, screen.shown) == ("", ())
    *_, frame = filter(None, screen.frames)
    assert frame[0].startswith("━" * 30)
    assert last in frame[0]


@CALLS
def test_without_a_terminal_nothing_is_shown(
    call: Call, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(progress, "REDRAWN_EVERY", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # to which Rich would listen
    call(tmp_path / "s")
    assert capsys.readouterr() == ("", "")


@CALLS
def test_a_dumb_terminal_is_shown_nothing(
    call: Call, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    pretend_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    call(tmp_path / "s")
    assert capsys.readouterr() == ("", "")


class Tee:
    """What a logger may put in the place of stderr."""

    def write(self, text: str) -> None:
        pass

    def flush(self) -> None:
        pass


@CALLS
def test_an_object_in_place_of_stderr_stops_no_training(
    call: Call, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Tee())
    call(tmp_path / "s")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    call(tmp_path / "t")


def test_a_line_of_the_log_stays_above_the_bars(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    pretend_a_terminal(monkeypatch, columns=120)
    monkeypatch.setattr(progress, "REDRAWN_EVERY", -1.0)
    with progress.Bars() as bars:
        for _ in range(2):
            bars.draw([(0.5, "whole"), (0.2, "one worker"), (0.1, "another")])
            bars.clear()
            sys.stderr.write("a notice\n")
        bars.draw([(0.9, "whole")])
    assert Screen(capsys.readouterr().err).shown == ("a notice", "a notice")


@CALLS
def test_without_rich_nothing_is_shown_and_all_is_trained(
    call: Call, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    pretend_a_terminal(monkeypatch)
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    call(tmp_path / "s")
    assert capsys.readouterr() == ("", "")


@CALLS
def test_progress_that_is_not_wanted_is_not_shown(
    call: Call, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    pretend_a_terminal(monkeypatch)
    call(tmp_path / "s", progress=False)
    assert capsys.readouterr() == ("", "")


class Notebook:
    """IPython in a notebook's kernel, and what it displays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kernel: object) -> None:
        self.shown: list[str] = []
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        shell = SimpleNamespace(kernel=kernel)
        vars(ipython)["get_ipython"] = lambda: shell
        vars(display).update(HTML=str, display=self.display)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        monkeypatch.setattr(progress, "REDRAWN_EVERY", -1.0)

    def display(self, page: str, *, display_id: bool) -> "Notebook":
        assert display_id
        self.update(page)
        return self

    def update(self, page: str) -> None:
        self.shown.append(page)


@CALLS
def test_in_a_notebook_bars_are_displayed_and_are_gone_at_the_end(
    call: Call, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    notebook = Notebook(monkeypatch, kernel=object())
    call(tmp_path / "s")
    assert capsys.readouterr() == ("", "")
    *_, frame, end = notebook.shown
    assert frame.startswith('<progress value="1.0000"></progress> <code>')
    assert last in frame
    assert end == ""


def test_ipython_without_a_kernel_is_no_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    notebook = Notebook(monkeypatch, kernel=None)
    training(tmp_path)
    assert notebook.shown == []


def test_what_is_displayed_in_a_notebook_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch, kernel=object())
    with progress.Bars() as bars:
        bars.draw([(None, "<script>\x1b[2J")])
    assert notebook.shown == ["<code>&lt;script&gt; [2J</code>", ""]


def test_without_a_terminal_training_and_printing_import_no_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """What a process imports at its start is tested in test_door.py."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    train(config(), device="cpu")
    assert main(["convert", "--weight-decay", "0.1"]) == 0
    assert not capsys.readouterr().err
    assert "rich" not in sys.modules


class AsciiTerminal(io.TextIOWrapper):
    """A terminal of an encoding that has no ellipsis."""

    def __init__(self, errors: str) -> None:
        super().__init__(io.BytesIO(), encoding="ascii", errors=errors)

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("errors", ["backslashreplace", "weightdecay.spelled"])
@pytest.mark.parametrize("columns", [12, 40, 60])
def test_a_shortened_line_fits_a_terminal_without_an_ellipsis(
    errors: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_a_terminal(monkeypatch, columns=columns)
    terminal = AsciiTerminal(errors)
    spell_out(terminal)
    terminal.reconfigure(errors=errors)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.Bars() as bars:
        bars.draw([(0.5, "a loss that is long " * 5), (None, "a worker " * 9), (0.1, "η 0.5")])
    assert isinstance(terminal.buffer, io.BytesIO)
    frames = [frame for frame in Screen(terminal.buffer.getvalue().decode()).frames if frame]
    assert frames
    for frame in frames:
        assert max(map(len, frame)) <= columns - len("^C") - 1
        assert frame[0].endswith("...")
        assert frame[1].endswith("...")
