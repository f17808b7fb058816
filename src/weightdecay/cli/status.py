"""The status of a sweep, as text and as plain values."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weightdecay.cli.run import command_of
from weightdecay.cli.summary import Summary, best_values, summary
from weightdecay.cli.tuned import tuned
from weightdecay.progress import duration
from weightdecay.records import Run
from weightdecay.sweeps.progress_lines import cells
from weightdecay.sweeps.status import Status, store_status, without_paths
from weightdecay.sweeps.store import Store

# More results than these are not read and compared unless asked for: it would take over a second.
_CHECKED = 2000


def line(status: Status) -> str:
    """Return the counts of a sweep's cells, and the time left, in one line."""
    done = f"{status.done} done"
    if status.diverged:
        done += f" ({status.diverged} diverged)"
    parts = [f"{status.planned} planned", f"{status.running} running", done]
    parts += [f"{status.failed} failed", f"{status.left - status.running} waiting"]
    if status.left:
        left = status.seconds_left
        time = "not known yet" if left is None else duration(left)
        workers = f"{status.workers} worker{'s' * (status.workers != 1)}"
        parts.append(f"time left {time}, with {workers}")
    return " · ".join(parts)


def lines(
    folder: Path, *, every_failure: bool = False, advice: bool = True
) -> tuple[Status, list[str], bool]:
    """Return the status of a folder's sweep, lines that describe it, and if it is complete."""
    store = Store(folder)
    status, failures, left_out = store_status(store)
    text = [line(status), *_saved(store), *left_out]
    if advice and not (folder / "plan.jsonl").exists():
        if status.done:
            text.append(
                "A tuner in a loop of your own was told these trials. `weightdecay landscape "
                f"{folder}` reads them."
            )
        if failed := [failure.reason for failure in store.ledger.failures.values()]:
            text.append(
                f"{len(failed)} could not be trained, the last because: "
                f"{failed[-1].rstrip('.')}. Start the loop again to try again."
            )
    if store.ledger.unchecked:
        text.append(
            f"{store.ledger.unchecked} lines are older than checksums: damage in them may go "
            "unnoticed."
        )
    if status.left and not status.running and advice:
        text.append(
            "Nothing is running. To continue, repeat the command that started it, or run "
            f"`weightdecay retry {folder}`."
        )
    reasons: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for config, failure in failures:
        alike = reasons.setdefault(without_paths(failure.reason), {})
        alike.setdefault(failure.reason, []).append(config)
    for alike in reasons.values():
        configs = [config for some in alike.values() for config in some]
        others = " (with other paths in the others)" * (len(alike) > 1)
        text.append(f"Failed, {cells(len(configs))}: {next(iter(alike))}{others}")
        shown = configs if every_failure else configs[:1]
        text += [f"  to reproduce: {command_of(config)}" for config in shown]
        if len(configs) > len(shown):
            text.append(f"  and {len(configs) - 1} more, listed by --failures")
    if failures and advice:
        text.append(f"To train the failed cells again, run `weightdecay retry {folder}`.")
    return status, text, store.is_complete()


def _saved(store: Store) -> list[str]:
    """Return how far unfinished cells are, according to their checkpoints."""
    done = store.ledger.finished
    saved = store.saved([run for run in store.plan() if run not in done])
    if not saved:
        return []
    first, last = min(saved.values()), max(saved.values())
    at = f"update {last:,}" if first == last else f"updates {first:,} to {last:,}"
    return [f"{len(saved)} partly trained, saved at {at}"]


class Best:
    """The best settings so far among the planned cells. Each result is read only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[str, Run] = {}

    def summary(self, status: Status, *, every_result: bool = False) -> Summary | None:
        """Return a table; None before the first result, or if there are too many to read."""
        if status.done > _CHECKED and not every_result:
            return None
        runs = self.runs()
        return summary(self._folder, runs) if runs else None

    def runs(self) -> list[Run]:
        """Return the runs of the planned cells, sorted by name."""
        store = Store(self._folder)
        planned = store.plan()
        found = store.refresh().results
        new = {run: found[run] for run in planned if run in found and run not in self._runs}
        self._runs |= {run.config.identity: run for run in store.read(new)}
        return [self._runs[run] for run in sorted(planned) if run in self._runs]


def values(folder: Path, *, every_result: bool = True) -> tuple[dict[str, Any], int]:
    """Return the status of a folder's sweep as plain values, and the exit status."""
    store = Store(folder)
    status, failures, left_out = store_status(store)
    done = store.ledger.finished
    complete = store.is_complete()
    reads = status.done <= _CHECKED or every_result
    found = {
        "folder": folder,
        **asdict(status),
        "waiting": status.left - status.running,
        "partly_trained": len(store.saved([run for run in store.plan() if run not in done])),
        "complete": complete,
        "left_out": left_out,
        "failures": [
            {"run": failure.run, "reason": failure.reason, "config": config}
            for config, failure in failures
        ],
        "best": best_values(folder, Best(folder).runs()) if reads else None,
        "doubts": doubts(folder, status, every_result=every_result) if reads else None,
        "tuner": None if (tuner := tuned(folder)) is None else tuner.values(),
    }
    return found, 1 if status.failed or not complete else 0


def doubts(folder: Path, status: Status, *, every_result: bool = False) -> list[str]:
    """Return which results disagree or stand out; or that there are too many to compare."""
    if status.done > _CHECKED and not every_result:
        command = f"weightdecay status {folder} --check"
        return [f"{status.done} results were not compared. `{command}` compares them."]
    from weightdecay import results
    from weightdecay.site.doubts import bounds, lines

    store = Store(folder)
    planned = store.plan()
    runs = [run for run in store.runs() if run.config.identity in planned]
    found = results.doubts(runs, store.repeats())
    return [*bounds(found), *lines(found)]
