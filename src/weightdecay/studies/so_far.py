"""The claims that can be judged while a reproduction still trains.

A claim is judged as soon as the panels that it is about are complete: some cells of a landscape
would give another best setting. The seeds of a second stage count once all of them are trained.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from weightdecay.records import Run
from weightdecay.site import PageClaim
from weightdecay.studies import STUDIES, studies_at
from weightdecay.studies.own_scale import kept
from weightdecay.studies.page_claims import page_claim
from weightdecay.studies.panel import Measurement
from weightdecay.studies.reasons import Missing
from weightdecay.studies.registration import Registration
from weightdecay.studies.registration_file import FILE, SECOND, read
from weightdecay.studies.scales import Scale, scale
from weightdecay.studies.second_stage import EDITED
from weightdecay.studies.study import Evidence, Study
from weightdecay.studies.verdicts import Verdict
from weightdecay.sweeps import Store


@dataclass(frozen=True)
class Claims:
    """The claims that can be judged by now, and in words what cannot."""

    claims: Sequence[PageClaim]
    note: str


class SoFar:
    """Judges what can be judged of a folder, and judges again only what has changed.

    The folder's name says the task and the scale, or else a file in it does, and its plan says
    which figures it has. The folder of a sweep of that task that is named after a figure, in a
    folder named so, has that figure.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._known: dict[str, tuple[object, _Judged]] = {}

    def claims(self) -> Claims | None:
        """Return the claims; None if the folder is not that of a figure of the paper."""
        found = [self._judged(*one) for one in _studies(self._folder)]
        if not found:
            return None
        several = len(found) > 1
        claims = [
            page_claim(verdict, prefix=f"{one.name}: " if several else "")
            for one in found
            for verdict in one.verdicts
        ]
        notes = [one.note(f"{one.name}: " if several else "") for one in found]
        return Claims(claims, " ".join(filter(None, notes)))

    def _judged(self, study: Study, at: Scale, place: Path, planned: bool) -> "_Judged":
        found = _Trained.read(study, at, place, planned=planned)
        known = self._known.get(study.name)
        if known is None or known[0] != found.stamp:
            self._known[study.name] = known = found.stamp, found.judged()
        return known[1]


@dataclass(frozen=True)
class _Judged:
    """What can be said of a study: `waits` says that a second stage has yet to judge it again.

    `edited` says that its registration was changed after it was written.
    """

    study: Study
    verdicts: Sequence[Verdict]
    total: int
    waits: bool
    edited: bool

    @property
    def name(self) -> str:
        return self.study.name.replace("-", " ").capitalize()

    def note(self, prefix: str) -> str:
        told = []
        if left := self.total - len(self.verdicts):
            told.append(
                f"{prefix}{left} of {self.total} claims cannot be judged before their landscapes "
                "are complete."
            )
        if self.waits and self.verdicts:
            told.append(
                f"{prefix}Differences between methods are judged again by fresh seeds, which are "
                "not all trained yet."
            )
        if self.edited:
            told.append(f"{prefix}{EDITED}")
        return " ".join(told)


def _studies(folder: Path) -> Iterator[tuple[Study, Scale, Path, bool]]:
    """Yield the studies of a folder: their scale, where they are registered, and if planned."""
    if folder.name in STUDIES and (at := _scale(folder.parent.name)) is not None:
        study = STUDIES[folder.name]
        if _trains(folder, study.place(at).task):
            yield study, at, folder, False
        return
    at = kept(folder) or _scale(folder.name)
    if at is None or not (folder / "plan.jsonl").is_file():
        return
    planned = Store(folder).plan().keys()
    seen: list[set[str]] = []
    for study in studies_at(at):
        cells = {cell.identity for cell in study.cells(at)}
        # Two figures of the same runs make the same claims.
        if cells and cells <= planned and cells not in seen and study.claims(study.place(at)):
            seen.append(cells)
            yield study, at, folder / study.name, True


def _trains(folder: Path, task: str) -> bool:
    """Whether a folder plans runs, all of a task: one that is only named so claims nothing."""
    if not (folder / "plan.jsonl").is_file():
        return False
    return {config["task"] for config in Store(folder).plan().values()} == {task}


def _scale(name: str) -> Scale | None:
    task, _, size = name.rpartition("-")
    with suppress(ValueError):
        return scale(task, size)
    return None


@dataclass(frozen=True)
class _Trained:
    """The panels of a study that are complete, and the seeds that judge it, if all are there."""

    study: Study
    scale: Scale
    seen: Evidence
    registration: Registration | None
    judges: Sequence[Run]
    whole: bool

    @classmethod
    def read(cls, study: Study, at: Scale, place: Path, *, planned: bool) -> "_Trained":
        folder = place.parent if planned else place
        store = Store(folder)
        runs = {run.config.identity: run for run in store.runs()}
        costs = {**store.seconds(), **Store(folder / SECOND).seconds()}
        registration = read(place) if (place / FILE).exists() else None
        seen = study.evidence(at, runs.values(), planned=planned, registration=registration)
        seen = replace(seen, costs=costs)
        twins = seen.twins
        if planned:
            panels, asked = _complete(seen, runs), study.twins(study.place(at))
            twins = {k: pairs for k, pairs in twins.items() if len(pairs) == len(asked[k])}
            there = len(panels) == len(study.panels(study.place(at)))
            whole = there and len(twins) == len(asked)
        else:
            whole = store.plan().keys() <= runs.keys()
            panels = dict(seen.panels) if whole else {}
        judges = _judges(registration, folder / SECOND)
        seen = replace(seen, panels=panels, twins=twins)
        return cls(study, at, seen, registration, judges, whole)

    @property
    def stamp(self) -> object:
        """Return what changes when another claim can be judged, or one by more runs."""
        panels = {name: len(one.runs) for name, one in self.seen.panels.items()}
        twins = {name: len(pairs) for name, pairs in self.seen.twins.items()}
        return panels, twins, len(self.judges), self.whole, self.edited

    @property
    def edited(self) -> bool:
        return self.registration is not None and self.registration.edited

    def judged(self) -> _Judged:
        seen = self.seen
        if self.registration is not None and self.judges:
            seen = self.study.judged(seen, self.registration, self.judges)
        verdicts = self.study.verdicts(seen)
        # What is not measured is not decided, but only once nothing more is to come.
        known = [one for one in verdicts if self.whole or not isinstance(one.reason, Missing)]
        waits = bool(self.scale.judges and self.study.pairs(self.scale)) and not self.judges
        return _Judged(self.study, known, len(verdicts), waits, self.edited)


def _complete(seen: Evidence, runs: Mapping[str, Run]) -> dict[str, Measurement]:
    """Return the panels all of whose cells are trained, also those that a grid grows by."""
    return {
        name: one
        for name, one in seen.panels.items()
        if all(cell.identity in runs for cell in one.panel.cells)
    }


def _judges(registration: Registration | None, folder: Path) -> list[Run]:
    """Return the runs of the second stage of a study, if all of them are there."""
    if registration is None or not (folder / "log").is_dir():
        return []
    wanted = {cell.identity for cell in registration.cells()}
    found = [run for run in Store(folder).runs() if run.config.identity in wanted]
    return found if len(found) == len(wanted) else []
