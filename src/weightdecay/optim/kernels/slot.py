"""A parameter as the kernels see it, and columns of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_, itemgetter
from typing import Any, TypeAlias

from torch import Tensor

Group: TypeAlias = dict[str, Any]
State: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Slot:
    """One parameter that has a gradient, its state, and its place in the optimizer.

    `param` and `states` are what of it is on this rank: of a DTensor, the local shard.
    """

    owner: Tensor
    state: State
    param: Tensor
    states: dict[str, Tensor]
    group: int
    number: int


def slot_of(owner: Tensor, state: State, *, group: int, number: int) -> Slot:
    """Return a parameter's slot."""
    states = {
        key: local(value)
        for key, value in state.items()
        if key != "step" and isinstance(value, Tensor)
    }
    return Slot(owner, state, local(owner), states, group, number)


def local(tensor: Tensor) -> Tensor:
    """Return what of a tensor is on this rank."""
    to_local = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()


class Columns:
    """Slots as the lists that multi-tensor operations take."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.params = [slot.param for slot in slots]
        self.states = {key: [slot.states[key] for slot in slots] for key in slots[0].states}
        self.steps = [slot.state["step"] for slot in slots if "step" in slot.state]
        self._records = [slot.state for slot in slots]
        self._whole = {key: [slot.state[key] for slot in slots] for key in slots[0].states}

    def stand(self) -> bool:
        """Whether every state is still the tensor it was."""
        return all(
            all(map(is_, map(itemgetter(key), self._records), column))
            for key, column in self._whole.items()
        )
