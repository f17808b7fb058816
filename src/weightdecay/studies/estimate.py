"""How long a study will take, before it starts: a short trial of each kind of cell it has."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from weightdecay.records import SHARED, Progress, RunConfig, Timing
from weightdecay.sweeps.local import cores

# Lanes of a trial: enough that lanes are worth it, few enough that it is short.
_LANES = 16
# Seconds after which a trial need not come to its epoch's end: its speed is known.
_PATIENCE = 10.0
# What cells have in common whose epochs take alike.
_KIND = tuple(name for name in SHARED if name != "epochs")


def seconds(
    cells: Iterable[RunConfig], *, workers: int | None = None, device: str | None = None
) -> float | None:
    """Estimate the seconds that cells take, on a CPU; on a GPU compiling is most of a trial: None.

    One epoch of a few cells of each kind is trained, on one core.
    """
    import torch

    if device not in (None, "cpu") or (device is None and torch.cuda.is_available()):
        return None
    kinds: dict[tuple[object, ...], list[RunConfig]] = {}
    for config in cells:
        kinds.setdefault(tuple(getattr(config, name) for name in _KIND), []).append(config)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        total = sum(_epoch(kind) * sum(config.epochs for config in kind) for kind in kinds.values())
    finally:
        torch.set_num_threads(before)
    return total / (workers or cores())


def _epoch(kind: Sequence[RunConfig]) -> float:
    """Measure the seconds that an epoch of such a cell takes, in company."""
    from weightdecay.runs import train

    begun = time.monotonic()
    timings: list[Timing] = []
    for event in train(_few(kind), device="cpu", cells=True):
        if isinstance(event, Timing):
            timings.append(event)
        elif isinstance(event, Progress) and time.monotonic() - begun > _PATIENCE:
            return event.updates / event.speed
    spent = sum(timing.training + timing.evaluation for timing in timings)
    return spent / len(timings) / timings[0].lanes


def _few(kind: Sequence[RunConfig]) -> list[RunConfig]:
    """Return cells from all over, of one epoch; nothing in them depends on how many there are."""
    plain = list(dict.fromkeys(map(_of_one_epoch, kind)))
    return plain[:: -(-len(plain) // _LANES)]


def _of_one_epoch(config: RunConfig) -> RunConfig:
    config = replace(config, epochs=1, schedule="constant")
    if config.normalized_decay is None:
        return config
    return replace(config, normalized_decay=None, weight_decay=0.0)
