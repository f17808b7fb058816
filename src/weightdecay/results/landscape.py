"""A grid of learning rates and decays into a landscape of errors, with what is certain in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from weightdecay.records import RunConfig


@dataclass(frozen=True)
class Cell:
    """What the runs of one learning rate and decay came to, a number a seed, in the seeds' order.

    `chosen` are the errors that choices are made on, `tested` those that are reported; both are of
    the last epoch. A seed that diverged has the errors it ended with, and is named.
    """

    lr: float
    decay: float
    seeds: tuple[int, ...]
    chosen: tuple[float, ...]
    tested: tuple[float, ...]
    diverged: tuple[int, ...] = ()


@dataclass(frozen=True)
class Landscape:
    """Cells over learning rates × decays: one algorithm, schedule, task, model and budget.

    `config` is one of its configurations; all differ from it in rate, decay and seed alone.
    `way` is how the decay is stated: l2, weight_decay or normalized_decay. A decay of 0 comes
    first, where there is one. `chosen_on` is "validation", or "test": the paper's way.
    """

    config: RunConfig
    way: str
    lrs: tuple[float, ...]
    decays: tuple[float, ...]
    cells: Mapping[tuple[float, float], Cell]
    chosen_on: str
