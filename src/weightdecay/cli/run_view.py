"""A training followed to its end: the bar while it runs, the files it leaves, the table after."""

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from weightdecay import checks
from weightdecay.cli import run_tables
from weightdecay.cli.devices import device_of
from weightdecay.cli.output import say_json
from weightdecay.cli.printing import say, say_table
from weightdecay.cli.progress import Bars
from weightdecay.cli.signals import stopped_gently
from weightdecay.cli.tensorboard import board
from weightdecay.progress import training_line
from weightdecay.records import Event, Notice, Progress, Record, RunConfig
from weightdecay.runs import Ensemble, ensemble
from weightdecay.runs.checkpoints import Shelf
from weightdecay.sweeps.single import run_events, store_of
from weightdecay.tasks import Task, load


def follow(options: argparse.Namespace) -> int:
    """Train what the options say, and return the exit status."""
    task = load(options.task)
    config = _config(options, task)
    device = _device(options)
    folder = store_of(config, options.out).folder
    shelf = Shelf(folder, config)
    leads = os.environ.get("RANK", "0") == "0"
    try:
        with (
            _together(device),
            board(options.tensorboard if leads else None, config.identity) as draw,
        ):
            events = run_events(
                config, folder=options.out, device=device, task=task, fresh=options.fresh
            )
            if not leads:
                for _ in events:
                    pass
                return 0
            with stopped_gently(alone=not dist.is_initialized()) as stopping:
                records = _watch(events, draw, stopping, quiet=options.quiet)
    except KeyboardInterrupt:
        if leads:
            say(_how_to_go_on(shelf, fresh=options.fresh), file=sys.stderr)
        return 130
    solutions = [] if records[-1].diverged else shelf.solutions()
    ensembles = []
    if options.ensemble and solutions:
        ensembles = ensemble(config, folder=folder, device=device, task=task)
    if options.json:
        say_json(_values(config, folder, records, solutions, ensembles))
    else:
        _show(config, folder, records, solutions, ensembles)
    return 0


def _show(
    config: RunConfig,
    folder: Path,
    records: list[Record],
    solutions: list[Path],
    ensembles: list[Ensemble],
) -> None:
    rows = run_tables.of_records(records)
    say_table(rows)
    if hidden := len(records) - len(rows[1:]):
        export = f"weightdecay export {folder} run.csv"
        say(f"{hidden} epochs are not shown. `{export}` writes all of them.")
    say(f"run {config.identity}, kept in {folder}")
    if records[-1].diverged:
        say(f"It diverged in epoch {records[-1].epoch}: a result, and kept like any other.")
    elif not solutions:
        say("Its solutions are gone; --fresh trains it again.")
    else:
        say(f"The solution to use is the most recent cycle's: {solutions[-1]}")
    if ensembles:
        say_table(run_tables.of_ensembles(ensembles, records[-1].metric))


def _values(
    config: RunConfig,
    folder: Path,
    records: list[Record],
    solutions: list[Path],
    ensembles: list[Ensemble],
) -> dict[str, Any]:
    return {
        "run": config.identity,
        "folder": folder,
        "config": config.as_dict(),
        "diverged": records[-1].diverged,
        "records": [asdict(record) for record in records],
        "solutions": solutions,
        "ensembles": [asdict(one) for one in ensembles],
    }


def _config(options: argparse.Namespace, task: Task) -> RunConfig:
    values = {field.name: getattr(options, field.name) for field in fields(RunConfig)}
    if options.model is None:
        values["model"] = next(iter(task.models))
    return RunConfig(**values)


def _device(options: argparse.Namespace) -> torch.device:
    """Return where to train, with the threads that are asked for."""
    name = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    device = device_of(name)
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    threads = 1 if options.threads is None and device.type == "cpu" else options.threads
    if threads is not None:
        torch.set_num_threads(checks.whole("threads", threads, at_least=1))
    return device


@contextmanager
def _together(device: torch.device) -> Iterator[None]:
    """Join the processes that torchrun started, where it did."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
        dist.barrier()  # one that leaves early takes its peers' connections down with it
    finally:
        gc.collect()  # DDP holds the group in cycles, and its threads must be joined before the end
        dist.destroy_process_group()


def _watch(
    events: Iterator[Event],
    draw: Callable[[Record], None],
    stopping: Callable[[], bool],
    *,
    quiet: bool,
) -> list[Record]:
    """Show what a training yields, and return its records."""
    records = []
    with Bars(quiet=quiet, at_once=False) as bars:
        for event in events:
            match event:
                case Progress():
                    bars.draw([(event.update / event.updates, training_line(event))])
                    if stopping():
                        events.close()  # type: ignore[attr-defined]
                        raise KeyboardInterrupt
                case Notice() if not quiet:
                    bars.say(event.text)
                case Record():
                    records.append(event)
                    draw(event)
    return records


def _how_to_go_on(shelf: Shelf, *, fresh: bool) -> str:
    command = "the same command without --fresh" if fresh else "the same command"
    if not shelf.checkpoints():
        return f"Stopped before the first checkpoint: {command} begins again."
    return f"Stopped: {command} goes on from the last checkpoint."
