"""A scheduler for trainers that insist on one."""

from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler


class Bystander(LRScheduler):
    """A scheduler that changes nothing and reports α·η: the optimizer schedules itself."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self._step_count = 0  # some trainers count in it

    @property
    def base_lrs(self) -> list[float]:  # type: ignore[override]
        """Each group's α."""
        return [group["base"] for group in self.optimizer.param_groups]

    @property
    def last_epoch(self) -> int:  # type: ignore[override]
        """The updates made so far."""
        updates: int = self.optimizer.param_groups[0]["updates"]
        return updates

    @property
    def _last_lr(self) -> list[float | Tensor]:  # type: ignore[override]
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Do nothing."""

    def get_lr(self) -> list[float | Tensor]:
        """Return each group's α·η of the coming update."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: all there is to save is in the optimizer."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing."""
