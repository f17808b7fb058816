"""Updates inside CUDA graphs: their numbers are written ahead, since a replay runs no Python.

A captured step reads row after row of a table on the device. The host fills it from the schedules
for the next `AHEAD` updates, and again before they are used up.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from weightdecay.optim.kernels.plan import Plan
from weightdecay.optim.kernels.slot import Slot
from weightdecay.optim.kernels.table import AHEAD, Rate, Replays, Scaling
from weightdecay.optim.rates import Group, coming_of
from weightdecay.schedules import Schedule


class Ahead:
    """What captured steps read, and how far they have come."""

    def __init__(self, groups: list[Group], schedules: list[Schedule | None]) -> None:
        self._groups, self._schedules = groups, schedules
        self._captured: list[list[Replays]] = []
        self._slots: dict[int, Slot] = {}
        self._scaled = False
        self._filled_for: list[Group] = []
        self._used = self._made = 0

    def capture(self, plan: Plan, grads: list[Tensor], scaling: Scaling | None) -> None:
        """Record an update of the parameters of a plan."""
        slots = {slot.number: slot for slot in plan.slots}
        if self._slots and self._slots.keys() != slots.keys():
            raise RuntimeError(
                "Every captured step must update the same parameters, got others than before. "
                "Use an optimizer for each set of parameters."
            )
        self._slots = slots
        self._captured.append(plan.capture(grads, self._rates(), scaling))
        self._scaled = self._scaled or scaling is not None
        self._used = self._made = 0
        self._filled_for = self._values()

    def replayed(self, updates: int) -> int:
        """Count replays, and return how many updates they made."""
        if updates > 1 and len(self._captured) > 1:
            raise RuntimeError(
                f"`replayed` must be called after every replay where several steps are captured, "
                f"got {updates} at once: it cannot be told which."
            )
        self._used += updates
        if self._used > AHEAD:
            raise RuntimeError(
                f"`replayed` must be called at least every {AHEAD} updates, got {self._used} "
                "since the table was written: those beyond it changed nothing."
            )
        made = updates
        if self._scaled:
            made = sum(max(r.made() for r in tables) for tables in self._captured) - self._made
        self._made += made
        steps = [slot.state["step"] for slot in self._slots.values() if "step" in slot.state]
        if made and steps:
            torch._foreach_add_(steps, float(made))
        return made

    def refill(self) -> None:
        """Write the table again where it is half used up, or no longer what is coming."""
        several = len(self._captured) > 1 and self._used
        if several or self._used > AHEAD // 2 or self._values() != self._filled_for:
            rates = self._rates()
            for replays in (replays for tables in self._captured for replays in tables):
                replays.fill(rates)
            self._used = self._made = 0
            self._filled_for = self._values()

    def _values(self) -> list[Group]:
        """Return all that rates are computed from, but for the schedule's own movement."""
        values = []
        for group in self._groups:
            moving = {"params", "param_names", "updates"}
            moving |= {"lr"} if group["scheduled"] else set()
            moving |= {"weight_decay"} if group.get("normalized") else set()
            kept = {
                key: value.item() if isinstance(value, Tensor) else value
                for key, value in group.items()
                if key not in moving
            }
            values.append({**kept, "begun": group["updates"] - self._made})
        return values

    def _rates(self) -> list[Sequence[Rate]]:
        columns = []
        for group, schedule in zip(self._groups, self._schedules, strict=True):
            first, base = group["updates"], group["base"] or 1.0
            ahead = range(first, first + AHEAD) if schedule is not None else [first] * AHEAD
            coming = (coming_of(group, schedule, t) for t in ahead)
            columns.append([(lr, (decay or 0.0) * lr / base) for lr, decay in coming])
        return list(zip(*columns, strict=True))
