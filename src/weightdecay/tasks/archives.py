"""Files by name out of a folder or a tar archive, of which nothing is ever extracted to disk."""

import gzip
import tarfile
import zlib
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

#: From a name to the bytes of that file, or None where there is no such file.
Read: TypeAlias = Callable[[str], bytes | None]

LARGEST = 1 << 28
_LARGEST_ARCHIVE = 1 << 30
# Members whose header may state a size, and that have no data all the same.
_WITHOUT_DATA = (
    *(tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE),
    *(tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE),
)


def in_folder(folder: Path) -> Read:
    """Return a way to read the files of a folder."""

    def read(name: str) -> bytes | None:
        path = folder / name
        if not path.is_file():
            return None
        if (size := path.stat().st_size) > LARGEST:
            raise ValueError(
                f"{path} must have at most {LARGEST:,} bytes, found {size:,}. It is not the file "
                "that this data set has under that name."
            )
        return path.read_bytes()

    return read


def in_archive(path: Path, *, folders: Collection[str], names: Collection[str]) -> Read:
    """Return a way to read those members of a tar archive that are FOLDER/NAME and plain files.

    It may be compressed by gzip. Links, devices and all other names, whatever path they point to,
    are passed over. The archive is opened when it is first asked for something.
    """

    @cache
    def members() -> dict[str, bytes]:
        try:
            return _members(path, folders, names)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise ValueError(
                f"{path} must be a whole tar archive, compressed by gzip or not at all, and cannot "
                f"be read: {error}. It is cut short or altered, and not used. Get it again from "
                "where it is published."
            ) from error

    return lambda name: members().get(name)


def _members(path: Path, folders: Collection[str], names: Collection[str]) -> dict[str, bytes]:
    # Not by tarfile.open, which reads extended headers into memory, whatever their size. All that
    # they can say of a member (long names, sizes beyond 8 GiB) makes it one that is passed over.
    found: dict[str, bytes] = {}
    end = 0
    with path.open("rb") as file, _unpacked(file) as stream:
        while (block := stream.read(tarfile.BLOCKSIZE)) or not end:
            if block == bytes(tarfile.BLOCKSIZE):
                break
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            size = 0 if member.type in _WITHOUT_DATA else member.size
            end += tarfile.BLOCKSIZE + size + -size % tarfile.BLOCKSIZE
            if size < 0 or end > _LARGEST_ARCHIVE:
                raise tarfile.ReadError(f"it unpacks to more than {_LARGEST_ARCHIVE:,} bytes")
            folder, _, name = member.name.removeprefix("./").rpartition("/")
            if member.isreg() and folder in folders and name in names and size <= LARGEST:
                found[name] = stream.read(size)
            stream.seek(end - 1)
            if not stream.read(1):
                raise tarfile.ReadError("unexpected end of data")
    return found


def _unpacked(file: BinaryIO) -> BinaryIO:
    zipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    return cast("BinaryIO", gzip.GzipFile(fileobj=file)) if zipped else file
