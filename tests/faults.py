"""A table of faults that disturb a sweep at random moments; each is a small function.

A fault returns whether it has done anything. Coordinators that it ended are started again after it.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.disturbed import LIMIT, Disturbed, children, send

#: Seconds within which a worker must fork when asked to, if one is training.
FORKED_WITHIN = 10.0


def kill_worker(sweep: Disturbed) -> bool:
    workers = sweep.workers()
    send(signal.SIGKILL, *(workers and [sweep.chance.choice(workers)]))
    return bool(workers)


def kill_coordinator(sweep: Disturbed) -> bool:
    coordinators = sweep.alive()
    sweep.kill(*(coordinators and [sweep.chance.choice(coordinators)]))
    return bool(coordinators)


def kill_both(sweep: Disturbed) -> bool:
    send(signal.SIGKILL, *sweep.workers())
    sweep.kill(*sweep.alive())
    return True


def stop_worker(sweep: Disturbed) -> bool:
    """Stop a worker and kill its coordinator: a stopped worker must not keep its locks."""
    workers, coordinators = sweep.workers(), sweep.alive()
    if workers:
        chosen = sweep.chance.choice(workers)
        owners = [one for one in coordinators if chosen in children(one)]
        send(signal.SIGSTOP, chosen)
        sweep.kill(*(owners or coordinators))  # on Ray the owner is not known
    return bool(workers)


def fork(sweep: Disturbed) -> bool:
    """Kill a worker that has forked: its locks must not survive in the child."""
    asked, answer = Path(f"{sweep.folder}.fork"), Path(f"{sweep.folder}.forked")
    asked.touch()
    until = time.monotonic() + FORKED_WITHIN
    while asked.exists() and time.monotonic() < until:
        time.sleep(0.02)
    with suppress(FileNotFoundError):  # a worker has forked
        asked.unlink()
        return False
    while not (answer.exists() and answer.read_text().endswith("\n")):
        if time.monotonic() > until + LIMIT:
            raise AssertionError("a worker that was asked to fork hangs")
        time.sleep(0.02)
    worker, child = map(int, answer.read_text().split())
    answer.unlink()
    sweep.forked.append(child)
    send(signal.SIGKILL, worker)
    return True


def suspend(sweep: Disturbed) -> bool:
    """Suspend the coordinators, as closing a laptop does."""
    send(signal.SIGSTOP, *sweep.alive())
    time.sleep(sweep.chance.uniform(0.5, 3))
    send(signal.SIGCONT, *sweep.alive())
    return True


def asking(sign: signal.Signals) -> Callable[[Disturbed], bool]:
    """Return a fault that asks the coordinators to stop; before they listen, it ends them."""

    def ask(sweep: Disturbed) -> bool:
        send(sign, *sweep.alive())
        sweep.wait(0, 130, -sign)
        return True

    return ask


def block_checkpoints(sweep: Disturbed) -> bool:
    """Block the writing of checkpoints for a while: a sweep on local processes stops itself."""
    place, aside = sweep.folder / "checkpoints", Path(f"{sweep.folder}.aside")
    if sweep.on_ray.intersection(sweep.alive()):
        return False  # on Ray, a host that cannot write there uses another folder
    with suppress(FileNotFoundError):  # no training has begun
        place.rename(aside)
    while not place.is_file():
        with suppress(OSError):
            place.touch(exist_ok=False)
            break
        shutil.rmtree(place, ignore_errors=True)  # a worker was faster
    sweep.wait(0, 2)
    place.unlink()
    if aside.exists():
        aside.rename(place)
    return True


def damaging(damage: Callable[[Path, random.Random], None], name: str) -> Callable[..., bool]:
    """Return a fault that kills the coordinators and damages a file before they start again."""

    def act(sweep: Disturbed) -> bool:
        sweep.kill(*sweep.alive())
        sizes = {path: path.stat().st_size for path in sweep.folder.glob(name)}
        if found := any(sizes.values()):
            [path] = sweep.chance.choices(list(sizes), list(sizes.values()))
            damage(path, sweep.chance)
        return found

    return act


def flip(path: Path, chance: random.Random) -> None:
    text = bytearray(path.read_bytes())
    text[chance.randrange(len(text))] ^= 1 << chance.randrange(8)
    path.write_bytes(text)


def half_line(path: Path, chance: random.Random) -> None:
    line = chance.choice(path.read_bytes().splitlines())
    with path.open("ab") as file:
        file.write(line[: len(line) // 2])


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


class Fault(NamedTuple):
    """A fault, its relative frequency, and whether it kills a process."""

    weight: int
    act: Callable[[Disturbed], bool]
    kills: bool = True


LOGS = "log/*.jsonl"
FAULTS = {
    "worker": Fault(6, kill_worker),
    "coordinator": Fault(3, kill_coordinator),
    "both": Fault(2, kill_both),
    "stopped worker": Fault(2, stop_worker),
    "forked worker": Fault(1, fork),
    "bit flipped": Fault(1, damaging(flip, LOGS)),
    "half a line": Fault(1, damaging(half_line, LOGS)),
    "log truncated": Fault(1, damaging(truncate, LOGS)),
    "plan truncated": Fault(1, damaging(truncate, "plan.jsonl")),
    "interrupt": Fault(1, asking(signal.SIGINT), kills=False),
    "terminate": Fault(1, asking(signal.SIGTERM), kills=False),
    "suspended": Fault(1, suspend, kills=False),
    "checkpoints blocked": Fault(1, block_checkpoints, kills=False),
}
