"""Where the errors of a landscape are lowest, and which settings are as good.

The luckiest setting of a noisy landscape is rarely the best one. Here all settings decide together:
the `field` of the errors that choices are made on gives the expected error of every setting between
the trained ones, and the best has the lowest. A bowl's lowest point would lie on the side of it
that is not a cliff; a field follows the errors up to the foot of the cliff.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import Delaunay, KDTree

from weightdecay.results.estimate import Array
from weightdecay.results.field import Field, field_of
from weightdecay.results.kriging import FEWEST, finished, near
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, mean
from weightdecay.results.ranges import Range
from weightdecay.results.stencils import usual_steps

#: A setting counts as good if its expected error is at most this share above the lowest.
AS_GOOD = 0.02
_DEEP = 2.5  # errors so many times the lowest are not used
_STEP = 0.25  # the first search has places so many doublings apart,
_MOST = 64  # or so many along an axis;
_FINE = 8  # the second has so many in one step
_SHARE = 1e-6  # of a setting that diverged in what is between, from which a place is beside it
_ROUNDING = 1e-9  # relatively, by which equal expected errors differ
_EDGE = 0.125  # a place is at an edge if one so many doublings away is beyond it
_SPAN = 2.5  # the true best is sought within so many doublings of the expected one,
_PLACES = 17  # at so many places along an axis,
_DRAWS = 200  # in so many possible truths


@dataclass(frozen=True)
class Lowest:
    """The setting with the lowest expected error, as log2 of the learning rate and the decay.

    `edge` says that it lies at the edge of the settings: what is beyond them may be better.
    """

    best: tuple[float, float]
    edge: bool
    _start: Array
    _data: tuple[Array, Array, Flags]
    _field: Field
    _region: "_Region"

    def as_good(self) -> tuple[Range, Range]:
        """Return the ranges of either knob that are as good as the best, the other unchanged.

        The expected error there is at most 2 % above the lowest.
        """
        return self._ranges(*_as_good(self._field, self._region, self._place))

    def possible(self) -> tuple[Range, Range]:
        """Return the 95 % intervals of the best learning rate and decay.

        They are those of possible truths. These may bend as sharply as a cliff begins: smooth ones
        would be too sure of where that is.
        """
        rough = field_of(*self._data, rough=True)
        return self._ranges(*_possible(rough, self._region, self._place))

    @property
    def _place(self) -> Array:
        return np.array(self.best) - self._start

    def _ranges(self, low: Array, high: Array) -> tuple[Range, Range]:
        ends = 2.0 ** np.stack([np.array(self.best), self._start + low, self._start + high], 1)
        lr, decay = (Range(*one) for one in ends.tolist())
        return lr, decay


def lowest(landscape: Landscape) -> Lowest | None:
    """Find the best setting; None if fewer than nine with a decay above 0 did not diverge."""
    settings, errors = finished(landscape, chosen=True)
    if len(settings) < FEWEST:
        return None
    scores = mean(errors)
    start = settings[int(scores.argmin())]
    away = settings - start
    used = near(away, scores, reach=math.inf, deep=_DEEP)
    found = field_of(away, errors, used)
    region = _Region(landscape, start, away[used])
    best = _descended(found, region)
    x, z = (start + best).tolist()
    beside = best + _EDGE * np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])
    data = away, errors, used
    return Lowest((x, z), not region.holds(beside).all(), start, data, found, region)


class _Region:
    """The places between settings, at which one may be recommended.

    On a grid, they are at most one step from a setting. A place beside a setting that diverged is
    not one of them: nobody knows where between the two training begins to fail.
    """

    def __init__(self, landscape: Landscape, start: Array, used: Array) -> None:
        cells = [cell for cell in landscape.cells.values() if cell.decay > 0]
        self.used = used
        settings = [(cell.lr, cell.decay) for cell in cells]
        shared = landscape.in_torch if landscape.in_torchs_decay else settings
        self._steps = np.array(usual_steps(shared))
        self._in_columns = landscape.in_columns
        every = (np.log2(settings) - start) / self._steps
        lost: Array = np.array([bool(cell.diverged) for cell in cells], dtype=np.float64)
        self._lost = _Between(every, lost) if lost.any() else None
        self._near = KDTree(used / self._steps)
        self._hull = None if _on_a_line(used) else Delaunay(used)
        ends = used - used[0]
        along = ends @ ends[np.abs(ends).sum(1).argmax()]
        self._line = used[[int(along.argmin()), int(along.argmax())]]

    def mesh(self, low: Array, high: Array, counts: tuple[int, int]) -> Array:
        """Return places of the region in a box, so many along either axis."""
        if self._hull is None:
            share = np.linspace(0, 1, max(counts) * 4)[:, None]
            line: Array = self._line[0] + share * (self._line[1] - self._line[0])
            return line[((line >= low - 1e-9) & (line <= high + 1e-9)).all(1)]
        ends = zip(low.tolist(), high.tolist(), counts, strict=True)
        axes = (np.linspace(lowest, highest, count) for lowest, highest, count in ends)
        every = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
        return every[self.holds(every)]

    def holds(self, places: Array) -> Flags:
        """Return which places are in the region."""
        inside: Flags = np.ones(len(places), dtype=np.bool_)
        if self._lost is not None:
            inside &= self._lost(places / self._steps) <= _SHARE
        if self._hull is not None:
            inside &= self._hull.find_simplex(places, tol=1e-9) >= 0
        if self._in_columns:
            inside &= self._near.query(places / self._steps, p=np.inf)[0] <= 1 + 1e-6
        return inside


class _Between:
    """Values at points, and on the straight planes between three neighbours each; else 0."""

    def __init__(self, points: Array, values: Array) -> None:
        self._values = values
        self._triangles = None if _on_a_line(points) else Delaunay(points)
        self._origin = points[0]
        ends = points - points[0]
        self._way = ends[np.abs(ends).sum(1).argmax()]
        self._along = ends @ self._way

    def __call__(self, places: Array) -> Array:
        if self._triangles is None:
            order = np.argsort(self._along, kind="stable")
            along = (places - self._origin) @ self._way
            share: Array = np.interp(along, self._along[order], self._values[order])
            return share
        found = self._triangles.find_simplex(places, tol=1e-9)
        planes = self._triangles.transform[found]
        two = np.einsum("nij,nj->ni", planes[:, :2], places - planes[:, 2])
        shares = np.column_stack([two, 1 - two.sum(1)])
        values: Array = (shares * self._values[self._triangles.simplices[found]]).sum(1)
        return np.where(found >= 0, values, 0.0)


def _on_a_line(points: Array) -> bool:
    sizes = np.linalg.svd(points - points.mean(0), compute_uv=False)
    return bool(len(sizes) < 2 or sizes[1] <= 1e-6 * sizes[0])


def _descended(found: Field, region: _Region) -> Array:
    """Return the place of the region with the lowest expected error."""
    low, high = region.used.min(0), region.used.max(0)
    first, second = (min(_MOST, math.ceil(span / _STEP) + 1) for span in high - low)
    places = np.concatenate([region.used, region.mesh(low, high, (first, second))])
    best = places[_first_lowest(found.means(places))]
    step = (high - low) / np.maximum([first - 1, second - 1], 1)
    box = np.maximum(best - step, low), np.minimum(best + step, high)
    places = np.concatenate([best[None], region.mesh(*box, (2 * _FINE + 1, 2 * _FINE + 1))])
    lower = places[_first_lowest(found.means(places))]
    return _polished(found, region, lower, step / _FINE)


def _first_lowest(means: Array) -> int:
    """Return the first of the lowest, up to rounding: trained settings come before others."""
    least = float(means.min())
    return int((means <= least + _ROUNDING * abs(least)).argmax())


def _polished(found: Field, region: _Region, best: Array, step: Array) -> Array:
    """Return the lowest point of the parabolas through a place and its neighbours, if lower."""
    moves = np.concatenate([np.zeros((1, 2)), np.diag(step), -np.diag(step)])
    moves = np.concatenate([moves, [step, -step]])
    here, *around = found.means(best + moves)
    up, down = np.array(around[:2]), np.array(around[2:4])
    slope, bend = (up - down) / 2, np.diag(up + down - 2 * here)
    mixed = (around[4] + around[5] - 2 * here - bend.trace()) / 2
    bend += mixed * np.array([[0, 1], [1, 0]])
    free = step > 0
    bend, slope = bend[np.ix_(free, free)], slope[free]
    if not np.linalg.eigvalsh(bend).min() > 0:
        return best
    off = np.zeros(2)
    off[free] = np.linalg.solve(bend, -slope)
    both = np.stack([best, best + np.clip(off, -1, 1) * step])
    lower: Array = both[_first_lowest(found.means(both))]
    return lower if region.holds(lower[None])[0] else best


def _as_good(found: Field, region: _Region, best: Array) -> tuple[Array, Array]:
    """Return the ends of what is as good as the best along either axis: the low, then the high."""
    low, high = region.used.min(0), region.used.max(0)
    ends = np.stack([best, best])
    level = float(found.means(best[None])[0])
    for axis in (0, 1):
        for row, end in enumerate((low[axis], high[axis])):
            count = max(2, math.ceil(abs(end - best[axis]) / _STEP * _FINE) + 1)
            line = np.repeat(best[None], count, 0)
            line[:, axis] = np.linspace(best[axis], end, count)
            good = region.holds(line) & (found.means(line) <= level + AS_GOOD * abs(level))
            good[0] = True
            ends[row, axis] = line[int(np.logical_and.accumulate(good).sum()) - 1, axis]
    return ends[0], ends[1]


def _possible(found: Field, region: _Region, best: Array) -> tuple[Array, Array]:
    """Return the ends of the 95 % intervals of the true best: the low, then the high."""
    places = region.mesh(best - _SPAN, best + _SPAN, (_PLACES, _PLACES))
    places = np.concatenate([best[None], places])
    drawn = found.draws(places, _DRAWS, np.random.default_rng(0))
    lows, highs = np.quantile(places[drawn.argmin(1)], [0.025, 0.975], axis=0)
    half = _SPAN / (_PLACES - 1)
    return np.minimum(lows - half, best), np.maximum(highs + half, best)
