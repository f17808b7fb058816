"""How long a study will take, before it starts: a short trial of each kind of cell it has."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from weightdecay.records import SHARED, Progress, RunConfig, Timing
from weightdecay.sweeps.local import cores

# Lanes of a trial: enough that they are as fast as more, few enough that it is short. Its epochs:
# in the first, memory and code are new.
_LANES, _EPOCHS = 64, 2
# Seconds after which a trial need not come to its epoch's end: its speed is known.
_PATIENCE = 10.0
# What cells have in common whose epochs take alike.
_KIND = tuple(name for name in SHARED if name not in ("epochs", "evaluate_every"))


def seconds(
    cells: Iterable[RunConfig], *, workers: int | None = None, device: str | None = None
) -> float | None:
    """Estimate the seconds that cells take, on a CPU; on a GPU compiling is most of a trial: None.

    A few cells of each kind are trained for a short while, on one core.
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
        total = sum(map(_cost, kinds.values()))
    finally:
        torch.set_num_threads(before)
    return total / (workers or cores())


def _cost(kind: Sequence[RunConfig]) -> float:
    """Estimate the seconds of cells whose epochs take alike."""
    training, evaluation = _epoch(kind)
    return sum(c.epochs * training + _evaluations(c) * evaluation for c in kind)


def _evaluations(config: RunConfig) -> int:
    """Return how often a cell is evaluated; cycles that end between are few."""
    return -(-config.epochs // config.evaluate_every) if config.evaluate_every else 1


def _epoch(kind: Sequence[RunConfig]) -> tuple[float, float]:
    """Measure the seconds that such a cell trains in an epoch, and is evaluated, in company."""
    from weightdecay.runs import train_events

    begun = time.monotonic()
    training = evaluation = 0.0
    for event in train_events(_few(kind), device="cpu", stacked=True):
        if isinstance(event, Timing):
            training, evaluation = event.training / event.lanes, event.evaluation / event.lanes
        elif isinstance(event, Progress) and time.monotonic() - begun > _PATIENCE:
            return event.updates / event.speed / _EPOCHS, evaluation
    return training, evaluation


def _few(kind: Sequence[RunConfig]) -> list[RunConfig]:
    """Return cells from all over, of few epochs; where lanes are no faster together, one."""
    from weightdecay.runs.stacked import can_stack
    from weightdecay.tasks import load, split

    plain = list(dict.fromkeys(map(_shortened, kind)))
    first = plain[0]
    task = split(load(first.task), validation=first.validation, data=first.data)
    return plain[:: -(-len(plain) // _LANES)] if can_stack(first, task) else plain[:1]


def _shortened(config: RunConfig) -> RunConfig:
    config = replace(config, epochs=_EPOCHS, evaluate_every=1, schedule="constant")
    if config.normalized_decay is None:
        return config
    return replace(config, normalized_decay=None, weight_decay=0.0)
