"""A sweep followed to its end: a line for it and one for each worker, and failures at once."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from weightdecay.cli import forecast, status
from weightdecay.cli.output import say_json
from weightdecay.cli.printing import say, say_table
from weightdecay.cli.progress import Bars
from weightdecay.cli.run import command_of
from weightdecay.cli.signals import stopped_gently
from weightdecay.cli.summary import best_settings
from weightdecay.progress import duration
from weightdecay.records import Notice, RunConfig
from weightdecay.sweeps import CellFailed, Idle, Status, Store, SweepEvent, Working, sweep_events
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.name_checks import check_names
from weightdecay.sweeps.progress_lines import SweepLines, cells
from weightdecay.sweeps.status import without_paths

# Cells that fail for one reason, after which the rest of them are only counted; and seconds after
# which a worker that says nothing is spoken of, and again after twice as many. Counts of cells in a
# row, with some left and nobody at work, after which somebody else must have them.
_NAMED, _UNHEARD, _WAITING = 3, 300.0, 3


def follow(
    configs: Sequence[RunConfig],
    options: argparse.Namespace,
    *,
    retry: bool,
) -> int:
    """Sweep, show how it goes and what came of it, and return the exit status."""
    now = trained(configs, options, retry=retry, estimated=True)
    if now is None:
        return 130
    if options.json:
        say_json(status.values(options.folder)[0])
        return 1 if now.failed else 0
    say(status.line(now))
    asked = {config.identity for config in configs}
    runs = [run for run in Store(options.folder).runs() if run.config.identity in asked]
    if runs:
        best = best_settings(runs)
        say_table(best.rows)
        for text in (*best.notes, *status.doubts(options.folder, now)):
            say(text)
    if now.failed and not options.quiet:
        say(f"`weightdecay retry {options.folder}` tries the failed ones again.")
    return 1 if now.failed else 0


def trained(
    configs: Sequence[RunConfig],
    options: argparse.Namespace,
    *,
    retry: bool = False,
    estimated: bool = False,
) -> Status | None:
    """Sweep and show how it goes; None if it was stopped. `estimated` says first how long it is."""
    check_folder(options.folder)
    check_names(configs)
    engine, timeout = engine_of(options), options.timeout
    if (
        estimated
        and not options.quiet
        and (before := forecast.estimate(configs, options, engine, retry=retry))
    ):
        say(before, file=sys.stderr, flush=True)
    events = sweep_events(
        configs, folder=options.folder, engine=engine, retry=retry, timeout=timeout
    )
    screen = _Screen(options)
    if not _to_the_end(events, screen):
        say("Stopped. Run the same command again to continue.", file=sys.stderr)
        return None
    assert screen.lines.status is not None
    return screen.lines.status


def check_folder(folder: Path) -> None:
    """Raise if a sweep cannot be kept there."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"A sweep must be kept in a folder, and {folder} is a file.")


def _to_the_end(events: Iterator[SweepEvent], screen: "_Screen") -> bool:
    """Show all events, and return whether these were all: stopping may be asked for, twice."""
    try:
        with stopped_gently() as stopping, Bars() as bars:
            for event in events:
                screen.show(event, bars)
                if stopping():
                    bars.say("Stopping: what is being trained is saved. Once more stops at once.")
                    events.close()  # type: ignore[attr-defined]
                    return False
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):  # wherever it came, the sweep must not end gently now
            events.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
        return False
    return True


def engine_of(options: argparse.Namespace) -> Engine:
    """Return the engine that the options describe."""
    if options.address is not None and options.on != "ray":
        raise ValueError("`address` must be a Ray cluster's: say --on ray with it.")
    if options.on == "ray":
        from weightdecay.sweeps.ray_engine import OnRay

        return OnRay(options.address, options.workers, options.device)
    if options.device not in (None, "cpu"):  # a CPU is everywhere: torch need not come for it
        from weightdecay.cli.devices import device_of

        device_of(options.device)
    if options.on == "here":
        from weightdecay.sweeps.inprocess import Here

        if options.workers not in (None, 1):
            raise ValueError(f"`workers` must be 1 with --on here, got {options.workers}.")
        if options.timeout is not None:
            raise ValueError("`timeout` must be left out with --on here: nobody ends this process.")
        return Here(options.device)
    from weightdecay.sweeps.local import Local

    return Local(options.workers, options.device)


class _Screen:
    """What stands on the screen."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.lines = SweepLines()
        self._options = options
        # Workers that are silent, and the seconds after which they are spoken of next.
        self._silent: dict[int, float] = {}
        self._reasons: Counter[str] = Counter()
        self._idle_for = 0

    def show(self, event: SweepEvent, bars: Bars) -> None:
        self.lines.take(event)
        match event:
            case CellFailed():
                self._say_failure(event, bars)
            case _ if self._options.quiet:
                return
            case Status():
                busy = self.lines.workers or not event.left
                self._idle_for = 0 if busy else self._idle_for + 1
                if self._idle_for == _WAITING:
                    bars.say("Waiting for cells that another sweep of this folder trains.")
            case Working():
                self._idle_for = 0
                self._say_silence(event, bars)
            case Idle():
                self._silent.pop(event.worker, None)
            case Notice():
                bars.say(event.text)
        if not self._options.quiet and (lines := self.lines.lines()):
            bars.draw(lines)

    def _say_silence(self, event: Working, bars: Bars) -> None:
        """Speak of a worker that says nothing: it may be stuck, and a log has no line for it."""
        if not event.unheard:
            self._silent.pop(event.worker, None)
        elif event.unheard >= self._silent.get(event.worker, _UNHEARD):
            self._silent[event.worker] = 2 * event.unheard
            told = f"Worker {event.worker + 1} unheard for {duration(event.unheard)}"
            has = cells(event.cells)
            bars.say(f"{told}: it has {has}, and may be stuck. --timeout S ends such a worker.")

    def _say_failure(self, event: CellFailed, bars: Bars) -> None:
        """Name the first cells that fail for a reason; a mistake in a study is one of them all."""
        reason = event.failure.reason
        alike = without_paths(reason)
        self._reasons[alike] += 1
        times = self._reasons[alike]
        if times <= _NAMED:
            said = "for the same reason as one before" if times > 1 else reason
            command = command_of(event.config.as_dict(), device=self._options.device)
            bars.say(f"Failed: {said}\n  alone: {command}")
        elif times == _NAMED + 1:
            folder = self._options.folder
            bars.say(
                "More fail for this reason, and are counted: "
                f"`weightdecay status {folder} --failures` names them all."
            )
