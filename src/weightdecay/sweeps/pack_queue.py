"""The packs that are left to train, shared with other sweeps in the same folder by claims."""

import math
import time
from collections import deque
from collections.abc import Iterable, Mapping

from weightdecay.records import RunConfig
from weightdecay.records.codec import Failure
from weightdecay.sweeps.claims import Claims
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.packing import Pack, packs
from weightdecay.sweeps.store import Store

#: Seconds between checks of cells that other processes are training.
LOOK_EVERY = 0.5


class PackQueue:
    """Packs of cells that are neither finished nor given up, by this process or by another.

    With `repeats`, the cells are trained a second time, and only a repeat ends that. Failures that
    are `forgiven` do not count until a cell fails again.
    """

    def __init__(
        self, store: Store, claims: Claims, engine: Engine, *, repeats: bool = False
    ) -> None:
        self._store, self._claims, self._engine, self._repeats = store, claims, engine, repeats
        self._left: deque[Pack] = deque()
        # Cells that other processes are training.
        self._elsewhere: list[RunConfig] = []
        self.forgiven: dict[str, Failure] = {}
        self._look_at = -math.inf

    def __len__(self) -> int:
        return len(self._left) + len(self._elsewhere)

    def add(self, cells: Iterable[RunConfig]) -> None:
        """Append cells, in packs that suit the engine."""
        self._left += packs(cells, workers=self._engine.workers, lanes=self._engine.lanes)

    def forgive(self, failures: Mapping[str, Failure]) -> None:
        """Let cells be trained again although they have failed."""
        self.forgiven |= failures

    def put_back(self, unfinished: Iterable[Pack]) -> None:
        """Put packs in front of all others."""
        self._left.extendleft(reversed([*unfinished]))

    def pop(self) -> Pack | None:
        """Return the next pack, claimed for this process; None if none is free now."""
        while self._left:
            if pack := self._claimed(self._left.popleft()):
                return pack
        return None

    def _claimed(self, pack: Pack) -> Pack:
        """Claim the cells that no other process has, and return those left to train."""
        mine = [config for config in pack if self._claims.take(config.identity)]
        taken = {config.identity for config in mine}
        self._elsewhere += [config for config in pack if config.identity not in taken]
        self._store.refresh()  # after the claim: now no other process can finish them
        over = {run for run in taken if self._is_over(run)}
        for run in over:
            self._claims.free(run)
        return tuple(config for config in mine if config.identity not in over)

    def _is_over(self, run: str) -> bool:
        """Whether a cell need not be trained: some process has finished it or given it up."""
        ledger = self._store.ledger
        if self._repeats:
            return run in ledger.repeated
        failure = ledger.failures.get(run)
        if failure is not self.forgiven.get(run):  # another process has tried it again
            self.forgiven.pop(run, None)
        return run in ledger.finished or (failure is not None and run not in self.forgiven)

    def look_elsewhere(self) -> None:
        """Check whether cells of other processes are done, or free again because those died."""
        now = time.monotonic()
        if self._elsewhere and now >= self._look_at:
            self._store.refresh()
            others = [c for c in self._elsewhere if not self._is_over(c.identity)]
            taken = set(self._store.running(config.identity for config in others))
            free = {c.identity: c for c in others if c.identity not in taken}
            self._elsewhere = [config for config in others if config.identity in taken]
            self.add(free.values())
            # With tens of thousands of cells this is slow: spend at most a tenth of the time on it.
            self._look_at = now + max(LOOK_EVERY, 10 * (time.monotonic() - now))
