"""Decoupled weight decay, as defined by Loshchilov & Hutter (2019).

The names in `__all__` are what a training loop needs. Everything else is in these modules:

    weightdecay.decay     convert a decay from one convention or budget to another
    weightdecay.tasks     data, models and losses
    weightdecay.runs      training
    weightdecay.sweeps    grids of runs, and the folders that store them
    weightdecay.records   run configurations and their results, as plain data
    weightdecay.results   landscapes and numbers from runs
    weightdecay.figures   pictures of them
    weightdecay.tune      a learning rate and a decay for a long run, by short ones

Modules are imported on first use: `import weightdecay` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weightdecay import decay as decay
    from weightdecay import figures as figures
    from weightdecay import optim as optim
    from weightdecay import records as records
    from weightdecay import results as results
    from weightdecay import runs as runs
    from weightdecay import schedules as schedules
    from weightdecay import sweeps as sweeps
    from weightdecay import tasks as tasks
    from weightdecay import tune as tune
    from weightdecay.decay import Normalized
    from weightdecay.optim import (
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
    from weightdecay.schedules import (
        Constant,
        Cosine,
        Cycle,
        Schedule,
        StepDrop,
        WarmRestarts,
        Warmup,
    )

__version__ = "0.1.0"

# The module of each public name, as in the imports for type checkers above.
_HOME = {
    "SGD": "optim",
    "SGDW": "optim",
    "SGDWR": "optim",
    "Adam": "optim",
    "AdamW": "optim",
    "AdamWR": "optim",
    "Constant": "schedules",
    "Cosine": "schedules",
    "Cycle": "schedules",
    "Normalized": "decay",
    "Schedule": "schedules",
    "StepDrop": "schedules",
    "WarmRestarts": "schedules",
    "Warmup": "schedules",
    "decouple": "optim.decouple",
    "explain": "optim",
    "from_torch": "optim",
    "parameter_groups": "optim",
    "to_torch": "optim",
}
# The public modules.
_ROOMS = (
    "decay",
    "figures",
    "optim",
    "records",
    "results",
    "runs",
    "schedules",
    "sweeps",
    "tasks",
    "tune",
)

__all__ = [
    "SGD",
    "SGDW",
    "SGDWR",
    "Adam",
    "AdamW",
    "AdamWR",
    "Constant",
    "Cosine",
    "Cycle",
    "Normalized",
    "Schedule",
    "StepDrop",
    "WarmRestarts",
    "Warmup",
    "decouple",
    "explain",
    "from_torch",
    "parameter_groups",
    "to_torch",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"weightdecay.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'weightdecay' has no attribute {name!r}")
    return getattr(import_module(f"weightdecay.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
