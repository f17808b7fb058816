"""`weightdecay reproduce`: the paper's figures from runs of your own, and `weightdecay book`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightdecay import checks
from weightdecay.cli.arguments import Commands, whole
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo, print_table
from weightdecay.cli.sweep import add_engine

if TYPE_CHECKING:
    from weightdecay.cli.stages import Trained
    from weightdecay.studies import Scale, Study
    from weightdecay.studies.findings import Findings


_DESCRIPTION = """\
Train the runs of a figure of the paper, draw it, and test each of the paper's
claims about it. Where the scale has seeds that judge, the grid's runs choose
settings, these are registered, and other seeds judge them. An interrupted
command continues when it is run again. Figures share the runs that they have in
common."""


class _Help(argparse.Action):
    """Builds the figure list only for --help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.epilog = _figures()
        parser.print_help()
        parser.exit()


def _figures() -> str:
    """Return a list of the figures, and how many runs each has."""
    from weightdecay.studies import STUDIES, scale, studies_at
    from weightdecay.table import table

    tasks = ("mnist1d", "text")
    scales = [scale(task, "small") for task in tasks]
    possible = [studies_at(at) for at in scales]
    rows: list[tuple[str, ...]] = [("figure", *tasks, "")]
    for study in STUDIES.values():
        runs = (
            str(len(study.cells(at))) if study in there else "–"
            for at, there in zip(scales, possible, strict=True)
        )
        rows.append((study.name, *runs, study.title))
    return f"figures, and the runs of the first stage of each at --scale small:\n{table(rows)}"


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = commands.add_parser(
        "reproduce",
        help="reproduce the paper's figures with runs of your own",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("figures", nargs="+", metavar="FIGURE", help="a figure's name, or all")
    parser.add_argument("-h", "--help", action=_Help, help="show this help message and exit")
    parser.add_argument(
        "--task",
        default="mnist1d",
        help="mnist1d, text, cifar10, cifar100, fashion-mnist or imagenet32; or MODULE:FUNCTION "
        "for a task of your own (default mnist1d)",
    )
    parser.add_argument(
        "--scale",
        help="small, medium, or paper, which has one seed; for a task with scales (default small)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("reproduction"),
        metavar="FOLDER",
        help="output folder (default reproduction)",
    )
    own = parser.add_argument_group("for a task without scales")
    own.add_argument("--model", help="a model of the task (default its first)")
    own.add_argument("--epochs", type=whole, metavar="N", help="epochs per run (default 16)")
    own.add_argument(
        "--batch",
        type=whole,
        metavar="N",
        help="batch size (default 64, or less for a small data set)",
    )
    own.add_argument("--seeds", type=whole, metavar="N", help="runs per setting (default 3)")
    add_engine(parser)
    add_output_options(parser)
    parser.set_defaults(command=_reproduce)

    book = commands.add_parser(
        "book",
        help="update README and docs from committed results",
        description="Judge the committed results again, and update every number and picture in "
        "the README and docs/reproduction.md that comes from them.",
    )
    book.add_argument("results", type=Path, metavar="RESULTS", help="the folder of results")
    book.add_argument("--page", type=Path, required=True, help="the page to write")
    book.add_argument("--readme", type=Path, required=True, help="the README to update")
    book.add_argument(
        "--site",
        type=Path,
        metavar="FOLDER",
        help="also write an interactive page for every figure and task, and their index, to this "
        "folder",
    )
    add_output_options(book)
    book.set_defaults(command=_book)


def _reproduce(options: argparse.Namespace) -> int:
    import weightdecay.figures  # noqa: F401 - fails at once if nothing can be drawn
    from weightdecay.cli.reproduce_json import as_json
    from weightdecay.cli.stages import train
    from weightdecay.studies.findings import undecided
    from weightdecay.studies.index import write_index

    at = _scale(options)
    studies = _asked(options.figures, at)
    options.folder = options.out / at.folder
    if not options.quiet:
        for note in {undecided(study, at) for study in studies} - {""}:
            echo(note, file=sys.stderr, flush=True)
    trained = train(studies, at, options)
    if trained is None:
        return 130
    figures = []
    for study in studies:
        found, page, drawn = _judge(study, at, trained, options.folder / study.name)
        figures.append(as_json(found, page, drawn=drawn))
        if not options.json:
            _show(found, page, drawn=drawn)
    index = write_index(options.out)
    if options.json:
        print_json(
            {"folder": options.folder, "task": at.task, "scale": at.name, "figures": figures}
        )
    else:
        echo(f"All figures and tasks: {index.resolve().as_uri()}")
    return 1 if trained.failed else 0


def _scale(options: argparse.Namespace) -> "Scale":
    """Return the task's scale; for a task without scales, one that suits its size."""
    from weightdecay.studies import own_scale, scale, scales

    chosen = {
        name: value
        for name in ("model", "epochs", "batch", "seeds")
        if (value := getattr(options, name)) is not None
    }
    if options.task not in scales.tasks():
        if options.scale is not None:
            raise ValueError(
                f"`scale` must be left out for {options.task}, which has none, got "
                f"{options.scale!r}. `epochs`, `batch` and `seeds` set the size of the figure."
            )
        return own_scale(options.task, **chosen)
    if chosen:
        raise ValueError(
            f"`{next(iter(chosen))}` must be left out for {options.task}: its scales set it. "
            "`weightdecay sweep` trains any other grid."
        )
    return scale(options.task, options.scale or "small")


def _asked(names: Sequence[str], at: "Scale") -> "list[Study]":
    """Return the studies with these names. `all` means those that the scale is large enough for."""
    from weightdecay.studies import STUDIES, studies_at

    for name in names:
        if name not in (*STUDIES, "all"):
            message = f"A figure must be one of {', '.join(STUDIES)}, or all, got {name!r}."
            raise ValueError(f"{message} {checks.did_you_mean(name, STUDIES)}".rstrip())
    return studies_at(at) if "all" in names else [STUDIES[name] for name in dict.fromkeys(names)]


def _judge(
    study: "Study", at: "Scale", trained: "Trained", folder: Path
) -> "tuple[Findings, Path, bool]":
    """Judge a figure and write its files. Return the report, and whether it could be drawn."""
    from weightdecay.studies.findings import draw, find
    from weightdecay.studies.page import tell

    found, seen = find(
        study,
        at,
        trained.runs,
        trained.repeats,
        registration=trained.registered.get(study.name),
        second=trained.second,
        costs=trained.costs,
    )
    drawn = bool(draw(found, seen, folder))
    return found, tell(found, seen, folder, drawn=drawn), drawn


def _show(found: "Findings", page: Path, *, drawn: bool) -> None:
    from weightdecay.site import doubts
    from weightdecay.studies.costs import cost_of
    from weightdecay.studies.findings import further_tables, of_second_stage, undrawn
    from weightdecay.studies.formats import because
    from weightdecay.studies.tables import BRIEF, table_of

    echo(f"\n{found.study.title}: {found.scale.task}, {found.scale.name}\n")
    if found.numbers:
        print_table(table_of(found.numbers, BRIEF))
        echo("")
    for line in doubts.lines(found.doubts):
        echo(line)
    for title, rows in further_tables(found):
        echo(f"{title}:")
        print_table(rows)
        echo("")
    for line in of_second_stage(found):
        echo(line)
    for verdict in found.verdicts:
        echo(f"{verdict.outcome.upper():12} {verdict.claim}\n{'':12} {because(verdict)}")
    if found.runs:
        echo(f"\n{cost_of(found)}")
    if drawn:
        echo(f"\nPicture: {page.with_name('figure.png')}")
    else:
        echo(f"\n{undrawn(found)}")
        echo(f"`weightdecay status {page.parents[1]} --failures` shows what failed.")
    echo(f"Report: {page.resolve().as_uri()}")


def _book(options: argparse.Namespace) -> int:
    from weightdecay.studies.docs_writer import write

    written = write(options.results, page=options.page, readme=options.readme, site=options.site)
    if options.json:
        print_json({"written": list(written)})
    elif not options.quiet:
        for path in written:
            echo(f"Wrote {path}.")
    return 0
