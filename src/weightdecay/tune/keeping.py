"""Keeps what a tuner has learned in a folder that `weightdecay landscape` reads, too.

    tuner.json         what the tuner was made with: another one must not continue in its folder,
                       but with another spend, error of guessing or number of validation examples
    tuner.lock         locked by the process that asks for trials
    log/000001.jsonl   one finished trial, as a run of a sweep

A trial that was stopped counts as diverged in the log, since a run that did not end has no error.
Errors are of validation examples: there is no test error, as none was told.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary, finalize

from weightdecay import files
from weightdecay.records import Record, Run, RunConfig
from weightdecay.records.codec import Cost, Failure
from weightdecay.sweeps.store import Store
from weightdecay.tune.cells import Cells
from weightdecay.tune.space import Space, ladder
from weightdecay.tune.trial import Cell, Outcome

#: What a tuner was made with.
FILE = "tuner.json"
_COUPLED = {"adamw": "adam", "sgdw": "sgd"}
# The arguments from which the axes of a space come.
_AXES = {"lrs": "lr", "decays": "normalized_decay"}


class _Claim:
    """The lock of a folder, which all tuners of this process share; it ends with the last."""

    def __init__(self, path: Path) -> None:
        file = path.open("ab")
        finalize(self, file.close)
        if not files.lock(file, wait=False):
            raise RuntimeError(
                f"Another process asks for trials in {path.parent}, and would make the same ones. "
                "Let one process ask, and give several trials to its workers; or wait until the "
                "other has ended, or use another folder."
            )


# By process: a forked one inherits the dictionary, but not the locks.
_claims: WeakValueDictionary[tuple[int, Path], _Claim] = WeakValueDictionary()


class Keeper:
    """A folder with the trials of one tuner, which a loop of the user's own makes."""

    def __init__(
        self,
        folder: Path | str,
        space: Space,
        *,
        task: str,
        metric: str,
        changing: Mapping[str, Any],
    ) -> None:
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
        self._claim: _Claim | None = None
        self._changing = changing
        made = {**asdict(space), "task": task, "metric": metric}
        check_same(self._store.folder, made, changing)

    def claim(self) -> None:
        """Raise if another process asks for the trials of this folder: both would make the same."""
        path = self._store.folder.resolve() / "tuner.lock"
        held = os.getpid(), path
        claim = _claims.get(held) or _Claim(path)
        if claim is not self._claim:
            self._claim = _claims[held] = claim
            keep_changing(self._store.folder, self._changing)

    def outcomes(self) -> dict[Cell, Outcome]:
        """Return the trials that the folder has."""
        return self._cells.told(self._store.runs())

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


def check_same(folder: Path, made: Mapping[str, Any], changing: Mapping[str, Any]) -> None:
    """Write what a new tuner was made with; raise if the folder is another tuner's, or a sweep's.

    What is `changing` may differ from the last time.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`folder` must be a folder, and {folder} is a file. Name another one.")
    path = folder / FILE
    now = json.loads(json.dumps(made))
    if not path.exists():
        if others := [name for name in ("plan.jsonl", "log") if (folder / name).exists()]:
            raise ValueError(
                f"A tuner must have a folder of its own, but {folder} has {' and '.join(others)} "
                "and no tuner.json: it is a sweep's. Use another folder. If it was a tuner's, "
                "restore tuner.json."
            )
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, {**now, **changing})
        return
    try:
        before = json.loads(path.read_text("utf-8"))
        changes = list(_changes(before, now))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be what a tuner wrote, but it is damaged: {error}. Its trials are safe "
            "in `log`: restore the file, or use another folder."
        ) from error
    if changes:
        raise ValueError(
            f"A tuner must continue as it began, but in {folder} {', and '.join(changes)}. Pass "
            "the same arguments, or use another folder."
        )


def keep_changing(folder: Path, changing: Mapping[str, Any]) -> None:
    """Write what has changed since the last time. Only a tuner that asks does, not a reader."""
    path = folder / FILE
    before = json.loads(path.read_text("utf-8"))
    if (after := {**before, **changing}) != before:
        _write(path, after)


def _write(path: Path, values: Mapping[str, Any]) -> None:
    with files.written(path) as file:
        file.write(json.dumps(values, indent=1).encode() + b"\n")


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield each argument that has changed, with its old and new value."""
    if ("metric" in before) != ("metric" in now):  # which only a user's loop has
        makers = ["`weightdecay tune`", "a loop of your own"]
        was, is_ = makers if "metric" in now else makers[::-1]
        yield f"trials were trained by {was} and are now by {is_}"
        return
    known = before.keys() & now.keys()
    changed = {name for name in known - _AXES.keys() if before[name] != now[name]}
    if changed & {"task", "batch", "data", "validation"}:
        changed.discard("updates_per_epoch")  # it follows from them
    for name in now:
        if name == "ladder" and name in changed:
            yield from _changed_ladder(before[name], now[name])
        elif name in changed:
            yield _was(name, before[name], now[name])
        elif name in _AXES and not _are_close(before[name], now[name]):
            yield _was(_AXES[name], *_ranges(before[name], now[name]))


def _changed_ladder(before: list[int], now: list[int]) -> Iterator[str]:
    if before[-1] != now[-1]:
        yield _was("epochs", before[-1], now[-1])
    if any(tuple(one) != ladder(one[-1]) for one in (before, now)) and before[0] != now[0]:
        yield _was("shortest", before[0], now[0])


def _was(name: str, before: object, now: object) -> str:
    one, other = ("not given" if value is None else value for value in (before, now))
    return f"`{name}` was {one} and is {other}"


def _are_close(one: list[float], other: list[float]) -> bool:
    """Whether two axes have the same values, up to rounding: earlier versions had more digits."""
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(math.isclose(*pair, rel_tol=1e-9) for pair in pairs)


def _ranges(before: list[float], now: list[float]) -> list[str]:
    """Return two axes by their ends or, where these are the same, by all values."""
    same = _are_close([before[0], before[-1]], [now[0], now[-1]])
    return [
        ", ".join(f"{value:.3g}" for value in axis) if same else f"{axis[0]:g} to {axis[-1]:g}"
        for axis in (before, now)
    ]
