"""The best decay at each learning rate, in a window that other seeds chose.

Every seed is the fresh one once: the validation errors of the others choose the learning rates in
the basin and the window of decays at each; its own test errors in those windows are fitted. So no
number both chooses a window and is fitted in it.

In a column (a learning rate) an error is fitted by a_k + b·z + c·z² over z = log2 λ, with an
intercept for each seed k; the column's best decay is at the vertex, −b/(2c). Curvatures are shrunk
towards their common mean, as far as noise explains their differences.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weightdecay.results.arrays import Arrays
from weightdecay.results.estimate import Array
from weightdecay.results.noise import DEPTH, Flags, mean

#: How far a window reaches to either side of an optimum, in powers of two; one step at least.
REACH = 2.0
#: By how many standard errors the errors must rise around an optimum.
CERTAIN = 3.0
_LEAST = 1e-18  # variances below this are rounding: errors are fractions
_STEEPER = 0.25  # a column's curvature is at least this share of the mean


@dataclass(frozen=True)
class Windows:
    """What the choosing seeds chose: columns in the basin, their optima, and cells around them.

    `edge` is −1 or 1 if a column's optimum is the lowest or highest decay, and otherwise 0.
    """

    basin: Flags
    at: npt.NDArray[np.int64]
    edge: npt.NDArray[np.int64]
    cells: Flags


@dataclass(frozen=True)
class Columns:
    """Columns with a window: normal equations in (z, z²), and each seed's part of their noise.

    `moments` · (b, c) = `sums`. `parts` are columns × seeds × 2, and `seeds` counts those that had
    a window in the column. `variance` is the noise pooled over columns, with `freedom` degrees.
    """

    lrs: Array
    centre: Array
    moments: Array
    sums: Array
    parts: Array
    seeds: Array
    variance: float
    freedom: float

    @property
    def x(self) -> Array:
        """Return log2 of the learning rates."""
        return np.log2(self.lrs)


@dataclass(frozen=True)
class Vertices:
    """The best log2 decay of each column, its variance, and how certain the lowest point is.

    `certainty` is the mean curvature in standard errors.
    """

    best: Array
    variance: Array
    certainty: Array


def windows(scores: Array, diverged: Flags, decays: Array) -> Windows:
    """Choose columns and cells by the scores of learning rates × decays, all decays above 0.

    Neighbours in a column are the nearest decays measured there, as a grid may have half steps
    along its ridge alone. A window reaches `REACH` to either side, or at least the usual step.
    """
    measured = np.isfinite(scores)
    # Each column's measured cells, moved to its front in the order of their decays.
    order = np.argsort(~measured, axis=1, kind="stable")
    packed, lost = np.take_along_axis(scores, order, 1), np.take_along_axis(diverged, order, 1)
    logs = np.log2(decays)[order]
    usable = np.isfinite(packed) & ~lost
    smooth = _smooth(np.where(usable, packed, np.nan))
    at = smooth.argmin(1)
    lowest = smooth.min(1)
    rows, width = np.arange(len(scores)), scores.shape[1]
    last = measured.sum(1) - 1
    edge = np.where(at <= 0, -1, np.where(at >= last, 1, 0))
    basin = np.isfinite(lowest) & (lowest <= lowest.min() * (1 + DEPTH))
    cells = np.zeros(scores.shape, dtype=np.bool_)
    whole = basin & (edge == 0)
    reach = max(REACH, _usual_step(scores, decays)) + 1e-6
    for step in range(1, width):
        below, above = at - step, at + step
        whole = whole & (below >= 0) & (above <= last)
        for reached in (below % width, above % width):
            near = np.abs(logs[rows, reached] - logs[rows, at]) <= reach
            whole = whole & near & usable[rows, reached]
        if not whole.any():
            break
        for reached in (below, at, above):
            cells[rows[whole], order[rows, reached % width][whole]] = True
    return Windows(basin, order[rows, at], edge, cells)


def steps(decays: Array) -> int:
    """Return how many decays a window reaches to either side."""
    if len(decays) < 2:
        return 1
    return max(1, int(REACH / np.median(np.diff(np.log2(decays))) + 1e-6))


def _usual_step(scores: Array, decays: Array) -> float:
    """Return how many doublings apart decays that are neighbours in a column usually are."""
    gaps = np.concatenate([np.diff(np.log2(decays[np.isfinite(column)])) for column in scores])
    return float(np.median(gaps)) if len(gaps) else 1.0


def best_at_edge(grid: Arrays) -> tuple[int, str]:
    """Return −1 or 1 and the reason if the best decay is the lowest or highest; else 0."""
    scores = grid.scores()
    rate, decay = grid.best
    measured = np.flatnonzero(np.isfinite(scores[rate]))
    edge = {int(measured[0]): -1, int(measured[-1]): 1}.get(decay, 0)
    edge = edge or int(windows(scores, grid.lost(), grid.decays).edge[rate])
    if not edge or grid.lost().all():
        return 0, ""
    end = "lowest" if edge < 0 else "highest"
    why = f"The best decay is the {end} of the grid: what is best may lie beyond. Widen it there."
    return edge, why


def rises(grid: Arrays, said: Windows) -> bool:
    """Whether errors rise from the optima at edges towards the inside by more than noise."""
    rows = np.flatnonzero(said.basin & (said.edge != 0))
    inside = said.at[rows] - said.edge[rows] * steps(grid.decays)
    inside = np.clip(inside, 0, len(grid.decays) - 1)
    errors = mean(grid.tested)
    rise = errors[rows, inside] - errors[rows, said.at[rows]]
    variance, freedom = grid.noise()
    if not np.isfinite(rise).any() or not freedom >= 1:
        return False
    allowed = CERTAIN * np.sqrt(2 * variance / (len(grid.seeds) * len(rows)))
    return bool(np.nanmean(rise) > allowed)


def fresh(grid: Arrays) -> Flags:
    """Return which rates × decays × seeds to fit: each seed in the windows that others chose.

    A run that diverged lies on no quadratic: a seed with such a run in a window is left out of that
    column.
    """
    cells = np.zeros(grid.tested.shape, dtype=np.bool_)
    for seed, scores, lost in grid.folds():
        cells[:, :, seed] = windows(scores, lost, grid.decays).cells
    cells &= ~(cells & grid.diverged).any(1, keepdims=True)
    cells &= np.isfinite(grid.tested)
    cells &= cells.sum(1, keepdims=True) >= 3
    return cells


def columns(grid: Arrays, log_decays: Array) -> Columns | None:
    """Fit each seed in the windows that the others chose; None if no column has two seeds.

    `log_decays` are learning rates × decays, as some conventions depend on the rate.
    """
    cells = fresh(grid)
    seeds = cells.any(1).sum(1)
    kept = seeds >= 2
    if not kept.any():
        return None
    cells, errors, seeds = cells[kept], grid.tested[kept], seeds[kept]
    weight = cells.sum(2)
    centre = (weight * log_decays[kept]).sum(1) / weight.sum(1)
    z = log_decays[kept] - centre[:, None]
    terms = _centred(np.stack([z, z**2], -1)[:, :, None, :], cells)
    values = _centred(np.where(cells, errors, 0)[..., None], cells)[..., 0]
    moments = np.einsum("ijkp,ijkq->ipq", terms, terms)
    sums = np.einsum("ijkp,ijk->ip", terms, values)
    fitted = np.linalg.solve(moments, sums[..., None])[..., 0]
    left = values - np.einsum("ijkp,ip->ijk", terms, fitted)
    freedom = float(cells.sum() - seeds.sum() - 2 * len(seeds))
    return Columns(
        lrs=grid.lrs[kept],
        centre=centre,
        moments=moments,
        sums=sums,
        parts=np.einsum("ijkp,ijk->ikp", terms, left),
        seeds=seeds.astype(np.float64),
        variance=max(float((left**2).sum() / freedom), _LEAST),
        freedom=freedom,
    )


def vertices(columns: Columns, sums: Array) -> Vertices:
    """Return the columns' best decays, given their sums or draws of them."""
    covariance = np.linalg.inv(columns.moments) * columns.variance
    curvature = np.linalg.solve(columns.moments, sums[..., None])[..., 1, 0]
    noise = covariance[:, 1, 1]
    weight = 1 / noise
    common = (weight * curvature).sum(-1, keepdims=True) / weight.sum()
    # The variance of curvatures beyond noise: DerSimonian and Laird's estimate.
    excess = (weight * (curvature - common) ** 2).sum(-1, keepdims=True) - (len(weight) - 1)
    spread = weight.sum() - (weight**2).sum() / weight.sum()
    between = np.maximum(excess, 0) / (spread or 1.0)
    own = between / (between + noise)
    shrunk = np.maximum(common + own * (curvature - common), _STEEPER * common)
    first, cross = columns.moments[:, 0, 0], columns.moments[:, 0, 1]
    slope = (sums[..., 0] - cross * shrunk) / first
    offset = -slope / (2 * shrunk)
    variance = (columns.variance / first + (2 * offset) ** 2 * own * noise) / (2 * shrunk) ** 2
    certainty = common[..., 0] * np.sqrt(weight.sum())
    return Vertices(columns.centre + offset, variance, certainty)


def draws(columns: Columns, count: int) -> Array:
    """Return sums as other seeds might have given them: each seed's part gets a random sign.

    A column's parts add up to 0, so their spread is too small by one seed; that is corrected.
    """
    random = np.random.default_rng(0)
    signs = random.choice([-1.0, 1.0], (count, *columns.parts.shape[:2]))
    short = np.sqrt(columns.seeds / (columns.seeds - 1))
    moved: Array = short[:, None] * np.einsum("dik,ikp->dip", signs, columns.parts)
    return columns.sums + moved


def _smooth(scores: Array) -> Array:
    """Return means with weights 1, 2, 1 of known scores; infinite where the score is unknown."""
    padded = np.pad(scores, ((0, 0), (1, 1)), constant_values=np.nan)
    parts = np.stack([padded[:, :-2], scores, padded[:, 2:]])
    weights = np.isfinite(parts) * np.array([1.0, 2.0, 1.0])[:, None, None]
    total = (weights * np.nan_to_num(parts)).sum(0)
    return np.where(np.isfinite(scores), total / np.maximum(weights.sum(0), 1), np.inf)


def _centred(values: Array, cells: Flags) -> Array:
    """Return values minus their mean over a seed's window, and 0 outside it."""
    inside = cells[..., None]
    count = np.maximum(inside.sum(1, keepdims=True), 1)
    total = np.where(inside, values, 0).sum(1, keepdims=True)
    centred: Array = np.where(inside, values - total / count, 0)
    return centred
