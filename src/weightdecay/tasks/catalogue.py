"""The tasks by name, and the data sets behind them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from weightdecay import checks, references
from weightdecay.tasks import cifar, idx, imagenet32, images, mnist1d, text
from weightdecay.tasks.fetch import Downloaded
from weightdecay.tasks.models import MLP, ConvNet, ShakeShake26, Transformer
from weightdecay.tasks.task import Builder, Examples, Prepare, Source, Task, as_float

_Parts = tuple[Examples, Examples]


@dataclass(frozen=True)
class _Entry:
    """A task of ours: its data, and what else it is made of.

    A data set that is made by code is never fetched and has no files to check.
    """

    load: Callable[[], _Parts]
    classes: int
    models: dict[str, Builder]
    prepare: Prepare = as_float
    fetch: Callable[[Path | None], Iterator[Downloaded]] | None = None
    check: Callable[[], list[tuple[str, str | None]]] = list


def _image_models(classes: int, *, channels: int = 3, pixels: int = 32 * 32) -> dict[str, Builder]:
    models: dict[str, Builder] = {
        "convnet": partial(ConvNet, classes, channels=channels),
        "mlp": partial(MLP, channels * pixels, classes),
    }
    if channels == 3:
        models["shakeshake26"] = partial(ShakeShake26, classes=classes)
    return models


def _cifar(layout: cifar.CifarFiles, classes: int, prepare: Prepare) -> _Entry:
    return _Entry(
        load=partial(cifar.load, layout),
        classes=classes,
        models=_image_models(classes),
        prepare=prepare,
        fetch=partial(cifar.fetch, layout),
        check=partial(cifar.check, layout),
    )


_ENTRIES = {
    "mnist1d": _Entry(
        load=mnist1d.load,
        classes=mnist1d.CLASSES,
        models={"mlp": partial(MLP, mnist1d.LENGTH, mnist1d.CLASSES)},
    ),
    "cifar10": _cifar(cifar.CIFAR10, 10, images.CIFAR10),
    "cifar100": _cifar(cifar.CIFAR100, 100, images.CIFAR100),
    "fashion-mnist": _Entry(
        load=partial(idx.load, idx.FASHION_MNIST),
        classes=10,
        models=_image_models(10, channels=1, pixels=28 * 28),
        prepare=images.FASHION_MNIST,
        fetch=partial(idx.fetch, idx.FASHION_MNIST),
        check=partial(idx.check, idx.FASHION_MNIST),
    ),
    "imagenet32": _Entry(
        load=imagenet32.load,
        classes=imagenet32.CLASSES,
        models=_image_models(imagenet32.CLASSES),
        prepare=images.IMAGENET32,
        fetch=imagenet32.fetch,
        check=imagenet32.check,
    ),
    "text": _Entry(
        load=text.load,
        classes=len(text.ALPHABET),
        models={"transformer": partial(Transformer, len(text.ALPHABET), length=text.LENGTH)},
        prepare=text.prepare,
    ),
}
NAMES = tuple(_ENTRIES)


def load(name: str) -> Task:
    """Return the task of that name, or what MODULE:FUNCTION returns, for a task of one's own.

    The module is found as `python -m` would find it, in the current directory too.
    """
    if ":" in name:
        return _own(name)
    entry = _entry(name, cure="Or MODULE:FUNCTION, for a task of your own.")
    train, test = entry.load()
    return Task(name, train, test, entry.classes, entry.models, entry.prepare)


def given(name: str, task: Source | None) -> Task:
    """Return the task that is handed over under a name, or else what the name stands for."""
    if task is None:
        return load(name)
    found = _made("`task`", task)
    if name in NAMES and found.name != name:
        raise ValueError(
            f"A configuration with a task of your own must not name it {name}, as the built-in "
            "one. Choose another name for it."
        )
    return found


def fetch(name: str, source: str | Path | None = None) -> Iterator[Downloaded]:
    """Bring a data set into the cache, from a folder or from where it is published.

    What is there and right stays. The work is done as the progress is asked for.
    """
    entry = _entry(name)
    if entry.fetch is None:
        return iter(())
    folder = None if source is None else Path(source).expanduser()
    if folder is not None and not folder.exists():
        raise FileNotFoundError(
            f"`source` must be a folder or an archive, and {folder} is not there. Name one that is."
        )
    return entry.fetch(folder)


def check(name: str) -> list[tuple[str, str | None]]:
    """Return each file of a data set in the cache with what is wrong with it; None is nothing."""
    return _entry(name).check()


def _entry(name: str, *, cure: str = "") -> _Entry:
    if name not in _ENTRIES:
        near = checks.did_you_mean(name, NAMES)
        said = f"A task must be one of {', '.join(NAMES)}, got {name!r}."
        raise ValueError(" ".join(filter(None, (said, near, cure))))
    return _ENTRIES[name]


def _own(name: str) -> Task:
    return _made(repr(name), references.imported("task", name))


def _made(name: str, source: object) -> Task:
    task = source() if callable(source) else source
    if not isinstance(task, Task):
        raise TypeError(
            f"{name} must be a weightdecay.tasks.Task, or a function that returns one when it is "
            f"called without arguments, got a {type(task).__name__}."
        )
    return task
