"""Trains lanes side by side to their end: decides when to evaluate, to record and to save."""

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
)
from weightdecay.runs.checkpoints import Keep, RunFiles
from weightdecay.runs.environment import environment
from weightdecay.runs.lanes import Lanes, LaneState
from weightdecay.runs.recording import cycles_ended, lanes_to_record, records_of
from weightdecay.runs.stacked import Stacked

#: Seconds between checkpoints, and between reports of progress.
CHECKPOINT_EVERY, PROGRESS_EVERY = 30.0, 0.25
#: Checkpoints that take longer than `SAVED_WITHIN` seconds are made less often, so that saving
#: takes at most a fiftieth of the time, but at least every `RAREST` seconds. `_saving` has the
#: shortest time that saving took, for each model and number of lanes.
SAVED_WITHIN, RAREST = CHECKPOINT_EVERY / 50, 600.0
_saving: dict[tuple[str, int], float] = {}


def leads() -> bool:
    """Whether this process is the first, which records and saves."""
    return not dist.is_initialized() or dist.get_rank() == 0


class Pack:
    """Lanes that train in step, from their present update to the end."""

    def __init__(
        self,
        configs: list[RunConfig],
        run_files: list[RunFiles | None],
        build: Callable[[list[RunConfig]], Lanes],
        states: list[LaneState],
        fingerprint: str,
        *,
        keep: Keep,
    ) -> None:
        self._configs, self._run_files, self._build = configs, run_files, build
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
        # Seconds and epochs of each lane since its last record; and how many updates are made at a
        # time.
        self._seconds, self._epochs, self._piece = [0.0] * len(configs), [0] * len(configs), 1
        self._saved_at = self._shown_at = time.monotonic()

    def run(self) -> Iterator[Event]:
        """Yield earlier records, then train on."""
        for config, place in zip(self._configs, self._environments, strict=True):
            yield Started(config.identity, place)
        for epoch in zip_longest(*self._records):
            yield from filter(None, epoch)
        self._drop_diverged()
        yield from self._start_notices()
        while self._configs and self._lanes.updates < self._total:
            yield from self._train_until(self._next_stop())
            yield from self._pause()
            ended = self._lanes.updates == self._total
            if self._must_save(ended=ended):
                yield from self._save()
            self._drop_diverged()  # first: a recorded cell must not get a new checkpoint
            if self._configs and not ended and self._due():
                yield from self._save()

    def _must_save(self, *, ended: bool) -> bool:
        """Whether a checkpoint is needed even if the last one is recent."""
        if ended or self._diverged():
            return self._keep.checkpoints
        return self._keep.solutions and bool(self._cycles_ended())

    def _pause(self) -> Iterator[Event]:
        """Do what is due at the end of a cycle or an epoch."""
        self._lanes.verify()
        if self._keep.solutions:
            yield from self._keep_solutions()
        if self._lanes.updates % self._lanes.per_epoch == 0:
            yield from self._end_epoch()

    def _start_notices(self) -> Iterator[Event]:
        made, total = self._lanes.updates, self._total
        if made == total:
            yield Notice("This run was already trained: these are its records.")
        elif made and self._configs:
            yield Notice(f"Resumed at update {made} of {total}.")
        cut = {
            cycle.index + 1
            for schedule in self._lanes.schedules
            if (cycle := schedule.cycle(total - 1)).end not in (None, total)
        }
        if made < total and cut:
            numbers = ", ".join(map(str, sorted(cut)))
            yield Notice(f"The run ends in the middle of cycle {numbers}.")

    def _next_stop(self) -> int:
        """Return the update at which the next epoch or cycle ends."""
        now, per_epoch = self._lanes.updates, self._lanes.per_epoch
        ends = [now - now % per_epoch + per_epoch]
        for schedule in self._lanes.schedules:
            end = schedule.cycle(now).end
            ends += [] if end is None else [end]
        return min(end for end in ends if end > now)

    def _train_until(self, stop: int) -> Iterator[Event]:
        """Train in pieces that are short enough to report progress and to save in between."""
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
                except GeneratorExit:  # the caller stops: save first
                    if lanes.updates == stop:
                        list(self._pause())
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
        if due := lanes_to_record(self._lanes, len(self._configs), self._total):
            yield from self._recorded(due)
        self._lanes.begin_epoch()

    def _recorded(self, due: list[int]) -> Iterator[Event]:
        lanes, begun = self._lanes, time.monotonic()
        records = records_of(lanes, due, self._total)
        evaluation = time.monotonic() - begun
        for lane, record in zip(due, records, strict=True):
            self._records[lane].append(record)
            yield record
            yield Timing(
                run=record.run,
                epoch=record.epoch,
                epochs=self._epochs[lane],
                training=self._seconds[lane],
                evaluation=evaluation,
                lanes=len(self._configs),
            )
            self._seconds[lane], self._epochs[lane] = 0.0, 0

    def _cycles_ended(self) -> dict[int, int]:
        return cycles_ended(self._lanes, len(self._configs), self._total)

    def _keep_solutions(self) -> Iterator[Event]:
        kept = self._cycles_ended()
        if self._lanes.updates == self._total:  # if no cycle has ended, keep the final weights
            at_end = enumerate(s.cycle(self._total - 1).index for s in self._lanes.schedules)
            kept |= {lane: 0 for lane, index in at_end if not index and lane < len(self._configs)}
        for lane, cycle in kept.items():
            files = self._run_files[lane]
            if files is None or not leads() or finite(self._lanes.weight_norm(lane)) is None:
                continue
            try:
                files.keep_solution(cycle, self._lanes.solution(lane))
            except OSError as error:
                yield Notice(
                    f"The solution of cycle {cycle} could not be saved: {error}.", problem=True
                )

    def _due(self) -> bool:
        took = _saving.get(self._kind(), 0.0)
        every = min(CHECKPOINT_EVERY * max(1.0, took / SAVED_WITHIN), RAREST)
        return time.monotonic() - self._saved_at > every

    def _kind(self) -> tuple[str, int]:
        """Return what the time for saving depends on."""
        return self._lanes.configs[0].model, len(self._configs)

    def _save(self) -> Iterator[Event]:
        self._lanes.verify()  # or a wrong state would be resumed from, and pass from then on
        begun, whole = time.monotonic(), True
        for lane, files in enumerate(self._run_files):
            if files is None or not leads():
                continue
            yield Saving()
            extra: dict[str, Any] = {
                "stacked": isinstance(self._lanes, Stacked),
                "task": self._fingerprint,
                "environment": asdict(self._environments[lane]),
                "records": [asdict(record) for record in self._records[lane]],
            }
            try:
                files.save({**self._lanes.state(lane), **extra})
            except OSError as error:
                if self._keep.checkpoints and self._lanes.updates == self._total:
                    raise
                whole = False
                where, why = files.folder.parent, error.strerror or error
                yield Notice(
                    f"No checkpoint could be written to {where} ({why}); training continues.",
                    problem=True,
                )
        self._saved_at = time.monotonic()
        if whole:
            took, kind = self._saved_at - begun, self._kind()
            _saving[kind] = min(took, _saving.get(kind, took))

    def _diverged(self) -> set[int]:
        return {n for n, kept in enumerate(self._records) if kept and kept[-1].diverged}

    def _drop_diverged(self) -> None:
        """Continue without the lanes that diverged, which does not affect the others."""
        gone = self._diverged()
        if not gone:
            return
        left = [n for n in range(len(self._configs)) if n not in gone]
        states = [self._lanes.state(n) for n in left]
        self._configs = [self._configs[n] for n in left]
        self._run_files = [self._run_files[n] for n in left]
        self._records = [self._records[n] for n in left]
        self._environments = [self._environments[n] for n in left]
        self._seconds = [self._seconds[n] for n in left]
        self._epochs = [self._epochs[n] for n in left]
        if left:
            self._lanes = self._build(self._configs)
            self._lanes.load(states)


def _before(state: LaneState, here: Environment, total: int) -> Environment:
    """Return where a lane was trained before, and here, if it is not finished yet."""
    unknown = dict.fromkeys(asdict(here), "unknown")  # older checkpoints do not have it
    before = Environment(**state.get("environment", unknown))
    records = state["records"]
    ended = state["updates"] == total or (records and records[-1]["diverged"])
    return before if ended else before.then(here)
