"""Both algorithms by torch's own fused kernels, for one group's tensors on the CPU.

`torch._fused_adamw_` multiplies weights by 1 − lr · weight_decay, which is 1 − ηλ for weight_decay
λ/α. It rounds that factor to float32, always the same way for the same λ: over a thousand updates
2·10⁻⁵ of a weight. `_factor` rounds it up or down by turns instead, so that the product is right.
"""

import math

import numpy as np
import torch
from torch import Tensor

from weightdecay.optim.kernels import foreach
from weightdecay.optim.kernels.slot import Columns, Slot, aligned_in_memory
from weightdecay.optim.rates import Group

_GOLDEN = (math.sqrt(5) - 1) / 2


def unfit(slot: Slot, grad: Tensor, group: Group) -> str | None:
    """Say what this kernel asks for that a parameter is not, or None if it can serve it."""
    tensors = [slot.param, grad, *slot.states.values()]
    if any(tensor.device.type != "cpu" for tensor in tensors):
        return f"parameters on the CPU, got one on {slot.param.device}"
    if not aligned_in_memory(slot, grad):
        return "contiguous parameters and gradients, got a strided one"
    if group.get("nesterov"):
        return "momentum without nesterov, got nesterov=True"
    if group.get("momentum") and slot.param.dtype is torch.float64:
        return "float32 parameters, got float64: 1 − dampening would lose digits of the rate"
    return foreach.unfit(slot, grad, group)


def adam(columns: Columns, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Algorithm 2."""
    lr = multiplier * group["base"]
    decoupled = "weight_decay" in group
    decay = group["weight_decay"] if decoupled else group["l2"]
    if decoupled and decay:
        decay = (1 - _factor(columns, group, multiplier)) / lr if lr else 0.0
    step = torch._fused_adamw_ if decoupled else torch._fused_adam_
    step(
        columns.params,
        grads,
        columns.states["exp_avg"],
        columns.states["exp_avg_sq"],
        columns.states.get("max_exp_avg_sq", []),
        columns.steps,
        lr=lr,
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        weight_decay=decay,
        eps=group["eps"],
        amsgrad=group["amsgrad"],
        maximize=group["maximize"],
    )


def sgd(columns: Columns, grads: list[Tensor], group: Group, multiplier: float) -> None:
    """Algorithm 1: what torch calls dampening puts η·α inside the momentum.

    Decay is descent along the weights themselves, at rate η·λ. A multi-tensor multiplication would
    be a call a tensor on the CPU, and slower than all the rest where tensors are many.
    """
    rate, momentum = multiplier * group["base"], group["momentum"]
    if group.get("weight_decay"):
        torch._fused_sgd_(
            columns.params,
            columns.params,
            [],
            weight_decay=0.0,
            momentum=0.0,
            lr=multiplier * group["weight_decay"],
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )
    torch._fused_sgd_(
        columns.params,
        grads,
        columns.states.get("momentum_buffer", []),
        weight_decay=group.get("l2", 0.0),
        momentum=momentum,
        lr=1.0 if momentum else rate,
        dampening=1 - rate if momentum else 0.0,
        nesterov=False,
        maximize=group["maximize"],
        is_first_step=False,
    )


def _factor(columns: Columns, group: Group, multiplier: float) -> float:
    exact: float = 1 - multiplier * group["weight_decay"]
    if columns.params[0].dtype is not torch.float32:
        return exact
    below = float(np.float32(exact))
    if below > exact:
        below -= 2.0**-24  # the distance of float32 numbers between ½ and 1
    share = (exact - below) * 2.0**24
    return below + 2.0**-24 if group["updates"] * _GOLDEN % 1 < share else below
