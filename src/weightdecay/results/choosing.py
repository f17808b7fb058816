"""Settings that a landscape chooses, for other seeds to judge, and decays carried between rates.

A column is one learning rate. With m its lowest mean error, an error e becomes
1 − exp(−(e/m − 1)/0.1): what is far above the best counts as far, and a cliff not as farther. A
parabola in log2 λ, weighted by the number of seeds, is fitted to the settings within 1.5 doublings
of the lowest. Its vertex is the column's best decay, to three digits.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weightdecay.results.estimate import Array
from weightdecay.results.judging import Carried
from weightdecay.results.landscape import Cell, Landscape

#: Rules for carrying a decay, λ ∝ α^(−s): −1 keeps λ/α, 0 keeps λ, and 1 keeps λ·α.
SLOPES = (-1.0, -0.5, 0.0, 0.5, 1.0)
#: The pairs of learning rates for that, as multiples of the chosen one: tuned at, and used at.
PAIRS = ((0.5, 2.0), (2.0, 0.5), (1.0, 4.0), (1.0, 0.25))
#: Errors are flattened over this share of a column's lowest, and fitted within so many doublings.
SCALE, REACH = 0.1, 1.5
_DRAWS = 200


@dataclass(frozen=True)
class Column:
    """One learning rate: its best decay, the error there, and whether both sides were trained.

    `gap` is how far away its lowest setting's neighbours are, in doublings; a file does not say it.
    """

    lr: float
    decay: float
    error: float
    inside: bool
    gap: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Choice:
    """The setting that a landscape chooses, by the errors of all its seeds.

    `columns` has every learning rate. `edges` names the ends of the grid that the setting lies at;
    above a decay of 0, the lowest is not an end.
    """

    lr: float
    decay: float
    error: float
    columns: Mapping[float, Column]
    edges: tuple[str, ...]

    def carried(self) -> Iterator[Carried]:
        """Yield each pair of learning rates × rule, where both have a best decay inside."""
        for tuned, used in PAIRS:
            source, target = (self.columns.get(self.lr * factor) for factor in (tuned, used))
            if source and target and source.inside and target.inside:
                for s in SLOPES:
                    decay = source.decay * (target.lr / source.lr) ** -s
                    yield Carried(source.lr, target.lr, s, decay)


def choose(landscape: Landscape) -> Choice:
    """Choose the learning rate and decay with the lowest smoothed error.

    Of a landscape without any decay above 0, it is the learning rate with the lowest error.
    """
    if not landscape.in_columns:
        raise ValueError(
            "A choice needs a grid of learning rates and decays, got "
            f"{len(landscape.cells)} scattered settings. `weightdecay landscape` recommends a "
            "setting to train a grid around."
        )
    seen = _errors(landscape)
    if not seen:
        raise ValueError(f"A choice needs a run that did not diverge, got none in {landscape!r}.")
    columns = {lr: _smoothed(lr, settings) for lr, settings in seen.items()}
    best = min(columns.values(), key=lambda column: column.error)
    decays = [cell.decay for cell in landscape.cells.values() if cell.lr == best.lr]
    edges = tuple(_edges(best, landscape.lrs, decays))
    return Choice(best.lr, best.decay, best.error, columns, edges)


def can_choose(landscape: Landscape) -> bool:
    """Whether some run can be chosen: it did not diverge, and has a decay if any run has."""
    return bool(_errors(landscape))


def best_columns(landscape: Landscape) -> dict[float, Column]:
    """Return the best decay of each learning rate at which not every run diverged."""
    return {lr: _smoothed(lr, settings) for lr, settings in _errors(landscape).items()}


def chosen_otherwise(landscape: Landscape, choice: Choice) -> float | None:
    """Return the share of resampled seeds that choose otherwise; None if no setting has two.

    Each setting's seeds are drawn again, with replacement. Another choice is another learning rate,
    or a decay more than half a doubling away.
    """
    seen = _errors(landscape)
    if all(len(errors) < 2 for settings in seen.values() for errors in settings.values()):
        return None
    draw = np.random.default_rng(0)
    other = 0
    for _ in range(_DRAWS):
        columns = [
            _smoothed(lr, {decay: _drawn_again(of, draw) for decay, of in settings.items()})
            for lr, settings in seen.items()
        ]
        best = min(columns, key=lambda column: column.error)
        same = best.lr == choice.lr and best.decay <= choice.decay * 2**0.5
        other += not (same and choice.decay <= best.decay * 2**0.5)
    return other / _DRAWS


def _drawn_again(errors: Array, draw: np.random.Generator) -> Array:
    return errors[draw.integers(0, len(errors), len(errors))]  # `draw.choice`, without its checks


def _errors(landscape: Landscape) -> dict[float, dict[float, Array]]:
    """Return the errors to choose by, per learning rate and decay above 0, or of 0 alone.

    A run that diverged counts as the worst of the landscape. A learning rate at which every run
    diverged is left out.
    """
    some = any(cell.decay > 0 for cell in landscape.cells.values())
    cells = [cell for cell in landscape.cells.values() if cell.decay > 0 or not some]
    finite = [error for cell in cells for error in cell.chosen if math.isfinite(error)]
    seen: dict[float, dict[float, Array]] = {}
    for cell in cells:
        seen.setdefault(cell.lr, {})[cell.decay] = _of_cell(cell, max(finite, default=math.nan))
    kept = {cell.lr for cell in cells if len(cell.diverged) < len(cell.seeds)}
    return {lr: settings for lr, settings in sorted(seen.items()) if lr in kept}


def _of_cell(cell: Cell, worst: float) -> Array:
    errors = [
        worst if seed in cell.diverged or not math.isfinite(error) else error
        for seed, error in zip(cell.seeds, cell.chosen, strict=True)
    ]
    return np.array(errors)


def _smoothed(lr: float, settings: Mapping[float, Array]) -> Column:
    """Return a column's best decay.

    It is the lowest setting itself if fewer than three are near it, or if the parabola opens
    downwards, or if its vertex lies outside of them.
    """
    if list(settings) == [0.0]:
        return Column(lr, 0.0, float(settings[0.0].mean()), inside=False)
    x = np.log2(sorted(settings))
    mean = np.array([settings[decay].mean() for decay in sorted(settings)])
    seeds = np.array([len(settings[decay]) for decay in sorted(settings)])
    best = int(np.argmin(mean))
    near = np.abs(x - x[best]) <= REACH + 1e-9
    a = b = c = 0.0
    if near.sum() >= 3 and mean[best] > 0:
        flat = -np.expm1(-(mean[near] / mean[best] - 1) / SCALE)
        a, b, c = map(float, np.polyfit(x[near] - x[best], flat, 2, w=np.sqrt(seeds[near])))
    vertex = -b / (2 * a) if a > 0 else 0.0
    low, high = x[near][0] - x[best], x[near][-1] - x[best]
    if not low <= vertex <= high:
        vertex = 0.0
    height = min(float(np.polyval([a, b, c], vertex)), 0.999)
    error = float(mean[best] * (1 - SCALE * math.log1p(-height)))
    inside = bool(x[0] < x[best] + vertex < x[-1] and 0 < best < len(x) - 1)
    gap = float(np.diff(x)[max(best - 1, 0) : best + 1].max(initial=0.0))
    return Column(lr, float(f"{2.0 ** (x[best] + vertex):.3g}"), error, inside, gap)


def _edges(best: Column, rates: Sequence[float], decays: Sequence[float]) -> Iterator[str]:
    """Yield the ends of the learning rates, and of the best one's decays, that the best lies at."""
    if len(rates) > 1 and best.lr in (min(rates), max(rates)):
        yield "lowest lr" if best.lr == min(rates) else "highest lr"
    above = [decay for decay in decays if decay > 0]
    if len(above) > 1 and not best.inside:
        low = best.decay / min(above) < max(above) / best.decay
        if not low:
            yield "highest decay"
        elif 0 not in decays:
            yield "lowest decay"
