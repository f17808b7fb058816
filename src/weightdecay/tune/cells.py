"""Trials as runs: the configuration of each cell of a tuner, and the cell of each run."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from weightdecay.records import Run, RunConfig
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome


@dataclass(frozen=True)
class Cells:
    """The runs that a tuner may make: those of `base`, with other numbers for what is tuned.

    What is tuned are learning rate and decay; a trial also has its own epochs and seed. Seeds count
    from the seed of `base`.
    """

    space: Space
    base: RunConfig

    def config(self, cell: Cell) -> RunConfig:
        """Return the configuration of a cell."""
        lr, normalized = self.space.setting(cell.setting)
        epochs = self.space.ladder[cell.rung]
        coupled = self.space.convention == "l2"
        return replace(
            self.base,
            lr=lr,
            weight_decay=None,
            normalized_decay=None if coupled else normalized,
            l2=self.space.stated(cell.setting, epochs) if coupled else None,
            epochs=epochs,
            seed=self.base.seed + cell.seed,
        )

    def cell(self, config: RunConfig) -> Cell | None:
        """Return the cell of a configuration; None if it is none of this tuner's."""
        seed = config.seed - self.base.seed
        if config.epochs not in self.space.ladder or seed < 0:
            return None
        rung = self.space.ladder.index(config.epochs)
        for setting in range(self.space.size):
            lr, _ = self.space.setting(setting)
            cell = Cell(rung, setting, seed)
            if _is_close(lr, config.lr) and _is_near(self.config(cell), config):
                return cell
        return None

    def told(self, runs: Iterable[Run]) -> dict[Cell, Outcome]:
        """Return what came of those runs that are this tuner's, as a user's loop told it."""
        found = ((self.cell(run.config), run) for run in runs)
        return {cell: _outcome(run) for cell, run in found if cell is not None}

    def trained(self, runs: Iterable[Run]) -> dict[Cell, Outcome]:
        """Return the same of runs of a sweep: one that diverged is lost, whatever error it had."""
        found = ((self.cell(run.config), run) for run in runs)
        return {
            cell: replace(_outcome(run), error=math.inf) if run.diverged else _outcome(run)
            for cell, run in found
            if cell is not None
        }


def _is_near(one: RunConfig, other: RunConfig) -> bool:
    """Whether two configurations are equal, up to the rounding of learning rate and decay."""
    tuned = {name: getattr(one, name) for name in ("lr", "normalized_decay", "l2")}
    near = all(_is_close(value, getattr(other, name)) for name, value in tuned.items())
    return near and one == replace(other, **tuned)


def _is_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9)


def _outcome(run: Run) -> Outcome:
    """Return what came of a run, with the errors on its way."""
    errors = [
        (one.epoch, math.inf if one.validation_error is None else one.validation_error)
        for one in run.records
    ]
    epochs, error = errors[-1]
    stopped = epochs < run.config.epochs  # where it had reported its last error
    return Outcome(error, epochs, tuple(errors if stopped else errors[:-1]))
