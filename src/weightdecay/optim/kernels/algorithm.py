"""An algorithm as a value: its options, its states, and its formula for each kernel.

`sgd.py` and `adam.py` each define one. Kernels know algorithms only through this class, so a new
algorithm is one module: a reference formula, the names of its states, and an optimizer class.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from weightdecay.optim.kernels.slot import Slot, State, TensorLists
from weightdecay.optim.rates import Group

#: Updates one float tensor in place, from its gradient, its state, its group and η.
Reference: TypeAlias = Callable[[Tensor, Tensor, State, Group, float], None]
#: Updates several tensors of one group in place, from their gradients, the group and η.
Step: TypeAlias = Callable[[TensorLists, list[Tensor], Group, float], None]


def _nothing(slot: Slot, group: Group) -> str | None:
    del slot, group
    return None


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """An update rule for one group. A kernel that it has no formula for is never chosen."""

    name: str
    #: Its own arguments, as keys of a group. All algorithms have `lr` and a decay besides.
    options: tuple[str, ...]
    #: Raises unless a group's options are valid; may convert them, a list to a tuple for example.
    check: Callable[[Group], None]
    #: The variant that a group asks for: it decides the states and the compiled kernel.
    variant: Callable[[Group], str]
    #: For each variant the names of its states, which are tensors with the parameter's shape.
    states: Mapping[str, tuple[str, ...]]
    #: Whether every parameter counts its own updates, as `step` in its state.
    counts: bool = False
    #: The specification. The other formulas must compute the same.
    reference: Reference
    #: The formula in torch's multi-tensor operations.
    foreach: Step | None = None
    #: The formula by torch's fused CPU kernels, and why they do not support a parameter, or None.
    fused: Step | None = None
    fused_unfit: Callable[[Slot, Group], str | None] = _nothing
    #: The five numbers that its formula in `triton_kernel.py` reads, for a parameter's update
    #: number `step`, counted from 1.
    numbers: Callable[[Group, float], Sequence[float]] | None = None

    def keys(self, group: Group) -> set[str]:
        """Return the keys that a parameter's state must have."""
        return {*self.states[self.variant(group)], *(("step",) if self.counts else ())}

    def without(self, kernel: str) -> str:
        """Return the requirement that this algorithm does not meet: a formula for the kernel."""
        return f"an algorithm that has a formula for {kernel}, got {self.name}, which has none"
