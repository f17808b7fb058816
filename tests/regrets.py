"""How often transfer regret finds the true rule, on landscapes of which the truth is known.

`python -m tests.regrets` prints a table of it; with `--page docs/landscape.md` it writes the table
of that page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tests.landscapes import (
    CLIFF,
    FIFTH,
    MORE,
    NOISY,
    Array,
    Scenario,
    Truth,
    exact,
    landscape_of,
    reseen,
)
from tests.tables import simulate
from weightdecay.results import Landscape, TransferRegret, measure_transfer
from weightdecay.results.choosing import choose
from weightdecay.results.transfer import RULES, Pair


@dataclass(frozen=True)
class Found:
    """Shares of simulated sweeps, of those that measured a regret; costs are in points.

    The true rule is the one that truly costs least. `tied` counts sweeps in which it is among the
    tied rules, `alone` those with one rule left, and `right` those that recommend it. `extra` is
    what following the recommendation truly costs, on average, above the true rule. `covered` and
    `others` say how often the interval of the true rule's cost, and of the other rules' costs,
    contains the true cost.
    """

    simulations: int
    values: int
    tied: float
    alone: float
    right: float
    extra: float
    covered: float
    others: float


#: Places and shares of a standard normal, for means over seeds.
_PLACES, _SHARES = np.polynomial.hermite_e.hermegauss(21)
_NORMAL = _PLACES, _SHARES / _SHARES.sum()


@cache
def _grid(truth: Truth) -> Landscape:
    return landscape_of(truth, exact(truth.errors(), 1))


def true_costs(truth: Truth, pairs: Sequence[Pair], *, tilt: float = 0.0) -> dict[float, float]:
    """Return each rule's cost without noise, for decays that are chosen without noise.

    Both are those of the mean over all seeds there might be, whose exponents have the standard
    deviation `tilt`. What diverges has the worst error of the grid.
    """
    places, shares = _NORMAL if tilt else ((0.0,), (1.0,))
    seeds = [replace(truth, s=truth.s + tilt * float(place)) for place in places]

    def at(lr: float, decays: Array) -> Array:
        means: Array = np.tensordot(shares, [one.at(lr, decays) for one in seeds], 1)
        return means

    errors = np.tensordot(shares, [one.errors() for one in seeds], 1)
    grid = _grid(replace(truth, s=0.0, centre=(0.0, 0.0)))
    columns = choose(reseen(grid, exact(errors, 1), truth.diverged())).columns
    worst = errors[~truth.diverged()].max()

    def costs(tuned: float, used: float) -> Array:
        decays = columns[tuned].decay * (used / tuned) ** -np.array([*RULES])
        carried = np.where(truth.diverges_at(used, decays), worst, at(used, decays))
        return carried - at(used, np.array([columns[used].decay]))

    means = np.mean([costs(*pair) for pair in pairs], axis=0)
    return dict(zip(RULES, means.tolist(), strict=True))


def simulated(
    scenario: Scenario, *, simulations: int, first: int = 0
) -> list[tuple[dict[float, float], TransferRegret]]:
    """Simulate sweeps, the optimum within half a step of where the truth has it.

    Each regret comes with the true costs of its pairs of learning rates.
    """
    random = np.random.default_rng(first)
    kept = landscape_of(scenario.truth, exact(scenario.truth.errors(), scenario.seeds))
    found = []
    for _ in range(simulations):
        centre = random.uniform(-0.5, 0.5, 2) + scenario.truth.centre
        moved = replace(scenario.truth, centre=(float(centre[0]), float(centre[1])))
        landscape = reseen(kept, *scenario.splits(moved, random))
        regret = measure_transfer(_thinned(landscape, HOLES.get(scenario.name, 0.0), random))
        costs = true_costs(moved, list(regret.pairs), tilt=scenario.tilt) if regret.pairs else {}
        found.append((costs, regret))
    return found


def _thinned(landscape: Landscape, holes: float, random: np.random.Generator) -> Landscape:
    kept = {place: cell for place, cell in landscape.cells.items() if random.random() >= holes}
    return replace(landscape, cells=kept)


def counted(seen: Sequence[tuple[dict[float, float], TransferRegret]]) -> Found:
    """Count how often regrets are right, given the true costs."""
    known = [(costs, found) for costs, found in seen if found.rule is not None]
    counts: list[list[float]] = [[] for _ in range(6)]
    tied, alone, right, extra, covered, others = counts
    for costs, found in known:
        best = min(costs, key=costs.__getitem__)
        rule = found.rule
        assert rule is not None
        tied.append(best in found.tied)
        alone.append(len(found.tied) == 1)
        right.append(rule == best)
        extra.append(100 * (costs[rule] - costs[best]))
        for s, cost in found.costs.items():
            if s not in found.beyond:
                (covered if s == best else others).append(cost.low <= costs[s] <= cost.high)
    shares = (float(np.mean(share)) for share in counts)
    return Found(len(seen), len(known), *shares)


def _both(name: str, truth: Truth, **how: float) -> list[Scenario]:
    noise = {"examples": 10_000, **how}
    return [
        Scenario(
            name,
            truth,
            seeds,
            noise.get("tilt", 0.0),
            noise.get("spread", 0.003),
            int(noise["examples"]),
        )
        for seeds in (3, 5)
    ]


_LONG = replace(CLIFF, decays=15)
_HALF = replace(CLIFF, decays=21, decay_factor=2**0.5)
#: The rows of the table.
SCENARIOS = (
    *_both("symmetric, s = 0.5", replace(CLIFF, cliff=1.0, curvature=0.0075)),
    *_both("cliff, s = −1", replace(_LONG, s=-1.0)),
    *_both("cliff, s = 0", replace(CLIFF, s=0.0)),
    *_both("cliff, s = 0.25", replace(CLIFF, s=0.25)),
    *_both("cliff, s = 0.5", CLIFF),
    *_both("cliff, s = 1", replace(CLIFF, s=1.0)),
    *_both("cliff, s = 2", replace(_LONG, s=2.0)),
    *_both("steep cliff, s = 0.5", replace(CLIFF, curvature=0.003, cliff=50.0)),
    *_both("drift +0.7, s = 0.5", replace(CLIFF, drift=0.7)),
    *_both("diverged corner, s = 0.5", replace(CLIFF, diverges=1.7)),
    *_both("tilting seeds, s = 0.5", CLIFF, tilt=0.3),
    *_both("noisy, 7×7, s = 0", Truth(s=0.0, cliff=5.0), **NOISY),
    *_both("noisy, 7×7, s = 0.5", Truth(cliff=5.0), **NOISY),
    *_both("noisy, 7×7, factor 4, s = 0.5", Truth(factor=4.0, cliff=5.0), **NOISY),
    *_both("a tenth of the settings missing, s = 0.5", CLIFF),
    # These had no part in the choice of the estimator.
    *_both("new: power 1.5, cliff ×4, s = 0.75", replace(CLIFF, power=1.5, cliff=4.0, s=0.75)),
    *_both("new: power 3, cliff ×8, s = −0.5", replace(_LONG, power=3.0, cliff=8.0, s=-0.5)),
    *_both("new: strongly tilting seeds, cliff ×4, s = 0.5", replace(CLIFF, cliff=4.0), tilt=0.5),
    *_both("new: tilting seeds, a tenth missing, s = 0.5", CLIFF, tilt=0.3),
    *_both("new: half steps, a fifth missing, drift −0.5, s = 0.5", replace(_HALF, drift=-0.5)),
    *_both("new: errors of 20 %, 0.6 points of noise, s = 0", FIFTH, **MORE),
)
#: The shares of settings that are missing.
HOLES = {
    "a tenth of the settings missing, s = 0.5": 0.1,
    "new: tilting seeds, a tenth missing, s = 0.5": 0.1,
    "new: half steps, a fifth missing, drift −0.5, s = 0.5": 0.2,
}
TITLES = (
    *("landscape", "seeds", "measured", "true rule tied", "one rule left", "right rule"),
    *("extra cost", "covered", "of other rules"),
)
BEGIN = "<!-- regrets: `python -m tests.regrets --page docs/landscape.md` writes what follows -->"
END = "<!-- /regrets -->"


def told(scenario: Scenario, seen: Found) -> tuple[str, ...]:
    """Return a row of the table."""
    return (
        scenario.name,
        str(scenario.seeds),
        f"{seen.values}/{seen.simulations}",
        *(f"{share:.1%}" for share in (seen.tied, seen.alone, seen.right)),
        f"{seen.extra:.2f}",
        *(f"{share:.1%}" for share in (seen.covered, seen.others)),
    )


def row(scenario: Scenario, simulations: int) -> tuple[str, ...]:
    """Simulate a row of the table."""
    return told(scenario, counted(simulated(scenario, simulations=simulations)))


if __name__ == "__main__":
    simulate("How often transfer regret is right.", row, SCENARIOS, TITLES, marks=(BEGIN, END))
