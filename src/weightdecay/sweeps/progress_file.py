"""How far a sweep is between two results: a small file beside its log, for other processes to read.

A pack's cells end together, so the log may say nothing for minutes. The file counts as long as its
writer is alive, which the lock on the writer's file of the log tells. It is never needed to resume.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weightdecay import checks


@dataclass(frozen=True)
class RunningPack:
    """A pack in training: one of its cells, the epochs trained over all cells, and their cost."""

    run: str
    epochs: float
    seconds_per_epoch: float
    seconds_left: float


@dataclass(frozen=True)
class SweepProgress:
    """The packs in training, and how many run or wait; None if that is not known."""

    packs: int | None = None
    running: tuple[RunningPack, ...] = ()


#: What is known if no sweep says anything.
NO_NEWS = SweepProgress()


class ProgressFile:
    """The file of one writer. If it cannot be written, nothing is lost but the news."""

    def __init__(self, folder: Path, writer: str) -> None:
        self._folder, self._path = folder / "progress", _path(folder, writer)

    def write(self, progress: SweepProgress) -> None:
        """Replace what the file says."""
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            unfinished = self._path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(asdict(progress)), "utf-8")
            unfinished.replace(self._path)

    def remove(self) -> None:
        """Delete the file, and the folder unless other writers use it."""
        with suppress(OSError):
            for suffix in (".unfinished", ".json"):
                self._path.with_suffix(suffix).unlink(missing_ok=True)
            self._folder.rmdir()


def read_progress(folder: Path, writers: Iterable[str]) -> SweepProgress:
    """Return what the files of these writers say. Those that say nothing that we know are left out.

    Two sweeps of one folder count the same packs that wait.
    """
    found = [one for name in writers if (one := _read(_path(folder, name))) is not None]
    packs = [one.packs for one in found if one.packs is not None]
    running = tuple(pack for one in found for pack in one.running)
    return SweepProgress(max(packs, default=None), running)


def _read(path: Path) -> SweepProgress | None:
    try:
        values = json.loads(path.read_text("utf-8"))
        running = tuple(_pack(**pack) for pack in values["running"])
        return SweepProgress(checks.whole("packs", values["packs"], at_least=0), running)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _pack(run: object, **numbers: Any) -> RunningPack:
    checked = {name: checks.number(name, value, at_least=0) for name, value in numbers.items()}
    return RunningPack(checks.text("run", run), **checked)


def _path(folder: Path, writer: str) -> Path:
    return folder / "progress" / Path(writer).with_suffix(".json")
