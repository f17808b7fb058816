"""How far a sweep is before its first cell is done, as its checkpoints tell.

Cells train side by side in packs and end together, so there is nothing to show until a whole pack
is done. A checkpoint, which is saved about twice a minute, has the number of its update in its
name, and the time at which it was written.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from weightdecay.progress import duration
from weightdecay.sweeps import Store

_EVERY = 5.0  # seconds for which what was read is good


class Early:
    """Says how far the first packs are. Checkpoints are only looked at once in a while."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._read, self._told = -math.inf, ""

    def words(self, running: Mapping[str, Mapping[str, Any]]) -> str:
        """Return how far cells in training are; `running` are their configurations."""
        if not running:
            self._read = -math.inf
            return ""
        if self._clock() - self._read > _EVERY:
            self._read, self._told = self._clock(), self._words(running)
        return self._told

    def _words(self, running: Mapping[str, Mapping[str, Any]]) -> str:
        paces = self._store.paces(running)
        if not paces:
            return f"{_FIRST}."
        furthest = max(update for update, _ in paces.values())
        totals = {run: _updates(running[run]) for run in paces}
        left = [
            (total - update) / speed
            for run, (update, speed) in paces.items()
            if (total := totals[run]) is not None and speed > 0
        ]
        known = [total for total in totals.values() if total is not None]
        of = f" of {max(known):,}" if known else ""
        soon = f", in about {duration(max(0.0, min(left)))}" if left else ""
        return f"{_FIRST}{soon}. The last checkpoint is at update {furthest:,}{of}."


_FIRST = "Cells train side by side: the first results come when the first pack of them ends"


def _updates(config: Mapping[str, Any]) -> int | None:
    """Return the updates of a run; None if only its task knows how many examples it has."""
    if config["data"] is None:
        return None
    updates: int = config["epochs"] * (config["data"] // config["batch"])
    return updates
