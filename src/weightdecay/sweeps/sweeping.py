"""Configurations into finished runs in a store: all at once, or event by event."""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay.progress import Bars
from weightdecay.records import Notice, Run, RunConfig
from weightdecay.sweeps.coordinator import Coordinator
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.events import SweepEvent
from weightdecay.sweeps.inprocess import Here
from weightdecay.sweeps.local import Local
from weightdecay.sweeps.name_checks import check_names
from weightdecay.sweeps.progress_lines import SweepLines
from weightdecay.sweeps.store import Store
from weightdecay.sweeps.task_transfer import Handed, handed
from weightdecay.sweeps.watchdog import Watched

if TYPE_CHECKING:
    from weightdecay.tasks import Source

_LOG = logging.getLogger("weightdecay")


def sweep(
    configs: Iterable[RunConfig],
    *,
    folder: Path | str,
    task: "Source | None" = None,
    engine: Engine | None = None,
    retry: bool = False,
    timeout: float | None = None,
    progress: bool = True,
) -> list[Run]:
    """Train those of these configurations that are not done yet in the folder, and return all runs.

    They come in the order of the configurations. One that could not be trained is missing, and a
    warning says why; it is left alone from then on, unless `retry` is True. `engine` is one worker
    process per core, or per GPU, where it is not given. A worker that says nothing for `timeout`
    seconds is ended, and counts as dead. `task` is a task, or a function that makes it, under a
    name that nothing could be loaded by: the one that the configurations give it. Worker processes
    get it pickled. Notices go to the log of `weightdecay`, at level INFO. On a terminal and in a
    notebook bars show the progress, unless `progress` is False; elsewhere nothing is shown.
    """
    asked = list(dict.fromkeys(configs))
    events = sweep_events(
        asked, folder=folder, task=task, engine=engine, retry=retry, timeout=timeout
    )
    shown = SweepLines()
    with Bars(quiet=not progress) as bars:
        for event in events:
            if isinstance(event, Notice):
                _LOG.info(event.text)
            shown.take(event)
            bars.draw(shown.lines())
    store = Store(folder)
    runs = {run.config: run for run in store.runs()}
    failures = store.ledger.failures
    reasons = [failures[one.identity].reason for one in asked if one.identity in failures]
    if reasons:
        warnings.warn(
            f"{len(reasons)} of {len(asked)} configurations could not be trained, the first "
            f"because of {reasons[0]} Sweep again with retry=True to try them again.",
            RuntimeWarning,
            stacklevel=2,
        )
    return [runs[config] for config in asked if config in runs]


def sweep_events(
    configs: Iterable[RunConfig],
    *,
    folder: Path | str,
    task: "Source | None" = None,
    engine: Engine | None = None,
    retry: bool = False,
    timeout: float | None = None,
) -> Iterator[SweepEvent]:
    """Do what `sweep` does, and yield what happens.

    Closing the iterator stops gently: what is being trained is saved.
    """
    cells = {config.identity: config for config in configs}
    if not cells:
        raise ValueError("`configs` must hold at least one configuration, got none.")
    given = None
    if task is None:
        check_names(cells.values())
    else:
        given = handed(task, cells.values(), here=isinstance(engine, Here))
    watched = Watched(engine or Local(), timeout)
    store = Store(folder)
    store.ask_for(cells)
    return _sweep(store, cells, watched, given, retry=retry)


def _sweep(
    store: Store, cells: dict[str, RunConfig], engine: Engine, task: Handed | None, *, retry: bool
) -> Iterator[SweepEvent]:
    with ExitStack() as held:
        held.enter_context(closing(engine))
        writer = held.enter_context(store.writing(engine.workers))
        claims = held.enter_context(store.claiming())
        coordinator = Coordinator(store, writer, claims, engine, cells, task=task)
        yield from coordinator.run(retry=retry)
        yield from coordinator.repeat()
