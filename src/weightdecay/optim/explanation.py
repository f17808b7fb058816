"""What an optimizer will do to the weights, before it is run."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn

from weightdecay import checks
from weightdecay.decay import CHOOSING, Decay, Reference, checked_weight_decay
from weightdecay.optim.groups import parameter_groups
from weightdecay.optim.migrate import largest_lr
from weightdecay.optim.rates import Group, normalized_of
from weightdecay.optim.scheduled import ScheduledOptimizer
from weightdecay.schedules import Constant, Cycle, Schedule, cycles
from weightdecay.table import shown, table

_NAMED = 10  # further names are only counted


@dataclass(frozen=True)
class Stretch:
    """Updates `start` to `end` − 1, which have the same λ; `decay` is None without decay.

    `left` is the fraction of a weight that the decay alone leaves by `end`, from the run's start.
    """

    start: int
    end: int
    decay: Decay | None
    left: float


@dataclass(frozen=True)
class ExplainedGroup:
    """What happens to one parameter group.

    `scheduled` is False if there is no schedule and η is assumed to be 1. `unfinished` is the cycle
    that is cut short by the end of the run, `idle_from` the update at which a schedule ends before
    the run does.
    """

    parameters: int
    lr: float
    l2: float | None
    scheduled: bool
    stretches: tuple[Stretch, ...]
    restarts: tuple[int, ...]
    warming_up: bool
    unfinished: Cycle | None
    idle_from: int | None


@dataclass(frozen=True)
class Explanation:
    """What happens in `steps` updates, group by group; `print` shows it as a table.

    `unusual` has the names of normalization parameters and biases that decay or are regularized;
    None if no model was given. `open_ended` is True if the run's length is unknown and this is only
    its first update.
    """

    steps: int
    groups: tuple[ExplainedGroup, ...]
    unusual: tuple[str, ...] | None = None
    open_ended: bool = False

    def __str__(self) -> str:
        header = (
            *("group", "parameters", "lr", "updates", "λ", "λ_norm"),
            *("torch's weight_decay", "half-life", "left"),
        )
        rows = [row for n, group in enumerate(self.groups) for row in _rows(n, group)]
        endings = [_ending(group, self.steps) for group in self.groups]
        if len(set(endings)) == 1:
            endings = [f"all groups: {endings[0]}"]
        else:
            endings = [f"group {n}: {ending}" for n, ending in enumerate(endings)]
        if self.open_ended:
            endings.append("only the first update is shown; pass steps= to see a whole run")
        if any(group.l2 for group in self.groups):
            endings.append(
                "L2 regularization is added to the gradient: it is not a decay and has no λ"
            )
        if self.unusual is not None:
            endings.append(_who(self.unusual))
        endings.append(CHOOSING)
        return "\n".join([table([header, *rows]), *endings])


def explain(
    optimizer: torch.optim.Optimizer, model: nn.Module | None = None, *, steps: int | None = None
) -> Explanation:
    """Explain what `optimizer` does in a run of `steps` updates, counted from its first.

    For each group and cycle: λ, λ_norm, the equivalent `weight_decay` of `torch.optim.AdamW` at
    this lr, the half-life at η = 1, and the fraction of a weight that the decay alone leaves by
    then. For each group: when it restarts, and whether the run ends in the middle of a cycle.
    Without `steps` the run is the first cycle, or one update if no cycle ends. With `model`, it
    also lists the normalization layers and biases that decay.

    torch's own AdamW, Adam and SGD are explained in the same terms: λ = lr · weight_decay for
    AdamW, L2 regularization for the others. docs/choosing.md says which decay to start with, and
    when to change it.
    """
    if model is not None and not isinstance(model, nn.Module):
        raise TypeError(
            f"`model` must be a torch.nn.Module, got {model!r}. Pass the run's length as `steps=`."
        )
    pairs = list(_groups_of(optimizer))
    if steps is not None:
        checks.whole("steps", steps, at_least=1)
    ends = [schedule.cycle(0).end for _, schedule in pairs if schedule is not None]
    length = steps or max((end for end in ends if end is not None), default=None)
    explained = tuple(_explain(group, schedule, length) for group, schedule in pairs)
    unusual = None if model is None else _unusual([group for group, _ in pairs], model)
    return Explanation(length or 1, explained, unusual, open_ended=length is None)


def _groups_of(optimizer: torch.optim.Optimizer) -> Iterator[tuple[Group, Schedule | None]]:
    if isinstance(optimizer, ScheduledOptimizer):
        yield from optimizer._scheduled_groups()
        return
    if not isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)):
        raise TypeError(
            "`optimizer` must be a weightdecay optimizer, or torch's AdamW, Adam or SGD, got "
            f"{optimizer!r}."
        )
    for group in optimizer.param_groups:
        base, decay = largest_lr(group), group["weight_decay"]
        shared = {"params": group["params"], "base": base}
        is_adamw = isinstance(optimizer, torch.optim.AdamW)
        if group.get("decoupled_weight_decay", is_adamw):
            yield {**shared, "weight_decay": checked_weight_decay(base * decay)}, None
        else:
            yield {**shared, "l2": decay}, None


def _unusual(groups: list[Group], model: nn.Module) -> tuple[str, ...]:
    """Return the names of parameters that decay, but that `parameter_groups` would exclude."""
    shrinking = {
        id(param)
        for group in groups
        if group.get("weight_decay") or group.get("l2")
        for param in group["params"]
    }
    divided = parameter_groups(model, weight_decay=1.0)
    left_out = (
        member for group in divided if not group["weight_decay"] for member in group["params"]
    )
    return tuple(name for name, param in left_out if id(param) in shrinking)


def _explain(group: Group, schedule: Schedule | None, length: int | None) -> ExplainedGroup:
    followed, steps = schedule or Constant(), length or 1
    passed = list(cycles(followed, steps)) or [followed.cycle(0)]
    last = passed[-1]
    return ExplainedGroup(
        parameters=sum(param.numel() for param in group["params"]),
        lr=group["base"],
        l2=group.get("l2"),
        scheduled=schedule is not None,
        stretches=tuple(_stretches(group, followed, passed, length)),
        restarts=tuple(cycle.start for cycle in passed[1:]),
        warming_up=length is not None and last.start >= length,
        unfinished=last if last.end is not None and last.start < steps < last.end else None,
        idle_from=last.end if last.end is not None and last.end < steps else None,
    )


def _stretches(
    group: Group, schedule: Schedule, passed: list[Cycle], length: int | None
) -> Iterator[Stretch]:
    log_left = 0.0
    bounds = [0, *(cycle.start for cycle in passed[1:]), length or 1]
    stretch: Stretch | None = None
    for cycle, (start, end) in zip(passed, pairwise(bounds), strict=True):
        weight_decay = _weight_decay(group, cycle)
        if weight_decay:
            log_left += sum(_log_kept(schedule, t, weight_decay) for t in range(start, end))
        stated = group.get("normalized") and group["normalized"][2]
        run = Reference(lr=group["base"] or None, updates=stated or cycle.length or length)
        decay = Decay(weight_decay, run) if weight_decay else None
        same = stretch is not None and stretch.decay == decay
        if stretch is not None and not same:
            yield stretch
        first = stretch.start if stretch is not None and same else start
        stretch = Stretch(first, end, decay, math.exp(log_left))
    if stretch is not None:
        yield stretch


def _log_kept(schedule: Schedule, t: int, weight_decay: float) -> float:
    rate = schedule(t) * weight_decay
    if not rate < 1:
        raise ValueError(
            f"`weight_decay` times the schedule's multiplier must be below 1, got {rate:g} at "
            f"update {t}. Lower one of them."
        )
    return math.log1p(-rate)


def _weight_decay(group: Group, cycle: Cycle) -> float:
    if group.get("normalized") is not None:
        return normalized_of(group).weight_decay(cycle.length)
    weight_decay: float = group.get("weight_decay", 0.0)
    return weight_decay


def _rows(number: int, group: ExplainedGroup) -> Iterator[tuple[str, ...]]:
    for stretch in group.stretches:
        decay = stretch.decay
        values = (
            (decay.weight_decay, decay.normalized, decay.torch, decay.half_life)
            if decay
            else (None, None, group.l2 or None, None)
        )
        yield (
            str(number),
            f"{group.parameters:,}",
            f"{group.lr:g}",
            _updates(stretch.start, stretch.end - 1),
            *(shown(value, digits=4) for value in values),
            f"{stretch.left:.3g}",
        )


def _updates(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"


def _who(unusual: tuple[str, ...]) -> str:
    if not unusual:
        return "no normalization layer or bias decays"
    more = f" and {len(unusual) - _NAMED:,} more" if len(unusual) > _NAMED else ""
    return (
        f"normalization layers and biases that decay: {', '.join(unusual[:_NAMED])}{more}; "
        "parameter_groups excludes them"
    )


def _ending(group: ExplainedGroup, steps: int) -> str:
    if not group.scheduled:
        return "no weightdecay schedule; η is assumed to be 1 throughout"
    if group.warming_up:
        return "the run ends within the warm-up"
    restarts = f"restarts at {', '.join(f'{t:,}' for t in group.restarts)}"
    if not group.restarts:
        restarts = "no restarts"
    if group.idle_from is not None:
        return f"{restarts}; the last cycle ends at {group.idle_from:,}, η stays low"
    if group.unfinished is None:
        return f"{restarts}; no cycle is cut short" if group.restarts else restarts
    start, length = group.unfinished.start, group.unfinished.length
    return (
        f"{restarts}; the run ends in the middle of a cycle, after {steps - start:,} "
        f"of its {length:,} updates"
    )
