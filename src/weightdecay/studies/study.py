"""A study: panels to train, a picture of them, and claims of the paper to judge by them."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from weightdecay.number_format import measured
from weightdecay.records import Run, RunConfig
from weightdecay.results import Exponent, Landscape, with_and_without
from weightdecay.results.choosing import can_choose
from weightdecay.studies import verdicts
from weightdecay.studies.extension import extended
from weightdecay.studies.formats import points
from weightdecay.studies.panel import Measurement, Panel
from weightdecay.studies.registration import Registration
from weightdecay.studies.scales import Scale, scale
from weightdecay.studies.second_stage import Judged, judge
from weightdecay.studies.verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Endings of names: a panel's part with decay, and that without.
DECAY, NO_DECAY = ", λ > 0", ", λ = 0"
#: Two configurations that a claim compares directly, and their runs.
Twins: TypeAlias = tuple[RunConfig, RunConfig]
TwinRuns: TypeAlias = tuple[Run, Run]


def panel_of(name: str) -> str:
    """Return the panel that a name, which may be that of a part, belongs to."""
    return name.partition(", λ")[0]


def is_part(name: str) -> bool:
    """Whether a name is that of a panel's part with or without decay."""
    return name.endswith((DECAY, NO_DECAY))


class NotAtThisScaleError(ValueError):
    """A study needs something that the scale does not have."""


class NotMeasuredError(LookupError):
    """A claim needs runs that are missing."""


@dataclass(frozen=True)
class Evidence:
    """The runs of a study at a scale: measured panels by name, and twins by name.

    If the study has a second stage, `registration` says what was registered, and `second` what came
    of it. `costs` are the seconds that runs took, by their identities, where they are known.
    """

    scale: Scale
    panels: Mapping[str, Measurement]
    twins: Mapping[str, Sequence[TwinRuns]] = field(default_factory=dict)
    registration: Registration | None = None
    second: Judged | None = None
    costs: Mapping[str, float] = field(default_factory=dict)

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

    def entrant(self, name: str) -> Landscape:
        """Return a panel's landscape, or its part with or without decay, by the name's ending."""
        for place, suffix in enumerate((DECAY, NO_DECAY)):
            if name.endswith(suffix):
                return with_and_without(self.landscape(name.removesuffix(suffix)))[place]
        return self.landscape(name)

    def fresh(self, name: str) -> dict[int, Run]:
        """Return a panel's runs by seed, at settings that these seeds did not choose.

        They are those of the second stage if all of its seeds are trained; else each seed's run of
        the setting that the other seeds choose.
        """
        if self.second is None or self.registration is None:
            return self[name].fresh
        judges = {run.config.seed: run for run in self.second.runs.get(name, [])}
        return judges if {*self.registration.judges} <= judges.keys() else self[name].fresh

    @property
    def runs(self) -> list[Run]:
        """Return the runs of all panels, each once."""
        own = {run.config: run for one in self.panels.values() for run in one.runs}
        return list(own.values())

    @property
    def metric(self) -> str | None:
        """Return the name of the task's own metric; None if errors are those of classification."""
        return next((one.landscape.metric for one in self.panels.values()), None)

    @property
    def tested(self) -> str:
        """Return what is shown, in words: "test error", "top-5 test error", "test bits"."""
        top = "top-5 " if self.scale.error == "error_top5" else ""
        return f"{top}test {self.metric or 'error'}"


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

    `budgets` says that panels differ in the budget, so that the powers of the best decay are shown.

    `compared` are pairs of panels that a second stage compares, by seeds that chose nothing; an
    ending such as ", λ = 0" names a part of a panel. `carried` are panels for which it measures
    what it costs to carry a decay to another learning rate.
    """

    name: str
    title: str
    panels: Callable[[Scale], Sequence[Panel]]
    draw: Callable[[Evidence, str], "Figure"]
    claims: Callable[[Scale], Sequence[Claim]] = lambda _: ()
    twins: Callable[[Scale], Mapping[str, Sequence[Twins]]] = lambda _: {}
    place: Callable[[Scale], Scale] = lambda at: at
    curves: bool = False
    budgets: bool = False
    compared: Sequence[tuple[str, str]] = ()
    carried: Sequence[str] = ()

    def cells(self, at: Scale) -> list[RunConfig]:
        """Return all configurations to train at a scale, each once."""
        here = self.place(at)
        cells = [
            *(cell for panel in self.panels(here) for cell in panel.cells),
            *(cell for pairs in self.twins(here).values() for pair in pairs for cell in pair),
        ]
        return list(dict.fromkeys(cells))

    def pairs(self, at: Scale) -> list[tuple[str, str]]:
        """Return those of the compared pairs whose panels this scale has."""
        return _among(self.compared, self._named(self.place(at)))

    def _named(self, here: Scale) -> set[str]:
        return {panel.name for panel in self.panels(here)}

    def entrants(self, seen: Evidence) -> dict[str, Landscape]:
        """Return the landscapes that enter the second stage, if all have a setting to choose."""
        there = self._named(seen.scale)  # where the study was placed already
        carried = [name for name in self.carried if name in there]
        names = dict.fromkeys([*chain.from_iterable(_among(self.compared, there)), *carried])
        try:
            found = {name: seen.entrant(name) for name in names}
        except NotMeasuredError:
            return {}
        return found if all(map(can_choose, found.values())) else {}

    def judged(self, seen: Evidence, registration: Registration, runs: Sequence[Run]) -> Evidence:
        """Return evidence with its second stage, judged by these runs."""
        found = judge(registration, self.entrants(seen), seen.runs, runs)
        return replace(seen, registration=registration, second=found)

    def grown(
        self, at: Scale, runs: Iterable[Run], registration: Registration | None = None
    ) -> list[RunConfig]:
        """Return the cells of panels that are compared, extended if a best lies at an edge.

        If the study is registered, they are those that it was registered with.
        """
        here = self.place(at)
        there = {run.config.identity: run for run in runs}
        pairs = self._paired(here, registration)
        asked = {name for pair in pairs for name in pair}
        panels = extended(self.panels(here), pairs, there, registration)
        cells = [cell for panel in panels if panel.name in asked for cell in panel.cells]
        return list(dict.fromkeys(cells))

    def _paired(self, here: Scale, registration: Registration | None) -> list[tuple[str, str]]:
        """Return the names of compared panels; if the study is registered, as it was then."""
        named = self.compared if registration is None else registration.compared
        pairs = _among(named, self._named(here))
        return [(panel_of(one), panel_of(other)) for one, other in pairs]

    def evidence(
        self,
        at: Scale,
        runs: Iterable[Run],
        *,
        planned: bool = True,
        registration: Registration | None = None,
    ) -> Evidence:
        """Pick this study's runs out of any; if a configuration occurs twice, the last counts.

        If they were not `planned` by the study, a panel takes all runs of its landscape, also at
        settings and seeds of which the scale knows nothing. If the study is registered, its grids
        are those that it was registered with.
        """
        here = self.place(at)
        there = {run.config.identity: run for run in runs}
        panels = self.panels(here)
        if planned:
            panels = extended(panels, self._paired(here, registration), there, registration)
            found = {panel.name: panel.measured(there) for panel in panels}
        else:
            found = {panel.name: panel.measured_anywhere(there.values()) for panel in panels}
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


def _among(pairs: Iterable[tuple[str, str]], there: Container[str]) -> list[tuple[str, str]]:
    """Return the pairs whose panels are there."""
    return [pair for pair in pairs if all(panel_of(name) in there for name in pair)]


def heatmaps_of(
    *, columns: int, names: Sequence[str] | None = None
) -> Callable[[Evidence, str], "Figure"]:
    """Return a function that draws a study's panels, or those named, as heat maps."""

    def draw(seen: Evidence, small_print: str) -> "Figure":
        from weightdecay.figures import heatmaps

        drawn = [
            (f"{title}{_judged(seen, name)}", landscape, coupling)
            for name, one in seen.panels.items()
            if names is None or name in names
            for title, landscape, coupling in [one.picture]
        ]
        return heatmaps(drawn, columns=columns, small_print=small_print)

    return draw


def _judged(seen: Evidence, name: str) -> str:
    """Return the error of a panel's fresh seeds, and what it costs to keep λ, for its title."""
    if seen.second is None or not seen.second.runs.get(name):
        return ""
    told = f": {measured(fmean(seen.second.errors(name)), seen.metric)}"
    kept = seen.second.regrets[name].costs.get(0)
    return told if kept is None else f"{told}; λ kept: {points(kept.value, seen.metric, digits=2)}"


def second_scale(at: Scale) -> Scale:
    """Return the scale of the task on which the supplement repeats figures."""
    if at.second is None:
        raise NotAtThisScaleError(
            f"`scale` must name a second task, and that of {at.folder} has none. Choose a task "
            "that has one, such as mnist1d."
        )
    return scale(at.second, at.name)
