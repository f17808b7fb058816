"""Decoupled weight decay, as Loshchilov & Hutter (2019) mean it.

This is the one door: the public names are those in `__all__`. They are loaded when asked for, so
that `import weightdecay` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weightdecay.decay import (
        NORMALIZED,
        TIMESCALE,
        Budget,
        BudgetExponents,
        Normalized,
        convert,
        transfer,
    )
    from weightdecay.optim import (
        NO_DECAY,
        SGD,
        SGDW,
        SGDWR,
        Adam,
        AdamW,
        AdamWR,
        explain,
        from_torch,
        parameter_groups,
        to_torch,
    )
    from weightdecay.optim.decouple import decouple
    from weightdecay.records import Record, Run, RunConfig
    from weightdecay.runs import train
    from weightdecay.schedules import (
        Constant,
        Cosine,
        Cycle,
        Schedule,
        StepDrop,
        WarmRestarts,
        Warmup,
    )
    from weightdecay.sweeps import Store, grid, sweep
    from weightdecay.tasks import Examples, Task

__version__ = "0.1.0"

__all__ = [
    "NORMALIZED",
    "NO_DECAY",
    "SGD",
    "SGDW",
    "SGDWR",
    "TIMESCALE",
    "Adam",
    "AdamW",
    "AdamWR",
    "Budget",
    "BudgetExponents",
    "Constant",
    "Cosine",
    "Cycle",
    "Examples",
    "Normalized",
    "Record",
    "Run",
    "RunConfig",
    "Schedule",
    "StepDrop",
    "Store",
    "Task",
    "WarmRestarts",
    "Warmup",
    "convert",
    "decouple",
    "explain",
    "from_torch",
    "grid",
    "parameter_groups",
    "sweep",
    "to_torch",
    "train",
    "transfer",
]

_ROOMS = (
    "schedules",
    "decay",
    "records",
    "sweeps",
    "optim",
    "tasks",
    "runs",
)  # those that do not need torch come first


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _ROOMS:
            module = import_module(f"weightdecay.{room}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'weightdecay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
