"""A run that a tuner asks for, and what came of it."""

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Cell:
    """Where a trial is: the rung of its budget, the index of its setting, and its seed."""

    rung: int
    setting: int
    seed: int


@dataclass(frozen=True)
class Trial:
    """A run to make: train for `epochs` with these, and tell the tuner the validation error.

    `weight_decay` is in the tuner's convention. `seed` tells repeats of a setting apart; use it for
    everything random in the run. The schedule of a short run is as long as that run.
    """

    lr: float
    weight_decay: float
    epochs: int
    seed: int
    cell: Cell = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: its error, infinite if it diverged, and the errors on its way.

    `epochs` is how far it was trained, which is less than the trial's if it was stopped.
    """

    error: float
    epochs: int
    way: tuple[tuple[int, float], ...] = ()

    @property
    def diverged(self) -> bool:
        """Whether the error was not finite."""
        return not math.isfinite(self.error)
