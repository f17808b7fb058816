"""Claims: file locks that show which cells are being trained, and that end with their process.

A cell's claim is a lock on one byte in one of 256 empty files; the cell's name determines both. One
file would be slow: the kernel searches the locks of a file one by one, and a thousand workers hold
tens of thousands of them.

On some systems, such as macOS, locks belong to the process and not to the open file. There, closing
a file drops all locks that the process holds in it, even if it has opened the file more than once.
So a process that holds claims asks about others through the files that it already has open.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import groupby
from pathlib import Path
from typing import IO

from weightdecay import files


class Claims:
    """The cells that this process has claimed, as locked bytes of files."""

    def __init__(self, folder: Path, held: ExitStack) -> None:
        self._folder, self._held = folder, held
        self._files: dict[str, IO[bytes]] = {}
        self._mine: set[str] = set()
        _of_this_process[folder.resolve()] = self
        held.callback(_of_this_process.pop, folder.resolve(), None)

    def take(self, run: str) -> bool:
        """Claim a cell and return True, or return False if another process has it."""
        is_mine = files.lock_byte(self._file(_file_of(run)), _byte(run), held=True)
        if is_mine:
            self._mine.add(run)
        return is_mine

    def free(self, run: str) -> None:
        """Release a cell."""
        self._mine.discard(run)
        files.lock_byte(self._file(_file_of(run)), _byte(run), held=False)

    def taken(self, runs: Iterable[str]) -> set[str]:
        """Return those of the cells that this process or another has claimed."""
        asked = set(runs)
        found = asked & self._mine  # asking about these would release them on macOS
        for name, some in _by_file(asked - found):
            found.update(_locked(self._file(name), some))
        return found

    def _file(self, name: str) -> IO[bytes]:
        if name not in self._files:
            self._files[name] = self._held.enter_context(
                (self._folder / name).open("ab+", buffering=0)
            )
        return self._files[name]


_of_this_process: dict[Path, Claims] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_of_this_process.clear)  # a fork has their files closed


def taken(folder: Path, runs: Iterable[str]) -> set[str]:
    """Return those of the cells that any process has claimed; this needs no write permission."""
    ours = _of_this_process.get(folder.resolve())
    if ours is not None:
        return ours.taken(runs)
    found: set[str] = set()
    for name, some in _by_file(runs):
        with suppress(FileNotFoundError), (folder / name).open("rb", buffering=0) as file:
            found.update(_locked(file, some))
    return found


def _by_file(runs: Iterable[str]) -> Iterator[tuple[str, Iterator[str]]]:
    """Group cells by file: asking in any other order takes four times as long."""
    return groupby(sorted(runs, key=_file_of), key=_file_of)


def _locked(file: IO[bytes], runs: Iterable[str]) -> Iterator[str]:
    return (run for run in runs if not files.is_byte_free(file, _byte(run)))


def _file_of(run: str) -> str:
    return run[-2:]


def _byte(run: str) -> int:
    return int(run[:15], 16)  # below 2^63, the largest offset of a file
