"""A study: which cells to train, what to draw of them, and what of the paper they decide."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from weightdecay.look import AXES, NAMES, SCHEDULES, word
from weightdecay.records import COUPLED, Run, RunConfig, Spec
from weightdecay.results import Coupling, Landscape, chosen_by_others, coupling, landscapes
from weightdecay.studies.rulings import Ruling
from weightdecay.studies.scales import Scale, scale, values
from weightdecay.sweeps import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The algorithms of a family, with L2 regularization and with decoupled decay.
PAIRS = {
    "sgd": ("sgd", "sgdw"),
    "adam": ("adam", "adamw"),
    "amsgrad": ("adam,amsgrad=true", "adamw,amsgrad=true"),
    "adagrad": ("torch.optim:Adagrad", "torch.optim:Adagrad"),
}


class NotAtThisScaleError(ValueError):
    """A study needs what a scale does not have."""


@dataclass(frozen=True)
class Study:
    """A figure of the paper, or a claim of its own. `cells` are of one task at one scale.

    A study that a scale has not enough for raises NotAtThisScaleError when asked for its cells.
    `draw` and `rule` take the runs that there are. `curves`: epochs before the last count as well.
    """

    name: str
    title: str
    cells: Callable[[Scale], list[RunConfig]]
    draw: Callable[["Evidence", str], "Figure"]
    rule: Callable[["Evidence"], list[Ruling]] = lambda _: []
    curves: bool = False


@dataclass(frozen=True)
class Evidence:
    """The runs of a study, to be asked for by what they are."""

    scale: Scale
    runs: Sequence[Run]
    _couplings: dict[Hashable, Coupling] = field(default_factory=dict, compare=False)

    def some(self, **wanted: Any) -> list[Run]:
        """Return the runs whose configuration has these values."""
        return [
            run
            for run in self.runs
            if all(getattr(run.config, name) == value for name, value in wanted.items())
        ]

    def landscape(self, algorithm: str, way: str, **wanted: Any) -> Landscape | None:
        """Return the landscape of an algorithm whose decay is stated in a way, if there is one."""
        asked = {"schedule": "cosine", "epochs": self.scale.epochs, "task": self.scale.task}
        asked = {**asked, "model": self.scale.common["model"], "algorithm": algorithm, **wanted}
        for name in ("model", "algorithm", "schedule"):
            asked[name] = str(Spec.parse(name, asked[name]))
        runs = self.some(**asked)
        stated = [run for run in runs if getattr(run.config, way) is not None]
        found = landscapes(stated, of=self.scale.error)
        return max(found, key=lambda one: len(one.cells), default=None)

    def pair(self, family: str, **wanted: Any) -> tuple[Landscape | None, Landscape | None]:
        """Return a family's landscapes: with L2 regularization, and with decoupled decay."""
        coupled, decoupled = PAIRS[family]
        return (
            self.landscape(coupled, "l2", **wanted),
            self.landscape(decoupled, "weight_decay", **wanted),
        )

    def coupling(self, landscape: Landscape) -> Coupling:
        """Measure the coupling of a landscape of these runs, once."""
        key = (landscape.config, landscape.way, landscape.lrs, landscape.decays)
        if key not in self._couplings:
            self._couplings[key] = coupling(landscape)
        return self._couplings[key]

    def runs_of(self, landscape: Landscape, lr: float, decay: float) -> list[Run]:
        """Return a setting's runs, a seed each."""
        setting: dict[str, Any] = {"lr": lr, landscape.way: decay}
        wanted = replace(landscape.config, **setting)
        return [run for run in self.runs if replace(run.config, seed=wanted.seed) == wanted]

    def fresh(self, landscape: Landscape) -> dict[int, Run]:
        """Return each seed's run of the setting that the other seeds choose."""
        return {
            seed: run
            for seed, setting in chosen_by_others(landscape).items()
            for run in self.runs_of(landscape, *setting)
            if run.config.seed == seed
        }

    def at_coarse_rates(self, family: str) -> "Evidence":
        """Return those runs that have a learning rate of the family's coarse grid."""
        kept = values(self.scale.coarse[family])
        return Evidence(self.scale, [run for run in self.runs if run.config.lr in kept])


def family_cells(
    at: Scale, family: str, *, schedules: Iterable[str] = ("cosine",)
) -> list[RunConfig]:
    """Return the cells of a family's two landscapes, under each schedule."""
    coupled, decoupled = PAIRS[family]
    axes = {
        **at.common,
        "task": at.task,
        "epochs": at.epochs,
        "seed": at.seeds,
        "lr": at.lrs[family],
        "schedule": list(schedules),
    }
    return [
        *grid(algorithm=coupled, l2=at.l2[family], **axes),
        *grid(algorithm=decoupled, weight_decay=at.decays[family], **axes),
    ]


def titled(landscape: Landscape, *, schedule: bool = False, epochs: bool = False) -> str:
    """Return what a panel is called."""
    config = landscape.config
    key = word(config.algorithm, config.schedule)
    if landscape.way == "l2" and Spec.parse("algorithm", config.algorithm).name not in COUPLED:
        key = key.removesuffix("w")
    parts = [NAMES.get(key, key)]
    if schedule:
        parts.append(SCHEDULES[Spec.parse("schedule", config.schedule).name])
    if epochs:
        parts.append(f"{config.epochs} epochs")
    return ", ".join(parts)


def restated(landscape: Landscape, task: str | None = None) -> str:
    """Return what a landscape is of, for a table."""
    config = landscape.config
    told = f"{titled(landscape, schedule=True, epochs=True)}, {AXES[landscape.way][1]}"
    told += f", batch {config.batch}" + ("" if config.data is None else f", {config.data} examples")
    return told if task in (None, config.task) else f"{told}, {config.task}"


def second_scale(at: Scale) -> Scale:
    """Return the sizes of the task that the supplement repeats figures on."""
    if at.second is None:
        raise NotAtThisScaleError(
            f"`scale` must name a second task, and that of {at.folder} has none."
        )
    return scale(at.second, at.name)
