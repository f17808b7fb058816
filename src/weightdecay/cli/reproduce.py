"""`weightdecay reproduce`: a figure of the paper from one's own machine, and `weightdecay book`."""

import argparse
from pathlib import Path

from weightdecay.cli.reading import Commands
from weightdecay.cli.sweep import add_engine


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = commands.add_parser(
        "reproduce",
        help="draw the paper's figures from runs of your own",
        description="Train what a figure of the paper needs, draw it, and say for each claim it "
        "stands for whether it held. Interrupted and repeated, it goes on where it was; figures "
        "share the runs that they have in common.",
        epilog="Figures: figure-1 to figure-4, supplement-1 to supplement-6, conjecture (AMSGrad "
        "and AdaGrad), exponents (epochs, data, batch), or all.",
    )
    parser.add_argument("figures", nargs="+", metavar="FIGURE", help="its name, or all")
    parser.add_argument("--task", default="mnist1d", help="mnist1d, text, cifar10 or imagenet32")
    parser.add_argument("--scale", default="small", help="small, medium or paper (default small)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("reproduction"),
        metavar="FOLDER",
        help="where it is kept (default reproduction)",
    )
    add_engine(parser)
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
    book.set_defaults(command=_book)


def _reproduce(options: argparse.Namespace) -> int:
    from weightdecay.cli.sweeping import follow
    from weightdecay.studies import STUDIES, scale
    from weightdecay.studies.findings import draw, find, tell
    from weightdecay.sweeps import Store

    at = scale(options.task, options.scale)
    names = list(STUDIES) if "all" in options.figures else options.figures
    for name in names:
        if name not in STUDIES:
            raise ValueError(f"A figure must be one of {', '.join(STUDIES)}, or all, got {name!r}.")
    cells = list({c.identity: c for name in names for c in STUDIES[name].cells(at)}.values())
    options.folder = options.out / at.folder
    if cells:
        _estimate(cells, options)
        status = follow(cells, options, retry=False, tell_best=False)
        if status not in (0, 1):
            return status
    runs = Store(options.folder).runs() if cells else []
    for name in names:
        if "all" in options.figures and not STUDIES[name].cells(at) and name != "supplement-1":
            continue
        found, seen = find(STUDIES[name], at, runs)
        place = options.folder / name
        draw(found, seen, place)
        page = tell(found, place)
        _show(found, page)
    return 0


def _show(found: "object", page: Path) -> None:
    from weightdecay.studies.findings import Findings
    from weightdecay.table import table

    assert isinstance(found, Findings)
    print(f"\n{found.study.title}: {found.scale.task}, {found.scale.name}\n")
    if found.table:
        print(table([row[:5] for row in found.table]) + "\n")
    for ruling in found.rulings:
        print(f"{ruling.outcome.upper():12} {ruling.claim}\n{'':12} {ruling.because}")
    print(f"\nThe picture is {page.with_name('figure.png')}; the report to open in a browser is")
    print(page.resolve().as_uri())


def _estimate(cells: "list", options: argparse.Namespace) -> None:  # type: ignore[type-arg]
    """Say how long it will take, before it starts, from what was measured or a short trial."""
    from weightdecay.cli.progress import duration
    from weightdecay.studies.estimate import seconds
    from weightdecay.sweeps import Store

    done = Store(options.folder).refresh().diverged
    left = [config for config in cells if config.identity not in done]
    if left:
        print(f"{len(left)} of {len(cells)} runs to train.", flush=True)
        found = seconds(left, workers=options.workers, device=options.device)
        told = "not known before the first are done" if found is None else duration(found)
        print(f"Estimated time: {told}", flush=True)


def _book(options: argparse.Namespace) -> int:
    from weightdecay.studies.book import write

    for path in write(options.results, page=options.page, readme=options.readme):
        print(f"{path} is up to date.")
    return 0
