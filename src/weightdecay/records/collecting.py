"""Collects the events of trainings into finished runs and their costs."""

from collections.abc import Iterable

from weightdecay.records.codec import Cost
from weightdecay.records.config import RunConfig
from weightdecay.records.events import Event, Notice, Progress, Saving, Started, Timing
from weightdecay.records.record import Environment, Record, Run


class RunCollector:
    """Collects the runs of some configurations from their events."""

    def __init__(self, configs: Iterable[RunConfig]) -> None:
        self._configs = {config.identity: config for config in configs}
        self._records: dict[str, list[Record]] = {run: [] for run in self._configs}
        self._costs = {run: Cost(run, 0.0, 0, 1) for run in self._configs}
        self._environments: dict[str, Environment] = {}
        self._finished: list[str] = []

    def add(self, event: Event) -> Progress | Notice | Saving | None:
        """Keep an event that is part of a run; return any other."""
        match event:
            case Started():
                self._environments[event.run] = event.environment
            case Record():
                self._records[event.run].append(event)
                if event.diverged or event.epoch == self._configs[event.run].epochs:
                    self._finished.append(event.run)
            case Timing():
                before = self._costs[event.run]
                spent = before.seconds + (event.training + event.evaluation) / event.lanes
                epochs = before.epochs + event.epochs
                self._costs[event.run] = Cost(event.run, spent, epochs, event.lanes)
            case _:
                return event
        return None

    def pop_finished(self) -> list[tuple[Run, Cost]]:
        """Return the runs that have finished since the last call, and what they cost."""
        finished, self._finished = self._finished, []
        return [
            (
                Run(self._configs[run], tuple(self._records.pop(run)), self._environments[run]),
                self._costs[run],
            )
            for run in finished
        ]
