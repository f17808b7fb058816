"""The runs behind a number: how many seeds it has, and what as many again would cost."""

import math
from collections.abc import Collection, Mapping

from weightdecay.records import Run, RunConfig
from weightdecay.results import TransferRegret, measure_transfer
from weightdecay.results.choosing import PAIRS
from weightdecay.results.transfer_folds import Pair
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


def transfer_of(seen: Evidence, name: str, moves: Collection[Pair] = PAIRS) -> TransferRegret:
    """Return what it costs to change α by a factor of 4, by fresh seeds if they were trained.

    Of a finished sweep, it is what these `moves` cost; fresh seeds have judged each.
    """
    return _fresh_transfer(seen, name) or measure_transfer(seen.landscape(name), moves)


def _is_judged(seen: Evidence, name: str) -> bool:
    """Whether all fresh seeds of a panel, or of a part of it, are trained."""
    if seen.second is None or seen.registration is None:
        return False
    return len(seen.second.runs.get(name, ())) == len(seen.registration.judges)


def _fresh_transfer(seen: Evidence, name: str) -> TransferRegret | None:
    judged = None if seen.second is None else seen.second.regrets.get(name)
    return judged if judged and judged.costs else None


def _sample(seen: Evidence, cells: Collection[RunConfig]) -> Sample:
    fresh = () if seen.second is None else seen.second.trained
    runs = [run for run in (*seen.runs, *fresh) if run.config in cells]
    return sample_of(cells, seen.costs, {worker_of(run) for run in runs or seen.runs})


def sample_of(
    cells: Collection[RunConfig], costs: Mapping[str, float], workers: Collection[str]
) -> Sample:
    """Return the sample of runs, given the seconds of each by its identity, where known.

    Seconds of different `workers` cannot be added.
    """
    seeds, [worker, *others] = len({cell.seed for cell in cells}), sorted(workers) or ["core"]
    known = [costs[cell.identity] for cell in cells if cell.identity in costs]
    added = known and len(known) == len(cells) and not others
    return Sample(seeds, len(cells), math.fsum(known) if added else None, worker)


def worker_of(run: Run) -> str:
    """Return what trained a run: a core or a GPU."""
    return "core" if run.environment is None or run.environment.on_cpu else "GPU"
