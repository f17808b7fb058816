"""Sweeps over three budgets of which the truth is known: how the best decay moves with the epochs.

`python -m tests.budgets` measures how often the 95 % intervals of the budget exponent cover the
truth, and how often no value is given, and prints a table of it; with `--page docs/exponents.md` it
writes the table of that page.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.landscapes import (
    CLIFF,
    NOISY,
    QUADRATIC,
    Truth,
    exact,
    landscape_of,
    measured,
    reseen,
    runs_of,
)
from tests.tables import simulate
from weightdecay.decay import BudgetExponents
from weightdecay.records import Run
from weightdecay.results import Exponent, Landscape, budget_exponents, landscapes

#: A budget, and others that differ from it in one factor alone.
BUDGET: dict[str, Any] = {"epochs": 16, "data": 4000, "batch": 100}
VARIED: dict[str, tuple[Any, ...]] = {
    "epochs": (4, 16, 32),
    "data": (2000, 4000, 8000),
    "batch": (50, 100, 200),
}
WIDE = replace(QUADRATIC, s=0.3, rates=7, decays=11, level=0.01)

#: The epochs of the three budgets, and where their best learning rates lie, in doublings.
EPOCHS = (5, 20, 80)
RATES = (0.4, 0.0, -0.4)
#: The true exponent along the ridge. At a fixed α, it is less by s · (doublings of α* / of epochs).
ALONG = 0.5


def landscape(
    rule: BudgetExponents, *, way: str = "weight_decay", truth: Truth = WIDE, **budget: Any
) -> Landscape:
    """Return the landscape of a budget, its best λ moved from BUDGET's by the rule."""
    budget = BUDGET | budget
    log = {name: math.log2(budget[name] / BUDGET[name]) for name in BUDGET}
    moved = -rule.epochs * log["epochs"] - rule.data * log["data"] + rule.batch * log["batch"]
    updates = budget["data"] * budget["epochs"] // budget["batch"]
    if way == "normalized_decay":
        moved += math.log2(updates / 640) / 2
    step = math.log2(truth.decay_factor or truth.factor)
    truth = replace(truth, centre=(0.0, moved / step))
    runs = runs_of(truth, exact(truth.errors()), way=way, **budget)
    [found] = landscapes(Run(run.config, (replace(run.last, updates=updates),)) for run in runs)
    return found


@dataclass(frozen=True)
class Scenario:
    """A kind of sweep: the truth of its middle budget, its seeds, and how they scatter.

    The power of two of the cliff grows by `drift` from one budget to the next. Seeds have exponents
    of their own, with the standard deviation `own`.
    """

    name: str
    truth: Truth
    seeds: int
    drift: float = 0.0
    own: float = 0.0
    spread: float = 0.003
    examples: int = 10_000

    @property
    def fixed(self) -> float:
        """Return the true exponent at a fixed learning rate."""
        return ALONG - self.truth.s * (RATES[-1] - RATES[0]) / math.log2(EPOCHS[-1] / EPOCHS[0])


@dataclass(frozen=True)
class Coverage:
    """How often an interval covered the truth, where there was one."""

    simulations: int
    values: int
    covered: float
    bias: float
    width: float
    spread: float


def coverage(
    scenario: Scenario, *, simulations: int = 1000, first: int = 0
) -> tuple[Coverage, Coverage]:
    """Simulate sweeps, the optima within half a step of where the truth has them, and count."""
    random = np.random.default_rng(first)
    truth = scenario.truth
    noise: dict[str, Any] = {"spread": scenario.spread, "examples": scenario.examples}
    step = np.log2([truth.factor, truth.decay_factor or truth.factor])
    kept = [
        landscape_of(truth, exact(truth.errors(), scenario.seeds), epochs=epochs)
        for epochs in EPOCHS
    ]
    found = []
    for _ in range(simulations):
        offset = random.uniform(-0.5, 0.5, 2) + truth.centre
        own = ALONG + scenario.own * random.standard_normal(scenario.seeds)
        sets = []
        for place, one in enumerate(kept):
            doublings = float(np.log2(EPOCHS[place] / EPOCHS[1]))
            centre = float(offset[0] + RATES[place] / step[0])
            cliff = truth.cliff * 2 ** (scenario.drift * (place - 1))
            moved = [
                replace(truth, centre=(centre, float(offset[1] - e * doublings / step[1])))
                for e in own
            ]
            errors = np.stack([replace(each, cliff=cliff).errors() for each in moved], -1)
            splits = measured(errors, scenario.seeds, random, **noise)
            sets.append(reseen(one, splits, moved[0].diverged()))
        found.append(budget_exponents(sets)["epochs"])
    fixed = _counted([one.fixed for one in found], scenario.fixed)
    return fixed, _counted([one.ridge for one in found], ALONG)


def _counted(found: Sequence[Exponent], truth: float) -> Coverage:
    given = [one for one in found if one.value is not None and one.bound is None]
    values = np.array([one.value for one in given], dtype=np.float64)
    ends = np.array([(one.low, one.high) for one in given]).reshape(-1, 2)
    if not given:
        return Coverage(len(found), 0, np.nan, np.nan, np.nan, np.nan)
    return Coverage(
        simulations=len(found),
        values=len(given),
        covered=float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))),
        bias=float(np.mean(values) - truth),
        width=float(np.median(ends[:, 1] - ends[:, 0]) / 2),
        spread=float(np.std(values)),
    )


_HALF = replace(CLIFF, decays=21, decay_factor=2**0.5)
_THREE: dict[str, Any] = {"rates": 3, "s": 0.0}
#: The rows of the table.
SCENARIOS = (
    Scenario("symmetric", replace(CLIFF, cliff=1.0, curvature=0.0075), 3),
    *(Scenario("cliff", CLIFF, seeds) for seeds in (1, 2, 3, 5)),
    *(Scenario("steep cliff", replace(CLIFF, curvature=0.003, cliff=50.0), k) for k in (2, 3)),
    *(Scenario("noisy, 7×7", Truth(cliff=5.0), seeds, **NOISY) for seeds in (2, 3)),
    *(Scenario("cliff drifts ×1.6 per budget", CLIFF, seeds, drift=0.7) for seeds in (2, 3)),
    *(Scenario("diverged corner", replace(CLIFF, diverges=1.7), seeds) for seeds in (2, 3)),
    Scenario("near an edge", replace(CLIFF, centre=(0.0, 3.0)), 3),
    *(Scenario("seeds of their own", CLIFF, seeds, own=0.2) for seeds in (2, 3, 5)),
    *(Scenario("half steps", _HALF, seeds) for seeds in (2, 3)),
    *(Scenario("half steps, three α", replace(_HALF, **_THREE), seeds) for seeds in (2, 3)),
    Scenario("half steps, three α, drifts", replace(_HALF, **_THREE), 3, drift=0.7),
)
TITLES = (
    *("sweep", "seeds", "fixed α: values", "covered", "bias", "±", "sd"),
    *("ridge: values", "covered", "bias", "±", "sd"),
)
BEGIN = "<!-- budgets: `python -m tests.budgets --page docs/exponents.md` writes what follows -->"
END = "<!-- /budgets -->"


def told(scenario: Scenario, pair: tuple[Coverage, Coverage]) -> tuple[str, ...]:
    """Return a row of the table."""
    row = [scenario.name, str(scenario.seeds)]
    for seen in pair:
        row.append(f"{seen.values}/{seen.simulations}")
        if not seen.values:
            row += ["–"] * 4
            continue
        bias = f"{seen.bias:+.3f}".replace("-", "−")
        row += [f"{seen.covered:.1%}", bias, f"{seen.width:.3f}", f"{seen.spread:.3f}"]
    return tuple(row)


def row(scenario: Scenario, simulations: int) -> tuple[str, ...]:
    """Simulate a row of the table."""
    return told(scenario, coverage(scenario, simulations=simulations))


if __name__ == "__main__":
    simulate("How often intervals cover the truth.", row, SCENARIOS, TITLES, marks=(BEGIN, END))
