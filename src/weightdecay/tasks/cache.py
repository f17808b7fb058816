"""The cache folder of data sets, and its files, verified by length and checksum."""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weightdecay import files

VARIABLE = "WEIGHTDECAY_DATA"


def folder(*names: str) -> Path:
    """Return the cache folder, or one in it: $WEIGHTDECAY_DATA, or else the platform's default."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().joinpath(*names)
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base, "weightdecay", *names)


@dataclass(frozen=True)
class Stored:
    """A file with the length and the checksum that it must have."""

    name: str
    size: int
    algorithm: str
    checksum: str

    def fault(self, data: bytes) -> str | None:
        """Return what is wrong with the data, as expected and found; None if nothing is."""
        if len(data) != self.size:
            return f"must have {self.size:,} bytes, found {len(data):,}"
        found = hashlib.new(self.algorithm, data, usedforsecurity=False).hexdigest()
        if found != self.checksum:
            return f"must have {self.algorithm.upper()} {self.checksum}, found {found}"
        return None


def check(name: str, parts: Iterable[Stored]) -> list[tuple[str, str | None]]:
    """Return each file of a data set in the cache with its fault; None if it has none."""
    return [(stored.name, _fault(folder(name, stored.name), stored)) for stored in parts]


def is_whole(name: str, parts: Iterable[Stored]) -> bool:
    """Whether all files of a data set are in the cache and correct."""
    return not any(_fault(folder(name, stored.name), stored) for stored in parts)


def read(name: str, stored: Stored) -> bytes:
    """Return the verified bytes of one file of a data set."""
    path = folder(name, stored.name)
    if not path.is_file():
        raise missing(name, path)
    data = path.read_bytes()
    refuse(path, stored.fault(data), cure=f"Run `weightdecay data fetch {name}` to replace it.")
    return data


def missing(name: str, path: Path, *, options: str = "") -> FileNotFoundError:
    """Return the error for a file that is not in the cache."""
    return FileNotFoundError(
        f"The data set {name} must be in the cache, and {path} is missing. "
        f"Run `weightdecay data fetch {name}{options}`."
    )


def refuse(name: Path | str, fault: str | None, *, cure: str) -> None:
    """Raise an error that names the file, if it has a fault."""
    if fault is not None:
        raise ValueError(f"{name} {fault}: it is truncated or altered, and was not used. {cure}")


def place(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with files.written(path) as file:
        file.write(data)


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """Lock a data set's folder: another process waits here, and then finds the work done.

    The kernel releases the lock if its holder dies. Unfinished files of a killed holder are removed
    here.
    """
    held = folder(name)
    held.mkdir(parents=True, exist_ok=True)
    with (held / "lock").open("ab") as file:
        files.lock(file, wait=True)
        files.sweep(held)
        yield held


def _fault(path: Path, stored: Stored) -> str | None:
    return stored.fault(path.read_bytes()) if path.is_file() else "is missing"
