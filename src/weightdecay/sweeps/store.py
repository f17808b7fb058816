"""The store of a sweep: a folder of append-only JSON lines, with almost no state to fail.

    plan.jsonl         the cells that were asked for last
    log/000001.jsonl   what one writer found out, line by line; nobody appends to another's file
    claims/            empty files: a cell that is being trained is a locked byte of one of them
    checkpoints/       of cells that are being trained, a folder each

A line of the log is a result, a timing, a failure, the repeat of a result as a control, or the
writer's first: how many workers it has.
A cell is done when there is a result of it, and failed when there is a failure and no result; of
several results the first counts. What is left to do is the plan, less what is done. No line has a
time, a process or a number that could be stale, and all but the log can be deleted.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from weightdecay import files
from weightdecay.records import SEMANTICS, Run, RunConfig
from weightdecay.sweeps.claims import Claims, taken
from weightdecay.sweeps.lines import (
    Cost,
    Failure,
    Line,
    as_result,
    as_text,
    glanced,
    parsed,
    run_of,
)

_NAMES = re.compile(r"\d{6,}\.jsonl")


@dataclass
class Ledger:
    """What the log says: of each cell the first result, and else the last failure."""

    diverged: dict[str, bool] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    #: Cells that were trained a second time.
    repeated: set[str] = field(default_factory=set)
    #: Seconds spent on a cell, and the epochs that they were spent on.
    costs: dict[str, tuple[float, int]] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    #: What could not be read, said once.
    damage: list[str] = field(default_factory=list)

    def note(self, writer: str, kind: str, value: Mapping[str, Any]) -> None:
        """Take in a line."""
        match kind:
            case "result":
                self.diverged.setdefault(value["run"], bool(value["records"]["diverged"][-1]))
                self.failures.pop(value["run"], None)
            case "failure" if value["run"] not in self.diverged:
                self.failures[value["run"]] = Failure(**value)
            case "repeat":
                self.repeated.add(value["run"])
            case "timing":
                cost = float(value["seconds"]), int(value["epochs"])
                self.costs.setdefault(value["run"], cost)
            case "writer":
                self.workers[writer] = int(value["workers"])


class Store:
    """A sweep's folder. Making one writes nothing."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.checkpoints = self.folder / "checkpoints"
        self.ledger = Ledger()
        self._offsets: dict[Path, int] = {}

    def ask_for(self, cells: Mapping[str, RunConfig]) -> None:
        """Make these cells the plan. What is done of others stays, and is none of its business."""
        lines = (
            json.dumps({"run": run, "config": config.as_dict()}) for run, config in cells.items()
        )
        try:
            with self._planning(), files.written(self.folder / "plan.jsonl") as file:
                file.writelines(line.encode() + b"\n" for line in lines)
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
            files.sweep(self.folder)
            yield

    def plan(self) -> dict[str, dict[str, Any]]:
        """Return the configurations of the cells asked for, as plain values."""
        path = self.folder / "plan.jsonl"
        if not path.is_file():
            raise no_sweep(self.folder, lacks=path.name)
        try:
            lines = [json.loads(line) for line in path.read_bytes().splitlines()]
            return {line["run"]: line["config"] for line in lines}
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} must hold a cell a line, and does not ({error}). What is recorded is not "
                "in it: `weightdecay sweep STUDY --out FOLDER` writes it anew."
            ) from error

    def refresh(self, *, brief: bool = False) -> Ledger:
        """Read what was written since the last time, by anyone.

        To count results it is enough to look at the ends of their lines (`brief`); who is to train
        what is missing reads them whole.
        """
        grown = [path for path, size in self._sizes() if size != self._offsets.get(path, 0)]
        for path in sorted(grown):
            for kind, value in self._lines(path, brief=brief):
                if kind in ("result", "repeat") and not brief and run_of(value) is None:
                    if value.get("semantics") == SEMANTICS:
                        said = f"A result in {path.name} does not fit its name, and is left out."
                        self.ledger.damage.append(said)
                    continue
                try:
                    self.ledger.note(path.name, kind, value)
                except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                    self.ledger.damage.append(f"A line of {path.name} is of no use, and left out.")
        return self.ledger

    def wrote(self, path: Path, size: int, lines: Iterable[Line]) -> None:
        """Take in lines of one's own, which need not be read again."""
        for kind, value in lines:
            self.ledger.note(path.name, kind, value)
        self._offsets[path] = size

    def runs(self) -> list[Run]:
        """Return the finished runs, in the order of their names; of several the first counts."""
        return self._first("result")

    def repeats(self) -> list[Run]:
        """Return the runs that were trained again as a control, in the order of their names."""
        return self._first("repeat")

    def _first(self, wanted: str) -> list[Run]:
        found: dict[str, Run] = {}
        reader = Store(self.folder)
        for path in reader._logs():
            for kind, value in reader._lines(path):
                if kind == wanted and value.get("run") not in found:
                    run = run_of(value)
                    if run is not None:
                        found[value["run"]] = run
        return [found[name] for name in sorted(found)]

    def results(self) -> Iterator[str]:
        """Yield the first result of each cell as its line in the log, in the order of names.

        These are what two sweeps are compared by, byte for byte.
        """
        for run in self.runs():
            yield as_text("result", as_result(run))

    def _logs(self) -> list[Path]:
        return sorted(path for path, _ in self._sizes())

    def _sizes(self) -> Iterator[tuple[Path, int]]:
        """Yield the files of the log, and how long they are."""
        folder = self.folder / "log"
        with suppress(FileNotFoundError), os.scandir(folder) as found:
            for entry in found:
                if _NAMES.fullmatch(entry.name) and entry.is_file():
                    yield folder / entry.name, entry.stat().st_size

    def _lines(self, path: Path, *, brief: bool = False) -> Iterator[Line]:
        """Yield the whole lines that were added to a file; of results, if `brief`, what counts."""
        offset = self._offsets.get(path, 0)
        torn = False
        with path.open("rb") as file:
            file.seek(offset)
            for number, line in enumerate(file, 1):
                torn = not line.endswith(b"\n")
                if torn:
                    break
                self._offsets[path] = self._offsets.get(path, 0) + len(line)
                found = (glanced(line) if brief else None) or parsed(line)
                if found is None:
                    where = f"{path.name}, line {number}" + (" of the new ones" if offset else "")
                    self.ledger.damage.append(f"{where}, cannot be read, and is left out.")
                else:
                    yield found
        if torn and not _is_locked(path):
            said = f"The last line of {path.name} is torn, and left out."
            self.ledger.damage += [] if said in self.ledger.damage else [said]

    def alive(self) -> int:
        """Return the number of workers of all sweeps that are at work in the folder now."""
        self.refresh(brief=True)
        return sum(
            self.ledger.workers.get(path.name, 0) for path in self._logs() if _is_locked(path)
        )

    @contextmanager
    def writing(self, workers: int) -> Iterator["Writer"]:
        """Give a file of one's own to write to; it is locked for as long as it is written."""
        (self.folder / "log").mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(path.stem) for path in self._logs()), default=0)
        while True:
            path = self.folder / "log" / f"{number:06d}.jsonl"
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

    def forget_checkpoints(self, runs: Iterable[str]) -> None:
        """Remove the checkpoints of cells that are recorded."""
        for run in runs:
            if (self.checkpoints / run).exists():
                shutil.rmtree(self.checkpoints / run, ignore_errors=True)

    def merge(self, other: "Store") -> int:
        """Take over results that another folder has and this one has not; return their number."""
        done = self.refresh().diverged
        runs = [run for run in other.runs() if run.config.identity not in done]
        costs = other.refresh().costs
        again = [r for r in other.repeats() if r.config.identity not in self.ledger.repeated]
        lines = [("result", as_result(run)) for run in runs]
        lines += [("repeat", as_result(run)) for run in again]
        names = [run.config.identity for run in runs if run.config.identity in costs]
        timings = [Cost(run, *costs[run], 1) for run in names]
        if lines:
            with self.writing(workers=0) as writer:
                writer.write([*lines, *(("timing", asdict(cost)) for cost in timings)])
        known = self.plan() if (self.folder / "plan.jsonl").is_file() else {}
        theirs = other.plan() if (other.folder / "plan.jsonl").is_file() else {}
        plain = {**known, **theirs}
        self.ask_for({run: RunConfig.from_dict(config) for run, config in plain.items()})
        return len(runs)


class Writer:
    """One file of the log. What it has written is on the disk, or was never there."""

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
        """Append lines; what could be written in part only is taken back."""
        lines = list(lines)
        text = b"".join(as_text(kind, value).encode() + b"\n" for kind, value in lines)
        try:
            rest = memoryview(text)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(self._size)
            self._file.seek(self._size)
            files.explain(error, self._path)
            raise
        self._size += len(text)
        self._store.wrote(self._path, self._size, lines)
        if not self._path.exists():
            raise FileNotFoundError(
                f"{self._path} must stay while the sweep runs, and was deleted: what is recorded "
                "from now on would be lost."
            )


def no_sweep(folder: Path, *, lacks: str) -> FileNotFoundError:
    """Return the error of a folder that is no sweep's; it names those in it that are."""
    inside = sorted(str(path.parent) for path in folder.glob("*/plan.jsonl"))
    cure = "`weightdecay sweep STUDY --out FOLDER` makes one."
    if inside:
        cure = f"Name a sweep that is in it: {', '.join(inside)}."
    return FileNotFoundError(f"{folder} must be the folder of a sweep, and has no {lacks}. {cure}")


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        return not files.lock(file, wait=False, shared=True)
