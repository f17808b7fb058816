"""A sweep to disturb: its coordinators and workers, each of them a process."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from tests.toys import hasty
from weightdecay.records import RunConfig
from weightdecay.records.codec import read
from weightdecay.sweeps import Store, read_study
from weightdecay.tasks import Task

STUDY = Path(__file__).with_suffix(".toml")
#: Seconds after which a process counts as hanging, and the lifetime of a forked process.
LIMIT, STAYS = 300.0, 900.0
#: The environment variable with the folder, in all processes of a sweep, also on Ray.
MARK = "WEIGHTDECAY_DISTURBED"
COMMAND = "from weightdecay.cli import script; script()"


def cells() -> list[RunConfig]:
    """Return a sweep of 36 cells."""
    return read_study(STUDY)


def leaving() -> Task:
    """Return a task whose worker forks a process that outlives it, if a certain file exists."""
    whole, folder = hasty(), os.environ.get(MARK)

    def prepare(batch: Tensor, words: Tensor | None) -> Tensor:
        if folder is not None and Path(f"{folder}.fork").exists():
            with suppress(FileNotFoundError):  # another worker was faster
                Path(f"{folder}.fork").unlink()
                if not (child := os.fork()):
                    time.sleep(STAYS)
                    os._exit(0)
                Path(f"{folder}.forked").write_text(f"{os.getpid()} {child}\n")
        assert whole.prepare is not None
        return whole.prepare(batch, words)

    return replace(whole, prepare=prepare)


def start(
    folder: Path, study: Path = STUDY, *, workers: int = 2, address: str | None = None
) -> "subprocess.Popen[bytes]":
    """Start or resume the sweep by its command; its output goes to a file."""
    command = [sys.executable, "-X", "faulthandler", "-c", COMMAND, "sweep", str(study)]
    command += ["--out", str(folder), "--workers", str(workers), "--device", "cpu"]
    command += [] if address is None else ["--on", "ray", "--address", address]
    paths = os.pathsep.join(filter(None, sys.path))
    own = {**os.environ, "PYTHONPATH": paths, MARK: str(folder)}
    with Path(f"{folder}.said").open("ab") as output:
        return subprocess.Popen(command, env=own, stdout=output, stderr=output)


def results(folder: Path) -> list[str]:
    """Return the results of a sweep as lines that can be compared."""
    return list(Store(folder).results())


def undisturbed(folder: Path, study: Path = STUDY) -> list[str]:
    """Run the sweep without disturbing it, and return its results."""
    assert start(folder, study).wait(LIMIT) == 0
    return results(folder)


def recorded(folder: Path) -> Counter[str]:
    """Return how often each cell is recorded, counting undamaged lines only."""
    found: Counter[str] = Counter()
    for path in folder.glob("log/*.jsonl"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            with suppress(ValueError):
                kind, value, _ = read(line + b"\n")
                found.update([value["run"]] if kind == "result" else [])
    return found


def children(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def send(sign: signal.Signals, *processes: int) -> None:
    """Send a signal to those of the processes that still exist."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, sign)


class Disturbed:
    """A sweep with one or two coordinators, which can be started again after they have ended."""

    def __init__(
        self,
        folder: Path,
        chance: random.Random,
        *,
        study: Path = STUDY,
        address: str | None = None,
    ) -> None:
        self.folder, self.chance, self.study = folder, chance, study
        #: Processes that workers have left behind, and coordinators that use Ray.
        self.forked, self.on_ray = list[int](), set[int]()
        self._engines = (None,) if address is None else (None, address)
        self._coordinators: list[subprocess.Popen[bytes]] = []
        self._count = chance.choice((1, 2))

    def begin(self) -> None:
        """Start the coordinators that are not running."""
        self._coordinators = [one for one in self._coordinators if one.poll() is None]
        while len(self._coordinators) < self._count:
            address = self.chance.choice(self._engines)
            process = start(self.folder, self.study, workers=2 // self._count, address=address)
            self.on_ray |= set() if address is None else {process.pid}
            self._coordinators.append(process)

    def alive(self) -> list[int]:
        """Return the coordinators that are running."""
        return [one.pid for one in self._coordinators if one.poll() is None]

    def workers(self) -> list[int]:
        """Return the workers of this sweep, recognized by their environment."""
        mark, found = f"{MARK}={self.folder}".encode(), []
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it is gone
                said = (path / "cmdline").read_bytes()
                works = b"weightdecay.sweeps.worker" in said or b"ray::_Worker" in said
                if works and mark in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
        return [one for one in found if one not in self.forked]

    def is_through(self, seconds: float) -> bool:
        """Wait this long, and return whether all coordinators have ended by themselves."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.alive():
            time.sleep(0.02)
        ended = [one for one in self._coordinators if one.poll() is not None]
        for process in ended:
            self._wait(process, 0)
        return len(ended) == len(self._coordinators)

    def wait(self, *statuses: int) -> None:
        """Wait until all coordinators have ended, with one of these statuses."""
        for process in self._coordinators:
            self._wait(process, *statuses)

    def _wait(self, process: "subprocess.Popen[bytes]", *statuses: int) -> None:
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            there = f"coordinators {self.alive()}, workers {self.workers()}"
            send(signal.SIGABRT, process.pid)  # faulthandler then prints where it is
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            raise AssertionError(
                f"coordinator {process.pid} hangs; there are {there}\n{self._output()}"
            ) from None
        assert status in statuses, f"a coordinator ended with {status}\n{self._output()}"

    def kill(self, *chosen: int) -> None:
        """Kill these coordinators."""
        for process in self._coordinators:
            if process.pid in chosen:
                process.kill()
                process.wait()

    def check(self) -> None:
        """Check what a complete sweep has left."""
        wanted = {config.identity: 1 for config in read_study(self.study)}
        assert recorded(self.folder) == wanted, "some cells are not recorded once"
        until = time.monotonic() + LIMIT
        # A worker stopped before it asked to die with its coordinator ends once it runs again.
        send(signal.SIGCONT, *self.workers())
        while workers := self.workers():
            assert time.monotonic() < until, f"the workers {workers} have outlived the sweep"
            time.sleep(0.1)
        if self.on_ray:  # Ray's workers live on for seconds: the next sweep cleans up after them
            assert start(self.folder, self.study, workers=1, address=None).wait(LIMIT) == 0
        left = [path.name for path in self.folder.glob("checkpoints/*")]
        assert not left, f"there are checkpoints of {left}"

    def close(self) -> None:
        """Kill all processes that are left."""
        self.kill(*self.alive())
        send(signal.SIGKILL, *self.workers(), *self.forked)

    def _output(self) -> str:
        return Path(f"{self.folder}.said").read_text(errors="replace")[-4000:]
