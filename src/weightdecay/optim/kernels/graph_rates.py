"""Updates inside CUDA graphs: their numbers are written ahead, since a replay runs no Python.

A captured step reads row after row of a table on the device. The host fills it from the schedules
for the next `AHEAD` updates, and again before they are used up.
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

# What of a group rows are computed from, beside its algorithm's options; a user's keys are not.
_READ = ("lr", "base", "weight_decay", "normalized", "l2", "maximize")


class Ahead:
    """What captured steps read, and how far they have come."""

    def __init__(self, scheduled: Scheduled, algorithm: Algorithm) -> None:
        self._scheduled = scheduled
        self._read = {*_READ, *algorithm.options}
        self._groups = [group for group, _ in scheduled]
        self._captured: list[list[Replays]] = []
        self._slots: dict[int, Slot] = {}
        self._scaled = False
        self._filled_for: list[Group] = []
        # What rows were written from, and the update that each group was at.
        self._filled: Rates = np.empty((0, 0, 2))
        self._begun: list[int] = []
        # Updates since then: replays that `replayed` was told of, and those that were not skipped.
        self._told = self._made = 0

    @property
    def tables(self) -> list[Table]:
        """Return the tables of the captured step that made the last update.

        Of several steps it is the one that made any: rows are written again after each.
        """
        several = len(self._captured) > 1
        every = chain.from_iterable(self._captured)
        return [replays.table for replays in every if not several or replays.made()]

    def capture(self, plan: Plan, grads: list[Tensor], scaling: Scaling | None) -> None:
        """Record an update of the parameters of a plan."""
        slots = {slot.number: slot for slot in plan.slots}
        if self._slots and self._slots.keys() != slots.keys():
            raise RuntimeError(
                "Every captured step must update the same parameters, got others than before. "
                "Use an optimizer for each set of parameters."
            )
        self._slots = slots
        self._note_filled()
        self._captured.append(plan.capture(grads, self._filled, scaling))
        self._scaled = self._scaled or scaling is not None

    def replayed(self, updates: int) -> int:
        """Count replays, and return how many updates they made."""
        if updates > 1 and len(self._captured) > 1:
            raise RuntimeError(
                f"`replayed` must be called after every replay where several steps are captured, "
                f"got {updates} at once: it cannot be told which."
            )
        self._told += updates
        if self._told > AHEAD:
            raise RuntimeError(
                f"`replayed` must be called at least every {AHEAD} updates, got {self._told} "
                "since the table was written: those beyond it changed nothing."
            )
        made = self._counted() - self._made if self._scaled else updates
        self._made += made
        steps = [slot.state["step"] for slot in self._slots.values() if "step" in slot.state]
        if made and steps:
            torch._foreach_add_(steps, float(made))
        return made

    def check(self) -> None:
        """Raise unless the device made the updates it should have, at the rates it should have.

        It says itself how many it made and what the last one used. Waits for it.
        """
        counted = self._counted()
        if counted != self._made:
            raise RuntimeError(
                f"CUDA graphs must have made the {self._made} updates that `replayed` was told of, "
                f"and the device counts {counted}. Call `replayed` once for every replay; if you "
                "do, what was captured does not move along its schedule: report it."
            )
        for replays in chain.from_iterable(self._captured):
            made = replays.made()
            for number, used in replays.table.applied().items() if made else ():
                self._check_used(number, made - 1, used)

    def _check_used(self, number: int, row: int, used: Applied) -> None:
        lr, decay = (float(np.float32(rate)) for rate in self._filled[row][number])
        update = self._begun[number] + row
        if (used.update, used.lr, used.decay) != (update, lr, decay):
            raise RuntimeError(
                f"Group {number} must have made update {update} at α·η = {lr:g} and λ·η = "
                f"{decay:g}, as its schedule says, and the device says that its last was update "
                f"{used.update} at {used.lr:g} and {used.decay:g}: its weights are wrong."
            )

    def _counted(self) -> int:
        """Return how many updates the device says it made since rows were written."""
        return sum(max(replays.made() for replays in tables) for tables in self._captured if tables)

    def refill(self, *, checked: bool = True) -> None:
        """Write the table again where it is half used up, or no longer what is coming.

        What the device did until then is checked first: it is waited for anyway.
        """
        if self._half_used() or self._values() != self._filled_for:
            if checked:
                self.check()
            self._note_filled()
            for replays in chain.from_iterable(self._captured):
                replays.fill(self._filled)

    def _half_used(self) -> bool:
        several = len(self._captured) > 1 and self._told > 0
        return several or self._told > AHEAD // 2

    def _note_filled(self) -> None:
        self._filled, self._begun = self._rates(), [group["updates"] for group in self._groups]
        self._told = self._made = 0
        self._filled_for = self._values()

    def _values(self) -> list[Group]:
        """Return all that rows are computed from, but for the schedule's own movement."""
        values = []
        for group in self._groups:
            moving = {"lr"} if group["scheduled"] else set()
            moving |= {"weight_decay"} if group.get("normalized") else set()
            kept = {
                key: value.item() if isinstance(value, Tensor) else value
                for key, value in group.items()
                if key in self._read and key not in moving
            }
            values.append({**kept, "begun": group["updates"] - self._made})
        return values

    def _rates(self) -> Rates:
        """Return α·η and λ·η of the updates ahead, those that `coming_of` says, to the bit.

        A schedule is asked once for all groups that share it.
        """
        rates: Rates = np.empty((AHEAD, len(self._scheduled), 2))
        asked: dict[tuple[int, int], _Asked] = {}
        for number, (group, schedule) in enumerate(self._scheduled):
            first, base = group["updates"], group["base"] or 1.0
            if schedule is None:
                lr, decay = coming_of(group, None, first)
                rates[:, number] = lr, (decay or 0.0) * lr / base
                continue
            place = id(schedule), first
            if place not in asked:
                asked[place] = _Asked(schedule, first)
            lrs = group["base"] * asked[place].multipliers
            rates[:, number, 0] = lrs
            rates[:, number, 1] = asked[place].decays(group) * lrs / base
        return rates


class _Asked:
    """What a schedule says of the updates ahead."""

    def __init__(self, schedule: Schedule, first: int) -> None:
        self._schedule, self._ahead = schedule, range(first, first + AHEAD)
        self.multipliers = np.array(
            [checks.number(f"schedule({t})", schedule(t), at_least=0) for t in self._ahead]
        )

    @cached_property
    def _lengths(self) -> list[int | None]:
        return [self._schedule.cycle(t).length for t in self._ahead]

    def decays(self, group: Group) -> float | NDArray[np.float64]:
        """Return a group's λ: one for all updates, unless it depends on the cycle."""
        if group.get("normalized") is None:
            return group.get("weight_decay") or 0.0
        normalized = normalized_of(group)
        of_length = {n: normalized.weight_decay(n) for n in dict.fromkeys(self._lengths)}
        return np.array([of_length[n] for n in self._lengths])
