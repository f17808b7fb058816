"""CIFAR comes in many forms, is kept in one, and is used only when it is right."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.small_data import (
    FORMS,
    HUNDRED,
    HUNDRED_FILES,
    TEN,
    TEN_FILES,
    in_a_folder,
    in_an_archive,
    in_files,
    rows,
)
from tests.test_unpickle import Calls
from weightdecay.tasks import cifar
from weightdecay.tasks.cifar import CifarFiles


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test."""
    monkeypatch.setenv("WEIGHTDECAY_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("put", [in_files, in_a_folder, in_an_archive])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_becomes_the_same_files(
    tmp_path: Path, folder: Path, name: str, put: Callable[..., None]
) -> None:
    layout, files, form, inner = FORMS[name]
    source = tmp_path / "source"
    source.mkdir()
    put(source, inner, form(layout, files))
    progress = list(cifar.fetch(layout, source))
    kept = folder / layout.name
    assert {path.name for path in kept.iterdir()} == {*files, "lock"}
    assert all((kept / name).read_bytes() == data for name, data in files.items())
    assert cifar.check(layout) == [(name, None) for name in files]
    assert [step.name for step in progress if step.done] == list(files)


@pytest.mark.parametrize(("layout", "files"), [(TEN, TEN_FILES), (HUNDRED, HUNDRED_FILES)])
def test_an_example_is_an_image_and_its_last_label(
    tmp_path: Path, layout: CifarFiles, files: dict[str, bytes]
) -> None:
    in_files(tmp_path, "", files)
    list(cifar.fetch(layout, tmp_path))
    labels = len(layout.labels)
    for part, stored in zip(cifar.load(layout), (layout.train, layout.test), strict=True):
        expected = np.concatenate([rows(files[s.name], labels) for s in stored])
        assert part.inputs.dtype == torch.uint8
        assert part.inputs.shape == (len(expected), 3, 32, 32)
        assert part.targets.dtype == torch.int64
        np.testing.assert_array_equal(part.targets.numpy(), expected[:, labels - 1])
        np.testing.assert_array_equal(part.inputs.flatten(1).numpy(), expected[:, labels:])


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut short": (lambda data: data[:-1], "must have 12,292 bytes, found 12,291"),
    "grown": (lambda data: data + b"x", "must have 12,292 bytes, found 12,293"),
    "altered": (lambda data: bytes([data[0] ^ 1]) + data[1:], "must have SHA1 .*, found "),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_source_is_refused_by_name_and_nothing_of_it_is_kept(
    tmp_path: Path, folder: Path, damage: str
) -> None:
    change, message = DAMAGE[damage]
    files = {**TEN_FILES, "data_batch_3.bin": change(TEN_FILES["data_batch_3.bin"])}
    in_files(tmp_path, "", files)
    with pytest.raises(ValueError, match=f"^data_batch_3.bin from .* {message}.*Get it again"):
        list(cifar.fetch(TEN, tmp_path))
    kept = {path.name for path in (folder / "cifar10").iterdir()}
    assert kept == {"data_batch_1.bin", "data_batch_2.bin", "lock"}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_damaged_in_the_cache_is_found_refused_and_replaced(
    tmp_path: Path, folder: Path, damage: str
) -> None:
    change, message = DAMAGE[damage]
    in_files(tmp_path, "", TEN_FILES)
    list(cifar.fetch(TEN, tmp_path))
    path = folder / "cifar10" / "test_batch.bin"
    path.write_bytes(change(path.read_bytes()))
    faults = dict(cifar.check(TEN))
    assert [name for name, fault in faults.items() if fault] == ["test_batch.bin"]
    with pytest.raises(ValueError, match=rf"{path} {message}.*`weightdecay data fetch cifar10`"):
        cifar.load(TEN)
    list(cifar.fetch(TEN, tmp_path))
    assert not any(fault for _, fault in cifar.check(TEN))


def test_a_missing_file_is_told_with_its_cure() -> None:
    with pytest.raises(FileNotFoundError, match=r"data_batch_1\.bin is missing\. Run `weight"):
        cifar.load(TEN)
    assert cifar.check(HUNDRED) == [("train.bin", "is missing"), ("test.bin", "is missing")]


def test_an_empty_folder_is_told_what_it_may_hold(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"must contain data_batch_1\.bin, data_batch_1 or "
    ):
        list(cifar.fetch(TEN, tmp_path))


def test_a_malicious_batch_is_refused_by_name_and_not_run(tmp_path: Path, folder: Path) -> None:
    evil = Calls(Path.touch, tmp_path / "run")
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({"data": evil, "labels": []}))
    with pytest.raises(ValueError, match=r"^data_batch_1 must .* it asks for (builtins|pathlib)\."):
        list(cifar.fetch(TEN, tmp_path))
    assert not (tmp_path / "run").exists()
    assert [path.name for path in (folder / "cifar10").iterdir()] == ["lock"]


BATCHES: dict[str, tuple[Any, str]] = {
    "no labels": ({"data": np.zeros((4, 3072), np.uint8)}, "must have labels, found data"),
    "too few labels": (
        {"data": np.zeros((4, 3072), np.uint8), "labels": [1]},
        "must have a label from 0 to 255 for each image",
    ),
    "a label of 300": (
        {"data": np.zeros((1, 3072), np.uint8), "labels": [300]},
        "must have a label from 0 to 255 for each image",
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_pickle_that_is_no_batch_is_refused_by_name(tmp_path: Path, case: str) -> None:
    batch, message = BATCHES[case]
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch))
    with pytest.raises(ValueError, match=f"^data_batch_1 {message}"):
        list(cifar.fetch(TEN, tmp_path))
