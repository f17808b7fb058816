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

# Each public name, and where it is: what type checkers are told above.
_HOME = {
    "NORMALIZED": "decay",
    "NO_DECAY": "optim",
    "SGD": "optim",
    "SGDW": "optim",
    "SGDWR": "optim",
    "TIMESCALE": "decay",
    "Adam": "optim",
    "AdamW": "optim",
    "AdamWR": "optim",
    "Budget": "decay",
    "BudgetExponents": "decay",
    "Constant": "schedules",
    "Cosine": "schedules",
    "Cycle": "schedules",
    "Examples": "tasks",
    "Normalized": "decay",
    "Record": "records",
    "Run": "records",
    "RunConfig": "records",
    "Schedule": "schedules",
    "StepDrop": "schedules",
    "Store": "sweeps",
    "Task": "tasks",
    "WarmRestarts": "schedules",
    "Warmup": "schedules",
    "convert": "decay",
    "decouple": "optim.decouple",
    "explain": "optim",
    "from_torch": "optim",
    "grid": "sweeps",
    "parameter_groups": "optim",
    "sweep": "sweeps",
    "to_torch": "optim",
    "train": "runs",
    "transfer": "decay",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'weightdecay' has no attribute {name!r}")
    return getattr(import_module(f"weightdecay.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
