"""A sweep followed to its end: a line for it and one for each worker, and failures at once."""

import argparse
import sys
from collections.abc import Sequence

from weightdecay.cli import report, standing
from weightdecay.cli.progress import Bars
from weightdecay.cli.run import command_of
from weightdecay.cli.stopping import stopped_gently
from weightdecay.records import Notice, RunConfig
from weightdecay.sweeps import CellFailed, Idle, Standing, SweepEvent, Working, sweep
from weightdecay.sweeps.engine import Engine


def follow(configs: Sequence[RunConfig], options: argparse.Namespace, *, retry: bool) -> int:
    """Sweep, show how it goes, and return the exit status."""
    screen = _Screen()
    try:
        with stopped_gently() as stopping, Bars() as bars:
            events = sweep(configs, folder=options.folder, engine=_engine(options), retry=retry)
            for event in events:
                screen.show(event, bars)
                if stopping():
                    bars.say("Stopping: what is being trained is saved. Once more stops at once.")
                    events.close()  # type: ignore[attr-defined]
                    return _stopped()
    except KeyboardInterrupt:
        return _stopped()
    assert screen.standing is not None
    print(standing.line(screen.standing))
    if screen.standing.failed:
        print(f"`weightdecay retry {options.folder}` tries the failed ones again.")
        return 1
    return 0


def _stopped() -> int:
    print("Stopped: the same command goes on with it.", file=sys.stderr)
    return 130


def _engine(options: argparse.Namespace) -> Engine:
    if options.on == "here":
        from weightdecay.sweeps.here import Here

        return Here(options.device)
    if options.on == "ray":
        from weightdecay.sweeps.onray import OnRay

        return OnRay(options.address, options.workers, options.device)
    from weightdecay.sweeps.local import Local

    return Local(options.workers, options.device)


class _Screen:
    """What stands on the screen."""

    def __init__(self) -> None:
        self.standing: Standing | None = None
        self._workers: dict[int, tuple[float | None, str]] = {}
        self._reasons: set[str] = set()

    def show(self, event: SweepEvent, bars: Bars) -> None:
        match event:
            case Standing():
                self.standing = event
            case Working():
                self._workers[event.worker] = _of_worker(event)
            case Idle():
                self._workers.pop(event.worker, None)
            case Notice():
                bars.say(event.text)
            case CellFailed():
                bars.say(self._failure(event))
        if self.standing is not None:
            share = (self.standing.done + self.standing.failed) / self.standing.planned
            whole = (share, standing.line(self.standing))
            bars.draw_all([whole, *(self._workers[n] for n in sorted(self._workers))])

    def _failure(self, event: CellFailed) -> str:
        reason = event.failure.reason
        said = "for the same reason as one before" if reason in self._reasons else reason
        self._reasons.add(reason)
        return f"Failed: {said}\n  alone: {command_of(event.config.as_dict())}"


def _of_worker(event: Working) -> tuple[float | None, str]:
    name = f"worker {event.worker + 1}, {event.cells} cell{'s' * (event.cells != 1)}"
    if event.progress is None:
        return None, f"{name}: begins"
    share = event.progress.update / event.progress.updates
    return share, f"{name}: {report.line(event.progress)}"
