"""`weightdecay sweep` and what belongs to it: retry, status, watch, merge and export."""

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay import checks
from weightdecay.cli.reading import Commands, whole
from weightdecay.cli.saying import say

if TYPE_CHECKING:
    from weightdecay.sweeps.merging import Conflict

# So many conflicts are named; the others are counted.
_NAMED = 20


def add(commands: Commands) -> None:
    """Add the commands."""
    sweep = commands.add_parser(
        "sweep",
        help="train a study's configurations, and go on where it was",
        description="Train the configurations of a study that are not done yet in a folder. It may "
        "be killed and started again, on one machine or several that share the folder: what is "
        "recorded is never trained again, and what is being trained goes on from its checkpoint.",
    )
    sweep.add_argument("study", type=Path, metavar="STUDY", help="a TOML file: see docs/sweeps.md")
    sweep.add_argument(
        "--out", dest="folder", type=Path, required=True, metavar="FOLDER", help="where it is kept"
    )
    sweep.add_argument(
        "--dry-run",
        action="store_true",
        help="say what there is to train and how long it may take, and train nothing",
    )
    add_engine(sweep)
    sweep.set_defaults(command=_sweep)

    retry = _of_folder(commands, "retry", "train what failed again, and what is left", _retry)
    add_engine(retry)
    status = _of_folder(
        commands,
        "status",
        "say how a sweep stands, and what is best so far",
        _status,
        "The exit status is 1 where cells have failed, or where a result is damaged and its cell "
        "has no other.",
    )
    status.add_argument("--failures", action="store_true", help="name every cell that failed")
    status.add_argument(
        "--check", action="store_true", help="read and compare results however many there are"
    )
    watch = _of_folder(commands, "watch", "keep a sweep's standing on the screen", _watch)
    watch.add_argument(
        "--every", type=float, default=1.0, metavar="S", help="seconds between looks (default 1)"
    )
    merge = _of_folder(commands, "merge", "take over what another sweep has done", _merge)
    merge.add_argument("others", type=Path, nargs="+", metavar="OTHER", help="a sweep's folder")
    export = _of_folder(commands, "export", "write all records as one table", _export)
    export.add_argument("file", type=Path, metavar="FILE", help="a name ending in .parquet or .csv")


def _of_folder(
    commands: Commands, name: str, does: str, command: object, more: str = ""
) -> argparse.ArgumentParser:
    told = f"{does[0].upper()}{does[1:]}. {more}".rstrip()
    parser = commands.add_parser(name, help=does, description=told)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the sweep's folder")
    parser.set_defaults(command=command)
    return parser


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where packs are trained."""
    where = parser.add_argument_group("where")
    where.add_argument(
        "--on",
        choices=("local", "ray", "here"),
        default="local",
        help="processes on this machine, a Ray cluster, or this process (default local)",
    )
    where.add_argument(
        "--workers", type=whole, metavar="N", help="packs at a time (default one a core, or a GPU)"
    )
    where.add_argument("--device", help="as torch names it (default a GPU, where there is one)")
    where.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="end a worker that says nothing for S seconds (default wait, and say so)",
    )
    where.add_argument("--address", help="of a Ray cluster, or auto (default one of its own)")


def _sweep(options: argparse.Namespace) -> int:
    from weightdecay.cli.forecast import dry_run
    from weightdecay.cli.sweeping import check_folder, engine_of, follow
    from weightdecay.sweeps.grids import read_study

    configs = read_study(options.study)
    if not options.dry_run:
        return follow(configs, options, retry=False)
    check_folder(options.folder)
    return dry_run(configs, options, None if options.on == "ray" else engine_of(options))


def _retry(options: argparse.Namespace) -> int:
    from weightdecay.cli.sweeping import follow
    from weightdecay.records import RunConfig
    from weightdecay.sweeps.store import Store

    store = Store(options.folder)
    plan = store.plan()
    done = store.refresh().diverged
    if all(run in done for run in plan):
        say("Every cell is done: none has failed, and none is left.")
        return 0
    return follow([RunConfig.from_dict(values) for values in plan.values()], options, retry=True)


def _status(options: argparse.Namespace) -> int:
    from weightdecay.cli import standing

    now, told, complete = standing.lines(options.folder, every_failure=options.failures)
    best = standing.Best(options.folder).lines(now, every_result=options.check)
    doubts = standing.doubts(options.folder, now, every_result=options.check)
    say("\n".join([*told, *best, *doubts]))
    return 1 if now.failed or not complete else 0


def _watch(options: argparse.Namespace) -> int:
    from weightdecay.cli import standing
    from weightdecay.cli.progress import Bars

    checks.number("every", options.every, above=0)
    best = standing.Best(options.folder)
    try:
        with Bars() as bars:
            while True:
                now, told, complete = standing.lines(options.folder)
                if not now.left:
                    break
                whole = standing.share(now), standing.short_line(now)
                others = [*told[1:], *best.lines(now)]
                bars.draw_all([whole, *((None, line) for line in others)])
                time.sleep(options.every)
    except KeyboardInterrupt:
        say("No longer watched; what runs goes on.", file=sys.stderr)
        return 130
    say("\n".join([*told, *best.lines(now), *standing.doubts(options.folder, now)]))
    return 1 if now.failed or not complete else 0


def _merge(options: argparse.Namespace) -> int:
    from weightdecay.cli.standing import cells
    from weightdecay.sweeps.merging import merge
    from weightdecay.sweeps.store import Store

    for other in options.others:
        _check_sweep(other)
    store, others = Store(options.folder), [*map(Store, options.others)]
    conflicts: list[str] = []
    repeats: list[str] = []
    for other in others:
        merged = merge(store, other)
        say(f"{cells(merged.taken)} taken over from {other.folder}.")
        conflicts += _conflicts("results", merged.conflicts, options.folder, other.folder)
        repeats += _conflicts("repeats", merged.repeats, options.folder, other.folder)
    for said in conflicts + repeats:
        say(said)
    done = store.ledger.diverged
    for one in (store, *others):
        for said in one.ledger.left_out:
            say(f"{one.folder}: {said}")
    return 0 if all(one.is_complete(done) for one in (store, *others)) and not conflicts else 1


def _conflicts(what: str, found: "Sequence[Conflict]", here: Path, there: Path) -> list[str]:
    """Name the cells that have other results or repeats elsewhere, and say what these are."""
    from weightdecay.cli.standing import cells

    if not found:
        return []
    named = [
        f"  {one.run}: test error {one.here:.4f} in {here}, {one.there:.4f} in {there}"
        for one in found[:_NAMED]
    ]
    more = [f"  and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    head = f"{cells(len(found))} came to other {what} in {there}, and keep those of {here}:"
    return [head, *named, *more]


def _export(options: argparse.Namespace) -> int:
    from weightdecay.records.tables import export
    from weightdecay.sweeps.store import Store

    _check_sweep(options.folder)
    store = Store(options.folder)
    number = count()
    runs = (run for run, _ in zip(store.read(store.refresh().results), number, strict=False))
    rows = export(runs, options.file)
    say(f"{rows} epochs of {next(number)} runs written to {options.file}.")
    for said in store.ledger.left_out:
        say(said)
    return 0 if store.is_complete() else 1


def _check_sweep(folder: Path) -> None:
    from weightdecay.records.reading import no_sweep

    if not (folder / "log").is_dir():
        raise no_sweep(folder, lacks="log")
