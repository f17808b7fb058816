"""Judges the studies whose runs are committed.

results/<task>-<scale>/records.parquet       all runs; of landscapes the last epoch
results/<task>-<scale>/judging.parquet       those of the second stage, if there is one, and
results/<task>-<scale>/<study>/registered.toml    what was registered before it, and
results/<task>-<scale>/<study>/earlier.toml       which registrations that states again
results/<task>-<scale>/<study>/figure.png    and verdicts.json, made from them

Instead of tables, a study's folder may be that of a sweep, with the second stage in `judging`. Such
a sweep may have other settings and seeds than the scale.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from weightdecay.records import Run
from weightdecay.records.tables import imported
from weightdecay.studies import STUDIES, studies_at
from weightdecay.studies.findings import Findings, find
from weightdecay.studies.registration import Registration
from weightdecay.studies.registration_file import FILE, SECOND, read
from weightdecay.studies.scales import Scale, scale, values
from weightdecay.studies.study import Evidence, Study
from weightdecay.sweeps import Store


def found_in(
    results: Path, *, only: Collection[str] = tuple(STUDIES)
) -> list[tuple[Findings, Evidence]]:
    """Judge every study whose runs are all there, on every task in a folder.

    If several scales of a task have a study, the one with the most seeds counts. `only` names the
    studies to judge.
    """
    first, second = (_imported(results, f"*/{name}.parquet") for name in ("records", "judging"))
    there = {run.config.identity for runs in first.values() for run in runs}
    scales = sorted(_scales(results, "*/records.parquet"), key=lambda at: len(values(at.seeds)))
    whole = {
        (study.name, at.task): (study, at)  # the last, which has the most seeds
        for at in scales
        for study in studies_at(at)
        # What trains nothing is the same at every scale: once is enough.
        if (cells := study.cells(at)) or at is scales[0]
        if all(cell.identity in there for cell in cells)
    }
    # A supplement that repeats a figure on a second task is that task's own figure, if it is there.
    own = {(study.panels, at.task) for study, at in whole.values() if study.place(at) is at}
    planned = [
        find(
            study,
            at,
            _with_own(first, at),
            registration=_registered(results / at.folder / study.name),
            second=_with_own(second, at),
        )
        for study, at in sorted(whole.values(), key=lambda one: (one[1].task, _order(one[0])))
        if study.name in only
        if (place := study.place(at)) is at or (study.panels, place.task) not in own
    ]
    return [
        *(one for at in _scales(results, "*/*/plan.jsonl") for one in _swept(results, at, only)),
        *planned,
    ]


def _imported(results: Path, pattern: str) -> dict[str, list[Run]]:
    """Return runs of tables by folder; one of a task whose data changed has another name now."""
    return {
        path.parent.name: [run for run in imported(path) if run.last.run == run.config.identity]
        for path in sorted(results.glob(pattern))
    }


def _with_own(runs: Mapping[str, Sequence[Run]], at: Scale) -> list[Run]:
    """Return all runs; if two scales of a task have trained the same cell, the own run counts."""
    folders = sorted(runs, key=lambda folder: folder == at.folder)
    found = {run.config.identity: run for folder in folders for run in runs[folder]}
    return list(found.values())


def _swept(results: Path, at: Scale, only: Collection[str]) -> list[tuple[Findings, Evidence]]:
    """Judge the studies of a scale whose folders are sweeps; they may use each other's runs."""
    swept = [
        (study, folder)
        for study in studies_at(at)
        if (folder := results / at.folder / study.name).joinpath("plan.jsonl").exists()
    ]
    stages = [(Store(folder), Store(folder / SECOND)) for _, folder in swept]
    first = [run for store, _ in stages for run in store.runs()]
    repeats = [run for store, _ in stages for run in store.repeats()]
    second = [run for _, store in stages for run in store.runs()]
    stores = [store for pair in stages for store in pair]
    costs = {run: seconds for store in stores for run, seconds in store.seconds().items()}
    return [
        find(
            study,
            at,
            first,
            repeats,
            registration=_registered(folder),
            second=second,
            planned=False,
            costs=costs,
        )
        for study, folder in swept
        if study.name in only
    ]


def _order(study: Study) -> int:
    return [*STUDIES].index(study.name)


def _registered(folder: Path) -> Registration | None:
    return read(folder) if (folder / FILE).exists() else None


def _scales(results: Path, pattern: str) -> list[Scale]:
    """Return the scales of the folders in which a file of this pattern lies."""
    paths = [path.relative_to(results) for path in results.glob(pattern)]
    # A sweep whose folder is not named after a study belongs to none: a search, for instance.
    found = {path.parts[0] for path in paths if len(path.parts) == 2 or path.parts[1] in STUDIES}
    return [scale(task, name) for task, _, name in sorted(one.rpartition("-") for one in found)]
