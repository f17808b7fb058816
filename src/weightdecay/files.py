"""Files that are there whole or not at all, and locks that go when their holder does.

A lock is the kernel's: it holds no name, process number or time, so that none can be stale. It is
the file's, which a forked process has open too: there it is closed, or the lock would outlive us.
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
# What the system refuses without a word on what to do.
_CURES = {
    errno.ENOSPC: "free space or inodes there",
    errno.EDQUOT: "free space or inodes there, or have your quota raised",
    errno.ENOLCK: "keep the folder on a file system that has locks, such as a local disk",
}
# Open files that this process has locked, or tries to.
_locked: WeakSet[IO[bytes]] = WeakSet()


def _let_go() -> None:
    """Point the files that our parent has locked to nothing; their numbers stay in use."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in list(_locked):
        with suppress(ValueError):  # it is closed
            os.dup2(nothing, file.fileno(), inheritable=False)
    os.close(nothing)
    _locked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write, which is put in place when all has gone well, and else is gone."""
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
    """Have an error of the system name the file that it is about, and what to do where we know.

    Errors of open files name none, and those of unfinished ones a name that nobody has heard of.
    """
    if error.filename is None or str(error.filename).endswith(UNFINISHED):
        error.filename = str(path)
    if error.errno in _CURES:
        error.strerror = f"{os.strerror(error.errno)}; {_CURES[error.errno]}"


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, not only what is in its files."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def sweep(folder: Path, name: str = "") -> None:
    """Remove what a process that was killed left unfinished, of one file or of all in a folder.

    Whoever calls this holds the lock under which they are written.
    """
    for unfinished in folder.glob(f".{name}*{UNFINISHED}"):
        unfinished.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    _FARTHEST = 2**31 - 1  # as far as this system locks; what is locked cannot be read

    def lock(file: IO[bytes], *, wait: bool, shared: bool = False) -> bool:
        """Lock an open file, and return whether it is; the system lets go when we die."""
        del shared  # it has no such locks
        while True:
            at = file.tell()
            file.seek(_FARTHEST)
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:  # waiting, it gives up after ten seconds, and we do not
                if not wait:
                    return False
            else:
                return True
            finally:
                file.seek(at)

    def lock_byte(file: IO[bytes], number: int, *, held: bool) -> bool:
        """Lock a byte of an open file, or let go of it, and return whether that was possible."""
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

    # Elsewhere such locks have another form, or none.
    _OF_OPEN_FILES = platform.system() == "Linux"

    def _explained(
        asked: Callable[Concatenate[IO[bytes], _P], bool],
    ) -> Callable[Concatenate[IO[bytes], _P], bool]:
        """Have the file named whose locks the system refuses."""

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
        """Lock an open file, and return whether it is; the system lets go when we die."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        _locked.add(file)
        try:
            fcntl.flock(file, kind | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    @_explained
    def lock_byte(file: IO[bytes], number: int, *, held: bool) -> bool:
        """Lock a byte of an open file, or let go of it, and return whether that was possible.

        The byte need not exist. On Linux the lock is the open file's, elsewhere the process's.
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
        """Whether nobody has locked a byte; on Linux to ask takes nothing."""
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
