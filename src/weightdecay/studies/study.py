"""A study: panels to train, a picture of them, and claims of the paper to judge by them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from weightdecay.records import Run, RunConfig
from weightdecay.results import Exponent, Landscape
from weightdecay.studies import verdicts
from weightdecay.studies.panel import Measurement, Panel
from weightdecay.studies.scales import Scale, scale
from weightdecay.studies.verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Two configurations that a claim compares directly, and their runs.
Twins: TypeAlias = tuple[RunConfig, RunConfig]
TwinRuns: TypeAlias = tuple[Run, Run]


class NotAtThisScaleError(ValueError):
    """A study needs something that the scale does not have."""


class NotMeasuredError(LookupError):
    """A claim needs runs that are missing."""


@dataclass(frozen=True)
class Evidence:
    """The runs of a study at a scale: measured panels by name, and twins by name."""

    scale: Scale
    panels: Mapping[str, Measurement]
    twins: Mapping[str, Sequence[TwinRuns]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Measurement:
        """Return a measured panel; raise NotMeasuredError if it has no runs."""
        if name not in self.panels:
            raise NotMeasuredError(f"There are no runs of {name}.")
        return self.panels[name]

    def landscape(self, name: str) -> Landscape:
        """Return a panel's landscape."""
        return self[name].landscape

    def exponent(self, name: str) -> Exponent:
        """Return a panel's coupling exponent."""
        return self[name].coupling.exponent

    @property
    def metric(self) -> str | None:
        """Return the name of the task's own metric; None if errors are those of classification."""
        return next((one.landscape.metric for one in self.panels.values()), None)

    @property
    def tested(self) -> str:
        """Return what the test set measures, in words: "test error" or "test squared error"."""
        return f"test {self.metric or 'error'}"


#: A function from a claim's words and the evidence to a verdict.
Judge: TypeAlias = Callable[[str, Evidence], Verdict]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and the rule that judges it by what was measured."""

    words: str
    judge: Judge

    def verdict(self, seen: Evidence) -> Verdict:
        """Judge the claim; if a panel that it needs is missing, it is not decided."""
        try:
            return self.judge(self.words, seen)
        except NotMeasuredError as error:
            return verdicts.unseen(self.words, str(error))


@dataclass(frozen=True)
class Study:
    """A figure of the paper, or a question of our own.

    `panels`, `twins` and `claims` take a scale; they raise NotAtThisScaleError if it lacks
    something they need. `place` returns the scale to use instead of the requested one. `curves`
    says that the study also needs the epochs before the last.
    """

    name: str
    title: str
    panels: Callable[[Scale], Sequence[Panel]]
    draw: Callable[[Evidence, str], "Figure"]
    claims: Callable[[Scale], Sequence[Claim]] = lambda _: ()
    twins: Callable[[Scale], Mapping[str, Sequence[Twins]]] = lambda _: {}
    place: Callable[[Scale], Scale] = lambda at: at
    curves: bool = False

    def cells(self, at: Scale) -> list[RunConfig]:
        """Return all configurations to train at a scale, each once."""
        here = self.place(at)
        cells = [
            *(cell for panel in self.panels(here) for cell in panel.cells),
            *(cell for pairs in self.twins(here).values() for pair in pairs for cell in pair),
        ]
        return list(dict.fromkeys(cells))

    def evidence(self, at: Scale, runs: Iterable[Run]) -> Evidence:
        """Pick this study's runs out of any; if a configuration occurs twice, the last counts."""
        here = self.place(at)
        there = {run.config.identity: run for run in runs}
        found = {panel.name: panel.measured(there) for panel in self.panels(here)}
        twins = {
            name: [
                (there[one.identity], there[other.identity])
                for one, other in pairs
                if one.identity in there and other.identity in there
            ]
            for name, pairs in self.twins(here).items()
        }
        return Evidence(here, {name: one for name, one in found.items() if one}, twins)

    def verdicts(self, seen: Evidence) -> list[Verdict]:
        """Judge every claim."""
        return [claim.verdict(seen) for claim in self.claims(seen.scale)]


def heatmaps_of(
    *, columns: int, names: Sequence[str] | None = None
) -> Callable[[Evidence, str], "Figure"]:
    """Return a function that draws a study's panels, or those named, as heat maps."""

    def draw(seen: Evidence, small_print: str) -> "Figure":
        from weightdecay.figures import heatmaps

        drawn = [one.picture for name, one in seen.panels.items() if names is None or name in names]
        return heatmaps(drawn, columns=columns, small_print=small_print)

    return draw


def second_scale(at: Scale) -> Scale:
    """Return the scale of the task on which the supplement repeats figures."""
    if at.second is None:
        raise NotAtThisScaleError(
            f"`scale` must name a second task, and that of {at.folder} has none. Choose a task "
            "that has one, such as mnist1d or text."
        )
    return scale(at.second, at.name)
