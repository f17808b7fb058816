"""What a model's outputs come to: the loss that training minimizes, and the error of a run.

Both are functions of outputs and targets that return one number per example, or one per target of
each example. Their means are recorded; lower is better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

#: From outputs, in float32, and targets to one number per example, or per target of each.
Measured: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the squared difference from every target: the usual loss of regression."""
    return (outputs - targets).square()


def absolute_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the absolute difference from every target."""
    return (outputs - targets).abs()


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return every target's cross-entropy, of logits [example, …, class]."""
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), reduction="none")


def rank(logits: Tensor, targets: Tensor) -> Tensor:
    """Return how many classes come before each target.

    Of equals the first comes first, as for argmax; a logit that is no number comes before all.
    """
    logits, targets = logits.flatten(0, -2).float(), targets.flatten()[:, None]
    own = logits.gather(1, targets)
    earlier = torch.arange(logits.shape[1], device=logits.device) < targets
    return (~(logits <= own) | ((logits == own) & earlier)).sum(1)


@dataclass(frozen=True)
class Measure:
    """A task's loss and metric, as training uses them.

    A loss of None is cross-entropy, a metric of None the error of classification: both take logits
    with the classes last.
    """

    loss: Measured | None = None
    metric: Measured | None = None

    @property
    def classifies(self) -> bool:
        """Whether errors are shares of targets that were missed."""
        return self.metric is None

    @property
    def name(self) -> str | None:
        """Return what the metric is called, as in "squared error"; None where it classifies."""
        return None if self.metric is None else name_of(self.metric)

    def __call__(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss, the error and the top-5 error, per example or per target.

        Gradients flow through the loss alone. Of a metric of one's own there is no top-5: NaN.
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
    """Return a function's name in words: that of `squared_error` is "squared error"."""
    while isinstance(function, partial):
        function = function.func
    named = getattr(function, "__name__", type(function).__name__)
    return "metric" if named == "<lambda>" else named.replace("_", " ").strip()


def _exact(function: Measured, outputs: Tensor, targets: Tensor) -> Tensor:
    """Call a function with outputs in float32, and keep it so where models train in bfloat16."""
    with torch.autocast(outputs.device.type, enabled=False):
        return function(outputs.float(), targets)
