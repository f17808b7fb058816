"""How far a sweep is: cells, workers, speed, time left, and what failed. It is only read."""

import shlex
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weightdecay.live.planned import Cell, Plan, cell_of, planned
from weightdecay.progress import duration
from weightdecay.records import RunConfig
from weightdecay.sweeps import Store
from weightdecay.sweeps.progress_file import RunningPack
from weightdecay.sweeps.status import Status, Tally, without_paths

#: The folder of a second stage inside a sweep's folder, as `studies.registration_file` has it.
SECOND = "judging"
_REASONS = 20  # reasons of failures that are listed
_SAMPLES, _LONG = 60, 300.0  # the speed is that of the last minutes


class Standing:
    """The progress of a folder: of its sweep, and of the seeds that judge it, if there are."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._stages = {"": _Stage(folder, clock)}
        self._folder, self._clock = folder, clock

    def status(self) -> dict[str, Any]:
        """Return the progress of each stage, as plain values and text."""
        second = self._folder / SECOND
        if SECOND not in self._stages and (second / "log").is_dir():
            self._stages[SECOND] = _Stage(second, self._clock)
        return {"stages": [stage.status(name) for name, stage in self._stages.items()]}

    def plan(self) -> Plan:
        """Return the planned cells of the first stage."""
        return self._stages[""].planned()

    def running(self) -> Mapping[Cell, int]:
        """Return the cells of the first stage that are in training, and how many seeds of each."""
        return self._stages[""].running()

    @property
    def over(self) -> bool:
        """Whether nothing is left to train."""
        return all(stage.over for stage in self._stages.values())

    def stamp(self) -> object:
        """Return what changes when a cell is planned or done."""
        return [stage.stamp for stage in self._stages.values()]


class _Stage:
    """One store. What was read stays read: a plan until it changes, a log as far as it goes."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._store, self._clock = Store(folder), clock
        self._plan_file = folder / "plan.jsonl"
        self._plan_stamp: object = None
        self._cells: Mapping[str, Mapping[str, Any]] = {}
        self._tally: Tally | None = None
        self._groups: Plan = {}
        self._places: Mapping[str, Cell] = {}
        self._grouped: object = None
        self._running: list[str] = []
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES)
        self.stamp: object = None
        self.over = False

    def planned(self) -> Plan:
        self._group()
        return self._groups

    def running(self) -> Mapping[Cell, int]:
        if not self._running:
            return {}
        self._group()
        return Counter(self._places[run] for run in self._running if run in self._places)

    def _group(self) -> None:
        self._read_plan()
        if self._grouped != self._plan_stamp:
            configs = {run: RunConfig.from_dict(dict(one)) for run, one in self._cells.items()}
            self._groups, self._grouped = planned(configs.values()), self._plan_stamp
            self._places = {run: cell_of(config) for run, config in configs.items()}

    def status(self, name: str) -> dict[str, Any]:
        self._read_plan()
        store = self._store
        alive, ledger = store.alive(), store.ledger
        waiting = [run for run in self._cells if run not in ledger.finished]
        self._running = running = store.running(waiting) if alive else []
        workers = alive or max(ledger.workers.values(), default=1)
        done, packs = len(ledger.finished), store.progress()
        found = None
        if self._tally is not None:
            found = self._tally.status(
                ledger,
                running=len(running),
                workers=workers,
                progress=packs,
                forgiven=set(running),
            )
            done, self.over = found.done, not found.left
        self.stamp = (self._plan_stamp, len(ledger.finished))
        return {
            "name": name,
            "folder": str(store.folder),
            "planned": None if found is None else found.planned,
            "done": done,
            "diverged": sum(ledger.finished.values()) if found is None else found.diverged,
            "running": len(running),
            "failed": len(ledger.failures) if found is None else found.failed,
            "workers": alive,
            "left": _left(found, alive),
            "trained": done + self._trained(packs.running),
            "early": "" if done or not running else _early(packs.running),
            "speed": self._speed(done, working=found is None or bool(found.left and alive)),
            "failures": self._failures(),
            "retry": f"weightdecay retry {shlex.quote(str(store.folder))}",
            "leftOut": ledger.left_out,
        }

    def _read_plan(self) -> None:
        try:
            found = self._plan_file.stat()
        except FileNotFoundError:
            return
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp != self._plan_stamp:
            self._cells = dict(self._store.cells())
            self._tally, self._plan_stamp = Tally(self._cells), stamp

    def _trained(self, running: Iterable[RunningPack]) -> float:
        """Return how many cells' worth of epochs the running packs have trained."""
        planned = [(self._cells.get(pack.run), pack.epochs) for pack in running]
        return float(sum(done / cell["epochs"] for cell, done in planned if cell is not None))

    def _speed(self, done: int, *, working: bool) -> str:
        """Return how many cells finish in a minute, over the last minutes that were watched."""
        if not working:
            self._samples.clear()
            return ""
        now = self._clock()
        self._samples.append((now, done))
        while len(self._samples) > 2 and now - self._samples[0][0] > _LONG:
            self._samples.popleft()
        start, before = self._samples[0]
        if now - start < 1 or done <= before:
            return ""
        return f"{60 * (done - before) / (now - start):.3g} cells per minute"

    def _failures(self) -> list[dict[str, Any]]:
        """Return the reasons of failures, and how many cells have each."""
        alike: dict[str, dict[str, Any]] = {}
        for failure in self._store.ledger.failures.values():
            reason = without_paths(failure.reason)
            told = alike.setdefault(reason, {"reason": failure.reason, "cells": 0})
            told["cells"] += 1
        return list(alike.values())[:_REASONS]


def _left(found: Status | None, alive: int) -> str:
    """Return the time left in words; nothing if nothing is left or nobody works on it."""
    if found is None or not found.left or not alive:
        return ""
    return "not known yet" if found.seconds_left is None else duration(found.seconds_left)


def _early(running: Sequence[RunningPack]) -> str:
    """Return when the first result comes, while there is none."""
    soon = min((pack.seconds_left for pack in running), default=None)
    when = "" if soon is None else f", in about {duration(soon)}"
    return f"{_FIRST}{when}."


_FIRST = "Cells train side by side: the first results come when the first pack of them ends"
