"""Keeps what a tuner has learned in a folder that `weightdecay landscape` reads, too.

    tuner.json         what the tuner was made with: another one must not continue in its folder
    log/000001.jsonl   one finished trial, as a run of a sweep

A trial that was stopped counts as diverged in the log, since a run that did not end has no error.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from weightdecay import files
from weightdecay.records import Record, Run, RunConfig
from weightdecay.records.codec import Cost, Failure
from weightdecay.sweeps.store import Store
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome

_COUPLED = {"adamw": "adam", "sgdw": "sgd"}


class Keeper:
    """A folder with the trials of one tuner."""

    def __init__(self, folder: Path | str, space: Space, *, task: str, metric: str) -> None:
        self._store, self._space = Store(folder), space
        self._task, self._metric = task, metric
        coupled = space.convention == "l2"
        self._algorithm = _COUPLED[space.algorithm] if coupled else space.algorithm
        self._check()

    def _check(self) -> None:
        path = self._store.folder / "tuner.json"
        made = {"task": self._task, "metric": self._metric}
        now = json.loads(json.dumps({**asdict(self._space), **made}))
        if not path.exists():
            self._store.folder.mkdir(parents=True, exist_ok=True)
            with files.written(path) as file:
                file.write(json.dumps(now, indent=1).encode() + b"\n")
            return
        try:
            before = json.loads(path.read_text("utf-8"))
            changed = [name for name, value in now.items() if before.get(name) != value]
        except (AttributeError, ValueError) as error:
            raise ValueError(
                f"{path} must be what a tuner wrote, but it is damaged: {error}. Its trials are "
                "safe in `log`: restore the file, or use another folder."
            ) from error
        if changed:
            raise ValueError(
                f"A tuner must continue as it began, but {', '.join(changed)} of {path} "
                f"{'is' if len(changed) == 1 else 'are'} different now. Pass the same arguments, "
                "or use another folder."
            )

    def outcomes(self) -> dict[Cell, Outcome]:
        """Return the trials that the folder has."""
        found = {}
        settings = {self._space.setting(at): at for at in range(self._space.size)}
        for run in self._store.runs():
            config = run.config
            key = config.lr, config.normalized_decay
            if config.l2 is not None:
                key = config.lr, self._normalized(config.l2, config.lr, config.epochs)
            at = _nearest(settings, key)
            if at is None or config.epochs not in self._space.ladder:
                continue
            cell = Cell(self._space.ladder.index(config.epochs), at, config.seed)
            found[cell] = _outcome(run)
        return found

    def _normalized(self, l2: float, lr: float, epochs: int) -> float:
        return l2 * lr * math.sqrt(epochs * self._space.updates_per_epoch)

    def _config(self, cell: Cell) -> RunConfig:
        lr, normalized = self._space.setting(cell.setting)
        epochs = self._space.ladder[cell.rung]
        coupled = self._space.convention == "l2"
        return RunConfig(
            task=self._task,
            model="own",
            algorithm=self._algorithm,
            lr=lr,
            normalized_decay=None if coupled else normalized,
            l2=self._space.stated(cell.setting, epochs) if coupled else None,
            epochs=epochs,
            batch=1,
            data=self._space.updates_per_epoch,
            seed=cell.seed,
        )

    def keep(self, cell: Cell, outcome: Outcome, *, seconds: float) -> None:
        """Write a finished trial; when this returns, it is on the disk."""
        config = self._config(cell)
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
            writer.failure(Failure(self._config(cell).identity, reason))

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
            test_error=value,
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


def _outcome(run: Run) -> Outcome:
    errors = [
        (one.epoch, math.inf if one.validation_error is None else one.validation_error)
        for one in run.records
    ]
    epochs, error = errors[-1]
    stopped = epochs < run.config.epochs  # where it had reported its last error
    return Outcome(error, epochs, tuple(errors if stopped else errors[:-1]))


def _nearest(
    settings: Mapping[tuple[float, float], int], key: tuple[float, float | None]
) -> int | None:
    lr, decay = key
    if decay is None:
        return None
    for (one, other), at in settings.items():
        if math.isclose(lr, one, rel_tol=1e-9) and math.isclose(decay, other, rel_tol=1e-9):
            return at
    return None
