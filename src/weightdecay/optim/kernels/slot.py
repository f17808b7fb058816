"""A parameter as the kernels see it, and lists of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from weightdecay.optim.rounding import KEY
from weightdecay.optim.shards import Region, local, region_of

State: TypeAlias = dict[str, Any]
#: GradScaler's `found_inf`, and its `grad_scale`, or None if gradients are already unscaled.
Scaling: TypeAlias = tuple[Tensor, Tensor | None]


@dataclass(slots=True)
class Slot:
    """One parameter that has a gradient, its state, and its place in the optimizer.

    `param` and `states` are the part on this rank: the local shard of a DTensor. `key` and `region`
    seed the rounding of 16-bit values: see `rounding.py`.
    """

    owner: Tensor
    state: State
    param: Tensor
    states: dict[str, Tensor]
    group: int
    number: int
    key: int
    region: Region | None


def slot_of(owner: Tensor, state: State, *, group: int, number: int) -> Slot:
    """Return a parameter's slot."""
    states = {
        name: local(value)
        for name, value in state.items()
        if name != "step" and isinstance(value, Tensor)
    }
    region = region_of(owner) if KEY in state else None
    return Slot(owner, state, local(owner), states, group, number, state.get(KEY, 0), region)


def aligned_in_memory(slot: Slot, grad: Tensor) -> bool:
    """Whether the n-th element in memory is the same in all tensors, without gaps in between."""
    tensors = [slot.param, grad, *slot.states.values()]
    if all(tensor.is_contiguous() for tensor in tensors):
        return True
    # Channels last, for example. Not in 16 bits: there the rounding depends on an element's place.
    strides = {tensor.stride() for tensor in tensors}
    dense = torch.ops.aten.is_non_overlapping_and_dense(slot.param)
    return len(strides) == 1 and dense and slot.param.dtype is torch.float32


class TensorLists:
    """Slots as lists of tensors, which multi-tensor operations take."""

    def __init__(self, slots: Sequence[Slot], grads: Sequence[Tensor]) -> None:
        self.params = [slot.param for slot in slots]
        self.states = {key: [slot.states[key] for slot in slots] for key in slots[0].states}
        self.steps = [slot.state["step"] for slot in slots if "step" in slot.state]
        self.pointers = list(map(Tensor.data_ptr, self.params))
        self._contiguous = all(map(Tensor.is_contiguous, grads))
        self._strides = list(map(Tensor.stride, grads))

    def is_valid(self, grads: Sequence[Tensor]) -> bool:
        """Whether parameters are at the same addresses, and gradients have the same strides."""
        if list(map(Tensor.data_ptr, self.params)) != self.pointers:
            return False
        if self._contiguous:
            return all(map(Tensor.is_contiguous, grads))
        return list(map(Tensor.stride, grads)) == self._strides
