"""Where a run is kept: a folder of its own, that survives being killed at any instant.

A file is written beside its name, synced and renamed, and opens with the hash of what follows. Of
checkpoints the last two are kept: where the newer is damaged, the older one serves. Reading goes
through torch's loader of plain data and never runs code.
"""

import contextlib
import hashlib
import io
import os
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from weightdecay.records import RunConfig

try:
    import fcntl
except ImportError:  # not on Windows: there two trainings of one run are the user's to avoid
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"weightdecay 1 sha256 "
KEPT = 2


class Shelf:
    """The folder of one configuration."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self.folder = folder / config.identity

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from training this run; the system lets go when this process dies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RuntimeError(
                        f"Run {self.folder.name} must be trained by one process at a time, and "
                        "another one holds it. Wait for that, or stop it."
                    ) from None
            for part in self.folder.glob(".*.part"):  # what a killed process left half-written
                part.unlink(missing_ok=True)
            yield

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints, the newest first."""
        return sorted(self.folder.glob("checkpoint-*.pt"), reverse=True)

    def save(self, state: dict[str, Any]) -> None:
        """Keep a state as the newest checkpoint, and forget all but the last two."""
        write(self.folder / f"checkpoint-{state['updates']:012d}.pt", state)
        for old in self.checkpoints()[KEPT:]:
            old.unlink(missing_ok=True)

    def keep_solution(self, cycle: int, model: dict[str, torch.Tensor]) -> None:
        """Keep the weights at a cycle's end."""
        write(self.folder / f"solution-{cycle:04d}.pt", model)

    def solutions(self) -> list[Path]:
        """Return the solutions kept, the oldest first; the last is the one to use."""
        return sorted(self.folder.glob("solution-*.pt"))


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file so that it is there whole, or not at all."""
    stream = io.BytesIO()
    torch.save(content, stream)
    body = stream.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name, too
        finally:
            os.close(folder)


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
