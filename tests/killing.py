"""Kills and disturbs sweeps at random moments, again and again until they are complete.

    python -m tests.killing --kills 1000 --at-once 2 --log kills.txt
    python -m tests.killing --kills 50 --ray            # some coordinators use Ray
    python -m tests.killing --kills 50 --most 50 --within 20 --study study.toml

Sweeps are started one after the other until that many kills have been made. Each has one or two
coordinators, which are started again after each fault of the table in tests/faults.py. After enough
kills, a sweep is left to finish. Its results must be those of an undisturbed sweep, byte for byte,
each recorded once, with no checkpoint and no worker left. Every wait has a time limit.
"""

import argparse
import contextlib
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.disturbed import STUDY, Disturbed, results, undisturbed
from tests.faults import FAULTS

#: Kills per sweep, and the most seconds until the next fault.
MOST, WITHIN = 25, 4.0


def disturb(sweep: Disturbed, kills: int, made: Counter[str], *, within: float = WITHIN) -> None:
    """Run a sweep to its end with at most this many kills, and check what it has left."""
    names = [name for name in FAULTS if name != "forked worker" or sweep.study == STUDY]
    weights = [FAULTS[name].weight for name in names]
    try:
        sweep.begin()
        while killed(made) < kills and not sweep.is_through(sweep.chance.uniform(0, within)):
            [name] = sweep.chance.choices(names, weights)
            made[name] += FAULTS[name].act(sweep)
            sweep.begin()
        sweep.wait(0)
        sweep.check()
    finally:
        sweep.close()


def killed(made: Counter[str]) -> int:
    """Return how many faults were kills."""
    return sum(count for name, count in made.items() if FAULTS[name].kills)


@contextlib.contextmanager
def cluster(cores: int) -> Iterator[str]:
    """Start a Ray cluster on this machine, in a folder of its own, and return its address."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as place:
        os.environ["RAY_TMPDIR"] = place  # before Ray is imported
        from ray.cluster_utils import Cluster  # noqa: PLC0415

        head = {"num_cpus": cores, "num_gpus": 0, "include_dashboard": False}
        found = Cluster(initialize_head=True, head_node_args=head)
        yield found.address
        found.shutdown()  # type: ignore[no-untyped-call]


def summary(faults: Counter[str]) -> str:
    """Return the number of faults of each kind, as text."""
    parts = []
    for kills, name in ((True, "kills"), (False, "other faults")):
        made = {kind: faults[kind] for kind in FAULTS if FAULTS[kind].kills == kills}
        kinds = ", ".join(f"{kind} {count}" for kind, count in made.items() if count)
        parts.append(f"{sum(made.values()):4} {name} ({kinds or 'none'})")
    return " and ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--most", type=int, default=MOST, help="kills per sweep")
    parser.add_argument(
        "--within", type=float, default=WITHIN, help="most seconds until the next fault"
    )
    parser.add_argument("--study", type=Path, default=STUDY, help="instead of 36 cells of a toy")
    parser.add_argument("--ray", action="store_true", help="some coordinators use Ray")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    lines, total = list[str](), Counter[str]()

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)
        if options.log:
            options.log.write_text("\n".join(lines) + "\n")

    def one_after_another(place: Path, kills: int, name: int, address: str | None) -> None:
        left = kills
        while left > 0:
            folder, begun = Path(tempfile.mkdtemp(dir=place)), time.monotonic()
            sweep = Disturbed(folder, random.Random(), study=options.study, address=address)
            made: Counter[str] = Counter()
            try:
                disturb(sweep, min(left, options.most), made, within=options.within)
                same = "the same results" if results(folder) == wanted else "OTHER RESULTS"
            except Exception as error:  # noqa: BLE001 - a hang, or any other error to report
                traceback.print_exc()
                same = f"FAILED, {str(error).partition(chr(10))[0]}"
                left -= 1  # or a sweep that fails at once would be started for ever
            left -= killed(made)
            total.update(made)
            say(f"{name:2}  {summary(made)} in {time.monotonic() - begun:4.0f} s: {same}")

    with contextlib.ExitStack() as held:
        place = Path(held.enter_context(tempfile.TemporaryDirectory()))
        address = held.enter_context(cluster(2 * options.at_once)) if options.ray else None
        wanted = undisturbed(place / "whole", options.study)
        share = -(-options.kills // options.at_once)
        threads = [
            threading.Thread(target=one_after_another, args=(place, share, number, address))
            for number in range(options.at_once)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    bad = sum(not line.endswith("the same results") for line in lines)
    say(f"{killed(total)} kills in {len(lines)} sweeps of {len(wanted)} cells.")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
