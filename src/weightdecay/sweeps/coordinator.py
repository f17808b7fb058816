"""A sweep: the plan, less what is done, handed to an engine pack by pack until nothing is left.

Whoever listens is told at once of what happens. All that must not be lost is in the store before
anyone is told; all that this file remembers is forgotten with it.
"""

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

from weightdecay.records import Notice, Progress, RunConfig, Saving
from weightdecay.records.codec import Failure
from weightdecay.sweeps.claims import Claims
from weightdecay.sweeps.engine import (
    Died,
    Ended,
    Engine,
    Failed,
    Finished,
    Job,
    Message,
    Unheard,
)
from weightdecay.sweeps.events import CellFailed, Idle, SweepEvent, Working
from weightdecay.sweeps.packing import Pack, halves, packs
from weightdecay.sweeps.status import Status, Tally, Underway
from weightdecay.sweeps.store import Store, Writer
from weightdecay.sweeps.task_transfer import Handed

#: Deaths of its worker, without having come further, after which a pack is halved, or a cell given
#: up. Workers are killed for other reasons than what they train, so it takes more than one.
_DEATHS_OF_PACK, _DEATHS_OF_CELL = 3, 10
# Seconds between looks at cells that somebody else is training, and between counts of all cells;
# and those that a stop waits for another word from who is not saving.
_LOOK_EVERY, _COUNT_EVERY, _STOP_WITHIN = 0.5, 0.2, 10.0


@dataclass
class _Going:
    """A job that a worker has."""

    worker: int
    pack: Pack
    furthest: int = 0
    progress: Progress | None = None
    saving: bool = False

    def underway(self) -> Underway | None:
        """Return how much of it is behind it, where it has said so."""
        if self.progress is None or not self.pack or not self.progress.speed:
            return None
        epochs = self.pack[0].epochs
        share = self.progress.update / self.progress.updates
        cost = self.progress.updates / self.progress.speed / epochs
        behind = share * epochs * len(self.pack)
        return Underway(self.pack[0], behind, cost, self.progress.seconds_left)


class Coordinator:
    """What is left to do, who does it, and what has become of it."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        claims: Claims,
        engine: Engine,
        cells: dict[str, RunConfig],
        *,
        task: Handed | None = None,
    ) -> None:
        self._task = task
        self._store, self._writer, self._claims, self._engine = store, writer, claims, engine
        self._cells, self._tally = cells, Tally(cells)
        self._idle = list(range(engine.workers))  # a heap: the first of them goes first
        self._numbers = count(1)
        self._going: dict[int, _Going] = {}
        self._inbox: deque[tuple[int, Message]] = deque()
        self._left: deque[Pack] = deque()
        self._elsewhere: list[RunConfig] = []
        # Failures that are to be tried again, and count no more until there is another.
        self._forgiven: dict[str, Failure] = {}
        self._look_at, self._counted_at = -math.inf, -math.inf
        # How often packs have lost their workers at the furthest update that they have come to.
        self._deaths: dict[Pack, tuple[int, int]] = {}
        self._said: set[str] = set()
        # Cells that were trained in this sweep; and whether some are trained again, as a control.
        self._trained: list[str] = []
        self._repeating = False

    def run(self, *, retry: bool) -> Iterator[SweepEvent]:
        """Train what is not done."""
        ledger = self._store.refresh()
        yield from map(Notice, ledger.left_out)
        gone = [run for run in self._cells if run in ledger.finished]
        self._store.forget_checkpoints(gone)
        left = [
            config
            for run, config in self._cells.items()
            if run not in ledger.finished and (retry or run not in ledger.failures)
        ]
        if retry:
            self._forgiven = {
                run: ledger.failures[run] for run in self._cells if run in ledger.failures
            }
        self._share_out(left)
        yield self._standing()
        yield from self._train()
        yield self._standing()

    def repeat(self) -> Iterator[SweepEvent]:
        """Train a few cells again, in other company: what comes of them must be the same.

        They are of those that were trained just now, on the same device and by the same code.
        """
        ledger = self._store.refresh()
        done = sorted(run for run in self._trained if ledger.finished.get(run) is False)
        chosen = done[: math.floor(len(done) * self._engine.repeats + 0.5)]
        left = [self._cells[run] for run in chosen if run not in ledger.repeated]
        if left:
            yield Notice(f"Training {len(left)} of {len(done)} cells again, as a control.")
            self._repeating = True
            self._share_out(left)
            yield from self._train()
            yield self._standing()

    def _train(self) -> Iterator[SweepEvent]:
        try:
            while self._left or self._going or self._elsewhere:
                yield from self._begin_jobs()
                self._inbox += self._waited(_LOOK_EVERY)
                while self._inbox:
                    yield from self._heard(*self._inbox.popleft())
                self._look_elsewhere()
                if time.monotonic() - self._counted_at > _COUNT_EVERY:
                    yield self._standing()
        except GeneratorExit:
            self._stop()
            raise

    def _share_out(self, cells: Iterable[RunConfig]) -> None:
        self._left += packs(cells, workers=self._engine.workers, lanes=self._engine.lanes)

    def _begin_jobs(self) -> Iterator[SweepEvent]:
        while self._idle and self._left:
            pack = self._claimed(self._left.popleft())
            if pack:
                number, worker = next(self._numbers), heappop(self._idle)
                self._going[number] = _Going(worker, pack)
                self._engine.begin(Job(number, pack, self._folder().absolute(), self._task))
                yield Working(worker, len(pack), None)

    def _folder(self) -> Path:
        """Return where cells are saved while they are trained."""
        return self._store.repeats_folder if self._repeating else self._store.folder

    def _is_over(self, run: str) -> bool:
        """Whether a cell need not be trained: somebody has finished it, or given it up."""
        ledger = self._store.ledger
        if self._repeating:
            return run in ledger.repeated
        failure = ledger.failures.get(run)
        if failure is not self._forgiven.get(run):  # it was tried again, elsewhere
            self._forgiven.pop(run, None)
        return run in ledger.finished or (failure is not None and run not in self._forgiven)

    def _claimed(self, pack: Pack) -> Pack:
        """Claim the cells that nobody else has, and return those that are not over."""
        mine = [config for config in pack if self._claims.take(config.identity)]
        taken = {config.identity for config in mine}
        self._elsewhere += [config for config in pack if config.identity not in taken]
        self._store.refresh()  # after the claim: now nobody else can finish them
        over = {run for run in taken if self._is_over(run)}
        for run in over:
            self._claims.free(run)
        return tuple(config for config in mine if config.identity not in over)

    def _look_elsewhere(self) -> None:
        """See whether cells that somebody else had are done, or free again because he died."""
        now = time.monotonic()
        if self._elsewhere and now >= self._look_at:
            self._store.refresh()
            others = [c for c in self._elsewhere if not self._is_over(c.identity)]
            taken = set(self._store.running(config.identity for config in others))
            free = {c.identity: c for c in others if c.identity not in taken}
            self._elsewhere = [config for config in others if config.identity in taken]
            self._share_out(free.values())
            # Among tens of thousands a look takes long: it may take a tenth of the time.
            self._look_at = now + max(_LOOK_EVERY, 10 * (time.monotonic() - now))

    def _waited(self, seconds: float) -> list[tuple[int, Message]]:
        """Wait for messages, and record all that is finished by them with one write."""
        messages = self._engine.wait(seconds)
        runs = [
            run for _, message in messages if isinstance(message, Finished) for run in message.runs
        ]
        names = [run.config.identity for run, _ in runs]
        if runs and self._repeating:
            self._writer.repeats(runs)
            self._store.forget_checkpoints(names, of=self._store.repeats_folder)
        elif runs:
            self._writer.results(runs)
            self._trained += names
            self._store.forget_checkpoints(names)
        for name in names:
            self._claims.free(name)
        return messages

    def _heard(self, number: int, message: Message) -> Iterator[SweepEvent]:
        going = self._going[number]
        match message:
            case Finished():
                gone = {run.config.identity for run, _ in message.runs}
                going.pack = tuple(c for c in going.pack if c.identity not in gone)
                if time.monotonic() - self._counted_at > _COUNT_EVERY:
                    yield self._standing()
            case Saving():
                going.saving = True
            case Progress():
                going.furthest = max(going.furthest, message.update)
                going.progress, going.saving = message, False
                yield Working(going.worker, message.lanes, message)
            case Unheard():
                yield Working(going.worker, len(going.pack), going.progress, message.seconds)
            case Notice():
                if message.text not in self._said:
                    self._said.add(message.text)
                    yield message
            case Failed(surroundings=True):
                del self._going[number]
                self._stop()
                raise message.refusal()
            case Ended() | Failed() | Died():
                del self._going[number]
                heappush(self._idle, going.worker)
                yield Idle(going.worker)
                ended = self._repeat_ended if self._repeating else self._ended
                yield from ended(going, message)

    def _repeat_ended(self, going: _Going, message: Ended | Failed | Died) -> Iterator[SweepEvent]:
        """Let go of what could not be trained again: it is no failure of the cells."""
        for config in going.pack:
            self._claims.free(config.identity)
        if going.pack and not isinstance(message, Ended):
            yield Notice(f"{len(going.pack)} cells could not be trained again: {message.reason}")

    def _ended(self, going: _Going, message: Ended | Failed | Died) -> Iterator[SweepEvent]:
        """Try again what is left of a job, in a way that may do better."""
        pack = going.pack
        match message:
            case _ if not pack:
                return
            case Failed():
                give_up, divide, reason, trace = True, True, message.reason, message.trace
                if message.memory and len(pack) > 1:
                    yield Notice(f"{len(pack)} lanes do not fit into memory; half as many might.")
            case Died():
                furthest, deaths = self._deaths.pop(pack, (0, 0))
                deaths = 1 if going.furthest > furthest else deaths + 1
                self._deaths[pack] = max(furthest, going.furthest), deaths
                give_up, divide = deaths >= _DEATHS_OF_CELL, deaths >= _DEATHS_OF_PACK
                reason, trace = message.reason, ""
            case Ended():  # it was asked to stop
                give_up, divide, reason, trace = False, False, "", ""
        failure = Failure(pack[0].identity, reason, trace) if give_up and len(pack) == 1 else None
        if failure is not None:  # before the claim goes, or another sweep would try again
            self._forgiven.pop(failure.run, None)
            self._writer.failure(failure)
        for config in pack:
            self._claims.free(config.identity)
        if failure is not None:
            yield CellFailed(pack[0], failure)
            if time.monotonic() - self._counted_at > _COUNT_EVERY:  # a count looks at every failure
                yield self._standing()
        elif len(pack) > 1 and divide:
            self._left.extendleft(reversed(halves(pack)))
        else:
            self._left.appendleft(pack)

    def _stop(self) -> None:
        """Have all that is going saved, and record what is finished meanwhile.

        Who does not answer is not waited for long; who saves is, until it has.
        """
        self._engine.ask_to_stop()
        saving = {number for number, going in self._going.items() if going.saving}
        until = time.monotonic() + _STOP_WITHIN
        while self._going and (saving & self._going.keys() or time.monotonic() < until):
            for number, message in self._inbox or self._waited(_LOOK_EVERY):
                if isinstance(message, Saving):
                    saving.add(number)
                if isinstance(message, Ended | Failed | Died):
                    self._going.pop(number, None)
                    until = time.monotonic() + _STOP_WITHIN
            self._inbox.clear()

    def _standing(self) -> Status:
        self._counted_at = time.monotonic()
        packs = self._going.values()
        return self._tally.standing(
            self._store.ledger,
            running=sum(len(going.pack) for going in packs),
            workers=self._engine.workers,
            packs=len(packs) + len(self._left) + len(self._elsewhere),
            forgiven=self._forgiven,
            going=[said for going in packs if (said := going.underway()) is not None],
        )
