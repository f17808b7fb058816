"""Helpers for formulas by torch's own fused kernels, on the CPU tensors of one group.

`torch._fused_adamw_` multiplies weights by 1 − lr · weight_decay, which is 1 − ηλ for weight_decay
λ/α. It rounds that factor to float32, always in the same direction for the same λ: over a thousand
updates the error is 2·10⁻⁵ of a weight. `factor` alternates between rounding up and down instead,
so that the product over many updates is right.
"""

import math

import numpy as np
import torch
from torch import Tensor

from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.foreach import mixed
from weightdecay.optim.kernels.slot import Slot, TensorLists, aligned_in_memory
from weightdecay.optim.rates import Group

_GOLDEN = (math.sqrt(5) - 1) / 2


def unfit(slot: Slot, grad: Tensor, group: Group, algorithm: Algorithm) -> str | None:
    """Return the requirement of this kernel that a parameter does not meet, or None."""
    if algorithm.fused is None:
        return algorithm.without("fused")
    tensors = [slot.param, grad, *slot.states.values()]
    if any(tensor.device.type != "cpu" for tensor in tensors):
        return f"parameters on the CPU, got one on {slot.param.device}"
    if not aligned_in_memory(slot, grad):
        return "contiguous parameters and gradients, got a strided one"
    return algorithm.fused_unfit(slot, group) or mixed(slot, grad)


def factor(lists: TensorLists, group: Group, multiplier: float) -> float:
    """Return 1 − ηλ for this update, rounded up in some updates and down in others."""
    exact: float = 1 - multiplier * group["weight_decay"]
    if lists.params[0].dtype is not torch.float32:
        return exact
    below = float(np.float32(exact))
    if below > exact:
        below -= 2.0**-24  # the spacing of float32 numbers between ½ and 1
    share = (exact - below) * 2.0**24
    return below + 2.0**-24 if group["updates"] * _GOLDEN % 1 < share else below
