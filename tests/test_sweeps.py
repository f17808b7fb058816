"""A sweep loses nothing, repeats nothing, and says at once what went wrong."""

import errno
import inspect
import io
import json
import logging
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import disturbed, killing
from tests.toys import config
from weightdecay import files
from weightdecay.records import DECAYS, SCHEDULES, Notice, Progress, Record, Run, RunConfig
from weightdecay.records import config as definition
from weightdecay.records.codec import Cost, Failure
from weightdecay.runs import build, pack
from weightdecay.sweeps import (
    CellFailed,
    Status,
    Store,
    SweepEvent,
    Working,
    coordinator,
    local,
    pack_queue,
    sweep,
    sweep_events,
    worker,
)
from weightdecay.sweeps import engine as engines
from weightdecay.sweeps.engine import Died, Ended, Failed, Finished, Job, Message
from weightdecay.sweeps.inprocess import InProcess
from weightdecay.sweeps.kept import Kept
from weightdecay.sweeps.local import Local
from weightdecay.sweeps.merging import merge
from weightdecay.sweeps.name_checks import ALGORITHM_OPTIONS, DOWNLOADED, MODEL_OPTIONS, MODELS
from weightdecay.sweeps.packing import packs
from weightdecay.sweeps.progress_file import RunningPack, SweepProgress
from weightdecay.sweeps.status import store_status
from weightdecay.sweeps.store import Writer
from weightdecay.tasks import catalogue


def cell(seed: int = 0, **changes: Any) -> RunConfig:
    return config(**{"model": "linear", "epochs": 1, "seed": seed, **changes})


CELLS = [cell(seed) for seed in range(6)]


def invented(one: RunConfig) -> Run:
    """Return a run that nobody trained; its numbers are of its name."""
    chance = random.Random(one.identity)
    measured: dict[str, Any] = {
        name: chance.random()
        for name in Record.__dataclass_fields__
        if name.endswith(("loss", "error", "top5", "norm"))
    }
    measured |= {"lr": 0.1, "decay": 0.1, "cycle_ended": True}
    epochs = range(1, one.epochs + 1)
    made = [Record(run=one.identity, epoch=n, updates=9 * n, **measured) for n in epochs]
    return Run(one, tuple(made))


def finished(cells: Iterable[RunConfig]) -> Finished:
    return Finished(tuple((invented(one), Cost(one.identity, 0.5, 1, 1)) for one in cells))


class Scripted:
    """An engine that does what a function says of each job, and notes the jobs."""

    def __init__(
        self,
        script: Callable[[Job], Iterable[Message]] | None = None,
        workers: int = 2,
        lanes: int = 4,
        repeats: float = 0.0,
    ) -> None:
        self.workers, self.lanes, self.repeats = workers, lanes, repeats
        self.jobs: list[Job] = []
        self._script = script or (lambda job: [finished(job.cells), Ended()])
        self._told: list[tuple[int, Message]] = []
        self.closed = False

    def begin(self, job: Job) -> None:
        self.jobs.append(job)
        self._told += [(job.number, message) for message in self._script(job)]

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        del seconds
        told, self._told = self._told, []
        return told

    def end(self, number: int) -> None:
        self._told = [(job, message) for job, message in self._told if job != number]

    def ask_to_stop(self) -> None:
        self._told += [(job.number, Ended()) for job in self.jobs]

    def close(self) -> None:
        self.closed = True


def swept(
    cells: Iterable[RunConfig], folder: Path, engine: Any = None, **how: Any
) -> list[SweepEvent]:
    return list(sweep_events(cells, folder=folder, engine=engine or Scripted(), **how))


def names(cells: Iterable[RunConfig]) -> list[str]:
    return sorted(one.identity for one in cells)


def done(folder: Path) -> list[str]:
    return [run.config.identity for run in Store(folder).runs()]


def lines_of(folder: Path, kind: str) -> list[Any]:
    logs = [path.read_bytes().splitlines() for path in sorted(folder.glob("log/*"))]
    found = [json.loads(line) for log in logs for line in log]
    return [line[kind] for line in found if kind in line]


def last_standing(events: Iterable[SweepEvent]) -> Status:
    return [event for event in events if isinstance(event, Status)][-1]


def the_failed(events: Iterable[SweepEvent]) -> CellFailed:
    [failed] = [event for event in events if isinstance(event, CellFailed)]
    return failed


def test_results_come_back_as_they_were_recorded(tmp_path: Path) -> None:
    swept(CELLS, tmp_path)
    assert Store(tmp_path).runs() == sorted(map(invented, CELLS), key=lambda r: r.config.identity)


def test_what_is_done_is_never_trained_again(tmp_path: Path) -> None:
    swept(CELLS[:4], tmp_path)
    before = (tmp_path / "log" / "000001.jsonl").read_bytes()
    engine = Scripted()
    swept(CELLS, tmp_path, engine)
    assert names(c for job in engine.jobs for c in job.cells) == names(CELLS[4:])
    assert (tmp_path / "log" / "000001.jsonl").read_bytes() == before
    again = Scripted()
    assert last_standing(swept(CELLS[2:], tmp_path, again)).done == 4
    assert not again.jobs
    assert done(tmp_path) == names(CELLS)


def test_a_narrowed_sweep_plans_less_and_forgets_nothing(tmp_path: Path) -> None:
    swept(CELLS, tmp_path)
    swept(CELLS[:2], tmp_path)
    assert store_status(Store(tmp_path))[0].planned == 2
    assert done(tmp_path) == names(CELLS)


def test_merging_takes_over_what_is_missing_and_no_more(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    swept(CELLS[:4], one)
    swept(CELLS[2:], other)
    assert merge(Store(one), Store(other)).taken == 2
    logs = sorted(one.glob("log/*"))
    assert merge(Store(one), Store(other)).taken == 0
    assert sorted(one.glob("log/*")) == logs  # what brings nothing leaves nothing
    assert done(one) == names(CELLS)
    assert len(lines_of(one, "result")) == len(CELLS)
    assert store_status(Store(one))[0].planned == len(CELLS)


def test_new_semantics_are_trained_beside_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept([cell()], tmp_path)
    old = lines_of(tmp_path, "result")
    monkeypatch.setattr(definition, "SEMANTICS", 2)
    engine = Scripted()
    swept([cell()], tmp_path, engine)
    assert len(engine.jobs) == 1
    assert done(tmp_path) == [cell().identity] != [old[0]["run"]]
    assert lines_of(tmp_path, "result")[:1] == old


def test_of_several_results_the_first_counts(tmp_path: Path) -> None:
    swept([cell()], tmp_path)
    [first] = Store(tmp_path).runs()
    later = replace(first, records=(replace(first.last, updates=7),))
    with Store(tmp_path).writing(workers=1) as writer:
        writer.results([(later, Cost(cell().identity, 0.5, 1, 1))])
    assert len(lines_of(tmp_path, "result")) == 2
    assert Store(tmp_path).runs() == [first]


def test_a_clock_that_goes_backwards_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backwards = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: next(backwards))
    swept(CELLS[:3], tmp_path)
    swept(CELLS, tmp_path)
    wanted = list(Store(tmp_path).results())
    for age, path in enumerate(sorted(tmp_path.glob("log/*"))):
        os.utime(path, (10**9 - age, 10**9 - age))
    assert list(Store(tmp_path).results()) == wanted
    engine = Scripted()
    swept(CELLS, tmp_path, engine)
    assert not engine.jobs


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_dropped_said_and_trained_again(cut: int, tmp_path: Path) -> None:
    swept(CELLS, tmp_path, Scripted(workers=1, lanes=1))
    log = tmp_path / "log" / "000001.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)[:-1]  # up to the last result
    log.write_bytes(b"".join(lines)[:-cut])
    said = "The last line of 000001.jsonl is incomplete and is left out."
    assert store_status(Store(tmp_path))[2] == [said]
    engine = Scripted()
    assert Notice(said, problem=True) in swept(CELLS, tmp_path, engine)
    assert sum(len(job.cells) for job in engine.jobs) == 1
    assert done(tmp_path) == names(CELLS)


def test_garbage_and_foreign_files_are_left_out_and_said(tmp_path: Path) -> None:
    swept(CELLS[:3], tmp_path)
    log = tmp_path / "log" / "000001.jsonl"
    first, *rest = log.read_bytes().splitlines(keepends=True)
    garbage = b'\xff\x00\n[1, 2]\n{"result": {"run": 3}}\n{"result": 5}\n{}\n'
    log.write_bytes(first + garbage + b"".join(rest))
    (tmp_path / "log" / "notes.txt").write_text("mine")
    (tmp_path / "log" / "old.jsonl").write_text("not json")
    (tmp_path / "log" / "000009.jsonl").write_bytes(b"\x00\xfe" * 1000 + b"\n")
    swept(CELLS, tmp_path)
    assert done(tmp_path) == names(CELLS)
    assert len(store_status(Store(tmp_path))[2]) == 6
    assert (tmp_path / "log" / "notes.txt").read_text() == "mine"


def test_a_folder_that_is_no_sweep_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no plan\.jsonl.*weightdecay sweep STUDY"):
        store_status(Store(tmp_path))
    (tmp_path / "plan.jsonl").write_text("{")
    with pytest.raises(
        ValueError, match=r"must have one cell per line, but line 1 cannot be used.*new plan"
    ):
        store_status(Store(tmp_path))
    with pytest.raises(ValueError, match="at least one configuration"):
        sweep_events([], folder=tmp_path)


def test_a_few_cells_are_trained_again_once_all_are_done(tmp_path: Path) -> None:
    engine = Scripted(workers=1, lanes=4, repeats=0.3)
    events = swept(CELLS, tmp_path, engine)
    assert Notice(f"Training 2 of {len(CELLS)} cells again, as a control.") in events
    again = names(CELLS)[:2]
    assert [run.config.identity for run in Store(tmp_path).repeats()] == again
    assert done(tmp_path) == names(CELLS)
    *before, last = engine.jobs
    assert [one.identity for one in last.cells] == again
    assert last.cells not in [job.cells for job in before]
    assert last.folder != before[0].folder  # what the first training has saved is none of theirs


def test_a_sweep_that_is_begun_again_repeats_no_cell_again(tmp_path: Path) -> None:
    swept(CELLS, tmp_path, Scripted(workers=1, repeats=0.3))
    engine = Scripted(workers=1, repeats=0.3)
    swept(CELLS, tmp_path, engine)
    assert engine.jobs == []


def test_a_repeat_that_fails_is_said_and_no_cell_has_failed(tmp_path: Path) -> None:
    seen: set[str] = set()

    def script(job: Job) -> list[Message]:
        first = not seen & {one.identity for one in job.cells}
        seen.update(one.identity for one in job.cells)
        failed = Failed("RuntimeError: no", "", memory=False)
        return [finished(job.cells), Ended()] if first else [failed]

    events = swept(CELLS, tmp_path, Scripted(script, workers=1, repeats=0.3))
    said = "2 cells could not be trained again: RuntimeError: no"
    assert Notice(said, problem=True) in events
    assert not Store(tmp_path).refresh().failures
    assert not Store(tmp_path).repeats()


def test_merging_takes_repeats_along_once(tmp_path: Path) -> None:
    swept(CELLS, tmp_path / "one", Scripted(workers=1, repeats=0.3))
    both = Store(tmp_path / "both")
    for _ in range(2):
        merge(both, Store(tmp_path / "one"))
        assert both.repeats() == Store(tmp_path / "one").repeats() != []
        assert len(lines_of(tmp_path / "both", "repeat")) == 2


def test_a_finished_sweep_is_not_repeated_by_another_machine(tmp_path: Path) -> None:
    """What was trained elsewhere may differ, and says nothing of this device."""
    swept(CELLS, tmp_path, Scripted(workers=1))
    engine = Scripted(workers=1, repeats=0.3)
    swept([*CELLS, cell(seed=99)], tmp_path, engine)
    assert [one.seed for job in engine.jobs for one in job.cells] == [99]
    assert not Store(tmp_path).repeats()


def test_a_worker_that_dies_after_its_job_has_ended_is_no_ones_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both may be heard of at once, where a disk is slow or a laptop was asleep."""
    engine = Local(workers=1, device="cpu")
    wait = engine.wait

    def late(seconds: float) -> list[tuple[int, Message]]:
        for number in engine._busy:
            engine._messages.put((number, Ended()))
            engine._messages.put((number, Died("Its process was killed by signal 9.")))
        return wait(seconds)

    monkeypatch.setattr(engine, "begin", lambda job: engine._busy.update({job.number: 0}))
    monkeypatch.setattr(engine, "wait", late)
    events = sweep_events(CELLS[:1], folder=tmp_path, engine=engine)
    for _ in range(20):
        next(events)
    events.close()  # type: ignore[attr-defined]


def test_a_worker_whose_gpu_is_lost_gets_no_more_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Process:
        def __init__(self, *_: Any) -> None:
            made.append(self)

        def begin(self, job: Job) -> bool:
            del job
            return True

        def kill(self) -> None:
            made.remove(self)

    monkeypatch.setattr(local, "_Process", Process)
    engine = Local(workers=1, device="cpu")
    for number, leaves in ((1, False), (2, True), (3, False)):
        engine.begin(Job(number, tuple(CELLS[:1]), Path()))
        engine._messages.put((number, Failed("no", "", memory=False, leaves=leaves)))
        assert len(engine.wait(1.0)) == 2  # it has begun, and has failed
    assert len(made) == 2
    engine.close()
    assert made == []


@pytest.mark.slow
def test_kept_workers_train_the_next_sweep_and_end_with_their_engine(tmp_path: Path) -> None:
    inner = Local(workers=1, device="cpu")
    with Kept(inner) as engine:
        swept(CELLS[:1], tmp_path / "first", engine)
        before = [process._process for process in inner._processes.values()]
        swept(CELLS[:1], tmp_path / "second", engine)
        assert [process._process for process in inner._processes.values()] == before
        assert [process.poll() for process in before] == [None]
    assert [process.poll() for process in before] == [-signal.SIGKILL]
    assert list(Store(tmp_path / "first").results()) == list(Store(tmp_path / "second").results())


def test_kept_workers_end_if_their_sweep_is_stopped(tmp_path: Path) -> None:
    inner = Scripted(lambda job: [finished(job.cells[:1])], workers=1)
    with Kept(inner) as engine:
        events = sweep_events(CELLS, folder=tmp_path, engine=engine)
        assert isinstance(next(events), Status)
        assert isinstance(next(events), Working)
        events.close()  # type: ignore[attr-defined]
        assert inner.closed
        inner.closed = False
    assert inner.closed


def test_no_two_jobs_of_an_engine_have_the_same_number(tmp_path: Path) -> None:
    """A worker that dies between two sweeps would be taken for one of the second."""
    engine = Scripted(lanes=2)
    for folder in ("first", "second"):
        swept(CELLS, tmp_path / folder, engine)
    assert len({job.number for job in engine.jobs}) == len(engine.jobs) == 8


@pytest.mark.parametrize("usable", [True, False])
def test_a_worker_leaves_only_where_its_gpu_is_lost(
    usable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Failed("RuntimeError: no", "", memory=False)
    monkeypatch.setattr(worker, "train_job", lambda *_: iter([failed]))
    monkeypatch.setattr(worker, "_usable", lambda _: usable)
    answers, job = io.BytesIO(), Job(1, tuple(CELLS[:1]), Path())
    with nullcontext() if usable else pytest.raises(SystemExit):
        worker._do(job, "cuda:0", answers, threading.Event(), {})
    assert pickle.loads(answers.getvalue()) == (1, replace(failed, leaves=not usable))


def test_a_task_is_loaded_once_for_jobs_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load = catalogue.load
    monkeypatch.setattr(catalogue, "load", lambda name: loaded.append(name) or load(name))  # type: ignore[func-returns-value]
    kept: dict[str, Any] = {}
    for number in range(3):
        list(engines.train_job(Job(number, (cell(seed=number),), tmp_path), "cpu", kept))
    assert loaded == list(kept) == [CELLS[0].task]


def test_a_new_log_is_on_the_disk_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_folder", synced.append)
    with Store(tmp_path).writing(workers=1):
        assert synced == [tmp_path / "log"]


def test_failures_are_not_counted_anew_for_every_one_of_them(tmp_path: Path) -> None:
    cells = [cell(seed=seed) for seed in range(300)]
    script = lambda job: [Failed("ValueError: no", "", memory=False)]  # noqa: E731
    events = swept(cells, tmp_path, Scripted(script, workers=1, lanes=1))
    assert sum(isinstance(event, CellFailed) for event in events) == 300
    assert sum(isinstance(event, Status) for event in events) < 100
    assert [event for event in events if isinstance(event, Status)][-1].failed == 300


def test_repeats_of_real_cells_are_the_same_to_the_bit_on_a_cpu(tmp_path: Path) -> None:
    cells = [config(seed=seed, epochs=1) for seed in range(5)]
    swept(cells, tmp_path, InProcess("cpu", lanes=2, repeats=0.5))
    store = Store(tmp_path)
    first = {run.config: run for run in store.runs()}
    assert [first[run.config] for run in store.repeats()] == store.repeats()
    assert len(store.repeats()) == 3
    assert not list(tmp_path.glob("repeats/checkpoints/*"))


def test_packs_hold_each_cell_once_and_only_what_can_share_lanes() -> None:
    cells = [cell(n, batch=batch, lr=lr) for n in range(7) for batch in (20, 30) for lr in (1, 2)]
    found = packs(cells, workers=3, lanes=4)
    assert names(c for pack in found for c in pack) == names(cells)
    assert all(len({one.batch for one in pack}) == 1 for pack in found)
    assert max(map(len, found)) <= 4


@given(st.integers(1, 200), st.integers(1, 20), st.integers(1, 64))
@settings(max_examples=30)
def test_packs_are_even_and_keep_every_worker_busy(count: int, workers: int, lanes: int) -> None:
    found = packs([cell(seed) for seed in range(count)], workers=workers, lanes=lanes)
    sizes = sorted(map(len, found))
    assert sum(sizes) == count
    assert sizes[-1] <= lanes
    assert sizes[-1] - sizes[0] <= 1
    assert len(found) >= min(workers, count)


def test_optimizers_of_others_have_packs_of_their_own() -> None:
    """On a GPU, one lane that cannot be captured in a graph holds back all lanes of its pack."""
    ours = [cell(seed, algorithm=name) for seed in range(4) for name in ("adamw", "sgdw")]
    others = [cell(seed, algorithm="torch.optim:RMSprop") for seed in range(4)]
    mixed = [*ours[:3], *others, *ours[3:]]
    found = packs(mixed, workers=1, lanes=100)
    assert sorted(map(set, found), key=len) == [{*others}, {*ours}]


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.permutations(range(5)), st.integers(1, 5), st.integers(1, 4))
def test_results_do_not_depend_on_packs(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], lanes: int, first: int
) -> None:
    cells = [config(seed=seed) for seed in range(5)]
    together, apart = (tmp_path_factory.mktemp(name) for name in ("together", "apart"))
    swept(cells, together, InProcess("cpu"))
    swept([cells[n] for n in order[:first]], apart, InProcess("cpu", lanes=lanes))
    swept([cells[n] for n in order], apart, InProcess("cpu", lanes=lanes))
    assert list(Store(apart).results()) == list(Store(together).results())


def raising(bad: RunConfig) -> Callable[[Job], list[Message]]:
    def script(job: Job) -> list[Message]:
        if bad in job.cells:
            return [Failed("ValueError: no good", "trace", memory=False)]
        return [finished(job.cells), Ended()]

    return script


def test_a_cell_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    events = swept(CELLS, tmp_path, Scripted(raising(CELLS[2]), lanes=6, workers=1))
    assert the_failed(events).config == CELLS[2]
    assert the_failed(events).failure.reason == "ValueError: no good"
    assert done(tmp_path) == names(c for c in CELLS if c != CELLS[2])
    assert last_standing(events).failed == 1
    assert last_standing(events).left == 0


def test_failed_cells_wait_for_retry(tmp_path: Path) -> None:
    swept(CELLS, tmp_path, Scripted(raising(CELLS[2])))
    again = Scripted()
    swept(CELLS, tmp_path, again)
    assert not again.jobs
    swept(CELLS, tmp_path, again, retry=True)
    assert [job.cells for job in again.jobs] == [(CELLS[2],)]
    assert done(tmp_path) == names(CELLS)
    assert not store_status(Store(tmp_path))[1]


def test_out_of_memory_halves_the_pack(tmp_path: Path) -> None:
    def script(job: Job) -> list[Message]:
        if len(job.cells) > 2:
            return [Failed("OutOfMemoryError", "", memory=True)]
        return [finished(job.cells), Ended()]

    engine = Scripted(script, workers=1, lanes=6)
    events = swept(CELLS, tmp_path, engine)
    assert [len(job.cells) for job in engine.jobs] == [6, 3, 1, 2, 3, 1, 2]
    assert Notice("6 lanes do not fit into memory; trying half as many.") in events
    assert done(tmp_path) == names(CELLS)


def test_what_a_job_had_finished_before_it_failed_stays(tmp_path: Path) -> None:
    first = CELLS[0]

    def script(job: Job) -> list[Message]:
        if first in job.cells:
            return [finished([first]), Died("gone")]
        return [finished(job.cells), Ended()]

    engine = Scripted(script, workers=1, lanes=6)
    swept(CELLS, tmp_path, engine)
    assert [len(job.cells) for job in engine.jobs] == [6, 5]
    assert len(lines_of(tmp_path, "result")) == len(CELLS)


def test_a_cell_that_kills_its_worker_every_time_is_given_up(tmp_path: Path) -> None:
    def script(job: Job) -> list[Message]:
        if CELLS[0] in job.cells:
            return [Died("ended by signal 11")]
        return [finished(job.cells), Ended()]

    engine = Scripted(script, workers=1, lanes=2)
    events = swept(CELLS[:2], tmp_path, engine)
    assert [len(job.cells) for job in engine.jobs] == [2] * 3 + [1] * 11
    assert the_failed(events).failure.reason == "ended by signal 11"


def test_a_worker_killed_while_it_comes_further_is_not_its_cells_fault(tmp_path: Path) -> None:
    made: dict[str, Any] = {"updates": 100, "epoch": 1, "epochs": 1, "loss": 1.0, "error": 1.0}
    made |= {"multiplier": 1.0, "speed": 1.0, "lanes": 1}
    attempts = iter(range(1, 31))

    def script(job: Job) -> list[Message]:
        update = next(attempts)
        if update < 30:
            return [Progress(update=update, **made), Died("killed")]
        return [finished(job.cells), Ended()]

    engine = Scripted(script, workers=1)
    swept(CELLS[:1], tmp_path, engine)
    assert len(engine.jobs) == 30
    assert done(tmp_path) == names(CELLS[:1])


def test_an_error_in_training_comes_with_its_reason(tmp_path: Path) -> None:
    events = swept([cell(model="nothing"), CELLS[0]], tmp_path, InProcess("cpu"))
    failure = the_failed(events).failure
    assert failure.reason.startswith("ValueError: `model` must be one of ")
    assert "Traceback" in failure.trace
    assert done(tmp_path) == [CELLS[0].identity]


class Full:
    """A disk that is full after so many syncs."""

    def __init__(self, sync: Callable[[int], None], syncs: int) -> None:
        self._sync, self._left = sync, syncs

    def __call__(self, file: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._sync(file)


def test_a_full_disk_stops_the_sweep_and_what_was_recorded_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(CELLS[:3], tmp_path)
    engine = Scripted(workers=1, lanes=1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Full(os.fsync, 5))
        with pytest.raises(OSError, match="No space left"):
            swept(CELLS, tmp_path, engine)
    assert engine.closed
    assert set(names(CELLS[:3])) < set(done(tmp_path)) < set(names(CELLS))
    assert store_status(Store(tmp_path))[2] == []  # no torn line
    swept(CELLS, tmp_path)
    assert done(tmp_path) == names(CELLS)


@pytest.mark.slow
def test_a_file_that_may_not_grow_stops_the_sweep_without_a_torn_line(tmp_path: Path) -> None:
    program = (
        "import resource; from tests.test_sweeps import *; cells = [cell(n) for n in range(9)]; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)); "
        f"swept(cells, Path({str(tmp_path)!r}), Scripted(workers=1, lanes=1))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert b"File too large" in ended.stderr
    assert 0 < len(done(tmp_path)) < 9
    assert store_status(Store(tmp_path))[2] == []


@pytest.mark.parametrize("torn", [False, True])
def test_what_others_have_read_is_not_taken_back(
    torn: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Store(tmp_path)

    def full(*_: object) -> NoReturn:
        assert len(other.refresh().finished) == 2
        raise OSError(errno.ENOSPC, "No space left on device")

    def timed(one: RunConfig) -> tuple[Run, Cost]:
        return invented(one), Cost(one.identity, 1.0, 1, 1)

    with Store(tmp_path).writing(workers=1) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            if torn:
                file = writer._file
                writes = iter([lambda text: file.write(text[:-20]), full])
                kept = {name: getattr(file, name) for name in ("truncate", "seek", "fileno")}

                def half(text: memoryview) -> int:
                    return next(writes)(text)

                patch.setattr(writer, "_file", SimpleNamespace(write=half, **kept))
            with pytest.raises(OSError, match="No space left"):
                writer.results(map(timed, CELLS[:2]))
        assert done(tmp_path) == sorted(other.refresh().finished) == names(CELLS[:2])
        writer.results([timed(CELLS[2])])
    assert done(tmp_path) == sorted(other.refresh().finished) == names(CELLS[:3])
    assert other.ledger.left_out == Store(tmp_path).refresh().left_out == []


def test_a_folder_that_cannot_be_written_is_an_error_before_anything_is_trained() -> None:
    engine = Scripted()
    with pytest.raises(OSError, match="/proc/no"):
        swept(CELLS, Path("/proc/no"), engine)
    assert not engine.jobs


def test_a_folder_without_the_right_to_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", f".{path.name}.unfinished")

    monkeypatch.setattr(files, "written", refused)  # root may write everywhere
    said = rf"You do not have permission to write to {tmp_path}\. Choose another"
    with pytest.raises(PermissionError, match=said):
        sweep_events(CELLS, folder=tmp_path, engine=Scripted())


@pytest.mark.slow
def test_a_plan_that_a_kill_left_unfinished_goes_with_the_next(tmp_path: Path) -> None:
    program = (
        "import os; from tests.test_sweeps import *; "
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL); "
        f"sweep_events(CELLS, folder={str(tmp_path)!r}, engine=Scripted())"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    assert len(list(tmp_path.glob(".plan.jsonl.*.unfinished"))) == 1
    sweep_events(CELLS, folder=tmp_path, engine=Scripted())
    assert list(tmp_path.glob(".*")) == []


def test_a_plan_leaves_alone_a_table_that_is_being_exported(tmp_path: Path) -> None:
    with files.written(tmp_path / "table.csv") as file:
        file.write(b"lr\n")
        sweep_events(CELLS, folder=tmp_path, engine=Scripted())
    assert (tmp_path / "table.csv").read_bytes() == b"lr\n"


def test_a_plan_leaves_alone_what_another_is_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan() -> None:
        sweep_events(CELLS, folder=tmp_path, engine=Scripted())

    other, sync = threading.Thread(target=plan), os.fsync

    def synced(file: int) -> None:
        if not other.ident:
            other.start()
            other.join(timeout=0.3)  # it waits, and would be through
        sync(file)

    monkeypatch.setattr(os, "fsync", synced)
    plan()
    other.join()
    assert names(CELLS) == sorted(Store(tmp_path).plan())


def test_a_folder_deleted_under_a_sweep_is_an_error(tmp_path: Path) -> None:
    def script(job: Job) -> list[Message]:
        (tmp_path / "log" / "000001.jsonl").unlink()
        return [finished(job.cells), Ended()]

    with pytest.raises(FileNotFoundError, match="was deleted while the sweep runs"):
        swept(CELLS, tmp_path, Scripted(script, workers=1))


def test_cells_that_another_sweep_has_claimed_are_left_to_it(tmp_path: Path) -> None:
    other = sweep_events(
        CELLS[:3], folder=tmp_path, engine=Scripted(lambda job: [], workers=1, lanes=3)
    )
    next(other)
    next(other)  # it has begun, and claimed three
    mine = Scripted(workers=1, lanes=6)
    events = sweep_events(CELLS, folder=tmp_path, engine=mine)
    while not done(tmp_path):
        next(events)
    assert names(c for job in mine.jobs for c in job.cells) == names(CELLS[3:])
    assert Store(tmp_path).running(names(CELLS)) == names(CELLS[:3])
    other.close()  # type: ignore[attr-defined]
    list(events)  # what it had is free at once
    assert done(tmp_path) == names(CELLS)
    assert len(lines_of(tmp_path, "result")) == len(CELLS)


@pytest.mark.parametrize(("seconds", "looks"), [(0.0, 40), (0.2, 10)])
def test_looking_at_cells_of_others_takes_a_tenth_of_the_time(
    seconds: float, looks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, asked = [0.0], []

    def running(store: Store, cells: Iterable[str]) -> list[str]:
        del store
        asked.append(clock[0])
        clock[0] += seconds
        return list(cells)

    class Waiting(Scripted):
        def wait(self, seconds: float) -> list[tuple[int, Message]]:
            clock[0] += seconds
            return []

    monkeypatch.setattr(Store, "running", running)
    for module in (coordinator, pack_queue):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with Store(tmp_path).claiming() as claims:
        assert all(claims.take(one.identity) for one in CELLS)
        events = sweep_events(CELLS, folder=tmp_path, engine=Waiting())
        while clock[0] < 20:
            next(events)
        events.close()  # type: ignore[attr-defined]
    assert len(asked) == pytest.approx(looks, abs=2)


@pytest.mark.parametrize("retry", [False, True])
def test_two_sweeps_of_one_folder_try_no_failing_cell_twice(retry: bool, tmp_path: Path) -> None:
    script = lambda job: [Failed("ValueError: no", "", memory=False)]  # noqa: E731
    if retry:
        swept(CELLS, tmp_path, Scripted(script))
    before = len(lines_of(tmp_path, "failure"))
    mine = Scripted(script)
    events = sweep_events(CELLS, folder=tmp_path, engine=mine, retry=retry)
    next(events)  # it has planned all cells
    swept(CELLS, tmp_path, Scripted(script), retry=retry)
    standing = last_standing(events)
    assert not mine.jobs
    assert (standing.failed, standing.left) == (len(CELLS), 0)
    assert len(lines_of(tmp_path, "failure")) == before + len(CELLS)


def test_a_failing_cell_is_claimed_until_its_failure_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, claimed = Writer.failure, []

    def failure(writer: Writer, failure: Failure) -> None:
        claimed.append(Store(tmp_path).running([failure.run]))
        recorded(writer, failure)

    monkeypatch.setattr(Writer, "failure", failure)
    swept(CELLS, tmp_path, Scripted(raising(CELLS[2])))
    assert claimed == [[CELLS[2].identity]]
    assert Store(tmp_path).running(names(CELLS)) == []


@pytest.mark.slow
def test_two_sweeps_of_one_folder_train_no_cell_twice(tmp_path: Path) -> None:
    both = [disturbed.start(tmp_path), disturbed.start(tmp_path)]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    assert names(disturbed.cells()) == sorted(line["run"] for line in lines_of(tmp_path, "result"))
    assert store_status(Store(tmp_path))[0].running == 0


@pytest.mark.slow
def test_a_sweep_that_is_closed_saves_and_goes_on(tmp_path: Path) -> None:
    cells = disturbed.cells()[:6]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    swept(cells, whole, InProcess("cpu"))
    events = sweep_events(cells, folder=stopped, engine=Local(1, "cpu"))
    for event in events:
        if getattr(event, "progress", None) is not None:
            break
    events.close()  # type: ignore[attr-defined]
    assert list(stopped.glob("checkpoints/*/checkpoint-*.pt"))
    said = swept(cells, stopped, Local(1, "cpu"))
    assert any(isinstance(e, Notice) and e.text.startswith("Resumed at") for e in said)
    assert list(Store(stopped).results()) == list(Store(whole).results())
    assert not list(stopped.glob("checkpoints/*"))


@pytest.mark.parametrize("model", ["mlp", "dropping"])
def test_a_cell_that_diverged_leaves_no_checkpoint(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is recorded, its checkpoint removed: a save that is due must not bring it back."""
    monkeypatch.setattr(pack, "CHECKPOINT_EVERY", -1.0)
    changes = {"model": model, "epochs": 3, "algorithm": "sgd", "weight_decay": None, "l2": 0.001}
    rates = (0.01, 1e12)
    cells = [cell(seed, lr=rate, **changes) for rate in rates for seed in range(2)]
    swept(cells, tmp_path, InProcess("cpu"))
    assert [run.diverged for run in Store(tmp_path).runs()].count(True) == 2
    assert not list(tmp_path.glob("checkpoints/*"))


@pytest.mark.slow
def test_killed_fifty_times_a_sweep_ends_the_same(tmp_path: Path) -> None:
    """Other faults come between: a bit flipped, a folder that cannot be written, Ctrl-C."""
    wanted = disturbed.undisturbed(tmp_path / "whole")
    left, number = 50, 0
    while left > 0:
        folder = tmp_path / str(number := number + 1)
        made: Counter[str] = Counter()
        sweep = disturbed.Disturbed(folder, random.Random())
        killing.disturb(sweep, min(left, killing.MOST), made, within=2.0)
        assert disturbed.results(folder) == wanted
        left -= killing.killed(made)


@pytest.mark.slow
def test_workers_do_not_outlive_their_coordinator(tmp_path: Path) -> None:
    process = disturbed.start(tmp_path)
    while not list(tmp_path.glob("checkpoints/*/checkpoint-*.pt")):
        time.sleep(0.05)
    children = disturbed.children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert children
    until = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until, "a worker has outlived its coordinator"
        time.sleep(0.05)


def test_time_left_counts_the_epochs_that_were_paid_for_and_those_under_way(
    tmp_path: Path,
) -> None:
    cells = [cell(seed, epochs=10) for seed in range(8)]
    of_progress: dict[str, Any] = {"updates": 90, "epoch": 1, "epochs": 10, "loss": 1.0}
    of_progress |= {"error": 1.0, "multiplier": 1.0, "speed": 45.0, "lanes": 2}

    def script(job: Job) -> list[Message]:
        if len(engine.jobs) == 1:  # resumed: it was paid for five epochs of each, a second each
            costs = [Cost(c.identity, 5.0, 5, 2) for c in job.cells]
            runs = [(invented(c), cost) for c, cost in zip(job.cells, costs, strict=True)]
            return [Progress(update=45, **of_progress), Finished(tuple(runs)), Ended()]
        return [Progress(update=45, **of_progress)]

    engine = Scripted(script, workers=1, lanes=2)
    events = sweep_events(cells, folder=tmp_path, engine=engine)
    seen: list[Status] = []
    while len(seen) < 3 or seen[-1].done < 2 or len(engine.jobs) < 2:
        event = next(events)
        seen += [event] if isinstance(event, Status) else []
    until = time.monotonic() + 10
    while (last := next(events)) and time.monotonic() < until:
        if isinstance(last, Status) and last.seconds_left == 50.0:
            break  # six cells of ten epochs, less half of two that are under way
    events.close()  # type: ignore[attr-defined]
    assert isinstance(last, Status)
    assert last.seconds_left == 50.0


def test_time_left_is_never_less_than_what_a_pack_under_way_still_takes(tmp_path: Path) -> None:
    """Of two that take ten seconds each, one is nearly through and the other has just begun."""
    of_progress: dict[str, Any] = {"updates": 100, "epoch": 1, "epochs": 10, "loss": 1.0}
    of_progress |= {"error": 1.0, "multiplier": 1.0, "speed": 10.0, "lanes": 1}
    cells = [cell(seed, epochs=10) for seed in range(2)]

    def script(job: Job) -> list[Message]:
        return [Progress(update=90 if job.cells[0] == cells[0] else 10, **of_progress)]

    events = sweep_events(cells, folder=tmp_path, engine=Scripted(script, workers=8, lanes=1))
    told = (event for event in events if isinstance(event, Status))
    left = next(standing.seconds_left for standing in told if standing.seconds_left is not None)
    events.close()  # type: ignore[attr-defined]
    assert left == pytest.approx(9.0)


def test_other_processes_are_told_the_time_left_that_the_sweep_shows(tmp_path: Path) -> None:
    """Of four cells in two packs, both at a tenth: nothing is in the log yet."""
    of_progress: dict[str, Any] = {"updates": 100, "epoch": 1, "epochs": 10, "loss": 1.0}
    of_progress |= {"error": 1.0, "multiplier": 1.0, "speed": 10.0, "lanes": 2}
    cells = [cell(seed, epochs=10) for seed in range(4)]
    engine = Scripted(lambda _: [Progress(update=10, **of_progress)], workers=2, lanes=2)
    events = sweep_events(cells, folder=tmp_path, engine=engine)
    until = time.monotonic() + 20
    while (read := store_status(Store(tmp_path))[0]).seconds_left is None:
        assert time.monotonic() < until
        next(events)
    told = next(event for event in events if isinstance(event, Status))
    assert told.seconds_left is not None
    assert read == told
    events.close()  # type: ignore[attr-defined]
    assert not (tmp_path / "progress").exists()
    assert store_status(Store(tmp_path))[0].seconds_left is None


def test_what_a_killed_sweep_has_told_does_not_count_and_is_removed(tmp_path: Path) -> None:
    packs = SweepProgress(packs=1, running=(RunningPack(cell().identity, 1.0, 1.0, 9.0),))
    store = Store(tmp_path)
    store.ask_for({cell().identity: cell()})
    with store.writing(workers=1) as writer:
        writer.progress.write(packs)
        assert Store(tmp_path).progress() == packs
        written = (tmp_path / "progress" / "000001.json").read_bytes()
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / "000001.json").write_bytes(written)
    assert Store(tmp_path).progress() == SweepProgress()
    with store.writing(workers=1):
        assert not (tmp_path / "progress").exists()


_PACK: dict[str, Any] = {"run": "a", "epochs": 1.0, "seconds_per_epoch": 1.0, "seconds_left": 1.0}


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"packs": 1}', '{"packs": "x", "running": []}'),
        '{"packs": 1, "running": 3}',
        *(
            json.dumps({"packs": 1, "running": [_PACK | wrong]})
            for wrong in ({"run": 1}, {"epochs": float("nan")}, {"seconds_left": -1}, {"more": 1})
        ),
    ],
)
def test_a_report_of_another_version_says_nothing(text: str, tmp_path: Path) -> None:
    with Store(tmp_path).writing(workers=1) as writer:
        told = SweepProgress(packs=1, running=(RunningPack(**_PACK),))
        writer.progress.write(told)
        assert Store(tmp_path).progress() == told
        (tmp_path / "progress" / "000001.json").write_text(text)
        assert Store(tmp_path).progress() == SweepProgress()


def test_a_report_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "progress").write_text("in its place")
    assert last_standing(swept([cell()], tmp_path)).done == 1


def test_a_pack_that_waits_keeps_one_worker_busy(tmp_path: Path) -> None:
    cells = [cell(seed, epochs=10) for seed in range(4)]
    swept(cells[:2], tmp_path)  # half a second an epoch
    first = next(sweep_events(cells, folder=tmp_path, engine=Scripted(workers=8, lanes=2)))
    assert isinstance(first, Status)
    assert first.seconds_left == pytest.approx(5.0)  # two packs of a cell, not eight


def test_the_names_known_to_a_planner_are_those_of_the_catalogue() -> None:
    entries = catalogue._ENTRIES
    assert {name: tuple(entry.models) for name, entry in entries.items()} == MODELS
    assert tuple(name for name, entry in entries.items() if entry.fetch) == DOWNLOADED
    for entry in entries.values():
        for name, builder in entry.models.items():
            options = set(inspect.signature(builder).parameters) - {"generator"}
            assert options == set(MODEL_OPTIONS[name])


def test_the_options_of_algorithms_known_to_a_planner_are_theirs() -> None:
    ours = {"params", "lr", "schedule", *DECAYS}
    for name, cls in build._ALGORITHMS.items():
        options = {*inspect.signature(cls).parameters} - ours
        assert options == set(ALGORITHM_OPTIONS[name])


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_can_be_built_with_the_options_that_it_is_said_to_have(name: str) -> None:
    options = ",".join(f"{option}=1" for option in SCHEDULES[name])
    build.schedule_of(cell(schedule=f"{name},{options}", epochs=3), per_epoch=10)


def test_a_wrong_name_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with pytest.raises(ValueError, match="`model` must be one of convnet, mlp, which fashion-"):
        sweep_events([cell(task="fashion-mnist", model="resnet")], folder=folder, engine=Scripted())
    assert not folder.exists()


def test_a_result_that_does_not_fit_its_name_is_said_and_trained_again(tmp_path: Path) -> None:
    swept([cell()], tmp_path)
    log = tmp_path / "log" / "000001.jsonl"
    log.write_text(log.read_text().replace('"lr": 0.02', '"lr": 0.03'))
    said = (
        "Line 2 of 000001.jsonl is left out: its checksum does not match, so it was changed after "
        "it was written."
    )
    engine = Scripted()
    assert Notice(said, problem=True) in swept([cell()], tmp_path, engine)
    assert len(engine.jobs) == 1
    assert done(tmp_path) == [cell().identity]


def test_what_is_tried_again_does_not_count_as_failed(tmp_path: Path) -> None:
    swept(CELLS, tmp_path, Scripted(raising(CELLS[2])))
    events = sweep_events(CELLS, folder=tmp_path, engine=Scripted(lambda job: []), retry=True)
    next(events)
    next(events)
    counted, failures, _ = store_status(Store(tmp_path))
    assert (counted.failed, counted.running, counted.left) == (0, 1, 1)
    assert len(failures) == 1  # the reason is still to be read
    standing = next(event for event in events if isinstance(event, Status))
    assert (standing.failed, standing.running, standing.left) == (0, 1, 1)
    events.close()  # type: ignore[attr-defined]
    assert store_status(Store(tmp_path))[0].failed == 1


def test_a_stop_does_not_wait_for_what_has_ended(tmp_path: Path) -> None:
    class Once(Scripted):
        def ask_to_stop(self) -> None:  # its jobs have ended, and say so no more
            pass

    events = sweep_events(CELLS[:2], folder=tmp_path, engine=Once(workers=1, lanes=2))
    for event in events:
        if isinstance(event, Status) and event.done:
            break
    begun = time.monotonic()
    events.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun < 5  # of the ten that a stop may take


@pytest.mark.slow
def test_a_task_may_fork_and_its_children_may_stay(tmp_path: Path) -> None:
    swept([cell(task="tests.toys:forking")], tmp_path, Local(1, "cpu"))
    assert len(done(tmp_path)) == 1


def test_a_worker_that_cannot_even_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    events = swept([cell()], tmp_path, Local(1, "cpu"))
    assert the_failed(events).failure.reason.startswith("Its process exited with status 1")


def test_a_worker_ends_when_its_planner_dies_in_the_middle_of_a_word() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "weightdecay.sweeps.worker", "cpu"], stdin=subprocess.PIPE
    )
    assert worker.stdin is not None
    worker.stdin.write(pickle.dumps(Job(1, (cell(),), Path("nowhere")))[:40])
    worker.stdin.close()
    assert worker.wait(timeout=60) == 1


@pytest.mark.slow
def test_stopping_the_whole_group_saves_what_is_being_trained(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        'task = "tests.toys:hasty"\nmodel = "mlp"\nalgorithm = "adamw"\nlr = 0.02\nepochs = 2000\n'
        "batch = 30\nnormalized_decay = 0.1\n"
    )
    words = ["sweep", str(study), "--out", str(tmp_path / "s"), "--device", "cpu", "--workers", "1"]
    command = [sys.executable, "-m", "weightdecay", *words]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    saved = tmp_path / "s" / "checkpoints"
    while not list(saved.glob("*/checkpoint-*.pt")):
        time.sleep(0.05)
    before = max(saved.glob("*/checkpoint-*.pt"))
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 130
    assert max(saved.glob("*/checkpoint-*.pt")) >= before
    assert not list(saved.glob("*/.*.unfinished"))


def test_sweep_trains_and_returns_runs_in_the_order_asked_for(tmp_path: Path) -> None:
    asked = [CELLS[3], CELLS[0], CELLS[3]]
    runs = sweep(asked, folder=tmp_path, engine=Scripted())
    assert [run.config for run in runs] == [CELLS[3], CELLS[0]]
    assert sweep(CELLS[:1], folder=tmp_path, engine=Scripted()) == runs[1:]
    assert sorted(runs, key=lambda run: run.config.identity) == Store(tmp_path).runs()


def test_sweep_logs_a_problem_as_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def script(job: Job) -> list[Message]:
        return [Notice("The disk is full.", problem=True), finished(job.cells), Ended()]

    sweep(CELLS, folder=tmp_path, engine=Scripted(script))
    assert [(level, said) for _, level, said in caplog.record_tuples] == [
        (logging.WARNING, "The disk is full.")
    ]


def test_sweep_warns_of_what_could_not_be_trained(tmp_path: Path) -> None:
    def script(job: Job) -> list[Message]:
        return [Failed("RuntimeError: no luck.", "", memory=False)]

    with pytest.warns(RuntimeWarning, match=r"^2 of 2 configurations .* RuntimeError: no luck\."):
        assert sweep(CELLS[:2], folder=tmp_path, engine=Scripted(script, lanes=1)) == []
    assert len(sweep(CELLS[:2], folder=tmp_path, engine=Scripted(), retry=True)) == 2
