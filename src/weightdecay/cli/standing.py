"""What is said of how a sweep stands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightdecay.cli.progress import duration
from weightdecay.cli.run import command_of
from weightdecay.sweeps.standing import Standing, of_folder


def line(standing: Standing) -> str:
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


def lines(folder: Path) -> list[str]:
    """Return all there is to say of a folder's sweep."""
    counted, failures, damage = of_folder(folder)
    told = [line(counted), *damage]
    if counted.left and not counted.running:
        told.append("Nothing is running: the command that began it goes on with it.")
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for config, failure in failures:
        reasons.setdefault(failure.reason, []).append(config)
    for reason, configs in reasons.items():
        cells = f"{len(configs)} cells" if len(configs) > 1 else "a cell"
        told += [f"Failed, {cells}: {reason}", f"  alone: {command_of(configs[0])}"]
    if failures:
        told.append(f"`weightdecay retry {folder}` tries again.")
    return told


def is_over(folder: Path) -> bool:
    """Whether nothing is left to be trained."""
    return of_folder(folder)[0].left == 0
