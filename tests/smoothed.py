"""How often intervals of s cover the truth on landscapes that are smoothed from committed records.

`python -m tests.smoothed` prints a table of it; with `--page docs/exponents.md` it writes the table
of that page. The true ridge is where the smooth surface is lowest at each learning rate, and the
true s is minus the slope of the line through it, within two doublings of the true α*.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tests.landscapes import END, Array
from tests.surfaces import PANELS, SWEEPS, WHOLE, Surface, panels, smooth
from tests.tables import simulate
from weightdecay.results import Exponent, Landscape, coupling
from weightdecay.results.arrays import grid
from weightdecay.results.coupling import REACH
from weightdecay.results.landscape import Cell

#: Where true best decays are this many doublings off their line, no single s describes them.
BENT = 0.2
_PLACES = 401  # where the surface is looked at, along either axis


@dataclass(frozen=True)
class Ridge:
    """The true s of a surface, in total and on either side of its best learning rate.

    `off` is how many doublings the true best decays lie off their line, as a root mean square.
    """

    s: float
    below: float
    above: float
    off: float


@dataclass(frozen=True)
class Smoothed:
    """A landscape, the smooth surface through it, and how many examples errors are counted on."""

    landscape: Landscape
    surface: Surface
    examples: tuple[int, int]

    @property
    def ridge(self) -> Ridge:
        """Return the truth near α*, as far as it was measured."""
        found = grid(self.landscape, zero=False)
        rates = np.log2(found.lrs[~found.lost().all(1)])
        x = np.linspace(rates[0], rates[-1], _PLACES)
        z = np.linspace(np.log2(found.decays[0]), np.log2(found.decays[-1]), _PLACES)
        heights = np.stack([self.surface.at(one, z) for one in x])
        y, best = z[heights.argmin(1)], x[heights.min(1).argmin()]
        near = (y > z[0]) & (y < z[-1]) & (np.abs(x - best) <= REACH)
        line = np.polyfit(x[near], y[near], 1)
        off = float(np.std(y[near] - np.polyval(line, x[near])))
        below, above = (
            -float(np.polyfit(x[side], y[side], 1)[0]) if np.ptp(x[side]) > 1 else np.nan
            for side in (near & (x <= best), near & (x >= best))
        )
        return Ridge(-float(line[0]), below, above, off)

    def simulated(self, seeds: int, random: np.random.Generator) -> Landscape:
        """Return what so many other seeds find, with the grid moved by up to half a step.

        Seeds scatter as those of the records do. Settings that diverged in these diverge again.
        """
        found = grid(self.landscape, zero=False)
        measured, lost = np.isfinite(found.scores()), found.lost()
        x, z = np.log2(found.lrs), np.log2(found.decays)
        gaps = np.concatenate([np.diff(z[cells]) for cells in measured])
        moved = random.uniform(-0.5, 0.5, 2) * [np.median(np.diff(x)), np.median(gaps)]
        heights = self.surface.at(x[:, None] + moved[0], z + moved[1])[..., None]
        splits = []
        parts = zip(self.surface.own, self.surface.common, self.examples, strict=True)
        for own, common, examples in parts:
            scattered = heights + own * random.standard_normal((*measured.shape, seeds))
            errors = self.surface.errors(scattered + common * random.standard_normal(seeds))
            splits.append(np.round(errors * examples) / examples)
        every = tuple(range(seeds))
        cells = {}
        for i, j in np.argwhere(measured):
            place = float(found.lrs[i]), float(found.decays[j])
            chosen, tested = (tuple(map(float, split[i, j])) for split in splits)
            cells[place] = Cell(*place, every, chosen, tested, every if lost[i, j] else ())
        return replace(self.landscape, cells=cells)


def smoothed(name: str, algorithm: str, way: str) -> Smoothed:
    """Smooth the landscape of an algorithm in a sweep."""
    landscape = panels(name)[algorithm, way]
    return Smoothed(landscape, smooth(landscape), SWEEPS[name].examples)


@dataclass(frozen=True)
class Scenario:
    """A row of the table: the sweep, the algorithm, how its decay is stated, and how many seeds."""

    sweep: str
    algorithm: str
    way: str
    seeds: int

    @property
    def name(self) -> str:
        """Return what the row is called."""
        if (self.algorithm, self.way) in PANELS:
            return f"{self.sweep}, {self.algorithm}"
        means = "L2" if self.way == "l2" else "decoupled"
        return f"new: {self.sweep}, {self.algorithm.rpartition(':')[2]}, {means}"


@dataclass(frozen=True)
class Coverage:
    """How often intervals covered the truth where there was a value, and why there was none."""

    truth: Ridge
    simulations: int
    values: int
    disagreed: int
    kneed: int
    covered: float
    check: float
    bias: float
    width: float
    spread: float


def coverage(scenario: Scenario, *, simulations: int = 1000, first: int = 0) -> Coverage:
    """Simulate sweeps on a smoothed landscape, and count."""
    random = np.random.default_rng(first)
    one = smoothed(scenario.sweep, scenario.algorithm, scenario.way)
    truth = one.ridge
    seen = [coupling(one.simulated(scenario.seeds, random)) for _ in range(simulations)]
    given = _given(each.exponent for each in seen)
    check = _given(each.check for each in seen)
    withheld = [each.exponent.why for each in seen if each.exponent.withheld]
    return Coverage(
        truth=truth,
        simulations=simulations,
        values=len(given),
        disagreed=sum("disagree" in why for why in withheld),
        kneed=sum("knee" in why for why in withheld),
        covered=_covered(given, truth.s),
        check=_covered(check, truth.s),
        bias=float(given[:, 0].mean() - truth.s) if len(given) else np.nan,
        width=float(np.median(given[:, 2] - given[:, 1]) / 2) if len(given) else np.nan,
        spread=float(given[:, 0].std()) if len(given) else np.nan,
    )


def _given(exponents: Iterable[Exponent]) -> Array:
    """Return values and the ends of their intervals, where there is a value."""
    known = [one for one in exponents if one.value is not None and one.bound is None]
    return np.array([(one.value, one.low, one.high) for one in known]).reshape(-1, 3)


def _covered(given: Array, s: float) -> float:
    return float(((given[:, 1] <= s) & (s <= given[:, 2])).mean()) if len(given) else np.nan


#: Landscapes that had no part in the choice of the interval.
NEW = tuple(
    (name, f"torch.optim:{algorithm}", way)
    for name in ("mnist1d", "text")
    for algorithm in ("RMSprop", "Adagrad")
    for way in ("l2", "weight_decay")
)
#: The rows of the table.
SCENARIOS = (
    *(
        Scenario(name, *panel, seeds)
        for name in WHOLE
        for panel in PANELS
        for seeds in (2, 3, 5, 8)
    ),
    *(Scenario(*place, 3) for place in NEW),
)
TITLES = (
    *("landscape", "seeds", "s", "s₋", "s₊", "off", "values", "covered", "check"),
    *("disagree", "knee", "bias", "±", "sd"),
)
BEGIN = "<!-- smoothed: `python -m tests.smoothed --page docs/exponents.md` writes what follows -->"
MARKS = (BEGIN, END.replace("coverage", "smoothed"))


def told(scenario: Scenario, seen: Coverage) -> tuple[str, ...]:
    """Return a row of the table."""
    truth = (seen.truth.s, seen.truth.below, seen.truth.above)
    return (
        scenario.name,
        str(scenario.seeds),
        *("–" if np.isnan(one) else f"{one:.2f}".replace("-", "−") for one in truth),
        f"{seen.truth.off:.2f}",
        f"{seen.values}/{seen.simulations}",
        *(f"{share:.1%}" for share in (seen.covered, seen.check)),
        *(f"{count / seen.simulations:.1%}" for count in (seen.disagreed, seen.kneed)),
        f"{seen.bias:+.3f}".replace("-", "−"),
        f"{seen.width:.3f}",
        f"{seen.spread:.3f}",
    )


def row(scenario: Scenario, simulations: int = 1000) -> tuple[str, ...]:
    """Simulate a row of the table."""
    return told(scenario, coverage(scenario, simulations=simulations))


if __name__ == "__main__":
    simulate("How often intervals cover the truth.", row, SCENARIOS, TITLES, marks=MARKS)
