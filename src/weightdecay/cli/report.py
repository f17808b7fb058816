"""`weightdecay report`: one interactive page about finished runs, to look at and to send."""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay import files
from weightdecay.cli.arguments import Commands
from weightdecay.cli.landscape import Advised, add_reader, gathered
from weightdecay.cli.output import print_json
from weightdecay.cli.printing import echo

if TYPE_CHECKING:
    from weightdecay.cli.sources import Source
    from weightdecay.results import Doubts, Landscape, Move, Outlier, Recommendation

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
    text = page(found, source, doubtful, path=options.source, command=_command(options))
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
    found: Sequence[Advised], source: "Source", doubtful: "Doubts", *, path: Path, command: str
) -> str:
    """Return the page about landscapes and their recommendations."""
    from weightdecay.results import by_split, cell_curves, cell_runs
    from weightdecay.site import PageLandscape, advice, budgets, doubts, interactive

    scapes = [one.landscape for one in found]
    shown: list[PageLandscape] = []
    for one, runs in zip(found, cell_runs(scapes, source.runs), strict=True):
        scape = one.landscape
        splits = by_split(scape, runs)
        curves = {place: cell_curves(own, splits, scape.of) for place, own in runs.items()}
        shown.append(
            PageLandscape(
                title=one.title,
                advice=one.advice,
                why="" if one.advice is not None else one.why,
                splits=splits,
                curves={place: own for place, own in curves.items() if own},
                moves=() if one.advice is None else _moves(one.advice),
                outliers=_outliers(scape, doubtful),
            )
        )
    carried = budgets.lines(scapes, doubtful.varied)
    notes = [*carried, *source.notes, *doubts.lines(doubtful), advice.legend(scapes)]
    title = f"Learning rate and weight decay: {path.name}"
    return interactive(title, shown, command=command, notes=notes)


def _moves(advice: "Recommendation") -> "Sequence[Move]":
    """Return what each rule does at other learning rates, judged by fresh seeds if there are."""
    from weightdecay.results import measure_moves

    moves = measure_moves(advice.landscape, advice.lr.value)
    return [move.judged(advice.knobs.regret) for move in moves]


def _outliers(scape: "Landscape", doubtful: "Doubts") -> "Sequence[Outlier]":
    """Return the cells that stand out. Those of runs are among the doubts already."""
    from weightdecay.results import outliers

    if scape.run_config is None:
        return outliers(scape)
    own = (scape.run_config, scape.way)
    return [one for other, one in doubtful.outliers if (other.run_config, other.way) == own]


def _command(options: argparse.Namespace) -> str:
    """Return the command that writes the page again."""
    words = ["weightdecay", "report", str(options.source), "--out", str(options.out)]
    if options.of != "error":
        words += ["--of", options.of]
    if options.choose_on != "validation":
        words += ["--choose-on", options.choose_on]
    for name in ("convention", "metric", "unit"):
        if getattr(options, name) is not None:
            words += [f"--{name}", getattr(options, name)]
    for name in ("column", "label"):
        for value in getattr(options, name):
            words += [f"--{name}", value]
    return shlex.join(words)
