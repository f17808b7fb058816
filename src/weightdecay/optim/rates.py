"""α, η and λ in a parameter group: checked when set, and written where loggers read them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weightdecay import checks
from weightdecay.decay import Decay, Normalized, checked_weight_decay, meant_as_torchs
from weightdecay.schedules import Schedule

Group: TypeAlias = dict[str, Any]
#: α·η and λ of an update; λ is None if the algorithm does not decay weights.
Coming: TypeAlias = tuple[float, float | None]
#: α·η and λ·η of a group.
Rate: TypeAlias = tuple[float, float]
#: The rates of several updates, [update, group, 2].
Rates: TypeAlias = NDArray[np.float64]
#: Every group with its schedule; None if `lr` is left to the user or a torch scheduler.
Scheduled: TypeAlias = list[tuple[Group, Schedule | None]]

#: Keys that this package adds to a group, in addition to its optimizer's arguments.
OURS = {"base", "updates", "scheduled", "normalized"}


class Applied(NamedTuple):
    """The numbers an update used: t, α·η, λ·η, and the L2 factor, which η does not scale."""

    update: int
    lr: float
    decay: float
    l2: float


#: The start of the warning that a decay was probably meant as torch's.
TORCHS = "`weight_decay` looks like torch's"


def checked_lr(lr: object) -> float:
    """Return α as a float; raise if it is not a valid learning rate."""
    if isinstance(lr, Tensor):
        if lr.numel() != 1 or lr.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                "`lr` must be a number or a float32 or float64 tensor of one element, got a tensor "
                f"of {lr.dtype} and shape {tuple(lr.shape)}."
            )
        lr = lr.item()
    return checks.number("lr", lr, at_least=0)


def check_decay(group: Group) -> None:
    """Raise unless a group's λ is valid, and its α is above 0 if the weights decay."""
    if "weight_decay" not in group:
        return
    if group["normalized"] is None:
        group["weight_decay"] = checked_weight_decay(group["weight_decay"])
    if group["base"] == 0 and group["weight_decay"] != 0:
        raise ValueError(
            f"`lr` must be above 0 if weights decay, got {group['base']!r} with weight_decay "
            f"{group['weight_decay']!r}. The decay is scheduled by η = lr/base, which needs an lr "
            "above 0. To decay without learning, use a tiny lr."
        )


def set_base(
    group: Group, schedule: Schedule | None, others: Scheduled, *, has_own_lr: bool
) -> None:
    """Set a new group's α; `others` are the optimizer's groups so far."""
    lr = group["lr"]
    if not isinstance(lr, Tensor):
        group["base"] = checked_lr(lr) if has_own_lr else group["base"]
        group["lr"] = group["base"]
        return
    # If another group shares this tensor, it already holds α·η: α comes from that group.
    for other, its_schedule in others:
        if other["lr"] is lr:
            group["base"] = other["base"]
            if its_schedule != schedule:
                group["lr"] = lr.clone()
            return
    group["base"] = checked_lr(lr)


def rebased(groups: list[Group], lr: float | Sequence[float]) -> list[float]:
    """Return the new α of each group, checked together with its decay."""
    bases = {group["base"] for group in groups}
    if not isinstance(lr, Sequence) and len(bases) > 1:
        raise ValueError(
            f"`lr` must be one number per group, since the groups have different ones "
            f"({sorted(bases)}), got {lr!r}. Pass a list."
        )
    values = list(lr) if isinstance(lr, Sequence) else [lr] * len(groups)
    if len(values) != len(groups):
        raise ValueError(
            f"`lr` must be a number or one number per group, got {len(values)} numbers for "
            f"{len(groups)} groups."
        )
    values = [checked_lr(value) for value in values]
    for group, value in zip(groups, values, strict=True):
        check_decay({**group, "base": value})
    return values


def looks_like_torchs(group: Group) -> str | None:
    """Return a warning if the given λ was probably meant as torch's weight_decay, else None.

    It was if λ is at least 0.01 and at least three times α. A `Normalized` states no λ.
    """
    if "weight_decay" not in group or group["normalized"] is not None:
        return None
    lr, weight_decay = group["base"], group["weight_decay"]
    if not meant_as_torchs(weight_decay, lr):
        return None
    return (
        f"{TORCHS}: {weight_decay:g} with lr {lr:g} halves a weight without gradients every "
        f"{Decay(weight_decay).half_life:.2g} updates at η = 1. Here weight_decay is the fraction "
        "of a weight removed in one update, whatever lr is. To decay as torch.optim.AdamW does, "
        f"pass weight_decay = lr * {weight_decay:g} = {lr * weight_decay:g}. If you did mean "
        f"{weight_decay:g}, ignore this warning."
    )


def parts(weight_decay: object) -> tuple[float, float, int | None] | None:
    """Return the fields of a `Normalized` as plain numbers; None for anything else."""
    if not isinstance(weight_decay, Normalized):
        return None
    return weight_decay.value, weight_decay.power, weight_decay.steps


def normalized_of(group: Group) -> Normalized:
    """Return the `Normalized` whose fields a group holds."""
    value, power, steps = group["normalized"]
    return Normalized(value, power=power, steps=steps)


def coming_of(group: Group, schedule: Schedule | None, t: int) -> Coming:
    """Return α·η and λ that update `t` should use.

    Without a schedule α·η is the group's `lr`; unless it is normalized, λ is its `weight_decay`.
    """
    lr, decay = float(group["lr"]), group.get("weight_decay")
    if schedule is not None:
        lr = group["base"] * checks.number(f"schedule({t})", schedule(t), at_least=0)
    if group.get("normalized") is not None:
        length = None if schedule is None else schedule.cycle(t).length
        decay = normalized_of(group).weight_decay(length)
    return lr, decay


def is_over(schedule: Schedule | None, t: int) -> bool:
    """Whether update `t` has η = 0 because the schedule's last cycle has ended."""
    if schedule is None or schedule(t) != 0:
        return False
    end = schedule.cycle(t).end
    return end is not None and end <= t


def show(groups: list[Group], coming: list[Coming]) -> None:
    """Write α·η and λ of the next update into the groups."""
    write_rates(groups, [lr for lr, _ in coming])
    for group, (_, decay) in zip(groups, coming, strict=True):
        if decay is not None:
            group["weight_decay"] = decay


def write_rates(groups: list[Group], rates: list[float]) -> None:
    """Write each group's `lr`, in place if it is a tensor.

    A tensor shared by several groups stays shared as long as their rates are equal.
    """
    written: dict[int, float] = {}
    for group, rate in zip(groups, rates, strict=True):
        if not isinstance(group["lr"], Tensor):
            group["lr"] = rate
            continue
        if written.get(id(group["lr"]), rate) != rate:
            group["lr"] = group["lr"].clone()
        written[id(group["lr"])] = rate
        group["lr"].fill_(rate)
