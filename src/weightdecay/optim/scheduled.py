"""The optimizer that owns its schedule: where α, η and λ live, and how they are saved.

A parameter group holds, as plain numbers,

    base          α
    lr            α·η of the coming update: what loggers read, and what torch's schedulers write
    weight_decay  λ of the coming update, where the algorithm decays
    normalized    the (value, power, steps) of `Normalized`, or None
    updates       t, the number of the coming update
    scheduled     whether a schedule of ours writes `lr`

and a step reads η as lr/base and nothing else. With a schedule of ours, the end of a step writes
the coming update's α·η into `lr`. Without one, whatever a `torch.optim.lr_scheduler` writes there
scales the decay too.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import ParamsT

from weightdecay import checks
from weightdecay.decay import Normalized, checked_weight_decay
from weightdecay.optim.loading import load_into
from weightdecay.schedules import Cycle, Schedule, as_schedule

Group: TypeAlias = dict[str, Any]
Multiplier: TypeAlias = float | None  # None: create state, change nothing

# How far lr may be from what it should be before it counts as set by another hand: the rounding of
# a float32 lr, of a scheduler's chained products, of another platform's cosine near its zero.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9


class ScheduledOptimizer(torch.optim.Optimizer):
    """What SGD, SGDW, Adam, AdamW and every decoupled class share; they add `_update`."""

    _schedule: Schedule | None
    _schedules: list[Schedule | None]

    def __init__(
        self,
        params: ParamsT,
        *,
        schedule: Schedule | Callable[[int], float] | None,
        **defaults: Any,
    ) -> None:
        self._begin(schedule)
        super().__init__(params, defaults)

    def _begin(self, schedule: Schedule | Callable[[int], float] | None) -> None:
        self._schedule = None if schedule is None else as_schedule(schedule)
        self._schedules = []

    def add_param_group(self, param_group: Group) -> None:
        """Add a group, with its own α, λ and schedule; it joins at the update the others are at."""
        # α is remembered apart: a tensor lr is shared by all groups that bring none, and
        # after the first of them it holds α·η.
        self.defaults.setdefault("base", _checked_lr(self.defaults["lr"]))
        group = {**self.defaults, **param_group}
        if "lr" in param_group:
            group["base"] = _checked_lr(group["lr"])
        elif "schedule" in param_group and isinstance(group["lr"], Tensor):
            group["lr"] = group["lr"].clone()
        schedule = group.pop("schedule", self._schedule)
        schedule = None if schedule is None else as_schedule(schedule)
        group["scheduled"] = schedule is not None
        group["updates"] = self.param_groups[0]["updates"] if self.param_groups else 0
        if "weight_decay" in group:
            group["normalized"] = _parts(group["weight_decay"])
        self._check(group)
        _show(group, schedule)
        super().add_param_group(group)
        self._schedules.append(schedule)

    def _check(self, group: Group) -> None:
        """Raise unless a new group's values are what the algorithm requires."""
        if "weight_decay" not in group:
            return
        if group["normalized"] is None:
            group["weight_decay"] = checked_weight_decay(group["weight_decay"])
        if group["base"] == 0 and group["weight_decay"] != 0:
            raise ValueError(
                f"`lr` must be above 0 where weights decay, got {group['base']!r} with "
                f"weight_decay {group['weight_decay']!r}. The decay is scheduled by η = lr/base, "
                "which 0 hides: to decay without learning, use a tiny lr."
            )

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Make one update, and write the coming one's α·η and λ into the groups."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        # Every group is looked at before any is touched: an update happens whole or not at all.
        multipliers = [self._multiplier(*pair) for pair in self._scheduled_groups()]
        self._update(multipliers)
        for (group, schedule), multiplier in zip(
            self._scheduled_groups(), multipliers, strict=True
        ):
            if multiplier is not None:
                group["updates"] += 1
                _show(group, schedule)
        return loss

    @abstractmethod
    def _update(self, multipliers: list[Multiplier]) -> None:
        """Update the parameters of each group with its η; where that is None, create state only."""

    def _scheduled_groups(self) -> Iterator[tuple[Group, Schedule | None]]:
        return zip(self.param_groups, self._schedules, strict=True)

    def _multiplier(self, group: Group, schedule: Schedule | None) -> Multiplier:
        lr, base = float(group["lr"]), group["base"]
        expected = lr if schedule is None else base * schedule(group["updates"])
        if lr == 0 and (expected != 0 or self._is_probed(group)):
            return None
        if not math.isclose(lr, expected, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE * base):
            raise RuntimeError(
                f"`lr` must be {expected:g} for update {group['updates']}, as the schedule says, "
                f"got {lr:g}: something else set it, or it was saved under another schedule. "
                "Give a trainer that insists on a scheduler `opt.scheduler()`; to change α, or to "
                "take this schedule on, call `opt.rebase(lr)`; to follow a torch scheduler, build "
                "without `schedule`."
            )
        if not 0 <= lr <= base * (1 + _RELATIVE) and schedule is None:
            raise RuntimeError(
                f"`lr` must be at least 0 and at most {base:g}, the lr this optimizer was built "
                f"with, got {lr:g}: the decay is scaled by lr over that. Build the optimizer with "
                "the scheduler's largest lr."
            )
        if "weight_decay" in group:
            self._check_decay(group, schedule, lr)
        return lr / base if base else 1.0

    def _check_decay(self, group: Group, schedule: Schedule | None, lr: float) -> None:
        shown, base = checked_weight_decay(group["weight_decay"]), group["base"]
        if group["normalized"] is not None:
            expected = _normalized(group, schedule)
            if not math.isclose(shown, expected, rel_tol=_RELATIVE):
                raise RuntimeError(
                    f"`weight_decay` must be {expected:g} for update {group['updates']}, as "
                    f"{Normalized(*group['normalized'])} says, got {shown:g}: something else set "
                    "it, or it was saved under another schedule. Build with a number to set it by "
                    "hand."
                )
        if base and not shown * lr / base < 1:
            raise RuntimeError(
                f"`weight_decay` times the schedule's multiplier must be below 1, got {shown:g} "
                f"times {lr / base:g}. Lower one of them."
            )

    def _is_probed(self, group: Group) -> bool:
        # Distributed checkpointing creates the state of a fresh optimizer by a step with lr = 0 and
        # zero gradients. That is no update, wherever the schedule stands.
        gradients = [p.grad for p in group["params"] if p.grad is not None]
        fresh = not any(self.state.get(p) for p in group["params"])
        return fresh and not any(bool(gradient.any()) for gradient in gradients)

    @property
    def schedules(self) -> tuple[Schedule | None, ...]:
        """Each group's schedule; None where `lr` is left to others."""
        return tuple(self._schedules)

    @property
    def cycle(self) -> Cycle | None:
        """The cycle of the coming update; None without a schedule of ours."""
        return self._cycle_of(0)

    @property
    def cycle_ended(self) -> bool:
        """Whether the update just made was the last of its cycle: the solution to keep."""
        updates = self.param_groups[0]["updates"]
        if updates == 0:
            return False
        cycle = self._cycle_of(-1)
        return cycle is not None and cycle.end == updates

    def _cycle_of(self, offset: int) -> Cycle | None:
        [cycle, *others] = [
            None if schedule is None else schedule.cycle(max(group["updates"] + offset, 0))
            for group, schedule in self._scheduled_groups()
        ]
        if any(other != cycle for other in others):
            raise RuntimeError(
                "The groups must be in one cycle to ask the optimizer for it, got several. "
                "Ask each group's own: opt.schedules[0].cycle(opt.param_groups[0]['updates'])."
            )
        return cycle

    def scheduler(self) -> LRScheduler:
        """Return a scheduler that changes nothing, for a trainer that insists on one."""
        return Bystander(self)

    def rebase(self, lr: float | Sequence[float]) -> None:
        """Change α, for every group or one number a group, and leave λ and η alone."""
        values = list(lr) if isinstance(lr, Sequence) else [lr] * len(self.param_groups)
        if len(values) != len(self.param_groups):
            raise ValueError(
                f"`lr` must be a number or one number a group, got {len(values)} numbers for "
                f"{len(self.param_groups)} groups."
            )
        bases = {group["base"] for group in self.param_groups}
        if not isinstance(lr, Sequence) and len(bases) > 1:
            raise ValueError(
                f"`lr` must be one number a group, since the groups' own differ ({sorted(bases)}), "
                f"got {lr!r}. Pass a list."
            )
        changed = [
            {**group, "base": _checked_lr(value)}
            for group, value in zip(self.param_groups, values, strict=True)
        ]
        for group in changed:
            self._check(group)
        for (group, schedule), new in zip(self._scheduled_groups(), changed, strict=True):
            old, group["base"] = group["base"], new["base"]
            if schedule is None:
                _write(group, "lr", new["base"] * (float(group["lr"]) / old if old else 1.0))
            _show(group, schedule)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` saved, keeping dtypes and copying into existing tensors."""
        load_into(self, state_dict)

    def __repr__(self) -> str:
        lines = [f"    schedules: {self.schedules}", ")"]
        return super().__repr__().removesuffix(")") + "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        mine = {"_schedule": self._schedule, "_schedules": self._schedules}
        return {**super().__getstate__(), **mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "differentiable" not in self.param_groups[0]:
            del self.defaults["differentiable"]  # torch puts it there; new groups would differ


class Bystander(LRScheduler):
    """A scheduler that changes nothing and reports α·η: the optimizer schedules itself."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.base_lrs = [group["base"] for group in optimizer.param_groups]

    @property
    def last_epoch(self) -> int:  # type: ignore[override]
        """The updates made so far."""
        updates: int = self.optimizer.param_groups[0]["updates"]
        return updates

    def step(self, epoch: int | None = None) -> None:
        """Do nothing."""

    def get_last_lr(self) -> list[float | Tensor]:
        """Return each group's α·η of the coming update."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    get_lr = get_last_lr

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: all there is to save is in the optimizer."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing."""


def _checked_lr(lr: object) -> float:
    if isinstance(lr, Tensor):
        if lr.numel() != 1:
            raise ValueError(f"`lr` must have one element, got a tensor of shape {lr.shape}.")
        lr = lr.item()
    return checks.number("lr", lr, at_least=0)


def _parts(weight_decay: object) -> tuple[float, float, int | None] | None:
    if not isinstance(weight_decay, Normalized):
        return None
    return weight_decay.value, weight_decay.power, weight_decay.steps


def _normalized(group: Group, schedule: Schedule | None) -> float:
    length = None if schedule is None else schedule.cycle(group["updates"]).length
    return Normalized(*group["normalized"]).weight_decay(length)


def _show(group: Group, schedule: Schedule | None) -> None:
    """Write the coming update's α·η and λ where everyone can read them."""
    if schedule is not None:
        _write(group, "lr", group["base"] * schedule(group["updates"]))
    if group.get("normalized") is not None:
        group["weight_decay"] = _normalized(group, schedule)


def _write(group: Group, key: str, value: float) -> None:
    if isinstance(group[key], Tensor):
        group[key].fill_(value)
    else:
        group[key] = value
