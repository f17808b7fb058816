"""The runs behind a number: how many seeds it has, and what as many again would cost."""

import math
from collections.abc import Collection, Iterable, Mapping

from weightdecay.records import Run, RunConfig
from weightdecay.results import TransferRegret, measure_transfer
from weightdecay.studies.reasons import Sample
from weightdecay.studies.study import Evidence, panel_of


def of_grids(seen: Evidence, *names: str) -> Sample:
    """Return the sample of panels' landscapes; the name of a part stands for its whole panel."""
    panels = [seen[panel_of(name)] for name in names]
    return _sample(seen, {run.config for one in panels for run in one.runs})


def of_judges(seen: Evidence, *names: str) -> Sample:
    """Return the sample of fresh seeds; without a second stage, that of the landscapes."""
    registered = seen.registration
    if registered is None or not all(_is_judged(seen, name) for name in names):
        return of_grids(seen, *names)
    methods = [registered.methods[name] for name in names]
    return _sample(seen, {cell for one in methods for cell in one.judged(registered.judges)})


def of_carriers(seen: Evidence, *names: str) -> Sample:
    """Return the sample of seeds that carry decays; without a second stage, of the landscapes."""
    registered = seen.registration
    if registered is None or not all(_fresh_transfer(seen, name) for name in names):
        return of_grids(seen, *names)
    methods = [registered.methods[name] for name in names]
    return _sample(seen, {cell for one in methods for cell in one.carrying(registered.carriers)})


def transfer_of(seen: Evidence, name: str) -> TransferRegret:
    """Return what it costs to change α by a factor of 4, by fresh seeds if they were trained."""
    return _fresh_transfer(seen, name) or measure_transfer(seen.landscape(name))


def _is_judged(seen: Evidence, name: str) -> bool:
    """Whether all fresh seeds of a panel, or of a part of it, are trained."""
    if seen.second is None or seen.registration is None:
        return False
    return len(seen.second.runs.get(name, ())) == len(seen.registration.judges)


def _fresh_transfer(seen: Evidence, name: str) -> TransferRegret | None:
    judged = None if seen.second is None else seen.second.regrets.get(name)
    return judged if judged and judged.costs else None


def _sample(seen: Evidence, cells: Collection[RunConfig]) -> Sample:
    return sample_of(cells, seen.costs, worker_of(seen.runs))


def sample_of(cells: Collection[RunConfig], costs: Mapping[str, float], worker: str) -> Sample:
    """Return the sample of runs, given the seconds of each by its identity, where known."""
    known = [costs[cell.identity] for cell in cells if cell.identity in costs]
    seconds = math.fsum(known) if known and len(known) == len(cells) else None
    return Sample(len({cell.seed for cell in cells}), len(cells), seconds, worker)


def worker_of(runs: Iterable[Run]) -> str:
    """Return what trained runs: a core or a GPU."""
    found = (run.environment for run in runs)
    return "GPU" if any(one is not None and not one.on_cpu for one in found) else "core"
