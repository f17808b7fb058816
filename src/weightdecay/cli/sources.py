"""Where runs come from: a sweep's folder, or a table that `weightdecay export` wrote."""

import textwrap
from dataclasses import dataclass
from pathlib import Path

from weightdecay.records import Run

_LONGEST = 200  # characters of a reason that names every column


@dataclass(frozen=True)
class Source:
    """Finished runs, second trainings of some, and what a person should know about them.

    `complete` is false where results were left out and a planned cell has none.
    """

    runs: list[Run]
    repeats: list[Run]
    notes: list[str]
    complete: bool = True


def read(path: Path) -> Source:
    """Read the runs of a folder or a table; a source without a finished run is an error."""
    source = _of_folder(path) if path.is_dir() else _of_table(path)
    if not source.runs:
        raise ValueError(
            f"{path} must have a finished run, and has none yet. `weightdecay status {path}` says "
            "how far its sweep is."
        )
    return source


def _of_folder(folder: Path) -> Source:
    from weightdecay.records.reading import StoreReader, no_sweep

    if not (folder / "log").is_dir():
        raise no_sweep(folder, lacks="log")
    store = StoreReader(folder)
    runs, repeats = store.runs(), store.repeats()
    planned = {run for run, _ in store.cells()}
    done = len(planned & store.ledger.diverged.keys())
    notes = list(store.ledger.left_out)
    if done < len(planned):
        notes.insert(0, f"Done so far: {done} of {len(planned)} planned cells.")
    return Source(runs, repeats, notes, store.is_complete())


def _of_table(file: Path) -> Source:
    from weightdecay.records.tables import imported

    if not file.exists():
        raise FileNotFoundError(
            f"{file} does not exist. Name a sweep's folder, or a table that `weightdecay export` "
            "wrote."
        )
    try:
        return Source(imported(file), [], [])
    except ValueError as error:
        raise ValueError(
            f"{file} must be a sweep's folder, or a table that `weightdecay export` wrote. "
            f"{textwrap.shorten(str(error), _LONGEST, placeholder=' …')}"
        ) from error
