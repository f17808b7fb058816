"""The same cells on other splits: validation, test and training errors, and learning curves."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from weightdecay.records import Run
from weightdecay.results.curves import Curve, curve
from weightdecay.results.grouping import apart
from weightdecay.results.landscape import Landscape

#: The splits of a record, and how its fields name them.
FIELDS = {"test": "test", "validation": "validation", "training": "train"}
Place = tuple[float, float]


def cell_runs(landscapes: Sequence[Landscape], runs: Iterable[Run]) -> list[dict[Place, list[Run]]]:
    """Return the runs of each landscape's cells, by seed; none for points made elsewhere."""
    groups: dict[object, dict[Place, dict[int, Run]]] = {}
    for run in runs:
        if run.records:
            key = apart(run.config)
            place = run.config.lr, getattr(run.config, key[1])
            seeds = groups.setdefault(key, {}).setdefault(place, {})
            seeds.setdefault(run.config.seed, run)
    return [
        {
            place: [seeds[seed] for seed in sorted(seeds)]
            for place, seeds in groups.get(_key(landscape), {}).items()
        }
        for landscape in landscapes
    ]


def by_split(landscape: Landscape, runs: Mapping[Place, Sequence[Run]]) -> dict[str, Landscape]:
    """Return a landscape with the errors of each split to report, as far as they are known.

    `runs` are those of its cells; see `cell_runs`. The landscape's own split comes first. A table
    that does not name its splits has one, "".
    """
    found = {landscape.tested_on or "": landscape}
    if landscape.run_config is None:
        chosen = {place: cell.chosen for place, cell in landscape.cells.items()}
        if landscape.chosen_on is not None:
            found.setdefault(landscape.chosen_on, _with(landscape, landscape.chosen_on, chosen))
        return found
    for split in FIELDS:
        field = _field(split, landscape.of)
        if split == "test" and landscape.tested_on == "validation":
            continue  # there are no test errors
        if split in found or not hasattr(next(iter(runs.values()))[0].last, field):
            continue
        errors = {place: tuple(_last(own, field)) for place, own in runs.items()}
        if any(math.isfinite(error) for own in errors.values() for error in own):
            found[split] = _with(landscape, split, errors)
    return found


def cell_curves(runs: Sequence[Run], splits: Iterable[str], of: str) -> dict[str, Curve]:
    """Return the learning curve of a cell on each split, if its runs have more than one record."""
    if not any(len(run.records) > 1 for run in runs):
        return {}
    return {split: curve(runs, _field(split, of), label=split) for split in splits}


def _key(landscape: Landscape) -> object:
    return None if landscape.run_config is None else apart(landscape.run_config)


def _field(split: str, of: str) -> str:
    return f"{FIELDS[split]}_{of}"


def _last(runs: Sequence[Run], field: str) -> Iterator[float]:
    for run in runs:
        value = getattr(run.last, field)
        yield math.nan if value is None else value


def _with(landscape: Landscape, split: str, errors: Mapping[Place, tuple[float, ...]]) -> Landscape:
    cells = {place: replace(cell, tested=errors[place]) for place, cell in landscape.cells.items()}
    return replace(landscape, cells=cells, tested_on=split)
