"""Atomic writes, and locks that are released when their holder dies.

A lock is held by the kernel: it records no name, process number or time, so it cannot be stale. It
belongs to the open file, which a forked child shares. So the child closes the file: otherwise the
lock would outlive us.
"""

import errno
import os
import platform
import secrets
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import IO, Concatenate, ParamSpec
from weakref import WeakSet

#: The end of the name of a file that is still being written.
UNFINISHED = ".unfinished"
_P = ParamSpec("_P")
# What to do about errors of the operating system that do not say.
_CURES = {
    errno.ENOSPC: "free space or inodes there",
    errno.EDQUOT: "free space or inodes there, or ask for a larger quota",
    errno.ENOLCK: "keep the folder on a file system that supports locks, such as a local disk",
}
# Open files that this process has locked, or is trying to lock.
_locked: WeakSet[IO[bytes]] = WeakSet()


def _release_in_child() -> None:
    """Redirect the files that our parent has locked to /dev/null; their descriptors stay valid."""
    null = os.open(os.devnull, os.O_RDWR)
    for file in list(_locked):
        with suppress(ValueError):  # the file is closed
            os.dup2(null, file.fileno(), inheritable=False)
    os.close(null)
    _locked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file for writing, and rename it to `path` on success. Removed on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            explain(error, path)
        raise
    sync_folder(path.parent)


def explain(error: OSError, path: Path) -> None:
    """Add the name of the file to an error of the operating system, and what to do if we know.

    Errors of open files have no name, and those of unfinished files have a temporary one.
    """
    if error.filename is None or str(error.filename).endswith(UNFINISHED):
        error.filename = str(path)
    if error.errno in _CURES:
        error.strerror = f"{os.strerror(error.errno)}; {_CURES[error.errno]}"


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to the disk, not only the contents of its files."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def sweep(folder: Path, name: str = "") -> None:
    """Remove unfinished files left by a killed process: those of file `name`, or of all files.

    The caller must hold the lock under which they are written.
    """
    for unfinished in folder.glob(f".{name}*{UNFINISHED}"):
        unfinished.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    _FARTHEST = 2**31 - 1  # the last byte Windows can lock; a locked byte cannot be read

    def lock(file: IO[bytes], *, wait: bool, shared: bool = False) -> bool:
        """Lock an open file, and return whether that worked. The lock is released when we die."""
        del shared  # not supported on Windows
        while True:
            at = file.tell()
            file.seek(_FARTHEST)
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:  # LK_LOCK gives up after ten seconds; we keep waiting
                if not wait:
                    return False
            else:
                return True
            finally:
                file.seek(at)

    def lock_byte(file: IO[bytes], number: int, *, held: bool) -> bool:
        """Lock or release a byte of an open file, and return whether that worked."""
        file.seek(number % _FARTHEST)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK if held else msvcrt.LK_UNLCK, 1)
        except OSError:
            return False
        return True

    def is_byte_free(file: IO[bytes], number: int) -> bool:
        """Whether nobody has locked a byte."""
        free = lock_byte(file, number, held=True)
        return free and lock_byte(file, number, held=False)

else:
    import fcntl

    # Other systems have no locks of open files, or another form of them.
    _OF_OPEN_FILES = platform.system() == "Linux"

    def _explained(
        asked: Callable[Concatenate[IO[bytes], _P], bool],
    ) -> Callable[Concatenate[IO[bytes], _P], bool]:
        """Add the name of the file to errors of its locks."""

        @wraps(asked)
        def ask(file: IO[bytes], /, *values: _P.args, **options: _P.kwargs) -> bool:
            try:
                return asked(file, *values, **options)
            except OSError as error:
                explain(error, Path(file.name))
                raise

        return ask

    @_explained
    def lock(file: IO[bytes], *, wait: bool, shared: bool = False) -> bool:
        """Lock an open file, and return whether that worked. The lock is released when we die."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        _locked.add(file)
        try:
            fcntl.flock(file, kind | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    @_explained
    def lock_byte(file: IO[bytes], number: int, *, held: bool) -> bool:
        """Lock or release a byte of an open file, and return whether that worked.

        The byte need not exist. On Linux the lock belongs to the open file, elsewhere to the
        process.
        """
        _locked.add(file)
        try:
            if _OF_OPEN_FILES:
                kind = fcntl.F_WRLCK if held else fcntl.F_UNLCK
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _request(kind, number))
            else:
                how = fcntl.LOCK_EX | fcntl.LOCK_NB if held else fcntl.LOCK_UN
                fcntl.lockf(file, how, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        return True

    @_explained
    def is_byte_free(file: IO[bytes], number: int) -> bool:
        """Whether nobody has locked a byte. On Linux, asking takes no lock."""
        if _OF_OPEN_FILES:
            answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _request(fcntl.F_WRLCK, number))
            return bool(struct.unpack_from("h", answer)[0] == fcntl.F_UNLCK)
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        fcntl.lockf(file, fcntl.LOCK_UN, 1, number)
        return True

    def _request(kind: int, number: int) -> bytes:
        return struct.pack("hhqqi4x", kind, os.SEEK_SET, number, 1, 0)
