"""Where a sweep's coordinator saturates, and what ten thousand tiny cells cost besides training.

    python -m benchmarks.scale                # the table: simulated workers, cells and lanes
    python -m benchmarks.scale --workers 1000 --cells 100000 --lanes 16 --seconds 10
    python -m benchmarks.scale --workers 1000 --cells 10000 --lanes 16 --profile
    python -m benchmarks.scale --tiny         # cells that are really trained, on every core
    python -m benchmarks.scale --status       # time and memory of a status

Coordinator, store and disk are real; see `benchmarks/simulated.py`.
"""

import argparse
import cProfile
import os
import platform
import pstats
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.simulated import Law, Measured, Simulated, cells
from weightdecay.records import RunConfig
from weightdecay.sweeps import sweep_events
from weightdecay.sweeps.events import CellFailed
from weightdecay.sweeps.local import Local
from weightdecay.sweeps.status import Status
from weightdecay.sweeps.store import Store

# Workers, cells, lanes and seconds per cell of the table's rows.
_ROWS = [
    (10, 1_000, 16, 10.0),
    (100, 10_000, 16, 10.0),
    (1_000, 10_000, 1, 10.0),
    (1_000, 10_000, 16, 10.0),
    (1_000, 100_000, 16, 10.0),
    (1_000, 100_000, 64, 10.0),
    (1_000, 100_000, 16, 1.0),
]
_HEAD = (
    "workers | cells | lanes | s a cell | hours | ms a cell | busy | workers wait | begin, s | "
    "kB a cell"
)


def simulated(
    workers: int, number: int, lanes: int, law: Law, *, epochs: int, folder: Path
) -> tuple[Measured, float, Counter[str]]:
    """Sweep simulated cells; return the measurements, the kilobytes per cell, and the events."""
    configs = cells(number, epochs=epochs)
    engine = Simulated(workers, lanes, law)
    before = resident()
    kinds: Counter[str] = Counter()
    with engine.clock():
        for event in sweep_events(configs, folder=folder, engine=engine):
            kinds[type(event).__name__] += 1
    return engine.measured, (resident() - before) / number, kinds


def row(
    workers: int, number: int, lanes: int, seconds: float, *, epochs: int, root: Path | None
) -> str:
    """Return a simulation's row of the table."""
    with tempfile.TemporaryDirectory(dir=root) as folder:
        law = Law(seconds=seconds)
        found, grown, _ = simulated(workers, number, lanes, law, epochs=epochs, folder=Path(folder))
    working = found.busy - found.busy_before_first_job
    columns = [
        f"{workers:,}",
        f"{number:,}",
        f"{lanes}",
        f"{seconds:g}",
        f"{found.simulated / 3600:.2f}",
        f"{1000 * found.busy / number:.2f}",
        f"{working / (found.simulated - found.busy_before_first_job):.1%}",
        f"{found.waited / (found.waited + found.worked):.1%}",
        f"{found.busy_before_first_job:.1f}",
        f"{grown:.1f}",
    ]
    return f"| {' | '.join(columns)} |"


def resident(process: int | str = "self") -> float:
    """Return the kilobytes of memory that a process uses; 0 if that is not known."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def tiny(number: int, lanes: int | None, root: Path | None) -> None:
    """Train cells of one update each on every core, and print what they cost besides training."""
    configs = [
        RunConfig(
            task="mnist1d",
            model="mlp,width=16",
            algorithm="adamw",
            lr=2 ** -(4 + seed % 100 / 10),
            weight_decay=2 ** -(4 + seed // 100 % 100 / 10),
            epochs=1,
            batch=64,
            data=64,
            validation=64,
            seed=seed // 10_000,
        )
        for seed in range(number)
    ]
    engine = Local()
    if lanes is not None:
        engine.lanes = lanes
    with tempfile.TemporaryDirectory(dir=root) as folder:
        memory: list[tuple[float, float]] = []
        begun, first = time.perf_counter(), None
        for event in sweep_events(configs, folder=folder, engine=engine):
            if isinstance(event, CellFailed):
                print(event.failure.reason)
            workers = _children()
            if first is None and isinstance(event, Status) and event.done:
                first = time.perf_counter() - begun
            if workers:
                memory.append((resident() / 1024, max(map(resident, workers)) / 1024))
        took = time.perf_counter() - begun
        trained = sum(seconds for seconds, _ in Store(folder).refresh().costs.values())
        cores = engine.workers
        print(f"{number:,} cells on {cores} processes, {engine.lanes} lanes: {took:.1f} s,")
        print(f"of which {trained / cores:.1f} s are training on each;")
        print(f"the first results came after {first or 0.0:.1f} s")
        print(f"besides training: {1000 * (took - trained / cores) / number:.2f} ms per cell,")
        print(f"{1000 * (took * cores - trained) / number:.2f} ms of one core;")
        steady = 1000 * (took - (first or 0.0)) / number
        print(f"after the first results {steady:.2f} ms per cell, including training")
        tenths = [memory[n * (len(memory) - 1) // 10] for n in range(11)]
        for n, name in enumerate(("coordinator", "largest worker")):
            print(f"MB of the {name}: " + " ".join(f"{at[n]:.0f}" for at in tenths))
        status(Path(folder))


def _children() -> list[str]:
    found = Path("/proc/self/task").glob("*/children")
    return [process for path in found for process in path.read_text().split()]


_ASK = """
import sys, time, resource
begun = time.perf_counter()
from weightdecay.sweeps.status import store_status
from weightdecay.sweeps.store import Store
status, _, _ = store_status(Store(sys.argv[1]))
took = time.perf_counter() - begun
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{status.done} done of {status.planned}: {took:.2f} s, {most:.0f} MB,", end=" ")
print("torch" if "torch" in sys.modules else "without torch")
"""


def status(folder: Path) -> None:
    """Get a sweep's status in a new process, and print how long that takes."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        said = subprocess.run(
            [sys.executable, "-c", _ASK, str(folder)], check=True, capture_output=True, text=True
        ).stdout
        times.append(time.perf_counter() - begun)
    size = sum(path.stat().st_size for path in folder.glob("log/*")) / 1e6
    print(f"status: {said.strip()}; with the start of Python {min(times):.2f} s; log {size:.1f} MB")


def profiled(
    workers: int, number: int, lanes: int, law: Law, *, epochs: int, root: Path | None
) -> None:
    """Print where the coordinator's time goes."""
    with tempfile.TemporaryDirectory(dir=root) as folder, cProfile.Profile() as profile:
        found, _, kinds = simulated(workers, number, lanes, law, epochs=epochs, folder=Path(folder))
    print(found, dict(kinds), sep="\n")
    pstats.Stats(profile).sort_stats("tottime").print_stats(35)


def parser() -> argparse.ArgumentParser:
    """Return the options of the command line."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--workers", type=int, nargs="*", default=[])
    options.add_argument("--cells", type=int, default=10_000)
    options.add_argument("--lanes", type=int)
    options.add_argument("--seconds", type=float, default=10.0, help="per cell and worker")
    options.add_argument("--epochs", type=int, default=27)
    options.add_argument("--folder", type=Path, help="where to write; default a temporary folder")
    options.add_argument("--profile", action="store_true")
    options.add_argument("--tiny", action="store_true")
    options.add_argument("--status", action="store_true")
    return options


def main() -> None:
    """Measure what the options ask for."""
    given = parser().parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    lanes = given.lanes or 16
    if given.tiny:
        tiny(given.cells, given.lanes, given.folder)
    elif given.status:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            law = Law(seconds=0.1, failing=0)
            simulated(100, given.cells, lanes, law, epochs=given.epochs, folder=Path(folder))
            status(Path(folder))
    elif given.profile:
        law = Law(seconds=given.seconds)
        workers = given.workers[0] if given.workers else 1_000
        profiled(workers, given.cells, lanes, law, epochs=given.epochs, root=given.folder)
    else:
        asked = [(workers, given.cells, lanes, given.seconds) for workers in given.workers]
        print(f"| {_HEAD} |\n|{' --- |' * len(_HEAD.split('|'))}")
        for each in asked or _ROWS:
            print(row(*each, epochs=given.epochs, root=given.folder), flush=True)


if __name__ == "__main__":
    main()
