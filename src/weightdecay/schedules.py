"""Schedules: from the number of an update to its multiplier η, and to the cycle it is in.

A schedule is a frozen value and a pure function. `schedule(t)` is η for the update numbered
t = 0, 1, 2, … (Algorithms 1 and 2 of Loshchilov & Hutter count the same updates from 1), and
`schedule.cycle(t)` says which cycle that update belongs to. Everything is counted in updates,
never in epochs: a schedule does not know how large an epoch is.

The first update of every cycle has η = high exactly. η = low would be reached by the update after
the cycle's last one, which is the first of the next cycle: so the solution to keep is the one
*after* the last update of a cycle.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from weightdecay import checks


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """A stretch of updates from `start` on; `length` is None where it never ends."""

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
        """Return the cycle of update `t`: the whole run, unless the schedule knows better."""
        _update(t)
        return Cycle(index=0, start=0, length=None)


@dataclass(frozen=True)
class Constant(Schedule):
    """η = 1 throughout."""

    def __call__(self, t: int) -> float:
        _update(t)
        return 1.0


@dataclass(frozen=True)
class StepDrop(Schedule):
    """η is multiplied by `drop` at each update listed in `at`."""

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


@dataclass(frozen=True)
class Cosine(Schedule):
    """One cycle: η falls from 1 to `low` over `steps` updates, and stays at `low` after them.

    An optimizer that makes more updates where `low` is 0 warns once: they train nothing.
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


@dataclass(frozen=True)
class WarmRestarts(Schedule):
    """Cosine cycles, each `factor` times as long as the one before: SGDR, and the R of AdamWR.

    Cycle i has ⌊first · factorⁱ + ½⌋ updates, in exact rational arithmetic: a float `factor` means
    the decimal number it prints as. `first` may also list the lengths of the first few cycles;
    those after them grow by `factor` from the last one listed.

    `high` and `low` are the paper's η_max and η_min: a number for all cycles, a sequence with one
    number a cycle (the last one holds for all later cycles), or a function of the cycle's index.
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
        _growth(self.factor)
        for name in ("high", "low"):
            object.__setattr__(self, name, _settled(name, getattr(self, name)))
        listed = [len(value) for value in (self.high, self.low) if isinstance(value, tuple)]
        for index in range(max(listed, default=1)):
            self._range(index)

    @classmethod
    def from_budget(
        cls,
        steps: int,
        *,
        cycles: int,
        factor: float | Fraction = 2,
        high: PerCycle = 1.0,
        low: PerCycle = 0.0,
    ) -> "WarmRestarts":
        """Divide `steps` updates into `cycles` cycles, so that the run ends where a cycle ends.

        Every length is within one update of the exact proportion. The paper suggests a first cycle
        of 1 % to 10 % of the budget: with `factor` 2 that is 4 to 6 cycles.
        """
        checks.whole("steps", steps, at_least=1)
        checks.whole("cycles", cycles, at_least=1)
        growth = _growth(factor)
        powers = [growth**index for index in range(cycles)]
        ends = [_round(steps * part / sum(powers)) for part in accumulate(powers)]
        lengths = tuple(end - start for start, end in pairwise([0, *ends]))
        if min(lengths) < 1:
            raise ValueError(
                f"`steps` must leave every cycle an update, got {steps!r} for {cycles} cycles of "
                f"factor {factor}. Ask for fewer cycles, or a smaller factor."
            )
        return cls(lengths, factor=factor, high=high, low=low)

    def __call__(self, t: int) -> float:
        cycle = self.cycle(t)
        assert cycle.length is not None
        high, low = self._range(cycle.index)
        return _anneal(t - cycle.start, cycle.length, high=high, low=low)

    def cycle(self, t: int) -> Cycle:
        return _restart(self.first, self.factor, _update(t))

    def _range(self, index: int) -> tuple[float, float]:
        high, low = _of_cycle("high", self.high, index), _of_cycle("low", self.low, index)
        if not low <= high:
            raise ValueError(
                f"`low` must be at most `high`, got {low!r} above {high!r} in cycle {index}."
            )
        return high, low


@dataclass(frozen=True)
class Warmup(Schedule):
    """η rises linearly over `steps` updates to where `then` begins, which follows.

    Warm-up update t has (t + 1)/(steps + 1) of `then`'s first η, so it is never 0. It comes before
    the first cycle and does not count in its length.
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


@dataclass(frozen=True)
class Custom(Schedule):
    """Any function of t: the paper's SetScheduleMultiplier. It must be pure.

    If the function has a method `cycle(t)` that returns a `Cycle`, that is used too.
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
    """Return a schedule as it is, and a function of t as a schedule."""
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, type) or not callable(schedule):
        raise TypeError(f"`{name}` must be a schedule or a function of t, got {schedule!r}.")
    return Custom(schedule)


def cycles(schedule: Schedule, steps: int) -> Iterator[Cycle]:
    """Yield the cycles that begin within the first `steps` updates."""
    cycle = schedule.cycle(0)
    while cycle.start < steps:
        yield cycle
        if cycle.end is None or (following := schedule.cycle(cycle.end)) == cycle:
            return
        cycle = following


def _anneal(t: int, length: int, *, high: float, low: float) -> float:
    # cos²(x/2) is (1 + cos x)/2 without its cancellation near x = π; it is exactly 1 at t = 0.
    share = math.cos(math.pi * t / (2 * length)) ** 2
    return high * share + low * (1 - share)


def _restart(first: int | Sequence[int], factor: float | Fraction, t: int) -> Cycle:
    listed = (first,) if isinstance(first, int) else tuple(first)
    start, last = sum(listed[:-1]), listed[-1]
    if factor == 1 and t >= start:
        repeat = (t - start) // last
        index = len(listed) - 1 + repeat
        return Cycle(index=index, start=start + repeat * last, length=last)
    count = 8
    while (ends := _ends(listed, factor, count))[-1] <= t:
        count *= 2
    index = bisect_right(ends, t)
    start = ends[index - 1] if index else 0
    return Cycle(index=index, start=start, length=ends[index] - start)


@lru_cache(maxsize=256, typed=True)  # Fraction(1.7) == 1.7, and they are not the same factor
def _ends(listed: tuple[int, ...], factor: float | Fraction, count: int) -> tuple[int, ...]:
    """Return where the first cycles end: found in order, never by a logarithm."""
    growth = _growth(factor)
    lengths = [*listed, *(_round(listed[-1] * growth**n) for n in range(1, count))]
    return tuple(accumulate(lengths))


def _growth(factor: float | Fraction) -> Fraction:
    checks.number("factor", factor, at_least=1, cure="With 1 all cycles are equally long.")
    return Fraction(str(factor))


def _round(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def _settled(name: str, setting: PerCycle) -> PerCycle:
    if callable(setting):
        return setting
    if isinstance(setting, Sequence):
        values = _listed(name, setting)
        return tuple(checks.number(name, value, at_least=0) for value in values)
    return checks.number(name, setting, at_least=0)


def _of_cycle(name: str, setting: PerCycle, index: int) -> float:
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
