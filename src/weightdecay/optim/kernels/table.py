"""Every tensor of every group in one launch: the tables that the kernel reads.

The tables stay on the device. Each update compares pointers and sends what changed; the numbers of
the update itself, some 64 bytes a group, are sent every time. In a CUDA graph nothing can be sent:
there the kernel reads row after row of a table that `fill` has written ahead.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weightdecay.optim.kernels.slot import Columns, Group, Slot
from weightdecay.optim.rounding import SIXTEEN_BIT

#: A group's α·η and λ·η.
Rate: TypeAlias = tuple[float, float]
#: GradScaler's `found_inf` and `grad_scale`.
Scaling: TypeAlias = tuple[Tensor, Tensor]

#: Updates that CUDA graphs may make before the optimizer must be told.
AHEAD = 1024
# What the benchmark found best on an H200: elements a program, a block, and warps.
CHUNK, BLOCK, WARPS = 4096, 1024, 4

_FLOATS = (torch.float32, *SIXTEEN_BIT)
_POINTERS = (
    (2, "exp_avg"),
    (2, "momentum_buffer"),
    (3, "exp_avg_sq"),
    (4, "max_exp_avg_sq"),
    (5, "compensation"),
)


def unfit(slot: Slot, grad: Tensor, group: Group) -> str | None:
    """Say what this kernel asks for that a parameter is not, or None if it can serve it."""
    del group
    tensors = [slot.param, grad, *slot.states.values()]
    if find_spec("triton") is None:
        return "triton, which is not installed: pip install triton"
    if slot.param.device.type != "cuda" and not _program().INTERPRETED:
        return f"parameters on a GPU, got one on {slot.param.device}"
    if any(tensor.device != slot.param.device for tensor in tensors):
        return "gradients and states on the parameter's device, got another"
    if any(tensor.dtype not in _FLOATS for tensor in tensors):
        return f"float32, bfloat16 or float16 parameters, got {slot.param.dtype}"
    if not all(tensor.is_contiguous() for tensor in tensors):
        return "contiguous parameters and gradients, got a strided one"
    return None


def kind(slot: Slot, grad: Tensor, group: Group) -> tuple[Any, ...]:
    """Return what tensors must share to be updated in one launch: device, algorithm, dtypes."""
    if "betas" in group:
        extra = "amsgrad" if group["amsgrad"] else "adam"
    elif group["momentum"]:
        extra = "nesterov" if group["nesterov"] else "momentum"
    else:
        extra = "plain"
    states = [state for key, state in slot.states.items() if key != "compensation"]
    state_dtype = states[0].dtype if states else torch.float32
    compensated = "compensation" in slot.states
    return slot.param.device, extra, compensated, slot.param.dtype, grad.dtype, state_dtype


class Table:
    """Slots of one kind, on the device where the kernel finds them."""

    def __init__(self, slots: Sequence[Slot], grads: list[Tensor], groups: list[Group]) -> None:
        self.slots, self._groups = list(slots), groups
        self._columns = Columns(slots)
        self._device, extra, compensated, *dtypes = kind(slots[0], grads[0], groups[slots[0].group])
        self._constants = _constants(extra, compensated, dtypes)
        places = [(slot.group, float(slot.state.get("step", 0))) for slot in slots]
        self._classes = list(dict.fromkeys(places))
        class_of = {place: number for number, place in enumerate(self._classes)}
        tensors = np.zeros((9, len(slots)), dtype=np.int64)
        self._pointers = [list(map(Tensor.data_ptr, t)) for t in (self._columns.params, grads)]
        tensors[:2] = self._pointers
        for row, key in _POINTERS:
            if key in self._columns.states:
                tensors[row] = list(map(Tensor.data_ptr, self._columns.states[key]))
        tensors[6] = [slot.param.numel() for slot in slots]
        tensors[7] = [class_of[place] for place in places]
        tensors[8] = [slot.number for slot in slots]
        self._states_aligned = not (tensors[2:6] % 16).any()
        self._aligned = not (tensors[:6] % 16).any()
        self._tensors = _upload(tensors, self._device)
        self._chunks = _upload(_chunks(tensors[6]), self._device)
        self._cursor = _upload(np.zeros(1, dtype=np.int32), self._device)
        self._ahead: Tensor | None = None
        self._made = 0

    def stands(self, grads: list[Tensor]) -> bool:
        """Whether the tables can serve these gradients, with new pointers at the most."""
        return self._columns.stand() and all(map(Tensor.is_contiguous, grads))

    def run(self, grads: list[Tensor], rates: Sequence[Rate], scaling: Scaling | None) -> None:
        """Make an update at each group's rate."""
        self._point(grads)
        self._launch(_upload(self._rows([rates]), self._device), 1, scaling)
        self._made += 1

    def capture(self, grads: list[Tensor], scaling: Scaling | None) -> None:
        """Record an update that reads its numbers from rows that `fill` writes ahead."""
        shape = (AHEAD, len(self._classes), _program().WIDTH)
        self._ahead = _upload(np.zeros(shape, dtype=np.float32), self._device)
        self._point(grads)
        self._launch(self._ahead, AHEAD, scaling)
        overflow = self._cursor if scaling is None else scaling[0]
        _program().advance_cursor[(1,)](self._cursor, overflow, SCALED=scaling is not None)

    def fill(self, rates: Sequence[Sequence[Rate]]) -> None:
        """Write the rows of the next AHEAD updates, each with every group's rate."""
        assert self._ahead is not None
        self._ahead.copy_(_upload(self._rows(rates), self._device))
        self._cursor.zero_()

    def caught_up(self) -> int:
        """Return how many updates a graph has made since the last `fill`; waits for the device."""
        return int(self._cursor)

    def count(self, updates: int) -> None:
        """Note that a graph has made `updates` of them."""
        self._made += updates

    def _point(self, grads: list[Tensor]) -> None:
        """Send the pointers that changed."""
        pointers = [
            list(map(Tensor.data_ptr, tensors)) for tensors in (self._columns.params, grads)
        ]
        if pointers == self._pointers:
            return
        for row, (new, old) in enumerate(zip(pointers, self._pointers, strict=True)):
            if new != old:
                self._tensors[row] = _upload(np.array(new, dtype=np.int64), self._device)
        self._pointers = pointers
        self._aligned = self._states_aligned and not (np.array(pointers) % 16).any()

    def _rows(self, rates: Sequence[Sequence[Rate]]) -> NDArray[np.float32]:
        width, classes = _program().WIDTH, self._classes
        rows = np.zeros((len(rates), len(classes), width), dtype=np.float32)
        for ahead, of_groups in enumerate(rates):
            for place, (number, count) in enumerate(classes):
                group = self._groups[number]
                numbers = _numbers(group, of_groups[number], count + self._made + ahead + 1)
                rows[ahead, place, : len(numbers)] = numbers
                rows[ahead, place, len(numbers) :].view(np.int32)[0] = group["updates"] + ahead
        return rows

    def _launch(self, rows: Tensor, ahead: int, scaling: Scaling | None) -> None:
        if not len(self._chunks):
            return
        found_inf, grad_scale = scaling or (self._cursor, self._cursor)
        _program().update_chunk[(len(self._chunks),)](
            self._chunks,
            self._tensors,
            rows,
            self._cursor,
            found_inf,
            grad_scale,
            len(self.slots),
            len(self._classes),
            ahead,
            **self._constants,
            SCALED=scaling is not None,
            ALIGNED=self._aligned,
        )


@cache
def _program() -> Any:
    return import_module("weightdecay.optim.kernels.program")


def _constants(extra: str, compensated: bool, dtypes: Sequence[torch.dtype]) -> dict[str, Any]:
    param, grad, state = (_program().TYPES[dtype] for dtype in dtypes)
    return {
        "ADAM": extra in ("adam", "amsgrad"),
        "EXTRA": extra,
        "COMPENSATED": compensated,
        "PARAM_TYPE": param,
        "GRAD_TYPE": grad,
        "STATE_TYPE": state,
        "CHUNK": CHUNK,
        "BLOCK": BLOCK,
        "WIDTH": _program().WIDTH,
        "num_warps": WARPS,
    }


def _numbers(group: Group, rate: Rate, step: float) -> list[float]:
    """Return the numbers of one class's update, in the kernel's order."""
    lr, decay = rate
    sign = -1.0 if group["maximize"] else 1.0
    l2 = group.get("l2", 0.0)
    if "betas" not in group:
        return [lr, decay, l2, group["momentum"], 0.0, 0.0, 0.0, 0.0, sign]
    (beta1, beta2), eps = group["betas"], group["eps"]
    corrections = 1 / (1 - beta1**step), 1 / (1 - beta2**step)
    return [lr, decay, l2, 1 - beta1, 1 - beta2, eps, *corrections, sign]


def _chunks(lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    counts = -(-lengths // CHUNK)
    tensors = np.repeat(np.arange(len(lengths)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([tensors, within], axis=1).astype(np.int32)


def _upload(array: NDArray[Any], device: torch.device) -> Tensor:
    """Copy to the device; while a graph is being captured, beside the capture, not into it."""
    host = torch.from_numpy(array)
    if device.type != "cuda":
        return host
    if not torch.cuda.is_current_stream_capturing():
        return host.to(device, non_blocking=True)
    beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(beside):
        copied = host.to(device, non_blocking=True)
    beside.synchronize()
    return copied
