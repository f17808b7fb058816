"""The files of a sweep's log, read as they grow."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weightdecay import files
from weightdecay.records.ledger import Place

_NAMES = re.compile(r"\d{6,}\.jsonl")
# Many systems let a process open only about a thousand files.
_MOST_OPEN = 100


@dataclass
class _Read:
    """How much of a file was read."""

    bytes: int = 0
    lines: int = 0


class Log:
    """A folder of files, each written by one writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Incomplete last lines of files whose writers are gone.
        self.torn: dict[str, bytes] = {}
        self._read: dict[str, _Read] = {}

    def names(self) -> list[str]:
        """Return the names of the files, sorted."""
        return sorted(name for name, _ in self._sizes())

    def _sizes(self) -> Iterator[tuple[str, int]]:
        with suppress(FileNotFoundError), os.scandir(self.folder) as found:
            for entry in found:
                with suppress(FileNotFoundError):  # it was deleted since it was listed
                    if _NAMES.fullmatch(entry.name) and entry.is_file():
                        yield entry.name, entry.stat().st_size

    def new_lines(self) -> Iterator[tuple[bytes, Place, int]]:
        """Yield the complete lines added since the last call, with their places and numbers."""
        sizes = dict(self._sizes())
        for name in sorted(sizes):
            read = self._read.setdefault(name, _Read())
            if sizes[name] != read.bytes:
                with (self.folder / name).open("rb") as file:
                    yield from self._lines(name, file, read)

    def _lines(self, name: str, file: IO[bytes], read: _Read) -> Iterator[tuple[bytes, Place, int]]:
        self.torn.pop(name, None)
        is_final = False
        file.seek(read.bytes)
        while line := file.readline():
            if line.endswith(b"\n"):
                place = name, read.bytes
                read.bytes += len(line)
                read.lines += 1
                yield line, place, read.lines
            elif is_final:
                self.torn[name] = line
                break
            elif self.is_locked(name):
                break
            else:  # the writer may have completed the line before it exited: look once more
                is_final = True
                file.seek(read.bytes)

    def wrote(self, name: str, *, size: int, lines: int) -> None:
        """Count what this process has written, which need not be read again."""
        read = self._read.setdefault(name, _Read())
        read.bytes, read.lines = size, read.lines + lines

    @contextmanager
    def reading(self) -> Iterator[Callable[[Place], bytes]]:
        """Give a function that reads the line at a place."""
        with ExitStack() as held:
            opened: dict[str, IO[bytes]] = {}

            def line(place: Place) -> bytes:
                name, at = place
                if name not in opened:
                    if len(opened) == _MOST_OPEN:
                        held.close()
                        opened.clear()
                    opened[name] = held.enter_context((self.folder / name).open("rb"))
                opened[name].seek(at)
                return opened[name].readline()

            yield line

    def is_locked(self, name: str) -> bool:
        """Whether the writer of a file is alive."""
        with (self.folder / name).open("rb") as file:
            return not files.lock(file, wait=False, shared=True)
