"""Reads the folder of a tuner, of `Tuner` or of `Tuning`: the same tuner, with what it was told.

This trains nothing, changes nothing and loads no task, so that `weightdecay status`, `landscape`
and the pages can say what the tuner itself would say.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from weightdecay.records import RunConfig, Spec
from weightdecay.records.readers import StoreReader
from weightdecay.tune.cells import Cells
from weightdecay.tune.keeping import FILE
from weightdecay.tune.sweeping import ALGORITHMS
from weightdecay.tune.tuner import Tuner


def tuner_in(folder: Path) -> Tuner:
    """Return the tuner of a folder. It is an error if its file is damaged, or too old."""
    path = folder / FILE
    try:
        made = json.loads(path.read_text("utf-8"))
        return _of_sweep(folder, made) if "model" in made else _of_loop(folder, made)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise ValueError(
            f"{path} does not say what the tuner recommends: {why}. An earlier version may have "
            "written it. Start the tuner again with the same arguments, and it will."
        ) from error


def _of_loop(folder: Path, made: dict[str, Any]) -> Tuner:
    named = {name: made[name] for name in ("algorithm", "convention", "task", "metric")}
    return Tuner(**_arguments(made), **named, folder=folder)


def _of_sweep(folder: Path, made: dict[str, Any]) -> Tuner:
    algorithm, convention = ALGORITHMS[Spec.parse("algorithm", made["algorithm"]).name]
    tuner = Tuner(**_arguments(made), algorithm=algorithm, convention=convention)
    known = {field.name: made[field.name] for field in fields(RunConfig) if field.name in made}
    known["l2" if convention == "l2" else "normalized_decay"] = 0.0
    base = RunConfig(**known, epochs=tuner.space.epochs, lr=1.0)
    tuner.remember(Cells(tuner.space, base).trained(StoreReader(folder).runs()), {})
    return tuner


def _arguments(made: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of both kinds of tuners."""
    return {
        "epochs": made["ladder"][-1],
        "shortest": made["ladder"][0],
        "updates_per_epoch": made["updates_per_epoch"],
        "lr": made["lrs"],
        "normalized_decay": made["decays"],
        "spend": made["spend"],
        "guess": made["guess"],
        "validation": made["examples"],
    }
