"""Landscapes of which the truth is known: what a sweep of a hidden coupling exponent would leave.

`python -m tests.landscapes` measures how often the 95 % interval covers the truth, and prints a
table of it; with `--page docs/exponents.md` it writes the table of that page.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weightdecay import files
from weightdecay.records import Record, Run, RunConfig
from weightdecay.results import Landscape, coupling, landscapes
from weightdecay.table import table

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """A basin whose best decay moves by the power −s of the learning rate.

    Errors rise quadratically in log2 λ about the best, and flatten: with too little decay at
    `plateau` above it, with too much at `chance`; infinite, they never do. `centre` is the place
    of the optimum on the grid, in steps from its middle; factors are between neighbours.
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

    @property
    def lrs(self) -> Array:
        """Return powers of two, so that logarithms are exact."""
        return _powers(2.0**-7, self.factor, self.rates)

    @property
    def lambdas(self) -> Array:
        """Return the decays, 0 first where it is among them."""
        above = _powers(2.0**-11, self.factor, self.decays)
        return np.concatenate([[0.0], above]) if self.zero else above

    def errors(self) -> Array:
        """Return the true error of each learning rate × decay."""
        return self.at(self.lrs[:, None], self.lambdas[None, :])

    def at(self, lr: Array | float, decay: Array | float) -> Array:
        """Return the true error of a learning rate and a decay, on the grid or off it."""
        step = np.log2(self.factor)
        x = np.log2(lr) + 7 - self.centre[0] * step
        with np.errstate(divide="ignore"):
            z = np.log2(decay) + 11 - self.centre[1] * step
        return self.errors_at(x, z)

    def errors_at(self, x: Array, z: Array) -> Array:
        """Return the true errors so many powers of two away from the best rate and decay."""
        off = z + self.s * x
        base = self.lowest + _flattened(self.level * x**2, (self.chance - self.lowest) / 2)
        error: Array = base + np.where(
            off < 0,
            _flattened(self.curvature * off**2, self.plateau),
            _flattened(self.curvature * off**2, self.chance - base),
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
    share; both splits then count the mistakes on so many examples.
    """
    common = random.normal(0, spread * np.sqrt(shared), seeds)
    own = random.normal(0, spread * np.sqrt(1 - shared), (*errors.shape, seeds))
    rate = np.clip(errors[..., None] + common + own, 0.001, 0.999)
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


def reseen(landscape: Landscape, splits: tuple[Array, Array]) -> Landscape:
    """Return the landscape with other errors: far faster than to make its runs again."""
    chosen, tested = splits
    cells = {
        (lr, decay): replace(
            landscape.cells[lr, decay],
            chosen=tuple(map(float, chosen[i, j])),
            tested=tuple(map(float, tested[i, j])),
        )
        for i, lr in enumerate(landscape.lrs)
        for j, decay in enumerate(landscape.decays)
    }
    return replace(landscape, cells=cells)


@dataclass(frozen=True)
class Coverage:
    """How often each interval covered the truth, of how many simulations that gave a value."""

    simulations: int
    values: int
    profile: float
    check: float
    bias: float
    spread: float
    width: float


def coverage(
    truth: Truth, seeds: int, *, simulations: int = 500, first: int = 0, **noise: Any
) -> Coverage:
    """Simulate sweeps, the optimum somewhere about the grid's middle, and count."""
    random = np.random.default_rng(first)
    kept = landscape_of(truth, exact(truth.errors(), seeds))
    profile, check = [], []
    for _ in range(simulations):
        centre = random.uniform(-0.5, 0.5, 2)
        moved = replace(truth, centre=(float(centre[0]), float(centre[1])))
        seen = coupling(reseen(kept, measured(moved.errors(), seeds, random, **noise)))
        if seen.exponent.value is not None and seen.exponent.bound is None:
            profile.append((seen.exponent.value, seen.exponent.low, seen.exponent.high))
        if seen.check.value is not None and seen.check.bound is None:
            check.append((seen.check.value, seen.check.low, seen.check.high))
    value, low, high = np.array(profile).T
    return Coverage(
        simulations=simulations,
        values=len(profile),
        profile=_covered(profile, truth.s),
        check=_covered(check, truth.s),
        bias=float(np.mean(value) - truth.s),
        spread=float(np.std(value)),
        width=float(np.median(high - low) / 2),
    )


def _covered(intervals: Iterable[tuple[float, float, float]], s: float) -> float:
    return float(np.mean([low <= s <= high for _, low, high in intervals]))


#: The settings of the table: grid, factor, seeds; s is 0, ½ and 1 in each.
SETTINGS = ((7, 2.0, 3), (8, 2.0, 4), (9, 2.0, 5), (7, 4.0, 3), (9, 4.0, 5))
EXPONENTS = (0.0, 0.5, 1.0)
TITLES = ("grid", "factor", "seeds", "s", "values", "profile", "check", "bias", "±", "sd")
BEGIN = (
    "<!-- coverage: `python -m tests.landscapes --page docs/exponents.md` writes what follows -->"
)
END = "<!-- /coverage -->"


def settled(size: int, factor: float, seeds: int, s: float) -> tuple[str, ...]:
    """Return what a row of the table is of."""
    return f"{size}×{size}", f"{factor:g}", str(seeds), f"{s:g}"


def told(seen: Coverage) -> tuple[str, ...]:
    """Return what a row of the table says."""
    return (
        f"{seen.values}/{seen.simulations}",
        f"{seen.profile:.1%}",
        f"{seen.check:.1%}",
        f"{seen.bias:+.3f}".replace("-", "−"),
        f"{seen.width:.3f}",
        f"{seen.spread:.3f}",
    )


def inserted(text: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a page with the table between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"The page must have the marks {BEGIN} and {END}, and has not.")
    head, *body = rows
    lines = "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))
    return f"{before}{BEGIN}\n\n{lines}\n\n{END}{after}"


def main() -> None:
    """Print the coverage table, or write it into a page."""
    parser = argparse.ArgumentParser(description="How often intervals cover the truth.")
    parser.add_argument("--page", type=Path, help="write the table here, between its marks")
    page: Path | None = parser.parse_args().page
    rows: list[tuple[str, ...]] = [TITLES]
    for size, factor, seeds in SETTINGS:
        for s in EXPONENTS:
            seen = coverage(Truth(s=s, rates=size, decays=size, factor=factor), seeds)
            rows.append((*settled(size, factor, seeds, s), *told(seen)))
    if page is None:
        sys.stdout.write(table(rows) + "\n")
        return
    text = inserted(page.read_text("utf-8"), rows)
    with files.written(page) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
