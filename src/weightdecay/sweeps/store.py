"""The store of a sweep: a folder of append-only files with JSON lines.

    plan.jsonl         the cells that were requested last
    log/000001.jsonl   the lines of one writer; no process appends to another's file
    claims/            empty files: each cell in training locks one byte of one of them;
                       `claims/plan` is locked while the plan is written
    progress/          how far each writer's packs are; counts while the writer is alive
    checkpoints/       one folder per cell in training; `repeats/` has its own, for cells that are
                       trained a second time
    solutions/         only for a single run: the weights at the end of each cycle

A log line is a result, a timing, a failure, the repeat of a result as a control, or the first line
of a file, with the writer's number of workers.
A cell is done if it has a result, and failed if it has a failure and no result; if it has several
results, the first counts. The cells left to train are those of the plan that are not done. Nothing
in the store can become stale, such as times or process numbers, and everything except the log can
be deleted.
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
from weightdecay.sweeps.progress_file import ProgressFile, SweepProgress, read_progress


class Store(StoreReader):
    """A sweep folder, to read and to write. Creating a Store writes nothing."""

    @property
    def repeats_folder(self) -> Path:
        """Return the folder for checkpoints of cells that are trained a second time."""
        return self.folder / "repeats"

    def ask_for(self, cells: Mapping[str, RunConfig]) -> None:
        """Make these cells the plan. Results of other cells stay."""
        self.write_plan((run, config.as_dict()) for run, config in cells.items())

    def write_plan(self, cells: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Make these cells, given as names and plain values, the plan."""
        try:
            with self._planning(), files.written(self._plan) as file:
                file.writelines(as_line({"run": run, "config": config}) for run, config in cells)
        except PermissionError as error:  # it names a temporary file
            raise PermissionError(
                f"You do not have permission to write to {self.folder}. Choose another folder for "
                "the sweep, or change its permissions."
            ) from error

    @contextmanager
    def _planning(self) -> Iterator[None]:
        """Let one process at a time write the plan, and remove what a killed one has left."""
        lock = self.folder / "claims" / "plan"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("ab") as file:
            files.lock(file, wait=True)
            files.sweep(self.folder, self._plan.name)
            yield

    @contextmanager
    def writing(self, workers: int) -> Iterator["Writer"]:
        """Create a file of the log, which stays locked while it is written."""
        self.log.folder.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(Path(name).stem) for name in self.log.names()), default=0)
        while True:
            path = self.log.folder / f"{number:06d}.jsonl"
            try:
                file = path.open("xb", buffering=0)
                break
            except FileExistsError:  # another writer was faster
                number += 1
        with file:
            files.lock(file, wait=True)
            files.sync_folder(path.parent)
            writer = Writer(path, file, self)
            writer.write([("writer", {"workers": workers})])
            self._forget_progress()
            try:
                yield writer
            finally:
                writer.progress.remove()

    @contextmanager
    def claiming(self) -> Iterator[Claims]:
        """Return the claims of this process, which are released at the end."""
        folder = self.folder / "claims"
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            yield Claims(folder, held)

    def running(self, cells: Iterable[str]) -> list[str]:
        """Return those of the cells that any process is training now."""
        return sorted(taken(self.folder / "claims", cells))

    def saved(self, runs: Container[str]) -> dict[str, int]:
        """Return the cells that have a checkpoint, and the update of their newest one."""
        found = {}
        saved = self.folder / "checkpoints"
        for folder in saved.iterdir() if saved.is_dir() else ():
            if folder.name in runs:
                updates = [_update_of(path) for path in folder.glob("checkpoint-*.pt")]
                if updates:
                    found[folder.name] = max(updates)
        return found

    def progress(self) -> SweepProgress:
        """Return how far the sweeps are that are running in the folder now."""
        return read_progress(self.folder, self.writers())

    def _forget_progress(self) -> None:
        """Delete what writers that were killed have left."""
        left = {f"{path.stem}.jsonl" for path in (self.folder / "progress").glob("*.*")}
        for name in left.difference(self.writers() if left else ()):
            ProgressFile(self.folder, name).remove()

    def forget_checkpoints(self, runs: Iterable[str], *, of: Path | None = None) -> None:
        """Delete the checkpoints of cells, in this folder or in another."""
        for run in runs:
            saved = (of or self.folder) / "checkpoints" / run
            if saved.exists():
                shutil.rmtree(saved, ignore_errors=True)

    def forget_all(self) -> None:
        """Delete all results, checkpoints and solutions; the caller must hold the claims."""
        for name in ("log", "checkpoints", "solutions", "repeats"):
            if (self.folder / name).exists():
                shutil.rmtree(self.folder / name)


def _update_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.rpartition("-")[2])


class Writer:
    """Writes one file of the log. A line written without an error is on the disk."""

    def __init__(self, path: Path, file: IO[bytes], store: Store) -> None:
        self._path, self._file, self._store = path, file, store
        self._size = 0
        self.progress = ProgressFile(store.folder, path.name)

    def results(self, runs: Iterable[tuple[Run, Cost]]) -> None:
        """Record finished cells with one write."""
        lines: list[Line] = []
        for run, cost in runs:
            lines += [("result", as_result(run)), ("timing", asdict(cost))]
        self.write(lines)

    def repeats(self, runs: Iterable[tuple[Run, Cost]]) -> None:
        """Record cells that were trained a second time."""
        self.write(("repeat", as_result(run)) for run, _ in runs)

    def failure(self, failure: Failure) -> None:
        """Record that a cell could not be trained."""
        self.write([("failure", asdict(failure))])

    def write(self, lines: Iterable[Line]) -> None:
        """Append lines."""
        self.append([(kind, value, as_line({kind: value})) for kind, value in lines])

    def append(self, entries: Sequence[Entry]) -> None:
        """Append encoded lines. After an error, a line that was written in part is removed.

        Complete lines stay after an error: other processes may already have read them.
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
                f"{self._path} was deleted while the sweep runs: new results would be lost. Run "
                "the same command to continue in a new file."
            )

    def _count(self, entries: Sequence[Entry], written: int) -> None:
        """Count the lines that are complete in the bytes that were written."""
        end, lines = self._size + written, 0
        for kind, value, line in entries:
            if self._size + len(line) > end:
                break
            self._store.ledger.note(kind, value, (self._path.name, self._size))
            self._size += len(line)
            lines += 1
        self._store.log.wrote(self._path.name, size=self._size, lines=lines)
