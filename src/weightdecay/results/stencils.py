"""Predictions of a cell's value by the cells around it, each a weighted sum of their values.

    line     between the nearest two on opposite sides: along a row, a column or a diagonal
    beyond   on from the nearest two on one side
    block    along a row or column, bent as the next row or column is; or as those on both sides are
    next     a neighbour's own value, at an edge of the grid alone: a cliff may begin there

A block's prediction is exact if the learning rate and the decay contribute separate terms, whatever
these are: the residuals are noise and interaction. Grids may have holes and half steps: neighbours
are the nearest cells that exist, at most two steps away.
"""

import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import pairwise
from statistics import median
from typing import TypeAlias

import numpy as np
from scipy.spatial import KDTree

from weightdecay.results.estimate import Array
from weightdecay.results.index_rows import Indices, grouped, padded, without_padding
from weightdecay.results.noise import Flags

Place: TypeAlias = tuple[float, float]
_Weights: TypeAlias = dict[int, float]
#: How far neighbours may be, in steps of the grid along each axis.
REACH = 2.0
_ROUNDING = 1e-6  # in doublings: settings that are closer differ by rounding alone
_MOST = 8  # the most cells in one prediction
_NONE: Indices = np.empty(0, dtype=np.intp)
_STEEPEST = 3.0  # above this weight, two cells are too close together to extrapolate from


class Kind(IntEnum):
    """How a prediction is made."""

    LINE = 0
    BEYOND = 1
    BLOCK = 2
    NEXT = 3


@dataclass(frozen=True)
class Stencils:
    """Predictions of `cells` from `others` with `weights`, whose rows are padded with zeros.

    `places` are the places of the cells, in steps of the grid. `pairs` are neighbours in a row or a
    column, `slopes` their distances, and `upward` says which pairs lie in a column.
    """

    places: Array
    cells: Indices
    others: Indices
    weights: Array
    kinds: Indices
    pairs: Indices
    slopes: Array
    upward: Flags

    def predicted(self, values: Array) -> Array:
        """Return all predictions; NaN if one of the values needed is NaN."""
        needed = np.where(self.weights != 0, values[self.others], 0)
        sums: Array = (self.weights * needed).sum(1)
        return sums

    @cached_property
    def own(self) -> Indices:
        """Return, for each cell, its predictions, without those of kind NEXT."""
        kept = np.flatnonzero(self.kinds != Kind.NEXT)
        return grouped(self.cells[kept], kept, len(self.places))

    @cached_property
    def blocks(self) -> Indices:
        """Return the predictions that are blocks."""
        return np.flatnonzero(self.kinds == Kind.BLOCK)

    @cached_property
    def inside(self) -> Indices:
        """Return, for each cell, the blocks that contain it."""
        members = np.column_stack([self.others, self.cells])[self.blocks]
        blocks = np.broadcast_to(self.blocks[:, None], members.shape)
        cells, found = np.unique(np.stack([members.ravel(), blocks.ravel()]), axis=1)
        return grouped(cells, found, len(self.places))

    @cached_property
    def nearby(self) -> Indices:
        """Return, for each cell, the blocks of cells around it that do not contain it."""
        of_cell = without_padding(grouped(self.cells[self.blocks], self.blocks, len(self.places)))
        near = (
            np.concatenate([of_cell[other] for other in around]) for around in self.around(REACH)
        )
        rows = zip(near, without_padding(self.inside), strict=True)
        return padded([np.setdiff1d(some, own) for some, own in rows])

    @cached_property
    def paired(self) -> tuple[Indices, Indices]:
        """Return, for each cell, the pairs among its direct neighbours: in columns, and in rows."""
        count = len(self.places)
        starting = without_padding(grouped(self.pairs[:, 0], np.arange(len(self.pairs)), count))
        found = []
        for cell, around in enumerate(self.around(1.0)):
            near = around[around != cell]
            begun = np.concatenate([starting[other] for other in near] or [_NONE])
            found.append(np.sort(begun[np.isin(self.pairs[begun, 1], near)]))
        return padded([one[self.upward[one]] for one in found]), padded(
            [one[~self.upward[one]] for one in found]
        )

    def around(self, reach: float) -> list[Indices]:
        """Return, for each cell, those within `reach` steps of it along both axes, itself too."""
        limit = reach + 1e-6
        near = KDTree(self.places).query_ball_point(self.places, 2 * limit, p=np.inf)
        return [
            np.sort(some)[np.abs(self.places[np.sort(some)] - self.places[cell]).max(1) <= limit]
            for cell, some in enumerate(map(np.array, near))
        ]


@lru_cache(maxsize=32)
def stencils(places: tuple[Place, ...], bounded: tuple[bool, ...]) -> Stencils:
    """Return all predictions for cells at these places, in steps of the grid.

    Cells at λ = 0 are `bounded`: no cliff can begin below them.
    """
    lines = _Lines(places)
    made = [
        (cell, kind, weights)
        for cell in range(len(places))
        for kind, weights in _predictions(lines, cell, bounded=bounded[cell])
    ]
    others = np.zeros((len(made), _MOST), dtype=np.intp)
    parts = np.zeros((len(made), _MOST))
    for row, (cell, _, weights) in enumerate(made):
        others[row] = cell
        others[row, : len(weights)] = list(weights)
        parts[row, : len(weights)] = list(weights.values())
    pairs = [
        (cell, above[0][1], axis, above[0][0])
        for cell in range(len(places))
        for axis in (0, 1)
        if (above := lines.near(cell, axis)[1])
    ]
    return Stencils(
        places=np.array(places, dtype=np.float64).reshape(-1, 2),
        cells=np.array([cell for cell, _, _ in made], dtype=np.intp),
        others=others,
        weights=parts,
        kinds=np.array([kind for _, kind, _ in made], dtype=np.intp),
        pairs=np.array([pair[:2] for pair in pairs], dtype=np.intp).reshape(-1, 2),
        slopes=np.array([apart for *_, apart in pairs], dtype=np.float64),
        upward=np.array([axis == 0 for _, _, axis, _ in pairs], dtype=np.bool_),
    )


def in_steps(cells: Sequence[Place]) -> tuple[Place, ...]:
    """Return the places of learning rates and decays, in steps of their grid.

    λ = 0 is one step below the lowest other decay.
    """
    lowest = min((decay for _, decay in cells if decay > 0), default=1.0)
    across, along = usual_steps(cells)
    return tuple(
        (math.log2(lr) / across, math.log2(decay or lowest) / along - (decay == 0))
        for lr, decay in cells
    )


def usual_steps(cells: Iterable[Place]) -> tuple[float, float]:
    """Return the usual distance, in doublings, of neighbouring learning rates and decays.

    It is 1 if no two cells share a decay, or a rate.
    """
    columns: dict[float, list[float]] = {}
    rows: dict[float, list[float]] = {}
    for lr, decay in cells:
        columns.setdefault(decay, []).append(math.log2(lr))
        if decay > 0:
            rows.setdefault(lr, []).append(math.log2(decay))
    across, along = (_usual(gathered.values()) for gathered in (columns, rows))
    return across, along


def _usual(lines: Iterable[list[float]]) -> float:
    gaps = [after - before for line in lines for before, after in pairwise(sorted(line))]
    return median(wide) if (wide := [gap for gap in gaps if gap > _ROUNDING]) else 1.0


class _Lines:
    """Cells by row, by column and by place."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = [(round(x, 3), round(z, 3)) for x, z in places]
        self._at = {place: cell for cell, place in enumerate(self.places)}
        self._lines: tuple[dict[float, list[float]], ...] = ({}, {})
        for place in sorted(self.places):
            for axis in (0, 1):
                self._lines[axis].setdefault(place[1 - axis], []).append(place[axis])

    def at(self, x: float, z: float) -> int | None:
        return self._at.get((round(x, 3), round(z, 3)))

    def near(self, cell: int, axis: int) -> tuple[list[tuple[float, int]], ...]:
        """Return neighbours below and above along an axis, nearest first: distances and cells."""
        here = self.places[cell][axis]
        line = self._lines[axis][self.places[cell][1 - axis]]
        at = bisect(line, here)
        found = []
        for values in (line[: at - 1][::-1], line[at:]):
            close = [value for value in values if abs(value - here) <= REACH + 1e-6]
            found.append([(abs(value - here), self._beside(cell, axis, value)) for value in close])
        return tuple(found)

    def _beside(self, cell: int, axis: int, value: float) -> int:
        x, z = self.places[cell]
        return self._at[(value, z) if axis == 0 else (x, value)]


def _predictions(lines: _Lines, cell: int, *, bounded: bool) -> Iterator[tuple[Kind, _Weights]]:
    x, z = lines.places[cell]
    near = [lines.near(cell, axis) for axis in (0, 1)]
    sides = [side for both in near for side in both]
    for sign in (1, -1):
        for way in (1, -1):
            steps = ((lines.at(x + way * n, z + way * sign * n)) for n in (1, 2))
            sides.append([(float(n), at) for n, at in enumerate(steps, 1) if at is not None])
    edge = False
    for number, (below, above) in enumerate(zip(sides[::2], sides[1::2], strict=True)):
        if below and above:
            yield Kind.LINE, _between(below[0], above[0])
        edge |= bool(below) != bool(above) and not (bounded and number > 0)
        for (first, one), (second, other) in (side[:2] for side in (below, above) if side[1:]):
            weight = second / (second - first)
            if weight <= _STEEPEST:
                yield Kind.BEYOND, {one: weight, other: 1 - weight}
    for axis in (0, 1):
        yield from ((Kind.BLOCK, weights) for weights in _blocks(lines, axis, near))
    beside = [side[0][1] for side in sides if side] if edge else [s[0][1] for s in near[1] if s]
    if edge or bounded:
        yield from ((Kind.NEXT, {other: 1.0}) for other in beside)


def _between(below: tuple[float, int], above: tuple[float, int]) -> _Weights:
    (down, one), (up, other) = below, above
    return {one: up / (down + up), other: down / (down + up)}


def _blocks(
    lines: _Lines, axis: int, near: Sequence[tuple[list[tuple[float, int]], ...]]
) -> Iterator[_Weights]:
    """Yield the line along an axis, corrected by the residual of a parallel line on each side."""
    if not all(near[axis]):
        return
    below, above = near[axis]
    line = _between(below[0], above[0])
    bent = []
    for side in near[1 - axis]:
        for apart, beside in side[:1]:
            off = _moved(lines, line, lines.places[beside], axis)
            if off is not None:
                bent.append((apart, {beside: 1.0, **off}))
                yield _sum((1.0, line), (1.0, bent[-1][1]))
    if len(bent) == 2 and axis == 0:  # it is the same along the other
        (down, one), (up, other) = bent
        yield _sum((1.0, line), (up / (down + up), one), (down / (down + up), other))


def _moved(lines: _Lines, line: _Weights, to: Place, axis: int) -> _Weights | None:
    """Return a line moved to another row or column, with negative weights; None if it has holes."""
    moved: _Weights = {}
    for cell, weight in line.items():
        x, z = lines.places[cell]
        at = lines.at(x, to[1]) if axis == 0 else lines.at(to[0], z)
        if at is None:
            return None
        moved[at] = -weight
    return moved


def _sum(*parts: tuple[float, _Weights]) -> _Weights:
    total: _Weights = {}
    for factor, weights in parts:
        for cell, weight in weights.items():
            total[cell] = total.get(cell, 0.0) + factor * weight
    return total
