"""Trials of an optimizer class on a small tensor, to see what it does to weights.

A trial builds the class with the user's arguments and a group's values, on the CPU. It restores the
random number generators afterwards.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from weightdecay.optim.rates import Group

#: A class with the user's arguments, to be called with groups.
Build: TypeAlias = "partial[torch.optim.Optimizer]"

# Lookahead merges slow weights every 5 or 6 updates, other classes after a given number.
_UPDATES, _AT_MOST = 7, 50
_LAMBDA = 0.1
_FOUND: dict[tuple[Any, str], str | None] = {}  # by class and arguments
_OURS = {"params", "param_names", "base", "updates", "scheduled", "normalized", "l2"}
_OURS |= {"lr", "weight_decay"}  # set by the trial


def regularizes(build: Build, group: Group) -> bool:
    """Whether the class's own decay acts as if a multiple of θ were added to the gradient."""
    sign = -1 if group.get("maximize") else 1  # the sign of the penalty in the objective
    start = torch.tensor([[1.0, -2.0], [3.0, -0.5]], dtype=torch.float64, device="cpu")
    slope = torch.tensor([[-0.2, 0.3], [0.4, 0.1]], dtype=torch.float64, device="cpu")
    ends = []
    for own, added in ((0.5, 0.0), (0.0, 0.5)):
        with _isolated():
            theta = nn.Parameter(start.clone())
            trial = _trial(build, group, theta, weight_decay=own)
            if "weight_decay" not in trial.defaults:
                return False
            for _ in range(3):
                theta.grad = slope + sign * added * theta
                unhooked(type(trial).step)(trial)
        ends.append(theta.detach())
    one, other = ends
    return bool((one - other).norm() <= 1e-3 * (other - start).norm())


def fault_of_decay(build: Build, group: Group) -> str | None:
    """Return how weights with zero gradients fail to shrink by λ, or None if they do shrink.

    λ·θ is subtracted after each step. The class must move the weights in the same way with and
    without that: a class that keeps its own copy of the weights restores what was subtracted.
    """
    place = build.func, repr((build.args, build.keywords, _own(group)))
    if place not in _FOUND:
        _FOUND[place] = _fault_of_decay(build, group)
    return _FOUND[place]


def _fault_of_decay(build: Build, group: Group) -> str | None:
    arguments = *build.args, *build.keywords.values(), *_own(group).values()
    lengths = [value for value in arguments if type(value) is int]
    updates = max([_UPDATES, *(length + 1 for length in lengths if length <= _AT_MOST)])
    plain, decayed = (_idle(build, group, updates, decay) for decay in (0.0, _LAMBDA))
    for t in range(updates):
        before = decayed[t]
        taken = (plain[t + 1] - plain[t]) - (decayed[t + 1] - before)
        if not (taken - _LAMBDA * before).norm() <= 1e-3 * _LAMBDA * before.norm():
            share = float((taken * before).sum() / before.square().sum())
            return f"at λ = {_LAMBDA:g} the weights lost a share of {share:.3g} in update {t + 1}"
    return None


def _idle(build: Build, group: Group, updates: int, decay: float) -> list[Tensor]:
    """Return weights with zero gradients, at the start and after each update."""
    with _isolated():
        theta = nn.Parameter(torch.randn(3, 4) + 2)
        trial = _trial(build, group, theta, weight_decay=0.0)
        path = [theta.detach().clone()]
        for _ in range(updates):
            theta.grad = torch.zeros_like(theta)
            unhooked(type(trial).step)(trial)
            theta.sub_(decay * path[-1])
            path.append(theta.detach().clone())
    return path


def _own(group: Group) -> Group:
    """Return the values of a group that the class itself takes."""
    return {key: value for key, value in group.items() if key not in _OURS}


def _trial(
    build: Build, group: Group, theta: nn.Parameter, *, weight_decay: float
) -> torch.optim.Optimizer:
    changed = {"lr": 0.1, "capturable": False}  # `capturable` works only on GPUs
    values = {**_own(group), **changed, "weight_decay": weight_decay, "params": [theta]}
    return build.func([values], *build.args, **build.keywords)


@contextmanager
def _isolated() -> Iterator[None]:
    """Compute on the CPU, with separate random number generators."""
    state = random.getstate()
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
        torch.default_generator.manual_seed(0)  # leaves the GPUs' generators alone
        random.seed(0)
        try:
            yield
        finally:
            random.setstate(state)


def unhooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a class's `step` without torch's wrapper, which runs hooks."""
    while getattr(step, "hooked", False):
        step = step.__wrapped__  # type: ignore[attr-defined]
    return step
