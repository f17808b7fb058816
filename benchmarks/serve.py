"""What `weightdecay serve` costs: a sweep with ten viewers and without, and a large source.

    python -m benchmarks.serve                 # both
    python -m benchmarks.serve --rounds 5      # more sweeps of each kind

A viewer asks for news every 1.5 seconds, as the page does. Sweeps with and without viewers take
turns. The server of 10,000 cells is asked for an hour of news, without waiting in between.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from urllib.request import urlopen

from benchmarks.page import _runs
from weightdecay.records.codec import Cost
from weightdecay.sweeps import Store
from weightdecay.table import table

_STUDY = """\
task = "mnist1d"
model = "mlp"
algorithm = "adamw"
epochs = 20
batch = 64
lr = "2^-10..2^-5"
weight_decay = "2^-11..2^-5"
seed = 0
"""
_VIEWERS, _EVERY, _HOUR = 10, 1.5, 2400  # 2400 questions are an hour's


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


@contextmanager
def _viewers(address: str, count: int) -> Iterator[None]:
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(_EVERY):
            with urlopen(f"{address}news?version=&after=0") as answer:
                answer.read()

    threads = [threading.Thread(target=look) for _ in range(count)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in threads:
            one.join()


def _sweep(study: Path, folder: Path, *, viewers: int) -> tuple[float, float]:
    """Return the seconds that a sweep takes, and the CPU seconds of the server that is watched.

    It is watched from its first second on, or not at all.
    """
    words = [sys.executable, "-m", "weightdecay", "sweep", str(study), "--out", str(folder)]
    started = time.perf_counter()
    with subprocess.Popen(
        [*words, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        if viewers:
            while not (folder / "plan.jsonl").exists():
                time.sleep(0.01)
            with _served(folder) as (address, pid), _viewers(address, viewers):
                process.wait()
                return time.perf_counter() - started, _cpu(pid)
        process.wait()
    return time.perf_counter() - started, 0.0


def _cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        study = place / "study.toml"
        study.write_text(_STUDY)
        took: dict[int, list[float]] = {0: [], _VIEWERS: []}
        used = []
        for turn in range(rounds):
            for viewers, seconds in took.items():
                folder = place / f"{turn}-{viewers}"
                wall, cpu = _sweep(study, folder, viewers=viewers)
                seconds.append(wall)
                used += [cpu] * bool(viewers)
        for viewers, seconds in took.items():
            spread = f" ± {stdev(seconds):.1f}" if rounds > 1 else ""
            print(f"a sweep with {viewers} viewers: {fmean(seconds):.1f}{spread} s", flush=True)
        print(f"of which the server uses {fmean(used):.1f} s of CPU", flush=True)
        print(table(_large(place / "large")))


if __name__ == "__main__":
    main()
