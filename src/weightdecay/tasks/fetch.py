"""Downloads that resume after an interruption, and are used only if their checksum is right.

An unfinished download is `NAME.part`, next to its final place. Nothing is printed: a download
yields its progress.
"""

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 18
_SECONDS = 30
_PARTIAL = 206
_NO_SUCH_RANGE = 416


@dataclass(frozen=True)
class Downloaded:
    """How many bytes of a file are done, and the total if it is known."""

    name: str
    done: int
    total: int | None = None


class UnreachableError(OSError):
    """A source cannot be reached, or the connection broke."""


def download(url: str, path: Path, *, md5: str, largest: int) -> Iterator[Downloaded]:
    """Download a file, resuming an earlier download of it.

    A file longer than `largest` is refused during the download. The caller must hold the folder's
    lock.
    """
    if path.is_file() and _md5(path) == md5:
        return
    part = path.with_name(f"{path.name}.part")
    reached = _size(part)
    while True:
        try:
            yield from _receive(url, part, path.name, largest)
            break
        except (OSError, http.client.HTTPException) as error:
            # A broken connection is retried as long as each try gets more bytes.
            if _size(part) <= reached:
                raise UnreachableError(
                    f"{url} cannot be reached: {error}. Run the same command again: it resumes "
                    f"after the {_size(part):,} bytes that were received."
                ) from error
            reached = _size(part)
    if (found := _md5(part)) != md5:
        part.unlink()
        raise ValueError(
            f"{path.name} must have MD5 {md5}, found {found}: {url} sent something else, which "
            "was discarded. Run the same command again."
        )
    part.replace(path)


def _receive(url: str, part: Path, name: str, largest: int) -> Iterator[Downloaded]:
    done = _size(part)
    request = urllib.request.Request(url)  # noqa: S310 - all addresses are constants of this package
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        response = urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310 - the same
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _NO_SUCH_RANGE and done:
            part.unlink()
            yield from _receive(url, part, name, largest)
            return
        raise
    with response:
        resumes = response.status == _PARTIAL and _starts_at(response, done)
        if not resumes:
            done = 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.open("ab" if resumes else "wb") as file:
            yield Downloaded(name, done, total)
            while chunk := response.read(_CHUNK):
                done += len(chunk)
                if done > largest:
                    break
                file.write(chunk)
                yield Downloaded(name, done, total)
    if done > largest:
        part.unlink()
        raise ValueError(
            f"{name} must have at most {largest:,} bytes, and {url} sent more. Nothing was kept."
        )
    if total is not None and done < total:
        raise ConnectionError(f"the connection broke after {done:,} of {total:,} bytes")


def _starts_at(response: http.client.HTTPResponse, done: int) -> bool:
    sent = response.headers.get("Content-Range", "")
    if not sent.startswith(f"bytes {done}-"):
        raise ConnectionError(f"it was asked for bytes from {done} on, but sent {sent!r}")
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
