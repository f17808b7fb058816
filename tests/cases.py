"""One table of optimizers that drives many tests: class, arguments, and the reference to equal.

Decay is large in every row, and never zero.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.reference import Gradient, Vector, algorithm_1, algorithm_2
from weightdecay import SGD, SGDW, Adam, AdamW

STEPS = 40
Class = type[torch.optim.Optimizer]


class Missing(torch.optim.Optimizer):
    """Stands for a class of a package that is not installed."""


def third_party(name: str) -> Class:
    """Return a class of pytorch_optimizer, where that is installed."""
    try:
        package = import_module("pytorch_optimizer")
    except ImportError:
        return Missing
    found: Class = getattr(package, name)
    return found


def each(table: Mapping[str, tuple[Class, dict[str, Any]]]) -> pytest.MarkDecorator:
    """Run a test with every class and its options; those that are missing are skipped."""
    needed = pytest.mark.skip("pytorch_optimizer is not installed")
    rows = [
        pytest.param(*row, id=name, marks=[needed] * (row[0] is Missing))
        for name, row in table.items()
    ]
    return pytest.mark.parametrize(("cls", "options"), rows)


@dataclass(frozen=True)
class Case:
    cls: Callable[..., Any]
    algorithm: Callable[..., Vector]
    options: dict[str, Any]
    # What the reference takes that the optimizer calls by another name, or has as a default.
    also: dict[str, Any] = field(default_factory=dict)

    def build(self, params: Any, **changes: Any) -> Any:
        return self.cls(params, **{**self.options, **changes})

    def reference(self, theta: Vector, gradient: Gradient, **changes: Any) -> Vector:
        return self.algorithm(theta, gradient, **{**self.also, **self.options, **changes})

    @property
    def decay(self) -> str:
        return "weight_decay" if "weight_decay" in self.options else "l2"


_SGD = {"momentum": 0.9}
_ADAM = {"betas": (0.9, 0.999), "eps": 1e-8}
_FAST = {"betas": (0.6, 0.7), "eps": 1e-3}

CASES = {
    "sgd": Case(SGD, algorithm_1, {"lr": 0.05, "l2": 0.3}, _SGD),
    "sgd-plain": Case(SGD, algorithm_1, {"lr": 0.1, "l2": 0.3, "momentum": 0.0}),
    "sgd-nesterov": Case(
        SGD, algorithm_1, {"lr": 0.05, "l2": 0.3, "momentum": 0.8, "nesterov": True}
    ),
    "sgdw": Case(SGDW, algorithm_1, {"lr": 0.05, "weight_decay": 0.04}, _SGD),
    "sgdw-plain": Case(SGDW, algorithm_1, {"lr": 0.1, "weight_decay": 0.04, "momentum": 0.0}),
    "sgdw-nesterov": Case(
        SGDW, algorithm_1, {"lr": 0.05, "weight_decay": 0.04, "momentum": 0.8, "nesterov": True}
    ),
    "adam": Case(Adam, algorithm_2, {"lr": 0.02, "l2": 0.3}, _ADAM),
    "adam-amsgrad": Case(Adam, algorithm_2, {"lr": 0.02, "l2": 0.3, "amsgrad": True, **_FAST}),
    "adamw": Case(AdamW, algorithm_2, {"lr": 0.02, "weight_decay": 0.04}, _ADAM),
    "adamw-fast": Case(AdamW, algorithm_2, {"lr": 0.02, "weight_decay": 0.04, **_FAST}),
    "adamw-amsgrad": Case(
        AdamW, algorithm_2, {"lr": 0.02, "weight_decay": 0.04, "amsgrad": True, **_FAST}
    ),
}
DECOUPLED = {name: case for name, case in CASES.items() if case.decay == "weight_decay"}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_decoupled_case = pytest.mark.parametrize("case", DECOUPLED.values(), ids=DECOUPLED)


def start(size: int = 7) -> Vector:
    return np.random.default_rng(1).normal(size=size)


def gradient(t: int, theta: Vector) -> Vector:
    """A noisy slope towards 1: what the t-th batch, counted from 1, would give."""
    return theta - 1 + np.random.default_rng(t).normal(size=theta.shape)


def parameter(values: Vector | None = None, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.nn.Parameter(torch.tensor(start() if values is None else values, dtype=dtype))


def set_gradients(opt: Any, t: int) -> None:
    for group in opt.param_groups:
        for param in group["params"]:
            theta = param.detach().double().numpy()
            param.grad = torch.tensor(gradient(t, theta), dtype=param.dtype)


def advance(
    opt: Any, steps: int = STEPS, *, first: int = 1, then: Callable[[], Any] = lambda: None
) -> None:
    """Make updates first, first + 1, … (as the paper counts), calling `then` after each."""
    for t in range(first, first + steps):
        set_gradients(opt, t)
        opt.step()
        then()


def weights(opt: Any) -> list[Tensor]:
    return [p.detach().clone() for group in opt.param_groups for p in group["params"]]


def zero_gradients(opt: Any) -> None:
    for group in opt.param_groups:
        for param in group["params"]:
            param.grad = torch.zeros_like(param)
