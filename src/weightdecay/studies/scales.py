"""What all studies share at a scale: data, network, epochs and grids.

The same study runs at several scales. `paper` has the paper's own sizes; `small` is for two cores.
If the paper's source does not print an axis, the grid contains every setting that its text names.
What only one study needs is declared beside that study.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from weightdecay import checks
from weightdecay.notation import numbers

Axis: TypeAlias = str | Sequence[float | str]
_Own = TypeVar("_Own")
FAMILIES = ("sgd", "adam", "amsgrad", "adagrad", "rmsprop")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes for one task, shared by all studies.

    common    settings of every run             epochs   of a landscape's runs
    lrs       learning rates, by family         l2       factors of L2, by family
    decays    raw decays, by family             error    the error of a record to show
    second    the task on which the supplement repeats figures
    like      the task whose entries in the studies' tables it uses, if it has none of its own
    judges    seeds of a second stage, which judge what the others chose; 0 for none
    carriers  seeds that measure what it costs to carry a decay
    """

    task: str
    name: str
    common: Mapping[str, Any]
    seeds: Axis
    epochs: int
    lrs: Mapping[str, Axis]
    l2: Mapping[str, Axis]
    decays: Mapping[str, Axis]
    second: str | None = None
    like: str | None = None
    error: str = "error"
    judges: int = 0
    carriers: int = 0

    def __post_init__(self) -> None:
        if self.judges and self.error != "error":
            raise ValueError(
                f"`judges` must be 0 for a scale of {self.error}, got {self.judges}: seeds of a "
                "second stage judge by the top-1 error."
            )

    @property
    def folder(self) -> str:
        """Return the name of the folder that holds its records."""
        return f"{self.task.replace(':', '.')}-{self.name}"

    def among(self, table: Mapping[str, _Own]) -> _Own | None:
        """Return a table's entry for this task and scale, or else for the task, if any.

        If there is none, the entry for the task that this one is like.
        """
        names = [self.folder, self.task]
        if self.like is not None:
            names += [f"{self.like}-{self.name}", self.like]
        return next((table[name] for name in names if name in table), None)


# Landscapes need the last epoch only. On a GPU the others cost a tenth, and curves need them.
_AT_THE_END = {"evaluate_every": 0}
# On a GPU, bfloat16 is twice as fast as float32.
_ON_A_GPU = {"batch": 128, "precision": "bfloat16"}


def _powers(*exponents: float) -> tuple[float, ...]:
    """Return powers of two, in half steps where ridges are."""
    return tuple(2.0**exponent for exponent in exponents)


# Methods that are compared have grids of equal size, so wide that no best setting lies at an edge.
_MNIST1D_L2 = (0, "2^-10..2^-3")
_MNIST1D_DECAYS = (0, *_powers(-10, -9, -8.5, -8, -7.5, -7, -6.5, -6))
_MNIST1D = Scale(
    task="mnist1d",
    name="small",
    common={"model": "mlp", "batch": 64, "data": 2000, "validation": 1000, **_AT_THE_END},
    seeds="0..1",
    epochs=48,
    lrs={
        "sgd": "2^-8..2^-3",
        "adam": "2^-11..2^-6",
        "amsgrad": "2^-11..2^-6",
        "adagrad": "2^-6..2^-1",
        "rmsprop": "2^-10..2^-5",
    },
    l2=dict.fromkeys(FAMILIES, _MNIST1D_L2),
    decays=dict.fromkeys(FAMILIES, _MNIST1D_DECAYS),
    second="text",
    judges=24,
    carriers=4,
)
_TEXT_L2 = (0, *_powers(-13, -12, -11, -10.5, -10, -9.5, -9, -8))
_TEXT_DECAYS = (0, *_powers(-9, -8, -7.5, -7, -6.5, -6, -5, -4))
_TEXT = Scale(
    task="text",
    name="small",
    common={
        "model": "transformer,width=32,depth=2,dropout=0",
        "batch": 16,
        "data": 128,
        "validation": 256,
        **_AT_THE_END,
    },
    seeds="0..1",
    epochs=48,
    lrs={
        "sgd": "2^-4..2^0",
        "adam": "2^-7..2^-3",
        "amsgrad": "2^-7..2^-3",
        "adagrad": "2^-6..2^-2",
        "rmsprop": "2^-10..2^-6",
    },
    l2=dict.fromkeys(FAMILIES, _TEXT_L2),
    decays={
        **dict.fromkeys(FAMILIES, _TEXT_DECAYS),
        "sgd": (0, *_powers(-11, -10, -9.5, -9, -8.5, -8, -7.5, -7)),
        "adagrad": (0, *_powers(-11, -10, -9, -8, -7.5, -7, -6, -5)),
    },
    judges=10,
    carriers=3,
)
# More seeds at each stage: two seeds have one difference, three times as wide an interval of s as
# six, and often leave open where a ridge is. Steps are half as large where errors rise steeply.
_MNIST1D_MEDIUM = replace(
    _MNIST1D,
    name="medium",
    seeds="0..5",
    l2=dict.fromkeys(FAMILIES, (0, *_powers(-10, -9, -8, -7, -6, -5.5, -5, -4.5, -4, -3))),
    decays=dict.fromkeys(FAMILIES, (0, *_powers(-11, -10, -9, -8.5, -8, -7.5, -7, -6.5, -6, -5))),
    carriers=8,
)
_TEXT_MEDIUM = replace(
    _TEXT,
    name="medium",
    seeds="0..5",
    lrs={
        "sgd": _powers(-3, -2.5, -2, -1.5, -1, -0.5),  # it diverges at 1
        "adam": "2^-8..2^-3",
        "amsgrad": "2^-8..2^-3",
        "adagrad": "2^-6..2^-1",
        "rmsprop": "2^-10..2^-5",
    },
    decays={**_TEXT.decays, "rmsprop": (0, *_powers(-11, -10, -9, -8.5, -8, -7.5, -7, -6))},
    judges=24,
    carriers=8,
)
_CIFAR10 = Scale(
    task="cifar10",
    name="paper",
    common={"model": "shakeshake26,width=64", "validation": "test", **_ON_A_GPU},
    seeds=[0],
    epochs=100,
    lrs={
        "sgd": "2^-10..2^-1",
        "adam": "0.01*2^-10..2^-1",
        "amsgrad": "0.01*2^-10..2^-1",
        "adagrad": "0.1*2^-10..2^-1",
        "rmsprop": "0.01*2^-10..2^-1",
    },
    l2={f: [0, "0.001*2^-8..2^1"] for f in FAMILIES},
    decays={f: [0, "0.001*2^-8..2^1"] for f in FAMILIES},
    second="imagenet32",
)
_IMAGENET32 = replace(
    _CIFAR10,
    task="imagenet32",
    epochs=16,
    second="cifar10",
    error="error_top5",
)
_CIFAR10_MEDIUM = replace(
    _CIFAR10,
    name="medium",
    common={"model": "shakeshake26,width=32", "validation": 5000, **_ON_A_GPU},
    seeds="0..1",
    epochs=30,
    lrs={**_CIFAR10.lrs, "sgd": "2^-7..2^-1", "adam": "0.01*2^-6..2^0"},
    l2={family: [0, "0.001*2^-5..2^2"] for family in FAMILIES},
    decays={family: [0, "0.001*2^-5..2^2"] for family in FAMILIES},
    second=None,
)
_CIFAR10_SMALL = replace(
    _CIFAR10_MEDIUM,
    name="small",
    common={"model": "convnet", "validation": 5000, **_ON_A_GPU},
    seeds="0..2",
    epochs=8,
    lrs={**_CIFAR10.lrs, "sgd": "2^-8..2^-1", "adam": "0.01*2^-6..2^1"},
    # Grids of equal size, so wide that no best setting lies at an edge.
    l2={
        **{family: [0, "0.001*2^-5..2^4"] for family in FAMILIES},
        "sgd": [0, "0.001*2^-3..2^6"],
    },
    decays={family: [0, "0.001*2^-6..2^3"] for family in FAMILIES},
    judges=24,
    carriers=8,
)
_CIFAR100 = replace(_CIFAR10_SMALL, task="cifar100", like="cifar10")
_FASHION_MNIST = replace(_CIFAR10_SMALL, task="fashion-mnist", like="cifar10")


_SCALES = {
    (scale.task, scale.name): scale
    for scale in (
        *(_MNIST1D, _MNIST1D_MEDIUM),
        *(_TEXT, _TEXT_MEDIUM),
        *(_CIFAR10_SMALL, _CIFAR10_MEDIUM, _CIFAR10, _IMAGENET32),
        *(_CIFAR100, _FASHION_MNIST),
    )
}


def values(axis: Axis) -> list[float]:
    """Return the numbers that an axis stands for."""
    parts = [axis] if isinstance(axis, str) else axis
    return [
        value for part in parts for value in (numbers(part) if isinstance(part, str) else [part])
    ]


def tasks() -> tuple[str, ...]:
    """Return the tasks that have scales."""
    return tuple(dict.fromkeys(task for task, _ in _SCALES))


def scale(task: str, name: str) -> Scale:
    """Return the sizes of a task at a scale."""
    checks.one_of("task", task, tasks())
    if (task, name) not in _SCALES:
        known = [other for owner, other in _SCALES if owner == task]
        raise ValueError(f"`scale` must be {' or '.join(known)} for {task}, got {name!r}.")
    return _SCALES[task, name]
