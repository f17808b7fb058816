"""Where the cells of a landscape are on a pair of axes: λ along x and α upward.

Cells are at whole numbers, in the order of their settings. A decay of 0 is a column of its own,
separated by a gap, because 0 has no place on a scale of powers. Scattered settings, as in a random
search, are dots between powers of two.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from matplotlib.patches import Circle, Patch, Rectangle

from weightdecay.number_format import power, shared_base
from weightdecay.results import Landscape

#: The width of the gap between a decay of 0 and the others.
GAP = 0.4
_DOT = 0.22  # the radius of a scattered setting


@dataclass(frozen=True)
class CellPositions:
    """The positions of a landscape's settings, in units of a cell."""

    landscape: Landscape

    @cached_property
    def scattered(self) -> bool:
        """Whether its settings are drawn as dots."""
        return self.landscape.scattered

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Return the learning rates of the rows."""
        lrs = self.landscape.lrs
        return _powers(lrs) if self.scattered else lrs

    @cached_property
    def powers(self) -> tuple[float, ...]:
        """Return the decays of the columns, without 0."""
        decays = tuple(decay for decay in self.landscape.decays if decay > 0)
        return _powers(decays) if self.scattered else decays

    @property
    def without(self) -> bool:
        """Whether there is a column for a decay of 0."""
        return 0.0 in self.landscape.decays

    @property
    def left(self) -> float:
        """Return where the leftmost column begins."""
        return -0.5 - (1 + GAP) * self.without

    @property
    def width(self) -> float:
        """Return how many cells wide it is, the gap included."""
        return len(self.powers) - 0.5 - self.left

    @property
    def height(self) -> int:
        """Return how many cells high it is."""
        return len(self.rates)

    @property
    def along(self) -> list[str]:
        """Return the labels under the columns, without that of decay 0."""
        return _written(self.powers)

    @property
    def upward(self) -> list[str]:
        """Return the labels beside the rows."""
        return _written(self.rates)

    def x(self, decay: float) -> float:
        """Return the position of a decay, between cells if its value is between theirs."""
        return place(decay, self.powers) if decay > 0 else -1 - GAP

    def y(self, lr: float) -> float:
        """Return the position of a learning rate."""
        return place(lr, self.rates)

    def boxes(self, cells: Iterable[tuple[float, float]], side: float = 1.0) -> Sequence[Patch]:
        """Return the squares of cells, or dots, each named by its learning rate and decay."""
        if self.scattered:
            return [Circle((self.x(decay), self.y(lr)), _DOT * side) for lr, decay in cells]
        half = side / 2
        return [
            Rectangle((self.x(decay) - half, self.y(lr) - half), side, side) for lr, decay in cells
        ]


def _powers(values: Sequence[float]) -> tuple[float, ...]:
    """Return the powers of two from below the lowest to above the highest value."""
    first, last = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
    return tuple(2.0**exponent for exponent in range(first, last + 1))


def _written(settings: Sequence[float]) -> list[str]:
    base = shared_base(settings) or 1.0
    return [power(setting / base) for setting in settings]


def place(value: float, settings: Sequence[float]) -> float:
    """Return a value's position among increasing settings, which are at 0, 1, 2 and so on."""
    if len(settings) < 2:
        return math.log2(value / settings[0])
    low = 0
    while low < len(settings) - 2 and value >= settings[low + 1]:
        low += 1
    return low + math.log(value / settings[low]) / math.log(settings[low + 1] / settings[low])
