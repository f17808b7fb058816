"""Helpers for formulas in torch's multi-tensor operations, on the float tensors of one group."""

import torch
from torch import Tensor

from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import Slot
from weightdecay.optim.rates import Group


def unfit(slot: Slot, grad: Tensor, group: Group, algorithm: Algorithm) -> str | None:
    """Return the requirement of this kernel that a parameter does not meet, or None."""
    del group
    return algorithm.without("foreach") if algorithm.foreach is None else mixed(slot, grad)


def mixed(slot: Slot, grad: Tensor) -> str | None:
    """Return a requirement unless the tensors are all float32 or all float64."""
    dtypes = {tensor.dtype for tensor in (slot.param, grad, *slot.states.values())}
    if dtypes not in ({torch.float32}, {torch.float64}):
        return (
            f"parameters, gradients and states all float32 or all float64, got {slot.param.dtype}"
        )
    return None


def regularized(params: list[Tensor], grads: list[Tensor], group: Group) -> list[Tensor]:
    """Return gradients with L2 regularization, negated if the objective is maximized."""
    if group["maximize"]:
        grads = list(torch._foreach_neg(grads))
    if group.get("l2"):
        grads = list(torch._foreach_add(grads, params, alpha=group["l2"]))  # line 6
    return grads


def decay(params: list[Tensor], group: Group, multiplier: float) -> None:
    """Subtract η·λ·θ in place. Call it before the step, since θ must be the weights before it."""
    if group.get("weight_decay"):
        torch._foreach_add_(params, params, alpha=-multiplier * group["weight_decay"])
