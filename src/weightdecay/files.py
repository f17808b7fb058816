"""Files that are there whole or not at all, and locks that go when their holder does.

A lock is the kernel's: it holds no name, process number or time, so that none can be stale.
"""

import os
import secrets
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: The end of the name of a file that is still being written.
UNFINISHED = ".unfinished"


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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name, too
        finally:
            os.close(folder)


def sweep(folder: Path) -> None:
    """Remove what a process that was killed left unfinished. Whoever calls this holds the lock."""
    for unfinished in folder.glob(f".*{UNFINISHED}"):
        unfinished.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    def lock(file: IO[bytes], *, wait: bool) -> bool:
        """Lock an open file, and return whether it is; the system lets go when we die."""
        while True:
            file.seek(0)
            with suppress(OSError):  # waiting, it gives up after ten seconds, and we do not
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            if not wait:
                return False

    def lock_byte(file: IO[bytes], number: int, *, held: bool) -> bool:
        """Lock a byte of an open file, or let go of it, and return whether that was possible."""
        file.seek(number % 2**31)  # as far as this system locks
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK if held else msvcrt.LK_UNLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def lock(file: IO[bytes], *, wait: bool) -> bool:
        """Lock an open file, and return whether it is; the system lets go when we die."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def lock_byte(file: IO[bytes], number: int, *, held: bool) -> bool:
        """Lock a byte of an open file, or let go of it, and return whether that was possible.

        The byte need not exist. On Linux the lock is the open file's, elsewhere the process's.
        """
        kind = fcntl.F_WRLCK if held else fcntl.F_UNLCK
        request = struct.pack("hhqqi", kind, os.SEEK_SET, number, 1, 0)
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, request)
            else:
                how = fcntl.LOCK_EX | fcntl.LOCK_NB if held else fcntl.LOCK_UN
                fcntl.lockf(file, how, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        return True
