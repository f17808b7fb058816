"""Trains the stages of the paper's figures: grids, their extensions, and the seeds that judge."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from weightdecay.cli.printing import echo
from weightdecay.cli.status import line
from weightdecay.cli.sweep_view import engine_of, sweep_all
from weightdecay.records import Run, RunConfig
from weightdecay.studies import Scale, Study
from weightdecay.studies.own_scale import OWN, keep
from weightdecay.studies.registration import Registration, register
from weightdecay.studies.registration_file import FILE, SECOND, read, write
from weightdecay.sweeps import Store
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.kept import Kept
from weightdecay.sweeps.name_checks import DOWNLOADED


@dataclass
class Trained:
    """All runs of figures: of the first stage, repeated ones, and of the second stage.

    `registered` has what was registered before the second stage, by study. `costs` are the seconds
    that runs took, by their identities. `failed` is the number of cells that failed.
    """

    runs: Sequence[Run] = ()
    repeats: Sequence[Run] = ()
    registered: Mapping[str, Registration] = field(default_factory=dict)
    second: Sequence[Run] = ()
    costs: Mapping[str, float] = field(default_factory=dict)
    failed: int = 0


def train(studies: Sequence[Study], at: Scale, options: argparse.Namespace) -> Trained | None:
    """Train what is missing of the studies' stages, into `options.folder`; None if stopped."""
    cells = dict.fromkeys(cell for study in studies for cell in study.cells(at))
    if not cells:
        return Trained()
    if at.name == OWN:
        keep(at, options.folder)
    with Kept(engine_of(options)) as engine:
        return _trained(studies, at, cells, options, engine)


def _trained(
    studies: Sequence[Study],
    at: Scale,
    cells: dict[RunConfig, None],
    options: argparse.Namespace,
    engine: Engine,
) -> Trained | None:
    found = Trained()
    store, folder = Store(options.folder), options.folder
    more = _grown(studies, at, store.runs(), folder)  # by an earlier, interrupted command
    while True:
        cells |= more
        if not _swept([*cells], options, engine, found):
            return None
        more = _grown(studies, at, store.runs(), folder)
        if more.keys() <= cells.keys():
            break
        if not options.quiet:
            echo(
                "A best setting lies at an edge of its grid, which is extended, together with the "
                "grids that it is compared with.",
                file=sys.stderr,
            )
    found.runs, found.repeats, found.costs = store.runs(), store.repeats(), store.seconds()
    if at.judges:
        found.registered = _registered(studies, at, found.runs, folder)
    judges = [cell for one in found.registered.values() for cell in one.cells()]
    if judges:
        if not options.quiet:
            echo("Settings are chosen and registered. Other seeds judge them.", file=sys.stderr)
        with _in_folder(options, folder / SECOND):
            if not _swept(list(dict.fromkeys(judges)), options, engine, found):
                return None
            judging = Store(options.folder)
            found.second, found.costs = judging.runs(), {**found.costs, **judging.seconds()}
    return found


def _grown(
    studies: Sequence[Study], at: Scale, runs: Sequence[Run], folder: Path
) -> dict[RunConfig, None]:
    """Return the cells of grids that are extended, if a best setting lies at an edge.

    The grids of a registered study stay as they are.
    """
    there = {run.config for run in runs}
    found: dict[RunConfig, None] = {}
    for study in studies if at.judges else ():
        own = folder / study.name
        registration = read(own) if (own / FILE).exists() else None
        cells = study.grown(at, runs, registration)
        found |= dict.fromkeys(cell for cell in cells if registration is None or cell in there)
    return found


def _swept(
    cells: Sequence[RunConfig], options: argparse.Namespace, engine: Engine, found: Trained
) -> bool:
    """Sweep cells, and say how it went. Return whether it came to its end."""
    done = Store(options.folder).refresh().finished
    left = [config for config in cells if config.identity not in done]
    if left and not options.quiet:
        echo(f"{len(left)} of {len(cells)} runs to train.", file=sys.stderr, flush=True)
    if options.on != "ray":
        _check_data(left)
    now = sweep_all(cells, options, engine=engine)
    if now is None:
        return False
    found.failed += now.failed
    if not options.json:
        echo(line(now))
        if now.failed and not options.quiet:
            echo(f"To train the failed cells again, run `weightdecay retry {options.folder}`.")
    return True


@contextmanager
def _in_folder(options: argparse.Namespace, folder: Path) -> Iterator[None]:
    before, options.folder = options.folder, folder
    try:
        yield
    finally:
        options.folder = before


def _check_data(cells: Sequence[RunConfig]) -> None:
    """Raise before anything is planned if a data set has not been downloaded to this machine."""
    for name in {cell.task: None for cell in cells if cell.task in DOWNLOADED}:
        from weightdecay.tasks import load  # imports torch

        load(name)


def _registered(
    studies: Sequence[Study], at: Scale, runs: Sequence[Run], folder: Path
) -> dict[str, Registration]:
    """Return the registration of each study that has a second stage, written if it is new."""
    found = {}
    for study in studies:
        own = folder / study.name
        if (own / FILE).exists():
            found[study.name] = read(own)
            continue
        seen = study.evidence(at, runs)
        whole = all(len(one.runs) == len(one.panel.cells) for one in seen.panels.values())
        # A choice among some of the cells would stay registered when the others are there.
        if whole and (entrants := study.entrants(seen)):
            chosen = register(
                entrants,
                seen.runs,
                date=datetime.now(UTC).date().isoformat(),
                seeds=seen.scale.judges,
                carry=seen.scale.carriers,
                carried=study.carried,
                compare=study.pairs(at),
                at_edge=True,
            )
            own.mkdir(exist_ok=True)
            with suppress(FileExistsError):  # another process has just registered it
                write(chosen, own)
            found[study.name] = read(own)
    return found
