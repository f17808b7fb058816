"""The status of a sweep: how many cells are planned, running, done, diverged and failed.

It is read from the store alone, by any process, without torch. It includes the estimated time left.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, TypeAlias

from weightdecay.records import RunConfig
from weightdecay.records.codec import Failure
from weightdecay.records.ledger import Ledger
from weightdecay.sweeps.progress_file import NO_NEWS, RunningPack, SweepProgress
from weightdecay.sweeps.store import Store

# What the cost of an epoch depends on.
_cost_fields = itemgetter("task", "model", "batch", "data", "precision")
_Kind: TypeAlias = tuple[object, ...]
Cells: TypeAlias = Mapping[str, RunConfig | Mapping[str, Any]]
_NO_COST: tuple[_Kind, int] = (), 0  # of a cell that is no longer planned
# A path in an error message: in quotes, as in errors of the system, or absolute.
_PATH = re.compile(r"""(['"])[^'"]*[/\\][^'"]*\1|(?<!\S)/\S+""")


@dataclass(frozen=True)
class Status:
    """The counts of a plan's cells; each is running, done, failed or none of these."""

    planned: int
    running: int
    done: int
    diverged: int
    failed: int
    workers: int
    #: With the present number of workers, or the last one; None before any news of a pack.
    seconds_left: float | None

    @property
    def left(self) -> int:
        """Return how many cells are neither done nor failed."""
        return self.planned - self.done - self.failed


class Tally:
    """Counts a plan's cells as the log grows, without looking twice at what was counted.

    A ledger only ever gains results and timings, in the order they were read. Failures may be
    removed; they are few, and are counted again each time.
    """

    def __init__(self, cells: Cells) -> None:
        self._costs = {run: _cost(config) for run, config in cells.items()}
        # By kind of cell: epochs left to train, and the seconds and epochs already spent.
        self._left = _summed(self._costs.values())
        self._spent: dict[_Kind, tuple[float, int]] = {}
        self._results = self._timings = self._done = self._diverged = 0

    def status(
        self,
        ledger: Ledger,
        *,
        running: int,
        workers: int,
        progress: SweepProgress = NO_NEWS,
        forgiven: Collection[str] = (),
    ) -> Status:
        """Count what is new in the ledger, which must be the same one in every call.

        No more workers are busy than packs are running or waiting; if that is not known, than cells
        are left. Running packs improve the estimate of the time left, and make one possible before
        any cell is done. Failures in `forgiven` are being tried again and do not count.
        """
        for run in islice(ledger.finished, self._results, None):
            if run in self._costs:
                kind, epochs = self._costs[run]
                self._done += 1
                self._diverged += ledger.finished[run]
                self._left[kind] -= epochs
        for run in islice(ledger.costs, self._timings, None):
            seconds, epochs = ledger.costs[run]
            if run in self._costs and epochs:
                kind, _ = self._costs[run]
                before = self._spent.get(kind, (0.0, 0))
                self._spent[kind] = before[0] + seconds, before[1] + epochs
        self._results, self._timings = len(ledger.finished), len(ledger.costs)
        failed = [run for run in ledger.failures if run in self._costs and run not in forgiven]
        left = len(self._costs) - self._done - len(failed)
        busy = min(workers, left if progress.packs is None else progress.packs)
        return Status(
            planned=len(self._costs),
            running=running,
            done=self._done,
            diverged=self._diverged,
            failed=len(failed),
            workers=workers,
            seconds_left=self._seconds_left(failed, max(1, busy), progress.running),
        )

    def _seconds_left(
        self, failed: Sequence[str], busy: int, running: Sequence[RunningPack]
    ) -> float | None:
        """Estimate the time left from the cost per epoch of cells of the same kind, or of all.

        It is at least the time that the slowest running pack needs.
        """
        left = self._left.copy()
        left.subtract(_summed(self._costs[run] for run in failed))
        left = +left
        if not left:
            return 0.0
        spent: list[tuple[float, float]] = [*self._spent.values()]
        spent = spent or [(p.seconds_per_epoch * p.epochs, p.epochs) for p in running if p.epochs]
        if not spent:
            return None
        costs = {kind: seconds / epochs for kind, (seconds, epochs) in self._spent.items()}
        all_seconds, all_epochs = map(sum, zip(*spent, strict=True))
        mean = all_seconds / all_epochs
        total = sum(epochs * costs.get(kind, mean) for kind, epochs in left.items())
        kinds = [(self._costs.get(pack.run, _NO_COST)[0], pack.epochs) for pack in running]
        total -= sum(epochs * costs.get(kind, mean) for kind, epochs in kinds)
        return max(0.0, total / busy, *(pack.seconds_left for pack in running))


def _cost(config: RunConfig | Mapping[str, Any]) -> tuple[_Kind, int]:
    """Return a cell's kind, on which the cost of an epoch depends, and its epochs."""
    values = vars(config) if isinstance(config, RunConfig) else config
    evaluate_every = values.get("evaluate_every", 1)  # older plans do not have it
    return (*_cost_fields(values), evaluate_every), values["epochs"]


def _summed(costs: Iterable[tuple[_Kind, int]]) -> Counter[_Kind]:
    total: Counter[_Kind] = Counter()
    for kind, epochs in costs:
        total[kind] += epochs
    return total


def without_paths(reason: str) -> str:
    """Return the reason of a failure without paths, which may differ between cells."""
    return _PATH.sub("…", reason)


def store_status(store: Store) -> tuple[Status, list[tuple[dict[str, Any], Failure]], list[str]]:
    """Return a sweep's status, its failures, and sentences about what is left out."""
    cells = store.plan()
    alive = store.alive()
    ledger = store.ledger
    waiting = [run for run in cells if run not in ledger.finished]
    running = store.running(waiting) if alive else []
    workers = alive or max(ledger.workers.values(), default=1)
    failures = [(cells[run], ledger.failures[run]) for run in cells if run in ledger.failures]
    # A cell that has failed and is running is being tried again.
    status = Tally(cells).status(
        ledger,
        running=len(running),
        workers=workers,
        progress=store.progress(),
        forgiven=set(running),
    )
    return status, failures, ledger.left_out
