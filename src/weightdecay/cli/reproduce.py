"""`weightdecay reproduce`: a figure of the paper from one's own machine, and `weightdecay book`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightdecay import checks
from weightdecay.cli.arguments import Commands, whole
from weightdecay.cli.output import add_output_options, say_json
from weightdecay.cli.printing import say, say_table
from weightdecay.cli.sweep import add_engine

if TYPE_CHECKING:
    from weightdecay.records import Run, RunConfig
    from weightdecay.studies import Scale, Study
    from weightdecay.studies.findings import Findings


_DESCRIPTION = """\
Train what a figure of the paper needs, draw it, and say for each claim it
stands for whether it held. Interrupted and repeated, it goes on where it was;
figures share the runs that they have in common."""


class _Help(argparse.Action):
    """The help, which lists the figures: they are asked for what they are when it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.epilog = _figures()
        parser.print_help()
        parser.exit()


def _figures() -> str:
    """Return what each figure is, and how many runs it has on two cores."""
    from weightdecay.studies import STUDIES, scale
    from weightdecay.table import table

    tasks = ("mnist1d", "text")
    rows: list[tuple[str, ...]] = [("figure", *tasks, "")]
    for study in STUDIES.values():
        runs = (str(len(study.cells(scale(task, "small")))) for task in tasks)
        rows.append((study.name, *runs, study.title))
    return f"figures, and how many runs each has at --scale small:\n{table(rows)}"


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = commands.add_parser(
        "reproduce",
        help="draw the paper's figures from runs of your own",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("figures", nargs="+", metavar="FIGURE", help="its name, or all")
    parser.add_argument("-h", "--help", action=_Help, help="show this help message and exit")
    parser.add_argument(
        "--task",
        default="mnist1d",
        help="mnist1d, text, cifar10 or imagenet32, which have scales; any other, or "
        "MODULE:FUNCTION, for a task of your own (default mnist1d)",
    )
    parser.add_argument(
        "--scale",
        help="of a task that has scales: small, medium or paper, which has one seed and decides "
        "little (default small)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("reproduction"),
        metavar="FOLDER",
        help="where it is kept (default reproduction)",
    )
    own = parser.add_argument_group("for a task without scales")
    own.add_argument("--model", help="its name (default the task's first)")
    own.add_argument("--epochs", type=whole, metavar="N", help="of a landscape's runs (default 16)")
    own.add_argument(
        "--batch",
        type=whole,
        metavar="N",
        help="the batch size (default 64, or less where there are few examples)",
    )
    own.add_argument("--seeds", type=whole, metavar="N", help="runs per setting (default 3)")
    add_engine(parser)
    add_output_options(parser)
    parser.set_defaults(command=_reproduce)

    book = commands.add_parser(
        "book",
        help="write down what committed results say",
        description="Judge committed results again, and write every number and picture that the "
        "README and docs/reproduction.md have from them.",
    )
    book.add_argument("results", type=Path, metavar="RESULTS", help="the folder of results")
    book.add_argument("--page", type=Path, required=True, help="the page to write")
    book.add_argument("--readme", type=Path, required=True, help="the README to bring up to date")
    add_output_options(book)
    book.set_defaults(command=_book)


def _reproduce(options: argparse.Namespace) -> int:
    import weightdecay.figures  # noqa: F401 - where nothing can be drawn, that is said at once
    from weightdecay.cli.reproduce_json import as_json
    from weightdecay.cli.status import line
    from weightdecay.cli.sweep_view import trained
    from weightdecay.studies.findings import undecided
    from weightdecay.sweeps import Store

    at = _scale(options)
    studies = _asked(options.figures, at)
    cells = list({cell.identity: cell for study in studies for cell in study.cells(at)}.values())
    options.folder = options.out / at.folder
    if not options.quiet:
        for note in {undecided(study, at) for study in studies} - {""}:
            say(note, file=sys.stderr, flush=True)
        _estimate(cells, options)
    now = trained(cells, options) if cells else None
    if cells and now is None:
        return 130
    if now is not None and not options.json:
        say(line(now))
        if now.failed and not options.quiet:
            say(f"`weightdecay retry {options.folder}` tries the failed ones again.")
    store = Store(options.folder)
    runs, repeats = (store.runs(), store.repeats()) if cells else ([], [])
    figures = []
    for study in studies:
        found, page, drawn = _judge(study, at, runs, repeats, options.folder / study.name)
        figures.append(as_json(found, page, drawn=drawn))
        if not options.json:
            _show(found, page, drawn=drawn)
    if options.json:
        say_json({"folder": options.folder, "task": at.task, "scale": at.name, "figures": figures})
    return 1 if now is not None and now.failed else 0


def _scale(options: argparse.Namespace) -> "Scale":
    """Return the scale of a task that has scales, or one around the sizes of any other task."""
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
                f"{options.scale!r}. `epochs`, `batch` and `seeds` say how large the figure is."
            )
        return own_scale(options.task, **chosen)
    if chosen:
        raise ValueError(
            f"`{next(iter(chosen))}` must be left out for {options.task}, whose scales have their "
            "own. `weightdecay sweep` trains any other grid."
        )
    return scale(options.task, options.scale or "small")


def _asked(names: Sequence[str], at: "Scale") -> "list[Study]":
    """Return the studies of these names; all of them are those that the scale has enough for."""
    from weightdecay.studies import STUDIES, studies_at

    for name in names:
        if name not in (*STUDIES, "all"):
            said = f"A figure must be one of {', '.join(STUDIES)}, or all, got {name!r}."
            raise ValueError(f"{said} {checks.did_you_mean(name, STUDIES)}".rstrip())
    return studies_at(at) if "all" in names else [STUDIES[name] for name in dict.fromkeys(names)]


def _estimate(cells: "Sequence[RunConfig]", options: argparse.Namespace) -> None:
    """Say how long it will take, before it starts, from a short trial."""
    from weightdecay.progress import duration
    from weightdecay.sweeps import Store
    from weightdecay.sweeps.estimate import seconds

    done = Store(options.folder).refresh().finished
    left = [config for config in cells if config.identity not in done]
    if not left:
        return
    say(f"{len(left)} of {len(cells)} runs to train.", file=sys.stderr, flush=True)
    workers = 1 if options.on == "here" else options.workers
    # What another machine takes, a trial on this one does not say.
    found = None if options.on == "ray" else seconds(left, workers=workers, device=options.device)
    told = "not known before the first are done" if found is None else duration(found)
    say(f"Estimated time: {told}", file=sys.stderr, flush=True)


def _judge(
    study: "Study", at: "Scale", runs: "Sequence[Run]", repeats: "Sequence[Run]", folder: Path
) -> "tuple[Findings, Path, bool]":
    """Judge a figure, write its files, and return its report and whether it could be drawn."""
    from weightdecay.studies.findings import draw, find, tell

    found, seen = find(study, at, runs, repeats)
    drawn = bool(draw(found, seen, folder))
    return found, tell(found, folder, drawn=drawn), drawn


def _show(found: "Findings", page: Path, *, drawn: bool) -> None:
    from weightdecay.site import doubts
    from weightdecay.studies.findings import undrawn
    from weightdecay.studies.formats import BRIEF, because, table_of

    say(f"\n{found.study.title}: {found.scale.task}, {found.scale.name}\n")
    if found.numbers:
        say_table(table_of(found.numbers, BRIEF))
        say("")
    for line in doubts.lines(found.doubts):
        say(line)
    for verdict in found.verdicts:
        say(f"{verdict.outcome.upper():12} {verdict.claim}\n{'':12} {because(verdict)}")
    if drawn:
        told = f"The picture is {page.with_name('figure.png')}"
    else:
        cause = f"`weightdecay status {page.parents[1]} --failures` says what failed"
        told = f"{undrawn(found)}\n{cause}"
    say(f"\n{told}; the report to open in a browser is")
    say(page.resolve().as_uri())


def _book(options: argparse.Namespace) -> int:
    from weightdecay.studies.docs_writer import write

    written = write(options.results, page=options.page, readme=options.readme)
    if options.json:
        say_json({"written": list(written)})
    elif not options.quiet:
        for path in written:
            say(f"{path} is up to date.")
    return 0
