"""What the paper's figures are drawn with: which data, which network, how long, which grids.

The same study runs at several scales. `paper` has the paper's own sizes; `small` is for two cores.
Where the paper's source does not print an axis, the grid holds every setting that its text names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from weightdecay import checks
from weightdecay.notation import numbers

Axis: TypeAlias = str | Sequence[float | str]
FAMILIES = ("sgd", "adam", "amsgrad", "adagrad")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes for one task; grids are by family.

    epochs      of a landscape             budgets    those of landscapes that vary it
    long        of learning curves         coarse     learning rates of such landscapes
    longest     of Adam at a fixed rate    standard   its learning rates and factors of L2
    third       a learning rate, factors of L2 and normalized decays of Figure 3
    fourth      learning rates and decays that each curve of Figure 4 is chosen from, with its
                seeds in `curve_seeds`
    drawn       epochs from one point of a learning curve to the next
    second      the task that the supplement repeats figures on
    long_model  the network of long runs, where it is another
    error       which error of a record is shown
    """

    task: str
    name: str
    common: Mapping[str, Any]
    seeds: Axis
    epochs: int
    lrs: Mapping[str, Axis]
    l2: Mapping[str, Axis]
    decays: Mapping[str, Axis]
    long: int
    first_cycle: int
    longest: int
    budgets: tuple[int, ...]
    coarse: Mapping[str, Axis]
    normalized: Axis
    third: tuple[float, Axis, Axis]
    standard: tuple[Axis, Axis]
    curve_seeds: Axis
    fourth: Mapping[str, tuple[Axis, Axis]]
    drawn: int = 1
    second: str | None = None
    long_model: str | None = None
    error: str = "error"

    @property
    def folder(self) -> str:
        """Return what the folder of its records is called."""
        return f"{self.task}-{self.name}"

    @property
    def restarted(self) -> int:
        """Return when the last cycle ends that long runs have time for; each is twice as long."""
        end, cycle = 0, self.first_cycle
        while end + cycle <= self.long:
            end, cycle = end + cycle, 2 * cycle
        return end

    @property
    def model_of_long_runs(self) -> str:
        """Return the network of long runs."""
        return self.long_model or str(self.common["model"])


# Of landscapes the last epoch counts alone. On a GPU the others cost a tenth, and curves need them.
_AT_THE_END = {"evaluate_every": 0}
# Where a GPU trains, at twice the speed of float32.
_ON_A_GPU = {"batch": 128, "precision": "bfloat16"}
_MNIST1D = Scale(
    task="mnist1d",
    name="small",
    common={"model": "mlp", "batch": 64, "data": 2000, "validation": 1000, **_AT_THE_END},
    seeds="0..4",
    epochs=48,
    lrs={
        "sgd": "2^-7..2^-1",
        "adam": "2^-10..2^-4",
        "amsgrad": "2^-10..2^-4",
        "adagrad": "2^-6..2^0",
    },
    l2={
        "sgd": [0, "2^-11..2^-3"],
        "adam": [0, "2^-12..2^-3"],
        "amsgrad": [0, "2^-12..2^-3"],
        "adagrad": [0, "2^-12..2^-3"],
    },
    decays={family: [0, "2^-11..2^-4"] for family in FAMILIES},
    long=180,
    first_cycle=12,
    longest=864,
    budgets=(12, 48, 192),
    coarse={"sgd": "2^-8..2^-3", "adam": "2^-11..2^-6"},
    normalized=[0, "2^-5..2^0"],
    third=(0.001, [0, "2^-13..2^-3"], "2^-6..2^0"),
    standard=(["2^-12", "2^-10", "2^-8", "2^-6"], ["2^-8", "2^-6", "2^-4", "2^-2"]),
    curve_seeds="0..7",
    fourth={
        "adam": ("2^-11..2^-8", "2^-7..2^-4"),
        "adamw": ("2^-11..2^-8", "2^-5..2^-1"),
        "sgdw": ("2^-8..2^-5", "2^-5..2^-1"),
        "adamwr": ("2^-11..2^-8", "2^-5..2^-1"),
        "sgdwr": ("2^-8..2^-5", "2^-5..2^-1"),
    },
    drawn=3,
    second="text",
)
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
    seeds="0..2",
    epochs=48,
    lrs={
        "sgd": "2^-4..2^0",
        "adam": "2^-7..2^-3",
        "amsgrad": "2^-7..2^-3",
        "adagrad": "2^-5..2^-1",
    },
    l2={
        "sgd": [0, "2^-13..2^-7"],
        "adam": [0, "2^-14..2^-6"],
        "amsgrad": [0, "2^-14..2^-6"],
        "adagrad": [0, "2^-14..2^-8"],
    },
    decays={
        "sgd": [0, "2^-11..2^-5"],
        "adam": [0, "2^-11..2^-3"],
        "amsgrad": [0, "2^-11..2^-3"],
        "adagrad": [0, "2^-11..2^-5"],
    },
    long=180,
    first_cycle=12,
    longest=288,
    budgets=(24, 48, 96),
    coarse={"sgd": "2^-3..2^0", "adam": "2^-7..2^-4"},
    normalized=[0, "2^-6..2^0"],
    third=(0.001, [0, "2^-15..2^-5"], "2^-8..2^-2"),
    standard=(["2^-8", "2^-7", "2^-6", "2^-5"], ["2^-12", "2^-10", "2^-8", "2^-6"]),
    curve_seeds="0..3",
    fourth={
        "adam": ("2^-7..2^-4", "2^-12..2^-10"),
        "adamw": ("2^-7..2^-5", "2^-4..2^0"),
        "sgdw": ("2^-3..2^-1", "2^-6..2^-2"),
        "adamwr": ("2^-7..2^-5", "2^-5..2^-2"),
        "sgdwr": ("2^-3..2^-1", "2^-6..2^-3"),
    },
    drawn=6,
    second="mnist1d",
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
    },
    l2={f: [0, "0.001*2^-8..2^1"] for f in FAMILIES},
    decays={f: [0, "0.001*2^-8..2^1"] for f in FAMILIES},
    long=1800,
    first_cycle=100,
    longest=1800,
    budgets=(25, 100, 400),
    coarse={"sgd": "2^-8..2^-1", "adam": "0.01*2^-8..2^-1"},
    normalized=[0, "2^-8..2^0"],
    third=(0.001, [0, "0.001*2^-8..2^2"], "2^-7..2^-1"),
    standard=(
        ["0.01*2^-6", "0.01*2^-4", "0.01*2^-2", "0.01"],
        ["0.001*2^-8", "0.001*2^-6", "0.001*2^-4", "0.001*2^-2"],
    ),
    curve_seeds=[0],
    fourth={
        "adam": ([0.001], [0.000125]),
        "adamw": ([0.001], [0.025]),
        "sgdw": ([0.05], [0.025]),
        "adamwr": ([0.001], [0.025]),
        "sgdwr": ([0.05], [0.025]),
    },
    second="imagenet32",
    long_model="shakeshake26,width=96",
)
_IMAGENET32 = replace(
    _CIFAR10,
    task="imagenet32",
    budgets=(1, 4, 16),
    epochs=16,
    long=225,
    first_cycle=15,
    longest=225,
    second="cifar10",
    error="error_top5",
)
_CIFAR10_MEDIUM = replace(
    _CIFAR10,
    name="medium",
    common={"model": "shakeshake26,width=32", "validation": 5000, **_ON_A_GPU},
    seeds="0..1",
    curve_seeds="0..3",
    epochs=30,
    lrs={**_CIFAR10.lrs, "sgd": "2^-7..2^-1", "adam": "0.01*2^-6..2^0"},
    l2={family: [0, "0.001*2^-5..2^2"] for family in FAMILIES},
    decays={family: [0, "0.001*2^-5..2^2"] for family in FAMILIES},
    long=150,
    first_cycle=10,
    longest=150,
    budgets=(8, 30, 120),
    long_model=None,
    second=None,
)
_CIFAR10_SMALL = replace(
    _CIFAR10_MEDIUM,
    name="small",
    common={"model": "convnet", "validation": 5000, **_ON_A_GPU},
    seeds="0..2",
    epochs=8,
    lrs={**_CIFAR10.lrs, "sgd": "2^-8..2^-1", "adam": "0.01*2^-6..2^1"},
    # Grids of one size, so wide that no best lies at an edge.
    l2={
        **{family: [0, "0.001*2^-5..2^4"] for family in FAMILIES},
        "sgd": [0, "0.001*2^-3..2^6"],
    },
    decays={family: [0, "0.001*2^-6..2^3"] for family in FAMILIES},
    long=45,
    first_cycle=3,
    longest=72,
    budgets=(2, 8, 32),
)


def _with_more_seeds(scale: Scale) -> Scale:
    return replace(scale, name="medium", seeds="0..7", curve_seeds="0..7")


_SCALES = {
    (scale.task, scale.name): scale
    for scale in (
        *(_MNIST1D, _with_more_seeds(_MNIST1D), _TEXT, _with_more_seeds(_TEXT)),
        *(_CIFAR10_SMALL, _CIFAR10_MEDIUM, _CIFAR10, _IMAGENET32),
    )
}


def values(axis: Axis) -> list[float]:
    """Return the numbers that an axis stands for."""
    parts = [axis] if isinstance(axis, str) else axis
    return [
        value for part in parts for value in (numbers(part) if isinstance(part, str) else [part])
    ]


def scale(task: str, name: str) -> Scale:
    """Return the sizes of a task at a scale."""
    checks.one_of("task", task, tuple(dict.fromkeys(known for known, _ in _SCALES)))
    if (task, name) not in _SCALES:
        known = [other for owner, other in _SCALES if owner == task]
        raise ValueError(f"`scale` must be {' or '.join(known)} for {task}, got {name!r}.")
    return _SCALES[task, name]
