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
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, overload

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import ParamsT

from weightdecay.optim.foreign_groups import follow
from weightdecay.optim.kernels.slot import State
from weightdecay.optim.loading import load_into
from weightdecay.optim.noop_scheduler import Bystander
from weightdecay.optim.rates import (
    Applied,
    Coming,
    Group,
    Scheduled,
    check_decay,
    checked_lr,
    coming_of,
    is_over,
    looks_like_torchs,
    normalized_of,
    parts,
    show,
    write_rates,
)
from weightdecay.optim.warning import warn
from weightdecay.schedules import Cycle, Schedule, as_schedule

AnySchedule: TypeAlias = Schedule | Callable[[int], float] | None
#: torch's `ParamsT` in two: groups may state a decay each, parameters cannot.
Groups: TypeAlias = Iterable[dict[str, Any]]
Parameters: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]]

# How far lr may be from what it should be before it counts as set by another hand: the rounding of
# a float32 lr, of a scheduler's chained products, of another platform's cosine near its zero.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9


class ScheduledOptimizer(torch.optim.Optimizer):
    """What SGD, SGDW, Adam, AdamW and every decoupled class share."""

    _schedule: Schedule | None
    #: The groups as they were last seen, each with its schedule: others may replace them.
    _known: Scheduled
    _applied: Sequence[Applied | None] = ()
    _said_over = _said_torchs = False

    def __init__(self, params: ParamsT, *, schedule: AnySchedule, **defaults: Any) -> None:
        self._begin(schedule)
        super().__init__(params, defaults)

    def _begin(self, schedule: AnySchedule) -> None:
        self._schedule = None if schedule is None else as_schedule(schedule)
        self._known = []

    def add_param_group(self, param_group: Group) -> None:
        """Add a group, with its own α, λ and schedule; it joins at the update the others are at.

        It may carry keys of a user's own, which are saved and loaded with it.
        """
        self.defaults.setdefault("base", checked_lr(self.defaults["lr"]))
        group = {**self.defaults, **param_group}
        schedule = group.pop("schedule", self._schedule)
        schedule = None if schedule is None else as_schedule(schedule)
        self._set_rate(group, schedule, own="lr" in param_group)
        group["scheduled"] = schedule is not None
        others = self._scheduled_groups()
        group["updates"] = others[0][0]["updates"] if others else 0
        if "weight_decay" in group:
            group["normalized"] = parts(group["weight_decay"])
        self._check(group)
        self._try_out(group)
        if not self._said_torchs and (doubt := looks_like_torchs(group)):
            self._said_torchs = True
            warn(doubt)
        coming = coming_of(group, schedule, group["updates"])
        super().add_param_group(group)
        self._known = [*self._known, (group, schedule)]
        self._applied = [*self._applied, None] if self._applied else ()
        show([group], [coming])

    def _set_rate(self, group: Group, schedule: Schedule | None, *, own: bool) -> None:
        lr = group["lr"]
        if not isinstance(lr, Tensor):
            group["base"] = checked_lr(lr) if own else group["base"]
            group["lr"] = group["base"]
            return
        # A tensor may be the lr of several groups. Then it holds α·η already, and α is theirs.
        for sharing, theirs in self._scheduled_groups():
            if sharing["lr"] is lr:
                group["base"] = sharing["base"]
                if theirs != schedule:
                    group["lr"] = lr.clone()
                return
        group["base"] = checked_lr(lr)

    def _check(self, group: Group) -> None:
        """Raise unless a new or a loaded group's values are what the algorithm requires."""
        check_decay(group)

    def _try_out(self, group: Group) -> None:
        """Raise unless what a new group would do to weights is what its values say."""

    def _check_state(self, param: Tensor, state: State, group: Group) -> None:
        """Raise unless updates of a parameter can go on from a saved state."""

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
        self._update_and_count()
        return loss

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _update_and_count(self) -> None:
        """Make one update. `torch.compile` runs it as it is: α·η and λ change with every one."""
        if self._is_probed():
            self._create_state()
            return
        # What can be wrong with the numbers is looked at before anything is changed.
        multipliers = [self._multiplier(*pair) for pair in self._scheduled_groups()]
        coming = [
            coming_of(g, schedule, g["updates"] + 1) for g, schedule in self._scheduled_groups()
        ]
        if self._make_update(multipliers):
            self._applied = [
                Applied(g["updates"], m * g["base"], m * g.get("weight_decay", 0), g.get("l2", 0))
                for g, m in zip(self.param_groups, multipliers, strict=True)
            ]
            self._count(1, coming)
            self._say_if_over()

    def applied(self) -> list[Applied | None]:
        """Return what each group's last update used; None before its first one here."""
        return self._noted()

    def _noted(self) -> list[Applied | None]:
        """Return what each group's last update used, as this process noted it."""
        groups = self._scheduled_groups()
        return list(self._applied) or [None] * len(groups)

    def _count(self, updates: int, coming: list[Coming] | None = None) -> None:
        """Note that so many updates were made, and show what the coming one has."""
        groups = self._scheduled_groups()
        for group, _ in groups:
            group["updates"] += updates
        if coming is None:
            coming = [coming_of(g, schedule, g["updates"]) for g, schedule in groups]
        show(self.param_groups, coming)

    def _say_if_over(self) -> None:
        """Warn, once, if the update just made came after the end of every group's schedule."""
        if self._said_over or not all(
            is_over(schedule, group["updates"] - 1) for group, schedule in self._scheduled_groups()
        ):
            return
        self._said_over = True
        warn(
            f"Training goes on with lr = 0: {self.schedules[0]} has ended, and this was update "
            f"{self.param_groups[0]['updates'] - 1}, counted from 0. Stop where the schedule ends, "
            "build with a longer one, or end it above 0, as in Cosine(steps, low=0.1)."
        )

    @abstractmethod
    def _make_update(self, multipliers: list[float]) -> bool:
        """Update each group with its η; return whether that was done, and is to be counted."""

    @abstractmethod
    def _create_state(self) -> None:
        """Create the state that the first update would create, and change nothing else."""

    def _is_probed(self) -> bool:
        """Whether this step only asks for state to be created: lr and all gradients are 0.

        Distributed checkpointing initialises an optimizer without state that way. The gradients
        are looked at, which makes a device wait, only where every lr is 0.
        """
        if any(float(group["lr"]) != 0 for group in self.param_groups):
            return False
        for param in (param for group in self.param_groups for param in group["params"]):
            if param.grad is None:
                if param.requires_grad:
                    return False
            elif param.grad.is_sparse or bool(param.grad.any()):
                return False
        return True

    def _scheduled_groups(self) -> Scheduled:
        """Return every group with its schedule, also where others have replaced `param_groups`."""
        if [id(group) for group, _ in self._known] != list(map(id, self.param_groups)):
            self._follow_groups()
        return self._known

    def _follow_groups(self) -> None:
        """Take on the groups that others put into `param_groups`."""
        self._known = follow(
            self.param_groups,
            self._known,
            schedule=self._schedule,
            defaults=self.defaults,
            check=self._check,
        )
        self._applied = ()

    def _multiplier(self, group: Group, schedule: Schedule | None) -> float:
        lr, base = float(group["lr"]), group["base"]
        expected, decay = coming_of(group, schedule, group["updates"])
        if not math.isclose(lr, expected, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE * base):
            raise RuntimeError(
                f"`lr` must be {expected:g} for update {group['updates']}, as the schedule says, "
                f"got {lr:g}: something else set it, or it was saved under another schedule. "
                "Give a trainer that insists on a scheduler `opt.scheduler()`; to change α, or to "
                "take this schedule on, call `opt.rebase(lr)`; to follow a torch scheduler, build "
                "without `schedule`."
            )
        if schedule is None and not 0 <= lr <= base * (1 + _RELATIVE):
            raise RuntimeError(
                f"`lr` must be at least 0 and at most {base:g}, the lr this optimizer was built "
                f"with, got {lr:g}: the decay is scaled by lr over that. Build the optimizer with "
                "the scheduler's largest lr; to change α by hand, call `opt.rebase(lr)`."
            )
        multiplier = lr / base if base else 1.0
        if decay is not None:
            self._check_shown_decay(group, decay, multiplier)
        return multiplier

    def _check_shown_decay(self, group: Group, expected: float, multiplier: float) -> None:
        check_decay(group)
        shown = group["weight_decay"]
        if not math.isclose(shown, expected, rel_tol=_RELATIVE):
            raise RuntimeError(
                f"`weight_decay` must be {expected:g} for update {group['updates']}, as "
                f"{normalized_of(group)} says, got {shown:g}: something else set it, "
                "or it was saved under another schedule. Build with a number to set it by hand."
            )
        if not shown * multiplier < 1:
            raise RuntimeError(
                f"`weight_decay` times the schedule's multiplier must be below 1, got {shown:g} "
                f"times {multiplier:g}. Lower one of them."
            )

    @property
    def schedules(self) -> tuple[Schedule | None, ...]:
        """Each group's schedule; None where `lr` is left to others."""
        return tuple(schedule for _, schedule in self._scheduled_groups())

    @property
    def cycle(self) -> Cycle | None:
        """The cycle of the coming update; None without a schedule of ours."""
        return self._cycle_of(0)

    @property
    def cycle_ended(self) -> bool:
        """Whether the update just made was the last of its cycle: the solution to keep."""
        updates = self.param_groups[0]["updates"]
        cycle = self._cycle_of(-1) if updates else None
        return cycle is not None and cycle.end == updates

    def _cycle_of(self, offset: int) -> Cycle | None:
        [cycle, *others] = [
            None if schedule is None else schedule.cycle(group["updates"] + offset)
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
        """Change α, for every group or one number a group, and leave λ and η alone.

        A torch scheduler remembers the α it was built with: rebase first, then build it.
        """
        bases = {group["base"] for group in self.param_groups}
        if not isinstance(lr, Sequence) and len(bases) > 1:
            raise ValueError(
                f"`lr` must be one number a group, since the groups' own differ ({sorted(bases)}), "
                f"got {lr!r}. Pass a list."
            )
        values = list(lr) if isinstance(lr, Sequence) else [lr] * len(self.param_groups)
        if len(values) != len(self.param_groups):
            raise ValueError(
                f"`lr` must be a number or one number a group, got {len(values)} numbers for "
                f"{len(self.param_groups)} groups."
            )
        values = [checked_lr(value) for value in values]
        for group, value in zip(self.param_groups, values, strict=True):
            check_decay({**group, "base": value})
        etas = [float(g["lr"]) / g["base"] if g["base"] else 1.0 for g in self.param_groups]
        for group, value in zip(self.param_groups, values, strict=True):
            group["base"] = value
        if not isinstance(lr, Sequence):
            self.defaults["base"] = values[0]
        write_rates(self.param_groups, [v * eta for v, eta in zip(values, etas, strict=True)])
        self._count(0)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` saved, keeping dtypes and copying into existing tensors.

        A state that does not fit is refused before anything is changed.
        """
        load_into(self, state_dict)

    def __repr__(self) -> str:
        lines = [f"    schedules: {self.schedules}", ")"]
        return super().__repr__().removesuffix(")") + "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        mine = {"_schedule": self._schedule, "_known": self._scheduled_groups()}
        return {**super().__getstate__(), **mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "differentiable" not in self.param_groups[0]:
            del self.defaults["differentiable"]  # torch puts it there; new groups would differ
