"""What algorithms share as torch's multi-tensor operations, for one group's float tensors."""

import torch
from torch import Tensor

from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import Slot
from weightdecay.optim.rates import Group


def unfit(slot: Slot, grad: Tensor, group: Group, algorithm: Algorithm) -> str | None:
    """Say what this kernel asks for that a parameter is not, or None if it can serve it."""
    del group
    return algorithm.without("foreach") if algorithm.foreach is None else mixed(slot, grad)


def mixed(slot: Slot, grad: Tensor) -> str | None:
    """Say so where tensors are not all float32 or all float64."""
    dtypes = {tensor.dtype for tensor in (slot.param, grad, *slot.states.values())}
    if dtypes not in ({torch.float32}, {torch.float64}):
        return (
            f"parameters, gradients and states all float32 or all float64, got {slot.param.dtype}"
        )
    return None


def regularized(params: list[Tensor], grads: list[Tensor], group: Group) -> list[Tensor]:
    """Return gradients of what is to be minimized, with L2 regularization."""
    if group["maximize"]:
        grads = list(torch._foreach_neg(grads))
    if group.get("l2"):
        grads = list(torch._foreach_add(grads, params, alpha=group["l2"]))  # line 6
    return grads


def decay(params: list[Tensor], group: Group, multiplier: float) -> None:
    """Subtract η·λ·θ, in place; before the step, so that θ is still that of the line."""
    if group.get("weight_decay"):
        torch._foreach_add_(params, params, alpha=-multiplier * group["weight_decay"])
