"""Grids as people make them: 1, 3, 10 or 1, 2, 5, rounded, in λ or in torch's weight_decay.

`python -m tests.uneven` simulates sweeps over them, and prints how often s is known and its
interval covers the truth; with `--page docs/exponents.md` it writes the table of that page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.landscapes import CLIFF, Truth, measured
from tests.tables import simulate
from weightdecay.results import Landscape, Point, coupling, landscapes

Axis = Sequence[float]
Grid = tuple[Axis, Axis]
SEEDS = 3
# Learning rates around 2⁻⁷ and decays around 2⁻¹¹, where the truth has its best.
THREES = ([0.001, 0.003, 0.01, 0.03, 0.1], [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
FIVES = ([0.002, 0.005, 0.01, 0.02, 0.05], [5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2])
TWOS = ([2.0**k for k in range(-9, -4)], [2.0**k for k in range(-14, -6)])
TWOS_IN_TORCH = (TWOS[0], [2.0**k for k in range(-8, 1)])
IN_LAMBDA: dict[str, Grid] = {
    "1, 3, 10": THREES,
    "1, 2, 5": FIVES,
    "1, 2, 5, as many wide steps as narrow ones": (FIVES[0], FIVES[1][:6]),
}
# In torch's weight_decay, the best is 2⁻⁴ at 2⁻⁷. No λ occurs twice, or few do.
IN_TORCH: dict[str, Grid] = {
    "1, 3, 10": (THREES[0], [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]),
    "1, 2, 5": (FIVES[0], [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]),
    "factors of 2 and 4": ([2.0**k for k in range(-10, -4)], [4.0**k for k in range(-5, 1)]),
}


def rounded(grid: Grid, digits: int) -> Grid:
    """Return a grid as a person writes it."""
    lrs, decays = ([float(f"{value:.{digits}g}") for value in axis] for axis in grid)
    return lrs, decays


def swept(
    grid: Grid,
    truth: Truth,
    draw: int,
    *,
    torch: bool = False,
    table: Grid | None = None,
    seeds: int = SEEDS,
) -> Landscape:
    """Return what seeds leave on a grid of λ, or of torch's decay, as a table has it."""
    lrs, decays = grid
    errors = np.array(
        [[float(truth.at(lr, decay * lr if torch else decay)) for decay in decays] for lr in lrs]
    )
    random = np.random.default_rng(draw)
    chosen, tested = measured(errors, seeds, random, examples=10_000, spread=0.003)
    lrs, decays = table or grid
    [found] = landscapes(
        Point(
            lr=lr,
            decay=decay * lr if torch else decay,
            way="weight_decay",
            seed=seed,
            chosen=float(chosen[i, j, seed]),
            tested=float(tested[i, j, seed]),
        )
        for i, lr in enumerate(lrs)
        for j, decay in enumerate(decays)
        for seed in range(seeds)
    )
    return found


def truth_of(s: float, draw: int) -> Truth:
    """Return a cliff with the best anywhere within half a step of the middle."""
    x, z = np.random.default_rng(draw).uniform(-0.5, 0.5, 2)
    return replace(CLIFF, s=s, lowest=0.12, centre=(float(x), float(z)))


@dataclass(frozen=True)
class Kind:
    """A row of the table: a grid in λ or in torch's decay, how a table has it, and the true s."""

    name: str
    grid: Grid
    s: float
    torch: bool = False
    table: Grid | None = None


KINDS = (
    *(Kind("powers of 2", TWOS, s) for s in (0.0, 0.5)),
    *(Kind("powers of 2, three digits", TWOS, s, table=rounded(TWOS, 3)) for s in (0.0, 0.5)),
    *(Kind(name, grid, s) for name, grid in IN_LAMBDA.items() for s in (0.0, 0.5)),
    *(
        Kind(f"{name} in torch's", grid, s, torch=True)
        for name, grid in {"powers of 2": TWOS_IN_TORCH, **IN_TORCH}.items()
        for s in (0.0, -0.5)
    ),
)
TITLES = ("grid", "true s", "values", "covered", "by the second estimator", "bias", "±", "sd")
BEGIN = "<!-- uneven: `python -m tests.uneven --page docs/exponents.md` writes what follows -->"
END = "<!-- /uneven -->"


def row(kind: Kind, simulations: int = 300) -> tuple[str, ...]:
    """Simulate a row of the table."""
    found = []
    for draw in range(simulations):
        scape = swept(kind.grid, truth_of(kind.s, draw), draw, torch=kind.torch, table=kind.table)
        found.append(coupling(scape))
    known = [one.exponent for one in found if one.exponent.value is not None]
    known = [one for one in known if one.bound is None]
    second = [one.check for one in found if one.check.value is not None]
    values = np.array([one.value for one in known], dtype=np.float64)
    covered = (np.mean([one.low <= kind.s <= one.high for one in of]) for of in (known, second))
    return (
        kind.name,
        f"{kind.s:g}".replace("-", "−"),
        f"{len(known)}/{simulations}",
        *(f"{share:.1%}" for share in covered),
        f"{values.mean() - kind.s:+.3f}".replace("-", "−"),
        f"{np.median([one.high - one.low for one in known]) / 2:.3f}",
        f"{values.std():.3f}",
    )


if __name__ == "__main__":
    told = "How often s is known on uneven grids, and its interval covers the truth."
    simulate(told, row, KINDS, TITLES, marks=(BEGIN, END), simulations=300)
