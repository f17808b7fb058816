"""What a sweep would do, before it starts: which cells are left, in which packs, for how long."""

from collections.abc import Mapping
from dataclasses import dataclass

from weightdecay.records import RunConfig
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.estimate import is_worthwhile, seconds_apart
from weightdecay.sweeps.packing import packs
from weightdecay.sweeps.progress_file import SweepProgress
from weightdecay.sweeps.status import Tally
from weightdecay.sweeps.store import Store


@dataclass(frozen=True)
class Forecast:
    """The counts of a plan's cells, the cells to train, and the sizes of their packs.

    Workers and packs are None without an engine.
    """

    planned: int
    done: int
    failed: int
    partly_trained: int
    to_train: tuple[RunConfig, ...]
    workers: int | None
    packs: tuple[int, ...] | None
    #: Estimated from the cells of the plan that are done; None before any is.
    seconds: float | None


def forecast(
    cells: Mapping[str, RunConfig], store: Store, engine: Engine | None, *, retry: bool = False
) -> Forecast:
    """Return what a sweep of these cells would do, without writing or training anything."""
    ledger = store.refresh()
    failed = [run for run in cells if run in ledger.failures]
    left = {
        run: config
        for run, config in cells.items()
        if run not in ledger.finished and (retry or run not in ledger.failures)
    }
    sizes = time = None
    if engine is not None:
        made = packs(left.values(), workers=engine.workers, lanes=engine.lanes)
        sizes = tuple(map(len, made))
        forgiven = failed if retry else ()
        tally = Tally(cells)
        time = tally.status(
            ledger,
            running=0,
            workers=engine.workers,
            progress=SweepProgress(packs=len(sizes)),
            forgiven=forgiven,
        ).seconds_left
    return Forecast(
        planned=len(cells),
        done=sum(run in ledger.finished for run in cells),
        failed=len(failed),
        partly_trained=len(store.saved(left)),
        to_train=tuple(left.values()),
        workers=None if engine is None else engine.workers,
        packs=sizes,
        seconds=time,
    )


def tried(expected: Forecast, device: str | None, *, only_if_worthwhile: bool) -> float | None:
    """Return the seconds that a sweep takes, from its finished cells or else from a short trial."""
    if expected.seconds is not None or expected.workers is None:
        return expected.seconds
    if only_if_worthwhile and not is_worthwhile(expected.to_train):
        return None
    return seconds_apart(expected.to_train, workers=expected.workers, device=device)
