"""Where the cycles of warm restarts start and end, in exact rational arithmetic.

Cycle i has ⌊first · factorⁱ + ½⌋ updates. A float `factor` means the decimal number it prints as.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

from weightdecay import checks


def growth(factor: float | Fraction) -> Fraction:
    """Return a checked factor as an exact fraction."""
    checks.number("factor", factor, at_least=1, cure="With 1 all cycles are equally long.")
    return Fraction(str(factor))


def cycle_at(first: int | Sequence[int], factor: float | Fraction, t: int) -> tuple[int, int, int]:
    """Return (index, start, length) of the cycle that update `t` belongs to."""
    listed = (first,) if isinstance(first, int) else tuple(first)
    start, last = sum(listed[:-1]), listed[-1]
    if factor == 1 and t >= start:
        repeats = (t - start) // last
        return len(listed) - 1 + repeats, start + repeats * last, last
    count = 8
    while (ends := _ends(listed, factor, count))[-1] <= t:
        count *= 2
    index = bisect_right(ends, t)
    start = ends[index - 1] if index else 0
    return index, start, ends[index] - start


def lengths_of_budget(steps: int, cycles: int, factor: float | Fraction) -> tuple[int, ...]:
    """Divide `steps` updates into `cycles` cycles, each within one update of its exact share."""
    ratio = growth(factor)
    powers = [ratio**index for index in range(cycles)]
    ends = [_rounded(steps * part / sum(powers)) for part in accumulate(powers)]
    lengths = tuple(end - start for start, end in pairwise([0, *ends]))
    if min(lengths) < 1:
        raise ValueError(
            f"`steps` must be enough for one update per cycle, got {steps!r} for {cycles} cycles "
            f"of factor {factor}. Use fewer cycles or a smaller factor."
        )
    return lengths


@lru_cache(maxsize=256, typed=True)  # Fraction(1.7) == 1.7, but they are different factors
def _ends(listed: tuple[int, ...], factor: float | Fraction, count: int) -> tuple[int, ...]:
    """Return where the first cycles end, by adding up lengths: a logarithm could be off by one."""
    ratio = growth(factor)
    lengths = [*listed, *(_rounded(listed[-1] * ratio**n) for n in range(1, count))]
    return tuple(accumulate(lengths))


def _rounded(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))
