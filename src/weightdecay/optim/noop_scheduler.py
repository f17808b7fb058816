"""A scheduler that does nothing, for trainers that require one."""

from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from weightdecay.optim.rates import Applied, Group
from weightdecay.schedules import Schedule

if TYPE_CHECKING:
    from weightdecay.optim.scheduled import ScheduledOptimizer


class NoopScheduler(LRScheduler):
    """Changes nothing and reports α·η: the optimizer applies its own schedule.

    It reports what a torch scheduler would report at the same place in a training loop: the rate of
    the update just made until `step` is called, then the rate of the next update.
    """

    optimizer: "ScheduledOptimizer"

    def __init__(self, optimizer: "ScheduledOptimizer") -> None:
        self.optimizer = optimizer
        self._step_count = 0  # some trainers write to it
        self._stepped_at = self.last_epoch
        for group in optimizer.param_groups:
            group["initial_lr"] = float(group["lr"])  # SequentialLR copies it into `lr`

    @property
    def base_lrs(self) -> list[float]:  # type: ignore[override]
        """Each group's α."""
        return [group["base"] for group in self.optimizer.param_groups]

    @property
    def last_epoch(self) -> int:
        """The number of updates made so far."""
        updates: int = self.optimizer.param_groups[0]["updates"]
        return updates

    @last_epoch.setter
    def last_epoch(self, value: int) -> None:
        """Do nothing: the optimizer counts updates."""

    @property
    def _last_lr(self) -> list[float | Tensor]:  # type: ignore[override]
        if self._stepped_at == self.last_epoch:
            return self.get_lr()
        groups, noted = self.optimizer._scheduled_groups(), self.optimizer._noted()
        return [_last_rate(*pair, used) for pair, used in zip(groups, noted, strict=True)]

    def step(self, epoch: int | None = None) -> None:  # noqa: ARG002
        """Report the rate of the next update from now on."""
        self._stepped_at = self.last_epoch

    def _update_lr(self, epoch: int | None = None) -> None:
        self.step(epoch)  # SequentialLR calls this when a scheduler starts

    def get_lr(self) -> list[float | Tensor]:
        """Return α·η of each group's next update."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dict: the optimizer's own state has everything."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing."""


def _last_rate(group: Group, schedule: Schedule | None, used: Applied | None) -> float:
    """Return α·η of a group's last update, or of its first, without waiting for a device.

    If this process did not record the update (a CUDA graph made it, or the run was resumed), the
    rate comes from the schedule.
    """
    last: int = group["updates"] - 1
    if used is not None and used.update == last:
        return used.lr
    if schedule is not None and last >= 0:
        return float(group["base"] * schedule(last))
    return float(group["lr"])
