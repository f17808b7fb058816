"""ImageNet32x32 from a folder of the user's: ten training batches and a validation batch.

They are published as pickles and as npz, but only after a registration, so we cannot download them.
A batch is `data`, [n, 3072] bytes in planes of red, green and blue, and `labels`, 1 to 1000. The
cache stores npz files, which have a checksum for each array.
"""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from weightdecay import files
from weightdecay.tasks import cache
from weightdecay.tasks.fetch import Downloaded
from weightdecay.tasks.task import Examples
from weightdecay.tasks.unpickle import unpickle

NAME = "imagenet32"
CLASSES = 1000
TRAIN = tuple(f"train_data_batch_{number}" for number in range(1, 11))
TEST = ("val_data",)
_PIXELS = 3 * 32 * 32
_LARGEST = 1 << 30
_FROM = " --from FOLDER"


def load() -> tuple[Examples, Examples]:
    """Return the training and the test examples from the cache, verified."""
    return _examples(TRAIN), _examples(TEST)


def check() -> list[tuple[str, str | None]]:
    """Return each file in the cache with its fault; None if it has none."""
    return [(f"{name}.npz", _fault(cache.folder(NAME, f"{name}.npz"))) for name in TRAIN + TEST]


def fetch(source: Path | None = None) -> Iterator[Downloaded]:
    """Check the batches in a folder and copy them to the cache, unless they are there already."""
    if source is None:
        raise ValueError(
            "`source` must be a folder: ImageNet32x32 is available only after a registration at "
            "image-net.org. Get its batches there, as pickles or npz, and run "
            f"`weightdecay data fetch {NAME}{_FROM}`."
        )
    with cache.locked(NAME) as folder:
        for name in TRAIN + TEST:
            kept = folder / f"{name}.npz"
            if _fault(kept) is None:
                continue
            path = _find(source, name)
            size = path.stat().st_size
            yield Downloaded(name, 0, size)
            images, labels = _read(path)
            with files.written(kept) as file:
                np.savez(file, data=images, labels=labels)
            yield Downloaded(name, size, size)


def _find(source: Path, name: str) -> Path:
    for path in (source / name, source / f"{name}.npz"):
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"{source} must contain {name} or {name}.npz, and has neither. Pass the folder that does."
    )


def _read(path: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return a batch's images, [n, 3072], and its labels, 1 to 1000."""
    if (size := path.stat().st_size) > _LARGEST:
        raise ValueError(f"{path} must have at most {_LARGEST:,} bytes, found {size:,}.")
    batch = _arrays(path) if path.suffix == ".npz" else unpickle(path.read_bytes(), str(path))
    if missing := [key for key in ("data", "labels") if key not in batch]:
        raise ValueError(f"{path} must have {' and '.join(missing)}, found {', '.join(batch)}.")
    try:
        images, labels = np.asarray(batch["data"]), np.asarray(batch["labels"])
    except ValueError as error:
        raise ValueError(f"{path} must have data and labels as arrays: {error}.") from error
    if images.dtype != np.uint8 or images.ndim != 2 or images.shape[1] != _PIXELS:
        raise ValueError(
            f"{path} must have data of uint8 [n, {_PIXELS}], found {images.dtype} "
            f"{list(images.shape)}. Only the 32x32 batches fit."
        )
    if labels.dtype.kind not in "iu" or labels.shape != images.shape[:1]:
        raise ValueError(
            f"{path} must have {len(images)} whole numbers as labels, found {labels.dtype} "
            f"{list(labels.shape)}."
        )
    if len(labels) and not (labels.min() >= 1 and labels.max() <= CLASSES):
        raise ValueError(
            f"{path} must have labels from 1 to {CLASSES}, found {labels.min()} to {labels.max()}."
        )
    return images, labels.astype(np.int64)


def _arrays(path: Path) -> Mapping[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise ValueError(f"it unpacks to more than {_LARGEST:,} bytes")  # noqa: TRY301
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} must be a complete npz file of arrays, and was refused: {error}. Get it again "
            "from where it is published."
        ) from error


def _fault(path: Path) -> str | None:
    if not path.is_file():
        return "is missing"
    try:
        _read(path)
    except ValueError as error:
        return str(error)
    return None


def _examples(names: tuple[str, ...]) -> Examples:
    paths = [cache.folder(NAME, f"{name}.npz") for name in names]
    for path in paths:
        if not path.is_file():
            raise cache.missing(NAME, path, options=_FROM)
    batches = [_read(path) for path in paths]
    labels = np.concatenate([labels for _, labels in batches]) - 1
    pixels = np.concatenate([batches.pop(0)[0] for _ in paths])
    return Examples(torch.from_numpy(pixels).view(-1, 3, 32, 32), torch.from_numpy(labels))
