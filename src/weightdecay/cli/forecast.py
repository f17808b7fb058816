"""What is said of a sweep before it starts: `--dry-run`, and the estimate."""

import argparse
from collections.abc import Sequence
from typing import Any

from weightdecay.cli.output import say_json
from weightdecay.cli.printing import say
from weightdecay.progress import duration
from weightdecay.records import RunConfig
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.forecast import Forecast, forecast, tried
from weightdecay.sweeps.name_checks import check_names
from weightdecay.sweeps.progress_lines import cells
from weightdecay.sweeps.store import Store


def dry_run(
    configs: Sequence[RunConfig], options: argparse.Namespace, engine: Engine | None
) -> int:
    """Say what a sweep would do, and do none of it."""
    check_names(configs)
    told = forecast(_by_name(configs), Store(options.folder), engine)
    seconds = tried(told, options.device, only_if_worthwhile=False)
    if options.json:
        say_json(_values(told, seconds))
        return 0
    say("\n".join(lines(told, seconds)))
    return 0


def estimate(
    configs: Sequence[RunConfig], options: argparse.Namespace, engine: Engine, *, retry: bool
) -> str:
    """Return a line on what a long sweep has before it; nothing for a short one."""
    told = forecast(_by_name(configs), Store(options.folder), engine, retry=retry)
    seconds = told.seconds  # a trial on this machine says nothing of Ray's others
    if options.on != "ray":
        seconds = tried(told, options.device, only_if_worthwhile=True)
    if not seconds:
        return ""
    work = f"{len(told.to_train)} of {cells(told.planned)} to train in {_packs(told)}"
    return f"{work}. Estimated time: {duration(seconds)}"


def lines(told: Forecast, seconds: float | None) -> list[str]:
    """Return what a sweep would do, in a few lines."""
    left = len(told.to_train)
    counted = [f"{told.planned} planned", f"{told.done} done", f"{told.failed} failed"]
    counted.append(f"{left} to train")
    if told.partly_trained:
        counted[-1] += f" ({told.partly_trained} partly trained, saved)"
    time = "not known before the first are done" if seconds is None else duration(seconds)
    work = [f"{_packs(told)}, estimated time {time}"] if left else ["Nothing is left to train."]
    return [" · ".join(counted), *work]


def _values(told: Forecast, seconds: float | None) -> dict[str, Any]:
    return {**vars(told), "to_train": len(told.to_train), "seconds": seconds}


def _packs(told: Forecast) -> str:
    if told.packs is None or told.workers is None:
        return "As many packs as the cluster has room for"
    size = max(told.packs, default=0)
    packs = f"{len(told.packs)} pack{'s' * (len(told.packs) != 1)} of up to {cells(size)}"
    return f"{packs} on {told.workers} worker{'s' * (told.workers != 1)}"


def _by_name(configs: Sequence[RunConfig]) -> dict[str, RunConfig]:
    return {config.identity: config for config in configs}
