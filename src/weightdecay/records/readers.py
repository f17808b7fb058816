"""Reads finished runs from a store or a table. A store is the folder of a sweep or a single run.

A folder may be read while it is written. Incomplete, damaged and outdated lines are left out and
reported.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from weightdecay import checks
from weightdecay.records.codec import as_line, run_in, values_of
from weightdecay.records.columnar import as_result
from weightdecay.records.config import RunConfig
from weightdecay.records.ledger import Damage, Ledger, Place, outdated_results
from weightdecay.records.log import Log
from weightdecay.records.record import Run
from weightdecay.records.tables import imported


@dataclass(frozen=True)
class FinishedRuns(Sequence[Run]):
    """The finished runs of a folder or a file, sorted by name: a sequence, and as a list `runs`.

    `repeats` are runs that were trained a second time as a control; tables have none. `left_out`
    has one sentence for each thing that could not be used.
    """

    runs: list[Run]
    repeats: list[Run]
    left_out: list[str]

    def __len__(self) -> int:
        return len(self.runs)

    @overload
    def __getitem__(self, at: int) -> Run: ...

    @overload
    def __getitem__(self, at: slice) -> list[Run]: ...

    def __getitem__(self, at: int | slice) -> Run | list[Run]:
        return self.runs[at]

    def __repr__(self) -> str:
        counts = f"{len(self.runs)} runs, {len(self.repeats)} repeats"
        return f"<FinishedRuns: {counts}, {len(self.left_out)} left out>"


def read(path: Path | str) -> FinishedRuns:
    """Return the finished runs of a sweep folder, or of an exported Parquet or CSV file.

    Of any other folder, return those of all Parquet files in it and below it as one data set.
    """
    path = Path(path)
    if path.is_dir():
        reader = StoreReader(path)
        if not reader.log.folder.is_dir() and (tables := sorted(path.rglob("*.parquet"))):
            return _of_tables(tables)
        if not reader.log.folder.is_dir():
            raise not_a_sweep(path, lacks="log")
        runs, repeats = reader.runs(), reader.repeats()
        return FinishedRuns(runs, repeats, reader.ledger.left_out)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist. Give a sweep folder, or a .parquet or .csv file written by "
            "`weightdecay export`."
        )
    return _of_tables([path])


def _of_tables(paths: Sequence[Path]) -> FinishedRuns:
    """Return the runs of tables; one that came out otherwise the first time is a repeat.

    A run under another name than this version gives its configuration is outdated.
    """
    runs: dict[str, Run] = {}
    repeats, outdated = [], 0
    for run in (run for path in paths for run in imported(path)):
        if run.last.run != run.config.identity:
            outdated += 1
            continue
        first = runs.setdefault(run.config.identity, run)
        if run.records != first.records:
            repeats.append(run)
    left_out = [outdated_results(outdated)] if outdated else []
    return FinishedRuns([runs[name] for name in sorted(runs)], repeats, left_out)


class StoreReader:
    """Reads a sweep folder. Creating a reader reads nothing."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.log = Log(self.folder / "log")
        self.ledger = Ledger()
        self._plan = self.folder / "plan.jsonl"

    def plan(self) -> dict[str, dict[str, Any]]:
        """Return the configurations of the planned cells, as plain values.

        A tuner in a loop of the user's own plans nothing: its cells are the finished ones.
        """
        if not self._plan.is_file() and not (self.folder / "tuner.json").is_file():
            raise not_a_sweep(self.folder, lacks=self._plan.name)
        return dict(self.cells())

    def cells(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the planned cells one by one; without a plan, the finished ones."""
        if self._plan.is_file():
            with self._plan.open("rb") as file:
                for number, line in enumerate(file, 1):
                    yield _cell(self._plan, number, line)
        else:
            for run in self.read(self.refresh().results):
                yield run.config.identity, run.config.as_dict()

    def seconds(self) -> dict[str, float]:
        """Return how long one worker trained each cell, by the cell's name, where it is known."""
        return {run: seconds for run, (seconds, _) in self.refresh().costs.items()}

    def refresh(self) -> Ledger:
        """Read everything that any process has written since the last call."""
        for line, place, number in self.log.new_lines():
            self.ledger.take(line, place, number)
        self.ledger.torn = [
            Damage.of(line, f"The last line of {name} is incomplete and is left out.")
            for name, line in self.log.torn.items()
        ]
        return self.ledger

    def runs(self) -> list[Run]:
        """Return the finished runs, sorted by name; if a cell has several, the first counts."""
        return list(self.read(self.refresh().results))

    def repeats(self) -> list[Run]:
        """Return the runs that were trained a second time as a control, sorted by name."""
        return list(self.read(self.refresh().repeated))

    def read(self, places: Mapping[str, Place]) -> Iterator[Run]:
        """Yield the runs at these places, sorted by name."""
        with self.log.reading() as line_at:
            for run in sorted(places):
                try:
                    found = run_in(line_at(places[run]))
                    # A pack's seconds are measured together: no other pack has the same.
                    first = places[run] == self.ledger.results.get(run)
                    yield replace(found, pack=self.ledger.costs.get(run)) if first else found
                except ValueError as error:  # it has changed since it was counted
                    self.ledger.take_back(run, places[run], error)

    def is_complete(self, done: Container[str] | None = None) -> bool:
        """Whether no result is missing because it was left out: every planned cell is done.

        Without a plan, the cell of every result that was left out must be done. `done` are the
        finished cells, if they are in another store.
        """
        done = self.ledger.finished if done is None else done
        if not self._plan.is_file():
            return not self.ledger.has_lost(done)
        return not self.ledger.left_out or all(run in done for run, _ in self.cells())

    def results(self) -> Iterator[str]:
        """Yield the first result of each cell as its line in the log, sorted by name.

        Two sweeps are compared by these lines, byte for byte.
        """
        for run in self.runs():
            yield as_line({"result": as_result(run)}).decode().rstrip()

    def alive(self) -> int:
        """Return the number of workers of all sweeps that are running in the folder now."""
        workers = self.refresh().workers
        return sum(workers.get(name, 0) for name in self.writers())

    def writers(self) -> list[str]:
        """Return the files of the log that are being written now."""
        return [name for name in self.log.names() if self.log.is_locked(name)]


def not_a_sweep(folder: Path, *, lacks: str) -> FileNotFoundError:
    """Return the error for a folder that is not a sweep folder; it names sweeps inside or above."""
    inside = sorted(str(path.parent) for path in folder.glob("*/plan.jsonl"))
    cure = "`weightdecay sweep STUDY --out FOLDER` makes one."
    if folder.is_dir() and (folder.parent / "plan.jsonl").exists():
        cure = f"Its runs are in {folder.parent}."  # where `reproduce` keeps those of all figures
    if inside:
        cure = f"It contains sweep folders: {', '.join(inside)}. Name one of them."
    return FileNotFoundError(f"{folder} is not a sweep folder: it has no {lacks}. {cure}")


def _cell(path: Path, number: int, line: bytes) -> tuple[str, dict[str, Any]]:
    """Return the name and the configuration in a line of a plan."""
    try:
        values, checked = values_of(line)
        run, config = values["run"], values["config"]
        if not checked:  # a line with a checksum was complete when it was written
            RunConfig.from_dict(config)
        return checks.text("run", run), config
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = f"has no {error}" if isinstance(error, KeyError) else f"cannot be used: {error}"
        raise ValueError(
            f"{path} must have one cell per line, but line {number} {why.rstrip('.')}. No result "
            "is lost: `weightdecay sweep STUDY --out FOLDER` writes a new plan."
        ) from error
