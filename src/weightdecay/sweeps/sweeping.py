"""Trains configurations and records them in a store: as one call, or event by event."""

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
from weightdecay.sweeps.inprocess import InProcess
from weightdecay.sweeps.local import Local
from weightdecay.sweeps.name_checks import check_names
from weightdecay.sweeps.progress_lines import SweepLines
from weightdecay.sweeps.store import Store
from weightdecay.sweeps.task_transfer import TaskProvider, provider_of
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
    """Train the configurations that are not done yet in the folder, and return all runs.

    Runs are returned in the order of the configurations. One that could not be trained is missing,
    and a warning gives the reason; later sweeps skip it unless `retry` is True.

    By default, the engine has one worker process per GPU, or per core. A worker that is silent for
    `timeout` seconds is killed and counts as crashed. `task` is a Task, or a function that returns
    one, for configurations whose task has no name to load it by; it is pickled for worker
    processes. Notices are logged to `weightdecay` at level INFO, problems at level WARNING. A
    progress bar is shown on a terminal and in a notebook, unless `progress` is False.
    """
    asked = list(dict.fromkeys(configs))
    events = sweep_events(
        asked, folder=folder, task=task, engine=engine, retry=retry, timeout=timeout
    )
    shown = SweepLines()
    with Bars(quiet=not progress) as bars:
        for event in events:
            if isinstance(event, Notice):
                bars.clear()
                _LOG.log(logging.WARNING if event.problem else logging.INFO, event.text)
            shown.take(event)
            if lines := shown.lines():
                bars.draw(lines)
    store = Store(folder)
    runs = {run.config: run for run in store.runs()}
    failures = store.ledger.failures
    reasons = [failures[one.identity].reason for one in asked if one.identity in failures]
    if reasons:
        warnings.warn(
            f"{len(reasons)} of {len(asked)} configurations could not be trained. The first "
            f"failed with: {reasons[0].rstrip('.')}. Sweep with retry=True to try them again.",
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
    """Do what `sweep` does, and yield events.

    Closing the iterator stops the sweep; cells in training are saved.
    """
    cells = {config.identity: config for config in configs}
    if not cells:
        raise ValueError("`configs` must hold at least one configuration, got none.")
    provider = None
    if task is None:
        check_names(cells.values())
    else:
        provider = provider_of(task, cells.values(), in_process=isinstance(engine, InProcess))
    watched = Watched(engine or Local(), timeout)
    store = Store(folder)
    store.ask_for(cells)
    return _sweep(store, cells, watched, provider, retry=retry)


def _sweep(
    store: Store,
    cells: dict[str, RunConfig],
    engine: Engine,
    task: TaskProvider | None,
    *,
    retry: bool,
) -> Iterator[SweepEvent]:
    with ExitStack() as held:
        held.enter_context(closing(engine))
        writer = held.enter_context(store.writing(engine.workers))
        claims = held.enter_context(store.claiming())
        coordinator = Coordinator(store, writer, claims, engine, cells, task=task)
        yield from coordinator.run(retry=retry)
        yield from coordinator.repeat()
