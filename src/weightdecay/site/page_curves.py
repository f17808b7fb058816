"""The learning curves of a page, thinned so that many of them fit into a file of a few MB."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from weightdecay.number_format import in_units
from weightdecay.results import Cell, Curve

#: How many numbers the curves of a page may have. With more, epochs are left out.
NUMBERS = 200_000
_FEWEST = 4

Place = tuple[float, float]


def curves_of(
    cells: Sequence[Cell],
    curves: Mapping[Place, Mapping[str, Curve]],
    metric: str | None,
    count: int,
) -> dict[str, Any] | None:
    """Return the curves of a landscape, one per cell and split; None if there are none.

    `count` is the number of curves in the page. A band is given for cells of several seeds.
    """
    if not curves:
        return None
    places = sorted({x for own in curves.values() for one in own.values() for x in one.x})
    kept = thinned(places, max(_FEWEST, NUMBERS // (3 * max(1, count))))
    splits = list(dict.fromkeys(split for own in curves.values() for split in own))
    rows: dict[str, list[Any]] = {split: [] for split in splits}
    for cell in cells:
        own = curves.get((cell.lr, cell.decay), {})
        for split in splits:
            rows[split].append(_row(own.get(split), kept, metric, banded=len(cell.seeds) > 1))
    return {"epochs": kept, "of": len(places), "rows": rows}


def thinned(places: Sequence[float], most: int) -> list[float]:
    """Return at most so many places, evenly spread, with the first and the last."""
    if len(places) <= most:
        return list(places)
    step = (len(places) - 1) / (most - 1)
    return [places[round(at * step)] for at in range(most)]


def _row(
    found: Curve | None, kept: Sequence[float], metric: str | None, *, banded: bool
) -> list[list[float | None]] | None:
    if found is None:
        return None
    at = {x: place for place, x in enumerate(found.x)}
    lines = [found.middle, found.low, found.high] if banded else [found.middle]
    return [
        [_drawn(in_units(line[at[x]], metric)) if x in at else None for x in kept] for line in lines
    ]


def _drawn(value: float) -> float | None:
    """Return a number with four digits; None if it is not finite."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
