"""Where the ridge is: the best learning rate, the optimum at each, and optima at edges."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results.arrays import Arrays
from weightdecay.results.column import ROUNDED
from weightdecay.results.estimate import Array
from weightdecay.results.noise import Flags, depth, mean

#: How far from an optimum errors must have risen, in powers of two; one step at least.
REACH = 2.0
#: By how many standard errors the errors must rise around an optimum.
CERTAIN = 3.0


@dataclass(frozen=True)
class Optima:
    """The columns in the basin, and where each column's smoothed scores are lowest.

    `edge` is −1 or 1 if a column's optimum is the lowest or highest decay, and otherwise 0. `inner`
    is the decay next to such an optimum, on the inside.
    """

    basin: Flags
    at: npt.NDArray[np.int64]
    edge: npt.NDArray[np.int64]
    inner: npt.NDArray[np.int64]


def optima(scores: Array, diverged: Flags) -> Optima:
    """Find the optima by the scores of learning rates × decays, all decays above 0.

    Neighbours in a column are the nearest decays measured there, as a grid may have half steps
    along its ridge alone.
    """
    measured = np.isfinite(scores)
    # Each column's measured cells, moved to its front in the order of their decays.
    order = np.argsort(~measured, axis=1, kind="stable")
    packed, lost = np.take_along_axis(scores, order, 1), np.take_along_axis(diverged, order, 1)
    smooth = _smooth(np.where(np.isfinite(packed) & ~lost, packed, np.nan))
    at, lowest = smooth.argmin(1), smooth.min(1)
    edge = np.where(at <= 0, -1, np.where(at >= measured.sum(1) - 1, 1, 0))
    basin = np.isfinite(lowest) & (lowest <= depth(float(lowest.min())))
    columns = np.arange(len(scores))
    inner = np.clip(at - edge, 0, np.maximum(measured.sum(1) - 1, 0))
    return Optima(basin, order[columns, at], edge, order[columns, inner])


def usual_step(measured: Flags, decays: Array) -> float:
    """Return how many doublings apart decays that are neighbours in a column usually are."""
    return step_of([np.log2(decays[cells]) for cells in measured])


def step_of(lines: Sequence[Array]) -> float:
    """Return how far apart neighbours on some lines usually are; 1 if there are none.

    Of two neighbours, the farther one counts: in a grid with uneven steps, such as 1, 2, 5, 10,
    most places should have a neighbour within a step on both sides.
    """
    gaps = [np.diff(line) for line in lines]
    wide = [np.maximum(own[1:], own[:-1]) if len(own) > 1 else own for own in gaps]
    every = np.concatenate(wide)
    return float(np.quantile(every, 0.5, method="higher")) if len(every) else 1.0


def best_rate(grid: Arrays) -> int:
    """Return the learning rate with the lowest smoothed score, among diverged ones if all did."""
    scores, lost = grid.scores(), grid.lost()
    order = np.argsort(~np.isfinite(scores), axis=1, kind="stable")
    kept = scores if lost.all() else np.where(lost, np.nan, scores)
    return int(_smooth(np.take_along_axis(kept, order, 1)).min(1).argmin())


def best_at_edge(grid: Arrays) -> tuple[int, str]:
    """Return −1 or 1 and the reason if the best decay is the lowest or highest; else 0."""
    scores = grid.scores()
    rate, decay = grid.best
    measured = np.flatnonzero(np.isfinite(scores[rate]))
    edge = {int(measured[0]): -1, int(measured[-1]): 1}.get(decay, 0)
    smoothed = edge or int(optima(scores, grid.lost()).edge[rate])
    if not smoothed or grid.lost().all():
        return 0, ""
    end = "lowest" if smoothed < 0 else "highest"
    said = (
        f"The best decay is the {end} of the grid"
        if edge
        else f"Errors are low up to the {end} decay of the grid"
    )
    return smoothed, f"{said}: what is best may lie beyond. Widen it there."


def rises(grid: Arrays, said: Optima) -> bool:
    """Whether errors rise from the optima at edges towards the inside by more than noise."""
    rows = np.flatnonzero(said.basin & (said.edge != 0))
    known = np.isfinite(grid.scores())
    inside = [_inwards(grid.decays, known[i], int(said.at[i]), int(said.edge[i])) for i in rows]
    errors = mean(grid.tested)
    rise = errors[rows, inside] - errors[rows, said.at[rows]]
    variance, freedom = grid.noise()
    if not np.isfinite(rise).any() or not freedom >= 1:
        return False
    allowed = CERTAIN * np.sqrt(2 * variance / (len(grid.seeds) * len(rows)))
    return bool(np.nanmean(rise) > allowed)


def _inwards(decays: Array, known: Flags, at: int, edge: int) -> int:
    """Return which known decay lies `REACH` inside of the one at an edge, or the next to it."""
    places = np.flatnonzero(known)
    off = edge * np.log2(decays[at] / decays[places])
    inside, off = places[off > 0], off[off > 0]
    if not len(inside):
        return at
    within = int(np.count_nonzero(off <= ROUNDED * REACH))
    return int(inside[np.argsort(off)][max(0, within - 1)])


def _smooth(scores: Array) -> Array:
    """Return means with weights 1, 2, 1 of known scores; infinite where the score is unknown."""
    padded = np.pad(scores, ((0, 0), (1, 1)), constant_values=np.nan)
    parts = np.stack([padded[:, :-2], scores, padded[:, 2:]])
    weights = np.isfinite(parts) * np.array([1.0, 2.0, 1.0])[:, None, None]
    total = (weights * np.nan_to_num(parts)).sum(0)
    return np.where(np.isfinite(scores), total / np.maximum(weights.sum(0), 1), np.inf)
