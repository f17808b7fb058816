"""Runs jobs on a Ray cluster. Ray only places work; the store decides which cells are left.

A worker is an actor with one CPU or one GPU. Ray neither restarts nor retries it: when it is gone,
its job has `Died`, and the coordinator gives the rest of the job to a new worker. Workers are not
Ray tasks because an actor can be told to stop while it trains, and keeps torch loaded between jobs.
An actor without a job is ended, which frees its place for other jobs, of this sweep or of another.
"""

import os
import re
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weightdecay import checks
from weightdecay.records import Progress, Saving
from weightdecay.sweeps import local
from weightdecay.sweeps.engine import Begun, Died, Ended, Failed, Job, Message, train_job

try:
    import ray
    from ray.exceptions import RayError, RayTaskError

    from weightdecay.sweeps.ray_cluster import connect, one_line
except ImportError:
    raise ImportError("Sweeps on Ray need Ray: pip install 'weightdecay[ray]'") from None

# The most characters of Ray's message about a death that are kept, and how such a message begins.
_LONGEST = 1000
_PREFIX = "The actor died unexpectedly before finishing this task."


class OnRay:
    """An engine with workers on a Ray cluster: by default one per GPU, or one per CPU without GPUs.

    `address` is that of a running cluster; "auto" is the cluster that this machine belongs to. A
    running cluster stays up when the engine is closed. Without an address, a cluster is started on
    this machine, and ended with the engine. If there are more `workers` than places, the others
    wait in Ray's queue.

    Checkpoints are files. A host that does not share the sweep's folder keeps its own checkpoints,
    under the same path or in a temporary folder. A job that moves to another host starts from the
    beginning there, and has the same results.
    """

    def __init__(
        self, address: str | None = None, workers: int | None = None, device: str | None = None
    ) -> None:
        if workers is not None:
            checks.whole("workers", workers, at_least=1)
        if device is not None:
            checks.one_of("device", device, ("cpu", "cuda"))
        self._running: dict[int, _RunningJob] = {}
        self._idle: list[Any] = []
        self._ended: list[int] = []
        self._doubted = False
        self._connected = not ray.is_initialized()
        if self._connected:
            connect(address or os.environ.get("RAY_ADDRESS") or "local", workers)
        there = ray.cluster_resources()  # type: ignore[no-untyped-call]
        self._device = device or ("cuda" if there.get("GPU", 0) >= 1 else "cpu")
        kind = "GPU" if self._device == "cuda" else "CPU"
        self.workers = workers or int(there.get(kind, 0))
        if not self.workers:
            self.close()
            raise ValueError(
                f"The cluster must have a {kind}, but has none now. If it will grow, give the "
                "number of workers."
            )
        self.lanes, self.repeats = local.LANES[self._device], local.REPEATS[self._device]

    def begin(self, job: Job) -> None:
        self._check_ray()
        worker = self._idle.pop() if self._idle else self._new()
        self._running[job.number] = _RunningJob(worker, worker.do.remote(job, self._device))

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return messages, and end workers without a job: other jobs wait for their places."""
        for worker in self._idle:
            self._kill(worker)
        self._idle.clear()
        found: list[tuple[int, Message]] = [(number, Ended()) for number in self._ended]
        self._ended.clear()
        until = time.monotonic() + (0 if found else seconds)
        while ready := self._ready(max(0.0, until - time.monotonic())):
            found += [(number, self._receive(number)) for number in ready]
            until = 0.0
        return found

    def end(self, number: int) -> None:
        self._kill(self._running.pop(number).worker)

    def ask_to_stop(self) -> None:
        for number, job in list(self._running.items()):
            if job.placed:
                job.worker.stop.remote()
            else:  # it may wait for a place for ever, and has nothing to save
                self._kill(self._running.pop(number).worker)
                self._ended.append(number)

    def close(self) -> None:
        workers = [job.worker for job in self._running.values()] + self._idle
        self._running.clear()
        self._idle.clear()
        if ray.is_initialized():
            for worker in workers:
                self._kill(worker)
            if self._connected:
                ray.shutdown()

    def _new(self) -> Any:
        share = {"num_gpus": 1, "num_cpus": 0} if self._device == "cuda" else {"num_cpus": 1}
        remote: Any = ray.remote  # Ray's annotations do not know all of its options
        options = {"max_restarts": 0, "max_task_retries": 0, "concurrency_groups": {"commands": 1}}
        environment = {"env_vars": _environment()}
        return remote(**share, **options, runtime_env=environment)(_Worker).remote()

    def _kill(self, worker: Any) -> None:
        with suppress(RayError, ValueError):  # it is dead already
            ray.kill(worker)

    def _ready(self, seconds: float) -> list[int]:
        """Return the jobs that have sent a message, after waiting at most this long for one."""
        numbers = {job.messages: number for number, job in self._running.items()}
        if not numbers:
            time.sleep(seconds)
            return []
        ready, _ = ray.wait(list(numbers), num_returns=1, timeout=seconds)
        if ready and len(numbers) > 1:  # which others have, too
            ready, _ = ray.wait(list(numbers), num_returns=len(numbers), timeout=0)
        return [numbers[messages] for messages in ready]

    def _receive(self, number: int) -> Message:
        """Return the next message of a job; the first one shows that it has a place."""
        job = self._running[number]
        try:
            message: Message = ray.get(next(job.messages))
        except RayTaskError as error:  # it was raised outside the training
            message = Failed(_last_line(str(error)), str(error), memory=False)
        except (RayError, StopIteration) as error:
            message = Died(_why(str(error)))
        job.placed = True
        if isinstance(message, Ended | Failed | Died):
            del self._running[number]
            self._doubted |= isinstance(message, Died)
            if isinstance(message, Died):  # it may only be unreachable, and still train its cells
                self._kill(job.worker)
            else:
                self._idle.append(job.worker)
        return message

    def _check_ray(self) -> None:
        """Raise if workers died because Ray itself has: new ones would wait for ever."""
        if self._doubted:
            here = ray.get_runtime_context().get_node_id()
            nodes = ray.nodes()  # type: ignore[no-untyped-call]
            if not any(node["Alive"] for node in nodes if node["NodeID"] == here):
                raise ConnectionError(
                    "Ray must run on this machine during the sweep, but has died. All recorded "
                    "results are safe: run the same command to continue."
                )
            self._doubted = False


@dataclass
class _RunningJob:
    """A job, its worker, and the stream of its messages."""

    worker: Any
    messages: Any
    placed: bool = False


class _Worker:
    """The actor on the cluster. Commands have a thread of their own, besides that of the jobs."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._loaded: dict[str, Any] = {}

    def do(self, job: Job, device: str) -> Iterator[Message]:
        """Do a job and stream its messages; cells that end together come in one message."""
        yield Begun()
        if not self._loaded and hasattr(os, "register_at_fork"):  # all sockets are still Ray's
            _keep_sockets_from_children()
        import torch  # noqa: PLC0415 - a coordinator imports this module and needs no torch

        if device == "cpu":
            torch.set_num_threads(1)  # for this thread
        messages = train_job(replace(job, folder=_writable(job.folder)), device, self._loaded)
        for message in messages:
            yield message
            if isinstance(message, Progress) and self._stopping.is_set():
                yield Saving()
                messages.close()  # type: ignore[attr-defined]
                yield Ended()

    @ray.method(concurrency_group="commands")
    def stop(self) -> None:
        """Have the job save its state and end when it next reports progress."""
        self._stopping.set()


def _keep_sockets_from_children() -> None:
    """Close Ray's sockets in forked processes: while one is open, Ray takes us for alive."""
    sockets = {}
    for path in Path("/dev/fd").iterdir():
        with suppress(OSError):  # this one was for listing the folder
            status = os.fstat(int(path.name))
            if stat.S_ISSOCK(status.st_mode):
                sockets[int(path.name)] = status.st_ino

    def release() -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, inode in sockets.items():
            with suppress(OSError):  # it was closed since
                if os.fstat(number).st_ino == inode:
                    os.dup2(nothing, number, inheritable=False)
        os.close(nothing)

    os.register_at_fork(after_in_child=release)


def _environment() -> dict[str, str]:
    """Return the variables that a worker needs to find a task by its name, and its data."""
    paths = [str(Path(path).absolute()) for path in sys.path]
    found = {**local.MEMORY, "PYTHONPATH": os.pathsep.join([*paths, "${PYTHONPATH}"])}
    ours = {name: value for name, value in os.environ.items() if name.startswith("WEIGHTDECAY_")}
    return found | ours


def _writable(folder: Path) -> Path:
    """Return the folder, or a temporary one if this host cannot write to it."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.gettempdir()) / "weightdecay"


def _why(message: str) -> str:
    """Describe how a worker died, with the informative part of Ray's message."""
    at = re.search(r"\n\tip: (\S+)", message)
    relevant = re.sub(r"\n\t\w+: [^\n]*", "", message).removeprefix(_PREFIX)
    text = one_line(re.split(r" If the process was killed", relevant)[0])
    where = f" at {at[1]}" if at else ""
    return f"Its worker{where} has died. Ray says: {text[:_LONGEST] or 'nothing'}"


def _last_line(text: str) -> str:
    return one_line(text.strip().rpartition("\n")[2])
