"""Sweeps whose processes are killed at random instants, again and again until they are through.

    python -m tests.killing --kills 1000 --at-once 2 --log kills.txt
    python -m tests.killing --kills 50 --most 50 --within 20 --study study.toml

Sweeps are begun one after the other until so many kills have been made. One that was killed often
enough is left alone to finish; its results must be those of a sweep that nobody disturbed, byte for
byte.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.toys import config
from weightdecay.records import RunConfig
from weightdecay.sweeps import Store, read_study, sweep
from weightdecay.sweeps.local import Local

#: Who is killed, and how often: a worker, the coordinator, or all of them.
VICTIMS = {"worker": 6, "coordinator": 3, "both": 2}
#: Kills of one sweep, and the seconds within which the next comes.
MOST, WITHIN = 25, 4.0


def cells() -> list[RunConfig]:
    """Return a sweep of 36 cells, in packs that stack their lanes and packs that do not."""
    forms = [
        {"algorithm": "adamw", "normalized_decay": 0.1},
        {"algorithm": "sgdw", "weight_decay": 0.002},
        {"algorithm": "adam", "l2": 0.001},
        {"algorithm": "sgd", "l2": 0.001, "lr": 1e12},  # diverges
    ]
    return [
        config(task="tests.toys:hasty", model=model, epochs=epochs, seed=seed, **form)
        for model, epochs in (("mlp", 24), ("mlp", 16), ("dropping", 4))
        for form in forms
        for seed in range(3)
    ]


def start(folder: Path, study: Path | None = None) -> "subprocess.Popen[bytes]":
    """Begin the sweep, or go on with it, in a process of its own."""
    own = [] if study is None else ["--study", str(study)]
    return subprocess.Popen([sys.executable, "-m", "tests.killing", "--sweep", str(folder), *own])


def children(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def kill(coordinator: "subprocess.Popen[bytes]", victim: str, chance: random.Random) -> bool:
    """Kill somebody, the hard way; return whether there was anybody."""
    workers = children(coordinator.pid)
    chosen = workers if victim == "both" else workers and [chance.choice(workers)]
    for worker in chosen if victim != "coordinator" else []:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    if victim != "worker":
        coordinator.send_signal(signal.SIGKILL)
    return bool(chosen) or victim != "worker"


def disturbed(
    folder: Path,
    kills: int,
    chance: random.Random,
    *,
    within: float = WITHIN,
    study: Path | None = None,
) -> Counter[str]:
    """Sweep with at most so many kills, until it is through; return who was killed how often."""
    made: Counter[str] = Counter()
    process = start(folder, study)
    while made.total() < kills:
        try:
            status = process.wait(timeout=chance.uniform(0, within))
        except subprocess.TimeoutExpired:
            [victim] = chance.choices(list(VICTIMS), list(VICTIMS.values()))
            made[victim] += kill(process, victim, chance)
            if victim != "worker":
                process.wait()
                process = start(folder, study)
            continue
        assert status == 0
        return made
    assert process.wait() == 0
    return made


def results(folder: Path) -> list[str]:
    """Return what a sweep came to, to be compared."""
    return list(Store(folder).results())


def undisturbed(folder: Path, study: Path | None = None) -> list[str]:
    """Return what the sweep comes to when nobody disturbs it."""
    assert start(folder, study).wait() == 0
    return results(folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweep", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--most", type=int, default=MOST, help="kills of one sweep")
    parser.add_argument("--within", type=float, default=WITHIN, help="seconds to the next kill")
    parser.add_argument("--study", type=Path, help="instead of 36 cells of a toy")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    if options.sweep:
        asked = cells() if options.study is None else read_study(options.study)
        for _ in sweep(asked, folder=options.sweep, engine=Local(2, "cpu")):
            pass
        return
    lines: list[str] = []

    def one_after_another(place: Path, kills: int, wanted: list[str], name: int) -> None:
        left = kills
        while left:
            folder = Path(tempfile.mkdtemp(dir=place))
            begun = time.monotonic()
            made = disturbed(
                folder,
                min(left, options.most),
                random.Random(),
                within=options.within,
                study=options.study,
            )
            left -= made.total()
            same = "the same results" if results(folder) == wanted else "OTHER RESULTS"
            told = ", ".join(f"{victim} {made[victim]}" for victim in VICTIMS)
            took = time.monotonic() - begun
            lines.append(f"{name:2}  {made.total():4} kills ({told}) in {took:4.0f} s: {same}")
            print(lines[-1], flush=True)
            if options.log:
                options.log.write_text("\n".join(lines) + "\n")

    with tempfile.TemporaryDirectory() as place:
        wanted = undisturbed(Path(place) / "whole", options.study)
        share = -(-options.kills // options.at_once)
        threads = [
            threading.Thread(target=one_after_another, args=(Path(place), share, wanted, n))
            for n in range(options.at_once)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sweeps, kills = len(lines), share * options.at_once
    lines.append(f"{kills} kills in {sweeps} sweeps of {len(wanted)} cells.")
    print(lines[-1])
    if options.log:
        options.log.write_text("\n".join(lines) + "\n")
    sys.exit(any("OTHER" in line for line in lines))


if __name__ == "__main__":
    main()
