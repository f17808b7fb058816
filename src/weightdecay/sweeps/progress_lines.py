"""The progress of a sweep: one line for the whole sweep, and one per worker."""

from weightdecay.progress import Line, duration, pack_line
from weightdecay.sweeps.events import Idle, SweepEvent, Working
from weightdecay.sweeps.status import Status


class SweepLines:
    """The lines to show, updated by the sweep's events."""

    def __init__(self) -> None:
        self.status: Status | None = None
        self.workers: dict[int, Line] = {}

    def take(self, event: SweepEvent) -> None:
        """Update the lines."""
        match event:
            case Status():
                self.status = event
            case Working():
                self.workers[event.worker] = _worker_line(event)
            case Idle():
                self.workers.pop(event.worker, None)

    def lines(self) -> list[Line]:
        """Return the current lines; none before the first status."""
        if self.status is None:
            return []
        return [sweep_line(self.status), *(self.workers[one] for one in sorted(self.workers))]


def sweep_line(status: Status) -> Line:
    """Return the share of cells that are done or failed, and the counts as text."""
    parts = [f"{status.done} of {status.planned} done", f"{status.running} running"]
    parts += [f"{status.diverged} diverged"] * bool(status.diverged)
    parts += [f"{status.failed} failed"] * bool(status.failed)
    left = "unknown" if status.seconds_left is None else duration(status.seconds_left)
    text = " · ".join([*parts, f"time left {left}"])
    return (status.done + status.failed) / status.planned, text


def cells(count: int) -> str:
    """Return 1 cell, 2 cells."""
    return f"{count} cell{'s' * (count != 1)}"


def _worker_line(event: Working) -> Line:
    name = f"worker {event.worker + 1}, {cells(event.cells)}"
    if event.unheard:
        return None, f"{name}: no message for {duration(event.unheard)}"
    if event.progress is None:
        return None, f"{name}: starting"
    share = event.progress.update / event.progress.updates
    return share, f"{name}: {pack_line(event.progress)}"
