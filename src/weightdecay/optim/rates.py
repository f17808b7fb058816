"""α, η and λ in a parameter group: checked as they come in, written where all can read them."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weightdecay import checks
from weightdecay.decay import Decay, Normalized, checked_weight_decay
from weightdecay.schedules import Schedule

Group: TypeAlias = dict[str, Any]
#: α·η and λ of an update; λ is None where the algorithm does not decay.
Coming: TypeAlias = tuple[float, float | None]
#: A group's α·η and λ·η.
Rate: TypeAlias = tuple[float, float]
#: Those of several updates, [update, group, 2].
Rates: TypeAlias = NDArray[np.float64]
#: Every group with its schedule; None where `lr` is left to others.
Scheduled: TypeAlias = list[tuple[Group, Schedule | None]]

#: What a group holds beside its algorithm's values.
OURS = {"base", "updates", "scheduled", "normalized"}


class Applied(NamedTuple):
    """What an update used: its number t, α·η, λ·η, and the L2 factor, which η does not scale."""

    update: int
    lr: float
    decay: float
    l2: float


#: How the warning of a decay that was meant as torch's begins.
TORCHS = "`weight_decay` looks like torch's"
# λ is taken for torch's number from here on: an idle weight halves within 69 updates, and AdamW
# holds weights within about α/λ, a tenth.
_LARGE, _TIMES_LR = 0.01, 10


def checked_lr(lr: object) -> float:
    """Return α as a float, or say what it should have been."""
    if isinstance(lr, Tensor):
        if lr.numel() != 1 or lr.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                "`lr` must be a number or a float32 or float64 tensor of one element, got a tensor "
                f"of {lr.dtype} and shape {tuple(lr.shape)}."
            )
        lr = lr.item()
    return checks.number("lr", lr, at_least=0)


def check_decay(group: Group) -> None:
    """Raise unless a group's λ is one, and has an α beside it to be scheduled by."""
    if "weight_decay" not in group:
        return
    if group["normalized"] is None:
        group["weight_decay"] = checked_weight_decay(group["weight_decay"])
    if group["base"] == 0 and group["weight_decay"] != 0:
        raise ValueError(
            f"`lr` must be above 0 where weights decay, got {group['base']!r} with weight_decay "
            f"{group['weight_decay']!r}. The decay is scheduled by η = lr/base, which 0 hides: to "
            "decay without learning, use a tiny lr."
        )


def looks_like_torchs(group: Group) -> str | None:
    """Return why a number given as λ was probably meant as torch's weight_decay, or None."""
    if "weight_decay" not in group or group["normalized"] is not None:
        return None
    lr, weight_decay = group["base"], group["weight_decay"]
    if weight_decay < max(_LARGE, _TIMES_LR * lr):
        return None
    return (
        f"{TORCHS}: {weight_decay:g} with lr {lr:g} halves an idle weight every "
        f"{Decay(weight_decay).half_life:.2g} updates at η = 1. Here it is the fraction of a "
        f"weight removed in one update, whatever lr is. To decay as torch.optim.AdamW does, pass "
        f"weight_decay = lr * {weight_decay:g} = {lr * weight_decay:g}. If this is what you mean, "
        "ignore the warning."
    )


def parts(weight_decay: object) -> tuple[float, float, int | None] | None:
    """Return what a `Normalized` is made of, as plain numbers; None for anything else."""
    if not isinstance(weight_decay, Normalized):
        return None
    return weight_decay.value, weight_decay.power, weight_decay.steps


def normalized_of(group: Group) -> Normalized:
    """Return the `Normalized` that a group's parts were taken from."""
    value, power, steps = group["normalized"]
    return Normalized(value, power=power, steps=steps)


def coming_of(group: Group, schedule: Schedule | None, t: int) -> Coming:
    """Return what update `t` should have; what others set by hand is taken as it stands."""
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
    """Write α·η and λ where everyone can read them."""
    write_rates(groups, [lr for lr, _ in coming])
    for group, (_, decay) in zip(groups, coming, strict=True):
        if decay is not None:
            group["weight_decay"] = decay


def write_rates(groups: list[Group], rates: list[float]) -> None:
    """Write each group's lr, into its tensor where it has one.

    A tensor that several groups share stays shared as long as they agree.
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
