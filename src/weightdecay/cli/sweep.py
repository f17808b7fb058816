"""`weightdecay sweep` and what belongs to it: retry, status, watch, merge and export."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay import checks
from weightdecay.cli.arguments import Commands, whole
from weightdecay.cli.output import add_output_options, say_json
from weightdecay.cli.printing import say, say_table

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
    export.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a name ending in .parquet or .csv; - is CSV to stdout",
    )
    for parser in (sweep, retry, status, watch, merge, export):
        add_output_options(parser)


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
    from weightdecay.cli.sweep_view import check_folder, engine_of, follow
    from weightdecay.sweeps.grids import read_study

    configs = read_study(options.study)
    if not options.dry_run:
        return follow(configs, options, retry=False)
    check_folder(options.folder)
    return dry_run(configs, options, None if options.on == "ray" else engine_of(options))


def _retry(options: argparse.Namespace) -> int:
    from weightdecay.cli import status as view
    from weightdecay.cli.sweep_view import follow
    from weightdecay.records import RunConfig
    from weightdecay.sweeps.store import Store

    store = Store(options.folder)
    plan = store.plan()
    done = store.refresh().finished
    if all(run in done for run in plan):
        if options.json:
            say_json(view.values(options.folder)[0])
        else:
            say("Every cell is done: none has failed, and none is left.")
        return 0
    configs = [RunConfig.from_dict(values) for values in plan.values()]
    return follow(configs, options, retry=True)


def _status(options: argparse.Namespace) -> int:
    return _show_status(options, every_failure=options.failures, every_result=options.check)


def _show_status(
    options: argparse.Namespace, *, every_failure: bool = False, every_result: bool = False
) -> int:
    from weightdecay.cli import status as view

    if options.json:
        values, code = view.values(options.folder, every_result=every_result)
        say_json(values)
        return code
    now, told, complete = view.lines(
        options.folder, every_failure=every_failure, advice=not options.quiet
    )
    best = view.Best(options.folder).summary(now, every_result=every_result)
    doubts = view.doubts(options.folder, now, every_result=every_result)
    say("\n".join(told))
    if best is not None:
        say_table(best.rows)
    for text in [*(best.notes if best else []), *doubts]:
        say(text)
    return 1 if now.failed or not complete else 0


def _watch(options: argparse.Namespace) -> int:
    from weightdecay.cli import status as view
    from weightdecay.cli.progress import Bars
    from weightdecay.sweeps.progress_lines import sweep_line
    from weightdecay.table import table

    checks.number("every", options.every, above=0)
    best = view.Best(options.folder)
    try:
        with Bars(quiet=options.quiet) as bars:
            while True:
                now, told, _ = view.lines(options.folder)
                if not now.left:
                    break
                others = told[1:]
                if (found := best.summary(now)) is not None:
                    others += [*table(found.rows).splitlines(), *found.notes]
                bars.draw([sweep_line(now), *((None, line) for line in others)])
                time.sleep(options.every)
    except KeyboardInterrupt:
        say("No longer watched; what runs goes on.", file=sys.stderr)
        return 130
    return _show_status(options)


def _merge(options: argparse.Namespace) -> int:
    from weightdecay.sweeps.merging import merge
    from weightdecay.sweeps.progress_lines import cells
    from weightdecay.sweeps.store import Store

    for other in options.others:
        _check_sweep(other)
    store, others = Store(options.folder), [*map(Store, options.others)]
    merged = [(other.folder, merge(store, other)) for other in others]
    left_out = [f"{one.folder}: {said}" for one in (store, *others) for said in one.ledger.left_out]
    done = store.ledger.finished
    complete = all(one.is_complete(done) for one in (store, *others))
    if options.json:
        of_others = [{"folder": folder, **asdict(found)} for folder, found in merged]
        say_json({"merged": of_others, "left_out": left_out, "complete": complete})
    else:
        for folder, found in merged:
            say(f"{cells(found.taken)} taken over from {folder}.")
        for what in ("conflicts", "repeats"):
            for folder, found in merged:
                for said in _conflicts(what, getattr(found, what), options.folder, folder):
                    say(said)
        for said in left_out:
            say(said)
    return 0 if complete and not any(found.conflicts for _, found in merged) else 1


def _conflicts(what: str, found: "Sequence[Conflict]", here: Path, there: Path) -> list[str]:
    """Name the cells that have other results or repeats elsewhere, and say what these are."""
    from weightdecay.sweeps.progress_lines import cells

    if not found:
        return []
    named = [
        f"  {one.run}: test error {one.here:.4f} in {here}, {one.there:.4f} in {there}"
        for one in found[:_NAMED]
    ]
    more = [f"  and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    kind = {"conflicts": "results", "repeats": "repeats"}[what]
    head = f"{cells(len(found))} came to other {kind} in {there}, and keep those of {here}:"
    return [head, *named, *more]


def _export(options: argparse.Namespace) -> int:
    from weightdecay.cli.printing import csv_stream
    from weightdecay.records.tables import export, write_csv
    from weightdecay.sweeps.store import Store

    _check_sweep(options.folder)
    store = Store(options.folder)
    number = count()
    runs = (run for run, _ in zip(store.read(store.refresh().results), number, strict=False))
    to_stdout = options.file == Path("-")
    if to_stdout and options.json:
        raise ValueError("`json` must be left out where the table goes to stdout.")
    rows = write_csv(runs, csv_stream()) if to_stdout else export(runs, options.file)
    left_out, complete = store.ledger.left_out, store.is_complete()
    counted = {"file": options.file, "epochs": rows, "runs": next(number)}
    if options.json:
        say_json({**counted, "left_out": left_out, "complete": complete})
        return 0 if complete else 1
    out = sys.stderr if to_stdout else sys.stdout
    if not options.quiet:
        say("{epochs} epochs of {runs} runs written to {file}.".format(**counted), file=out)
    for said in left_out:
        say(said, file=out)
    return 0 if complete else 1


def _check_sweep(folder: Path) -> None:
    from weightdecay.records.readers import no_sweep

    if not (folder / "log").is_dir():
        raise no_sweep(folder, lacks="log")
