"""What `weightdecay serve` costs: a sweep with ten viewers and without, and a large source.

    python -m benchmarks.serve                  # both
    python -m benchmarks.serve --slices 96      # a longer sweep

A viewer does what the page does: it asks for news every 1.5 seconds, and for the data if there is
a new view. One sweep trains on all cores. For slices of ten seconds it has ten viewers or none, in
the order 0 10 10 0, so that a drift of the machine's load cancels. Two neighbours make a pair. The
CPU time that its workers get is its throughput, since they do nothing else. The server's own CPU
time is the most that it can take from them, and is known more exactly on a busy machine. The server
of 10,000 cells is asked for an hour of news, without waiting in between.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from scipy.stats import t as student

from benchmarks.page import _runs
from weightdecay.records.codec import Cost
from weightdecay.sweeps import Store, grid
from weightdecay.sweeps.sweeping import sweep_events
from weightdecay.table import table

_CELLS: dict[str, Any] = {
    "task": "mnist1d",
    "model": "mlp",
    "algorithm": "adamw",
    "epochs": 5,
    "batch": 64,
    "evaluate_every": 0,
    "lr": "2^-12..2^-3",
    "weight_decay": "2^-12..2^-3",
    "seed": range(80),
}
_VIEWERS, _EVERY, _HOUR = 10, 1.5, 2400  # 2400 questions are an hour's
_SLICE, _BEGINNING = 10.0, 15.0  # seconds; in the beginning, workers start


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, int]]:
    words = [sys.executable, "-m", "weightdecay", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("Open ").strip(), process.pid
    finally:
        process.terminate()
        process.communicate()


class _Viewers:
    """Viewers that look while they are asked to."""

    def __init__(self, address: str, count: int) -> None:
        self._address, self.looking, self._over = address, threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=self._view) for _ in range(count)]
        for one in self._threads:
            one.start()

    def _view(self) -> None:
        version, after = "", 0
        while not self._over.wait(_EVERY):
            if not self.looking.is_set():
                continue
            news = self._asked(f"news?version={version}&after={after}")
            after = news["after"]
            if news["version"] != version:
                view = self._asked("data")
                version, after = view["live"]["version"], view["live"]["after"]

    def _asked(self, what: str) -> dict[str, Any]:
        with urlopen(f"{self._address}{what}") as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def close(self) -> None:
        self._over.set()
        for one in self._threads:
            one.join()


@dataclass(frozen=True)
class _Slice:
    """A slice's length, and the CPU seconds that workers and server had in it."""

    viewers: int
    seconds: float
    trained: float
    served: float


def _slices(folder: Path, count: int) -> list[_Slice]:
    """Train a sweep, and watch it in some slices."""
    found: list[_Slice] = []
    events = sweep_events(grid(**_CELLS), folder=folder)
    with ExitStack() as held:
        held.callback(events.close)  # type: ignore[attr-defined]
        address, pid = held.enter_context(_served(folder))
        viewers = held.enter_context(closing(_Viewers(address, _VIEWERS)))
        due = time.monotonic() + _BEGINNING
        before: tuple[float, float, float] | None = None
        for _ in events:
            if time.monotonic() < due:
                continue
            reached = time.monotonic(), _workers_cpu(pid), _cpu(pid)
            if before is not None:
                what = [b - a for a, b in zip(before, reached, strict=True)]
                found.append(_Slice(_VIEWERS * viewers.looking.is_set(), *what))
            if len(found) == count:
                break
            before, due = reached, time.monotonic() + _SLICE
            looks = len(found) % 4 in (1, 2)
            (viewers.looking.set if looks else viewers.looking.clear)()
    return found


def _workers_cpu(server: int) -> float:
    """Return the CPU seconds that the worker processes of this one have used."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(_fields(stat)[1]) == os.getpid() and int(stat.parent.name) != server:
                total += _cpu(int(stat.parent.name))
        except OSError:  # it has just ended
            continue
    return total


def _fields(stat: Path) -> list[str]:
    return stat.read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ratio(slices: Sequence[_Slice]) -> str:
    """Return how the workers' CPU time changes with viewers, over pairs, with its interval."""
    rates = [one.trained / one.seconds for one in slices]
    pairs = zip(slices[::2], rates[::2], rates[1::2], strict=True)
    logs = [math.log(b / a if one.viewers == 0 else a / b) for one, a, b in pairs]
    mean, error = np.mean(logs), np.std(logs, ddof=1) / math.sqrt(len(logs))
    half = student.ppf(0.975, len(logs) - 1) * error
    low, middle, high = (100 * math.expm1(end) for end in (mean - half, mean, mean + half))
    return f"{middle:+.1f} % [{low:+.1f}, {high:+.1f}]"


def _watched(folder: Path, count: int) -> list[tuple[str, str]]:
    """Measure what viewers cost a sweep."""
    slices = _slices(folder, count)

    def share(viewers: int) -> str:
        some = [one for one in slices if one.viewers == viewers]
        cpu, seconds = (sum(getattr(one, name) for one in some) for name in ("served", "seconds"))
        return f"{100 * cpu / seconds / (os.cpu_count() or 1):.2f} %"

    return [
        ("slices of ten seconds", str(len(slices))),
        ("CPU time of the workers, with ten viewers against none", _ratio(slices)),
        ("the server's share of all cores with ten viewers", share(_VIEWERS)),
        ("the same without viewers", share(0)),
        ("load average of the machine", f"{os.getloadavg()[1]:.1f}"),
    ]


def _memory(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _asked(address: str, version: str, after: int) -> float:
    started = time.perf_counter()
    with urlopen(f"{address}news?version={version}&after={after}") as answer:
        answer.read()
    return 1000 * (time.perf_counter() - started)


def _recommended(address: str) -> None:
    """Wait until the server has made a new view, which needs the most memory."""
    versions: set[str] = set()
    while len(versions) < 2:
        with urlopen(f"{address}news?version=&after=0") as answer:
            versions.add(json.load(answer)["version"])
        time.sleep(1)


def _large(folder: Path) -> list[tuple[str, str]]:
    """Measure the server of 10,000 cells: its first answer, its news and its memory."""
    runs = _runs(10)
    store = Store(folder)
    store.ask_for({run.config.identity: run.config for run in runs})
    with store.writing(workers=2) as writer:
        writer.results([(run, Cost(run.config.identity, 1.0, 20, 400)) for run in runs[:-100]])
    started = time.perf_counter()
    with _served(folder) as (address, pid):
        ready = time.perf_counter() - started
        started = time.perf_counter()
        with urlopen(address) as answer:
            page = len(answer.read())
        loaded = time.perf_counter() - started
        _recommended(address)
        before = _memory(pid)
        seen = []
        for at in range(_HOUR):
            seen.append(_asked(address, "", 0))
            if at % 24 == 0:
                with store.writing(workers=2) as writer:
                    one = runs[-100 + at // 24]
                    writer.results([(one, Cost(one.config.identity, 1.0, 20, 400))])
        time.sleep(30)
        after = _memory(pid)
    return [
        ("10,000 cells: ready after", f"{ready:.1f} s"),
        ("its page", f"{page / 1e6:.1f} MB in {loaded:.2f} s"),
        (
            "its news, median and slowest",
            f"{sorted(seen)[len(seen) // 2]:.1f} ms, {max(seen):.0f} ms",
        ),
        ("its memory before and after an hour of news", f"{before:.0f} MB, {after:.0f} MB"),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=int, default=48, help="a multiple of four")
    slices = parser.parse_args().slices
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        print(table(_watched(place / "sweep", slices)), flush=True)
        print(table(_large(place / "large")))


if __name__ == "__main__":
    main()
