"""Rates for CUDA graphs: written in advance, since a replay runs no Python.

Each replay of a captured step reads the next row of a table on the device. The host fills the table
from the schedules for the next `AHEAD` updates, and refills it before the rows run out.
"""

from functools import cached_property
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weightdecay import checks
from weightdecay.optim.kernels.algorithm import Algorithm
from weightdecay.optim.kernels.plan import Plan
from weightdecay.optim.kernels.replays import AHEAD, Replays
from weightdecay.optim.kernels.slot import Scaling, Slot
from weightdecay.optim.kernels.table import Table
from weightdecay.optim.rates import Applied, Group, Rates, Scheduled, coming_of, normalized_of
from weightdecay.schedules import Schedule

# The keys of a group that rows are computed from, in addition to its algorithm's options.
_KEYS = ("lr", "base", "weight_decay", "normalized", "l2", "maximize")


class GraphRates:
    """The rates that captured steps read, and how many updates they have made."""

    def __init__(self, scheduled: Scheduled, algorithm: Algorithm) -> None:
        self._scheduled = scheduled
        self._keys = {*_KEYS, *algorithm.options}
        self._groups = [group for group, _ in scheduled]
        self._captured: list[list[Replays]] = []
        self._slots: dict[int, Slot] = {}
        self._scaled = False
        self._filled_for: list[Group] = []
        # The rates that rows were written from, and each group's update number at that time.
        self._filled: Rates = np.empty((0, 0, 2))
        self._first_updates: list[int] = []
        # Since then: replays reported to `replayed`, and those of them that were not skipped.
        self._reported = self._made = 0

    @property
    def tables(self) -> list[Table]:
        """Return the tables of the captured step that made the last update.

        With several captured steps, that is the only one with updates since rows were written: they
        are rewritten after each replay.
        """
        several = len(self._captured) > 1
        captured = chain.from_iterable(self._captured)
        return [replays.table for replays in captured if not several or replays.made()]

    def capture(self, plan: Plan, grads: list[Tensor], scaling: Scaling | None) -> None:
        """Record an update of a plan's parameters into the CUDA graph being captured."""
        slots = {slot.number: slot for slot in plan.slots}
        if self._slots and self._slots.keys() != slots.keys():
            raise RuntimeError(
                "Every captured step must update the same parameters, got different ones. "
                "Use one optimizer per set of parameters."
            )
        self._slots = slots
        self._note_filled()
        self._captured.append(plan.capture(grads, self._filled, scaling))
        self._scaled = self._scaled or scaling is not None

    def replayed(self, updates: int) -> int:
        """Count replays, and return how many updates they made."""
        if updates > 1 and len(self._captured) > 1:
            raise RuntimeError(
                f"`replayed` must be called after every replay if several steps are captured, "
                f"got {updates} replays at once: it is unknown which step they replayed."
            )
        self._reported += updates
        if self._reported > AHEAD:
            raise RuntimeError(
                f"`replayed` must be called at least every {AHEAD} updates, got {self._reported} "
                "since the table was written: those beyond its end changed nothing."
            )
        made = self._counted() - self._made if self._scaled else updates
        self._made += made
        steps = [slot.state["step"] for slot in self._slots.values() if "step" in slot.state]
        if made and steps:
            torch._foreach_add_(steps, float(made))
        return made

    def check(self) -> None:
        """Raise unless the device made the right number of updates, at the right rates.

        The device reports how many it made and what the last one used. This waits for the device.
        """
        counted = self._counted()
        if counted != self._made:
            raise RuntimeError(
                f"CUDA graphs must have made the {self._made} updates reported to `replayed`, "
                f"but the device counts {counted}. Call `replayed` once for every replay. If you "
                "do, the captured step does not follow its schedule: please report a bug."
            )
        for replays in chain.from_iterable(self._captured):
            made = replays.made()
            for number, used in replays.table.applied().items() if made else ():
                self._check_used(number, made - 1, used)

    def _check_used(self, number: int, row: int, used: Applied) -> None:
        lr, decay = (float(np.float32(rate)) for rate in self._filled[row][number])
        update = self._first_updates[number] + row
        if (used.update, used.lr, used.decay) != (update, lr, decay):
            raise RuntimeError(
                f"Group {number} must have made update {update} at α·η = {lr:g} and λ·η = "
                f"{decay:g}, as its schedule says, but the device reports update {used.update} "
                f"at {used.lr:g} and {used.decay:g}: its weights are wrong."
            )

    def _counted(self) -> int:
        """Return how many updates the device has made since rows were written."""
        return sum(max(replays.made() for replays in tables) for tables in self._captured if tables)

    def refill(self, *, checked: bool = True) -> None:
        """Rewrite the table if half of it is used up, or if its values have changed.

        This has to wait for the device anyway, so what the device did so far is checked first.
        """
        if self._half_used() or self._values() != self._filled_for:
            if checked:
                self.check()
            self._note_filled()
            for replays in chain.from_iterable(self._captured):
                replays.fill(self._filled)

    def _half_used(self) -> bool:
        several = len(self._captured) > 1 and self._reported > 0
        return several or self._reported > AHEAD // 2

    def _note_filled(self) -> None:
        self._filled = self._rates()
        self._first_updates = [group["updates"] for group in self._groups]
        self._reported = self._made = 0
        self._filled_for = self._values()

    def _values(self) -> list[Group]:
        """Return the values that rows are computed from, except those that the schedule changes."""
        values = []
        for group in self._groups:
            scheduled = {"lr"} if group["scheduled"] else set()
            scheduled |= {"weight_decay"} if group.get("normalized") else set()
            kept = {
                key: value.item() if isinstance(value, Tensor) else value
                for key, value in group.items()
                if key in self._keys and key not in scheduled
            }
            values.append({**kept, "first_update": group["updates"] - self._made})
        return values

    def _rates(self) -> Rates:
        """Return α·η and λ·η of the next `AHEAD` updates, bit for bit those of `coming_of`.

        A schedule is evaluated once for all groups that share it.
        """
        rates: Rates = np.empty((AHEAD, len(self._scheduled), 2))
        evaluated: dict[tuple[int, int], _Evaluated] = {}
        for number, (group, schedule) in enumerate(self._scheduled):
            first, base = group["updates"], group["base"] or 1.0
            if schedule is None:
                lr, decay = coming_of(group, None, first)
                rates[:, number] = lr, (decay or 0.0) * lr / base
                continue
            place = id(schedule), first
            if place not in evaluated:
                evaluated[place] = _Evaluated(schedule, first)
            lrs = group["base"] * evaluated[place].multipliers
            rates[:, number, 0] = lrs
            rates[:, number, 1] = evaluated[place].decays(group) * lrs / base
        return rates


class _Evaluated:
    """The values of a schedule for the next `AHEAD` updates."""

    def __init__(self, schedule: Schedule, first: int) -> None:
        self._schedule, self._ahead = schedule, range(first, first + AHEAD)
        self.multipliers = np.array(
            [checks.number(f"schedule({t})", schedule(t), at_least=0) for t in self._ahead]
        )

    @cached_property
    def _lengths(self) -> list[int | None]:
        return [self._schedule.cycle(t).length for t in self._ahead]

    def decays(self, group: Group) -> float | NDArray[np.float64]:
        """Return a group's λ: one number for all updates, unless it depends on the cycle."""
        if group.get("normalized") is None:
            return group.get("weight_decay") or 0.0
        normalized = normalized_of(group)
        of_length = {n: normalized.weight_decay(n) for n in dict.fromkeys(self._lengths)}
        return np.array([of_length[n] for n in self._lengths])
