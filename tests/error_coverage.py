"""How good the recommended setting is, and how often its intervals cover the truth, by simulation.

`python -m tests.error_coverage` prints the table, one row at a time; with
`--page docs/landscape.md` it writes the table of that page. Rows are simulated side by side, by as
many processes as `--jobs` says.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tests.landscapes import CLIFF, END, Array, Truth, exact, landscape_of, reseen
from tests.tables import simulate
from weightdecay.results import Landscape, Point, landscapes
from weightdecay.results.recommendation import Setting, best_setting

SIMULATIONS = 1000


@dataclass(frozen=True)
class Exponential(Truth):
    """A basin in which the logarithm of the error is a quadratic."""

    def errors_at(self, x: Array, z: Array) -> Array:
        """Return the true errors so many powers of two away from the best rate and decay."""
        off = z + self.s * x
        rise = self.level * x**2 + np.where(off > 0, self.cliff, 1.0) * self.curvature * off**2
        return np.minimum(self.lowest * np.exp(rise / self.lowest), self.chance)


@dataclass(frozen=True)
class Corner(Truth):
    """A basin with a second cliff: errors rise as much more steeply with too high a rate."""

    def errors_at(self, x: Array, z: Array) -> Array:
        """Return the true errors so many powers of two away from the best rate and decay."""
        rise = np.where(np.asarray(x) > 0, self.cliff, 1.0) * self.level * np.square(x)
        along = Truth.errors_at(replace(self, level=0.0), x, z)
        return np.minimum(along + rise, self.chance)


@dataclass(frozen=True)
class Kind:
    """A kind of landscape: a grid of so many seeds, or else so many scattered runs.

    A run's error is off its setting's by `spread`, in a grid partly (`shared`) as that of every run
    of its seed; if `relative`, by more where the error is higher. Validation and test set have so
    many `examples`. None means that settings are chosen on the errors that are reported.
    """

    name: str
    truth: Truth
    seeds: int = 1
    scattered: int = 0
    spread: float = 0.004
    shared: float = 0.3
    relative: bool = False
    examples: int | None = 10_000

    @property
    def runs(self) -> str:
        """Return the runs in words."""
        if self.scattered:
            return f"{self.scattered} scattered"
        return f"{self.truth.rates} × {self.truth.decays}, {self.seeds} seeds"


@dataclass(frozen=True)
class Simulated:
    """A landscape, the truth at a learning rate and decay, and the true best of both."""

    landscape: Landscape
    error_at: Callable[[float, float], float]
    best: tuple[float, float]


@dataclass(frozen=True)
class Coverage:
    """How often the error's interval covered the truth, and the ranges the best α and λ.

    `regret` is how much higher the true error is at the recommended setting than at the best, on
    average, and `worst` the 90th percentile, both relative to the lowest error. `given` is the
    share that had an interval. `bias` and `half` (the median half width) are relative to the true
    error. The ranges are of those that have any.
    """

    regret: float
    worst: float
    given: float
    covered: float
    bias: float
    half: float
    lr: float
    decay: float


def simulated(kind: Kind, random: np.random.Generator) -> Simulated:
    """Return one landscape; where its best is among the settings is random."""
    if kind.scattered:
        return _search(kind, random)
    truth = kind.truth
    x, z = random.uniform(-0.5, 0.5, 2) + truth.centre
    moved = replace(truth, centre=(float(x), float(z)))
    scape = reseen(
        _plain(truth, kind.seeds), _measured(kind, moved.errors(), random), moved.diverged()
    )
    steps = np.log2([truth.factor, truth.decay_factor or truth.factor])
    best = float(2.0 ** (-7 + x * steps[0])), float(2.0 ** (-11 + z * steps[1]))
    return Simulated(scape, lambda lr, decay: float(moved.at(lr, decay)), best)


@cache
def _plain(truth: Truth, seeds: int) -> Landscape:
    return landscape_of(truth, exact(truth.errors(), seeds))


def _search(kind: Kind, random: np.random.Generator) -> Simulated:
    truth = kind.truth
    middle = random.uniform(-1, 1, 2)
    x, z = random.uniform(-3, 3, (2, kind.scattered)) + middle[:, None]
    chosen, tested = _measured(kind, truth.errors_at(x, z), random)
    [scape] = landscapes(
        Point(
            lr=float(2.0 ** (a - 7)),
            decay=float(2.0 ** (b - 11)),
            way="weight_decay",
            tested=float(tested[at, 0]),
            chosen=float(chosen[at, 0]),
            chosen_on="test" if kind.examples is None else "validation",
            diverged=bool(b + truth.s * a > truth.diverges),
        )
        for at, (a, b) in enumerate(zip(x, z, strict=True))
    )
    return Simulated(scape, lambda lr, decay: float(truth.at(lr, decay)), (2.0**-7, 2.0**-11))


def _measured(kind: Kind, errors: Array, random: np.random.Generator) -> tuple[Array, Array]:
    shared = 0.0 if kind.scattered else kind.shared
    noise = random.normal(0, kind.spread * math.sqrt(shared), kind.seeds)
    own = kind.spread * math.sqrt(1 - shared)
    noise = noise + random.normal(0, own, (*errors.shape, kind.seeds))
    scale = errors[..., None] / errors.min() if kind.relative else 1.0
    rate = np.clip(errors[..., None] + scale * noise, 0.001, 0.999)
    if kind.examples is None:
        return rate, rate
    chosen, tested = (random.binomial(kind.examples, rate) / kind.examples for _ in range(2))
    return chosen, tested


def coverage(kind: Kind, *, simulations: int = SIMULATIONS) -> Coverage:
    """Simulate landscapes and count."""
    random = np.random.default_rng(0)
    rows = []
    for _ in range(simulations):
        seen = simulated(kind, random)
        advice = best_setting(seen.landscape)
        true = seen.error_at(advice.lr.value, advice.decay.value)
        regret = true / seen.error_at(*seen.best) - 1
        rows.append((regret, *_row(advice, true, seen.best)))
    regrets, given, covered, bias, half, lr, decay = np.array(rows).T
    return Coverage(
        regret=float(regrets.mean()),
        worst=float(np.quantile(regrets, 0.9)),
        given=float(given.mean()),
        covered=_known(covered),
        bias=float(bias.mean()),
        half=float(np.nanmedian(half)),
        lr=_known(lr),
        decay=_known(decay),
    )


def _known(shares: Array) -> float:
    known = shares[np.isfinite(shares)]
    return float(known.mean()) if len(known) else math.nan


def _row(advice: Setting, true: float, best: tuple[float, float]) -> tuple[float, ...]:
    error = advice.expected.error
    given = math.isfinite(error.low)
    covered = float(error.low <= true <= error.high) if given else math.nan
    ranges = (
        float(one.low <= at <= one.high) if one.low < one.high else math.nan
        for one, at in zip((advice.lr, advice.decay), best, strict=True)
    )
    half = (error.high - error.low) / 2
    return float(given), covered, error.value / true - 1, half / true, *ranges


_BOWL = Truth(lowest=0.12, decays=9, level=0.006, curvature=0.0075)
_STEEP = replace(_BOWL, level=0.03, curvature=0.04, plateau=0.5)
_EXPONENTIAL = Exponential(lowest=0.12, decays=9, level=0.008, curvature=0.008)
_STEEPLY = replace(_EXPONENTIAL, level=0.03, curvature=0.04)
_STEEP_CLIFF = replace(CLIFF, curvature=0.003, cliff=50.0)
_SHALLOW = replace(_BOWL, level=0.001, curvature=0.002)
_CORNER = replace(CLIFF, diverges=1.7)
_TWO = Corner(decays=11, lowest=0.12, level=0.004, curvature=0.004, cliff=10.0)
#: As MNIST-1D: errors of 38 %, 4 points higher two doublings below the best decay, 25 above it.
_LIKE_MNIST = Truth(s=0.0, rates=6, decays=9, lowest=0.38, level=0.004, curvature=0.01, cliff=8.0)
#: The rows of the table.
KINDS = (
    *(Kind("shallow bowl", _SHALLOW, seeds) for seeds in (3, 5)),
    Kind("bowl", _BOWL, 3),
    *(Kind("steep bowl", _STEEP, seeds) for seeds in (3, 5)),
    *(Kind("steep bowl of ln e", _STEEPLY, seeds) for seeds in (3, 5)),
    *(Kind("cliff", CLIFF, seeds) for seeds in (2, 3, 5)),
    Kind("cliff, relative noise", CLIFF, 3, relative=True),
    Kind("cliff, much noise", CLIFF, 3, spread=0.012, examples=2000),
    Kind("cliff, chosen on test", CLIFF, 3, examples=None),
    Kind("steep cliff", _STEEP_CLIFF, 3),
    *(
        Kind(f"cliff, drift {d:+g}".replace("-", "−"), replace(CLIFF, drift=d), 3)
        for d in (0.7, -0.7)
    ),
    Kind("cliffs in both knobs", _TWO, 3),
    Kind("as MNIST-1D", _LIKE_MNIST, 2, spread=0.008, examples=1000),
    Kind("diverged corner", _CORNER, 3),
    Kind("cliff, half steps", replace(CLIFF, decays=21, decay_factor=2**0.5), 3),
    Kind("small grid", replace(_BOWL, rates=3, decays=3), 3),
    *(Kind("shallow bowl", _SHALLOW, scattered=count) for count in (20, 40, 80)),
    *(Kind("steep bowl", _STEEP, scattered=count) for count in (20, 40, 80)),
    *(Kind("bowl of ln e", _EXPONENTIAL, scattered=count) for count in (20, 40, 80)),
    *(Kind("cliff", CLIFF, scattered=count) for count in (20, 40, 80)),
    Kind("cliff, relative noise", CLIFF, scattered=40, relative=True, spread=0.01, examples=None),
    Kind("bowl of ln e, chosen on test", _EXPONENTIAL, scattered=40, examples=None),
    Kind("diverged corner", _CORNER, scattered=80),
    Kind("steep cliff", _STEEP_CLIFF, scattered=40),
    Kind("cliffs in both knobs", _TWO, scattered=40),
)
TITLES = (
    *("landscape", "runs", "regret", "9 in 10", "intervals", "covered", "bias", "±"),
    *("α in range", "λ in range"),
)
MARK = (
    "<!-- coverage: `python -m tests.error_coverage --page docs/landscape.md` writes what follows "
    "-->"
)


def told(kind: Kind, seen: Coverage) -> tuple[str, ...]:
    """Return a row of the table."""
    bias = f"{100 * seen.bias:+.1f} %".replace("-", "−")
    half = f"{100 * seen.half:.1f} %"
    regrets = (f"{100 * one:.1f} %" for one in (seen.regret, seen.worst))
    shares = ("–" if math.isnan(one) else f"{one:.0%}" for one in (seen.lr, seen.decay))
    given, covered = f"{seen.given:.0%}", f"{seen.covered:.1%}"
    return kind.name, kind.runs, *regrets, given, covered, bias, half, *shares


def row(kind: Kind, simulations: int) -> tuple[str, ...]:
    """Simulate a row of the table."""
    return told(kind, coverage(kind, simulations=simulations))


if __name__ == "__main__":
    words = "How good a recommendation is, and how often its intervals cover the truth."
    simulate(words, row, KINDS, TITLES, marks=(MARK, END), simulations=SIMULATIONS)
