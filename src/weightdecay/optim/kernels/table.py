"""The tables that let one launch update every tensor of every group.

The tables stay on the device. Each update compares pointers and sends those that changed; the
numbers of the update itself, about 64 bytes per group, are sent every time. In a CUDA graph nothing
can be sent: there each replay reads the next of the rows written in advance (`replays.py`). The
kernel records the numbers it used, and `applied` reads them back.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.replays import AHEAD, GraphTables, Replays, triton_kernels
from weightdecay.optim.kernels.slot import Scaling, Slot, TensorLists, aligned_in_memory
from weightdecay.optim.rates import Applied, Group, Rate, Rates
from weightdecay.optim.rounding import SIXTEEN_BIT

# Elements and warps per program: the fastest in the benchmark on an H200.
BLOCK, WARPS = 1024, 4

_FLOATS = (torch.float32, *SIXTEEN_BIT)


def unfit(slot: Slot, grad: Tensor, group: Group, algorithm: Algorithm) -> str | None:
    """Return the requirement of this kernel that a parameter does not meet, or None."""
    del group
    if algorithm.numbers is None:
        return algorithm.without("triton")
    tensors = [slot.param, grad, *slot.states.values()]
    if find_spec("triton") is None:
        return "triton, which is not installed: pip install triton"
    if slot.param.device.type != "cuda" and not triton_kernels().INTERPRETED:
        return f"parameters on a GPU, got one on {slot.param.device}"
    if any(tensor.device != slot.param.device for tensor in tensors):
        return "gradients and states on the parameter's device, got another"
    if any(tensor.dtype not in _FLOATS for tensor in tensors):
        return f"float32, bfloat16 or float16 parameters, got {slot.param.dtype}"
    if len({state.dtype for key, state in slot.states.items() if key != "compensation"}) > 1:
        return "states of one dtype, got several"
    if not aligned_in_memory(slot, grad):
        return "contiguous parameters and gradients, got a strided one"
    if slot.region is not None and slot.region.rows() is None:
        return "16-bit shards of rows at equal distances, got one cut along several dimensions"
    return None


def kind(slot: Slot, grad: Tensor, group: Group, algorithm: Algorithm) -> tuple[Any, ...]:
    """Return what tensors must have in common for one launch: device, variant, dtypes."""
    variant = algorithm.variant(group)
    states = [state for key, state in slot.states.items() if key != "compensation"]
    state_dtype = states[0].dtype if states else torch.float32
    compensated = "compensation" in slot.states
    return slot.param.device, variant, compensated, slot.param.dtype, grad.dtype, state_dtype


class Table:
    """Slots of one kind, as tables on the device for the kernel to read."""

    def __init__(
        self,
        slots: Sequence[Slot],
        grads: list[Tensor],
        groups: list[Group],
        algorithm: Algorithm,
    ) -> None:
        assert algorithm.numbers is not None
        self.slots, self._groups = list(slots), groups
        self._algorithm, self._own_numbers = algorithm, algorithm.numbers
        self._lists = TensorLists(slots, grads)
        self._device, variant, compensated, *dtypes = kind(
            slots[0], grads[0], groups[slots[0].group], algorithm
        )
        self._constants = _constants(variant, compensated, dtypes)
        places = [(slot.group, float(slot.state.get("step", 0))) for slot in slots]
        self._classes = list(dict.fromkeys(places))
        self._class_of = [self._classes.index(place) for place in places]
        tensors = np.zeros((12, len(slots)), dtype=np.int64)
        self._pointers = list(map(Tensor.data_ptr, grads))
        tensors[:2] = self._lists.pointers, self._pointers
        rows = {key: row for row, key in enumerate(algorithm.states[variant], start=2)}
        for key, row in {**rows, "compensation": 5}.items():
            if key in self._lists.states:
                tensors[row] = list(map(Tensor.data_ptr, self._lists.states[key]))
        tensors[6] = [slot.param.numel() for slot in slots]
        tensors[7] = self._class_of
        tensors[8] = [slot.key for slot in slots]
        tensors[9:] = np.transpose([_rows_of(slot) for slot in slots])
        self._aligned = not (tensors[:6] % 16).any()
        self._host_tensors, self._tensors = tensors, _upload(tensors.copy(), self._device)
        blocks = _blocks(tensors[6])
        self._programs, self._blocks = len(blocks), _upload(blocks, self._device)
        self._zero = _upload(np.zeros(1, dtype=np.int32), self._device)
        self._one = _upload(np.ones(1, dtype=np.float32), self._device)
        self._new_pointers = self._pointers
        self._rows_sender = RowSender((1, len(self._classes), triton_kernels().WIDTH), self._device)
        self._applied = torch.full(
            (len(self._classes), triton_kernels().APPLIED),
            math.nan,
            dtype=torch.float32,
            device=self._device,
        )
        self._kernels: dict[Any, Any] = {}
        self._graph_tables: GraphTables | None = None
        self._made = 0

    def is_valid(self, grads: list[Tensor]) -> bool:
        """Whether the tables fit these gradients, apart from the gradients' addresses."""
        try:
            self._new_pointers = list(map(Tensor.data_ptr, grads))
        except TypeError:  # a gradient is None: other parameters have one than before
            return False
        return self._lists.is_valid(grads)

    def run(self, rates: Sequence[Rate], scaling: Scaling | None) -> None:
        """Make one update at each group's rate, with the gradients last passed to `is_valid`."""
        self._send_pointers()
        rows = self._rows_sender.send(lambda out: self._write(rates, out[0]))
        self.launch(self._tensors, rows, self._zero, self._aligned, scaling)
        self._made += 1
        if self._graph_tables is None and self._device.type == "cuda":
            self.reserve_graph_tables()

    def reserve_graph_tables(self) -> None:
        """Allocate the memory for a capture, during which nothing may be allocated."""
        rows = (AHEAD, len(self._classes), triton_kernels().WIDTH)
        self._graph_tables = GraphTables(self._host_tensors.shape, rows, self._device)

    def capture(self, grads: list[Tensor], rates: Rates, scaling: Scaling | None) -> Replays:
        """Record an update; each of its replays reads the next row of `rates`."""
        tables, self._graph_tables = self._graph_tables, None
        if tables is None:
            raise RuntimeError(
                "An update must be made between two captures, got none since the last capture."
            )
        tensors = self._host_tensors.copy()
        tensors[1] = list(map(Tensor.data_ptr, grads))
        tables.write(tensors=tensors, rows=self._rows(rates))
        replays = Replays(self, tables, aligned=not (tensors[:6] % 16).any())
        replays.launch(scaling)
        return replays

    def applied(self) -> dict[int, Applied]:
        """Return the numbers that each group's last update used. Waits for the device.

        Groups that were never updated, or whose parameters have no elements, are left out.
        """
        numbers = self._applied.cpu().numpy()
        counts = numbers.view(np.int32)[:, 3]
        return {
            group: Applied(int(count), *map(float, row[:3]))
            for (group, _), row, count in zip(self._classes, numbers, counts, strict=True)
            if not math.isnan(row[0])
        }

    def renumber(self, rates: Rates) -> NDArray[np.float32]:
        """Return the rows of the next updates."""
        steps = (slot.state.get("step", 0) for slot in self.slots)
        counts = dict(zip(self._class_of, steps, strict=True))
        self._classes = [(n, float(counts[c])) for c, (n, _) in enumerate(self._classes)]
        self._made = 0
        return self._rows(rates)

    def _send_pointers(self) -> None:
        if self._new_pointers != self._pointers:
            self._pointers = self._host_tensors[1] = self._new_pointers
            self._tensors[1] = _upload(self._host_tensors[1].copy(), self._device)
            self._aligned = not (self._host_tensors[:6] % 16).any()

    def _write(self, rates: Sequence[Rate], out: NDArray[np.float32]) -> None:
        """Write the next update's numbers for each class; the last is t, as bits of an int32."""
        bits = out.view(np.int32)
        for place, (number, count) in enumerate(self._classes):
            group = self._groups[number]
            out[place, :9] = self._numbers(group, rates[number], count + self._made + 1)
            bits[place, 9] = group["updates"]

    def _numbers(self, group: Group, rate: Rate, step: float) -> list[float]:
        """Return the numbers of an update of one class, in the kernel's order."""
        lr, decay = rate
        sign = -1.0 if group["maximize"] else 1.0
        return [lr, decay, group.get("l2", 0.0), *self._own_numbers(group, step), sign]

    def _rows(self, rates: Rates) -> NDArray[np.float32]:
        """Return bit for bit what `_write` would write for each of the next updates."""
        rows = np.zeros((len(rates), len(self._classes), triton_kernels().WIDTH), dtype=np.float32)
        bits, ahead = rows.view(np.int32), range(len(rates))
        known: dict[Any, NDArray[np.float64]] = {}
        for place, (number, count) in enumerate(self._classes):
            group, next_step = self._groups[number], count + self._made + 1
            rows[:, place, :9] = self._numbers(group, (0.0, 0.0), next_step)
            rows[:, place, :2] = rates[:, number]
            if self._algorithm.counts:
                of = repr([group[key] for key in self._algorithm.options]), next_step
                if of not in known:
                    known[of] = np.array([self._own_numbers(group, next_step + n) for n in ahead])
                rows[:, place, 3:8] = known[of]
            bits[:, place, 9] = np.arange(len(rates)) + group["updates"]
        return rows

    def launch(
        self, tensors: Tensor, rows: Tensor, cursor: Tensor, aligned: bool, scaling: Scaling | None
    ) -> None:
        """Launch the kernel over these tables."""
        if not self._programs:
            return
        overflow, scale = (cursor, None) if scaling is None else scaling
        scalars = self._moved(overflow), self._one if scale is None else self._moved(scale)
        pointers = self._blocks, tensors, rows, cursor, *scalars, self._applied
        numbers = len(self.slots), len(self._classes), rows.shape[0]
        kind = aligned, scaling is not None, rows.shape[0]
        with self.on_device():
            self._kernels[kind] = triton_kernels().launch(
                self._kernels.get(kind),
                self._programs,
                (*pointers, *numbers, *self._constants, scaling is not None, aligned),
                WARPS,
            )

    def _moved(self, scalar: Tensor) -> Tensor:
        return scalar if scalar.device == self._device else scalar.to(self._device)

    def on_device(self) -> AbstractContextManager[Any]:
        """Return a context in which the tables' device is the current one."""
        current = self._device.type != "cuda" or self._device.index == torch.cuda.current_device()
        return nullcontext() if current else torch.cuda.device(self._device)


class RowSender:
    """Sends numbers to the device from a ring of pinned memory, without waiting."""

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self._sent = torch.zeros(shape, dtype=torch.float32, device=device)
        pinned = device.type == "cuda"
        ring = (AHEAD, *shape) if pinned else (1, *shape)
        memory = torch.zeros(ring, dtype=torch.float32, device="cpu", pin_memory=pinned)
        self._ring = list(zip(memory, memory.numpy(), strict=True))
        self._next = 0

    def send(self, write: Callable[[NDArray[np.float32]], Any]) -> Tensor:
        """Write the numbers, and return them on the device."""
        if self._next == len(self._ring):  # before reuse, wait until all copies have finished
            self._next = 0
            if self._sent.is_cuda:
                torch.cuda.current_stream(self._sent.device).synchronize()
        memory, numbers = self._ring[self._next]
        write(numbers)
        self._sent.copy_(memory, non_blocking=True)
        self._next += 1
        return self._sent


def _constants(variant: str, compensated: bool, dtypes: Sequence[torch.dtype]) -> tuple[Any, ...]:
    """Return the constants that the kernel is compiled for, in its order."""
    types = (triton_kernels().TYPES[dtype] for dtype in dtypes)
    return (variant, compensated, *types, BLOCK)


def _rows_of(slot: Slot) -> tuple[int, int, int]:
    """Return the length, pitch and first element of a slot's rows within the whole parameter."""
    rows = slot.region and slot.region.rows()
    return rows or (max(slot.param.numel(), 1), 0, 0)


def _blocks(lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    counts = -(-lengths // BLOCK)
    tensors = np.repeat(np.arange(len(lengths)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([tensors, within], axis=1).astype(np.int32)


def _upload(array: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)
