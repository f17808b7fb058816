"""A value to use, and a range about it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """A value to use, and a range about it, which is the value alone if there is none.

    On a grid, the expected error in the range is at most 2 % above the lowest, with the other knob
    at its recommended value. For scattered settings, it is an interval of the best value.
    """

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "Range":
        """Return the range in another unit."""
        return Range(self.value * factor, self.low * factor, self.high * factor)
