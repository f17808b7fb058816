"""Trains one configuration into a store of its own, and yields its events.

The store is that of a sweep with one cell, plus the weights at the end of each cycle. With several
processes, only the first one records; the others just train.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay.records import Event, Notice, Run, RunConfig, Started
from weightdecay.records.collecting import RunCollector
from weightdecay.sweeps.store import Store

if TYPE_CHECKING:
    import torch

    from weightdecay.tasks import Task


def run_events(
    config: RunConfig,
    *,
    folder: Path | str,
    device: "torch.device | str | None" = None,
    task: "Task | None" = None,
    fresh: bool = False,
) -> Iterator[Event]:
    """Train or resume one configuration in `<folder>/<identity>`, and yield its events.

    A run that is already recorded there is not trained again: its records are yielded. `fresh`
    deletes it first. Closing the iterator stops the training and saves it.
    """
    from weightdecay.runs import Keep, train_events  # noqa: PLC0415 - the package imports no torch

    store, keep = store_of(config, folder), Keep(checkpoints=False)
    events = train_events(
        config, folder=store.folder, device=device, task=task, keep=keep, wait=True, stacked=True
    )
    return _recorded(store, config, events, fresh=fresh)


def store_of(config: RunConfig, folder: Path | str) -> Store:
    """Return the store of a configuration in a folder of runs."""
    return Store(Path(folder) / config.identity)


def _recorded(
    store: Store, config: RunConfig, events: Iterator[Event], *, fresh: bool
) -> Iterator[Event]:
    from torch import distributed as dist  # noqa: PLC0415

    from weightdecay.runs.pack import leads  # noqa: PLC0415

    with ExitStack() as held:
        if leads():
            _claim(store, config, held)
            if fresh:
                _forget(store, config)
            store.ask_for({config.identity: config})
        if dist.is_initialized():
            dist.barrier()  # before any process reads the store
        done = [run for run in store.runs() if run.config == config]
        if leads():
            yield from (Notice(text, problem=True) for text in store.ledger.left_out)
        if done:
            yield from _replayed(done[0])
        elif leads():
            yield from _record(store, config, events)
        else:
            yield from events
        if leads():
            store.forget_checkpoints([config.identity])


def _claim(store: Store, config: RunConfig, held: ExitStack) -> None:
    """Claim the run, so that no other process trains it."""
    from weightdecay.runs.checkpoints import BusyError  # noqa: PLC0415

    if not held.enter_context(store.claiming()).take(config.identity):
        raise BusyError(
            f"Run {config.identity} must be trained by one process at a time, but another one is "
            "training it. Wait for it, or stop it."
        )


def _forget(store: Store, config: RunConfig) -> None:
    """Delete the run, unless results of other runs were merged into its store."""
    others = [run for run in Store(store.folder).refresh().results if run != config.identity]
    if others:
        raise ValueError(
            f"`fresh` would delete {store.folder}, which holds results of {len(others)} other "
            "runs. Move them elsewhere first, or use another folder."
        )
    store.forget_all()


def _replayed(run: Run) -> Iterator[Event]:
    if run.environment is not None:
        yield Started(run.config.identity, run.environment)
    yield from run.records
    yield Notice("This run was already trained: these are its records.")


def _record(store: Store, config: RunConfig, events: Iterator[Event]) -> Iterator[Event]:
    """Pass on the events of a training, and record the run when it ends."""
    collector = RunCollector([config])
    with store.writing(workers=1) as writer, closing(events):  # type: ignore[type-var]
        for event in events:
            collector.add(event)
            yield event
        writer.results(collector.pop_finished())
