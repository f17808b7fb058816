"""Decides what happens to the cells that a job leaves unfinished."""

from weightdecay.records.codec import Failure
from weightdecay.sweeps.engine import Died, Ended, Failed
from weightdecay.sweeps.packing import Pack, halves

#: Crashes without progress after which a pack is split in two, and after which a single cell is
#: given up. One is not enough: workers are also killed for reasons that have nothing to do with
#: what they train.
_CRASHES_OF_PACK, _CRASHES_OF_CELL = 3, 10


class Retries:
    """Counts crashes, and decides what is tried again."""

    def __init__(self) -> None:
        # For each pack, the furthest update that it has reached, and its crashes without progress.
        self._crashes: dict[Pack, tuple[int, int]] = {}

    def after(
        self, message: Ended | Failed | Died, pack: Pack, *, furthest: int
    ) -> list[Pack] | Failure:
        """Return the packs to try next, or the failure of a cell that is given up.

        After an error a pack is split in two, and a single cell is given up. After a crash the pack
        is tried again as it is; after several without progress it is treated like an error.
        `furthest` is the last update that the job has reported.
        """
        match message:
            case Ended():  # it was asked to stop
                return [pack]
            case Failed():
                divide, give_up, trace = True, True, message.trace
            case Died():
                crashes = self._count(pack, furthest)
                divide, give_up = crashes >= _CRASHES_OF_PACK, crashes >= _CRASHES_OF_CELL
                trace = ""
        if len(pack) > 1:
            return halves(pack) if divide else [pack]
        return Failure(pack[0].identity, message.reason, trace) if give_up else [pack]

    def _count(self, pack: Pack, furthest: int) -> int:
        before, crashes = self._crashes.get(pack, (0, 0))
        crashes = 1 if furthest > before else crashes + 1
        self._crashes[pack] = max(before, furthest), crashes
        return crashes
