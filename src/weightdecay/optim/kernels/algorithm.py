"""An algorithm as a value: what it is told, what it keeps, and its formula for each kernel.

`sgd.py` and `adam.py` each define one. Kernels know algorithms only through it, so a new algorithm
is a module of its own: a reference formula, the names of its states, and a class.
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
    """An update rule, for one group at a time. A kernel it has no formula for is never chosen."""

    name: str
    #: The arguments that are its own, as keys of a group; `lr` and the decay are everyone's.
    options: tuple[str, ...]
    #: Raises unless a group's options are valid, and may replace them by their clean form.
    check: Callable[[Group], None]
    #: Which of its variants a group asks for: what decides the states and the compiled kernel.
    variant: Callable[[Group], str]
    #: For each variant the names of its states, which are tensors of the parameter's shape.
    states: Mapping[str, tuple[str, ...]]
    #: Whether every parameter counts its own updates, as `step` in its state.
    counts: bool = False
    #: The specification, which the other formulas must equal.
    reference: Reference
    #: With torch's multi-tensor operations.
    foreach: Step | None = None
    #: With torch's fused kernels on the CPU, and what those need that a parameter does not have.
    fused: Step | None = None
    fused_unfit: Callable[[Slot, Group], str | None] = _nothing
    #: For the formula of its variants in `program.py`: the five numbers of its own that it reads,
    #: for the update that a parameter counts as `step`.
    numbers: Callable[[Group, float], Sequence[float]] | None = None

    def keys(self, group: Group) -> set[str]:
        """Return the names of what a parameter's state must hold."""
        return {*self.states[self.variant(group)], *(("step",) if self.counts else ())}

    def without(self, kernel: str) -> str:
        """Say that a kernel has no formula of this algorithm, as what it must be given."""
        return f"an algorithm that has a formula for {kernel}, got {self.name}, which has none"
