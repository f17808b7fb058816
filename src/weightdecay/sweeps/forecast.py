"""What a sweep is going to do, before it starts: what is left, in which packs, and for how long."""

from collections.abc import Mapping
from dataclasses import dataclass

from weightdecay.records import RunConfig
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.estimate import is_worthwhile, seconds_apart
from weightdecay.sweeps.packing import packs
from weightdecay.sweeps.status import Tally
from weightdecay.sweeps.store import Store


@dataclass(frozen=True)
class Forecast:
    """A plan's cells, counted; those to train, and the sizes of the packs that they make up.

    Workers and packs are None where no engine says how many there are.
    """

    planned: int
    done: int
    failed: int
    partly_trained: int
    to_train: tuple[RunConfig, ...]
    workers: int | None
    packs: tuple[int, ...] | None
    #: What cells of this plan have cost says how long it takes; None before any is done.
    seconds: float | None


def forecast(
    cells: Mapping[str, RunConfig], store: Store, engine: Engine | None, *, retry: bool = False
) -> Forecast:
    """Return what a sweep of these cells would do. Nothing is written or trained."""
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
        time = tally.standing(
            ledger, running=0, workers=engine.workers, packs=len(sizes), forgiven=forgiven
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


def tried(told: Forecast, device: str | None, *, only_if_worthwhile: bool) -> float | None:
    """Return how long it takes: as cells of it have shown, or else as a short trial does."""
    if told.seconds is not None or told.workers is None:
        return told.seconds
    if only_if_worthwhile and not is_worthwhile(told.to_train):
        return None
    return seconds_apart(told.to_train, workers=told.workers, device=device)
