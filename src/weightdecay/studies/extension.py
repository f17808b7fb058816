"""Grids that are extended where a best setting lies at an edge.

Panels that are compared are extended together, in rounds. Where the best setting of one lies at an
edge, it gets two values beyond that edge. The others get as many values of the same knob, beyond
the end that is nearer to their own best, or beyond the lowest if both are as near. What no decay
may reach is not added: the other end is extended instead. So grids that were declared with equal
sizes keep equal sizes, and others keep what they were declared to differ by. A knob that has fewer
than two values above 0 is not searched, and stays as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from weightdecay.records import Run
from weightdecay.results.choosing import Choice, can_choose, choose
from weightdecay.results.grouping import decay_limit
from weightdecay.studies.panel import Measurement, Panel
from weightdecay.studies.registration import Registration
from weightdecay.sweeps.grids import Axis

#: How often grids are extended, and by how many values where the best lies at an edge.
ROUNDS, STEP = 3, 2
_KNOBS = ("lr", "decay")
_LOWEST, _HIGHEST = "lowest", "highest"


def extended(
    panels: Sequence[Panel],
    pairs: Iterable[tuple[str, str]],
    runs: Mapping[str, Run],
    registration: Registration | None = None,
) -> list[Panel]:
    """Return a study's panels; those that `pairs` of names compare are extended as `runs` say.

    `runs` are by identity. If the study is registered, its grids are those that it was registered
    with. Until 18 November 2026, each panel was extended by itself.
    """
    pairs = list(pairs)
    names = {name for pair in pairs for name in pair}
    found = _in_groups(panels, groups(names, pairs), runs)
    if registration is None or _as_registered(found, registration):
        return found
    return _in_groups(panels, groups(names, []), runs)


def groups(names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return sets of names that pairs join, directly or by way of others."""
    found = [{name} for name in names]
    for pair in pairs:
        joined = [one for one in found if one & {*pair}]
        found = [*(one for one in found if one not in joined), set[str]().union(*joined)]
    return found


def together(panels: Sequence[Panel], runs: Mapping[str, Run]) -> list[Panel]:
    """Return panels that are compared with each other, extended as runs by identity say.

    If cells of the last round are missing, it is included, and what lies beyond is not known yet.
    More runs never take back what fewer have added.
    """
    found = list(panels)
    for _ in range(ROUNDS):
        whole = [_whole(panel, runs) for panel in found]
        known = [one for one in whole if one is not None]
        counts = {knob: max((one.wanted(knob) for one in known), default=0) for knob in _KNOBS}
        if not any(counts.values()):
            break
        found = [
            panel if one is None else one.with_more(counts)
            for panel, one in zip(found, whole, strict=True)
        ]
        if len(known) < len(whole):
            break
    return found


def _in_groups(
    panels: Sequence[Panel], joined: Iterable[set[str]], runs: Mapping[str, Run]
) -> list[Panel]:
    found = {panel.name: panel for panel in panels}
    for names in joined:
        own = [panel for panel in panels if panel.name in names]
        found |= {panel.name: panel for panel in together(own, runs)}
    return list(found.values())


def _as_registered(panels: Iterable[Panel], registration: Registration) -> bool:
    """Whether panels have as many settings as were registered."""
    return all(
        len(panel.settings) == registration.methods[panel.name].settings
        for panel in panels
        if panel.name in registration.methods
    )


def _whole(panel: Panel, runs: Mapping[str, Run]) -> "_Searched | None":
    """Return a panel that is trained; None if any cell is missing."""
    found = panel.measured(runs)
    return _Searched(found) if found and len(found.runs) == len(panel.cells) else None


@dataclass(frozen=True)
class _Searched:
    """A panel all of whose cells are trained, and where it should be extended."""

    found: Measurement

    @cached_property
    def _choice(self) -> Choice | None:
        landscape = self.found.landscape
        return choose(landscape) if can_choose(landscape) else None

    @cached_property
    def _edges(self) -> dict[str, str]:
        """Return the end of each knob that the best setting lies at."""
        edges = self._choice.edges if self._choice else ()
        return {knob: end for end, knob in (edge.split() for edge in edges)}

    def wanted(self, knob: str) -> int:
        """Return how many values a knob should get because the best setting lies at its edge."""
        end = self._edges.get(knob)
        return 0 if end is None else len(self._beyond(knob, end, STEP))

    def with_more(self, counts: Mapping[str, int]) -> Panel:
        """Return the panel with so many more values of each knob."""
        axes: dict[str, Axis] = dict(self.found.panel.axes)
        landscape = self.found.landscape
        own = {"lr": ("lr", landscape.lrs), "decay": (landscape.way, landscape.decays)}
        for knob, count in counts.items():
            if count and len(self._above_0(knob)) > 1:
                name, values = own[knob]
                axes[name] = [*values, *self._more(knob, count)]
        return replace(self.found.panel, axes=axes)

    def _more(self, knob: str, count: int) -> list[float]:
        end = self._edges.get(knob) or self._nearest(knob)
        there = self._beyond(knob, end, count)
        return [*there, *self._beyond(knob, _LOWEST, count - len(there))]

    def _nearest(self, knob: str) -> str:
        """Return the end that is nearer to the best setting."""
        if self._choice is None:
            return _LOWEST
        best = self._choice.lr if knob == "lr" else self._choice.decay
        values = self._above_0(knob)
        return _HIGHEST if values[-1] / best < best / values[0] else _LOWEST

    def _beyond(self, knob: str, end: str, count: int) -> list[float]:
        """Return values beyond an end, at the spacing there, without those no decay may reach."""
        values = self._above_0(knob)
        last, before = (values[0], values[1]) if end == _LOWEST else (values[-1], values[-2])
        added = [last * (last / before) ** n for n in range(1, count + 1)]
        if knob == "lr":
            return added
        limit = decay_limit(self.found.landscape.way, self.found.runs)
        return [value for value in added if value < limit]

    def _above_0(self, knob: str) -> list[float]:
        landscape = self.found.landscape
        values = landscape.lrs if knob == "lr" else landscape.decays
        return sorted(value for value in values if value > 0)
