"""What to train next: values to add to a grid, or settings to train again with more seeds.

Values are added beyond an edge that the best setting is near. If what rules cost is unknown because
steps are too large, values between those trained are added, and if it is because best decays lie at
the ends of their learning rates, decays beyond these: more seeds would not help.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from weightdecay.results.carrying import Knobs
from weightdecay.results.choosing import best_columns
from weightdecay.results.column import ROUNDED
from weightdecay.results.coupling import REACH
from weightdecay.results.fit import Surface
from weightdecay.results.interpolation import APART
from weightdecay.results.kriging import FEWEST, finished
from weightdecay.results.landscape import Landscape
from weightdecay.results.stencils import usual_steps

#: By how many steps to extend a grid at an edge.
STEPS = 2
#: How many seeds to add if noise leaves the rule open.
MORE = 2
_NEAR = 0.25  # a best value within this many steps of the last one is at the grid's edge


@dataclass(frozen=True)
class Extension:
    """Values to add to a grid: of a knob, beyond its "lowest" or "highest", or "between" others.

    The knob is "lr" or "decay"; "torch" is λ/α, in which a grid may be made. `edge` says whether
    the best setting is near that end; otherwise the grid has too few values there to tell, or the
    best decays of `others`, at other learning rates, are. Values between others make steps smaller
    that are too large to say what lies in between.
    """

    knob: str
    end: str
    values: tuple[float, ...]
    edge: bool = True
    others: bool = False


@dataclass(frozen=True)
class Repeat:
    """Settings to train again, with seeds that no run has had yet.

    The decays are "torch" if they are λ/α, in which a grid may be made.
    """

    lrs: tuple[float, ...]
    decays: tuple[float, ...]
    seeds: tuple[int, ...]
    knob: str = "decay"


def again(landscape: Landscape, found: Surface) -> Repeat:
    """Return two more seeds for the cells of a surface."""
    last = max(seed for cell in landscape.cells.values() for seed in cell.seeds)
    lrs = sorted({cell.lr for cell in found.cells})
    fitted = {(cell.lr, cell.decay) for cell in found.cells}
    decays, knob = sorted({decay for _, decay in fitted}), "decay"
    if landscape.in_torchs_decay:
        places = (place for place in landscape.cells if place[1] > 0)
        torchs = zip(places, landscape.in_torch, strict=True)
        decays, knob = sorted({torch for place, (_, torch) in torchs if place in fitted}), "torch"
    seeds = tuple(range(last + 1, last + 1 + MORE))
    return Repeat(tuple(lrs), tuple(decays), seeds, knob)


def extensions(
    landscape: Landscape, lr: float, decay: float, advice: Knobs
) -> tuple[Extension, ...]:
    """Return the values to add to a grid with this best setting, if any would help to decide."""
    few = len(finished(landscape)[0]) < FEWEST
    found = _beyond_the_best(landscape, lr, decay, few=few)
    if found or advice.decided or advice.regret.costs:
        return found
    return _between(landscape, lr, decay) + _wider(landscape, lr, decay)


def _beyond_the_best(
    landscape: Landscape, lr: float, decay: float, *, few: bool
) -> tuple[Extension, ...]:
    """Return the values to add if the best is at an edge of the settings trained near it.

    A knob with fewer than three values there is extended at both ends, unless there are few
    settings.
    """
    added = []
    for knob, best, values, step in _near(landscape, lr, decay):
        for end, edge, way in (("lowest", min(values), -1), ("highest", max(values), 1)):
            near = way * (best - math.log2(edge)) > -_NEAR * step
            beyond = near or (len(set(values)) < 3 and not few)
            new = _beyond(landscape, knob, edge, way * step)
            if beyond and new:
                added.append(Extension(knob, end, new, near))
    return tuple(added)


def _beyond(landscape: Landscape, knob: str, edge: float, step: float) -> tuple[float, ...]:
    """Return values beyond an edge, in steps of so many doublings; λ stays below 1."""
    most = 1.0 if knob == "decay" and landscape.way == "weight_decay" else math.inf
    values = (edge * 2.0 ** (step * n) for n in range(1, STEPS + 1))
    return tuple(value for value in values if value < most)


def _between(landscape: Landscape, lr: float, decay: float) -> tuple[Extension, ...]:
    """Return values halfway from the best setting's to its neighbours, if these are too far away.

    If only others are, it is between these. More seeds would not show what lies there.
    """
    added = []
    for knob, best, *_ in _near(landscape, lr, decay):
        logs = sorted({math.log2(value) for value in _trained(landscape, knob)})
        at = min(logs, key=lambda one: abs(one - best))
        every = [pair for pair in pairwise(logs) if pair[1] - pair[0] > ROUNDED * APART]
        wide = [pair for pair in every if at in pair] or every
        new = tuple(float(f"{2.0 ** ((low + high) / 2):.2g}") for low, high in wide)
        if new:
            added.append(Extension(knob, "between", new, edge=False))
    return tuple(added)


def _trained(landscape: Landscape, knob: str) -> list[float]:
    """Return all values of a knob above 0; "torch" is λ/α."""
    if knob == "torch":
        return [torch for _, torch in landscape.in_torch]
    places = [place for place in landscape.cells if place[1] > 0]
    return [place[knob == "decay"] for place in places]


def _wider(landscape: Landscape, lr: float, decay: float) -> tuple[Extension, ...]:
    """Return decays beyond the ends at which learning rates near the best one have theirs.

    They do not show how the best decay moves, and with more seeds they would not either.
    """
    ends = set()
    for column in best_columns(landscape).values():
        if not column.inside and abs(math.log2(column.lr / lr)) <= ROUNDED * REACH:
            own = [other for at, other in landscape.cells if at == column.lr and other > 0]
            ends.add("highest" if column.decay**2 > min(own) * max(own) else "lowest")
    _, (knob, _, _, step) = _near(landscape, lr, decay)
    decays = _trained(landscape, knob)
    added = []
    for end, edge, way in (("lowest", min(decays), -1), ("highest", max(decays), 1)):
        new = _beyond(landscape, knob, edge, way * step)
        if end in ends and new:
            added.append(Extension(knob, end, new, edge=False, others=True))
    return tuple(added)


def _near(
    landscape: Landscape, lr: float, decay: float
) -> Iterator[tuple[str, float, list[float], float]]:
    """Yield each knob, its best value in doublings, the values trained near it, and their step.

    A grid in torch's decay has that as its second knob.
    """
    cells = [(cell.lr, cell.decay) for cell in landscape.cells.values() if cell.decay > 0]
    name = "decay"
    if landscape.in_torchs_decay or (landscape.told_in_torch and len(landscape.lrs) == 1):
        name, decay, cells = "torch", decay / lr, landscape.in_torch
    x, z = math.log2(lr), math.log2(decay)
    across, along = usual_steps(cells)
    column = [decay for lr, decay in cells if abs(math.log2(lr) - x) <= across / 2 + 1e-6]
    row = [lr for lr, decay in cells if abs(math.log2(decay) - z) <= along / 2 + 1e-6]
    # Between the rows or columns of a ragged grid, there may be none.
    yield "lr", x, row or [lr for lr, _ in cells], across
    yield name, z, column or [decay for _, decay in cells], along
