"""How a sweep stands: what is planned, running, done, diverged and failed, and how long it takes.

It is told from the store alone, by anyone, without torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightdecay.records import RunConfig
from weightdecay.sweeps.store import Failure, Ledger, Store

# What a cell's cost depends on, beside its epochs.
_ALIKE = ("task", "model", "batch", "data", "precision")


@dataclass(frozen=True)
class Standing:
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


def standing(
    cells: Mapping[str, RunConfig | Mapping[str, Any]],
    ledger: Ledger,
    running: Sequence[str],
    workers: int,
) -> Standing:
    """Count a plan's cells."""
    done = [run for run in cells if run in ledger.diverged]
    failed = [run for run in cells if run in ledger.failures]
    return Standing(
        planned=len(cells),
        running=len(running),
        done=len(done),
        diverged=sum(ledger.diverged[run] for run in done),
        failed=len(failed),
        workers=workers,
        seconds_left=_seconds_left(cells, ledger, workers),
    )


def _seconds_left(
    cells: Mapping[str, RunConfig | Mapping[str, Any]], ledger: Ledger, workers: int
) -> float | None:
    """Estimate what is left, by what alike cells have cost an epoch, or all of them."""
    spent: dict[object, list[float]] = {}
    left: dict[object, int] = {}
    for run, config in cells.items():
        value = config if isinstance(config, Mapping) else vars(config)
        alike = tuple(value[name] for name in _ALIKE)
        if run in ledger.seconds:
            for key in (alike, None):
                total = spent.setdefault(key, [0.0, 0.0])
                total[0] += ledger.seconds[run]
                total[1] += value["epochs"]
        elif run not in ledger.failures and run not in ledger.diverged:
            left[alike] = left.get(alike, 0) + value["epochs"]
    if not left:
        return 0.0
    if not spent:
        return None
    costs = {key: seconds / epochs for key, (seconds, epochs) in spent.items()}
    return sum(epochs * costs.get(key, costs[None]) for key, epochs in left.items()) / max(
        1, workers
    )


def of_folder(
    folder: Path | str,
) -> tuple[Standing, list[tuple[dict[str, Any], Failure]], list[str]]:
    """Return how a folder's sweep stands, its failures, and what of it cannot be read."""
    store = Store(folder)
    cells = store.plan()
    alive = store.alive()
    ledger = store.ledger
    waiting = [run for run in cells if run not in ledger.diverged]
    running = store.running(waiting) if alive else []
    workers = alive or max(ledger.workers.values(), default=1)
    failures = [(cells[run], ledger.failures[run]) for run in cells if run in ledger.failures]
    return standing(cells, ledger, running, workers), failures, ledger.damage
