"""Cells that stand out from their neighbours by more than noise explains.

`neighbours` compares the logarithms of errors. Beyond what it allows, the mean of a cell may be off
by 3 times its standard error over seeds, and the run of a seed may be where others in its cell are.
Cells beside one that diverged are not judged.
"""

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weightdecay.results.landscape import Landscape
from weightdecay.results.neighbours import Values, compared, standing_out
from weightdecay.results.noise import Flags, effects, mean
from weightdecay.results.stencils import in_steps, stencils

_SEEDS = 3.0
# Few pairs of runs must agree, so a smaller difference than that of an outlier is no accident.
_PAIRS = 4.0


@dataclass(frozen=True)
class Outlier:
    """A cell that stands out, or the run of one of its seeds.

    `error` is its error, a mean over seeds if `seed` is None. `expected` is what its neighbours
    predict, and `allowed` how far noise may take it from that. If `companions` is not 0, the run
    does not stand out itself, but was trained together with so many cells that do.
    """

    lr: float
    decay: float
    seed: int | None
    error: float
    expected: float
    allowed: float
    companions: int = 0


def outliers(landscape: Landscape) -> tuple[Outlier, ...]:
    """Return the outliers of a landscape, sorted by learning rate, decay and seed.

    A cell of several seeds is judged by their mean, and each seed by its own landscape and by the
    others in the cell. If a seed is named, its cell is not named as well. If most cells of a pack
    stand out, a fault of the pack is likely, and its other runs are named too. Scattered settings
    have no neighbours, so none of them is an outlier.
    """
    if not landscape.cells or landscape.scattered:
        return ()
    errors = _Errors(landscape)
    found = [
        errors.outlier(cell, seed, expected, allowed)
        for seed in range(len(errors.seeds))
        for cell, expected, allowed in standing_out(errors.alone(seed))
    ]
    if len(errors.seeds) > 1:
        named = {(one.lr, one.decay) for one in found}
        of_means = (
            errors.outlier(cell, None, *said) for cell, *said in standing_out(errors.together())
        )
        found += [one for one in of_means if (one.lr, one.decay) not in named]
    found += _companions(landscape, found)
    return tuple(sorted(found, key=lambda one: (one.lr, one.decay, one.seed or 0)))


def _companions(landscape: Landscape, found: Sequence[Outlier]) -> Iterator[Outlier]:
    """Yield the other runs of packs in which several cells stand out, and more than do not."""
    named = {(one.lr, one.decay, one.seed) for one in found}
    packs: dict[tuple[float, int], list[Outlier]] = {}
    for (lr, decay), cell in landscape.cells.items():
        for seed, error, pack in zip(cell.seeds, cell.tested, cell.packs, strict=False):
            if pack is not None:
                run = Outlier(lr, decay, seed, error, expected=math.nan, allowed=math.nan)
                packs.setdefault(pack, []).append(run)
    for runs in packs.values():
        cells = {(run.lr, run.decay) for run in runs if _is_among(run, named)}
        others = [run for run in runs if not _is_among(run, named)]
        if len(cells) > 1 and len(others) < len(runs) / 2:
            yield from (replace(run, companions=len(cells)) for run in others)


def _is_among(run: Outlier, named: Container[tuple[float, float, int | None]]) -> bool:
    return any((run.lr, run.decay, seed) in named for seed in (run.seed, None))


def smallest_rises(landscape: Landscape) -> dict[tuple[float, float], float]:
    """Return, per cell, the smallest rise of its error that would stand out: 0.3 means by 30 %.

    If all seeds of a cell have errors that are too high by more than that, and no other cell is
    wrong, the cell is found, or seldom the one beside it. The rise is infinite for cells that are
    not judged, and for cells whose error cannot rise so far because it is a fraction.
    """
    if not landscape.cells or landscape.scattered:
        return {}
    errors = _Errors(landscape)
    given = errors.together() if len(errors.seeds) > 1 else errors.alone(0)
    rises = np.full(len(errors.cells), np.inf)
    if given.enough:
        seen = compared(given, [cell for cell, _, _ in standing_out(given)])
        rises = np.expm1(np.fmax(0, seen.high + seen.allowed - given.values))
        rises[np.isnan(given.values)] = np.inf
        if landscape.metric is None:
            rises[np.fmax.reduce(errors.tested, axis=1) > 1 / (1 + rises)] = np.inf
    return {
        (cell.lr, cell.decay): float(rise) for cell, rise in zip(errors.cells, rises, strict=True)
    }


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
        if values.enough:
            aside = [cell for cell, _, _ in standing_out(values)]
            seen = compared(values, aside, noises=_PAIRS)
            for cell, allowed in zip(errors.cells, seen.allowed, strict=True):
                if errors.seeds[seed] in cell.seeds:
                    found.setdefault((cell.lr, cell.decay), []).append(float(allowed))
    return {place: max(allowed) for place, allowed in found.items()}


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
            [lost[near].any() for near in self._stencils.around(1.0)], dtype=bool
        )

    def alone(self, seed: int) -> Values:
        """Return one seed's errors; the other seeds in a cell may explain its own.

        Where the seed was not run, the mean of the others takes its place for comparison only.
        """
        others = mean(np.delete(self._level, seed, axis=1)) + self._of_seed[seed]
        own = self._logs[:, seed]
        absent = np.isnan(own)
        return Values(
            stencils=self._stencils,
            values=np.where(absent, others, own),
            weights=np.ones(len(own)),
            explained=others,
            least=np.zeros(len(own)),
            unjudged=self._beside_lost | absent,
        )

    def together(self) -> Values:
        """Return the means of cells, after the effects of seeds."""
        means = mean(self._level)
        count = np.isfinite(self._level).sum(1)
        squares = np.where(np.isfinite(self._level), self._level - means[:, None], 0) ** 2
        spread = np.sqrt(squares.sum(1) / np.maximum(count * (count - 1), 1))
        weights = np.maximum(count, 1).astype(np.float64)
        nothing = np.full(len(means), np.nan)
        return Values(self._stencils, means, weights, nothing, _SEEDS * spread, self._beside_lost)

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
