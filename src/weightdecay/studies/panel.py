"""A panel: one landscape, declared once.

The declaration gives the cells to train. Given runs, a panel picks those of its own cells, which
give its landscape, its numbers and its picture.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

from weightdecay.labels import AXES, NAMES, SCHEDULES, method_of
from weightdecay.records import DECAYS, Run, RunConfig, Spec
from weightdecay.results import Coupling, Landscape, chosen_by_others, coupling, landscapes
from weightdecay.sweeps import grid
from weightdecay.sweeps.grids import Axis

_VARIED = ("lr", "seed", *DECAYS)


@dataclass(frozen=True)
class Panel:
    """The cells of one landscape, by the axes that `sweeps.grid` takes.

    Only the learning rate, the decay and the seed may have several values. `name` identifies the
    panel within its study, and `title` is the title of its picture. `error` is the field to show.
    """

    name: str
    title: str
    axes: Mapping[str, Axis]
    error: str = "error"

    def __post_init__(self) -> None:
        several = [
            name
            for name, axis in self.axes.items()
            if name not in _VARIED and isinstance(axis, (list, tuple, range)) and len(axis) > 1
        ]
        stated = [way for way in DECAYS if way in self.axes]
        if several or len(stated) != 1:
            raise ValueError(
                f"A panel must be one landscape, which states one decay and varies {_VARIED[0]}, "
                f"that decay and {_VARIED[1]} alone; got the decays {stated} and several values of "
                f"{several} in {self.name!r}. Make a panel for each."
            )

    @cached_property
    def cells(self) -> tuple[RunConfig, ...]:
        """Return the configurations to train."""
        return tuple(grid(**self.axes))

    @property
    def settings(self) -> set[RunConfig]:
        """Return the configurations without their seeds."""
        return {replace(cell, seed=0) for cell in self.cells}

    def measured(self, runs: Mapping[str, Run]) -> "Measurement | None":
        """Pick the runs of its own cells out of runs by identity; None if there are none."""
        return self._of(runs[cell.identity] for cell in self.cells if cell.identity in runs)

    def measured_anywhere(self, runs: Iterable[Run]) -> "Measurement | None":
        """Pick all runs of its landscape, also at settings and seeds that it did not declare."""
        [way] = [way for way in DECAYS if way in self.axes]
        fixed = [name for name in self.cells[0].as_dict() if name not in _VARIED]
        own = itemgetter(*fixed)(self.cells[0].as_dict())
        return self._of(
            run
            for run in runs
            if getattr(run.config, way) is not None
            and itemgetter(*fixed)(run.config.as_dict()) == own
        )

    def _of(self, runs: Iterable[Run]) -> "Measurement | None":
        own = tuple(run for run in runs if run.records)
        return Measurement(self, own) if own else None


@dataclass(frozen=True)
class Measurement:
    """A panel and the finished runs of its cells, at least one."""

    panel: Panel
    runs: tuple[Run, ...]

    @cached_property
    def landscape(self) -> Landscape:
        """Return the landscape of these runs."""
        [landscape] = landscapes(self.runs, of=self.panel.error)
        return landscape

    @cached_property
    def coupling(self) -> Coupling:
        """Return how the best decay moves with the learning rate."""
        return coupling(self.landscape)

    @property
    def picture(self) -> tuple[str, Landscape, Coupling]:
        """Return the panel as `figures.heatmaps` takes it, without settings between its cells."""
        settings = self.panel.settings
        drawn = tuple(run for run in self.runs if replace(run.config, seed=0) in settings)
        return self.panel.title, replace(self, runs=drawn or self.runs).landscape, self.coupling

    def runs_at(self, lr: float, decay: float) -> list[Run]:
        """Return the runs of one setting, one per seed."""
        way = self.landscape.way
        return [
            run for run in self.runs if (run.config.lr, getattr(run.config, way)) == (lr, decay)
        ]

    @cached_property
    def fresh(self) -> dict[int, Run]:
        """Return, for each seed, its run of the setting that the other seeds choose."""
        return {
            seed: run
            for seed, setting in chosen_by_others(self.landscape).items()
            for run in self.runs_at(*setting)
            if run.config.seed == seed
        }


def titled(landscape: Landscape) -> str:
    """Return the name of a landscape's algorithm as the paper spells it."""
    key = method_of(landscape.config, landscape.way)
    return NAMES.get(key, key)


def restated(landscape: Landscape, task: str) -> str:
    """Return a landscape's name for a table, with its task if that is not `task`."""
    config = landscape.config
    parts = [
        titled(landscape),
        SCHEDULES[Spec.parse("schedule", config.schedule).name],
        f"{config.epochs} epochs",
        AXES[landscape.way][1],
        f"batch {config.batch}",
    ]
    if config.data is not None:
        parts.append(f"{config.data} examples")
    if config.task != task:
        parts.append(config.task)
    return ", ".join(parts)
