"""The length of the long runs behind learning curves, at each scale."""

from dataclasses import dataclass
from typing import Any

from weightdecay.studies.scales import Scale


@dataclass(frozen=True)
class Long:
    """The epochs of long runs, and of the first cycle of restarts.

    `every` is the number of epochs from one point of a curve to the next. `model` is the network,
    if it is not that of landscapes.
    """

    epochs: int
    first_cycle: int
    every: int = 1
    model: str | None = None

    @property
    def restarted(self) -> int:
        """Return the epoch at which the last complete cycle ends; each doubles in length."""
        end, cycle = 0, self.first_cycle
        while end + cycle <= self.epochs:
            end, cycle = end + cycle, 2 * cycle
        return end


LONG = {
    "mnist1d": Long(180, 12, every=6),
    "text": Long(180, 12, every=6),
    "cifar10-small": Long(60, 4),
    "cifar10-medium": Long(150, 10),
    "cifar10-paper": Long(1800, 100, model="shakeshake26,width=96"),
    "imagenet32-paper": Long(150, 10, model="shakeshake26,width=96"),
}


def long_of(at: Scale) -> Long:
    """Return the length of long runs; if the table has none, four cycles.

    The first of these cycles is a quarter as long as a landscape's runs.
    """
    first = -(-at.epochs // 4)
    return at.among(LONG) or Long(15 * first, first, every=max(1, at.epochs // 16))


def long_axes(at: Scale) -> dict[str, Any]:
    """Return what long runs have in common."""
    long = long_of(at)
    own = {"task": at.task, "epochs": long.epochs, "seed": at.seeds, "evaluate_every": long.every}
    return {**at.common, **own, "model": long.model or at.common["model"]}
