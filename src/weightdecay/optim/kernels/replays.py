"""What a captured update reads: rows written ahead, since a replay runs no Python.

Nothing is allocated or copied while a capture is on, on any stream. torch hands its streams out of
a pool, round and round, so that a "new" one may be the very stream that is being captured, and what
is done on it becomes part of the graph.
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

#: Updates that CUDA graphs may make before the optimizer must be told.
AHEAD = 1024
# Words that a replay's first kernel loads at a time.
_BLOCK = 1024


class GraphTables:
    """The tables of a captured update: pinned memory on the host, and its like on the device.

    All of it is allocated before the capture. During the capture the host writes its own memory and
    nothing else happens: no allocation, no copy, no stream. The first replay loads the tables.
    """

    def __init__(
        self, tensors: tuple[int, ...], rows: tuple[int, ...], device: torch.device
    ) -> None:
        self._split = math.prod(tensors)
        words = self._split + math.prod(rows) // 2  # two float32 per word of 64 bits
        pinned = device.type == "cuda"
        self.here = torch.zeros(words, dtype=torch.int64, device="cpu", pin_memory=pinned)
        self._numbers = self.here.numpy()
        self.there = torch.zeros(words, dtype=torch.int64, device=device)
        self.tensors = self.there[: self._split].view(tensors)
        self.rows = self.there[self._split :].view(torch.float32).view(rows)
        #: The row that a replay reads, and the updates made since rows were written; −1 updates
        #: say that the tables are still to be loaded.
        self.counts = torch.tensor([0, -1], dtype=torch.int32, device=device)

    def write(self, *, rows: NDArray[np.float32], tensors: NDArray[np.int64] | None = None) -> None:
        """Write the host's memory. No replay may be under way."""
        if tensors is not None:
            self._numbers[: self._split] = tensors.ravel()
        self._numbers[self._split :] = rows.ravel().view(np.int64)

    def send(self) -> None:
        """Load the tables now, outside a capture."""
        self.there.copy_(self.here)
        self.counts.zero_()


class Replays:
    """A captured update: what its replays read, and how many of them there were."""

    def __init__(self, table: "Table", page: GraphTables, *, aligned: bool) -> None:
        self.table, self._page, self._aligned = table, page, aligned

    def launch(self, scaling: Scaling | None) -> None:
        """Launch what is captured: the count of replays, then the update itself."""
        page, table = self._page, self.table
        overflow = page.counts if scaling is None else scaling[0]
        with table.on_device():
            program().begin_replay[(1,)](
                page.counts,
                overflow,
                page.here,
                page.there,
                len(page.here),
                SCALED=scaling is not None,
                BLOCK=_BLOCK,
                num_warps=1,
            )
        table.launch(page.tensors, page.rows, page.counts, self._aligned, scaling)

    def fill(self, rates: Rates) -> None:
        """Write the rows anew, for the updates that come now."""
        self._wait()  # whichever stream replays are on, none reads what is written here
        self._page.write(rows=self.table.renumber(rates))
        self._page.send()
        self._wait()

    def made(self) -> int:
        """Return how many updates were made since rows were written; waits for the device."""
        self._wait()
        return max(0, int(self._page.counts[1]))

    def _wait(self) -> None:
        if self._page.counts.is_cuda:
            torch.cuda.synchronize(self._page.counts.device)


@cache
def program() -> Any:
    """Return the module of Triton's kernels, which is imported when it is needed."""
    return import_module("weightdecay.optim.kernels.triton_kernel")
