"""Jobs done by processes on this machine: one a core, or one a GPU."""

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

#: Lanes a job: beyond these they are hardly faster, and more is lost with one.
LANES = {"cpu": 96, "cuda": 16}
#: Memory that a worker frees it keeps for its next update, where the system would clear new pages
#: each time: a tenth of a small network's training. glibc reads this, others do not; a larger
#: threshold than 32 MiB some of its versions refuse.
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
#: The share of cells that are trained again, in other packs: on a CPU a cell's bits are always the
#: same, on a GPU the largest difference says how far a number can be trusted.
REPEATS = {"cpu": 0.0, "cuda": 0.03}
# Bytes that are kept of what a worker said last; and seconds within which a dead one's messages are
# read, and a killed one is gone. Its pipe may stay open: a process has it that was forked in C.
_TAIL, _READ_WITHIN, _GONE_WITHIN = 2000, 5.0, 5.0


class Local:
    """An engine of worker processes. One that dies is replaced when there is something to do."""

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
        # Workers that said they would leave: they get no more jobs.
        self._left: list[_Process] = []

    def begin(self, job: Job) -> None:
        place = next(n for n in range(self.workers) if n not in self._busy.values())
        self._busy[job.number] = place
        before = self._processes.get(place)
        if before is None or not before.begin(job):
            self._processes[place] = _Process(self._places[place], self._messages, job)
        self._messages.put((job.number, Begun()))

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Return what has come; a message of a job that was given up before is nobody's."""
        found = []
        try:
            found.append(self._messages.get(timeout=seconds))
            while True:
                found.append(self._messages.get_nowait())
        except Empty:
            pass
        ours = []
        for number, message in found:
            if number not in self._busy:  # a worker that died after it had ended its job, too
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
    """A worker, and the threads that hear it and see it end."""

    def __init__(self, device: str, messages: "Queue[tuple[int, Message]]", job: Job) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is read
        command = [sys.executable, "-m", "weightdecay.sweeps.worker", device]
        if threading.current_thread() is threading.main_thread():
            command.append(str(os.getpid()))  # it dies with this thread, and others may end before
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # what Ctrl-C or SIGTERM tells our group, we tell it
            env={**MEMORY, **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._job = job.number
        self._gone = self._killed = False
        self._turn = threading.Lock()
        self._messages = messages
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()
        self._say(job)

    def begin(self, job: Job) -> bool:
        """Hand it another job, unless it is gone: then nobody would say that the job has died."""
        with self._turn:
            if self._gone:
                return False
            self._job = job.number
            self._errors.truncate(0)  # what it said of the job before is of no use
            self._errors.seek(0)
        self._say(job)
        return True

    def ask_to_stop(self) -> None:
        """Ask it to save what it has, and to end."""
        self._say(None)

    def kill(self) -> None:
        """End it at once."""
        self._killed = True
        self._process.kill()
        self._watching.join(_GONE_WITHIN)

    def _say(self, command: Job | None) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it is dying, which the other thread notices
            pickle.dump(command, self._process.stdin)
            self._process.stdin.flush()

    def _hear(self) -> None:
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
            self._hearing.join(_READ_WITHIN)
        with self._turn:
            self._gone, job = True, self._job
        self._messages.put((job, Died(_why(status, self._errors))))
        assert self._process.stdin is not None
        self._errors.close()
        with suppress(OSError):  # what was not yet flushed to it
            self._process.stdin.close()


def _why(status: int, errors: IO[bytes]) -> str:
    """Say how a process ended, and what it said last."""
    how = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    hint = ", as the system does when memory runs out" if status == -9 else ""
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - _TAIL))
    said = errors.read().decode(errors="replace").strip()
    return f"Its process {how}{hint}." + (f" It said: {said}" if said else "")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_count() -> int:
    """Return the number of GPUs; torch, which takes seconds to come, is asked where a driver is."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return 0
    if sys.platform != "win32" and not Path("/dev/nvidiactl").exists():
        return 0
    import torch  # noqa: PLC0415

    return int(torch.cuda.device_count())
