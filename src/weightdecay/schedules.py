"""Schedules: the multiplier η of each update, and the cycle that the update belongs to.

A schedule is a frozen value and a pure function. `schedule(t)` is η for the update numbered
t = 0, 1, 2, … (Algorithms 1 and 2 of Loshchilov & Hutter count the same updates from 1), and
`schedule.cycle(t)` is its cycle. Schedules count updates, never epochs: they do not know how many
updates an epoch has.

The first update of every cycle has η = high exactly. η = low would be reached one update after the
cycle's last, and that update already starts the next cycle. So the weights to keep are those
*after* the last update of a cycle.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from weightdecay import checks
from weightdecay.cycle_lengths import cycle_at, growth, lengths_of_budget


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """`length` updates, the first of them `start`; `length` is None if the cycle never ends."""

    index: int
    start: int
    length: int | None

    @property
    def end(self) -> int | None:
        """The number of the first update after this cycle."""
        return None if self.length is None else self.start + self.length


class Schedule(ABC):
    """η as a pure function of the update's number."""

    @abstractmethod
    def __call__(self, t: int) -> float:
        """Return the multiplier η of update `t`."""

    def cycle(self, t: int) -> Cycle:
        """Return the cycle of update `t`; by default the whole run is one endless cycle."""
        _update(t)
        return Cycle(index=0, start=0, length=None)


@checks.constructor
@dataclass(frozen=True)
class Constant(Schedule):
    """η = 1 throughout."""

    def __call__(self, t: int) -> float:
        _update(t)
        return 1.0


@checks.constructor
@dataclass(frozen=True)
class StepDrop(Schedule):
    """η starts at 1 and is multiplied by `drop` at each update listed in `at`."""

    at: Sequence[int]
    _: KW_ONLY
    drop: float = 0.1

    def __post_init__(self) -> None:
        at = tuple(checks.whole("at", t, at_least=1) for t in _listed("at", self.at))
        if any(later <= earlier for earlier, later in pairwise(at)):
            raise ValueError(f"`at` must be strictly increasing, got {self.at!r}.")
        object.__setattr__(self, "at", at)
        drop = checks.number("drop", self.drop, at_least=0)
        if drop > 1:
            raise ValueError(f"`drop` must be at most 1, got {self.drop!r}. It multiplies η.")
        object.__setattr__(self, "drop", drop)

    def __call__(self, t: int) -> float:
        return self.drop ** bisect_right(self.at, _update(t))


@checks.constructor
@dataclass(frozen=True)
class Cosine(Schedule):
    """One cycle: η falls from 1 to `low` over `steps` updates and then stays at `low`.

    If `low` is 0, an optimizer that makes more updates warns once: they change nothing.
    """

    steps: int
    _: KW_ONLY
    low: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", checks.whole("steps", self.steps, at_least=1))
        low = checks.number("low", self.low, at_least=0)
        if low > 1:
            raise ValueError(f"`low` must be at most 1, where the cosine starts, got {self.low!r}.")
        object.__setattr__(self, "low", low)

    def __call__(self, t: int) -> float:
        if _update(t) >= self.steps:
            return self.low
        return _anneal(t, self.steps, high=1.0, low=self.low)

    def cycle(self, t: int) -> Cycle:
        _update(t)
        return Cycle(index=0, start=0, length=self.steps)


PerCycle: TypeAlias = float | Sequence[float] | Callable[[int], float]


@checks.constructor
@dataclass(frozen=True)
class WarmRestarts(Schedule):
    """Cosine cycles, each `factor` times as long as the one before: SGDR, and the R of AdamWR.

    Cycle i has ⌊first · factorⁱ + ½⌋ updates, computed exactly: a float `factor` means the decimal
    number it prints as. `first` may also list the lengths of the first few cycles; later cycles
    then grow by `factor` from the last one listed.

    `high` and `low` are the paper's η_max and η_min: one number for all cycles, a sequence with one
    number per cycle (the last one is used for all later cycles), or a function of the cycle index.
    """

    first: int | Sequence[int]
    _: KW_ONLY
    factor: float | Fraction = 2
    high: PerCycle = 1.0
    low: PerCycle = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.first, Sequence):
            lengths = [checks.whole("first", n, at_least=1) for n in _listed("first", self.first)]
            object.__setattr__(self, "first", tuple(lengths))
        else:
            object.__setattr__(self, "first", checks.whole("first", self.first, at_least=1))
        growth(self.factor)
        for name in ("high", "low"):
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        listed = [len(value) for value in (self.high, self.low) if isinstance(value, tuple)]
        for index in range(max(listed, default=1)):
            self._range(index)

    @classmethod
    @checks.arguments
    def from_budget(
        cls,
        steps: int,
        *,
        cycles: int,
        factor: float | Fraction = 2,
        high: PerCycle = 1.0,
        low: PerCycle = 0.0,
    ) -> "WarmRestarts":
        """Divide `steps` updates into `cycles` cycles, so that the run ends with a full cycle.

        Each length is within one update of its exact share. The paper suggests a first cycle of 1 %
        to 10 % of the budget: with `factor` 2 that means 4 to 6 cycles.
        """
        checks.whole("steps", steps, at_least=1)
        checks.whole("cycles", cycles, at_least=1)
        lengths = lengths_of_budget(steps, cycles, factor)
        return cls(lengths, factor=factor, high=high, low=low)

    def __call__(self, t: int) -> float:
        cycle = self.cycle(t)
        assert cycle.length is not None
        high, low = self._range(cycle.index)
        return _anneal(t - cycle.start, cycle.length, high=high, low=low)

    def cycle(self, t: int) -> Cycle:
        index, start, length = cycle_at(self.first, self.factor, _update(t))
        return Cycle(index=index, start=start, length=length)

    def _range(self, index: int) -> tuple[float, float]:
        high, low = _at_cycle("high", self.high, index), _at_cycle("low", self.low, index)
        if not low <= high:
            raise ValueError(
                f"`low` must be at most `high`, got low {low!r} and high {high!r} in cycle {index}."
            )
        return high, low


@checks.constructor
@dataclass(frozen=True)
class Warmup(Schedule):
    """η rises linearly over `steps` updates, then the schedule `then` starts.

    Warm-up update t has η = then(0) · (t + 1)/(steps + 1), which is never 0. Warm-up comes before
    the first cycle and does not count towards its length.
    """

    steps: int
    then: Schedule | Callable[[int], float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", checks.whole("steps", self.steps, at_least=0))
        object.__setattr__(self, "then", as_schedule(self.then, name="then"))

    def __call__(self, t: int) -> float:
        if _update(t) < self.steps:
            return self.then(0) * ((t + 1) / (self.steps + 1))
        return self.then(t - self.steps)

    def cycle(self, t: int) -> Cycle:
        assert isinstance(self.then, Schedule)
        cycle = self.then.cycle(max(_update(t) - self.steps, 0))
        return replace(cycle, start=cycle.start + self.steps)


@checks.constructor
@dataclass(frozen=True)
class Custom(Schedule):
    """η from any pure function of t: the paper's SetScheduleMultiplier.

    If the function has a method `cycle(t)` that returns a `Cycle`, the cycles come from it.
    """

    function: Callable[[int], float]

    def __call__(self, t: int) -> float:
        return self.function(_update(t))

    def cycle(self, t: int) -> Cycle:
        cycle = getattr(self.function, "cycle", super().cycle)(t)
        if not isinstance(cycle, Cycle):
            raise TypeError(f"`cycle({t})` must return a weightdecay Cycle, got {cycle!r}.")
        return cycle


def as_schedule(schedule: Any, *, name: str = "schedule") -> Schedule:
    """Return a schedule unchanged; wrap a function of t in `Custom`."""
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, type) or not callable(schedule):
        kind = schedule if isinstance(schedule, type) else type(schedule)
        torchs = name == "schedule" and kind.__module__ == "torch.optim.lr_scheduler"
        instead = " A torch scheduler works without it: leave it out." * torchs
        raise TypeError(
            f"`{name}` must be a schedule or a function of t, got {schedule!r}.{instead}"
        )
    return Custom(schedule)


def cycles(schedule: Schedule, steps: int) -> Iterator[Cycle]:
    """Yield the cycles that start within the first `steps` updates."""
    cycle = schedule.cycle(0)
    while cycle.start < steps:
        yield cycle
        if cycle.end is None or (following := schedule.cycle(cycle.end)) == cycle:
            return
        cycle = following


def _anneal(t: int, length: int, *, high: float, low: float) -> float:
    # cos²(x/2) equals (1 + cos x)/2 without cancellation near x = π, and is exactly 1 at t = 0.
    share = math.cos(math.pi * t / (2 * length)) ** 2
    return high * share + low * (1 - share)


def _checked(name: str, setting: PerCycle) -> PerCycle:
    if callable(setting):
        return setting
    if isinstance(setting, Sequence):
        values = _listed(name, setting)
        return tuple(checks.number(name, value, at_least=0) for value in values)
    return checks.number(name, setting, at_least=0)


def _at_cycle(name: str, setting: PerCycle, index: int) -> float:
    if callable(setting):
        return checks.number(f"{name}({index})", setting(index), at_least=0)
    if isinstance(setting, Sequence):
        return setting[min(index, len(setting) - 1)]
    return setting


def _listed(name: str, values: Sequence[Any]) -> Sequence[Any]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise TypeError(f"`{name}` must be a sequence of numbers, got {values!r}.")
    if not values:
        raise ValueError(f"`{name}` must not be empty, got {values!r}.")
    return values


def _update(t: int) -> int:
    return checks.whole("t", t, at_least=0, cure="Updates are numbered from 0.")
