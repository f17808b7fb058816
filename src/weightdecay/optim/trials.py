"""What a class does to weights, tried out on a few small ones of our own.

A trial builds the class with the user's own arguments and a group's own values, on the CPU, and
leaves the generators of random numbers as they were.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from weightdecay.optim.rates import Group

#: A class with the user's arguments, to be given groups.
Build: TypeAlias = "partial[torch.optim.Optimizer]"

# Lookahead merges slow weights every 5 or 6 updates, others at a number they are given.
_UPDATES, _AT_MOST = 7, 50
_LAMBDA = 0.1
_FOUND: dict[tuple[Any, str], str | None] = {}  # by class and arguments
_OURS = {"params", "param_names", "base", "updates", "scheduled", "normalized", "l2"}
_OURS |= {"lr", "weight_decay"}  # which a trial sets


def regularizes(build: Build, group: Group) -> bool:
    """Whether the class, told to decay, steps as if a multiple of θ were in the gradient."""
    sign = -1 if group.get("maximize") else 1  # of the loss, to which a penalty is added
    start = torch.tensor([[1.0, -2.0], [3.0, -0.5]], dtype=torch.float64, device="cpu")
    slope = torch.tensor([[-0.2, 0.3], [0.4, 0.1]], dtype=torch.float64, device="cpu")
    ends = []
    for own, added in ((0.5, 0.0), (0.0, 0.5)):
        with _aside():
            theta = nn.Parameter(start.clone())
            twin = _twin(build, group, theta, weight_decay=own)
            if "weight_decay" not in twin.defaults:
                return False
            for _ in range(3):
                theta.grad = slope + sign * added * theta
                unhooked(type(twin).step)(twin)
        ends.append(theta.detach())
    one, other = ends
    return bool((one - other).norm() <= 1e-3 * (other - start).norm())


def fault_of_decay(build: Build, group: Group) -> str | None:
    """Say how idle weights fail to shrink by λ where λ·θ is subtracted after each step, or None.

    Idle weights have gradients of 0. With and without the decay, the class must move them alike:
    one that keeps weights of its own puts back what was taken from those it was given.
    """
    place = build.func, repr((build.args, build.keywords, _own(group)))
    if place not in _FOUND:
        _FOUND[place] = _fault_of_decay(build, group)
    return _FOUND[place]


def _fault_of_decay(build: Build, group: Group) -> str | None:
    told = *build.args, *build.keywords.values(), *_own(group).values()
    lengths = [value for value in told if type(value) is int]
    updates = max([_UPDATES, *(length + 1 for length in lengths if length <= _AT_MOST)])
    plain, decayed = (_idle(build, group, updates, decay) for decay in (0.0, _LAMBDA))
    for t in range(updates):
        before = decayed[t]
        taken = (plain[t + 1] - plain[t]) - (decayed[t + 1] - before)
        if not (taken - _LAMBDA * before).norm() <= 1e-3 * _LAMBDA * before.norm():
            share = float((taken * before).sum() / before.square().sum())
            return (
                f"at λ = {_LAMBDA:g} the weights lost {share:.3g} of themselves in update {t + 1}"
            )
    return None


def _idle(build: Build, group: Group, updates: int, decay: float) -> list[Tensor]:
    """Return idle weights at the start and after each update."""
    with _aside():
        theta = nn.Parameter(torch.randn(3, 4) + 2)
        twin = _twin(build, group, theta, weight_decay=0.0)
        path = [theta.detach().clone()]
        for _ in range(updates):
            theta.grad = torch.zeros_like(theta)
            unhooked(type(twin).step)(twin)
            theta.sub_(decay * path[-1])
            path.append(theta.detach().clone())
    return path


def _own(group: Group) -> Group:
    """Return what of a group the class itself takes."""
    return {key: value for key, value in group.items() if key not in _OURS}


def _twin(
    build: Build, group: Group, theta: nn.Parameter, *, weight_decay: float
) -> torch.optim.Optimizer:
    only_here = {"lr": 0.1, "capturable": False}  # which is for GPUs alone
    told = {**_own(group), **only_here, "weight_decay": weight_decay, "params": [theta]}
    return build.func([told], *build.args, **build.keywords)


@contextmanager
def _aside() -> Iterator[None]:
    """Compute on the CPU with random numbers of its own."""
    state = random.getstate()
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
        torch.default_generator.manual_seed(0)  # not those of GPUs
        random.seed(0)
        try:
            yield
        finally:
            random.setstate(state)


def unhooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a class's `step` without torch's wrapper, which fires hooks."""
    while getattr(step, "hooked", False):
        step = step.__wrapped__  # type: ignore[attr-defined]
    return step
