"""`weightdecay sweep`, and the commands for its folder: retry, status, watch, merge, export."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay import checks
from weightdecay.cli.arguments import Commands, whole
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo, print_table

if TYPE_CHECKING:
    from weightdecay.records import Run
    from weightdecay.sweeps.merging import Conflict

_LOOP = "a loop of your own trains these trials. Start it again to try those that failed"
# This many conflicts are listed, the others are counted.
_LISTED = 20


def add(commands: Commands) -> None:
    """Add the commands."""
    sweep = commands.add_parser(
        "sweep",
        help="train all configurations of a study, or continue",
        description="Train the configurations of a study that are not done yet. You can interrupt "
        "it and run it again, on one machine or several that share the folder. Finished cells are "
        "not trained again, and unfinished ones continue from their last checkpoint.",
    )
    sweep.add_argument("study", type=Path, metavar="STUDY", help="a TOML file: see docs/sweeps.md")
    sweep.add_argument(
        "--out",
        dest="folder",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where to keep the sweep",
    )
    sweep.add_argument(
        "--dry-run",
        action="store_true",
        help="show what there is to train and the estimated time, and train nothing",
    )
    add_engine(sweep)
    sweep.set_defaults(command=_sweep)

    retry = _of_folder(commands, "retry", "train failed and unfinished cells", _retry)
    add_engine(retry)
    status = _of_folder(
        commands,
        "status",
        "show a sweep's status, and the best settings so far",
        _status,
        "The exit status is 1 if cells have failed, or if a damaged result left a cell without "
        "one.",
    )
    status.add_argument("--failures", action="store_true", help="list every failed cell")
    status.add_argument(
        "--check", action="store_true", help="compare results even if there are very many"
    )
    watch = _of_folder(commands, "watch", "show a sweep's status until it ends", _watch)
    watch.add_argument(
        "--every", type=float, default=1.0, metavar="S", help="seconds between updates (default 1)"
    )
    merge = _of_folder(commands, "merge", "copy the results of other sweeps into a sweep", _merge)
    merge.add_argument(
        "others", type=Path, nargs="+", metavar="OTHER", help="another sweep's folder"
    )
    export = _of_folder(commands, "export", "write all records to a table", _export)
    export.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a file ending in .parquet or .csv; - writes CSV to stdout",
    )
    export.add_argument(
        "--seconds",
        action="store_true",
        help="also write how long each run trained, which differs from sweep to sweep",
    )
    for parser in (sweep, retry, status, watch, merge, export):
        add_output_options(parser)


def _of_folder(
    commands: Commands, name: str, does: str, command: object, more: str = ""
) -> argparse.ArgumentParser:
    description = f"{does[0].upper()}{does[1:]}. {more}".rstrip()
    parser = commands.add_parser(name, help=does, description=description)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the sweep's folder")
    parser.set_defaults(command=command)
    return parser


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options for where to train."""
    where = parser.add_argument_group("where to train")
    where.add_argument(
        "--on",
        choices=("local", "ray", "here"),
        default="local",
        help="processes on this machine, a Ray cluster, or this process (default local)",
    )
    where.add_argument(
        "--workers", type=whole, metavar="N", help="workers (default one per core, or per GPU)"
    )
    where.add_argument("--device", help="a torch device (default a GPU, if there is one)")
    where.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="kill a worker that sends no message for S seconds (default wait, with a warning)",
    )
    where.add_argument("--address", help="a Ray cluster's address, or auto (default a new one)")


def _sweep(options: argparse.Namespace) -> int:
    from weightdecay.cli import torchs_decay
    from weightdecay.cli.forecast import dry_run
    from weightdecay.cli.sweep_view import check_folder, engine_of, sweep_and_print
    from weightdecay.sweeps.grids import read_study

    configs = read_study(options.study)
    if not options.quiet:
        torchs_decay.warn(configs)
    if not options.dry_run:
        return sweep_and_print(configs, options, retry=False)
    check_folder(options.folder)
    return dry_run(configs, options, None if options.on == "ray" else engine_of(options))


def _retry(options: argparse.Namespace) -> int:
    from weightdecay.cli import status as view
    from weightdecay.cli.sweep_view import sweep_and_print
    from weightdecay.records import RunConfig
    from weightdecay.sweeps.store import Store

    store = Store(options.folder)
    plan = store.plan()
    done = store.refresh().finished
    if all(run in done for run in plan):
        if options.json:
            print_json(view.values(options.folder)[0])
        else:
            planned = (options.folder / "plan.jsonl").exists()
            echo(f"Nothing to retry: {'every cell is done' if planned else _LOOP}.")
        return 0
    configs = [RunConfig.from_dict(values) for values in plan.values()]
    return sweep_and_print(configs, options, retry=True)


def _status(options: argparse.Namespace) -> int:
    return _show_status(options, every_failure=options.failures, every_result=options.check)


def _show_status(
    options: argparse.Namespace, *, every_failure: bool = False, every_result: bool = False
) -> int:
    from weightdecay.cli import status as view
    from weightdecay.cli.tuned import tuned

    if options.json:
        values, code = view.values(options.folder, every_result=every_result)
        print_json(values)
        return code
    now, text, complete = view.lines(
        options.folder, every_failure=every_failure, advice=not options.quiet
    )
    best = view.Best(options.folder).summary(now, every_result=every_result)
    doubts = view.doubts(options.folder, now, every_result=every_result)
    tuner = tuned(options.folder)
    echo("\n".join([*text, *(tuner.lines() if tuner else [])]))
    if best is not None and best.rows:
        print_table(best.rows)
    for note in [*(best.notes if best else []), *doubts]:
        echo(note)
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
                now, text, _ = view.lines(options.folder)
                if not now.left:
                    break
                others = text[1:]
                if bars.are_drawn and (found := best.summary(now)) is not None:
                    others += [*table(found.rows).splitlines(), *found.notes]
                bars.draw([sweep_line(now), *((None, line) for line in others)])
                time.sleep(options.every)
    except KeyboardInterrupt:
        echo("Stopped watching. The sweep itself is not affected.", file=sys.stderr)
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
    left_out = [f"{one.folder}: {line}" for one in (store, *others) for line in one.ledger.left_out]
    done = store.ledger.finished
    complete = all(one.is_complete(done) for one in (store, *others))
    if options.json:
        of_others = [{"folder": folder, **asdict(found)} for folder, found in merged]
        print_json({"merged": of_others, "left_out": left_out, "complete": complete})
    else:
        for folder, found in merged:
            echo(f"Copied {cells(found.taken)} from {folder}.")
        for what in ("conflicts", "repeats"):
            for folder, found in merged:
                for line in _conflicts(what, getattr(found, what), options.folder, folder):
                    echo(line)
        for line in left_out:
            echo(line)
    return 0 if complete and not any(found.conflicts for _, found in merged) else 1


def _conflicts(what: str, found: "Sequence[Conflict]", here: Path, there: Path) -> list[str]:
    """Return lines that list the cells with different results or repeats in another folder."""
    from weightdecay.sweeps.progress_lines import cells

    if not found:
        return []
    listed = [
        f"  {one.run}: test error {one.here:.4f} in {here}, {one.there:.4f} in {there}"
        for one in found[:_LISTED]
    ]
    more = [f"  and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    kind = {"conflicts": "results", "repeats": "repeats"}[what]
    head = f"{cells(len(found))} with different {kind} in {there}; those of {here} are kept:"
    return [head, *listed, *more]


def _export(options: argparse.Namespace) -> int:
    from weightdecay.cli.printing import csv_stream
    from weightdecay.records.tables import export, write_csv
    from weightdecay.studies.registration_file import only_carry
    from weightdecay.sweeps.store import Store

    _check_sweep(options.folder)
    store = Store(options.folder)
    number = count()
    carriers = only_carry(options.folder)
    runs = (
        _without_bits(run) if run.config.seed in carriers else run
        for run, _ in zip(store.read(store.refresh().results), number, strict=False)
    )
    to_stdout = options.file == Path("-")
    if to_stdout and options.json:
        raise ValueError("`json` must be left out if the table goes to stdout.")
    rows = (
        write_csv(runs, csv_stream(), seconds=options.seconds)
        if to_stdout
        else export(runs, options.file, seconds=options.seconds)
    )
    left_out, complete = store.ledger.left_out, store.is_complete()
    counts = {"file": options.file, "epochs": rows, "runs": next(number)}
    if options.json:
        print_json({**counts, "left_out": left_out, "complete": complete})
        return 0 if complete else 1
    out = sys.stderr if to_stdout else sys.stdout
    if not options.quiet:
        where = "stdout" if to_stdout else options.file
        echo(f"Wrote {rows} epochs of {counts['runs']} runs to {where}.", file=out)
    for line in left_out:
        echo(line, file=out)
    return 0 if complete else 1


def _without_bits(run: "Run") -> "Run":
    """Return a run without the test examples that it missed, which only comparisons need."""
    return replace(run, records=tuple(replace(one, missed=None) for one in run.records))


def _check_sweep(folder: Path) -> None:
    from weightdecay.records.readers import not_a_sweep

    if not (folder / "log").is_dir():
        raise not_a_sweep(folder, lacks="log")
