"""Runs a sweep, shows its progress and its failures, and prints its results."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from weightdecay.cli import forecast, status
from weightdecay.cli.output import print_json
from weightdecay.cli.printing import echo, print_table
from weightdecay.cli.progress import Bars
from weightdecay.cli.run import command_of
from weightdecay.cli.signals import graceful_stop
from weightdecay.cli.summary import summary
from weightdecay.progress import duration
from weightdecay.records import Notice, RunConfig
from weightdecay.sweeps import CellFailed, Idle, Status, Store, SweepEvent, Working, sweep_events
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.name_checks import check_names
from weightdecay.sweeps.progress_lines import SweepLines, cells
from weightdecay.sweeps.status import without_paths

# How many cells that fail for the same reason are listed; the others are counted.
_LISTED = 3
# Seconds without a message after which a worker is reported, and again after twice as many.
_SILENT_FOR = 300.0
# How often in a row nobody works on the cells that are left, before another sweep must have them.
_IDLE_COUNTS = 3


def sweep_and_print(
    configs: Sequence[RunConfig],
    options: argparse.Namespace,
    *,
    retry: bool,
) -> int:
    """Sweep, show the progress, print the results, and return the exit status."""
    now = sweep_all(configs, options, retry=retry, estimated=True)
    if now is None:
        return 130
    if options.json:
        print_json(status.values(options.folder)[0])
        return 1 if now.failed else 0
    echo(status.line(now))
    asked = {config.identity for config in configs}
    runs = [run for run in Store(options.folder).runs() if run.config.identity in asked]
    if runs:
        best = summary(options.folder, runs)
        if best.rows:
            print_table(best.rows)
        for note in (*best.notes, *status.doubts(options.folder, now)):
            echo(note)
    if now.failed and not options.quiet:
        echo(f"To train the failed cells again, run `weightdecay retry {options.folder}`.")
    return 1 if now.failed else 0


def sweep_all(
    configs: Sequence[RunConfig],
    options: argparse.Namespace,
    *,
    engine: Engine | None = None,
    retry: bool = False,
    estimated: bool = False,
) -> Status | None:
    """Sweep and show the progress. Return the status at the end, or None if it was stopped.

    The engine is the one that the options ask for, unless one is given.
    With `estimated`, the time that a long sweep may take is estimated by a trial, and printed
    first. Otherwise it is printed as soon as the workers know how fast they are.
    """
    check_folder(options.folder)
    check_names(configs)
    engine, timeout = engine or engine_of(options), options.timeout
    if (
        estimated
        and not options.quiet
        and (estimate := forecast.estimate(configs, options, engine, retry=retry))
    ):
        echo(estimate, file=sys.stderr, flush=True)
    events = sweep_events(
        configs, folder=options.folder, engine=engine, retry=retry, timeout=timeout
    )
    screen = _Screen(options, estimates=not estimated)
    if not _to_the_end(events, screen):
        echo("Stopped. Run the same command again to continue.", file=sys.stderr)
        return None
    assert screen.lines.status is not None
    return screen.lines.status


def check_folder(folder: Path) -> None:
    """Raise if a sweep cannot be kept in this folder."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out must be a folder, and {folder} is a file. Name another one.")


def _to_the_end(events: Iterator[SweepEvent], screen: "_Screen") -> bool:
    """Show all events, and return whether the sweep ended. Ctrl-C saves, a second one stops."""
    try:
        with graceful_stop() as stopping, Bars() as bars:
            for event in events:
                screen.show(event, bars)
                if stopping():
                    bars.echo("Saving and stopping. Press Ctrl-C again to stop at once.")
                    events.close()  # type: ignore[attr-defined]
                    return False
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):  # the sweep must stop without saving
            events.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
        return False
    return True


def engine_of(options: argparse.Namespace) -> Engine:
    """Return the engine for the options."""
    if options.address is not None and options.on != "ray":
        raise ValueError("`address` must be used with --on ray: it is a Ray cluster's.")
    if options.on == "ray":
        from weightdecay.sweeps.ray_engine import OnRay

        return OnRay(options.address, options.workers, options.device)
    if options.device not in (None, "cpu"):  # every machine has a CPU: no need to import torch
        from weightdecay.cli.devices import device_of

        device_of(options.device)
    if options.on == "here":
        from weightdecay.sweeps.inprocess import InProcess

        if options.workers not in (None, 1):
            raise ValueError(f"`workers` must be 1 with --on here, got {options.workers}.")
        if options.timeout is not None:
            raise ValueError(
                "`timeout` must be left out with --on here: it kills worker processes."
            )
        return InProcess(options.device)
    from weightdecay.sweeps.local import Local

    return Local(options.workers, options.device)


class _Screen:
    """Shows the events of a sweep: lines for the sweep and its workers, notices and failures."""

    def __init__(self, options: argparse.Namespace, *, estimates: bool = False) -> None:
        self.lines = SweepLines()
        self._options = options
        # Whether the estimated time is still to be printed.
        self._estimates = estimates
        # Silent workers, and the seconds of silence after which each is reported next.
        self._silent: dict[int, float] = {}
        self._reasons: Counter[str] = Counter()
        self._idle_counts = 0

    def show(self, event: SweepEvent, bars: Bars) -> None:
        self.lines.take(event)
        match event:
            case CellFailed():
                self._report_failure(event, bars)
            case Notice(problem=True):
                bars.echo(event.text)
            case _ if self._options.quiet:
                return
            case Status():
                seconds = event.seconds_left
                if self._estimates and seconds is not None and seconds >= 1:
                    self._estimates = False
                    bars.echo(f"Estimated time: {duration(seconds)}")
                busy = self.lines.workers or not event.left
                self._idle_counts = 0 if busy else self._idle_counts + 1
                if self._idle_counts == _IDLE_COUNTS:
                    bars.echo("Waiting for cells that another sweep of this folder is training.")
            case Working():
                self._idle_counts = 0
                self._report_silence(event, bars)
            case Idle():
                self._silent.pop(event.worker, None)
            case Notice():
                bars.echo(event.text)
        if not self._options.quiet and (lines := self.lines.lines()):
            bars.draw(lines)

    def _report_silence(self, event: Working, bars: Bars) -> None:
        """Report a worker that sends no messages: it may be stuck, and a log does not show it."""
        if not event.unheard:
            self._silent.pop(event.worker, None)
        elif event.unheard >= self._silent.get(event.worker, _SILENT_FOR):
            self._silent[event.worker] = 2 * event.unheard
            name = f"Worker {event.worker + 1} ({cells(event.cells)})"
            bars.echo(
                f"{name} has sent no message for {duration(event.unheard)} and may be stuck. "
                "--timeout S kills such a worker."
            )

    def _report_failure(self, event: CellFailed, bars: Bars) -> None:
        """Report the first cells that fail for a reason. A mistake in a study fails them all."""
        reason = event.failure.reason
        alike = without_paths(reason)
        self._reasons[alike] += 1
        times = self._reasons[alike]
        if times <= _LISTED:
            text = "same reason as before" if times > 1 else reason
            command = command_of(event.config.as_dict(), device=self._options.device)
            bars.echo(f"Failed: {text}\n  to reproduce: {command}")
        elif times == _LISTED + 1:
            folder = self._options.folder
            bars.echo(
                "More cells fail for this reason. "
                f"`weightdecay status {folder} --failures` lists all of them."
            )
