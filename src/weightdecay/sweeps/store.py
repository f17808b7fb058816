"""The store of a sweep: a folder of append-only JSON lines, with almost no state to fail.

    plan.jsonl         the cells that were asked for last
    log/000001.jsonl   what one writer found out, line by line; nobody appends to another's file
    claims/            empty files: a cell that is being trained is a locked byte of one of them;
                       `claims/plan` is locked while the plan is written
    checkpoints/       of cells that are being trained, a folder each; in `repeats/`, of those that
                       are trained a second time
    solutions/         of a run alone: the weights at the end of each cycle

A line of the log is a result, a timing, a failure, the repeat of a result as a control, or the
writer's first: how many workers it has.
A cell is done when there is a result of it, and failed when there is a failure and no result; of
several results the first counts. What is left to do is the plan, less what is done. No line has a
time, a process or a number that could be stale, and all but the log can be deleted.
"""

import os
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from weightdecay import files
from weightdecay.records import Run, RunConfig
from weightdecay.records.codec import Cost, Entry, Failure, Line, as_line
from weightdecay.records.columnar import as_result
from weightdecay.records.readers import StoreReader
from weightdecay.sweeps.claims import Claims, taken


class Store(StoreReader):
    """A sweep's folder, to read and to write. Making one writes nothing."""

    @property
    def repeats_folder(self) -> Path:
        """Return where cells are saved that are trained a second time."""
        return self.folder / "repeats"

    def ask_for(self, cells: Mapping[str, RunConfig]) -> None:
        """Make these cells the plan. What is done of others stays, and is none of its business."""
        self.write_plan((run, config.as_dict()) for run, config in cells.items())

    def write_plan(self, cells: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Make these cells the plan, named and as plain values."""
        try:
            with self._planning(), files.written(self._plan) as file:
                file.writelines(as_line({"run": run, "config": config}) for run, config in cells)
        except PermissionError as error:  # of a temporary file, which nobody has heard of
            raise PermissionError(
                f"A sweep must be kept in a folder that you may write to, and {self.folder} is "
                "none. Name another, or have its rights changed."
            ) from error

    @contextmanager
    def _planning(self) -> Iterator[None]:
        """Have the plan written by one process at a time, and what a killed one left removed."""
        lock = self.folder / "claims" / "plan"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("ab") as file:
            files.lock(file, wait=True)
            files.sweep(self.folder, self._plan.name)
            yield

    @contextmanager
    def writing(self, workers: int) -> Iterator["Writer"]:
        """Give a file of one's own to write to; it is locked for as long as it is written."""
        self.log.folder.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(Path(name).stem) for name in self.log.names()), default=0)
        while True:
            path = self.log.folder / f"{number:06d}.jsonl"
            try:
                file = path.open("xb", buffering=0)
                break
            except FileExistsError:  # another writer was quicker
                number += 1
        with file:
            files.lock(file, wait=True)
            files.sync_folder(path.parent)
            writer = Writer(path, file, self)
            writer.write([("writer", {"workers": workers})])
            yield writer

    @contextmanager
    def claiming(self) -> Iterator[Claims]:
        """Give what cells are claimed with; all claims end with it."""
        folder = self.folder / "claims"
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            yield Claims(folder, held)

    def running(self, cells: Iterable[str]) -> list[str]:
        """Return those cells that somebody is training now."""
        return sorted(taken(self.folder / "claims", cells))

    def saved(self, runs: Container[str]) -> dict[str, int]:
        """Return the cells that have a checkpoint, and the update of the newest."""
        found = {}
        saved = self.folder / "checkpoints"
        for folder in saved.iterdir() if saved.is_dir() else ():
            if folder.name in runs:
                names = [path.stem.rpartition("-")[2] for path in folder.glob("checkpoint-*.pt")]
                if names:
                    found[folder.name] = max(map(int, names))
        return found

    def forget_checkpoints(self, runs: Iterable[str], *, of: Path | None = None) -> None:
        """Remove the checkpoints of cells that are recorded, here or in another folder."""
        for run in runs:
            saved = (of or self.folder) / "checkpoints" / run
            if saved.exists():
                shutil.rmtree(saved, ignore_errors=True)

    def forget_all(self) -> None:
        """Remove all results, checkpoints and solutions; whoever calls this holds the claims."""
        for name in ("log", "checkpoints", "solutions", "repeats"):
            if (self.folder / name).exists():
                shutil.rmtree(self.folder / name)


class Writer:
    """One file of the log. What it has written without an error is on the disk."""

    def __init__(self, path: Path, file: IO[bytes], store: Store) -> None:
        self._path, self._file, self._store = path, file, store
        self._size = 0

    def results(self, runs: Iterable[tuple[Run, Cost]]) -> None:
        """Record finished cells, together."""
        lines: list[Line] = []
        for run, cost in runs:
            lines += [("result", as_result(run)), ("timing", asdict(cost))]
        self.write(lines)

    def repeats(self, runs: Iterable[tuple[Run, Cost]]) -> None:
        """Record cells that were trained again."""
        self.write(("repeat", as_result(run)) for run, _ in runs)

    def failure(self, failure: Failure) -> None:
        """Record that a cell could not be trained."""
        self.write([("failure", asdict(failure))])

    def write(self, lines: Iterable[Line]) -> None:
        """Append lines."""
        self.append([(kind, value, as_line({kind: value})) for kind, value in lines])

    def append(self, entries: Sequence[Entry]) -> None:
        """Append lines that are text already; one that could be written in part is taken back.

        Whole lines stay, whatever the error: other processes may have read them by now.
        """
        text, written = memoryview(b"".join(line for _, _, line in entries)), 0
        try:
            while written < len(text):
                written += self._file.write(text[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            self._count(entries, written)
            self._file.truncate(self._size)
            self._file.seek(self._size)
            files.explain(error, self._path)
            raise
        self._count(entries, written)
        if not self._path.exists():
            raise FileNotFoundError(
                f"{self._path} must stay while the sweep runs, and was deleted: what is recorded "
                "from now on would be lost."
            )

    def _count(self, entries: Sequence[Entry], written: int) -> None:
        """Take in the lines that are whole in the bytes that were written."""
        end, lines = self._size + written, 0
        for kind, value, line in entries:
            if self._size + len(line) > end:
                break
            self._store.ledger.note(kind, value, (self._path.name, self._size))
            self._size += len(line)
            lines += 1
        self._store.log.wrote(self._path.name, size=self._size, lines=lines)
