"""`weightdecay report`: one interactive page about finished runs, to look at and to send."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay import files
from weightdecay.cli.arguments import Commands
from weightdecay.cli.landscape import add_reader, gathered
from weightdecay.cli.output import print_json
from weightdecay.cli.printing import echo

if TYPE_CHECKING:
    from weightdecay.cli.sources import Source
    from weightdecay.live import Analysis
    from weightdecay.results import Doubts
    from weightdecay.site import Advised
    from weightdecay.studies.so_far import SoFar

_LOOKED = "It shows where the tuner has looked with runs of this length."
_DESCRIPTION = """\
Write one HTML file about finished runs: which learning rate and decay to use,
and the landscapes behind that, with every cell's numbers and learning curve.
The file needs no network and no server. Open it in a browser, or send it."""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_reader(
        commands,
        "report",
        brief="write an interactive page about finished runs",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        default=Path("report.html"),
        help="the file to write (default report.html)",
    )
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    if options.out.is_dir():
        raise ValueError(
            f"`out` must be a file to write, got the folder {options.out}. Name a file in it: "
            f"{options.out / 'report.html'}."
        )
    found, source, doubtful = gathered(options)
    text = page(found, source, doubtful, path=options.source, command=command_of(options, "report"))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with files.written(options.out) as file:
        # A file name may hold bytes that are no text, which UTF-8 cannot represent.
        file.write(text.encode("utf-8", "xmlcharrefreplace"))
    size = options.out.stat().st_size
    if options.json:
        print_json({"file": options.out, "bytes": size, "landscapes": len(found)})
    elif not options.quiet:
        echo(f"Wrote {options.out} ({size / 1e6:.1f} MB). Open it in a browser.")
    return 0 if source.complete else 1


def page(
    found: "Sequence[Advised]", source: "Source", doubtful: "Doubts", *, path: Path, command: str
) -> str:
    """Return the page about landscapes and their recommendations, with the claims of a figure."""
    from weightdecay.site import interactive
    from weightdecay.studies.so_far import SoFar

    told = analysed(found, source, doubtful, SoFar(path))
    return interactive(
        f"Learning rate and weight decay: {path.name}",
        told.pages,
        command=command,
        top=told.top,
        notes=told.notes,
        claims=told.claims,
        to_judge=told.to_judge,
    )


def analysed(
    found: "Sequence[Advised]",
    source: "Source",
    doubtful: "Doubts",
    so_far: "SoFar",
) -> "Analysis":
    """Return all that a page shows of a source. The landscapes of a tuner recommend nothing."""
    from weightdecay.live import Analysis
    from weightdecay.site import page_landscapes

    pages, judged = page_landscapes(found, source.runs, doubtful), so_far.claims()
    if source.tuned is not None:
        pages = [replace(one, advice=None, why=_LOOKED, moves=(), answered=False) for one in pages]
    return Analysis(
        pages,
        notes_of(found, source, doubtful),
        claims=() if judged is None else judged.claims,
        to_judge="" if judged is None else judged.note,
        top=[] if source.tuned is None else [source.tuned.paragraph()],
    )


def notes_of(found: "Sequence[Advised]", source: "Source", doubtful: "Doubts") -> list[str]:
    """Return the small print of a page."""
    from weightdecay.site import advice, budgets, doubts

    scapes = [one.landscape for one in found]
    carried = budgets.lines(scapes, doubtful.varied)
    return [*carried, *source.notes, *doubts.lines(doubtful), advice.legend(scapes)]


def command_of(options: argparse.Namespace, name: str) -> str:
    """Return the command that writes the page again."""
    words = ["weightdecay", name, str(options.source)]
    if hasattr(options, "out"):
        words += ["--out", str(options.out)]
    if options.of != "error":
        words += ["--of", options.of]
    if options.choose_on != "validation":
        words += ["--choose-on", options.choose_on]
    for option in ("convention", "metric", "unit"):
        if getattr(options, option) is not None:
            words += [f"--{option}", getattr(options, option)]
    for option in ("column", "label"):
        for value in getattr(options, option):
            words += [f"--{option}", value]
    return shlex.join(words)
