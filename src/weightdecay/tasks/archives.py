"""Read files by name from a folder or a tar archive, without extracting anything to disk."""

import gzip
import tarfile
import zlib
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

#: Returns the bytes of the file of that name, or None if there is no such file.
Read: TypeAlias = Callable[[str], bytes | None]

LARGEST = 1 << 28
_LARGEST_ARCHIVE = 1 << 30
# Types of members that have no data, even if their header states a size.
_WITHOUT_DATA = (
    *(tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE),
    *(tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE),
)


def in_folder(folder: Path) -> Read:
    """Return a function that reads files of a folder."""

    def read(name: str) -> bytes | None:
        path = folder / name
        if not path.is_file():
            return None
        if (size := path.stat().st_size) > LARGEST:
            raise ValueError(
                f"{path} must have at most {LARGEST:,} bytes, found {size:,}. It is not the "
                "data set's file of that name."
            )
        return path.read_bytes()

    return read


def in_archive(path: Path, *, folders: Collection[str], names: Collection[str]) -> Read:
    """Return a function that reads regular files FOLDER/NAME of a tar archive.

    The archive may be compressed by gzip. Links, devices and all other names are ignored, whatever
    path they point to. The archive is opened when the first file is read.
    """

    @cache
    def members() -> dict[str, bytes]:
        try:
            return _members(path, folders, names)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise ValueError(
                f"{path} must be a complete tar archive, plain or compressed by gzip, and cannot "
                f"be read: {error}. It is truncated or altered, and was not used. Get it again "
                "from where it is published."
            ) from error

    return lambda name: members().get(name)


def _members(path: Path, folders: Collection[str], names: Collection[str]) -> dict[str, bytes]:
    # Not by tarfile.open, which reads extended headers of any size into memory. We do not need
    # them: a member with a long name or a size beyond 8 GiB is ignored anyway.
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
