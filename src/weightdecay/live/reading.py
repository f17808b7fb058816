"""Reads the folder of a sweep as it grows: its cells, and how far it is."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from weightdecay.live.planned import Cell, Plan, cell_of
from weightdecay.live.standing import SECOND, Standing
from weightdecay.records import Run
from weightdecay.records.readers import not_a_sweep
from weightdecay.results import by_split, cell_runs, landscapes
from weightdecay.site.page_data import errors_of
from weightdecay.sweeps import Store

# A folder has one of these from its beginning on; the last one is that of `studies.own_scale`.
_BEGUN = ("log", "plan.jsonl", "tuner.json", "scale.json")
_END = 4096  # bytes at the end of a file by which it is recognised


def has_begun(folder: Path) -> bool:
    """Whether a folder is that of a sweep or a tuner."""
    return any((folder / name).exists() for name in _BEGUN)


def not_begun(folder: Path) -> str:
    """Return in words that nothing is in a folder yet. It is an error if sweeps are inside it."""
    if any(folder.glob("*/plan.jsonl")):
        raise not_a_sweep(folder, lacks="plan.jsonl")
    state = "is empty so far" if folder.exists() else "does not exist yet"
    return f"{folder} {state}. Cells appear here when a sweep or a tuner starts to write to it."


class Reading:
    """What was read of a folder. If it was deleted or made anew, a new reading is needed."""

    def __init__(
        self, folder: Path, *, of: str = "error", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._standing = Store(folder), Standing(folder, clock)
        self._of = of
        self._runs: dict[Cell, dict[int, Run]] = {}
        self._changed: OrderedDict[Cell, int] = OrderedDict()
        self._rows: dict[Cell, list[Any]] = {}
        self._read = 0
        self._ends = {name: _Ends(folder / name / "log") for name in ("", SECOND)}
        #: The number of the last change.
        self.sequence = 0
        self.status: dict[str, Any] = {}

    def is_current(self) -> bool:
        """Whether the files of the log still begin with what was read of them."""
        return all(one.stay() for one in self._ends.values())

    def look(self) -> None:
        """Read what is new."""
        ledger = self._store.refresh()
        names = list(ledger.results)
        new = {run: ledger.results[run] for run in names[self._read :]}
        for run in self._store.read(new):
            self._take(run)
        self._read = len(ledger.results)
        self.status = self._standing.status()
        for one in self._ends.values():
            one.remember()

    def runs(self) -> list[Run]:
        """Return the finished runs, with their last epoch alone."""
        return [run for own in self._runs.values() for run in own.values()]

    def plan(self) -> Plan:
        """Return the planned cells."""
        return self._standing.plan()

    def running(self) -> Mapping[Cell, int]:
        """Return the cells that are in training now, and how many of their seeds."""
        return self._standing.running()

    def stamp(self) -> object:
        """Return what changes when a cell is planned or done."""
        return self._standing.stamp()

    @property
    def over(self) -> bool:
        """Whether nothing is left to train."""
        return self._standing.over

    def changed(self, after: int) -> Iterator[Cell]:
        """Yield the cells that have changed after a number, the last one first."""
        for cell, number in reversed(self._changed.items()):
            if number <= after:
                break
            yield cell

    def row(self, cell: Cell) -> list[Any]:
        """Return a cell as a page has it: seeds, diverged ones, and the errors of each split."""
        if cell not in self._rows:
            self._rows[cell] = self._computed(cell)
        return self._rows[cell]

    def _take(self, run: Run) -> None:
        if not run.records:
            return
        cell = cell_of(run.config)
        # Curves are in the next view: until then, the last epoch is enough.
        self._runs.setdefault(cell, {}).setdefault(
            run.config.seed, replace(run, records=run.records[-1:])
        )
        self.sequence += 1
        self._changed[cell] = self.sequence
        self._changed.move_to_end(cell)
        self._rows.pop(cell, None)

    def _computed(self, cell: Cell) -> list[Any]:
        runs = list(self._runs[cell].values())
        [scape] = landscapes(runs, of=self._of)
        [own] = cell_runs([scape], runs)
        errors = {}
        for split, one in by_split(scape, own).items():
            found = errors_of(one)
            errors[split] = [found[name][0] for name in ("values", "texts", "spreads")]
        return [len(runs), sum(run.diverged for run in runs), errors]


class _Ends:
    """The last complete lines of a log's files. A file only grows: they must stay where they are.

    A new file may have the name, the size and even the inode of a deleted one, but not its bytes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamps: dict[str, object] = {}
        self._known: dict[str, tuple[int, bytes]] = {}

    def stay(self) -> bool:
        return all(self._stays(name, *known) for name, known in self._known.items())

    def _stays(self, name: str, start: int, end: bytes) -> bool:
        try:
            if self._stamp(name) == self._stamps[name]:
                return True
            return self._bytes(name, start, len(end)) == end
        except FileNotFoundError:
            return False

    def remember(self) -> None:
        for path in self._folder.glob("*.jsonl"):
            name, stamp = path.name, self._stamp(path.name)
            if stamp == self._stamps.get(name):
                continue
            start = max(0, path.stat().st_size - _END)
            found = self._bytes(name, start, _END)
            # A last line without its end may still be taken back by its writer.
            if complete := found[: found.rfind(b"\n") + 1]:
                self._known[name], self._stamps[name] = (start, complete), stamp

    def _stamp(self, name: str) -> object:
        found = (self._folder / name).stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _bytes(self, name: str, start: int, count: int) -> bytes:
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read(count)
