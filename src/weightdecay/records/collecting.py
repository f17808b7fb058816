"""What trainings yield, epoch by epoch, into finished runs and what they cost."""

from collections.abc import Iterable

from weightdecay.records.codec import Cost
from weightdecay.records.config import RunConfig
from weightdecay.records.events import Event, Notice, Progress, Saving, Started, Timing
from weightdecay.records.record import Environment, Record, Run


class Gathered:
    """The runs of some configurations, as far as their events have been taken in."""

    def __init__(self, configs: Iterable[RunConfig]) -> None:
        self._configs = {config.identity: config for config in configs}
        self._records: dict[str, list[Record]] = {run: [] for run in self._configs}
        self._costs = {run: Cost(run, 0.0, 0, 1) for run in self._configs}
        self._places: dict[str, Environment] = {}
        self._ended: list[str] = []

    def take(self, event: Event) -> Progress | Notice | Saving | None:
        """Take in what is part of a run; return an event that is for the person who waits."""
        match event:
            case Started():
                self._places[event.run] = event.environment
            case Record():
                self._records[event.run].append(event)
                if event.diverged or event.epoch == self._configs[event.run].epochs:
                    self._ended.append(event.run)
            case Timing():
                before = self._costs[event.run]
                spent = before.seconds + (event.training + event.evaluation) / event.lanes
                made = before.epochs + event.epochs
                self._costs[event.run] = Cost(event.run, spent, made, event.lanes)
            case _:
                return event
        return None

    def ended(self) -> list[tuple[Run, Cost]]:
        """Return the runs that have ended since this was last asked, and what they cost."""
        ended, self._ended = self._ended, []
        return [
            (
                Run(self._configs[run], tuple(self._records.pop(run)), self._places[run]),
                self._costs[run],
            )
            for run in ended
        ]
