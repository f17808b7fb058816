"""Keeps what a tuner has learned in a folder that `weightdecay landscape` reads, too.

    tuner.json         what the tuner was made with: another one must not continue in its folder
    log/000001.jsonl   one finished trial, as a run of a sweep

A trial that was stopped counts as diverged in the log, since a run that did not end has no error.
Errors are of validation examples: there is no test error, as none was told.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weightdecay import files
from weightdecay.records import Record, Run, RunConfig
from weightdecay.records.codec import Cost, Failure
from weightdecay.sweeps.store import Store
from weightdecay.tune.cells import Cells
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome

_COUPLED = {"adamw": "adam", "sgdw": "sgd"}


class Keeper:
    """A folder with the trials of one tuner, which a loop of the user's own makes."""

    def __init__(self, folder: Path | str, space: Space, *, task: str, metric: str) -> None:
        self._store, self._space, self._metric = Store(folder), space, metric
        coupled = space.convention == "l2"
        base = RunConfig(
            task=task,
            model="own",
            algorithm=_COUPLED[space.algorithm] if coupled else space.algorithm,
            lr=space.lrs[0],
            normalized_decay=None if coupled else space.decays[0],
            l2=space.decays[0] if coupled else None,
            epochs=space.epochs,
            batch=1,
            data=space.updates_per_epoch,
        )
        self._cells = Cells(space, base)
        check_same(self._store.folder, {**asdict(space), "task": task, "metric": metric})

    def outcomes(self) -> dict[Cell, Outcome]:
        """Return the trials that the folder has."""
        return self._cells.outcomes(self._store.runs())

    def keep(self, cell: Cell, outcome: Outcome, *, seconds: float) -> None:
        """Write a finished trial; when this returns, it is on the disk."""
        config = self._cells.config(cell)
        way = [(epoch, error) for epoch, error in outcome.way if epoch < outcome.epochs]
        last = (outcome.epochs, outcome.error)
        records = tuple(
            self._record(config, epoch, error, ends=epoch == outcome.epochs)
            for epoch, error in [*way, last]
        )
        cost = Cost(config.identity, seconds, outcome.epochs, 1)
        with self._store.writing(1) as writer:
            writer.results([(Run(config, records), cost)])

    def keep_failure(self, cell: Cell, reason: str) -> None:
        """Write why a trial could not be made."""
        with self._store.writing(1) as writer:
            writer.failure(Failure(self._cells.config(cell).identity, reason))

    def _record(self, config: RunConfig, epoch: int, error: float, *, ends: bool) -> Record:
        per_epoch = self._space.updates_per_epoch
        value = error if math.isfinite(error) else None
        decay = (config.normalized_decay or 0.0) / math.sqrt(config.epochs * per_epoch)
        diverged = ends and (epoch < config.epochs or value is None)
        return Record(
            run=config.identity,
            epoch=epoch,
            updates=epoch * per_epoch,
            train_loss=None,
            train_error=None,
            validation_loss=None,
            validation_error=value,
            validation_error_top5=None,
            test_loss=None,
            test_error=None,
            test_error_top5=None,
            lr=config.lr,
            decay=decay,
            weight_norm=None,
            cycle_ended=ends and epoch == config.epochs,
            budget=config.epochs * per_epoch,
            cycle_updates=config.epochs * per_epoch,
            metric=self._metric,
            diverged=diverged,
        )


def check_same(folder: Path, made: Mapping[str, Any]) -> None:
    """Write what a tuner was made with; raise if the folder is another tuner's, or a sweep's."""
    path = folder / "tuner.json"
    now = json.loads(json.dumps(made))
    if not path.exists():
        if others := [name for name in ("plan.jsonl", "log") if (folder / name).exists()]:
            raise ValueError(
                f"A tuner must have a folder of its own, but {folder} has {' and '.join(others)} "
                "and no tuner.json: it is a sweep's. Use another folder. If it was a tuner's, "
                "restore tuner.json."
            )
        folder.mkdir(parents=True, exist_ok=True)
        with files.written(path) as file:
            file.write(json.dumps(now, indent=1).encode() + b"\n")
        return
    try:
        before = json.loads(path.read_text("utf-8"))
        changed = [name for name, value in now.items() if before.get(name) != value]
    except (AttributeError, ValueError) as error:
        raise ValueError(
            f"{path} must be what a tuner wrote, but it is damaged: {error}. Its trials are safe "
            "in `log`: restore the file, or use another folder."
        ) from error
    if changed:
        raise ValueError(
            f"A tuner must continue as it began, but {', '.join(changed)} of {path} "
            f"{'is' if len(changed) == 1 else 'are'} different now. Pass the same arguments, or "
            "use another folder."
        )
