"""Files by name out of a folder or a tar archive, of which nothing is ever extracted to disk."""

import tarfile
import zlib
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import TypeAlias

#: From a name to the bytes of that file, or None where there is no such file.
Read: TypeAlias = Callable[[str], bytes | None]

LARGEST = 1 << 28
_LARGEST_ARCHIVE = 1 << 30


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

    Links, devices and all other names, whatever path they point to, are passed over. The archive is
    opened when it is first asked for something.
    """

    @cache
    def members() -> dict[str, bytes]:
        try:
            return _members(path, folders, names)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise ValueError(
                f"{path} must be a whole tar archive, and cannot be read: {error}. It is cut short "
                "or altered, and not used. Get it again from where it is published."
            ) from error

    return lambda name: members().get(name)


def _members(path: Path, folders: Collection[str], names: Collection[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            total += member.size
            if total > _LARGEST_ARCHIVE:
                raise tarfile.ReadError(f"it unpacks to more than {_LARGEST_ARCHIVE:,} bytes")
            folder, _, name = member.name.removeprefix("./").rpartition("/")
            if member.isreg() and folder in folders and name in names and member.size <= LARGEST:
                file = archive.extractfile(member)
                assert file is not None
                found[name] = file.read()
    return found
