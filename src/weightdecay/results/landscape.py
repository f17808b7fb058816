"""A grid of learning rates and decays into a landscape of errors, with what is certain in it.

Choices are made on the validation split, errors reported on the test set, both at the last epoch.
The paper chose on the test set: `choose_on="test"` does, and the landscape says so. Of ImageNet32
it reports top-5 errors: `of="error_top5"` chooses on these and reports them.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from weightdecay import checks
from weightdecay.records import DECAYS, Environment, Run, RunConfig, Spec
from weightdecay.results.noise import tied
from weightdecay.results.sources import runs_of

#: The errors of a record that a landscape can be of.
ERRORS = ("error", "error_top5")


@dataclass(frozen=True)
class Cell:
    """What the runs of one learning rate and decay came to, a number a seed, in the seeds' order.

    `chosen` are the errors that choices are made on, `tested` those that are reported; both are of
    the last epoch. A seed that diverged has the errors it ended with, and is named. `losses` are
    the last epoch's training losses. What is not finite is NaN.
    """

    lr: float
    decay: float
    seeds: tuple[int, ...]
    chosen: tuple[float, ...]
    tested: tuple[float, ...]
    diverged: tuple[int, ...] = ()
    losses: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Return the mean test error."""
        return fmean(self.tested)

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean test error; NaN of one seed, or if that is."""
        return _standard_error(self.tested)

    @property
    def score(self) -> float:
        """Return the mean of the errors that choices are made on."""
        return fmean(self.chosen)


@dataclass(frozen=True)
class Landscape:
    """Cells over learning rates × decays: one algorithm, schedule, task, model and budget.

    `config` is one of its configurations; all differ from it in rate, decay and seed alone.
    `way` is how the decay is stated: l2, weight_decay or normalized_decay. A decay of 0 comes
    first, where there is one. `chosen_on` is "validation", or "test": the paper's way. `updates`
    are those of the last cycle, N, and `examples` those that an epoch trains on; None where no run
    has come to its end. `of` is the error chosen on and reported: "error", or "error_top5".
    `metric` names what errors are where the task has a metric of its own: they are no fractions
    then. `environments` are those that its runs were trained in, with the number of runs of each;
    None is that of runs from before environments were recorded.
    """

    config: RunConfig
    way: str
    lrs: tuple[float, ...]
    decays: tuple[float, ...]
    cells: Mapping[tuple[float, float], Cell]
    chosen_on: str
    updates: int | None = None
    examples: int | None = None
    of: str = "error"
    metric: str | None = None
    environments: Mapping[Environment | None, int] = field(default_factory=dict)

    @property
    def ranked(self) -> tuple[Cell, ...]:
        """Return the cells by score, best first; one in which a seed diverged after all others."""
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
        """Return the ten cells with the lowest scores, best first; fewer where there are fewer."""
        return self.ranked[:10]

    @property
    def tied(self) -> tuple[Cell, ...]:
        """Return the cells that cannot be told from the best, the best among them, best first.

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


def landscapes(
    runs: Iterable[Run] | Path | str, *, choose_on: str = "validation", of: str = "error"
) -> list[Landscape]:
    """Gather runs that differ in rate, decay and seed alone, in the order in which they come.

    A path is that of a sweep's folder, or of a Parquet or CSV file with runs of ours.
    Of a configuration that comes twice the first counts. A run without a record is left out. `of`
    is the error to choose on and to report: "error", or "error_top5".
    """
    checks.one_of("choose_on", choose_on, ("validation", "test"))
    checks.one_of("of", of, ERRORS)
    groups: dict[tuple[RunConfig, str], dict[RunConfig, Run]] = {}
    for run in runs_of(runs):
        if run.records:
            group = groups.setdefault(apart(run.config), {})
            group.setdefault(run.config, run)
    return [
        _landscape(way, list(group.values()), choose_on, of) for (_, way), group in groups.items()
    ]


def way_of(config: RunConfig) -> str:
    """Return how a configuration states its decay."""
    [way] = [way for way in DECAYS if getattr(config, way) is not None]
    return way


def apart(config: RunConfig) -> tuple[RunConfig, str]:
    """Return what the configurations of one landscape have in common."""
    way = way_of(config)
    stated: dict[str, Any] = {way: 0}
    return replace(config, lr=1, seed=0, **stated), way


def _landscape(way: str, runs: list[Run], choose_on: str, of: str) -> Landscape:
    config = min(
        (run.config for run in runs), key=lambda one: (one.lr, getattr(one, way), one.seed)
    )
    chosen_on = "test" if config.validation == "test" else choose_on
    metric = runs[0].last.metric
    if metric is not None and of != "error":
        raise ValueError(f'`of` must be "error" for {config.task}: its {metric} has no {of}.')
    whole = [run for run in runs if not run.diverged and run.last.epoch == config.epochs]
    cells: dict[tuple[float, float], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.config.lr, getattr(run.config, way)), []).append(run)
    return Landscape(
        config=config,
        way=way,
        lrs=tuple(sorted({lr for lr, _ in cells})),
        decays=tuple(sorted({decay for _, decay in cells})),
        cells={place: _cell(place, cells[place], chosen_on, of) for place in sorted(cells)},
        chosen_on=chosen_on,
        updates=_cycle(whole[0]) if whole else None,
        examples=whole[0].last.updates // whole[0].last.epoch * config.batch if whole else None,
        of=of,
        metric=metric,
        environments=Counter(run.environment for run in runs),
    )


def _cell(place: tuple[float, float], runs: list[Run], chosen_on: str, of: str) -> Cell:
    runs = sorted(runs, key=lambda run: run.config.seed)

    def last(name: str) -> tuple[float, ...]:
        found = (getattr(run.last, name) for run in runs)
        return tuple(math.nan if value is None else value for value in found)

    return Cell(
        *place,
        seeds=tuple(run.config.seed for run in runs),
        chosen=last(f"{chosen_on}_{of}"),
        tested=last(f"test_{of}"),
        diverged=tuple(run.config.seed for run in runs if run.diverged),
        losses=last("train_loss"),
    )


def _cycle(run: Run) -> int:
    """Return the updates of a run's last cycle."""
    *before, last = run.records
    if last.cycle_updates is not None:
        return last.cycle_updates
    ends = [record.updates for record in before if record.cycle_ended]
    if ends:
        return last.updates - ends[-1]
    # Warm-up comes before the first cycle and is no part of it.
    warmup = Spec.parse("schedule", run.config.schedule).options.get("warmup", 0)
    assert isinstance(warmup, (int, float))
    return last.updates - round(warmup * last.updates / last.epoch)


def _standard_error(values: tuple[float, ...]) -> float:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.nan
    return stdev(values) / math.sqrt(len(values))
