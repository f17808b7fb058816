"""Sweeps that are killed and disturbed at random instants, again and again until they are through.

    python -m tests.killing --kills 1000 --at-once 2 --log kills.txt
    python -m tests.killing --kills 50 --ray            # some coordinators place work on Ray
    python -m tests.killing --kills 50 --most 50 --within 20 --study study.toml

Sweeps are begun one after the other until so many kills have been made. Each has one or two
coordinators, which are begun again after each fault of the table in tests/faults.py. One that was
killed often enough is left alone to finish; its results must be those of a sweep that nobody
disturbed, byte for byte, each recorded once, with no checkpoint and no worker left. No wait is
without a limit.
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

#: Kills of one sweep, and the seconds within which the next fault comes.
MOST, WITHIN = 25, 4.0


def disturb(sweep: Disturbed, kills: int, made: Counter[str], *, within: float = WITHIN) -> None:
    """Sweep with at most so many kills, until it is through, and check what it has left."""
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
    """Give the address of a Ray cluster of this machine, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as place:
        os.environ["RAY_TMPDIR"] = place  # before Ray comes
        from ray.cluster_utils import Cluster  # noqa: PLC0415

        head = {"num_cpus": cores, "num_gpus": 0, "include_dashboard": False}
        found = Cluster(initialize_head=True, head_node_args=head)
        yield found.address
        found.shutdown()  # type: ignore[no-untyped-call]


def told(faults: Counter[str]) -> str:
    """Return what was done, by kind."""
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
    parser.add_argument("--most", type=int, default=MOST, help="kills of one sweep")
    parser.add_argument("--within", type=float, default=WITHIN, help="seconds to the next fault")
    parser.add_argument("--study", type=Path, default=STUDY, help="instead of 36 cells of a toy")
    parser.add_argument("--ray", action="store_true", help="some coordinators place work on Ray")
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
            except Exception as error:  # noqa: BLE001 - a hang, or anything else that must be told
                traceback.print_exc()
                same = f"FAILED, {str(error).partition(chr(10))[0]}"
                left -= 1  # or one that fails at once would be begun again for ever
            left -= killed(made)
            total.update(made)
            say(f"{name:2}  {told(made)} in {time.monotonic() - begun:4.0f} s: {same}")

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
