"""A worker process, `python -m weightdecay.sweeps.worker`: gets jobs and sends messages by pipes.

It ends when it is told to, and at once when its parent is gone, because its input pipe closes. A
worker that is stopped or stuck in C code does not notice that: on Linux the system kills it.
"""

import ctypes
import gc
import os
import pickle
import signal
import sys
import threading
from dataclasses import replace
from functools import partial
from queue import Queue
from typing import IO, TYPE_CHECKING

from weightdecay.records import Progress, Saving
from weightdecay.sweeps.engine import Ended, Failed, Job, Message, train_job

if TYPE_CHECKING:
    from weightdecay.tasks import Task


_PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def main(device: str, parent: str | None = None) -> None:
    """Do jobs until there are no more; die with the parent if its process number is given."""
    if parent is not None and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # it died before the call above
            sys.exit(1)
    commands, answers = _pipes()
    jobs: Queue[Job | None] = Queue()
    stopping = threading.Event()
    threading.Thread(target=_listen, args=(commands, jobs, stopping), daemon=True).start()
    import torch  # noqa: PLC0415 - a coordinator imports this package and needs no torch

    if device == "cpu":
        torch.set_num_threads(1)
    loaded: dict[str, Task] = {}
    while (job := jobs.get()) is not None:
        _do(job, device, answers, stopping, loaded)


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return the two pipes, out of reach of a task that prints, reads stdin or forks processes."""
    commands = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    ours = commands.fileno(), answers.fileno()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(_release, {*ours}))
    return commands, answers


def _release(ours: set[int]) -> None:
    """Detach the pipes in a process that a task has forked, once."""
    if ours:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in ours:
            os.dup2(nothing, number, inheritable=False)
        os.close(nothing)
        ours.clear()


def _do(
    job: Job,
    device: str,
    answers: IO[bytes],
    stopping: threading.Event,
    loaded: "dict[str, Task]",
) -> None:
    messages = train_job(job, device, loaded)
    for message in messages:
        if isinstance(message, Failed) and not _usable(device):
            _send(answers, job, replace(message, leaves=True))
            sys.exit()
        _send(answers, job, message)
        if isinstance(message, Progress) and stopping.is_set():
            _send(answers, job, Saving())
            messages.close()  # type: ignore[attr-defined]
            _send(answers, job, Ended())


def _usable(device: str) -> bool:
    """Whether this process can still use its device: some errors make a GPU unusable for it."""
    if not device.startswith("cuda"):
        return True
    import torch  # noqa: PLC0415

    gc.collect()  # frees what the frames of the error hold
    try:
        torch.cuda.empty_cache()
        torch.zeros(1, device=device).add_(1).item()
    except (AssertionError, RuntimeError):
        return False
    return True


def _send(answers: IO[bytes], job: Job, message: Message) -> None:
    pickle.dump((job.number, message), answers)
    answers.flush()


def _listen(commands: IO[bytes], jobs: "Queue[Job | None]", stopping: threading.Event) -> None:
    while True:
        try:
            command = pickle.load(commands)  # noqa: S301 - from the process that started this one
        except Exception:  # noqa: BLE001 - the parent is gone, perhaps while it was writing
            os._exit(1)
        if command is None:
            stopping.set()
        jobs.put(command)


if __name__ == "__main__":
    main(*sys.argv[1:])
