"""A worker process: `python -m weightdecay.sweeps.worker`, jobs in and messages out, by pipes.

It ends when told to, and at once when whoever started it is gone: the pipe it listens to closes.
"""

import os
import pickle
import signal
import sys
import threading
from queue import Queue
from typing import IO

from weightdecay.records import Progress
from weightdecay.sweeps.engine import Ended, Job, Message, done


def main(device: str) -> None:
    """Do the jobs that come, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of Ctrl-C we are told by the planner
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a user's task prints is no message
    jobs: Queue[Job | None] = Queue()
    stopping = threading.Event()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, jobs, stopping), daemon=True).start()
    import torch  # noqa: PLC0415 - the planner imports this room, and does without it

    if device == "cpu":
        torch.set_num_threads(1)
    while (job := jobs.get()) is not None:
        _do(job, device, answers, stopping)


def _do(job: Job, device: str, answers: IO[bytes], stopping: threading.Event) -> None:
    messages = done(job, device)
    for message in messages:
        _send(answers, job, message)
        if isinstance(message, Progress) and stopping.is_set():
            messages.close()  # type: ignore[attr-defined]
            _send(answers, job, Ended())


def _send(answers: IO[bytes], job: Job, message: Message) -> None:
    pickle.dump((job.number, message), answers)
    answers.flush()


def _listen(commands: IO[bytes], jobs: "Queue[Job | None]", stopping: threading.Event) -> None:
    while True:
        try:
            command = pickle.load(commands)  # noqa: S301 - from the process that started this one
        except EOFError:
            os._exit(1)
        if command is None:
            stopping.set()
        jobs.put(command)


if __name__ == "__main__":
    main(*sys.argv[1:])
