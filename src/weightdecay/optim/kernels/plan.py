"""Which parameters an update changes, and by which kernel.

A plan is made when the set of gradients changes, and kept as long as it is valid: what a kernel
needs to know about a parameter is found once, and an update only checks that nothing has changed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import is_not
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from weightdecay.optim.kernels import foreach, fused, reference, table
from weightdecay.optim.kernels.algorithm import Algorithm, Step
from weightdecay.optim.kernels.replays import Replays
from weightdecay.optim.kernels.slot import Scaling, Slot, State, TensorLists
from weightdecay.optim.kernels.table import Table
from weightdecay.optim.rates import Group, Rate, Rates
from weightdecay.optim.rounding import SIXTEEN_BIT
from weightdecay.optim.shards import local

#: The kernels, fastest first.
KERNELS = ("triton", "fused", "foreach", "reference")
_UNFIT = {"triton": table.unfit, "fused": fused.unfit, "foreach": foreach.unfit}


class Plan:
    """The parameters that have a gradient, each with the kernel that updates it."""

    def __init__(
        self,
        slots: list[Slot],
        groups: list[Group],
        states: Mapping[Any, State],
        *,
        algorithm: Algorithm,
        idle: list[Tensor],
        kernel: str | None,
    ) -> None:
        self.slots, self._groups, self._idle, self._algorithm = slots, groups, idle, algorithm
        self._params = [param for group in groups for param in group["params"]]
        self._variants = self._variants_now()
        self._owners = [slot.owner for slot in slots]
        self._sharded = any(slot.param is not slot.owner for slot in slots)
        self.steps = _share_steps(slots)
        self._version = self.steps._version
        self._states = [dict(state) for state in states.values()]
        self._tables: list[tuple[Table, list[int]]] = []
        self._lists: list[tuple[Step, TensorLists, list[int]]] = []
        self._singles: list[int] = []
        grads = self.gradients()
        assert grads is not None
        batches: dict[Any, list[int]] = defaultdict(list)
        for index, (slot, grad) in enumerate(zip(slots, grads, strict=True)):
            group = groups[slot.group]
            chosen = _choose(slot, grad, group, algorithm, kernel)
            # One Triton launch takes all groups; torch's operations take one group and dtype.
            if chosen == "triton":
                batches[chosen, table.kind(slot, grad, group, algorithm)].append(index)
            else:
                batches[chosen, slot.group, slot.param.device, slot.param.dtype].append(index)
        for (chosen, *_), indices in batches.items():
            members = [slots[index] for index in indices]
            if chosen == "triton":
                entry = Table(members, [grads[index] for index in indices], groups, algorithm)
                self._tables.append((entry, indices))
            elif chosen == "reference":
                self._singles += indices
            else:
                step = algorithm.fused if chosen == "fused" else algorithm.foreach
                assert step is not None
                lists = TensorLists(members, [grads[index] for index in indices])
                self._lists.append((step, lists, indices))

    @property
    def tables(self) -> list[Table]:
        """Return the tables, each of which is updated by one launch."""
        return [entry for entry, _ in self._tables]

    def gradients(self) -> list[Tensor] | None:
        """Return the gradients, or None if other parameters have one than before."""
        grads: list[Any] = [owner.grad for owner in self._owners]
        if (self._lists or self._singles) and not all(map(is_not, grads, repeat(None))):
            return None
        if any(param.grad is not None for param in self._idle):
            return None
        return list(map(local, grads)) if self._sharded else grads

    def holds(self, grads: list[Tensor], states: Mapping[Any, State]) -> bool:
        """Whether groups, parameters and states are still those that the plan was made for."""
        return (
            self._variants == self._variants_now()
            and _same(chain.from_iterable(g["params"] for g in self._groups), self._params)
            and _same(states.values(), self._states)
            and self.steps._version == self._version
            and all(entry.is_valid(_pick(grads, of)) for entry, of in self._tables)
            and all(lists.is_valid(_pick(grads, of)) for _, lists, of in self._lists)
        )

    def _variants_now(self) -> list[tuple[int, str]]:
        """Return each group's size and variant, which decides its states and its kernel."""
        variant = self._algorithm.variant
        return [(len(group["params"]), variant(group)) for group in self._groups]

    def run(
        self, grads: list[Tensor], multipliers: Sequence[float], scaling: Scaling | None
    ) -> None:
        """Make one update; `scaling` says what to divide gradients by."""
        self.steps += 1  # line 4
        self._version = self.steps._version
        rates = [_rate(*pair) for pair in zip(self._groups, multipliers, strict=True)]
        for entry, _ in self._tables:
            entry.run(rates, scaling)
        for step, lists, of in self._lists:
            number = self.slots[of[0]].group
            unscaled = _unscaled(_pick(grads, of), scaling)
            step(lists, unscaled, self._groups[number], multipliers[number])
        for index in self._singles:
            slot = self.slots[index]
            group, multiplier = self._groups[slot.group], multipliers[slot.group]
            [grad] = _unscaled([grads[index]], scaling)
            reference.update(slot, grad, group, multiplier, self._algorithm)

    def capture(self, grads: list[Tensor], rates: Rates, scaling: Scaling | None) -> list[Replays]:
        """Record an update into the CUDA graph being captured."""
        if self._lists or self._singles:
            others = {str(self.slots[i].param.dtype) for *_, of in self._lists for i in of}
            others |= {str(self.slots[i].param.dtype) for i in self._singles}
            raise RuntimeError(
                "A captured step must use the triton kernel for every parameter, got "
                f"{', '.join(sorted(others))} that it does not support: other kernels take their "
                "numbers from Python, which a replay does not run."
            )
        return [entry.capture(_pick(grads, of), rates, scaling) for entry, of in self._tables]


class _OtherTensorError(Exception):
    """Two different tensors were compared."""


class _ByIdentity(TorchFunctionMode):
    def __torch_function__(self, *_: Any, **__: Any) -> NoReturn:
        raise _OtherTensorError


_BY_IDENTITY = _ByIdentity()


def _same(now: Iterable[Any], then: list[Any]) -> bool:
    """Whether these are the same tensor objects, or dictionaries of them, in the same order.

    Lists and dictionaries call == on members only if they are different objects. So one comparison
    checks thousands of tensors in C, and torch calls us for the first that differs.
    """
    try:
        with _BY_IDENTITY:
            return list(now) == then
    except _OtherTensorError:
        return False


def _unscaled(grads: list[Tensor], scaling: Scaling | None) -> list[Tensor]:
    scale = None if scaling is None else scaling[1]
    if scale is None:
        return grads
    wide = (grad.float() if grad.dtype in SIXTEEN_BIT else grad for grad in grads)
    return [grad / scale.to(grad.device) for grad in wide]


def _rate(group: Group, multiplier: float) -> Rate:
    return multiplier * group["base"], multiplier * group.get("weight_decay", 0.0)


def _pick(grads: list[Tensor], indices: list[int]) -> list[Tensor]:
    return grads if len(indices) == len(grads) else [grads[index] for index in indices]


def _choose(
    slot: Slot, grad: Tensor, group: Group, algorithm: Algorithm, forced: str | None
) -> str:
    if forced is None:
        # On the CPU Triton only has an interpreter, which is for tests.
        kernels = [k for k in _UNFIT if k != "triton" or slot.param.is_cuda]
        fit = (k for k in kernels if _UNFIT[k](slot, grad, group, algorithm) is None)
        return next(fit, "reference")
    wanted = _UNFIT[forced](slot, grad, group, algorithm) if forced in _UNFIT else None
    if wanted is not None:
        raise RuntimeError(
            f"kernel={forced!r} must be given {wanted}. Leave `kernel` out: each parameter then "
            "gets the fastest kernel that supports it."
        )
    return forced


def _share_steps(slots: list[Slot]) -> Tensor:
    """Put all counts of updates into one tensor, so that one operation increments them all."""
    counted = [slot for slot in slots if "step" in slot.state]
    counts = [float(slot.state["step"]) for slot in counted]
    steps = torch.tensor(counts, dtype=torch.float32, device="cpu")
    for slot, step in zip(counted, steps, strict=True):
        slot.state["step"] = step
    return steps
