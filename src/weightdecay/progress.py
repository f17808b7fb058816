"""Progress bars on a terminal or in a notebook.

Nothing is drawn anywhere else. Rich draws on a terminal, and is imported only there: without Rich
there are no bars, and everything else works.
"""

import math
import os
import re
import sys
import time
from collections.abc import Sequence
from html import escape
from types import TracebackType
from typing import Any, Protocol, Self, TextIO, TypeAlias

from weightdecay.records import Progress
from weightdecay.table import error

#: Seconds between two drawings.
REDRAWN_EVERY = 0.1
#: The share of the work that is done, if it is known, and a text to show beside the bar.
Line: TypeAlias = tuple[float | None, str]
_WIDEST, _NARROWEST = 30, 5  # cells of a bar
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class View(Protocol):
    """A place to draw lines."""

    def draw(self, lines: Sequence[Line]) -> None:
        """Draw these lines in place of the previous ones."""

    def echo(self, text: str) -> None:
        """Print a text above the lines."""

    def close(self) -> None:
        """Remove the lines."""


class Bars:
    """Lines with bars that are redrawn in place, and removed at the end."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._view = None if quiet else _view()
        self._drawn_at = -math.inf

    @property
    def are_drawn(self) -> bool:
        """Whether there is a place to draw lines."""
        return self._view is not None

    def draw(self, lines: Sequence[Line]) -> None:
        """Draw the lines, unless the last ones are too recent or there is no place to draw."""
        now = time.monotonic()
        if self._view is not None and now - self._drawn_at >= REDRAWN_EVERY:
            self._drawn_at = now
            self._view.draw([(share, _CONTROLS.sub(" ", text)) for share, text in lines])

    def clear(self) -> None:
        """Remove the lines until they are drawn again: what others print would be drawn over."""
        if self._view is not None:
            self._view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()


def is_screen(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that can redraw lines.

    Loggers put objects in place of stderr that have no `isatty`, and streams may be closed.
    """
    if stream is None or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    try:
        return stream.isatty()
    except (AttributeError, ValueError, OSError):
        return False


def writable(text: str, stream: TextIO) -> str:
    """Return a text as the stream's encoding will write it, which may be longer."""
    encoding, errors = stream.encoding or "utf-8", stream.errors or "strict"
    if errors == "strict":
        errors = "backslashreplace"
    return text.encode(encoding, errors).decode(encoding, "replace")


def _view() -> View | None:
    if _in_notebook():
        return _Notebook()
    if not is_screen(sys.stderr):
        return None
    try:
        return _Terminal()
    except ImportError:
        return None


class _Terminal:
    """Rich's live display on stderr."""

    def __init__(self) -> None:
        from rich.console import Console

        # `is_screen` decides whether this is a terminal, not variables such as FORCE_COLOR.
        self._console = Console(
            stderr=True, force_terminal=True, force_interactive=True, force_jupyter=False
        )
        self._live: Any = None

    def draw(self, lines: Sequence[Line]) -> None:
        from rich.console import Group
        from rich.constrain import Constrain
        from rich.live import Live

        # A terminal prints ^C at the cursor. If that wrapped, old lines would stay on the screen.
        width = self._console.width - len("^C") - 1
        height = max(1, self._console.height - 1)
        if len(lines) > height > 1:
            lines = [*lines[: height - 1], (None, f"… and {len(lines) - height + 1} more")]
        lines = [(share, _shortened(text, width)) for share, text in lines[:height]]
        longest = max((len(text) for share, text in lines if share is not None), default=0)
        cells = min(_WIDEST, width - longest - 2)
        drawn = [self._line(share, text, cells) for share, text in lines]
        if self._live is None:  # a stopped one would erase what was printed since
            self._live = Live(
                console=self._console,
                auto_refresh=False,  # it would start a thread
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._live.update(Constrain(Group(*drawn), width), refresh=True)

    @staticmethod
    def _line(share: float | None, text: str, cells: int) -> Any:
        """Return a text, after a bar if there is a share and enough room."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        shown = Text(text, no_wrap=True, overflow="crop")
        if share is None or cells < _NARROWEST:
            return shown
        line = Table.grid(padding=(0, 2))
        line.add_column(width=cells)
        line.add_column(no_wrap=True, overflow="crop")
        line.add_row(ProgressBar(total=1.0, completed=share, width=cells), shown)
        return line

    def echo(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(text), soft_wrap=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
        self._live = None


def _shortened(text: str, width: int) -> str:
    """Return a text as stderr will write it, cut to a width.

    Rich would cut it with one ellipsis, which other encodings write as several characters.
    """
    from rich.cells import cell_len, set_cell_size

    text = writable(text, sys.stderr)
    if cell_len(text) <= width:
        return text
    dots = "…" if writable("…", sys.stderr) == "…" else "..."
    return set_cell_size(text, max(0, width - len(dots))) + dots


class _Notebook:
    """HTML in the output of a notebook's cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, lines: Sequence[Line]) -> None:
        self._put("<br>".join(_html(share, text) for share, text in lines))

    def echo(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")

    def close(self) -> None:
        if self._handle is not None:
            self._put("")

    def _put(self, text: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(text), display_id=True)
        else:
            self._handle.update(HTML(text))


def _html(share: float | None, text: str) -> str:
    bar = "" if share is None else f'<progress value="{share:.4f}"></progress> '
    return f"{bar}<code>{escape(text)}</code>"


def _in_notebook() -> bool:
    """Whether this is a notebook: IPython on a terminal has no kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def training_line(progress: Progress) -> str:
    """Describe the progress of a training."""
    speed = progress.speed
    parts = [
        f"epoch {progress.epoch}/{progress.epochs}",
        f"loss {progress.loss:#.3g}",
        f"{progress.metric or 'error'} {error(progress.error, progress.metric, digits=1)}",
        f"η {progress.multiplier:.2f}",
        f"{speed:.2g} updates/s" if speed < 10 else f"{speed:,.0f} updates/s",
        f"{duration(progress.seconds_left)} left",
    ]
    return "  ".join(parts)


def pack_line(progress: Progress) -> str:
    """Describe the progress of a worker, more briefly, with numbers of a fixed width."""
    epochs = str(progress.epochs)
    found = error(progress.error, progress.metric, digits=1)
    parts = [
        f"epoch {progress.epoch:>{len(epochs)}}/{epochs}",
        f"train {progress.metric or 'error'} {found:>5}",
        f"{duration(progress.seconds_left)} left",
    ]
    return "  ".join(parts)


def duration(seconds: float) -> str:
    """Return 0:07, 12:34 or 1:02:03, or a dash if infinite."""
    if not math.isfinite(seconds):
        return "–"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
