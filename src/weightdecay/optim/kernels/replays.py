"""The memory that a captured update reads: rows written in advance, since a replay runs no Python.

During a capture nothing is allocated or copied, on any stream. torch takes its streams from a pool
in turn, so a "new" stream may be the one being captured, and work on it would become part of the
graph.
"""

import math
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from weightdecay.optim.kernels.slot import Scaling
from weightdecay.optim.rates import Rates

if TYPE_CHECKING:
    from weightdecay.optim.kernels.table import Table

#: How many updates CUDA graphs may make between two calls of `replayed`.
AHEAD = 1024
# How many 64-bit words the first kernel of a replay loads at a time.
_BLOCK = 1024


class GraphTables:
    """The tables of a captured update: pinned memory on the host, and a copy on the device.

    All of it is allocated before the capture. During the capture the host only writes its own
    memory: no allocation, no copy, no other stream. The first replay loads the tables to the
    device.
    """

    def __init__(
        self, tensors: tuple[int, ...], rows: tuple[int, ...], device: torch.device
    ) -> None:
        self._split = math.prod(tensors)
        words = self._split + math.prod(rows) // 2  # two float32 per word of 64 bits
        pinned = device.type == "cuda"
        self.on_host = torch.zeros(words, dtype=torch.int64, device="cpu", pin_memory=pinned)
        self._numbers = self.on_host.numpy()
        self.on_device = torch.zeros(words, dtype=torch.int64, device=device)
        self.tensors = self.on_device[: self._split].view(tensors)
        self.rows = self.on_device[self._split :].view(torch.float32).view(rows)
        #: The row that a replay reads, and the updates made since rows were written; −1 if the
        #: tables must still be loaded.
        self.counts = torch.tensor([0, -1], dtype=torch.int32, device=device)

    def write(self, *, rows: NDArray[np.float32], tensors: NDArray[np.int64] | None = None) -> None:
        """Write the host's memory. No replay may be running."""
        if tensors is not None:
            self._numbers[: self._split] = tensors.ravel()
        self._numbers[self._split :] = rows.ravel().view(np.int64)

    def send(self) -> None:
        """Copy the tables to the device now, outside a capture."""
        self.on_device.copy_(self.on_host)
        self.counts.zero_()


class Replays:
    """A captured update: the tables that its replays read, and how many updates they made."""

    def __init__(self, table: "Table", tables: GraphTables, *, aligned: bool) -> None:
        self.table, self._tables, self._aligned = table, tables, aligned

    def launch(self, scaling: Scaling | None) -> None:
        """Launch the kernels to capture: one counts the replay, the next makes the update."""
        tables, table = self._tables, self.table
        overflow = tables.counts if scaling is None else scaling[0]
        with table.on_device():
            triton_kernels().begin_replay[(1,)](
                tables.counts,
                overflow,
                tables.on_host,
                tables.on_device,
                len(tables.on_host),
                SCALED=scaling is not None,
                BLOCK=_BLOCK,
                num_warps=1,
            )
        table.launch(tables.tensors, tables.rows, tables.counts, self._aligned, scaling)

    def fill(self, rates: Rates) -> None:
        """Rewrite the rows for the next updates."""
        self._wait()  # no replay on any stream may read the rows while they are written
        self._tables.write(rows=self.table.renumber(rates))
        self._tables.send()
        self._wait()

    def made(self) -> int:
        """Return how many updates were made since rows were written. Waits for the device."""
        self._wait()
        return max(0, int(self._tables.counts[1]))

    def _wait(self) -> None:
        if self._tables.counts.is_cuda:
            torch.cuda.synchronize(self._tables.counts.device)


@cache
def triton_kernels() -> Any:
    """Return the module of Triton kernels, which is imported only when it is needed."""
    return import_module("weightdecay.optim.kernels.triton_kernel")
