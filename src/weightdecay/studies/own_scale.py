"""A scale for a task that has none: the usual grids in powers of two, fitted to the task's size.

    learning rates   SGD and AdaGrad 2^-8..2^-1, Adam, AMSGrad and RMSProp 2^-12..2^-5
    decays           0, and λ_norm = λ·√N about 2^-6..2^1 for the N updates of a run
    factors of L2    0, and for SGD twice the decays; for the others 2^-12..2^-5

All grids have the same size, and grow if a best setting lies at an edge. A tenth of the training
data is held out to choose on, and each run is evaluated at its end.
"""

import json
import math
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weightdecay import checks, files
from weightdecay.records import RunConfig
from weightdecay.studies.scales import FAMILIES, Scale, values

#: The name of the scale for a task without scales of ours.
OWN = "own"
#: The file that says which scale the runs of a folder have.
FILE = "scale.json"
EPOCHS, BATCH, SEEDS, JUDGES = 16, 64, 3, 12
_RATES, _ADAPTIVE = "2^-8..2^-1", "2^-12..2^-5"


def own_scale(
    task: str,
    *,
    model: str | None = None,
    epochs: int = EPOCHS,
    batch: int | None = None,
    seeds: int = SEEDS,
) -> Scale:
    """Return a scale for any task that `weightdecay.tasks.load` knows or can import.

    The default model is the task's first. The default batch is 64, or smaller if an epoch would
    have fewer than eight updates.
    """
    from weightdecay.runs.build import check
    from weightdecay.tasks import load, split

    checks.whole("epochs", epochs, at_least=1)
    checks.whole("seeds", seeds, at_least=1)
    loaded = load(task)
    held = max(1, len(loaded.train) // 10)
    data = len(loaded.train) - held
    if data < 1:
        raise ValueError(
            f"`task` must have at least two training examples, got {len(loaded.train)} in {task}: "
            "one is held out to choose on."
        )
    if batch is None:
        batch = min(BATCH, 2 ** max(0, int(math.log2(data / 8))))
    common: dict[str, Any] = {
        "model": model or next(iter(loaded.models)),
        "batch": checks.whole("batch", batch, at_least=1),
        "data": data,
        "validation": held,
        "evaluate_every": 0,
    }
    example = RunConfig(
        task=task, algorithm="adamw", lr=0.001, weight_decay=0, epochs=epochs, **common
    )
    # A model that does not fit the data is an error here, before anything is planned.
    check([example], split(loaded, validation=held, data=data))
    highest = min(-1, 1 - round(math.log2(epochs * (data // batch)) / 2))
    lowest = highest - 7
    return Scale(
        task=task,
        name=OWN,
        common=common,
        seeds=f"0..{seeds - 1}",
        epochs=epochs,
        judges=JUDGES,
        lrs={
            **dict.fromkeys(FAMILIES, _ADAPTIVE),
            "sgd": _RATES,
            "adagrad": _RATES,
        },
        l2={
            **{family: [0, _ADAPTIVE] for family in FAMILIES},
            "sgd": [0, f"2^{lowest + 1}..2^{highest + 1}"],
        },
        decays={family: [0, f"2^{lowest}..2^{highest}"] for family in FAMILIES},
    )


def options_of(at: Scale) -> str:
    """Return the options of `weightdecay reproduce` that select a scale."""
    if at.name != OWN:
        return f"--task {at.task} --scale {at.name}"
    chosen = {
        "task": at.task,
        "model": at.common["model"],
        "epochs": at.epochs,
        "batch": at.common["batch"],
        "seeds": len(values(at.seeds)),
    }
    return " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in chosen.items())


def keep(at: Scale, folder: Path) -> None:
    """Write a scale into the folder of its runs: who reads these need not load the task."""
    with files.written(folder / FILE) as file:
        file.write(json.dumps(asdict(at), indent=1).encode())


def kept(folder: Path) -> Scale | None:
    """Return the scale that was kept in a folder; None if there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        return Scale(**json.loads(path.read_text("utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be what `weightdecay reproduce` wrote, and cannot be read: {error}. Run "
            "the same command again, which writes it anew and trains nothing twice."
        ) from error
