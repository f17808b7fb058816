"""The schedules of groups that a trainer put into `param_groups`.

Some trainers assign a new list, as Lightning's BaseFinetuning does when it resumes; others reorder
the list or remove groups. Groups do not hold their schedule, so it has to be found again.
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
    """Return the current groups, each with its schedule; raise if a group is incomplete.

    `known` are the groups before the change; `schedule` and `defaults` are the optimizer's.
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
    """Raise unless a new group in `param_groups` has every key that a step needs."""
    needed = {*defaults, *OURS, "params"}
    if "l2" in group:
        needed -= {"weight_decay", "normalized"}
    elif "weight_decay" in group:
        needed -= {"l2"}
    if missing := sorted(needed - group.keys()):
        raise ValueError(
            "A group in `param_groups` must have all keys that `add_param_group` sets, got one "
            f"without {', '.join(map(repr, missing))}. Call opt.add_param_group(group) instead of "
            "changing the list."
        )


def _schedule_of(group: Group, known: Scheduled, default: Schedule | None) -> Schedule | None:
    """Return the schedule of a new group in `param_groups`.

    It is the schedule of the group that had these parameters before, or else the optimizer's.
    """
    params = set(map(id, group["params"]))
    found = [s for old, s in known if not params.isdisjoint(map(id, old["params"]))]
    schedule = found[0] if found else default if group["scheduled"] else None
    if any(other != schedule for other in found):
        raise ValueError(
            "A group in `param_groups` must have parameters of one schedule, got several: "
            f"{', '.join(map(str, found))}. Put them into separate groups."
        )
    if group["scheduled"] and schedule is None:
        raise ValueError(
            "A group in `param_groups` that had a schedule must get one here, got none: its lr "
            "would never change. Build the optimizer with the same `schedule`."
        )
    return schedule
