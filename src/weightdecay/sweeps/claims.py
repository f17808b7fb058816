"""Claims: which cells are being trained, told by locks that go when their holder does.

A cell is a byte of one of 256 empty files, chosen by its name: the system looks through all locks
of a file one by one, and a thousand workers hold tens of thousands.

Where locks are the process's and not the open file's, as on macOS, a process that closes such a
file lets go of all that it has locked in it, however often it has the file open. So a process that
has claims asks about others through the files that it has open.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import groupby
from pathlib import Path
from typing import IO

from weightdecay import files


class Claims:
    """Cells that this process trains and no other does: locked bytes of a few files."""

    def __init__(self, folder: Path, held: ExitStack) -> None:
        self._folder, self._held = folder, held
        self._files: dict[str, IO[bytes]] = {}
        self._mine: set[str] = set()
        _of_this_process[folder.resolve()] = self
        held.callback(_of_this_process.pop, folder.resolve(), None)

    def take(self, run: str) -> bool:
        """Claim a cell, unless somebody else has it."""
        is_mine = files.lock_byte(self._file(_file_of(run)), _byte(run), held=True)
        if is_mine:
            self._mine.add(run)
        return is_mine

    def free(self, run: str) -> None:
        """Let a cell go."""
        self._mine.discard(run)
        files.lock_byte(self._file(_file_of(run)), _byte(run), held=False)

    def taken(self, runs: Iterable[str]) -> set[str]:
        """Return those cells that this process or another has claimed."""
        asked = set(runs)
        found = asked & self._mine  # to ask about these would let go of them on macOS
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
    os.register_at_fork(after_in_child=_of_this_process.clear)  # whose files are closed there


def taken(folder: Path, runs: Iterable[str]) -> set[str]:
    """Return those cells that somebody has claimed; asking needs no right to write."""
    ours = _of_this_process.get(folder.resolve())
    if ours is not None:
        return ours.taken(runs)
    found: set[str] = set()
    for name, some in _by_file(runs):
        with suppress(FileNotFoundError), (folder / name).open("rb", buffering=0) as file:
            found.update(_locked(file, some))
    return found


def _by_file(runs: Iterable[str]) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield files, and the cells in each: to ask in any order takes four times as long."""
    return groupby(sorted(runs, key=_file_of), key=_file_of)


def _locked(file: IO[bytes], runs: Iterable[str]) -> Iterator[str]:
    return (run for run in runs if not files.is_byte_free(file, _byte(run)))


def _file_of(run: str) -> str:
    return run[-2:]


def _byte(run: str) -> int:
    return int(run[:15], 16)  # below 2^63, where files end
