"""Jobs done on a Ray cluster: Ray only places work, and the store alone decides what is left.

A worker is an actor with a CPU, or a GPU, of its own. Ray neither restarts nor retries one: when it
is gone its job has `Died`, and the planner hands what is left to a new one. An actor and no task,
because it can be told to stop while it trains; it also keeps torch between jobs. One that gets no
job goes: its place is for other jobs, of this sweep or of another.
"""

import logging
import os
import re
import signal
import socket
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
from weightdecay.sweeps.engine import Begun, Died, Ended, Failed, Job, Message, done

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError:
    raise ImportError(
        "Sweeps on Ray need it to place them: pip install 'weightdecay[ray]'"
    ) from None

# Seconds within which a cluster answers, and letters of what Ray says of a death.
_REACHED_WITHIN, _LONGEST = 10.0, 1000
# What to do where no cluster listens, where one does not let us in, and where none can be started.
# Ray does not answer whoever lacks its token, and does not say why.
_START = "`ray start --head` starts one; without an address one is started for the sweep."
_ENTER = (
    "Something listens there. A cluster that asks for a token answers nobody without it: set "
    "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or copy ~/.ray/auth_token from its head. Its Ray must "
    "have the version of the one here."
)
_ALONE = "Ray keeps a token in ~/.ray, which must be writable; RAY_AUTH_MODE=disabled does without."
_PREFIX = "The actor died unexpectedly before finishing this task."


class OnRay:
    """An engine of Ray's workers, as many as the cluster has GPUs, or else CPUs.

    `address` is a running cluster's, and "auto" the one that this machine is part of; it stays when
    the engine is closed. Without one, a cluster of this machine is started, and goes. Workers that
    are given and for which there is no room wait in Ray's queue until there is.

    Checkpoints are files. A host that does not share the sweep's folder keeps its own under the
    same path, or where it may write; a job that goes on elsewhere starts anew there, and ends with
    the same results.
    """

    def __init__(
        self, address: str | None = None, workers: int | None = None, device: str | None = None
    ) -> None:
        if workers is not None:
            checks.whole("workers", workers, at_least=1)
        if device is not None:
            checks.one_of("device", device, ("cpu", "cuda"))
        self._going: dict[int, _Going] = {}
        self._idle: list[Any] = []
        self._ended: list[int] = []
        self._doubted = False
        self._connected = not ray.is_initialized()
        if self._connected:
            _connect(address or os.environ.get("RAY_ADDRESS") or "local", workers)
        there = ray.cluster_resources()  # type: ignore[no-untyped-call]
        self._device = device or ("cuda" if there.get("GPU", 0) >= 1 else "cpu")
        kind = "GPU" if self._device == "cuda" else "CPU"
        self.workers = workers or int(there.get(kind, 0))
        if not self.workers:
            self.close()
            raise ValueError(
                f"The cluster must have a {kind}, and has none now. Where it will grow, say how "
                "many workers there are to be."
            )
        self.lanes, self.repeats = local.LANES[self._device], local.REPEATS[self._device]

    def begin(self, job: Job) -> None:
        self._check_ray()
        worker = self._idle.pop() if self._idle else self._new()
        self._going[job.number] = _Going(worker, worker.do.remote(job, self._device))

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return what has come. Workers that have nothing to do now go: others wait for a place."""
        for worker in self._idle:
            self._kill(worker)
        self._idle.clear()
        found: list[tuple[int, Message]] = [(number, Ended()) for number in self._ended]
        self._ended.clear()
        until = time.monotonic() + (0 if found else seconds)
        while ready := self._ready(max(0.0, until - time.monotonic())):
            found += [(number, self._heard(number)) for number in ready]
            until = 0.0
        return found

    def end(self, number: int) -> None:
        self._kill(self._going.pop(number).worker)

    def ask_to_stop(self) -> None:
        for number, going in list(self._going.items()):
            if going.placed:
                going.worker.stop.remote()
            else:  # it may wait for a place forever, and has nothing to save
                self._kill(self._going.pop(number).worker)
                self._ended.append(number)

    def close(self) -> None:
        workers = [going.worker for going in self._going.values()] + self._idle
        self._going.clear()
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
        """Return the jobs that have something to say, after so long at most."""
        numbers = {going.messages: number for number, going in self._going.items()}
        if not numbers:
            time.sleep(seconds)
            return []
        ready, _ = ray.wait(list(numbers), num_returns=1, timeout=seconds)
        if ready and len(numbers) > 1:  # who else has
            ready, _ = ray.wait(list(numbers), num_returns=len(numbers), timeout=0)
        return [numbers[messages] for messages in ready]

    def _heard(self, number: int) -> Message:
        """Return what a job says; its first word is that it has been placed."""
        going = self._going[number]
        try:
            message: Message = ray.get(next(going.messages))
        except RayTaskError as error:  # it was raised before, or beside, the training
            message = Failed(_last_line(str(error)), str(error), memory=False)
        except (RayError, StopIteration) as error:
            message = Died(_why(str(error)))
        going.placed = True
        if isinstance(message, Ended | Failed | Died):
            del self._going[number]
            self._doubted |= isinstance(message, Died)
            if isinstance(message, Died):  # what cannot be reached may yet train, and hold cells
                self._kill(going.worker)
            else:
                self._idle.append(going.worker)
        return message

    def _check_ray(self) -> None:
        """Raise where workers die because Ray itself is gone here: they would wait for ever."""
        if self._doubted:
            here = ray.get_runtime_context().get_node_id()
            nodes = ray.nodes()  # type: ignore[no-untyped-call]
            if not any(node["Alive"] for node in nodes if node["NodeID"] == here):
                raise ConnectionError(
                    "Ray must run on this machine while the sweep does, and has died. What is "
                    "recorded is safe: the same command goes on from there."
                )
            self._doubted = False


@dataclass
class _Going:
    """A job that was handed to a worker, and the messages that stream back."""

    worker: Any
    messages: Any
    placed: bool = False


class _Worker:
    """What runs on the cluster. Commands have a thread of their own beside that of the jobs."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._held: dict[str, Any] = {}

    def do(self, job: Job, device: str) -> Iterator[Message]:
        """Do a job, and stream what comes of it; cells that end together are one message."""
        yield Begun()
        if not self._held and hasattr(os, "register_at_fork"):  # all sockets are Ray's yet
            _keep_sockets_from_children()
        import torch  # noqa: PLC0415 - the planner imports this room, and does without it

        if device == "cpu":
            torch.set_num_threads(1)  # of this thread
        messages = done(replace(job, folder=_writable(job.folder)), device, self._held)
        for message in messages:
            yield message
            if isinstance(message, Progress) and self._stopping.is_set():
                yield Saving()
                messages.close()  # type: ignore[attr-defined]
                yield Ended()

    @ray.method(concurrency_group="commands")
    def stop(self) -> None:
        """Save what there is at the next sign of life, and end."""
        self._stopping.set()


def _keep_sockets_from_children() -> None:
    """Close sockets in processes that are forked: while one is open, Ray takes us for alive."""
    sockets = {}
    for path in Path("/dev/fd").iterdir():
        with suppress(OSError):  # it was the folder's own
            status = os.fstat(int(path.name))
            if stat.S_ISSOCK(status.st_mode):
                sockets[int(path.name)] = status.st_ino

    def let_go() -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, inode in sockets.items():
            with suppress(OSError):  # it is closed
                if os.fstat(number).st_ino == inode:
                    os.dup2(nothing, number, inheritable=False)
        os.close(nothing)

    os.register_at_fork(after_in_child=let_go)


def _connect(address: str, workers: int | None) -> None:
    """Join a cluster, or start one here; what Ray has to say is said by `Died`, and once."""
    if address.startswith("ray://"):
        raise ValueError(
            f"`address` must be a cluster's own, as auto or host:6379, got {address!r}: nothing "
            "streams through a Ray client. Start the sweep on a machine of the cluster."
        )
    alone: dict[str, Any] = {}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked for it to be reported
        alone = {"num_cpus": workers or local.cores(), "include_dashboard": False}
    terminated = signal.getsignal(signal.SIGTERM)
    cure = _START
    try:
        if not alone:
            _check_reachable(address)
            cure = _ENTER
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **alone)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        said = _one_line(str(error)).rstrip(".")
        if alone:
            raise ConnectionError(f"Ray must start on this machine: {said}. {_ALONE}") from error
        raise ConnectionError(
            f"`address` must be a running Ray cluster's, got {address!r}: {said}. {cure}"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminated)  # Ray has put its own in place
    # Ray prints the deaths of workers to stdout whatever its logging is set to.
    ray._private.worker._worker_logs_enabled = False


def _check_reachable(address: str) -> None:
    """Raise where nobody listens: Ray would try for minutes."""
    found = ray._private.services.canonicalize_bootstrap_address(address) or address
    host, _, port = found.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_REACHED_WITHIN):
        pass


def _environment() -> dict[str, str]:
    """Return what a worker needs to find a task that only has a name, and its data."""
    paths = [str(Path(path).absolute()) for path in sys.path]
    found = {**local.MEMORY, "PYTHONPATH": os.pathsep.join([*paths, "${PYTHONPATH}"])}
    ours = {name: value for name, value in os.environ.items() if name.startswith("WEIGHTDECAY_")}
    return found | ours


def _writable(folder: Path) -> Path:
    """Return the folder, or where it cannot be on this host, one that can."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.gettempdir()) / "weightdecay"


def _why(said: str) -> str:
    """Say how a worker was lost, in what matters of Ray's own words."""
    at = re.search(r"\n\tip: (\S+)", said)
    telling = re.sub(r"\n\t\w+: [^\n]*", "", said).removeprefix(_PREFIX)
    words = _one_line(re.split(r" If the process was killed", telling)[0])
    where = f" at {at[1]}" if at else ""
    return f"Its worker{where} is gone. Ray says: {words[:_LONGEST] or 'nothing'}"


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"\x1b\[\d*m", "", text).split())


def _last_line(text: str) -> str:
    return _one_line(text.strip().rpartition("\n")[2])
