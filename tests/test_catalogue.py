"""A name gives a task whose models fit its data; any other name gives an error that helps."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.small_data import TEN_FILES, in_files
from weightdecay import tasks
from weightdecay.hashing import word
from weightdecay.tasks import Examples, Task, cache, catalogue

MODELS = {
    "mnist1d": ["mlp"],
    "text": ["transformer"],
    "cifar10": ["convnet", "mlp", "shakeshake26"],
    "cifar100": ["convnet", "mlp", "shakeshake26"],
    "fashion-mnist": ["convnet", "mlp"],
    "imagenet32": ["convnet", "mlp", "shakeshake26"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEIGHTDECAY_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def random_images(name: str) -> tuple[Examples, Examples]:
    shape = (1, 28, 28) if name == "fashion-mnist" else (3, 32, 32)
    inputs = torch.randint(0, 256, (4, *shape), dtype=torch.uint8)
    examples = Examples(inputs, torch.arange(4))
    return examples, examples


@pytest.mark.parametrize("name", MODELS)
def test_every_model_of_a_task_takes_its_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random images stand for data that is not on disk."""
    entry = catalogue._ENTRIES[name]
    if entry.fetch is not None:
        stand_in = replace(entry, load=lambda: random_images(name))
        monkeypatch.setitem(catalogue._ENTRIES, name, stand_in)
    task = tasks.load(name).to(torch.get_default_device())
    assert (task.name, sorted(task.models)) == (name, MODELS[name])
    batch = task.train[:4]
    inputs = task.prepare(batch.inputs, word(torch.arange(4)))
    for build in task.models.values():
        model = build(width=8, generator=torch.Generator("cpu").manual_seed(0))
        model.generator = torch.Generator(inputs.device)  # type: ignore[assignment]
        with torch.no_grad():
            logits = model(inputs)
        assert logits.shape == (*batch.targets.shape, task.classes)


def test_the_catalogue_names_every_task() -> None:
    assert set(tasks.NAMES) == set(MODELS)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "fashion-mnist", "imagenet32"])
def test_a_data_set_that_is_not_there_tells_how_to_get_it(folder: Path, name: str) -> None:
    with pytest.raises(
        FileNotFoundError, match=f"`weightdecay data fetch {name}( --from FOLDER)?`"
    ):
        tasks.load(name)
    assert {fault for _, fault in tasks.check(name)} == {"is missing"}


@pytest.mark.parametrize("name", ["mnist1d", "text"])
def test_what_is_made_by_code_needs_nothing_fetched(folder: Path, name: str) -> None:
    assert list(tasks.fetch(name)) == []
    assert tasks.check(name) == []
    assert not folder.exists()


def test_a_name_that_is_none_is_told_the_names() -> None:
    message = "one of mnist1d, cifar10, .*, got 'cifar'. Did you mean `cifar10`?"
    with pytest.raises(ValueError, match=rf"{message}\? Or MODULE:FUNCTION"):
        tasks.load("cifar")
    with pytest.raises(ValueError, match=message):
        tasks.fetch("cifar")
    with pytest.raises(ValueError, match=message):
        tasks.check("cifar")


def test_a_folder_that_is_not_there_is_told_at_once(folder: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"`source` must be a folder .*nowhere does not exist\."
    ):
        tasks.fetch("cifar10", folder / "nowhere")


def test_an_altered_file_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    """The catalogue's own CIFAR-10 knows small files for what they are: not the authors'."""
    in_files(tmp_path, "", TEN_FILES)
    with pytest.raises(ValueError, match=r"^data_batch_1\.bin .* 30,730,000 bytes, found 12,292"):
        list(tasks.fetch("cifar10", str(tmp_path)))


OWN = """
import torch
from torch import nn
from weightdecay.tasks import Examples, Task
def make():
    examples = Examples(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))
    return Task("own", examples, examples, 2, {"linear": lambda generator: nn.Linear(2, 2)})
made = make()
def takes(something): return make()
number = 3
def wrong(): return {}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_task.py").write_text(OWN)
    (tmp_path / "own_broken.py").write_text("import own_absent")
    monkeypatch.chdir(tmp_path)
    kept = [entry for entry in sys.path if entry not in ("", str(Path.cwd()))]
    monkeypatch.setattr(sys, "path", kept)
    monkeypatch.delitem(sys.modules, "own_task", raising=False)


@pytest.mark.parametrize("name", ["own_task:make", "own_task:made"])
def test_a_task_of_ones_own_is_found_in_the_current_directory(own: None, name: str) -> None:
    task = tasks.load(name)
    assert isinstance(task, Task)
    assert task.name == "own"


WRONG: list[tuple[str, type[Exception], str]] = [
    (
        "own_nowhere:make",
        ValueError,
        "must name a module .* got 'own_nowhere:make', and .*no own_nowhere",
    ),
    ("own_task.sub:make", ValueError, r"and there is no own_task\.sub"),
    (":make", ValueError, "MODULE:NAME, got ':make'"),
    ("own_task:", ValueError, "MODULE:NAME, got 'own_task:'"),
    ("own_task:absent", ValueError, r"own_task\.py, got .*, and 'absent' is not in it"),
    ("own_task:number", TypeError, r"must be a weightdecay\.tasks\.Task, .* got a int"),
    ("own_task:wrong", TypeError, "got a dict"),
    ("own_task:takes", TypeError, "missing 1 required positional argument"),
    ("own_broken:make", ModuleNotFoundError, "No module named 'own_absent'"),
]


@pytest.mark.parametrize(("name", "kind", "message"), WRONG)
def test_a_task_of_ones_own_that_is_none_tells_why(
    own: None, name: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        tasks.load(name)


HOMES = {
    "linux": ({"XDG_CACHE_HOME": "/caches"}, "/caches/weightdecay"),
    "darwin": ({"HOME": "/home/me"}, "/home/me/Library/Caches/weightdecay"),
    "win32": ({"LOCALAPPDATA": "/local"}, "/local/weightdecay"),
}


@pytest.mark.parametrize("platform", HOMES)
def test_the_cache_is_where_the_platform_has_it(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    variables, expected = HOMES[platform]
    monkeypatch.delenv("WEIGHTDECAY_DATA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.folder() == Path(expected)
    monkeypatch.setenv("WEIGHTDECAY_DATA", "~/elsewhere")
    assert cache.folder("cifar10") == Path("~/elsewhere/cifar10").expanduser()


def test_without_any_variable_the_cache_is_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("WEIGHTDECAY_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache.folder() == Path.home() / ".cache" / "weightdecay"


def test_the_real_cifar10_has_its_classes_and_means() -> None:
    try:
        task = tasks.load("cifar10")
    except FileNotFoundError:
        pytest.skip("CIFAR-10 is not on disk: weightdecay data fetch cifar10")
    assert task.train.targets.bincount().tolist() == [5000] * 10
    assert task.test.targets.bincount().tolist() == [1000] * 10
    means = task.train.inputs.double().mean((0, 2, 3))
    assert means.tolist() == pytest.approx([125.307, 122.950, 113.865], abs=2e-3)
