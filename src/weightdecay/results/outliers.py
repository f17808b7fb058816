"""Cells that stand out from their neighbours by more than noise explains.

Errors are compared as logarithms. A cell is as expected if it lies within the range of predictions
that `stencils` make of it: along a ridge or a cliff, at least one line is smooth. The distance
outside that range is compared with the largest of

    4 times the noise of the landscape: how far blocks of cells usually are from their predictions
    3 times the 80 % quantile of the same for blocks nearby that do not contain the cell
    half a step of the landscape's slope there: a setting's effect is no more certain than that
    3 times the standard error over seeds, if a cell has several

Outliers distort the noise and each other's predictions. So the most extreme cells are set aside one
by one, up to a tenth of all. Those up to the last that stands out from the rest are outliers
(Rosner's generalized test for many outliers, 1983). Cells beside one that diverged are not judged,
nor are corners, which lie on no line between neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weightdecay.results.estimate import Array
from weightdecay.results.landscape import Landscape
from weightdecay.results.noise import Flags, effects, mean
from weightdecay.results.stencils import Indices, Kind, Stencils, in_steps, stencils

_NOISE, _NEARBY, _SLOPE, _SEEDS = 4.0, 3.0, 0.5, 3.0
_LEAST = 0.005  # noise below half a percent of the error is treated as rounding
_FEWEST = 20  # the fewest cells to estimate noise from
_SHARE = 0.1
_HOPELESS = 1 / 3  # the search ends below this share of what is allowed
_MAD = 0.6745


@dataclass(frozen=True)
class Outlier:
    """A cell that stands out, or the run of one of its seeds.

    `error` is its error, a mean over seeds if `seed` is None. `expected` is what its neighbours
    predict, and `allowed` how far noise may take it from that.
    """

    lr: float
    decay: float
    seed: int | None
    error: float
    expected: float
    allowed: float


def outliers(landscape: Landscape) -> tuple[Outlier, ...]:
    """Return the outliers of a landscape, sorted by learning rate, decay and seed.

    A cell of several seeds is judged by their mean, and each seed by its own landscape and by the
    others in the cell. If a seed is named, its cell is not named as well. Scattered settings have
    no neighbours, so none of them is an outlier.
    """
    if not landscape.cells or landscape.scattered:
        return ()
    errors = _Errors(landscape)
    found = [
        errors.outlier(cell, seed, expected, allowed)
        for seed in range(len(errors.seeds))
        for cell, expected, allowed in _judged(errors.alone(seed))
    ]
    if len(errors.seeds) > 1:
        named = {(one.lr, one.decay) for one in found}
        of_means = (errors.outlier(cell, None, *said) for cell, *said in _judged(errors.together()))
        found += [one for one in of_means if (one.lr, one.decay) not in named]
    return tuple(sorted(found, key=lambda one: (one.lr, one.decay, one.seed or 0)))


def least_error(landscape: Landscape) -> float:
    """Return the stand-in for an error of 0: half of the smallest other error."""
    errors = [error for cell in landscape.cells.values() for error in cell.tested if error > 0]
    return min(errors, default=1e-6) / 2


def allowances(landscape: Landscape) -> dict[tuple[float, float], float]:
    """Return, per cell, how much noise alone may change the logarithm of a run's error.

    It is infinite beside a cell that diverged. A landscape that is too small has none.
    """
    if not landscape.cells:
        return {}
    errors = _Errors(landscape)
    found: dict[tuple[float, float], list[float]] = {}
    for seed in range(len(errors.seeds)):
        values = errors.alone(seed)
        aside = [cell for cell, _, _ in _judged(values)]
        seen = _seen(values, aside)
        if np.isfinite(seen.noise):
            for cell, allowed in zip(errors.cells, seen.allowed, strict=True):
                if errors.seeds[seed] in cell.seeds:
                    found.setdefault((cell.lr, cell.decay), []).append(float(allowed))
    return {place: max(allowed) for place, allowed in found.items()}


@dataclass(frozen=True)
class _Values:
    """The values to judge: one per cell, NaN if there is none, with other explanations.

    `weights` are the numbers of seeds. `explained` are other values that a cell may have without
    standing out, and `least` is the least deviation that is allowed.
    """

    stencils: Stencils
    values: Array
    weights: Array
    explained: Array
    least: Array
    unjudged: Flags


class _Errors:
    """The logarithms of a landscape's errors, cells × seeds, NaN where a run diverged."""

    def __init__(self, landscape: Landscape) -> None:
        self.cells = list(landscape.cells.values())
        self.seeds = sorted({seed for cell in self.cells for seed in cell.seeds})
        places = in_steps([(cell.lr, cell.decay) for cell in self.cells])
        self._stencils = stencils(places, tuple(cell.decay == 0 for cell in self.cells))
        self.tested = np.full((len(self.cells), len(self.seeds)), np.nan)
        for row, cell in zip(self.tested, self.cells, strict=True):
            row[[self.seeds.index(seed) for seed in cell.seeds]] = cell.tested
        lost = np.array([bool(cell.diverged) for cell in self.cells])
        logs = np.log(np.maximum(self.tested, least_error(landscape)))
        self._logs = np.where(lost[:, None], np.nan, logs)
        _, self._of_seed = effects(self._logs)
        self._level = self._logs - self._of_seed
        self._beside_lost: Flags = np.array(
            [lost[self._stencils.around(cell, 1.0)].any() for cell in range(len(self.cells))]
        )

    def alone(self, seed: int) -> _Values:
        """Return one seed's errors; the other seeds in a cell may explain its own.

        Where the seed was not run, the mean of the others takes its place for comparison only.
        """
        others = mean(np.delete(self._level, seed, axis=1)) + self._of_seed[seed]
        own = self._logs[:, seed]
        absent = np.isnan(own)
        return _Values(
            stencils=self._stencils,
            values=np.where(absent, others, own),
            weights=np.ones(len(own)),
            explained=others,
            least=np.zeros(len(own)),
            unjudged=self._beside_lost | absent,
        )

    def together(self) -> _Values:
        """Return the means of cells, after the effects of seeds."""
        means = mean(self._level)
        count = np.isfinite(self._level).sum(1)
        squares = np.where(np.isfinite(self._level), self._level - means[:, None], 0) ** 2
        spread = np.sqrt(squares.sum(1) / np.maximum(count * (count - 1), 1))
        weights = np.maximum(count, 1).astype(np.float64)
        nothing = np.full(len(means), np.nan)
        return _Values(self._stencils, means, weights, nothing, _SEEDS * spread, self._beside_lost)

    def outlier(self, cell: int, seed: int | None, expected: float, allowed: float) -> Outlier:
        """Return an outlier in terms of errors instead of their logarithms."""
        one = self.cells[cell]
        said = float(np.exp(expected))
        error = one.mean if seed is None else float(self.tested[cell, seed])
        way = 1 if error > said else -1
        return Outlier(
            lr=one.lr,
            decay=one.decay,
            seed=None if seed is None else self.seeds[seed],
            error=error,
            expected=said,
            allowed=way * said * float(np.expm1(way * allowed)),
        )


@dataclass(frozen=True)
class _Seen:
    """Cells compared with their neighbours, after some cells were set aside.

    `beyond` is how far a cell lies outside the predictions in `said`. A cell that is not judged is
    allowed any deviation.
    """

    noise: float
    beyond: Array
    said: Array
    allowed: Array


def _judged(given: _Values) -> list[tuple[int, float, float]]:
    """Return the cells that stand out, each with its expected value and its allowance."""
    aside: list[int] = []
    worst = 0
    for _ in range(1 + int(_SHARE * np.isfinite(given.values).sum())):
        seen = _seen(given, aside)
        if not np.isfinite(seen.noise):
            return []
        score = seen.beyond / seen.allowed
        score[aside] = 0
        cell = int(np.argmax(score))
        if score[cell] < _HOPELESS:
            break
        aside.append(cell)
        if score[cell] > 1:
            worst = len(aside)
    aside = aside[:worst]
    if not aside:
        return []
    seen = _seen(given, aside)
    expected = _quantile(seen.said, given.stencils.own, 0.5)
    return [
        (cell, float(expected[cell]), float(seen.allowed[cell]))
        for cell in aside
        if seen.beyond[cell] > seen.allowed[cell]
    ]


def _seen(given: _Values, aside: Sequence[int]) -> _Seen:
    lines, values = given.stencils, given.values
    kept = values.copy()
    kept[list(aside)] = np.nan
    # A neighbour that stands out itself may explain a cell on the same cliff.
    near = lines.kinds == Kind.NEXT
    said = np.where(near, lines.predicted(values), lines.predicted(kept))
    known = np.isfinite(said)
    cells = lines.cells[known]
    low, high = np.fmin(np.inf, given.explained), np.fmax(-np.inf, given.explained)
    np.minimum.at(low, cells, said[known])
    np.maximum.at(high, cells, said[known])
    straight = np.bincount(lines.cells[known & (lines.kinds == Kind.LINE)], minlength=len(values))
    judged = np.isfinite(values) & (straight > 0) & ~given.unjudged
    beyond = np.where(judged, np.fmax(0, np.fmax(values - high, low - values)), 0)
    spread = np.sqrt(
        1 / given.weights[lines.cells] + (lines.weights**2 / given.weights[lines.others]).sum(1)
    )
    off = np.abs(kept[lines.cells] - said) / spread
    blocks = np.isfinite(off) & (lines.kinds == Kind.BLOCK)
    enough = len(np.unique(lines.cells[blocks])) >= _FEWEST
    noise = float(np.median(off[blocks])) / _MAD if enough else np.nan
    nearby = _quantile(off, lines.nearby, 0.8)
    allowed = np.fmax(_NOISE * max(noise, _LEAST), _NEARBY * nearby) / np.sqrt(given.weights)
    allowed = np.maximum.reduce([allowed, _SLOPE * _slope(lines, kept), given.least])
    allowed = np.where(given.unjudged | np.isnan(nearby), np.inf, allowed)
    return _Seen(noise, beyond, said, allowed)


def _slope(lines: Stencils, values: Array) -> Array:
    """Return, for each cell, the change per step along the steeper axis around it."""
    rise = np.abs(values[lines.pairs[:, 1]] - values[lines.pairs[:, 0]]) / lines.slopes
    return np.nan_to_num(np.fmax(*(_quantile(rise, pairs, 0.5) for pairs in lines.paired)))


def _quantile(values: Array, rows: Indices, share: float) -> Array:
    """Return a quantile of the values in each row of places, without −1 and NaN; NaN if empty."""
    if not rows.shape[1]:
        return np.full(len(rows), np.nan)
    ordered = np.sort(np.append(values, np.nan)[rows], axis=1)  # NaN come last
    last = np.maximum(np.isfinite(ordered).sum(1) - 1, 0)
    low = np.floor(share * last).astype(np.intp)
    part = share * last - low
    index = np.arange(len(rows))
    found: Array = (1 - part) * ordered[index, low] + part * ordered[
        index, np.minimum(low + 1, last)
    ]
    return found
