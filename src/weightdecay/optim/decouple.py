"""Decoupled weight decay for any optimizer of torch's kind.

    Adagrad = decouple(torch.optim.Adagrad)
    opt = Adagrad(model.parameters(), lr=0.01, weight_decay=1e-4, schedule=Cosine(10_000))

The class steps on the loss gradient alone, its own decay set to 0; then η·λ·θ_{t−1} is subtracted
wherever there was a gradient, θ_{t−1} being the weights before the step. Decaying first would not
be the same for a class whose step looks at the weights, as Adafactor's does. A copy of the decaying
weights exists during the step.

`decouple(torch.optim.SGD)` is not SGDW. Algorithm 1 has η·α inside the momentum; torch multiplies
the whole buffer by the current lr, so that a schedule rescales the gradients of the past too. The
two agree only while lr is constant.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from weightdecay.decay import Normalized
from weightdecay.optim.rounding import SIXTEEN_BIT, round_into
from weightdecay.optim.scheduled import Group, Multiplier, ScheduledOptimizer
from weightdecay.schedules import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

_REFUSED: dict[type[torch.optim.Optimizer], str] = {
    torch.optim.LBFGS: "it evaluates the loss several times a step and searches along a line, so "
    "that no single θ_{t−1} belongs to a step",
    torch.optim.Rprop: "its step sizes come from the signs of gradients and soon forget lr, so "
    "that lr carries no schedule",
    torch.optim.ASGD: "it decays weights by `lambd` and lowers lr by a schedule of its own, so "
    "that lr carries no schedule of ours",
}


class Decoupled(ScheduledOptimizer):
    """What `decouple` adds to a class; `original` is that class."""

    original: type[torch.optim.Optimizer]

    def __init__(
        self,
        params: ParamsT,
        *args: Any,
        weight_decay: float | Normalized,
        schedule: Schedule | Callable[[int], float] | None = None,
        **options: Any,
    ) -> None:
        self._begin(schedule)
        if "weight_decay" in inspect.signature(self.original.__init__).parameters:
            options["weight_decay"] = 0.0
        groups: list[Any] = list(params)
        if groups and not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        groups = [{"weight_decay": weight_decay, **group} for group in groups]
        self.original.__init__(self, groups, *args, **options)
        self.defaults["weight_decay"] = weight_decay

    def add_param_group(self, param_group: Group) -> None:
        """Add a group; see `ScheduledOptimizer.add_param_group`."""
        if "lr" not in self.defaults:
            raise TypeError(
                f"A class to decouple must have an `lr`, which {self.original.__name__} has not: "
                "there would be nothing to carry η."
            )
        super().add_param_group(param_group)

    def _update(self, multipliers: list[Multiplier]) -> None:
        kept = [
            (param, param.detach().clone(), multiplier and multiplier * group["weight_decay"])
            for group, multiplier in zip(self.param_groups, multipliers, strict=True)
            for param in group["params"]
            if param.grad is not None and (multiplier is None or group["weight_decay"])
        ]
        for param, _, rate in kept:
            if rate and param.grad.is_sparse:
                raise RuntimeError(
                    f"A decoupled {self.original.__name__} must be given dense gradients where "
                    "weights decay, got a sparse one. Rows without a gradient would have to decay "
                    "too: use sparse=False, or weight_decay=0 for that group."
                )
        with self._own_decay_off():
            _unhooked(self.original.step)(self)
        for number, (param, before, rate) in enumerate(kept):
            if rate is None:  # state was created, nothing more
                param.copy_(before)
            else:
                self._subtract(param, before, rate, number)

    def __getstate__(self) -> dict[str, Any]:
        # torch saves its own attributes; a class may have set others, which its step needs.
        others = {
            name: value
            for name, value in vars(self).items()
            if name != "step" and not name.startswith("_optimizer_")
        }
        return {**others, **super().__getstate__()}

    @contextmanager
    def _own_decay_off(self) -> "Iterator[None]":
        shown = [group["weight_decay"] for group in self.param_groups]
        for group in self.param_groups:
            group["weight_decay"] = 0.0
        try:
            yield
        finally:
            for group, weight_decay in zip(self.param_groups, shown, strict=True):
                group["weight_decay"] = weight_decay

    def _subtract(self, param: Tensor, before: Tensor, rate: float, number: int) -> None:
        if param.dtype in SIXTEEN_BIT:
            update = self.param_groups[0]["updates"]
            value = param.float() - rate * before.float()
            round_into(param, value, update=update, tensor=number)
        else:
            param.sub_(before, alpha=rate)


def decouple(cls: type[torch.optim.Optimizer]) -> type[Decoupled]:
    """Return a subclass of `cls` with decoupled weight decay and a schedule of its own.

    It takes what `cls` takes, with `weight_decay` now λ, the fraction removed in a step whatever
    `lr` is, and `schedule`. The same class gives the same subclass, which can be pickled.
    """
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)):
        raise TypeError(f"`cls` must be a subclass of torch.optim.Optimizer, got {cls!r}.")
    if issubclass(cls, ScheduledOptimizer):
        raise TypeError(
            f"`cls` must be a class that is not weightdecay's own, got {cls.__name__}. "
            "SGDW and AdamW are the decoupled SGD and Adam."
        )
    for refused, reason in _REFUSED.items():
        if issubclass(cls, refused):
            raise TypeError(f"{cls.__name__} cannot be decoupled: {reason}.")
    return _decoupled(cls)  # type: ignore[arg-type]  # mypy: a class can be hashed


@functools.cache
def _decoupled(cls: type[torch.optim.Optimizer]) -> type[Decoupled]:
    body = {
        "original": cls,
        "__module__": __name__,
        "__qualname__": _address(cls),
        "__doc__": f"{cls.__name__} with decoupled weight decay: see `weightdecay.decouple`.",
    }
    return type(f"Decoupled{cls.__name__}", (Decoupled, cls), body)


def _unhooked(step: Callable[..., Any]) -> Callable[..., Any]:
    # torch wraps a class's `step` so that it fires hooks; ours is wrapped already.
    while getattr(step, "hooked", False):
        step = step.__wrapped__  # type: ignore[attr-defined]
    return step


def _address(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}".replace(".", "/")


def __getattr__(name: str) -> type[Decoupled]:
    """Find a decoupled class by the address of its original: how pickle finds it."""
    module, colon, qualname = name.replace("/", ".").partition(":")
    if not colon:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return decouple(found)
