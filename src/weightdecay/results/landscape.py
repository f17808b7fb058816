"""A landscape: errors over learning rates and decays, its best settings and their ties."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import numpy as np

from weightdecay.decay import Decay, Reference
from weightdecay.records import Environment, RunConfig
from weightdecay.results.frames import frame
from weightdecay.results.html import ranking, shaded
from weightdecay.results.noise import tied
from weightdecay.results.points import CONVENTIONS, Label

# In a grid, most cells have neighbours. With fewer pairs per cell than this, points are scattered.
_PAIRED = 1 / 3


@dataclass(frozen=True)
class Cell:
    """The results of one learning rate and decay: one number per seed, in the order of `seeds`.

    `chosen` are the errors that choices are made on and `tested` those that are reported, both of
    the last epoch. `diverged` lists seeds that diverged; they have the errors they ended with.
    `losses` are the last epoch's training losses. Numbers that are not finite are NaN. `packs` say
    which runs were trained together: see `Run`.
    """

    lr: float
    decay: float
    seeds: tuple[int, ...]
    chosen: tuple[float, ...]
    tested: tuple[float, ...]
    diverged: tuple[int, ...] = ()
    losses: tuple[float, ...] = ()
    packs: tuple[tuple[float, int] | None, ...] = field(default=(), compare=False)

    @property
    def mean(self) -> float:
        """Return the mean test error."""
        return fmean(self.tested)

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean test error; NaN for one seed or a NaN mean."""
        return _standard_error(self.tested)

    @property
    def score(self) -> float:
        """Return the mean of the errors that choices are made on."""
        return fmean(self.chosen)


@dataclass(frozen=True)
class Stated:
    """A decay as the paper's λ, as λ_norm, and as torch's weight_decay; None if unknown."""

    weight_decay: float | None = None
    normalized_decay: float | None = None
    torch_weight_decay: float | None = None


@dataclass(frozen=True)
class Landscape:
    """Cells over learning rates × decays: one algorithm, schedule, task, model and budget.

    `run_config` is one of its configurations; the others differ only in rate, decay and seed. It is
    None for points that were made elsewhere. `labels` are what all points have in common. `way` is
    how the decay is stated: l2, weight_decay or normalized_decay; `told_in` is the convention of
    the table that its points were read from, such as "torch". A decay of 0 comes first. Choices are
    made on `chosen_on`: "validation" or, as in the paper, "test". `tested_on` is the split of what
    is reported. Either is None if a table does not say. `updates` is the number of updates in the
    last cycle, N, and `examples` the number that an epoch trains on; both are None
    if no run has finished. `of` is what is chosen on and reported: "error", "error_top5" or "loss".
    `metric` is the name of a loss or of the task's own metric; None if errors are fractions.
    `environments` counts the runs per environment; None stands for runs from before environments
    were recorded.
    """

    run_config: RunConfig | None
    way: str
    lrs: tuple[float, ...]
    decays: tuple[float, ...]
    cells: Mapping[tuple[float, float], Cell]
    chosen_on: str | None
    updates: int | None = None
    examples: int | None = None
    of: str = "error"
    metric: str | None = None
    tested_on: str | None = "test"
    environments: Mapping[Environment | None, int] = field(default_factory=dict)
    labels: Mapping[str, Label] = field(default_factory=dict)
    told_in: str | None = None

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.labels.items())
        runs = sum(len(cell.seeds) for cell in self.cells.values())
        over = "scattered" if self.scattered else f"{len(self.lrs)} lr × {len(self.decays)} decays"
        best = f", best {self.of} {self.best.mean:.4g}" if self.cells else ""
        return f"<Landscape {said or 'unlabelled'}: {over}, {self.way}, {runs} runs{best}>"

    def _repr_html_(self) -> str:
        if self.scattered:
            head = ("α", self.way, f"tested {self.of}", "runs")
            rows = [(one.lr, one.decay, one.mean, len(one.seeds)) for one in self.ten_best]
            return ranking(head, rows, title=repr(self))
        values = {place: cell.mean for place, cell in self.cells.items()}
        best = (self.best.lr, self.best.decay) if self.cells else None
        return shaded(
            values, self.lrs, self.decays, title=repr(self), axes=("α", self.way), best=best
        )

    @property
    def config(self) -> RunConfig:
        """Return one of its configurations; an error if its points were made elsewhere."""
        if self.run_config is None:
            raise ValueError(
                "A landscape must be of runs of this package to have a `config`, got one of points "
                "from elsewhere. What these have in common is in its `labels`."
            )
        return self.run_config

    @property
    def convention(self) -> str:
        """Return the convention that its decays are in: "paper", "normalized" or "l2"."""
        return next(name for name, (way, _) in CONVENTIONS.items() if way == self.way)

    @property
    def scattered(self) -> bool:
        """Whether its settings are scattered, as in a random search, instead of a grid."""
        decays = [decay for decay in self.decays if decay > 0]
        settings = [place for place in self.cells if place[1] > 0]
        if len(decays) < 2 or len(self.lrs) < 2:
            return False
        return not _are_paired(settings)

    @property
    def told_in_torch(self) -> bool:
        """Whether its λ were read from a table of torch's λ/α."""
        return self.told_in == "torch" and self.way == "weight_decay"

    @property
    def unchanged(self) -> float:
        """Return the s of the rule that leaves the decay as its table states it: λ, or λ/α."""
        return -1.0 if self.told_in_torch else 0.0

    @property
    def in_torchs_decay(self) -> bool:
        """Whether it is a grid in torch's λ/α: learning rates share more of these than of λ."""
        decays = {decay for _, decay in self.cells if decay > 0}
        torchs = {decay for _, decay in self.in_torch}
        return self.way == "weight_decay" and len(torchs) < len(decays)

    @property
    def in_torch(self) -> list[tuple[float, float]]:
        """Return each learning rate and torch's λ/α, without those at λ = 0."""
        # Rounded, because 0.003 · 0.1 / 0.003 is not 0.1.
        return [(lr, float(f"{decay / lr:.9g}")) for lr, decay in self.cells if decay > 0]

    @property
    def unvaried(self) -> str:
        """Return "learning rate" or "decay" if all runs with a decay have the same; else nothing.

        That may be the same λ/α.
        """
        settings = [place for place in self.cells if place[1] > 0]
        for name, at in (("learning rate", 0), ("decay", 1)):
            if len({place[at] for place in settings}) == 1:
                return name
        one = self.in_torchs_decay and len({decay for _, decay in self.in_torch}) == 1
        return "decay" if one else ""

    @property
    def in_columns(self) -> bool:
        """Whether learning rates were trained with several decays each, shared in λ or in λ/α."""
        return not self.scattered or (self.in_torchs_decay and _are_paired(self.in_torch))

    @property
    def ranked(self) -> tuple[Cell, ...]:
        """Return the cells by score, best first; cells in which a seed diverged come last."""
        return tuple(
            sorted(
                self.cells.values(),
                key=lambda cell: (bool(cell.diverged), cell.score, cell.lr, cell.decay),
            )
        )

    @property
    def best(self) -> Cell:
        """Return the cell with the lowest score."""
        return self.ranked[0]

    @property
    def ten_best(self) -> tuple[Cell, ...]:
        """Return the ten cells with the lowest scores, best first, or all if there are fewer."""
        return self.ranked[:10]

    @property
    def tied(self) -> tuple[Cell, ...]:
        """Return the cells that are tied with the best, including it, best first.

        The truly best cell is one of them in 95 of 100 experiments: see `noise.tied`.
        """
        cells = [cell for cell in self.ranked if not cell.diverged] or [self.best]
        seeds = sorted({seed for cell in cells for seed in cell.seeds})
        errors = np.full((len(cells), len(seeds)), np.nan)
        for row, cell in zip(errors, cells, strict=True):
            row[[seeds.index(seed) for seed in cell.seeds]] = cell.chosen
        return tuple(cell for cell, near in zip(cells, tied(errors), strict=True) if near)

    @property
    def diverged(self) -> tuple[Cell, ...]:
        """Return the cells in which some seed diverged."""
        return tuple(cell for cell in self.cells.values() if cell.diverged)

    @property
    def edges(self) -> tuple[str, ...]:
        """Return the grid's edges that the best touches, as in ("lowest lr", "highest decay")."""
        return tuple(
            f"{end} {knob}"
            for knob, value, values in (
                ("lr", self.best.lr, self.lrs),
                ("decay", self.best.decay, self.decays),
            )
            for end, edge in (("lowest", min(values)), ("highest", max(values)))
            if value == edge and len(values) > 1
        )

    def stated(self, lr: float, decay: float) -> Stated:
        """Return one of its decays in every convention that applies at a learning rate."""
        if self.way == "l2":
            return Stated()
        if self.way == "normalized_decay":
            if self.updates is None:
                return Stated(normalized_decay=decay)
            decay /= math.sqrt(self.updates)
        found = Decay(decay, Reference(lr=lr, updates=self.updates))
        return Stated(found.weight_decay, found.normalized, found.torch)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return one row per run, as columns: `alpha`, the decay, the seed, results and labels.

        Choices are made on `chosen_…`; `tested_…` is reported.
        """
        rows = [
            {
                "alpha": cell.lr,
                self.way: cell.decay,
                "seed": seed,
                f"chosen_{self.of}": cell.chosen[at],
                f"tested_{self.of}": cell.tested[at],
                "train_loss": cell.losses[at] if cell.losses else math.nan,
                "diverged": seed in cell.diverged,
            }
            for cell in self.cells.values()
            for at, seed in enumerate(cell.seeds)
        ]
        taken = rows[0].keys() if rows else ()
        labels = {
            name if name not in taken else f"label_{name}": value
            for name, value in self.labels.items()
        }
        names = [*taken, *labels]
        return {name: [(row | labels)[name] for row in rows] for name in names}

    def to_frame(self, library: str | None = None) -> Any:
        """Return `to_columns` as a frame of "pandas" or "polars", whichever is installed."""
        return frame(self.to_columns(), library)


def _are_paired(settings: Collection[tuple[float, float]]) -> bool:
    """Whether settings are a grid: many have the next decay at the same learning rate."""
    after = dict(pairwise(sorted({decay for _, decay in settings})))
    there = {*settings}
    paired = sum((lr, after.get(decay)) in there for lr, decay in settings)
    return paired >= _PAIRED * len(settings)


def _standard_error(values: tuple[float, ...]) -> float:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.nan
    return stdev(values) / math.sqrt(len(values))
