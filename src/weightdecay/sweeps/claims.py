"""Claims: which cells are being trained, told by locks that go when their holder does.

A cell is a byte of one of 256 empty files, chosen by its name: the system looks through all locks
of a file one by one, and a thousand workers hold tens of thousands.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from weightdecay import files


class Claims:
    """Cells that this process trains and no other does: locked bytes of a few files."""

    def __init__(self, folder: Path, held: ExitStack) -> None:
        self._folder, self._held = folder, held
        self._files: dict[str, IO[bytes]] = {}

    def take(self, run: str) -> bool:
        """Claim a cell, unless somebody else has it."""
        return files.lock_byte(self._file(run), _byte(run), held=True)

    def free(self, run: str) -> None:
        """Let a cell go."""
        files.lock_byte(self._file(run), _byte(run), held=False)

    def _file(self, run: str) -> IO[bytes]:
        """Return the file that has a cell's byte."""
        name = _file_of(run)
        if name not in self._files:
            self._files[name] = self._held.enter_context(
                (self._folder / name).open("ab+", buffering=0)
            )
        return self._files[name]


def taken(folder: Path, runs: Iterable[str]) -> list[str]:
    """Return those cells that somebody has claimed."""
    return [run for run in runs if not _is_free(folder / _file_of(run), run)]


def _file_of(run: str) -> str:
    return run[-2:]


def _is_free(path: Path, run: str) -> bool:
    """Whether nobody has a cell; asking takes nothing, and needs no right to write."""
    try:
        with path.open("rb", buffering=0) as file:
            return files.is_byte_free(file, _byte(run))
    except FileNotFoundError:
        return True


def _byte(run: str) -> int:
    return int(run[:15], 16)  # below 2^63, where files end
