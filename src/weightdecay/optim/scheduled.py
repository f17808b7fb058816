"""The base class of all optimizers: it owns the schedule and keeps α, η and λ in the groups.

A parameter group holds these plain numbers:

    base          α
    lr            α·η of the next update: read by loggers, written by torch's schedulers
    weight_decay  λ of the next update, if the algorithm decays weights
    normalized    the (value, power, steps) of `Normalized`, or None
    updates       t, the number of the next update
    scheduled     whether one of our schedules writes `lr`

A step reads η as lr/base. With one of our schedules, the end of a step writes α·η of the next
update into `lr`. Without one, `lr` belongs to you or to a `torch.optim.lr_scheduler`, and whatever
is written there scales the decay too.
"""

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
from weightdecay.optim.multiplier import multiplier_of
from weightdecay.optim.noop_scheduler import NoopScheduler
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
    parts,
    rebased,
    set_base,
    show,
    write_rates,
)
from weightdecay.optim.warning import warn
from weightdecay.schedules import Cycle, Schedule, as_schedule

AnySchedule: TypeAlias = Schedule | Callable[[int], float] | None
#: torch's `ParamsT` split in two: each group may state its own decay, bare parameters cannot.
Groups: TypeAlias = Iterable[dict[str, Any]]
Parameters: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]]


class ScheduledOptimizer(torch.optim.Optimizer):
    """Base class of SGD, SGDW, Adam, AdamW and every decoupled class."""

    _schedule: Schedule | None
    #: The groups as last seen, each with its schedule. Trainers may replace `param_groups`.
    _known: Scheduled
    _applied: Sequence[Applied | None] = ()
    _warned_over = _warned_torchs = False

    def __init__(self, params: ParamsT, *, schedule: AnySchedule, **defaults: Any) -> None:
        self._set_schedule(schedule)
        super().__init__(params, defaults)

    def _set_schedule(self, schedule: AnySchedule) -> None:
        self._schedule = None if schedule is None else as_schedule(schedule)
        self._known = []

    def add_param_group(self, param_group: Group) -> None:
        """Add a group, which may have its own α, λ and schedule.

        Its first update has the same number as the other groups' next one. You may put keys of your
        own into a group: they are saved and loaded with it.
        """
        self.defaults.setdefault("base", checked_lr(self.defaults["lr"]))
        group = {**self.defaults, **param_group}
        schedule = group.pop("schedule", self._schedule)
        schedule = None if schedule is None else as_schedule(schedule)
        set_base(group, schedule, self._scheduled_groups(), has_own_lr="lr" in param_group)
        group["scheduled"] = schedule is not None
        others = self._scheduled_groups()
        group["updates"] = others[0][0]["updates"] if others else 0
        if "weight_decay" in group:
            group["normalized"] = parts(group["weight_decay"])
        self._check(group)
        self._try_out(group)
        if not self._warned_torchs and (warning := looks_like_torchs(group)):
            self._warned_torchs = True
            warn(warning)
        coming = coming_of(group, schedule, group["updates"])
        super().add_param_group(group)
        self._known = [*self._known, (group, schedule)]
        self._applied = [*self._applied, None] if self._applied else ()
        show([group], [coming])

    def _check(self, group: Group) -> None:
        """Raise unless the values of a new or loaded group are valid for the algorithm."""
        check_decay(group)

    def _try_out(self, group: Group) -> None:
        """Raise unless weights of a new group would decay as its values say."""

    def _check_state(self, param: Tensor, state: State, group: Group) -> None:
        """Raise unless training a parameter can continue from a saved state."""

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Make one update, then write α·η and λ of the next one into the groups."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._update_and_count()
        return loss

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _update_and_count(self) -> None:
        """Make one update. Not compiled by `torch.compile`, since α·η and λ change every time."""
        if self._is_probed():
            self._create_state()
            return
        # All numbers are checked before anything is changed.
        multipliers = [multiplier_of(*pair) for pair in self._scheduled_groups()]
        coming = [
            coming_of(g, schedule, g["updates"] + 1) for g, schedule in self._scheduled_groups()
        ]
        if self._make_update(multipliers):
            self._applied = [
                Applied(g["updates"], m * g["base"], m * g.get("weight_decay", 0), g.get("l2", 0))
                for g, m in zip(self.param_groups, multipliers, strict=True)
            ]
            self._count(1, coming)
            self._warn_if_over()

    def applied(self) -> list[Applied | None]:
        """Return the numbers that each group's last update used; None before the first update."""
        return self._noted()

    def _noted(self) -> list[Applied | None]:
        """Return the numbers of each group's last update, as recorded by this process."""
        groups = self._scheduled_groups()
        return list(self._applied) or [None] * len(groups)

    def _count(self, updates: int, coming: list[Coming] | None = None) -> None:
        """Add to the count of updates made, and write α·η and λ of the next one."""
        groups = self._scheduled_groups()
        for group, _ in groups:
            group["updates"] += updates
        if coming is None:
            coming = [coming_of(g, schedule, g["updates"]) for g, schedule in groups]
        show(self.param_groups, coming)

    def _warn_if_over(self) -> None:
        """Warn once if the update just made came after the end of every group's schedule."""
        if self._warned_over or not all(
            is_over(schedule, group["updates"] - 1) for group, schedule in self._scheduled_groups()
        ):
            return
        self._warned_over = True
        warn(
            f"Training continues with lr = 0: {self.schedules[0]} has ended, and this was update "
            f"{self.param_groups[0]['updates'] - 1}, counted from 0. Stop when the schedule ends, "
            "use a longer one, or let it end above 0, as in Cosine(steps, low=0.1)."
        )

    @abstractmethod
    def _make_update(self, multipliers: list[float]) -> bool:
        """Update each group with its η. Return False if the update was skipped or only captured."""

    @abstractmethod
    def _create_state(self) -> None:
        """Create the state that the first update would create; change nothing else."""

    def _is_probed(self) -> bool:
        """Whether this step should only create state: every lr and every gradient is 0.

        Distributed checkpointing initialises an optimizer that way. Reading gradients makes the
        host wait for the device, so they are read only if every lr is 0.
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
        """Return every group with its schedule, even if `param_groups` was replaced."""
        if [id(group) for group, _ in self._known] != list(map(id, self.param_groups)):
            self._follow_groups()
        return self._known

    def _follow_groups(self) -> None:
        """Find the schedules of the groups that a trainer put into `param_groups`."""
        self._known = follow(
            self.param_groups,
            self._known,
            schedule=self._schedule,
            defaults=self.defaults,
            check=self._check,
        )
        self._applied = ()

    @property
    def schedules(self) -> tuple[Schedule | None, ...]:
        """Each group's schedule; None if `lr` is left to you or a torch scheduler."""
        return tuple(schedule for _, schedule in self._scheduled_groups())

    @property
    def cycle(self) -> Cycle | None:
        """The cycle of the next update; None without `schedule`."""
        return self._cycle_of(0)

    @property
    def cycle_ended(self) -> bool:
        """Whether the update just made was the last of its cycle: these are weights to keep."""
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
                "The groups must all be in one cycle for `cycle` and `cycle_ended`, got several. "
                "Ask for one group: opt.schedules[0].cycle(opt.param_groups[0]['updates'])."
            )
        return cycle

    def scheduler(self) -> LRScheduler:
        """Return a scheduler that changes nothing, for a trainer that requires one."""
        return NoopScheduler(self)

    def rebase(self, lr: float | Sequence[float]) -> None:
        """Change α and leave λ and η alone. Pass one number, or one number per group.

        A torch scheduler remembers the α it was built with: rebase first, then build it.
        """
        values = rebased(self.param_groups, lr)
        etas = [float(g["lr"]) / g["base"] if g["base"] else 1.0 for g in self.param_groups]
        for group, value in zip(self.param_groups, values, strict=True):
            group["base"] = value
        if not isinstance(lr, Sequence):
            self.defaults["base"] = values[0]
        write_rates(self.param_groups, [v * eta for v, eta in zip(values, etas, strict=True)])
        self._count(0)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a saved state, keeping its dtypes and copying into existing tensors.

        A state that does not fit is refused before anything is changed.
        """
        load_into(self, state_dict)

    def __repr__(self) -> str:
        lines = [f"    schedules: {self.schedules}", ")"]
        return super().__repr__().removesuffix(")") + "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        own = {"_schedule": self._schedule, "_known": self._scheduled_groups()}
        return {**super().__getstate__(), **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "differentiable" not in self.param_groups[0]:
            del self.defaults["differentiable"]  # added by torch; new groups would differ
