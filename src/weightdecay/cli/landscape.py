"""`weightdecay landscape`: which learning rate and decay to use, from finished runs."""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightdecay.cli.arguments import Commands
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo

if TYPE_CHECKING:
    from weightdecay.cli.sources import Source
    from weightdecay.records import RunConfig
    from weightdecay.results import Doubts, TransferRegret
    from weightdecay.site import Advised

_DESCRIPTION = """\
Recommend a learning rate and a weight decay from finished runs, and explain
how to change one when the other changes. The recommendation is the setting
with the lowest error that all runs together predict, not the luckiest run."""
_WIDTH, _LABEL = 96, 7


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_reader(
        commands,
        "landscape",
        brief="recommend a learning rate and a decay from finished runs",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="also write figure.png, .svg and .pdf, report.html, cells.csv and regret.csv to this "
        "folder",
    )
    parser.set_defaults(command=_landscape)


def add_reader(
    commands: Commands, name: str, *, brief: str, description: str
) -> argparse.ArgumentParser:
    """Add a command that reads runs of any origin and recommends settings; return its parser."""
    parser = commands.add_parser(
        name,
        help=brief,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_source(parser)
    add_output_options(parser)
    _add_foreign(parser)
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        type=Path,
        metavar="SOURCE",
        help="the folder of a finished or running sweep, or a CSV or Parquet file of runs",
    )
    parser.add_argument(
        "--of",
        choices=("error", "error_top5"),
        default="error",
        help="the error to minimize and report (default error); for a table of your own, use "
        "--column or --metric instead",
    )
    parser.add_argument(
        "--choose-on",
        choices=("validation", "test"),
        default="validation",
        help="the split that settings are chosen on; the paper used test (default validation)",
    )


def _add_foreign(parser: argparse.ArgumentParser) -> None:
    own = parser.add_argument_group(
        "a table of your own runs",
        "One row per run, with a learning rate, a decay and a metric. Exports of W&B and Optuna "
        "can be read as they are.",
    )
    own.add_argument(
        "--convention",
        choices=("paper", "torch", "l2", "normalized"),
        help="what the decay is: λ per step, torch's weight_decay, L2 or λ_norm (required)",
    )
    own.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="WHAT=NAME",
        help="the name of a column, as in --column lr=base_rate; may be repeated. WHAT is lr, "
        "decay, seed, state, diverged, updates, algorithm, schedule, model, task, epochs, batch, "
        "precision, run, epoch, error, validation_error, train_loss, or a common word for one of "
        "them, such as weight_decay or accuracy",
    )
    own.add_argument(
        "--metric",
        choices=("error", "accuracy", "loss"),
        help="the kind of metric, if its name does not tell",
    )
    own.add_argument(
        "--unit", choices=("fraction", "percent"), help="the unit of the metric, if unclear"
    )
    own.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME",
        help="a column that tells landscapes apart, such as the model; may be repeated",
    )


def foreign(options: argparse.Namespace) -> dict[str, Any]:
    """Return how to read a table that we did not write."""
    pairs = [text.partition("=") for text in options.column]
    if wrong := [what for what, _, name in pairs if not what or not name]:
        raise ValueError(f"`column` must be WHAT=NAME, as in lr=base_rate, got {wrong[0]!r}.")
    whats = [what for what, _, _ in pairs]
    if twice := [what for what in whats if whats.count(what) > 1]:
        raise ValueError(f"`column` must name one column for {twice[0]}, got two. Leave one out.")
    return {
        "convention": options.convention,
        "columns": {what: name for what, _, name in pairs},
        "metric": options.metric,
        "unit": options.unit,
        "labels": options.label,
    }


def gathered(options: argparse.Namespace) -> "tuple[list[Advised], Source, Doubts]":
    """Read the source, and recommend a setting for each of its landscapes."""
    from weightdecay.cli import sources
    from weightdecay.cli.summary import judged_by
    from weightdecay.results import doubts, landscapes
    from weightdecay.site import advised

    if (only_judges := judged_by(options.source)) is not None:
        raise ValueError(
            f"SOURCE must be runs that may choose a setting, got {options.source}. {only_judges}"
        )
    try:
        source = sources.read(options.source, foreign(options))
        measured = source.points or source.runs
        scapes = landscapes(measured, choose_on=options.choose_on, of=options.of)
    except ValueError as error:
        said = sources.as_options(str(error))
        if said == str(error):
            raise
        raise ValueError(said) from error
    doubtful = doubts(source.runs, source.repeats, of=options.of)
    fresh, notes = _second_stage(options, source)
    source = replace(source, notes=[*source.notes, *notes])
    return advised(scapes, doubtful, fresh), source, doubtful


def _landscape(options: argparse.Namespace) -> int:
    if options.out is not None and options.out.is_file():
        raise ValueError(f"`out` must be a folder to write to, got the file {options.out}.")
    found, source, doubtful = gathered(options)
    if options.out is not None:
        from weightdecay.cli.landscape_files import write
        from weightdecay.cli.report import command_of

        command = command_of(options, "landscape")
        written = write(found, source, doubtful, options.source, options.out, command=command)
    if options.json:
        from weightdecay.cli.landscape_json import as_json

        print_json(as_json(options.source, source, found, doubtful))
    else:
        echo("\n\n".join(_blocks(found, source, doubtful, legend=not options.quiet)))
        if options.out is not None and not options.quiet:
            echo(f"\nWrote {', '.join(path.name for path in written)} to {options.out}.")
    return 0 if source.complete else 1


def _second_stage(
    options: argparse.Namespace, source: "Source"
) -> "tuple[Mapping[RunConfig, TransferRegret], list[str]]":
    """Return the regrets that fresh seeds have judged, by landscapes' configurations, and notes.

    They are those of `weightdecay judge`, if the sweep was registered and its second stage trained.
    The notes say when that was, and what differs from it.
    """
    from weightdecay.cli import sources
    from weightdecay.studies.registration_file import FILE, SECOND, read

    folder, own = options.source, (options.of, options.choose_on) == ("error", "validation")
    if not own or not (folder / FILE).is_file() or not (folder / SECOND / "log").is_dir():
        return {}, []
    from weightdecay.studies.registered_when import when
    from weightdecay.studies.registration import registered
    from weightdecay.studies.second_stage import UNCHANGED, judge

    registration = read(folder)
    scapes = registered(registration, source.runs)
    seen = judge(registration, scapes, source.runs, sources.read(folder / SECOND).runs)
    fresh = {
        scapes[name].config: found
        for name, found in seen.regrets.items()
        if name in scapes and found.costs
    }
    return fresh, [when(registration), *(seen.changed or [UNCHANGED])] if fresh else []


def _blocks(
    found: "Sequence[Advised]", source: "Source", doubtful: "Doubts", *, legend: bool
) -> list[str]:
    from weightdecay.cli.tuned import LANDSCAPES
    from weightdecay.site import advice, budgets, doubts

    meant = textwrap.fill(LANDSCAPES, _WIDTH)
    tuned = [] if source.tuned is None else ["\n".join(source.tuned.lines()), meant]
    blocks = ["\n".join([_heading(one), *_lines(one)]) for one in found]
    carried = budgets.lines([one.landscape for one in found], doubtful.varied)
    told = [*carried, *source.notes, *doubts.lines(doubtful)]
    notes = [textwrap.fill(text, _WIDTH, break_long_words=False) for text in told]
    meaning = advice.legend(one.landscape for one in found)
    last = [textwrap.fill(meaning, _WIDTH)] if legend else []
    return [*tuned, *blocks, *(["\n".join(notes)] if notes else []), *last]


def _heading(one: "Advised") -> str:
    cells = one.landscape.cells.values()
    runs = sum(len(cell.seeds) for cell in cells)
    seeds = len({seed for cell in cells for seed in cell.seeds})
    settings = f"{len(cells)} setting{'s' * (len(cells) != 1)}"
    of_seeds = "one seed" if seeds == 1 else f"{seeds} seeds"
    return f"{one.title}: {settings}, {runs} run{'s' * (runs != 1)}, {of_seeds}"


def _lines(one: "Advised") -> list[str]:
    from weightdecay.site.advice import block

    if one.advice is None:
        return [f"  {one.why}"]
    return [
        textwrap.fill(
            text,
            width=_WIDTH,
            initial_indent=f"  {label:<{_LABEL}}",
            subsequent_indent=" " * (2 + _LABEL),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for label, text in block(one.advice)
    ]
