"""A sweep does not hang: not on a lock that outlives its worker, nor on a worker that is stuck."""

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from torch import Tensor

from tests.disturbed import children
from tests.test_sweeps import Scripted
from tests.toys import config, hasty, toy
from weightdecay import files
from weightdecay.cli import main, sweep_view
from weightdecay.cli.progress import Bars
from weightdecay.records import Notice, Progress, RunConfig, Saving
from weightdecay.sweeps import (
    CellFailed,
    Status,
    Store,
    SweepEvent,
    Working,
    claims,
    coordinator,
    read_study,
    sweep_events,
    watchdog,
    worker,
)
from weightdecay.sweeps.engine import Begun, Died, Ended, Job, Message
from weightdecay.sweeps.inprocess import InProcess
from weightdecay.sweeps.local import Local
from weightdecay.tasks import Task

pytestmark = pytest.mark.cpu("its tasks fork, which a process that uses a GPU must not")
#: Seconds that a test waits for what should come at once, and that processes stay which it fails
#: to end.
SOON, STAYS = 60.0, 90.0


def cell(task: str, **changes: object) -> RunConfig:
    return config(**{"task": f"tests.test_hanging:{task}", "epochs": 1, **changes})


def once(act: Callable[[], None]) -> Callable[[Tensor, Tensor | None], Tensor]:
    """Return the preparation of batches that does something in the middle, whoever trains."""
    calls = count(1)

    def prepare(batch: Tensor, words: Tensor | None) -> Tensor:
        mark = Path(os.environ["MARK"])
        if next(calls) == 5 and not mark.exists():
            mark.touch()
            act()
        return batch

    return prepare


def stay() -> None:
    """Leave a process behind that outlives this one."""
    child = os.fork()
    if not child:
        time.sleep(STAYS)
        os._exit(0)
    Path(os.environ["MARK"]).write_text(str(child))
    time.sleep(STAYS)


def hold_the_interpreter() -> None:
    """Be stuck in C code that lets no other thread of Python run."""
    ctypes.PyDLL(None).sleep(int(STAYS))


def fork_in_c() -> None:
    """Fork where Python does not notice, with all that is open, and be stuck as well."""
    child = ctypes.PyDLL(None).fork()
    if child:
        Path(os.environ["MARK"]).write_text(str(child))
    hold_the_interpreter()
    os._exit(1)


def forks() -> Task:
    return replace(toy(), prepare=once(stay))


def sticks() -> Task:
    return replace(toy(), prepare=once(hold_the_interpreter))


def forks_in_c() -> Task:
    return replace(toy(), prepare=once(fork_in_c))


def slow() -> Task:
    return hasty()


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there once a task has done what it does once."""
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    return tmp_path / "mark"


@pytest.fixture
def only_child() -> Callable[[], int]:
    """Return the one process that the test has started; torch's compilers may have been there."""
    before = set(children(os.getpid()))

    def found() -> int:
        [one] = set(children(os.getpid())) - before
        return one

    return found


def soon(happened: Callable[[], bool]) -> bool:
    """Wait until something has happened, and return whether it has."""
    until = time.monotonic() + SOON
    while not (now := happened()) and time.monotonic() < until:
        time.sleep(0.02)
    return now


def heard(engine: Local, told: list[Message]) -> list[Message]:
    """Return what was told, with what is told now."""
    told += [message for _, message in engine.wait(0.1)]
    return told


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_forked_process_does_not_keep_the_locks_of_a_killed_worker(
    tmp_path: Path, mark: Path, only_child: Callable[[], int]
) -> None:
    events = sweep_events([cell("forks")], folder=tmp_path / "s", engine=Local(1, "cpu"))
    for _ in events:
        if mark.exists() and mark.read_text():
            break
    worker = only_child()
    os.kill(worker, signal.SIGKILL)
    list(events)
    forked = int(mark.read_text())
    assert lives(forked)
    os.kill(forked, signal.SIGKILL)
    assert len(Store(tmp_path / "s").runs()) == 1


def test_a_forked_process_does_not_keep_claims(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.claiming() as claims, store.writing(workers=1):
        assert claims.take("0" * 64)
        child = os.fork()
        if not child:
            time.sleep(STAYS)
            os._exit(0)
        assert store.running(["0" * 64])  # the child has let go of nothing of ours
        assert store.alive() == 1
    assert soon(lambda: not store.running(["0" * 64]))
    assert soon(lambda: store.alive() == 0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


#: A sweep of a cell that is given as its values: torch, which takes seconds to come, stays out.
COORDINATOR = """
import json, sys
from weightdecay.records import RunConfig
from weightdecay.sweeps import sweep_events
from weightdecay.sweeps.local import Local

cell = RunConfig.from_dict(json.loads(sys.argv[1]))
list(sweep_events([cell], folder=sys.argv[2], engine=Local(1, "cpu")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the closing pipe must do")
@pytest.mark.slow
@pytest.mark.parametrize("task", ["slow", "sticks"])
def test_a_worker_that_is_stopped_or_stuck_dies_with_its_coordinator(
    task: str, tmp_path: Path, mark: Path
) -> None:
    values = json.dumps(cell(task, epochs=9999).as_dict())
    command = [sys.executable, "-c", COORDINATOR, values, str(tmp_path / "s")]
    coordinator = subprocess.Popen(command)
    begun = mark if task == "sticks" else tmp_path / "s" / "checkpoints"
    assert soon(begun.exists)
    [worker] = children(coordinator.pid)
    if task == "slow":
        os.kill(worker, signal.SIGSTOP)
    coordinator.kill()
    coordinator.wait()
    died = soon(lambda: not lives(worker))
    if not died:
        os.kill(worker, signal.SIGKILL)
    assert died


@pytest.mark.slow
def test_a_worker_outlives_the_thread_that_began_its_job(tmp_path: Path) -> None:
    """What dies with its parent is, to Linux, what dies with the thread that started it."""
    engine, trains = Local(1, "cpu"), threading.Event()

    def begin() -> None:
        engine.begin(Job(1, (cell("slow", epochs=40),), tmp_path))
        trains.wait(SOON)

    thread = threading.Thread(target=begin)
    thread.start()
    assert soon(lambda: any(isinstance(said, Progress) for _, said in engine.wait(0.1)))
    trains.set()
    thread.join()
    told: list[Message] = []
    assert soon(lambda: any(isinstance(said, Ended | Died) for said in heard(engine, told)))
    assert told[-1] == Ended()
    engine.close()


def test_a_cell_that_somebody_else_holds_is_waited_for_aloud(tmp_path: Path) -> None:
    one = config()
    folder = tmp_path / "checkpoints" / one.identity
    folder.mkdir(parents=True)
    said = []
    with (folder / "lock").open("ab") as file:
        assert files.lock(file, wait=False)
        threading.Timer(SOON, file.close).start()
        for event in sweep_events([one], folder=tmp_path, engine=InProcess("cpu")):
            if isinstance(event, Notice):
                said.append(event.text)
                file.close()
    [told] = said
    assert told.startswith(f"Run {one.identity} is locked by another process; its training starts ")
    assert told.endswith(f"`fuser {folder / 'lock'}` shows which process it is.")
    assert len(Store(tmp_path).runs()) == 1


@pytest.mark.slow
def test_a_stop_ends_a_worker_that_is_stuck_and_whose_pipe_stays_open(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch, only_child: Callable[[], int]
) -> None:
    monkeypatch.setattr(coordinator, "_STOP_WITHIN", 0.1)
    events = sweep_events([cell("forks_in_c")], folder=tmp_path / "s", engine=Local(1, "cpu"))
    for _ in events:
        if mark.exists() and mark.read_text():
            break
    worker = only_child()
    begun = time.monotonic()
    events.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun < STAYS / 2  # the forked process was not waited for
    assert not lives(worker)
    os.kill(int(mark.read_text()), signal.SIGKILL)


@pytest.mark.slow
def test_a_death_is_noticed_though_the_pipe_stays_open(
    tmp_path: Path, mark: Path, only_child: Callable[[], int]
) -> None:
    engine = Local(1, "cpu")
    engine.begin(Job(1, (cell("forks_in_c"),), tmp_path / "s"))
    assert soon(lambda: mark.exists() and bool(mark.read_text()))
    worker = only_child()
    os.kill(worker, signal.SIGKILL)
    told: list[Message] = []
    assert soon(lambda: any(isinstance(said, Died) for said in heard(engine, told)))
    forked = int(mark.read_text())
    assert lives(forked)
    os.kill(forked, signal.SIGKILL)
    engine.close()


@pytest.mark.slow
def test_a_worker_that_is_stuck_can_be_ended_and_replaced(
    tmp_path: Path, mark: Path, only_child: Callable[[], int]
) -> None:
    engine = Local(1, "cpu")
    engine.begin(Job(1, (cell("sticks"),), tmp_path / "s"))
    assert soon(mark.exists)
    worker = only_child()
    engine.end(1)
    assert not lives(worker)
    engine.begin(Job(2, (cell("sticks"),), tmp_path / "s"))
    assert soon(lambda: (2, Ended()) in engine.wait(0.1))
    engine.close()


class Clock(Scripted):
    """An engine that is also the clock: a wait takes as long as it may."""

    def __init__(self, *messages: Message, says: Message | None = None) -> None:
        super().__init__(lambda job: messages, workers=1, lanes=1)
        self.now, self.ended, self._says = 0.0, list[int](), says

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        told = super().wait(seconds)
        self.now += 0 if told else seconds
        again = [] if self._says is None else [(job.number, self._says) for job in self.jobs]
        return told + again

    def end(self, number: int) -> None:
        self.ended.append(number)


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Clock], Clock]:
    def put(clock: Clock) -> Clock:
        for module in (coordinator, watchdog):
            monkeypatch.setattr(module, "time", clock)
        return clock

    return put


def unheard(events: Iterator[SweepEvent], engine: Clock, seconds: float) -> list[float]:
    """Sweep for so long, and return for how long workers were unheard."""
    found = []
    for event in events:
        found += [event.unheard] if isinstance(event, Working) and event.unheard else []
        if engine.now > seconds:
            events.close()  # type: ignore[attr-defined]
    return found


def test_a_silent_worker_is_told_of(tmp_path: Path, clocked: Callable[[Clock], Clock]) -> None:
    engine = clocked(Clock(Begun()))
    found = unheard(sweep_events([config()], folder=tmp_path, engine=engine), engine, 400)
    assert found == sorted(found)
    assert 30 <= found[0] < 35
    assert 395 < found[-1] <= 401


def test_a_worker_that_gives_signs_of_life_is_not_unheard(
    tmp_path: Path, clocked: Callable[[Clock], Clock]
) -> None:
    engine = clocked(Clock(Begun(), says=Notice("alive")))
    events = sweep_events([config()], folder=tmp_path, engine=engine, timeout=60)
    assert not unheard(events, engine, 400)
    assert not engine.ended


def test_a_job_that_waits_for_a_place_is_not_unheard(
    tmp_path: Path, clocked: Callable[[Clock], Clock]
) -> None:
    engine = clocked(Clock())
    events = sweep_events([config()], folder=tmp_path, engine=engine, timeout=60)
    assert not unheard(events, engine, 400)
    assert not engine.ended


def test_silence_past_the_limit_counts_as_a_death(
    tmp_path: Path, clocked: Callable[[Clock], Clock]
) -> None:
    engine = clocked(Clock(Begun()))
    events = list(sweep_events([config()], folder=tmp_path, engine=engine, timeout=60))
    [failed] = [event for event in events if isinstance(event, CellFailed)]
    assert failed.failure.reason == "Its worker was silent for 60 seconds and was killed."
    assert engine.ended == [job.number for job in engine.jobs]
    assert len(engine.jobs) == 10
    assert 600 < engine.now < 650


def test_time_in_which_nobody_listened_is_not_silence(
    tmp_path: Path, clocked: Callable[[Clock], Clock]
) -> None:
    """The sweep itself may be suspended, or wait for a disk."""
    engine = clocked(Clock(Begun()))
    events = sweep_events([config()], folder=tmp_path, engine=engine, timeout=60)
    for event in events:
        if isinstance(event, Status) and event.running:
            break
    engine.now += 3600
    next(events)
    assert not engine.ended
    assert not unheard(events, engine, 3615)


def test_a_stop_waits_ten_seconds_for_who_does_not_answer(
    tmp_path: Path, clocked: Callable[[Clock], Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = clocked(Clock(Begun()))
    monkeypatch.setattr(engine, "ask_to_stop", lambda: None)
    events = sweep_events([config()], folder=tmp_path, engine=engine)
    next(event for event in events if isinstance(event, Working))
    begun = engine.now
    events.close()  # type: ignore[attr-defined]
    assert 10 <= engine.now - begun < 11


def test_a_stop_waits_for_who_is_saving_however_long_that_takes(
    tmp_path: Path, clocked: Callable[[Clock], Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large network takes more than ten seconds, and minutes of training would be lost."""
    engine = clocked(Clock(Begun()))
    wait, begun = engine.wait, engine.now

    def saves(seconds: float) -> list[tuple[int, Message]]:
        [job] = engine.jobs
        said: list[Message] = [Saving()] if engine.now < begun + 2 else []
        said += [Ended()] if engine.now > begun + 100 else []
        return wait(seconds) + [(job.number, message) for message in said]

    events = sweep_events([config()], folder=tmp_path, engine=engine)
    next(event for event in events if isinstance(event, Working))
    begun = engine.now
    monkeypatch.setattr(engine, "ask_to_stop", lambda: None)
    monkeypatch.setattr(engine, "wait", saves)
    events.close()  # type: ignore[attr-defined]
    assert 100 <= engine.now - begun < 102


def test_a_stop_waits_for_a_checkpoint_that_was_begun_before_it(
    tmp_path: Path, clocked: Callable[[Clock], Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = clocked(Clock(Begun(), Saving()))
    wait, begun = engine.wait, engine.now

    def saves(seconds: float) -> list[tuple[int, Message]]:
        ended = [(engine.jobs[0].number, Ended())] if engine.now > begun + 100 else []
        return [*wait(seconds), *ended]

    monkeypatch.setattr(engine, "ask_to_stop", lambda: None)
    events = sweep_events([config()], folder=tmp_path, engine=engine)
    next(event for event in events if isinstance(event, Working))
    begun = engine.now
    monkeypatch.setattr(engine, "wait", saves)
    events.close()  # type: ignore[attr-defined]
    assert 100 <= engine.now - begun < 102


def test_a_process_that_is_forked_twice_keeps_the_files_it_opened_between() -> None:
    reading, writing = os.pipe()
    ours = {reading, writing}
    worker._release(ours)
    with Path(os.devnull).open() as file:  # in the first child
        worker._release(ours)  # in its own
        assert os.fstat(file.fileno()).st_ino == Path(os.devnull).stat().st_ino
        os.dup2(file.fileno(), reading)
        worker._release(ours)
    assert ours == set()
    assert os.fstat(writing).st_rdev == Path(os.devnull).stat().st_rdev
    os.close(reading)
    os.close(writing)


def test_a_forked_process_sees_what_others_have_claimed(tmp_path: Path) -> None:
    """Its parent's open files are closed there, and it must open them anew."""
    program = (
        "import os, sys; from contextlib import ExitStack; from pathlib import Path\n"
        "from weightdecay.sweeps import claims\n"
        f"ours = claims.Claims(Path({str(tmp_path)!r}), ExitStack())\n"
        "assert ours.take('0123456789abcdef0124')\n"
        "asked = ['0123456789abcdef0123', '0123456789abcdef0124']\n"
        "if child := os.fork():\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        f"os._exit(len(claims.taken(Path({str(tmp_path)!r}), asked)))"
    )
    with ExitStack() as held:
        assert claims.Claims(tmp_path, held).take("0123456789abcdef0123")
        done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == 2


def test_a_silent_worker_is_spoken_of_after_five_minutes_and_again_after_twice_as_many(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen, bars = sweep_view._Screen(argparse.Namespace(quiet=False)), Bars()
    for seconds in (30.0, 299.0, 300.0, 301.0, 599.0, 600.0, 0.0, 299.0, 300.0):
        screen.show(Working(0, 6, None, unheard=seconds), bars)
    assert [line.partition(" and ")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"Worker 1 (6 cells) has sent no message for {minutes}:00" for minutes in (5, 10, 5)
    ]
    assert screen.lines.workers[0] == (None, "worker 1, 6 cells: no message for 5:00")


def test_cells_that_another_sweep_has_are_waited_for_aloud_in_a_log_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study, folder = tmp_path / "study.toml", tmp_path / "s"
    study.write_text(
        'task = "tests.toys:toy"\nmodel = "mlp"\nalgorithm = "adamw"\nlr = 0.02\nepochs = 3\n'
        "batch = 30\nnormalized_decay = 0.1\nseed = [1, 2]\n"
    )
    monkeypatch.setattr(sweep_view, "engine_of", lambda options: Scripted())
    with Store(folder).claiming() as claims:
        cells = [one.identity for one in read_study(study)]
        assert all(claims.take(cell) for cell in cells)

        def free() -> None:
            for cell in cells:
                claims.free(cell)

        threading.Timer(2.0, free).start()
        assert main(["sweep", str(study), "--out", str(folder)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said.count("Waiting for cells that another sweep of this folder is training.") == 1
