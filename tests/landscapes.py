"""Landscapes of which the truth is known: what a sweep of a hidden coupling exponent would leave.

`python -m tests.landscapes` measures how often the 95 % interval covers the truth, and how often no
value is given, and prints a table of it; with `--page docs/exponents.md` it writes the table of
that page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.tables import simulate
from weightdecay.records import Record, Run, RunConfig
from weightdecay.results import Exponent, Landscape, coupling, landscapes

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Truth:
    """A basin whose best decay moves by the power −s of the learning rate.

    Errors rise by a `power` of log2 λ about the best, and flatten: with too little decay at
    `plateau` above it, with too much at `chance`; infinite, they never do. With too much decay they
    rise `cliff` times as steeply, and the power of two of that grows by `drift` with each doubling
    of the learning rate. Runs so many doublings above the best decay diverge. `centre` is the place
    of the optimum on the grid, in steps from its middle; factors are between neighbours. Above the
    best learning rate, s is greater by `knee`.
    """

    s: float = 0.5
    rates: int = 7
    decays: int = 7
    factor: float = 2.0
    lowest: float = 0.30
    curvature: float = 0.0075
    level: float = 0.006
    plateau: float = 0.06
    chance: float = 0.9
    centre: tuple[float, float] = (0.0, 0.0)
    zero: bool = False
    cliff: float = 1.0
    drift: float = 0.0
    diverges: float = np.inf
    decay_factor: float | None = None
    power: float = 2.0
    knee: float = 0.0

    @property
    def lrs(self) -> Array:
        """Return powers of two, so that logarithms are exact."""
        return _powers(2.0**-7, self.factor, self.rates)

    @property
    def lambdas(self) -> Array:
        """Return the decays, 0 first where it is among them."""
        above = _powers(2.0**-11, self.decay_factor or self.factor, self.decays)
        return np.concatenate([[0.0], above]) if self.zero else above

    def errors(self) -> Array:
        """Return the true error of each learning rate × decay."""
        return self.at(self.lrs[:, None], self.lambdas[None, :])

    def at(self, lr: Array | float, decay: Array | float) -> Array:
        """Return the true error of a learning rate and a decay, on the grid or off it."""
        return self.errors_at(*self._off(lr, decay))

    def diverged(self) -> Flags:
        """Return which learning rates × decays diverge."""
        return self.diverges_at(self.lrs[:, None], self.lambdas[None, :])

    def diverges_at(self, lr: Array | float, decay: Array | float) -> Flags:
        """Return whether a learning rate and a decay diverge, on the grid or off it."""
        x, z = self._off(lr, decay)
        diverged: Flags = z + self._moved(x) > self.diverges
        return diverged

    def _moved(self, x: Array) -> Array:
        """Return by how many powers of two the best decay is lower than at the best rate."""
        moved: Array = self.s * x + self.knee * np.maximum(x, 0)
        return moved

    def _off(self, lr: Array | float, decay: Array | float) -> tuple[Array, Array]:
        steps = np.log2([self.factor, self.decay_factor or self.factor])
        x = np.log2(lr) + 7 - self.centre[0] * steps[0]
        with np.errstate(divide="ignore"):
            z = np.log2(decay) + 11 - self.centre[1] * steps[1]
        return x, z

    def errors_at(self, x: Array, z: Array) -> Array:
        """Return the true errors so many powers of two away from the best rate and decay."""
        off = z + self._moved(x)
        base = self.lowest + _flattened(self.level * x**2, (self.chance - self.lowest) / 2)
        ceiling = self.chance - base
        rise = self.curvature * np.abs(off) ** self.power
        error: Array = base + np.where(
            off < 0,
            _flattened(rise, self.plateau),
            _flattened(self.cliff * 2 ** (self.drift * x) * rise, ceiling),
        )
        return error


def _powers(middle: float, factor: float, count: int) -> Array:
    return np.array([middle * factor ** (place - count // 2) for place in range(count)])


def _flattened(rise: Array, ceiling: float | Array) -> Array:
    if np.isinf(ceiling).any():
        return rise
    return ceiling * -np.expm1(-rise / ceiling)


QUADRATIC = Truth(plateau=np.inf, chance=np.inf, level=0.006)


def measured(
    errors: Array,
    seeds: int,
    random: np.random.Generator,
    *,
    examples: int = 1000,
    spread: float = 0.008,
    shared: float = 0.5,
) -> tuple[Array, Array]:
    """Return validation and test errors of each cell × seed, as training would scatter them.

    A run's own error is spread about its cell's, partly by an effect of the seed that all its runs
    share; both splits then count the mistakes on so many examples. Seeds may have errors of their
    own, along a third axis.
    """
    common = random.normal(0, spread * np.sqrt(shared), seeds)
    own = random.normal(0, spread * np.sqrt(1 - shared), (*errors.shape[:2], seeds))
    true = errors if errors.ndim == 3 else errors[..., None]
    rate = np.clip(true + common + own, 0.001, 0.999)
    return random.binomial(examples, rate) / examples, random.binomial(examples, rate) / examples


def exact(errors: Array, seeds: int = 3) -> tuple[Array, Array]:
    """Return errors without noise, alike on both splits and for each seed."""
    alike = np.repeat(errors[..., None], seeds, axis=-1)
    return alike, alike


def runs_of(
    truth: Truth, splits: tuple[Array, Array], *, way: str = "weight_decay", **config: Any
) -> list[Run]:
    """Return the runs of a sweep that came to such errors."""
    algorithm = "adam" if way == "l2" else "adamw"
    base: dict[str, Any] = {"task": "mnist1d", "model": "mlp", "algorithm": algorithm}
    base |= {"epochs": 10, "batch": 100} | config
    chosen, tested = splits
    return [
        ended(
            RunConfig(**base | {"lr": float(lr), "seed": seed, way: float(decay)}),
            validation_error=float(chosen[i, j, seed]),
            test_error=float(tested[i, j, seed]),
        )
        for i, lr in enumerate(truth.lrs)
        for j, decay in enumerate(truth.lambdas)
        for seed in range(chosen.shape[-1])
    ]


def ended(config: RunConfig, *, updates: int = 400, **values: Any) -> Run:
    """Return a run with its last record alone."""
    return Run(config, (record(config, epoch=config.epochs, updates=updates, **values),))


def record(config: RunConfig, **values: Any) -> Record:
    """Return a record of a run, with numbers that do not matter where none are given."""
    numbers: dict[str, Any] = {
        "epoch": 1,
        "updates": 40,
        "train_loss": 0.5,
        "train_error": 0.2,
        "validation_loss": 1.0,
        "validation_error": 0.3,
        "validation_error_top5": 0.1,
        "test_loss": 1.0,
        "test_error": 0.3,
        "test_error_top5": 0.1,
        "lr": config.lr,
        "decay": 0.0,
        "weight_norm": 1.0,
        "cycle_ended": False,
    }
    return Record(run=config.identity, **(numbers | values))


def landscape_of(
    truth: Truth, splits: tuple[Array, Array], *, way: str = "weight_decay", **config: Any
) -> Landscape:
    """Return the one landscape of such a sweep."""
    [landscape] = landscapes(runs_of(truth, splits, way=way, **config))
    return landscape


def noisy(truth: Truth, seeds: int, random: np.random.Generator, **noise: Any) -> Landscape:
    """Return a landscape with realistic noise."""
    return landscape_of(truth, measured(truth.errors(), seeds, random, **noise))


def reseen(
    landscape: Landscape, splits: tuple[Array, Array], diverged: Flags | None = None
) -> Landscape:
    """Return the landscape with other errors: far faster than to make its runs again."""
    chosen, tested = splits
    lost = np.zeros(chosen.shape[:2], dtype=np.bool_) if diverged is None else diverged
    cells = {
        (lr, decay): replace(
            landscape.cells[lr, decay],
            chosen=tuple(map(float, chosen[i, j])),
            tested=tuple(map(float, tested[i, j])),
            diverged=landscape.cells[lr, decay].seeds if lost[i, j] else (),
        )
        for i, lr in enumerate(landscape.lrs)
        for j, decay in enumerate(landscape.decays)
    }
    return replace(landscape, cells=cells)


@dataclass(frozen=True)
class Scenario:
    """A kind of landscape in the table: its truth, its seeds, and how they scatter.

    The ridge of each seed is tilted by as much as `tilt` says, as a standard deviation of s.
    """

    name: str
    truth: Truth
    seeds: int
    tilt: float = 0.0
    spread: float = 0.003
    examples: int = 10_000

    def splits(
        self, truth: Truth, random: np.random.Generator
    ) -> tuple[tuple[Array, Array], Flags]:
        """Return errors of one simulation, and which settings diverged."""
        exponents = truth.s + self.tilt * random.standard_normal(self.seeds)
        own = np.stack([replace(truth, s=float(s)).errors() for s in exponents], -1)
        errors = own if self.tilt else truth.errors()
        noise: dict[str, Any] = {"spread": self.spread, "examples": self.examples}
        return measured(errors, self.seeds, random, **noise), truth.diverged()


@dataclass(frozen=True)
class Coverage:
    """How often each interval covered the truth, where there was one, and why there was none.

    `values` of the simulations gave a value. In the others the two estimators disagreed, or the
    ridge seemed to have a knee, or too few learning rates could be located.
    """

    simulations: int
    values: int
    disagreed: int
    kneed: int
    profile: float
    check: float
    below: float
    above: float
    bias: float
    spread: float
    width: float


def coverage(scenario: Scenario, *, simulations: int = 1000, first: int = 0) -> Coverage:
    """Simulate sweeps, the optimum within half a step of where the truth has it, and count."""
    random = np.random.default_rng(first)
    truth = scenario.truth
    kept = landscape_of(truth, exact(truth.errors(), scenario.seeds))
    seen = []
    for _ in range(simulations):
        centre = random.uniform(-0.5, 0.5, 2) + truth.centre
        moved = replace(truth, centre=(float(centre[0]), float(centre[1])))
        seen.append(coupling(reseen(kept, *scenario.splits(moved, random))))
    given = [one.exponent for one in seen if one.exponent.value is not None]
    given = [one for one in given if one.bound is None]
    values = np.array([one.value for one in given], dtype=np.float64)
    ends = np.array([(one.low, one.high) for one in given]).reshape(-1, 2)
    withheld = [one.exponent.why for one in seen if one.exponent.withheld]
    middle = truth.s + truth.knee / 2
    return Coverage(
        simulations=simulations,
        values=len(given),
        disagreed=sum("disagree" in why for why in withheld),
        kneed=sum("knee" in why for why in withheld),
        profile=_covered(given, middle),
        check=_covered([one.check for one in seen], middle),
        below=_covered([one.below for one in seen], truth.s),
        above=_covered([one.above for one in seen], truth.s + truth.knee),
        bias=float(np.mean(values) - middle),
        spread=float(np.std(values)),
        width=float(np.median(ends[:, 1] - ends[:, 0]) / 2),
    )


def _covered(intervals: Sequence[Exponent], s: float) -> float:
    known = [one for one in intervals if one.value is not None and one.bound is None]
    return float(np.mean([one.low <= s <= one.high for one in known]))


#: Errors of about 12 %, which rise ten times as steeply with too much decay as with too little.
CLIFF = Truth(decays=11, lowest=0.12, level=0.007, curvature=0.004, cliff=10.0)
NOISY: dict[str, Any] = {"spread": 0.008, "examples": 1000}
#: Errors of 20 %, with a noise between those of the others.
FIFTH = Truth(s=0.0, decays=9, lowest=0.20, cliff=3.0)
MORE: dict[str, Any] = {"spread": 0.006, "examples": 2000}
#: Seeds that differ by so little that the steps of the grid matter more.
LITTLE: dict[str, Any] = {"spread": 0.0005, "examples": 1_000_000}
_HALF = replace(CLIFF, decays=21, decay_factor=2**0.5)
#: The rows of the table.
SCENARIOS = (
    Scenario("symmetric", replace(CLIFF, cliff=1.0, curvature=0.0075), 3),
    *(Scenario("cliff", CLIFF, seeds) for seeds in (2, 3, 5)),
    *(Scenario(f"cliff, s = {s:g}", replace(CLIFF, s=s), 3) for s in (0.0, 1.0)),
    *(Scenario("steep cliff", replace(CLIFF, curvature=0.003, cliff=50.0), k) for k in (2, 3)),
    *(Scenario("noisy, 7×7", Truth(cliff=5.0), seeds, **NOISY) for seeds in (2, 3)),
    Scenario("noisy, 7×7, factor 4", Truth(factor=4.0, cliff=5.0), 3, **NOISY),
    Scenario("drift +0.35", replace(CLIFF, drift=0.35), 3),
    *(Scenario("drift +0.7", replace(CLIFF, drift=0.7), seeds) for seeds in (2, 3, 5)),
    Scenario("drift −0.7", replace(CLIFF, drift=-0.7), 3),
    *(Scenario("diverged corner", replace(CLIFF, diverges=1.7), seeds) for seeds in (2, 3)),
    *(Scenario("near an edge", replace(CLIFF, s=1.0, centre=(0.0, 2.7)), k) for k in (2, 3)),
    *(Scenario("tilting seeds", CLIFF, seeds, tilt=0.3) for seeds in (2, 3, 5)),
    *(Scenario("strongly tilting seeds", CLIFF, seeds, tilt=0.5) for seeds in (2, 3)),
    *(Scenario("half steps", _HALF, seeds) for seeds in (2, 3)),
    Scenario("half steps, drift +0.7", replace(_HALF, drift=0.7), 3),
    Scenario("little noise, s = 0.3", replace(CLIFF, s=0.3), 3, **LITTLE),
    Scenario("little noise, power 1.5", replace(CLIFF, power=1.5, cliff=4.0, s=0.75), 3, **LITTLE),
    Scenario("little noise, drift +0.35", replace(CLIFF, drift=0.35), 3, **LITTLE),
    *(Scenario("a knee of 0.8", replace(CLIFF, s=-0.7, knee=0.8), seeds) for seeds in (2, 3, 5)),
    # These had no part in the choice of the interval.
    *(Scenario("new: slightly tilting seeds", CLIFF, seeds, tilt=0.15) for seeds in (2, 3, 5)),
    Scenario("new: power 1.5, s = 0.75", replace(CLIFF, power=1.5, cliff=4.0, s=0.75), 3),
    Scenario("new: power 3, s = −0.5", replace(CLIFF, power=3.0, cliff=8.0, s=-0.5), 3),
    Scenario("new: errors of 20 %, s = 0", FIFTH, 3, **MORE),
)
TITLES = (
    *("landscape", "seeds", "values", "covered", "check", "s₋", "s₊"),
    *("disagree", "knee", "bias", "±", "sd"),
)
BEGIN = (
    "<!-- coverage: `python -m tests.landscapes --page docs/exponents.md` writes what follows -->"
)
END = "<!-- /coverage -->"


def told(scenario: Scenario, seen: Coverage) -> tuple[str, ...]:
    """Return a row of the table."""
    return (
        scenario.name,
        str(scenario.seeds),
        f"{seen.values}/{seen.simulations}",
        *(f"{share:.1%}" for share in (seen.profile, seen.check, seen.below, seen.above)),
        *(f"{count / seen.simulations:.1%}" for count in (seen.disagreed, seen.kneed)),
        f"{seen.bias:+.3f}".replace("-", "−"),
        f"{seen.width:.3f}",
        f"{seen.spread:.3f}",
    )


def row(scenario: Scenario, simulations: int = 1000) -> tuple[str, ...]:
    """Simulate a row of the table."""
    return told(scenario, coverage(scenario, simulations=simulations))


if __name__ == "__main__":
    simulate("How often intervals cover the truth.", row, SCENARIOS, TITLES, marks=(BEGIN, END))
