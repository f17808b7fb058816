"""The loss that training minimizes, and the error that a run reports.

Both are functions of outputs and targets that return one number per example, or one per target of
each example. Their means are recorded. Lower is better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

#: From float32 outputs and targets to one number per example, or per target of each example.
Measured: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the squared difference from every target: the usual loss for regression."""
    return (outputs - targets).square()


def absolute_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the absolute difference from every target."""
    return (outputs - targets).abs()


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of every target, for logits [example, …, class]."""
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), reduction="none")


def rank(logits: Tensor, targets: Tensor) -> Tensor:
    """Return how many classes are ranked above each target.

    Among equal logits the first class wins, as in argmax. A logit that is NaN ranks above all.
    """
    logits, targets = logits.flatten(0, -2).float(), targets.flatten()[:, None]
    own = logits.gather(1, targets)
    earlier = torch.arange(logits.shape[1], device=logits.device) < targets
    return (~(logits <= own) | ((logits == own) & earlier)).sum(1)


@dataclass(frozen=True)
class Measure:
    """A task's loss and metric, as training uses them.

    A loss of None means cross-entropy, a metric of None the classification error. Both take logits
    with the classes in the last dimension.
    """

    loss: Measured | None = None
    metric: Measured | None = None

    @property
    def classifies(self) -> bool:
        """Whether the error is the fraction of misclassified targets."""
        return self.metric is None

    @property
    def name(self) -> str | None:
        """The metric's name, such as "squared error"; None for classification."""
        return None if self.metric is None else name_of(self.metric)

    def __call__(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss, the error and the top-5 error, per example or per target.

        Gradients flow only through the loss. A custom metric has no top-5 error: NaN.
        """
        if self.loss is None:
            loss = cross_entropy(outputs, targets)
        else:
            loss = _exact(self.loss, outputs, targets)
        if self.metric is None:
            missed = rank(outputs.detach(), targets)
            return loss, missed >= 1, missed >= 5
        if self.metric is self.loss:
            error = loss.detach()
        else:
            error = _exact(self.metric, outputs.detach(), targets)
        return loss, error, torch.full_like(error, torch.nan, dtype=torch.float32)


def name_of(function: Measured) -> str:
    """Return a function's name in words: "squared error" for `squared_error`."""
    while isinstance(function, partial):
        function = function.func
    named = getattr(function, "__name__", type(function).__name__)
    return "metric" if named == "<lambda>" else named.replace("_", " ").strip()


def _exact(function: Measured, outputs: Tensor, targets: Tensor) -> Tensor:
    """Call a function with float32 outputs and no autocast, even if models train in bfloat16."""
    with torch.autocast(outputs.device.type, enabled=False):
        return function(outputs.float(), targets)
