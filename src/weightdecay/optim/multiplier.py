"""η of the next update, read from a group's `lr`.

A step reads η as lr/base. So an `lr` or a `weight_decay` that something else wrote is an error: it
would change the schedule or the decay without anybody noticing.
"""

import math

from weightdecay.optim.rates import Group, check_decay, coming_of, normalized_of
from weightdecay.schedules import Schedule

# How far `lr` may be from the expected value before we conclude that something else set it. This
# allows for a float32 lr, a scheduler's chained products, and another platform's cosine near zero.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9


def multiplier_of(group: Group, schedule: Schedule | None) -> float:
    """Return η of a group's next update; raise if something else changed `lr` or the decay."""
    lr, base = float(group["lr"]), group["base"]
    expected, decay = coming_of(group, schedule, group["updates"])
    if not math.isclose(lr, expected, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE * base):
        raise RuntimeError(
            f"`lr` must be {expected:g} for update {group['updates']}, as the schedule says, "
            f"got {lr:g}: something else set it, or it was saved under another schedule. "
            "If a trainer requires a scheduler, give it `opt.scheduler()`. To change α, or to "
            "switch to this schedule, call `opt.rebase(lr)`. To use a torch scheduler, build the "
            "optimizer without `schedule`."
        )
    if schedule is None and not 0 <= lr <= base * (1 + _RELATIVE):
        raise RuntimeError(
            f"`lr` must be at least 0 and at most {base:g}, the lr this optimizer was built "
            f"with, got {lr:g}: the decay is scaled by lr over that. Build the optimizer with "
            "the scheduler's largest lr. To change α by hand, call `opt.rebase(lr)`."
        )
    multiplier = lr / base if base else 1.0
    if decay is not None:
        _check_decay_used(group, decay, multiplier)
    return multiplier


def _check_decay_used(group: Group, expected: float, multiplier: float) -> None:
    check_decay(group)
    found = group["weight_decay"]
    if not math.isclose(found, expected, rel_tol=_RELATIVE):
        raise RuntimeError(
            f"`weight_decay` must be {expected:g} for update {group['updates']}, as "
            f"{normalized_of(group)} says, got {found:g}: something else set it, "
            "or it was saved under another schedule. To set it by hand, build the optimizer with "
            "a number."
        )
    if not found * multiplier < 1:
        raise RuntimeError(
            f"`weight_decay` times the schedule's multiplier must be below 1, got {found:g} "
            f"times {multiplier:g}. Lower one of them."
        )
