"""Runs one training, shows its progress, and prints its results."""

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
from weightdecay.cli import run_tables, torchs_decay
from weightdecay.cli.devices import device_of
from weightdecay.cli.output import print_json
from weightdecay.cli.printing import echo, print_table
from weightdecay.cli.progress import Bars
from weightdecay.cli.signals import graceful_stop
from weightdecay.cli.tensorboard import board
from weightdecay.progress import training_line
from weightdecay.records import Event, Notice, Progress, Record, RunConfig
from weightdecay.runs import Ensemble, ensemble
from weightdecay.runs.checkpoints import RunFiles
from weightdecay.sweeps.single import run_events, store_of
from weightdecay.tasks import Task, load


def train_and_print(options: argparse.Namespace) -> int:
    """Train the configuration in the options, and return the exit status."""
    task = load(options.task)
    config = _config(options, task)
    device = _device(options)
    folder = store_of(config, options.out).folder
    files = RunFiles(folder, config)
    leads = os.environ.get("RANK", "0") == "0"
    if leads and not options.quiet:
        torchs_decay.warn([config])
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
            with graceful_stop(alone=not dist.is_initialized()) as stopping:
                records = _collect(events, draw, stopping, quiet=options.quiet)
    except KeyboardInterrupt:
        if leads:
            echo(_how_to_continue(files, fresh=options.fresh), file=sys.stderr)
        return 130
    solutions = [] if records[-1].diverged else files.solutions()
    ensembles = []
    if options.ensemble and solutions:
        ensembles = ensemble(config, folder=folder, device=device, task=task)
    if options.json:
        print_json(_values(config, folder, records, solutions, ensembles))
    else:
        _show(config, folder, records, solutions, ensembles, quiet=options.quiet)
    return 0


def _show(
    config: RunConfig,
    folder: Path,
    records: list[Record],
    solutions: list[Path],
    ensembles: list[Ensemble],
    *,
    quiet: bool,
) -> None:
    rows = run_tables.of_records(records)
    print_table(rows)
    hidden = len(records) - len(rows[1:])
    if hidden and not quiet:
        export = f"weightdecay export {folder} run.csv"
        echo(f"{hidden} epochs are not shown. `{export}` writes all of them.")
    echo(f"Run {config.identity} is in {folder}")
    if records[-1].diverged:
        echo(f"It diverged in epoch {records[-1].epoch}. This is a result and is kept.")
    elif not solutions:
        echo("Its solutions were deleted, or not saved. --fresh trains it again.")
    else:
        echo(f"The solution to use, from the last cycle: {solutions[-1]}")
    if ensembles:
        print_table(run_tables.of_ensembles(ensembles, records[-1].metric))


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
    """Return the device to train on, after setting the number of threads."""
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
    """Join the process group, if torchrun started this process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
        dist.barrier()  # a process that leaves early closes the connections of its peers
    finally:
        gc.collect()  # DDP keeps the group in reference cycles; its threads must be joined
        dist.destroy_process_group()


def _collect(
    events: Iterator[Event],
    draw: Callable[[Record], None],
    stopping: Callable[[], bool],
    *,
    quiet: bool,
) -> list[Record]:
    """Show the progress of a training, and return its records."""
    records = []
    with Bars(quiet=quiet, at_once=False) as bars:
        for event in events:
            match event:
                case Progress():
                    bars.draw([(event.update / event.updates, training_line(event))])
                    if stopping():
                        events.close()  # type: ignore[attr-defined]
                        raise KeyboardInterrupt
                case Notice() if event.problem or not quiet:
                    bars.echo(event.text)
                case Record():
                    records.append(event)
                    draw(event)
    return records


def _how_to_continue(files: RunFiles, *, fresh: bool) -> str:
    again = " without --fresh" * fresh
    if not files.checkpoints():
        return "Stopped before the first checkpoint. Run the same command again to start over."
    return f"Stopped. Run the same command again{again} to continue from the last checkpoint."
