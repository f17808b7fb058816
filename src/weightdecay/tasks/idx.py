"""Fashion-MNIST, stored as uncompressed IDX files: a header of big-endian numbers, then bytes."""

import gzip
import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weightdecay.tasks import cache
from weightdecay.tasks.archives import LARGEST, in_folder
from weightdecay.tasks.cache import Stored
from weightdecay.tasks.fetch import Downloaded, UnreachableError, download
from weightdecay.tasks.task import Examples

_BYTES = 8  # the third byte of an IDX file that holds bytes
_AGAIN = "Get it again from where it is published."


@dataclass(frozen=True)
class IdxFiles:
    """The source and the files of a data set: training images and labels, test images and labels.

    The files are published compressed at `url`, with checksums `md5`. `files` are the uncompressed
    ones.
    """

    name: str
    url: str
    md5: tuple[str, ...]
    files: tuple[Stored, ...]


FASHION_MNIST = IdxFiles(
    name="fashion-mnist",
    url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    md5=(
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    files=(
        Stored("train-images-idx3-ubyte", 47_040_016, "md5", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        Stored("train-labels-idx1-ubyte", 60_008, "md5", "9018921c3c673c538a1fc5bad174d6f9"),
        Stored("t10k-images-idx3-ubyte", 7_840_016, "md5", "8181f5470baa50b63fa0f6fddb340f0a"),
        Stored("t10k-labels-idx1-ubyte", 10_008, "md5", "15d484375f8d13e6eb1aabb0c3f46965"),
    ),
)


def load(layout: IdxFiles) -> tuple[Examples, Examples]:
    """Return the training and the test examples from the cache, verified."""
    train, train_labels, test, test_labels = (
        _tensor(cache.read(layout.name, stored), stored.name) for stored in layout.files
    )
    return (
        Examples(train.unsqueeze(1), train_labels.long()),
        Examples(test.unsqueeze(1), test_labels.long()),
    )


def check(layout: IdxFiles) -> list[tuple[str, str | None]]:
    """Return each file in the cache with its fault; None if it has none."""
    return cache.check(layout.name, layout.files)


def fetch(layout: IdxFiles, source: Path | None = None) -> Iterator[Downloaded]:
    """Fetch the data set into the cache, unless it is there and correct.

    `source` is a folder with the files, compressed or not. Without it, they are downloaded.
    """
    with cache.locked(layout.name) as folder:
        for stored, md5 in zip(layout.files, layout.md5, strict=True):
            if cache.is_whole(layout.name, [stored]):
                continue
            if source is None:
                yield from _download(layout, stored, md5, folder)
            else:
                yield Downloaded(stored.name, 0, stored.size)
            data = _plain(source or folder, stored)
            cache.refuse(
                f"{stored.name} from {source or layout.url}", stored.fault(data), cure=_AGAIN
            )
            cache.place(folder / stored.name, data)
            for unneeded in folder.glob(f"{stored.name}.gz*"):  # the download, or a part of it
                unneeded.unlink()
            yield Downloaded(stored.name, stored.size, stored.size)


def _download(layout: IdxFiles, stored: Stored, md5: str, folder: Path) -> Iterator[Downloaded]:
    name = f"{stored.name}.gz"
    try:
        yield from download(layout.url + name, folder / name, md5=md5, largest=LARGEST)
    except UnreachableError as error:
        raise UnreachableError(
            f"{error} Or get {name} elsewhere, for example from Debian's package "
            f"dataset-fashion-mnist, and run `weightdecay data fetch {layout.name} --from FOLDER`, "
            "with the folder it is in."
        ) from error


def _plain(folder: Path, stored: Stored) -> bytes:
    read = in_folder(folder)
    if (compressed := read(f"{stored.name}.gz")) is not None:
        try:
            with gzip.open(io.BytesIO(compressed)) as file:
                return file.read(stored.size + 1)  # one byte more is enough to see that it is wrong
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(
                f"{folder / stored.name}.gz must be a complete gzip file, and cannot be read: "
                f"{error}. {_AGAIN}"
            ) from error
    if (plain := read(stored.name)) is not None:
        return plain
    raise FileNotFoundError(
        f"{folder} must contain {stored.name} or {stored.name}.gz, and has neither. Pass the "
        "folder that does."
    )


def _tensor(data: bytes, name: str) -> Tensor:
    """Read an IDX file of bytes."""
    kind, rank = struct.unpack(">HBB", data[:4])[1:]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    if kind != _BYTES:
        raise ValueError(f"{name} must be an IDX file of bytes, of kind {_BYTES}, found {kind}.")
    return torch.from_numpy(
        np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape).copy()
    )
