"""Groups that others put into `param_groups`: which schedule each goes on with.

Trainers assign a list of their own, as Lightning's BaseFinetuning does when it resumes; others
reorder it, or take groups away. A schedule is in no group, so it must be found again.
"""

from collections.abc import Callable

from weightdecay.optim.rates import OURS, Group, Scheduled
from weightdecay.schedules import Schedule


def follow(
    groups: list[Group],
    known: Scheduled,
    *,
    schedule: Schedule | None,
    defaults: Group,
    check: Callable[[Group], None],
) -> Scheduled:
    """Return the groups as they are now, each with its schedule; raise for one that is not ours.

    `known` are those of before; `schedule` and `defaults` are the optimizer's own.
    """
    before = {id(group): (group, schedule) for group, schedule in known}
    followed = []
    for group in groups:
        if id(group) in before:
            followed.append(before[id(group)])
            continue
        _check_complete(group, defaults)
        found = _schedule_of(group, known, schedule)
        check(group)
        group["scheduled"] = found is not None
        followed.append((group, found))
    return followed


def _check_complete(group: Group, defaults: Group) -> None:
    """Raise unless a group that others put into `param_groups` has all that a step needs."""
    needed = {*defaults, *OURS, "params"}
    if "l2" in group:
        needed -= {"weight_decay", "normalized"}
    elif "weight_decay" in group:
        needed -= {"l2"}
    if missing := sorted(needed - group.keys()):
        raise ValueError(
            "A group in `param_groups` must have all that `add_param_group` gives it, got one "
            f"without {', '.join(map(repr, missing))}. Call opt.add_param_group(group) instead of "
            "changing the list."
        )


def _schedule_of(group: Group, known: Scheduled, default: Schedule | None) -> Schedule | None:
    """Return the schedule of a group that others put into `param_groups`.

    It is that of the group which had these parameters before, or else the optimizer's own.
    """
    params = set(map(id, group["params"]))
    found = [s for old, s in known if not params.isdisjoint(map(id, old["params"]))]
    schedule = found[0] if found else default if group["scheduled"] else None
    if any(other != schedule for other in found):
        raise ValueError(
            "A group in `param_groups` must keep to parameters of one schedule, got several: "
            f"{', '.join(map(str, found))}. Keep their groups apart."
        )
    if group["scheduled"] and schedule is None:
        raise ValueError(
            "A group in `param_groups` that was scheduled must find its schedule here, got none: "
            "its lr would stay where it was. Build with the same `schedule`."
        )
    return schedule
