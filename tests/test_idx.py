"""Fashion-MNIST's files, compressed or not, downloaded or from a folder."""

import gzip
import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.serving import Served, serving
from tests.small_data import in_files
from weightdecay.tasks import UnreachableError, idx
from weightdecay.tasks.cache import Stored

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (6, 28, 28), np.uint8)
LABELS = RANDOM.integers(0, 10, 6, np.uint8)


def as_idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


PLAIN = dict(
    zip(
        [stored.name for stored in idx.FASHION_MNIST.files],
        map(as_idx, (IMAGES[:4], LABELS[:4], IMAGES[4:], LABELS[4:])),
        strict=True,
    )
)
PACKED = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in PLAIN.items()}
SMALL = replace(
    idx.FASHION_MNIST,
    md5=tuple(hashlib.md5(data).hexdigest() for data in PACKED.values()),
    files=tuple(
        Stored(name, len(data), "md5", hashlib.md5(data).hexdigest())
        for name, data in PLAIN.items()
    ),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEIGHTDECAY_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache" / "fashion-mnist"


@pytest.mark.parametrize("files", [PLAIN, PACKED])
def test_a_folder_of_either_kind_becomes_plain_files(
    tmp_path: Path, folder: Path, files: dict[str, bytes]
) -> None:
    in_files(tmp_path, "", files)
    list(idx.fetch(SMALL, tmp_path))
    assert {path.name for path in folder.iterdir()} == {*PLAIN, "lock"}
    assert idx.check(SMALL) == [(name, None) for name in PLAIN]
    train, test = idx.load(SMALL)
    assert train.inputs.shape == (4, 1, 28, 28)
    assert train.targets.dtype == torch.int64
    np.testing.assert_array_equal(train.inputs[:, 0].numpy(), IMAGES[:4])
    np.testing.assert_array_equal(test.inputs[:, 0].numpy(), IMAGES[4:])
    np.testing.assert_array_equal(test.targets.numpy(), LABELS[4:])


def test_only_what_is_missing_is_downloaded(tmp_path: Path, folder: Path) -> None:
    *present, last = PLAIN
    in_files(tmp_path, "", PLAIN)
    list(idx.fetch(SMALL, tmp_path))
    (folder / last).unlink()
    with serving(Served(PACKED[f"{last}.gz"])) as served:
        progress = list(idx.fetch(replace(SMALL, url=served.url(""))))
    assert len(served.asked) == 1
    assert {step.name for step in progress} == {last, f"{last}.gz"}
    assert {path.name for path in folder.iterdir()} == {*present, last, "lock"}


def test_when_it_cannot_be_reached_the_error_says_what_to_do(folder: Path) -> None:
    with pytest.raises(UnreachableError, match=r"cannot be reached.* Debian's .*--from FOLDER`"):
        list(idx.fetch(replace(SMALL, url="http://127.0.0.1:9/")))


FIRST = next(iter(PLAIN))
DAMAGE = {
    "cut": (f"{FIRST}.gz", PACKED[f"{FIRST}.gz"][:-20], "must be a complete gzip file"),
    "altered": (f"{FIRST}.gz", gzip.compress(PLAIN[FIRST][:-1] + b"x"), "must have MD5 .*, found"),
    "endless": (f"{FIRST}.gz", gzip.compress(bytes(1 << 22)), "must have 3,152 bytes, found 3,153"),
    "no gzip": (f"{FIRST}.gz", b"<html>", "must be a complete gzip file"),
    "plain": (FIRST, PLAIN[FIRST][:-1], "must have 3,152 bytes, found 3,151"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, folder: Path, case: str) -> None:
    name, data, message = DAMAGE[case]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"{FIRST}.* {message}.*Get it again"):
        list(idx.fetch(SMALL, tmp_path))
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_a_folder_without_the_files_is_told_what_it_must_hold(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"must contain {FIRST} or {FIRST}\.gz"):
        list(idx.fetch(SMALL, tmp_path))
