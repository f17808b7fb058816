"""Values of cells compared with those of their neighbours, as logarithms of errors.

A cell is as expected if it lies within the range of predictions that `stencils` make of it: along a
ridge or a cliff, at least one line is smooth. The distance outside that range is compared with the
largest of

    5.5 times the noise: how far blocks of cells that do not contain the cell are from predictions
    3 times the 80 % quantile of the same for such blocks nearby
    half a step of the landscape's slope there: a setting's effect is no more certain than that
    the least that the values themselves allow

So what a cell is compared with does not depend on its own value. But outliers distort the noise and
the predictions of others. So the most extreme cells are set aside one by one, up to a tenth of all.
Those up to the last that stands out from the rest are outliers (Rosner's generalized test for many
outliers, 1983). Corners are not judged: they lie on no line between neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weightdecay.results.estimate import Array
from weightdecay.results.index_rows import Indices
from weightdecay.results.noise import Flags
from weightdecay.results.stencils import Kind, Stencils

_NOISE, _NEARBY, _SLOPE = 5.5, 3.0, 0.5
_LEAST = 0.005  # noise below half a percent of the error is treated as rounding
_FEWEST = 20  # the fewest cells to estimate noise from
_SHARE = 0.1
_HOPELESS = 1 / 3  # the search ends below this share of what is allowed
_MAD = 0.6745


@dataclass(frozen=True)
class Values:
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

    @property
    def enough(self) -> bool:
        """Whether there are enough cells to estimate noise from."""
        lines = self.stencils
        off = self.values[lines.cells] - lines.predicted(self.values)
        blocks = np.isfinite(off) & (lines.kinds == Kind.BLOCK)
        return len(np.unique(lines.cells[blocks])) >= _FEWEST


@dataclass(frozen=True)
class Comparison:
    """Cells compared with their neighbours, after some cells were set aside.

    A cell that is judged stands out above `high` + `allowed` and below `low` − `allowed`. None of
    these depends on the cell's own value.
    """

    given: Values
    low: Array
    high: Array
    predictions: Array
    allowed: Array

    @property
    def score(self) -> Array:
        """Return how far outside of the range cells are, as a part of what is allowed."""
        values = self.given.values
        beyond = np.fmax(values - self.high, self.low - values)
        return np.nan_to_num(np.fmax(0, beyond) / self.allowed)

    @property
    def expected(self) -> Array:
        """Return the median of each cell's predictions."""
        return _quantile(self.predictions, self.given.stencils.own, 0.5)


def standing_out(given: Values) -> list[tuple[int, float, float]]:
    """Return the cells that stand out, each with its expected value and its allowance."""
    if not given.enough:
        return []
    aside: list[int] = []
    worst = 0
    for _ in range(1 + int(_SHARE * np.isfinite(given.values).sum())):
        score = compared(given, aside).score
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
    first, last = compared(given, []), compared(given, aside)
    found = []
    for cell in range(len(given.values)):
        # If those set aside leave a cell on no line, it is judged with them.
        seen = last if np.isfinite(last.high[cell]) else first
        if seen.score[cell] > 1 and (cell in aside or seen is first):
            found.append((cell, float(seen.expected[cell]), float(seen.allowed[cell])))
    return found


def compared(given: Values, aside: Sequence[int], *, noises: float = _NOISE) -> Comparison:
    """Compare cells with their neighbours; `noises` is how many times the noise is allowed."""
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
    spread = np.sqrt(
        1 / given.weights[lines.cells] + (lines.weights**2 / given.weights[lines.others]).sum(1)
    )
    off = np.abs(kept[lines.cells] - said) / spread
    noise = _quantile_without(off, lines.blocks, lines.inside, 0.5) / _MAD
    nearby = _quantile(off, lines.nearby, 0.8)
    allowed = np.fmax(noises * np.fmax(noise, _LEAST), _NEARBY * nearby) / np.sqrt(given.weights)
    allowed = np.maximum.reduce([allowed, _SLOPE * _slope(lines, kept), given.least])
    allowed = np.where(given.unjudged | np.isnan(nearby), np.inf, allowed)
    straight = lines.cells[known & (lines.kinds == Kind.LINE)]
    judged = np.isin(np.arange(len(values)), straight)
    low, high = np.where(judged, [low, high], [[-np.inf], [np.inf]])
    return Comparison(given, low, high, said, allowed)


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


def _quantile_without(values: Array, among: Indices, rows: Indices, share: float) -> Array:
    """Return a quantile of the values at `among`, for each row without those at its places.

    All are sorted once. The n-th of those that are left is found by skipping the others' ranks.
    """
    known = among[np.isfinite(values[among])]
    known = known[np.argsort(values[known], kind="stable")]
    ordered = np.append(values[known], np.nan)
    rank = np.full(len(values) + 1, len(known))  # the last is that of −1, which fills rows
    rank[known] = np.arange(len(known))
    left_out = np.sort(rank[rows], axis=1)
    last = np.maximum(len(known) - (left_out < len(known)).sum(1) - 1, 0)
    low = np.floor(share * last).astype(np.intp)
    part = share * last - low
    ends = []
    for place in (low, np.minimum(low + 1, last)):
        for skipped in left_out.T:
            place = place + (skipped <= place)  # noqa: PLW2901 - it moves on
        ends.append(ordered[np.minimum(place, len(known))])
    found: Array = (1 - part) * ends[0] + part * ends[1]
    return found
