"""One tensor at a time, by the paper's lines: the specification that every other kernel must equal.

An algorithm's `reference` updates a float tensor. Here complex tensors become pairs of real
numbers, and 16-bit tensors are computed in float32, with the decay inside the value that is
rounded.
"""

from typing import Any

import torch
from torch import Tensor

from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.slot import Slot
from weightdecay.optim.rates import Group
from weightdecay.optim.rounding import SIXTEEN_BIT, round_into


def update(slot: Slot, grad: Tensor, group: Group, multiplier: float, algorithm: Algorithm) -> None:
    """Update one parameter and its state, in place."""
    param, states = slot.param, dict(slot.states)
    if param.is_complex():
        param, grad = torch.view_as_real(param), torch.view_as_real(grad)
        states = {key: torch.view_as_real(value) for key, value in states.items()}
    if group["maximize"]:
        grad = -grad
    dtype = torch.float32 if param.dtype in SIXTEEN_BIT else param.dtype
    compensation = states.pop("compensation", None)
    value = param.to(dtype) if compensation is None else param.to(dtype) + compensation
    wide = {key: state.to(dtype) for key, state in states.items()}
    step = {"step": slot.state["step"]} if "step" in slot.state else {}
    algorithm.reference(value, grad.to(dtype), {**wide, **step}, group, multiplier)
    seed: dict[str, Any] = {
        "update": group["updates"],
        "stream": 4 * slot.key,
        "region": slot.region,
    }
    if compensation is None:
        _store(param, value, **seed)
    else:
        param.copy_(value)
        _store(compensation, torch.where(value.isfinite(), value - param, 0.0), **seed)
    for key, state in states.items():
        seed["stream"] += 1
        _store(state, wide[key], **seed)


def _store(tensor: Tensor, value: Tensor, **seed: Any) -> None:
    if tensor.dtype in SIXTEEN_BIT:
        round_into(tensor, value, **seed)
    elif tensor is not value:
        tensor.copy_(value)
