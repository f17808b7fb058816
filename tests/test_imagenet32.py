"""ImageNet32x32, from a small folder in its format."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.test_unpickle import Calls
from weightdecay.tasks import imagenet32, load

NAMES = (*imagenet32.TRAIN, *imagenet32.TEST)
RANDOM = np.random.default_rng(0)


def batch(size: int) -> dict[str, Any]:
    data = RANDOM.integers(0, 256, (size, 3072), np.uint8)
    labels = RANDOM.integers(1, 1001, size)
    return {"data": data, "labels": labels.tolist(), "mean": data.mean(0)}


BATCHES = {name: batch(2 + number % 3) for number, name in enumerate(NAMES)}
BATCHES["val_data"].pop("mean")


def as_pickle(path: Path, name: str, values: dict[str, Any]) -> None:
    (path / name).write_bytes(pickle.dumps(values))


def as_npz(path: Path, name: str, values: dict[str, Any]) -> None:
    np.savez(path / f"{name}.npz", **values)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEIGHTDECAY_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache" / "imagenet32"


@pytest.fixture(params=[as_pickle, as_npz])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    for name, values in BATCHES.items():
        request.param(path, name, values)
    return path


def test_a_folder_of_either_form_is_read(source: Path) -> None:
    progress = list(imagenet32.fetch(source))
    assert [step.name for step in progress if step.done] == list(NAMES)
    assert imagenet32.check() == [(f"{name}.npz", None) for name in NAMES]
    task = load("imagenet32")
    for part, names in ((task.train, imagenet32.TRAIN), (task.test, imagenet32.TEST)):
        pixels = np.concatenate([BATCHES[name]["data"] for name in names])
        labels = np.concatenate([BATCHES[name]["labels"] for name in names])
        assert part.inputs.dtype == torch.uint8
        np.testing.assert_array_equal(part.inputs.flatten(1).numpy(), pixels)
        np.testing.assert_array_equal(part.targets.numpy(), labels - 1)
    assert task.classes == 1000


def test_what_is_there_and_right_is_not_read_again(source: Path, folder: Path) -> None:
    list(imagenet32.fetch(source))
    damaged = folder / "train_data_batch_7.npz"
    content = bytearray(damaged.read_bytes())
    content[2000] ^= 1
    damaged.write_bytes(content)
    assert [name for name, fault in imagenet32.check() if fault] == ["train_data_batch_7.npz"]
    with pytest.raises(ValueError, match=r"train_data_batch_7\.npz must be a complete npz file"):
        load("imagenet32")
    assert {step.name for step in imagenet32.fetch(source)} == {"train_data_batch_7"}
    assert not any(fault for _, fault in imagenet32.check())


GOOD = batch(3)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "label 0": ({**GOOD, "labels": [0, 1, 2]}, "must have labels from 1 to 1000, found 0 to 2"),
    "label 1001": ({**GOOD, "labels": [1, 1001, 2]}, "labels from 1 to 1000, found 1 to 1001"),
    "few labels": ({**GOOD, "labels": [1]}, r"must have 3 whole numbers .* found int64 \[1\]"),
    "floats": ({**GOOD, "labels": [1.0, 2, 3]}, r"3 whole numbers as labels, found float64 \[3\]"),
    "16x16": (
        {**GOOD, "data": np.zeros((3, 768), np.uint8)},
        r"uint8 \[n, 3072\], found uint8 \[3,",
    ),
    "float data": ({**GOOD, "data": np.zeros((3, 3072))}, r"\[n, 3072\], found float64"),
    "no labels": ({"data": GOOD["data"]}, "must have labels, found data"),
    "ragged": ({**GOOD, "labels": [[1], [1, 2]]}, "must have data and labels as arrays"),
}
CODE = {**GOOD, "mean": Calls(Path.touch, Path("run"))}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_batch_is_refused_by_name(tmp_path: Path, folder: Path, case: str) -> None:
    values, message = BAD[case]
    as_pickle(tmp_path, NAMES[0], values)
    with pytest.raises(ValueError, match=f"^{tmp_path / NAMES[0]} .*{message}"):
        list(imagenet32.fetch(tmp_path))
    assert [path.name for path in folder.iterdir()] == ["lock"]


@pytest.mark.parametrize("put", [as_pickle, as_npz])
def test_a_batch_that_would_run_code_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[..., None]
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, NAMES[0], CODE)
    with pytest.raises(ValueError, match=f"^{tmp_path / NAMES[0]}.* was refused: .*"):
        list(imagenet32.fetch(tmp_path))
    assert not (tmp_path / "run").exists()


def test_an_npz_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    whole = io.BytesIO()
    np.savez(whole, **GOOD)
    for data in (b"", b"<html>", whole.getvalue()[:-100], pickle.dumps(CODE)):
        (tmp_path / f"{NAMES[0]}.npz").write_bytes(data)
        with pytest.raises(
            ValueError, match=f"{NAMES[0]}.npz must be a complete npz file of arrays"
        ):
            list(imagenet32.fetch(tmp_path))


def test_without_a_folder_the_error_says_where_to_get_it() -> None:
    with pytest.raises(
        ValueError, match=r"image-net.org.*`weightdecay data fetch imagenet32 --from"
    ):
        list(imagenet32.fetch())
    with pytest.raises(
        FileNotFoundError, match="`weightdecay data fetch imagenet32 --from FOLDER`"
    ):
        load("imagenet32")


def test_a_folder_that_lacks_a_batch_is_told_which(source: Path) -> None:
    for path in source.glob("train_data_batch_10*"):
        path.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"must contain train_data_batch_10 or train_data_ba"
    ):
        list(imagenet32.fetch(source))
