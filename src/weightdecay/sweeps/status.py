"""How a sweep stands: what is planned, running, done, diverged and failed, and how long it takes.

It is told from the store alone, by anyone, without torch.
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
from weightdecay.sweeps.store import Store

# What a cell's cost depends on, beside its epochs.
_alike = itemgetter("task", "model", "batch", "data", "precision")
_Kind: TypeAlias = tuple[object, ...]
Cells: TypeAlias = Mapping[str, RunConfig | Mapping[str, Any]]
# A path in what an error says: in quotation marks, as the system's errors have it, or absolute.
_PATH = re.compile(r"""(['"])[^'"]*[/\\][^'"]*\1|(?<!\S)/\S+""")


@dataclass(frozen=True)
class Status:
    """The cells of a plan, counted; each is in one of running, done, failed or none of these."""

    planned: int
    running: int
    done: int
    diverged: int
    failed: int
    workers: int
    #: With as many workers as there are, or were; None before any cell is done.
    seconds_left: float | None

    @property
    def left(self) -> int:
        """Return how many cells are neither done nor failed."""
        return self.planned - self.done - self.failed


@dataclass(frozen=True)
class Underway:
    """A pack that is being trained: epochs of its cells that are behind it, and what one costs."""

    config: RunConfig
    epochs: float
    seconds_an_epoch: float
    seconds_left: float


class Tally:
    """A plan's cells, counted as the log grows: what was counted is not looked at again.

    A ledger only ever gains results and timings, in the order they were read. Failures may go, and
    are few: they are counted anew.
    """

    def __init__(self, cells: Cells) -> None:
        self._costs = {run: _cost(config) for run, config in cells.items()}
        # Epochs without a result, and seconds and epochs spent, of cells that cost alike.
        self._left = _summed(self._costs.values())
        self._spent: dict[_Kind, tuple[float, int]] = {}
        self._results = self._timings = self._done = self._diverged = 0

    def standing(
        self,
        ledger: Ledger,
        *,
        running: int,
        workers: int,
        packs: int | None = None,
        going: Sequence[Underway] = (),
        forgiven: Collection[str] = (),
    ) -> Status:
        """Count what is new in the ledger, which must be the same one every time.

        Packs that are going on say what of their epochs is behind them, and, before anything is
        done, what an epoch costs. Failures that are tried again are forgiven. No more workers are
        busy than there are `packs`, those that wait among them; or cells, where that is not known.
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
        busy = min(workers, left if packs is None else packs)
        return Status(
            planned=len(self._costs),
            running=running,
            done=self._done,
            diverged=self._diverged,
            failed=len(failed),
            workers=workers,
            seconds_left=self._seconds_left(failed, max(1, busy), going),
        )

    def _seconds_left(
        self, failed: Sequence[str], busy: int, going: Sequence[Underway]
    ) -> float | None:
        """Estimate what is left, by what alike cells have cost an epoch, or all of them.

        It cannot be over before the last of the packs that are going on.
        """
        left = self._left.copy()
        left.subtract(_summed(self._costs[run] for run in failed))
        left = +left
        if not left:
            return 0.0
        spent: list[tuple[float, float]] = [*self._spent.values()]
        spent = spent or [(p.seconds_an_epoch * p.epochs, p.epochs) for p in going if p.epochs]
        if not spent:
            return None
        costs = {kind: seconds / epochs for kind, (seconds, epochs) in self._spent.items()}
        all_seconds, all_epochs = map(sum, zip(*spent, strict=True))
        mean = all_seconds / all_epochs
        total = sum(epochs * costs.get(kind, mean) for kind, epochs in left.items())
        total -= sum(pack.epochs * costs.get(_cost(pack.config)[0], mean) for pack in going)
        return max(0.0, total / busy, *(pack.seconds_left for pack in going))


def standing(cells: Cells, ledger: Ledger, running: Sequence[str], workers: int) -> Status:
    """Count a plan's cells."""
    again = set(running)  # what failed and is running is being tried again
    return Tally(cells).standing(ledger, running=len(running), workers=workers, forgiven=again)


def _cost(config: RunConfig | Mapping[str, Any]) -> tuple[_Kind, int]:
    """Return what cells that cost alike have in common, and the epochs."""
    values = vars(config) if isinstance(config, RunConfig) else config
    seldom = values.get("evaluate_every", 1)  # which older plans do not say
    return (*_alike(values), seldom), values["epochs"]


def _summed(costs: Iterable[tuple[_Kind, int]]) -> Counter[_Kind]:
    total: Counter[_Kind] = Counter()
    for kind, epochs in costs:
        total[kind] += epochs
    return total


def without_paths(reason: str) -> str:
    """Return why a cell failed, less the paths it names, in which cells of one cause differ."""
    return _PATH.sub("…", reason)


def of_store(store: Store) -> tuple[Status, list[tuple[dict[str, Any], Failure]], list[str]]:
    """Return how a sweep stands, its failures, and what is left out."""
    cells = store.plan()
    alive = store.alive()
    ledger = store.ledger
    waiting = [run for run in cells if run not in ledger.finished]
    running = store.running(waiting) if alive else []
    workers = alive or max(ledger.workers.values(), default=1)
    failures = [(cells[run], ledger.failures[run]) for run in cells if run in ledger.failures]
    return standing(cells, ledger, running, workers), failures, ledger.left_out
