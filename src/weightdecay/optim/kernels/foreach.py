"""Both algorithms as torch's multi-tensor operations, for one group's float tensors."""

import torch
from torch import Tensor

from weightdecay.optim.kernels.slot import Columns, Slot
from weightdecay.optim.rates import Group


def unfit(slot: Slot, grad: Tensor, group: Group) -> str | None:
    """Say what this kernel asks for that a parameter is not, or None if it can serve it."""
    del group
    dtypes = {tensor.dtype for tensor in (slot.param, grad, *slot.states.values())}
    if dtypes not in ({torch.float32}, {torch.float64}):
        return (
            f"parameters, gradients and states all float32 or all float64, got {slot.param.dtype}"
        )
    return None


def adam(columns: Columns, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Algorithm 2."""
    params, exp_avgs = columns.params, columns.states["exp_avg"]
    exp_avg_sqs = columns.states["exp_avg_sq"]
    beta1, beta2 = group["betas"]
    counts = [step.item() for step in columns.steps]
    grads = _regularized(params, grads, group)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)  # line 7
    squares = torch._foreach_mul(grads, grads)
    torch._foreach_lerp_(exp_avg_sqs, squares, 1 - beta2)  # line 8
    if group["amsgrad"]:
        exp_avg_sqs = columns.states["max_exp_avg_sq"]
        torch._foreach_maximum_(exp_avg_sqs, columns.states["exp_avg_sq"])
    directions = torch._foreach_div(exp_avgs, [1 - beta1**t for t in counts])  # line 9
    scales = torch._foreach_div(exp_avg_sqs, [1 - beta2**t for t in counts])  # line 10
    torch._foreach_sqrt_(scales)
    torch._foreach_add_(scales, group["eps"])
    torch._foreach_div_(directions, scales)
    _decay(params, group, multiplier)
    torch._foreach_add_(params, directions, alpha=-multiplier * group["base"])  # line 12


def sgd(columns: Columns, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Algorithm 1."""
    params, momentum = columns.params, group["momentum"]
    grads = _regularized(params, grads, group)
    _decay(params, group, multiplier)
    rate = multiplier * group["base"]
    if not momentum or group["nesterov"]:
        torch._foreach_add_(params, grads, alpha=-rate)
    if momentum:
        buffers = columns.states["momentum_buffer"]
        torch._foreach_mul_(buffers, momentum)
        torch._foreach_add_(buffers, grads, alpha=rate)  # line 8
        torch._foreach_add_(params, buffers, alpha=-momentum if group["nesterov"] else -1.0)


def _regularized(params: list[Tensor], grads: list[Tensor], group: Group) -> list[Tensor]:
    if group["maximize"]:
        grads = list(torch._foreach_neg(grads))
    if group.get("l2"):
        grads = list(torch._foreach_add(grads, params, alpha=group["l2"]))  # line 6
    return grads


def _decay(params: list[Tensor], group: Group, multiplier: float) -> None:
    if group.get("weight_decay"):
        torch._foreach_add_(params, params, alpha=-multiplier * group["weight_decay"])
