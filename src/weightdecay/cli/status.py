"""What is said of how a sweep stands."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weightdecay.cli.run import command_of
from weightdecay.cli.summary import Summary, best_settings, best_values
from weightdecay.progress import duration
from weightdecay.records import Run
from weightdecay.sweeps.progress_lines import cells
from weightdecay.sweeps.status import Status, of_store, without_paths
from weightdecay.sweeps.store import Store

# So many results are read whole and compared in a second; more, if asked to.
_CHECKED = 2000


def line(standing: Status) -> str:
    """Return a sweep's standing in one line."""
    done = f"{standing.done} done"
    if standing.diverged:
        done += f" ({standing.diverged} diverged)"
    parts = [f"{standing.planned} planned", f"{standing.running} running", done]
    parts += [f"{standing.failed} failed", f"{standing.left - standing.running} waiting"]
    if standing.left:
        left = standing.seconds_left
        time = "unknown before the first are done" if left is None else duration(left)
        workers = f"{standing.workers} worker{'s' * (standing.workers != 1)}"
        parts.append(f"time left {time}, with {workers}")
    return " · ".join(parts)


def lines(
    folder: Path, *, every_failure: bool = False, advice: bool = True
) -> tuple[Status, list[str], bool]:
    """Return how a folder's sweep stands, all there is to say of it, and if nothing is missing."""
    store = Store(folder)
    counted, failures, left_out = of_store(store)
    told = [line(counted), *_saved(store), *left_out]
    if store.ledger.unchecked:
        told.append(
            f"{store.ledger.unchecked} lines were written before lines had checksums: a change in "
            "them may pass unnoticed."
        )
    if counted.left and not counted.running and advice:
        told.append(
            "Nothing is running: the command that began it goes on with it, and so does "
            f"`weightdecay retry {folder}`."
        )
    reasons: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for config, failure in failures:
        alike = reasons.setdefault(without_paths(failure.reason), {})
        alike.setdefault(failure.reason, []).append(config)
    for alike in reasons.values():
        configs = [config for some in alike.values() for config in some]
        others = " (the others name other paths)" * (len(alike) > 1)
        told.append(f"Failed, {cells(len(configs))}: {next(iter(alike))}{others}")
        shown = configs if every_failure else configs[:1]
        told += [f"  alone: {command_of(config)}" for config in shown]
        if len(configs) > len(shown):
            told.append(f"  and {len(configs) - 1} more, which --failures names")
    if failures and advice:
        told.append(f"`weightdecay retry {folder}` tries again.")
    return counted, told, store.is_complete()


def _saved(store: Store) -> list[str]:
    """Return how far cells are that are being trained, or were: as their checkpoints say."""
    done = store.ledger.finished
    saved = store.saved([run for run in store.plan() if run not in done])
    if not saved:
        return []
    first, last = min(saved.values()), max(saved.values())
    at = f"update {last:,}" if first == last else f"updates {first:,} to {last:,}"
    return [f"{len(saved)} partly trained, saved at {at}"]


class Best:
    """The best settings so far, of the cells that are planned; each result is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[str, Run] = {}

    def summary(self, standing: Status, *, every_result: bool = False) -> Summary | None:
        """Return a table; None before the first result, or if there are very many."""
        if standing.done > _CHECKED and not every_result:
            return None
        runs = self.runs()
        return best_settings(runs) if runs else None

    def runs(self) -> list[Run]:
        """Return the runs of planned cells, in the order of their names."""
        store = Store(self._folder)
        planned = store.plan()
        found = store.refresh().results
        new = {run: found[run] for run in planned if run in found and run not in self._runs}
        self._runs |= {run.config.identity: run for run in store.read(new)}
        return [self._runs[run] for run in sorted(planned) if run in self._runs]


def values(folder: Path, *, every_result: bool = True) -> tuple[dict[str, Any], int]:
    """Return how a folder's sweep stands as plain values, and the exit status that says so."""
    store = Store(folder)
    counted, failures, left_out = of_store(store)
    done = store.ledger.finished
    complete = store.is_complete()
    reads = counted.done <= _CHECKED or every_result
    told = {
        "folder": folder,
        **asdict(counted),
        "waiting": counted.left - counted.running,
        "partly_trained": len(store.saved([run for run in store.plan() if run not in done])),
        "complete": complete,
        "left_out": left_out,
        "failures": [
            {"run": failure.run, "reason": failure.reason, "config": config}
            for config, failure in failures
        ],
        "best": best_values(Best(folder).runs()) if reads else None,
        "doubts": doubts(folder, counted, every_result=every_result) if reads else None,
    }
    return told, 1 if counted.failed or not complete else 0


def doubts(folder: Path, standing: Status, *, every_result: bool = False) -> list[str]:
    """Return what of a folder's results disagrees or stands out, or that it was not looked for."""
    if standing.done > _CHECKED and not every_result:
        command = f"weightdecay status {folder} --check"
        return [f"{standing.done} results are not compared here: `{command}` takes the time to."]
    from weightdecay import results
    from weightdecay.site.doubts import lines

    store = Store(folder)
    planned = store.plan()
    runs = [run for run in store.runs() if run.config.identity in planned]
    return lines(results.doubts(runs, store.repeats()))
