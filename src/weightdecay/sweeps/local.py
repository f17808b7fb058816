"""Runs jobs on processes of this machine: one per core, or one per GPU."""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import IO

from weightdecay import checks
from weightdecay.sweeps.engine import Begun, Died, Ended, Failed, Job, Message

#: Lanes per job. More are hardly faster, and more is lost if a job dies.
LANES = {"cpu": 128, "cuda": 16}
#: Lets a worker keep freed memory for its next update. Otherwise the system clears new pages each
#: time, which takes a tenth of a small network's training. Only glibc reads these variables, and
#: some of its versions refuse a threshold above 32 MiB.
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
#: The fraction of cells trained again in other packs. On a CPU a cell's bits are always the same;
#: on a GPU the largest difference shows how precise results are.
REPEATS = {"cpu": 0.0, "cuda": 0.03}
# Bytes kept of a worker's last output; and seconds to wait for the last messages of a dead worker,
# and for a killed one to exit. Its pipe may stay open in a process that its C code has forked.
_TAIL, _READ_WITHIN, _GONE_WITHIN = 2000, 5.0, 5.0


class Local:
    """An engine with worker processes. One that dies is replaced when there is a job for it."""

    def __init__(self, workers: int | None = None, device: str | None = None) -> None:
        gpus = 0 if device not in (None, "cuda") else gpu_count()
        places = [f"cuda:{n}" for n in range(gpus)] or [device or "cpu"]
        if workers is not None:
            checks.whole("workers", workers, at_least=1)
        count = workers or gpus or (cores() if places == ["cpu"] else 1)
        self.workers = count
        kind = places[0].partition(":")[0]
        self.lanes, self.repeats = LANES.get(kind, 16), REPEATS.get(kind, 0.0)
        self._places = [places[n % len(places)] for n in range(count)]
        self._processes: dict[int, _Process] = {}
        self._messages: Queue[tuple[int, Message]] = Queue()
        self._busy: dict[int, int] = {}
        # Workers that take no more jobs.
        self._left: list[_Process] = []

    def begin(self, job: Job) -> None:
        place = next(n for n in range(self.workers) if n not in self._busy.values())
        self._busy[job.number] = place
        before = self._processes.get(place)
        if before is None or not before.begin(job):
            self._processes[place] = _Process(self._places[place], self._messages, job)
        self._messages.put((job.number, Begun()))

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return the messages that have come, without those of jobs that were ended."""
        found = []
        try:
            found.append(self._messages.get(timeout=seconds))
            while True:
                found.append(self._messages.get_nowait())
        except Empty:
            pass
        ours = []
        for number, message in found:
            if number not in self._busy:  # or the death of a worker whose job had ended
                continue
            ours.append((number, message))
            if isinstance(message, Ended | Failed | Died):
                place = self._busy.pop(number)
                if isinstance(message, Failed) and message.leaves:
                    self._left.append(self._processes.pop(place))
        return ours

    def end(self, number: int) -> None:
        self._processes.pop(self._busy.pop(number)).kill()

    def ask_to_stop(self) -> None:
        for process in self._processes.values():
            process.ask_to_stop()

    def close(self) -> None:
        for process in (*self._processes.values(), *self._left):
            process.kill()
        self._processes.clear()
        self._left.clear()
        self._busy.clear()
        self._messages = Queue()


class _Process:
    """A worker process, and the threads that receive its messages and watch for its end."""

    def __init__(self, device: str, messages: "Queue[tuple[int, Message]]", job: Job) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is read
        command = [sys.executable, "-m", "weightdecay.sweeps.worker", device]
        if threading.current_thread() is threading.main_thread():
            command.append(str(os.getpid()))  # it dies with this thread; others may end earlier
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C and SIGTERM reach only us, and we tell the worker
            env={**MEMORY, **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._job = job.number
        self._gone = self._killed = False
        self._turn = threading.Lock()
        self._messages = messages
        self._receiving = threading.Thread(target=self._receive, daemon=True)
        self._receiving.start()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()
        self._send(job)

    def begin(self, job: Job) -> bool:
        """Send it another job and return True, or return False if it is gone."""
        with self._turn:
            if self._gone:
                return False
            self._job = job.number
            self._errors.truncate(0)  # output of the job before is of no use
            self._errors.seek(0)
        self._send(job)
        return True

    def ask_to_stop(self) -> None:
        """Ask it to save its state and end."""
        self._send(None)

    def kill(self) -> None:
        """Kill it at once."""
        self._killed = True
        self._process.kill()
        self._watching.join(_GONE_WITHIN)

    def _send(self, command: Job | None) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it is dying, which the watching thread notices
            pickle.dump(command, self._process.stdin)
            self._process.stdin.flush()

    def _receive(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            while True:
                try:
                    self._messages.put(pickle.load(answers))  # noqa: S301 - our own worker
                except (EOFError, pickle.UnpicklingError):
                    break

    def _watch(self) -> None:
        status = self._process.wait()
        if not self._killed:
            self._receiving.join(_READ_WITHIN)
        with self._turn:
            self._gone, job = True, self._job
        self._messages.put((job, Died(_why(status, self._errors))))
        assert self._process.stdin is not None
        self._errors.close()
        with suppress(OSError):  # there may be data that was not flushed
            self._process.stdin.close()


def _why(status: int, errors: IO[bytes]) -> str:
    """Describe how a process ended, with its last output."""
    how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
    hint = ", as the system does when memory runs out" if status == -9 else ""
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - _TAIL))
    output = errors.read().decode(errors="replace").strip()
    return f"Its process {how}{hint}." + (f" Its last output: {output}" if output else "")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_count() -> int:
    """Return the number of GPUs; torch, slow to import, is only asked if there is a driver."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return 0
    if sys.platform != "win32" and not Path("/dev/nvidiactl").exists():
        return 0
    import torch  # noqa: PLC0415

    return int(torch.cuda.device_count())
