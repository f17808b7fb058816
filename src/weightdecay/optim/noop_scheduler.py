"""A scheduler for trainers that insist on one."""

from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from weightdecay.optim.rates import Applied, Group
from weightdecay.schedules import Schedule

if TYPE_CHECKING:
    from weightdecay.optim.scheduled import ScheduledOptimizer


class Bystander(LRScheduler):
    """A scheduler that changes nothing and reports α·η: the optimizer schedules itself.

    It reports what a scheduler of torch's would at the same place of a loop: the rate of the update
    just made, until its own `step` is called; from then on the coming one.
    """

    optimizer: "ScheduledOptimizer"

    def __init__(self, optimizer: "ScheduledOptimizer") -> None:
        self.optimizer = optimizer
        self._step_count = 0  # some trainers count in it
        self._stepped_at = self.last_epoch
        for group in optimizer.param_groups:
            group["initial_lr"] = float(group["lr"])  # which SequentialLR writes into `lr`

    @property
    def base_lrs(self) -> list[float]:  # type: ignore[override]
        """Each group's α."""
        return [group["base"] for group in self.optimizer.param_groups]

    @property
    def last_epoch(self) -> int:
        """The updates made so far."""
        updates: int = self.optimizer.param_groups[0]["updates"]
        return updates

    @last_epoch.setter
    def last_epoch(self, value: int) -> None:
        """Do nothing: the optimizer counts."""

    @property
    def _last_lr(self) -> list[float | Tensor]:  # type: ignore[override]
        if self._stepped_at == self.last_epoch:
            return self.get_lr()
        groups, noted = self.optimizer._scheduled_groups(), self.optimizer._noted()
        return [_last_rate(*pair, used) for pair, used in zip(groups, noted, strict=True)]

    def step(self, epoch: int | None = None) -> None:  # noqa: ARG002
        """Report the coming update from now on."""
        self._stepped_at = self.last_epoch

    def _update_lr(self, epoch: int | None = None) -> None:
        self.step(epoch)  # what SequentialLR calls where a scheduler begins

    def get_lr(self) -> list[float | Tensor]:
        """Return each group's α·η of the coming update."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: all there is to save is in the optimizer."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing."""


def _last_rate(group: Group, schedule: Schedule | None, used: Applied | None) -> float:
    """Return a group's α·η of the last update, or of the first, without asking a device.

    Of an update that was not noted here, made by a CUDA graph or before a run was resumed, it is
    what the schedule says.
    """
    last: int = group["updates"] - 1
    if used is not None and used.update == last:
        return used.lr
    if schedule is not None and last >= 0:
        return float(group["base"] * schedule(last))
    return float(group["lr"])
