"""Lanes in step, from where they are to the end: when to evaluate, what to record, when to save."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

import torch
import torch.distributed as dist

from weightdecay.records import (
    Environment,
    Event,
    Notice,
    Progress,
    Record,
    RunConfig,
    Saving,
    Started,
    Timing,
    finite,
    packed,
)
from weightdecay.runs.checkpoints import Keep, Shelf
from weightdecay.runs.environment import environment
from weightdecay.runs.lanes import Evaluation, Lanes, LaneState
from weightdecay.runs.stacked import Stacked

#: Seconds between checkpoints, and between signs of life.
CHECKPOINT_EVERY, PROGRESS_EVERY = 30.0, 0.25
#: Checkpoints that take longer than this are made less often, so that saving takes a fiftieth of
#: the time at most, but no less often than this. The shortest that it took is remembered for each
#: model and number of lanes.
SAVED_WITHIN, RAREST = CHECKPOINT_EVERY / 50, 600.0
_saving: dict[tuple[str, int], float] = {}


def leads() -> bool:
    """Whether this process is the one that records and saves."""
    return not dist.is_initialized() or dist.get_rank() == 0


class Pack:
    """Lanes in step, from where they are to the end."""

    def __init__(
        self,
        configs: list[RunConfig],
        shelves: list[Shelf | None],
        build: Callable[[list[RunConfig]], Lanes],
        states: list[LaneState],
        fingerprint: str,
        *,
        keep: Keep,
    ) -> None:
        self._configs, self._shelves, self._build = configs, shelves, build
        self._fingerprint, self._keep = fingerprint, keep
        self._lanes = build(configs)
        self._total = configs[0].epochs * self._lanes.per_epoch
        self._records: list[list[Record]] = [[] for _ in configs]
        here = environment(self._lanes.device)
        self._environments = [here] * len(configs)
        if states:
            self._lanes.load(states)
            for kept, state in zip(self._records, states, strict=True):
                kept += [Record(**values) for values in state["records"]]
            self._environments = [_before(state, here, self._total) for state in states]
        # Seconds and epochs that each lane has trained since its last record.
        self._seconds, self._epochs, self._piece = [0.0] * len(configs), [0] * len(configs), 1
        self._saved_at = self._shown_at = time.monotonic()

    def run(self) -> Iterator[Event]:
        """Yield what was made before, then train on."""
        for config, place in zip(self._configs, self._environments, strict=True):
            yield Started(config.identity, place)
        for epoch in zip_longest(*self._records):
            yield from filter(None, epoch)
        self._drop_diverged()
        yield from self._say_where_it_is()
        while self._configs and self._lanes.updates < self._total:
            yield from self._train_until(self._next_stop())
            yield from self._stand_still()
            ended = self._lanes.updates == self._total
            if self._must_save(ended=ended):
                yield from self._save()
            self._drop_diverged()  # first: once recorded, a cell's checkpoint must not come back
            if self._configs and not ended and self._due():
                yield from self._save()

    def _must_save(self, *, ended: bool) -> bool:
        """Whether a checkpoint is due however long ago the last one was made."""
        if ended or self._diverged():
            return self._keep.checkpoints
        return self._keep.solutions and bool(self._cycles_ended())

    def _stand_still(self) -> Iterator[Event]:
        """Do what is to be done at a cycle's or an epoch's end."""
        self._lanes.verify()
        if self._keep.solutions:
            yield from self._keep_solutions()
        if self._lanes.updates % self._lanes.per_epoch == 0:
            yield from self._end_epoch()

    def _say_where_it_is(self) -> Iterator[Event]:
        made, total = self._lanes.updates, self._total
        if made == total:
            yield Notice("Trained before: these are its records.")
        elif made and self._configs:
            yield Notice(f"Taken up at update {made} of {total}.")
        cut = {
            cycle.index + 1
            for schedule in self._lanes.schedules
            if (cycle := schedule.cycle(total - 1)).end not in (None, total)
        }
        if made < total and cut:
            numbers = ", ".join(map(str, sorted(cut)))
            yield Notice(f"The budget ends in the middle of a cycle, the run's {numbers}.")

    def _next_stop(self) -> int:
        """Return the update at which an epoch or a cycle ends, or the time has come to save."""
        now, per_epoch = self._lanes.updates, self._lanes.per_epoch
        ends = [now - now % per_epoch + per_epoch]
        for schedule in self._lanes.schedules:
            end = schedule.cycle(now).end
            ends += [] if end is None else [end]
        return min(end for end in ends if end > now)

    def _train_until(self, stop: int) -> Iterator[Event]:
        """Train in pieces short enough to be shown, and to be saved between."""
        lanes, count = self._lanes, len(self._configs)
        while lanes.updates < stop:
            begun = time.monotonic()
            made = min(self._piece, stop - lanes.updates)
            lanes.advance(made)
            if lanes.device.type == "cuda":
                torch.cuda.synchronize(lanes.device)
            now = time.monotonic()
            self._seconds = [seconds + now - begun for seconds in self._seconds]
            quick = now - begun < PROGRESS_EVERY / 2
            self._piece = 2 * made if quick else max(1, made // 2)
            if now - self._shown_at > PROGRESS_EVERY:
                self._shown_at = now
                try:
                    yield self._progress(made * count / max(now - begun, 1e-9))
                except GeneratorExit:  # stopped by whoever listens: nothing is lost
                    if lanes.updates == stop:
                        list(self._stand_still())
                    list(self._save())
                    raise
            if self._due() and lanes.updates < stop:
                yield from self._save()

    def _progress(self, speed: float) -> Progress:
        lanes = self._lanes
        loss, error = min(lanes.gathered())
        return Progress(
            update=lanes.updates,
            updates=self._total,
            epoch=(lanes.updates - 1) // lanes.per_epoch + 1,
            epochs=self._configs[0].epochs,
            loss=loss,
            error=error,
            metric=lanes.task.measure.name,
            multiplier=lanes.schedules[0](lanes.updates - 1),
            speed=speed,
            lanes=len(self._configs),
        )

    def _end_epoch(self) -> Iterator[Event]:
        self._epochs = [epochs + 1 for epochs in self._epochs]
        if due := self._due_records():
            yield from self._recorded(due)
        self._lanes.begin_epoch()

    def _due_records(self) -> list[int]:
        """Return the lanes that this epoch leaves a record of, those that diverged among them."""
        epoch, config = self._lanes.updates // self._lanes.per_epoch, self._configs[0]
        if epoch == config.epochs or (config.evaluate_every and epoch % config.evaluate_every == 0):
            return list(range(len(self._configs)))
        return sorted({*self._cycles_ended(), *self._not_finite()})

    def _not_finite(self) -> list[int]:
        """Return the lanes whose loss or weights are no longer numbers."""
        lanes = self._lanes
        losses = [loss for loss, _ in lanes.gathered()[: len(self._configs)]]
        return [
            lane
            for lane, loss in enumerate(losses)
            if finite(loss) is None or finite(lanes.weight_norm(lane)) is None
        ]

    def _recorded(self, due: list[int]) -> Iterator[Event]:
        lanes, begun = self._lanes, time.monotonic()
        assert lanes.task.choices is not None
        tested = lanes.evaluate(lanes.task.test)
        chosen = (
            tested if lanes.task.choices is lanes.task.test else lanes.evaluate(lanes.task.choices)
        )
        evaluation = time.monotonic() - begun
        gathered = lanes.gathered()
        for lane in due:
            config, (loss, error) = self._configs[lane], gathered[lane]
            norm = lanes.weight_norm(lane)
            lr, decay = lanes.rates(lane)
            judged = loss, norm, chosen[lane].error, tested[lane].error
            diverged = any(finite(value) is None for value in judged)
            ended = diverged or lanes.updates == self._total
            record = Record(
                run=config.identity,
                epoch=lanes.updates // lanes.per_epoch,
                updates=lanes.updates,
                train_loss=finite(loss),
                train_error=finite(error),
                validation_loss=finite(chosen[lane].loss),
                validation_error=finite(chosen[lane].error),
                validation_error_top5=finite(chosen[lane].error_top5),
                test_loss=finite(tested[lane].loss),
                test_error=finite(tested[lane].error),
                test_error_top5=finite(tested[lane].error_top5),
                lr=lr,
                decay=decay,
                weight_norm=finite(norm),
                cycle_ended=lane in self._cycles_ended(),
                budget=self._total,
                cycle_updates=lanes.schedules[lane].cycle(lanes.updates - 1).length or self._total,
                missed=_missed(tested[lane]) if config.keep_missed and ended else None,
                metric=lanes.task.measure.name,
                diverged=diverged,
            )
            self._records[lane].append(record)
            yield record
            yield Timing(
                run=config.identity,
                epoch=record.epoch,
                epochs=self._epochs[lane],
                training=self._seconds[lane],
                evaluation=evaluation,
                lanes=len(self._configs),
            )
            self._seconds[lane], self._epochs[lane] = 0.0, 0

    def _cycles_ended(self) -> dict[int, int]:
        """Return the lanes whose last update was their cycle's last, and the cycle's number.

        A cycle without an end ends with the run. One that the run cuts short has not ended.
        """
        made = self._lanes.updates
        found = {}
        for lane, schedule in enumerate(self._lanes.schedules[: len(self._configs)]):
            cycle = schedule.cycle(made - 1)
            if made == (self._total if cycle.end is None else cycle.end):
                found[lane] = cycle.index
        return found

    def _keep_solutions(self) -> Iterator[Event]:
        kept = self._cycles_ended()
        if self._lanes.updates == self._total:  # without a cycle that ended, the end must do
            at_end = enumerate(s.cycle(self._total - 1).index for s in self._lanes.schedules)
            kept |= {lane: 0 for lane, index in at_end if not index and lane < len(self._configs)}
        for lane, cycle in kept.items():
            shelf = self._shelves[lane]
            if shelf is None or not leads() or finite(self._lanes.weight_norm(lane)) is None:
                continue
            try:
                shelf.keep_solution(cycle, self._lanes.solution(lane))
            except OSError as error:
                yield Notice(f"The solution of cycle {cycle} could not be written: {error}.")

    def _due(self) -> bool:
        took = _saving.get(self._kind(), 0.0)
        every = min(CHECKPOINT_EVERY * max(1.0, took / SAVED_WITHIN), RAREST)
        return time.monotonic() - self._saved_at > every

    def _kind(self) -> tuple[str, int]:
        """Return what the time that saving takes depends on."""
        return self._lanes.configs[0].model, len(self._configs)

    def _save(self) -> Iterator[Event]:
        self._lanes.verify()  # or what is wrong would be taken up, and pass from then on
        begun, whole = time.monotonic(), True
        for lane, shelf in enumerate(self._shelves):
            if shelf is None or not leads():
                continue
            yield Saving()
            extra: dict[str, Any] = {
                "stacked": isinstance(self._lanes, Stacked),
                "task": self._fingerprint,
                "environment": asdict(self._environments[lane]),
                "records": [asdict(record) for record in self._records[lane]],
            }
            try:
                shelf.save({**self._lanes.state(lane), **extra})
            except OSError as error:
                if self._keep.checkpoints and self._lanes.updates == self._total:
                    raise
                whole = False
                where, why = shelf.folder.parent, error.strerror or error
                yield Notice(
                    f"No checkpoint could be written to {where} ({why}); training goes on."
                )
        self._saved_at = time.monotonic()
        if whole:
            took, kind = self._saved_at - begun, self._kind()
            _saving[kind] = min(took, _saving.get(kind, took))

    def _diverged(self) -> set[int]:
        return {n for n, kept in enumerate(self._records) if kept and kept[-1].diverged}

    def _drop_diverged(self) -> None:
        """Go on without the lanes that diverged; the others do not notice."""
        gone = self._diverged()
        if not gone:
            return
        left = [n for n in range(len(self._configs)) if n not in gone]
        states = [self._lanes.state(n) for n in left]
        self._configs = [self._configs[n] for n in left]
        self._shelves = [self._shelves[n] for n in left]
        self._records = [self._records[n] for n in left]
        self._environments = [self._environments[n] for n in left]
        self._seconds = [self._seconds[n] for n in left]
        self._epochs = [self._epochs[n] for n in left]
        if left:
            self._lanes = self._build(self._configs)
            self._lanes.load(states)


def _before(state: LaneState, here: Environment, total: int) -> Environment:
    """Return where a lane was trained before, and here, if something of it is left to train."""
    unknown = dict.fromkeys(asdict(here), "unknown")  # as checkpoints were before
    before = Environment(**state.get("environment", unknown))
    records = state["records"]
    ended = state["updates"] == total or (records and records[-1]["diverged"])
    return before if ended else before.then(here)


def _missed(tested: Evaluation) -> str:
    assert tested.missed is not None, "refused before training, over several processes"
    return packed(tested.missed.tolist())
