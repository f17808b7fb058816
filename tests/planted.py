"""Faults planted in clean landscapes: how many are found, and how often there is a false alarm.

`python -m tests.planted` measures both, and prints tables of it (some ten minutes).
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

import numpy as np

from tests.landscapes import Truth, measured, noisy, reseen
from weightdecay.records.tables import imported
from weightdecay.results import Cell, Landscape, landscapes, outliers
from weightdecay.results.outliers import smallest_rises
from weightdecay.table import table

RESULTS = Path(__file__).parents[1] / "results"
TASKS = {
    **{f"{task}-medium": f"{task}-medium/records.parquet" for task in ("mnist1d", "text")},
    "cifar10-small": "cifar10-small/figure-2.parquet",
    "cifar10-small, figure 1": "cifar10-small/figure-1.parquet",
}
#: A run of a landscape: its learning rate, decay and seed.
Place = tuple[float, float, int]


def committed(task: str) -> list[Landscape]:
    """Return the landscapes of committed records that are more than a line."""
    found = landscapes(imported(RESULTS / TASKS[task]))
    return [one for one in found if min(len(one.lrs), len(one.decays)) > 2 and len(one.cells) > 11]


def seeds_of(landscape: Landscape) -> list[int]:
    return sorted({seed for cell in landscape.cells.values() for seed in cell.seeds})


def of_seeds(landscape: Landscape, kept: Iterable[int]) -> Landscape:
    """Return the landscape as some of its seeds alone would have left it."""
    wanted = set(kept)
    cells = {place: _with(cell, wanted) for place, cell in landscape.cells.items()}
    return replace(landscape, cells={place: cell for place, cell in cells.items() if cell.seeds})


def _with(cell: Cell, wanted: set[int]) -> Cell:
    at = [place for place, seed in enumerate(cell.seeds) if seed in wanted]
    return replace(
        cell,
        seeds=tuple(cell.seeds[place] for place in at),
        chosen=tuple(cell.chosen[place] for place in at),
        tested=tuple(cell.tested[place] for place in at),
        diverged=tuple(seed for seed in cell.diverged if seed in wanted),
        losses=tuple(cell.losses[place] for place in at) if cell.losses else (),
        packs=tuple(cell.packs[place] for place in at) if cell.packs else (),
    )


def subsets(landscape: Landscape) -> Iterator[tuple[int, ...]]:
    """Yield every choice of a landscape's seeds."""
    seeds = seeds_of(landscape)
    for size in range(1, len(seeds) + 1):
        yield from combinations(seeds, size)


def planted(landscape: Landscape, factors: Mapping[Place, float]) -> Landscape:
    """Return the landscape with the test errors of some runs multiplied."""
    cells = dict(landscape.cells)
    for (lr, decay, seed), factor in factors.items():
        cell = cells[lr, decay]
        tested = list(cell.tested)
        at = cell.seeds.index(seed)
        tested[at] = min(1.0, tested[at] * factor)
        cells[lr, decay] = replace(cell, tested=tuple(tested))
    return replace(landscape, cells=cells)


def found_places(landscape: Landscape) -> set[tuple[float, float]]:
    return {(one.lr, one.decay) for one in outliers(landscape)}


def inner(landscape: Landscape) -> list[tuple[float, float]]:
    """Return the cells that have neighbours on all sides, and those are in a basin.

    A cell counts if its error and those around it are within a factor of 1.5 of the best.
    """
    cells, kept = landscape.cells, []
    for i, j in product(range(1, len(landscape.lrs) - 1), range(1, len(landscape.decays) - 1)):
        around = [
            cells.get((landscape.lrs[i + di], landscape.decays[j + dj]))
            for di, dj in product((-1, 0, 1), repeat=2)
        ]
        highest = 1.5 * landscape.best.mean
        if all(one and not one.diverged and one.mean < highest for one in around):
            kept.append((landscape.lrs[i], landscape.decays[j]))
    return kept


def pack(landscape: Landscape, start: int, stride: int) -> list[Place]:
    """Return every n-th run from one on, as a pack of lanes takes them."""
    runs = [(*place, seed) for place, cell in landscape.cells.items() for seed in cell.seeds]
    return runs[start::stride]


@dataclass(frozen=True)
class Alarms:
    """In how many of how many clean landscapes something was said to stand out."""

    landscapes: int
    false: int


SHAPES = ((7, 8, 2.0), (5, 6, 4.0), (8, 10, 2.0))
CLIFFS = {"zero": True, "plateau": 0.2, "curvature": 0.03}


def simulated(count: int, *, spread: float, seeds: int, first: int = 0) -> Alarms:
    """Count false alarms in smooth landscapes, with cliffs and without, of every shape and s."""
    random = np.random.default_rng(first)
    total = false = 0
    for (rates, decays, factor), s, shape in product(SHAPES, (0.0, 0.5, 1.0), ({}, CLIFFS)):
        truth = Truth(s=s, rates=rates, decays=decays, factor=factor, **shape)  # type: ignore[arg-type]
        errors, like = truth.errors(), noisy(truth, seeds, random)
        for _ in range(count):
            seen = reseen(like, measured(errors, seeds, random, spread=spread, examples=10_000))
            total += 1
            false += bool(outliers(seen))
    return Alarms(total, false)


def power(scapes: Sequence[Landscape], rise: float) -> tuple[int, int, int]:
    """Raise each inner cell in turn: return how many were found, others beside them, and of all."""
    found = others = total = 0
    for scape in scapes:
        for place in inner(scape):
            raised = planted(scape, {(*place, seed): rise for seed in scape.cells[place].seeds})
            seen = found_places(raised)
            total += 1
            found += place in seen
            others += bool(seen - {place})
    return found, others, total


def at_their_bounds(landscape: Landscape, beyond: float) -> tuple[set[tuple[float, float]], int]:
    """Raise each cell in turn to a multiple of its bound: return those not found, and of how many.

    Cells whose errors would have to rise above 100 % are left out.
    """
    lost, total = set(), 0
    for place, rise in smallest_rises(landscape).items():
        cell = landscape.cells[place]
        factor = (1 + rise) * beyond
        if np.isfinite(rise) and max(cell.tested) * factor < 1:
            raised = planted(landscape, {(*place, seed): factor for seed in cell.seeds})
            total += 1
            if place not in found_places(raised):
                lost.add(place)
    return lost, total


def frozen(annealed: Sequence[Landscape], constant: Sequence[Landscape]) -> tuple[int, int, int]:
    """Replace each cell in turn by the same one trained with a schedule that does not move.

    Return how many of those above their bounds were found, how many there are, and of how many
    cells whose errors were higher at all. The landscapes must be of one seed.
    """
    found = above = higher = 0
    pairs = {(one.way, _unscheduled(one)): one for one in constant}
    for scape in annealed:
        wrong = pairs.get((scape.way, _unscheduled(scape)))
        for place, rise in smallest_rises(scape).items() if wrong else ():
            if wrong is None or place not in wrong.cells or wrong.cells[place].diverged:
                continue
            cell = replace(scape.cells[place], tested=wrong.cells[place].tested)
            factor = cell.mean / scape.cells[place].mean
            higher += factor > 1
            if factor > 1 + rise:
                above += 1
                found += place in found_places(replace(scape, cells={**scape.cells, place: cell}))
    return found, above, higher


def _unscheduled(landscape: Landscape) -> tuple[tuple[str, object], ...]:
    return tuple((k, v) for k, v in sorted(landscape.labels.items()) if k != "schedule")


def of_schedule(task: str, schedule: str, seed: int) -> list[Landscape]:
    """Return the committed landscapes of a schedule, as one seed alone would have left them."""
    kept = (one for one in committed(task) if one.labels["schedule"] == schedule)
    return [of_seeds(one, [seed]) for one in kept if seed in seeds_of(one)]


RISES = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 1.8)
SPREADS = (0.002, 0.008, 0.025)


def main() -> None:
    """Print how many planted faults are found, and how many false alarms there are."""
    parser = argparse.ArgumentParser(description="Faults that are found, and false alarms.")
    parser.add_argument("--count", type=int, default=100, help="landscapes of each kind")
    count = parser.parse_args().count
    rows: list[tuple[str, ...]] = [("task", "seeds", "of", *(f"+{r - 1:.0%}" for r in RISES))]
    for task, size in product(TASKS, (1, 3, 5)):
        scapes = [one for one in committed(task) if len(seeds_of(one)) >= size]
        kept = [of_seeds(one, seeds_of(one)[:size]) for one in scapes]
        told = [power(kept, rise) for rise in RISES] if kept else []
        shares = [f"{found / total:.0%}" for found, _, total in told]
        rows += [(task, str(size), str(told[0][2]), *shares)] if told else []
    sys.stdout.write(table(rows) + "\n\n")
    rows = [("task", "seeds", "raised to 0.1 % above their bounds", "found")]
    for task, size in product(TASKS, (1, 3)):
        kept = [of_seeds(one, seeds_of(one)[:size]) for one in committed(task)]
        tried = [at_their_bounds(one, 1.001) for one in kept]
        total = sum(count for _, count in tried)
        found = total - sum(len(lost) for lost, _ in tried)
        rows.append((task, str(size), str(total), str(found)))
    sys.stdout.write(table(rows) + "\n\n")
    rows = [("noise", "seeds", "landscapes", "false alarms")]
    for spread, seeds in product(SPREADS, (1, 3)):
        seen = simulated(count, spread=spread, seeds=seeds)
        rows.append((f"{spread:g}", str(seeds), str(seen.landscapes), str(seen.false)))
    sys.stdout.write(table(rows) + "\n\n")
    rows = [("records", "landscapes of every choice of seeds", "false alarms")]
    for task in TASKS:
        choices = [of_seeds(one, kept) for one in committed(task) for kept in subsets(one)]
        rows.append((task, str(len(choices)), str(sum(map(bool, map(outliers, choices))))))
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main()
