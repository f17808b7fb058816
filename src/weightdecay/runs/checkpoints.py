"""The files of runs, which survive a kill at any moment.

    checkpoints/<run>/   the last two checkpoints of a run, and its lock
    solutions/<run>/     the weights at the end of each of its cycles

A file is written under a temporary name, synced and renamed, and begins with the hash of its
content. The last two checkpoints are kept: if the newer one is damaged, the older one is used.
Files are read by torch's loader for plain data, which never runs code.
"""

import contextlib
import hashlib
import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from weightdecay import files
from weightdecay.records import RunConfig

_MAGIC = b"weightdecay 1 sha256 "
KEPT = 2


class BusyError(RuntimeError):
    """Another process is training a run."""


@dataclass(frozen=True)
class Keep:
    """What a training leaves in its folder when it has ended.

    `solutions` are the weights at the end of each cycle, as files for `torch.load`. `checkpoints`
    hold the records of a run, so that training it again only reads them. Runs that are recorded in
    a store do not need a final checkpoint. A training that is stopped always leaves checkpoints.
    """

    solutions: bool = True
    checkpoints: bool = True


EVERYTHING = Keep()


class RunFiles:
    """The files of one configuration in a folder."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self.folder = folder / "checkpoints" / config.identity
        self._solutions = folder / "solutions" / config.identity
        self.lock = self.folder / "lock"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock this run, so that no other process trains it; the lock ends with this process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.lock.open("ab") as file:
            if not files.lock(file, wait=False):
                raise BusyError(
                    f"Run {self.folder.name} must be trained by one process at a time, but "
                    "another one is training it. Wait for it, or stop it."
                )
            for folder in (self.folder, self._solutions):
                files.sweep(folder)
            yield

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints, the newest first."""
        return sorted(self.folder.glob("checkpoint-*.pt"), reverse=True)

    def save(self, state: dict[str, Any]) -> None:
        """Save a state as the newest checkpoint, and delete all but the last two."""
        newest = self.folder / f"checkpoint-{state['updates']:012d}.pt"
        write(newest, state)
        found = self.checkpoints()
        # Checkpoints of later updates could not be read, or they would have been resumed from.
        for unneeded in [path for path in found if path > newest] + found[KEPT:]:
            unneeded.unlink(missing_ok=True)

    def keep_solution(self, cycle: int, model: dict[str, torch.Tensor]) -> None:
        """Save the weights at the end of a cycle, as a file for `torch.load`."""
        with files.written(self._solutions / f"solution-{cycle:04d}.pt") as file:
            torch.save(model, file)

    def solutions(self) -> list[Path]:
        """Return the saved solutions, the oldest first; the last is the one to use."""
        return sorted(self._solutions.glob("solution-*.pt"))


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file completely or not at all."""
    stream = io.BytesIO()
    torch.save(content, stream)
    body = stream.getvalue()
    with files.written(path) as file:
        file.write(_MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def read(path: Path) -> dict[str, Any]:
    """Read a file that `write` wrote; raise ValueError if it has changed."""
    head, _, body = path.read_bytes().partition(b"\n")
    if head != _MAGIC + hashlib.sha256(body).hexdigest().encode():
        raise ValueError(f"{path.name} is damaged: its content does not match its hash.")
    try:
        content: dict[str, Any] = torch.load(io.BytesIO(body), "cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(
            f"{path.name} must hold only tensors and plain values, but does not: it was not "
            "written by weightdecay, and is not opened."
        ) from error
    return content
