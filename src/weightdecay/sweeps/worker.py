"""A worker process: `python -m weightdecay.sweeps.worker`, jobs in and messages out, by pipes.

It ends when told to, and at once when whoever started it is gone: the pipe it listens to closes.
Where it is stopped, or stuck in C code, it cannot listen: on Linux the system kills it then.
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
from weightdecay.sweeps.engine import Ended, Failed, Job, Message, done

if TYPE_CHECKING:
    from weightdecay.tasks import Task


_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def main(device: str, parent: str | None = None) -> None:
    """Do the jobs that come, until there are no more; die with the parent, where it is named."""
    if parent is not None and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # it has died before
            sys.exit(1)
    commands, answers = _pipes()
    jobs: Queue[Job | None] = Queue()
    stopping = threading.Event()
    threading.Thread(target=_listen, args=(commands, jobs, stopping), daemon=True).start()
    import torch  # noqa: PLC0415 - the planner imports this room, and does without it

    if device == "cpu":
        torch.set_num_threads(1)
    held: dict[str, Task] = {}
    while (job := jobs.get()) is not None:
        _do(job, device, answers, stopping, held)


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the two pipes for us: a task may print, read, and fork processes that outlive us."""
    commands = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    ours = commands.fileno(), answers.fileno()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(_let_go, {*ours}))
    return commands, answers


def _let_go(ours: set[int]) -> None:
    """Point the pipes to nothing in a process that a task has forked, once."""
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
    held: "dict[str, Task]",
) -> None:
    messages = done(job, device, held)
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
    """Whether this process can go on with its device: some errors leave a GPU unusable to it."""
    if not device.startswith("cuda"):
        return True
    import torch  # noqa: PLC0415

    gc.collect()  # what the error's frames held
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
        except Exception:  # noqa: BLE001 - the planner is gone, perhaps in the middle of a word
            os._exit(1)
        if command is None:
            stopping.set()
        jobs.put(command)


if __name__ == "__main__":
    main(*sys.argv[1:])
