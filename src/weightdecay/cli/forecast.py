"""What is printed before a sweep starts: the estimate, and `--dry-run`."""

import argparse
from collections.abc import Sequence
from typing import Any

from weightdecay.cli.output import print_json
from weightdecay.cli.printing import echo
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
    """Print what a sweep would do, and train nothing."""
    check_names(configs)
    plan = forecast(_by_name(configs), Store(options.folder), engine)
    seconds = tried(plan, options.device, only_if_worthwhile=False)
    if options.json:
        print_json(_values(plan, seconds))
        return 0
    echo("\n".join(lines(plan, seconds)))
    return 0


def estimate(
    configs: Sequence[RunConfig], options: argparse.Namespace, engine: Engine, *, retry: bool
) -> str:
    """Return how much there is to train and how long it may take; "" for a short sweep."""
    plan = forecast(_by_name(configs), Store(options.folder), engine, retry=retry)
    seconds = plan.seconds  # a trial here says nothing about the machines of a Ray cluster
    if options.on != "ray":
        seconds = tried(plan, options.device, only_if_worthwhile=True)
    if not seconds:
        return ""
    work = f"{len(plan.to_train)} of {cells(plan.planned)} to train in {_packs(plan)}"
    return f"{work}. Estimated time: {duration(seconds)}"


def lines(plan: Forecast, seconds: float | None) -> list[str]:
    """Return what a sweep would do, in a few lines."""
    left = len(plan.to_train)
    counts = [f"{plan.planned} planned", f"{plan.done} done", f"{plan.failed} failed"]
    counts.append(f"{left} to train")
    if plan.partly_trained:
        counts[-1] += f" ({plan.partly_trained} partly trained, saved)"
    time = "unknown until the first cells are done" if seconds is None else duration(seconds)
    work = [f"{_packs(plan)}, estimated time {time}"] if left else ["Nothing is left to train."]
    return [" · ".join(counts), *work]


def _values(plan: Forecast, seconds: float | None) -> dict[str, Any]:
    return {**vars(plan), "to_train": len(plan.to_train), "seconds": seconds}


def _packs(plan: Forecast) -> str:
    if plan.packs is None or plan.workers is None:
        return "as many packs as the cluster has room for"
    size = max(plan.packs, default=0)
    packs = f"{len(plan.packs)} pack{'s' * (len(plan.packs) != 1)} of up to {cells(size)}"
    return f"{packs} on {plan.workers} worker{'s' * (plan.workers != 1)}"


def _by_name(configs: Sequence[RunConfig]) -> dict[str, RunConfig]:
    return {config.identity: config for config in configs}
