"""Where runs are kept: a folder that survives being killed at any instant.

    checkpoints/<run>/   the last two checkpoints of a run, and its lock
    solutions/<run>/     the weights at the end of each of its cycles

A file is written beside its name, synced and renamed, and opens with the hash of what follows. Of
checkpoints the last two are kept: where the newer is damaged, the older one serves. Reading goes
through torch's loader of plain data and never runs code.
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
    """Another process trains a run."""


@dataclass(frozen=True)
class Keep:
    """What a training leaves in its folder once it has ended.

    `solutions` are the weights at the end of each cycle, as files for `torch.load`. `checkpoints`
    hold the records of a run, so that asking for it again trains nothing. Runs that are recorded
    in a store need none of their end. A training that is stopped leaves checkpoints in any case.
    """

    solutions: bool = True
    checkpoints: bool = True


EVERYTHING = Keep()


class Shelf:
    """What a folder holds of one configuration."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self.folder = folder / "checkpoints" / config.identity
        self._solutions = folder / "solutions" / config.identity
        self.lock = self.folder / "lock"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from training this run; the system lets go when this process dies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.lock.open("ab") as file:
            if not files.lock(file, wait=False):
                raise BusyError(
                    f"Run {self.folder.name} must be trained by one process at a time, and "
                    "another one holds it. Wait for that, or stop it."
                )
            for folder in (self.folder, self._solutions):
                files.sweep(folder)
            yield

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints, the newest first."""
        return sorted(self.folder.glob("checkpoint-*.pt"), reverse=True)

    def save(self, state: dict[str, Any]) -> None:
        """Keep a state as the newest checkpoint, and forget all but the last two."""
        newest = self.folder / f"checkpoint-{state['updates']:012d}.pt"
        write(newest, state)
        found = self.checkpoints()
        # What is further than this could not be read, or it would have been taken up.
        for unneeded in [path for path in found if path > newest] + found[KEPT:]:
            unneeded.unlink(missing_ok=True)

    def keep_solution(self, cycle: int, model: dict[str, torch.Tensor]) -> None:
        """Keep the weights at a cycle's end, as a file for `torch.load`."""
        with files.written(self._solutions / f"solution-{cycle:04d}.pt") as file:
            torch.save(model, file)

    def solutions(self) -> list[Path]:
        """Return the solutions kept, the oldest first; the last is the one to use."""
        return sorted(self._solutions.glob("solution-*.pt"))


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file so that it is there whole, or not at all."""
    stream = io.BytesIO()
    torch.save(content, stream)
    body = stream.getvalue()
    with files.written(path) as file:
        file.write(_MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def read(path: Path) -> dict[str, Any]:
    """Read what `write` wrote; a file that is not that, to the bit, is a ValueError."""
    head, _, body = path.read_bytes().partition(b"\n")
    if head != _MAGIC + hashlib.sha256(body).hexdigest().encode():
        raise ValueError(f"{path.name} must hold what its hash says, and does not: it is damaged.")
    try:
        content: dict[str, Any] = torch.load(io.BytesIO(body), "cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(
            f"{path.name} must hold tensors and plain values, and does not: it was not written by "
            "weightdecay, and is not opened."
        ) from error
    return content
