"""`weightdecay register`: writes down what is compared before the seeds that judge are trained."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay.cli.arguments import Commands, whole
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo

if TYPE_CHECKING:
    from weightdecay.studies.registration import Registration

_REGISTER = """\
Choose a setting for each landscape of a finished sweep, and write down how
other seeds will judge these settings, before they are trained: settings,
grids, seeds, comparisons, rules and margins, with their hash, date and
commit, and a hash of the runs seen so far."""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "register",
        help="write down what will be compared, before the seeds that judge are trained",
        description=_REGISTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of a sweep")
    parser.add_argument(
        "--compare",
        nargs=2,
        action="append",
        default=[],
        metavar=("ONE", "OTHER"),
        help="two landscapes to compare, by their names, as ONE − OTHER: a negative difference "
        "means that ONE is better; may be repeated (default all that differ in nothing but the "
        "algorithm)",
    )
    parser.add_argument(
        "--seeds", type=whole, default=24, metavar="N", help="seeds that judge (default 24)"
    )
    parser.add_argument(
        "--carry",
        type=whole,
        default=8,
        metavar="N",
        help="seeds that measure the cost of carried decays, or 0 (default 8)",
    )
    parser.add_argument(
        "--at-edge",
        action="store_true",
        help="also register settings at an edge of their grid; claims about them are withdrawn",
    )
    add_output_options(parser)
    parser.set_defaults(command=_register)


def _register(options: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from weightdecay.cli import sources
    from weightdecay.cli.register_json import of_registration
    from weightdecay.records.readers import StoreReader
    from weightdecay.results.choosing import chosen_otherwise
    from weightdecay.studies.registration import named, register
    from weightdecay.studies.registration_file import SECOND, check_new, read, write

    check_folder(options.folder)
    check_new(options.folder)
    if (options.folder / SECOND / "log").is_dir():
        raise ValueError(
            f"{options.folder / SECOND} must not be there yet: its seeds have been seen. Move it "
            "away; what it judged stays judged."
        )
    source = sources.read(options.folder)
    planned = {run for run, _ in StoreReader(options.folder).cells()}
    missing = planned - {run.config.identity for run in source.runs}
    if missing or not source.complete:
        raise ValueError(
            f"{options.folder} must be a finished sweep, and {len(missing)} of its cells have no "
            "result yet. Finish it before anything is chosen."
        )
    scapes = named(source.runs)
    found = register(
        scapes,
        source.runs,
        date=datetime.now(UTC).date().isoformat(),
        seeds=options.seeds,
        carry=options.carry,
        compare=[(one, other) for one, other in options.compare],
        at_edge=options.at_edge,
    )
    otherwise = {
        name: chosen_otherwise(scapes[name], method.choice)
        for name, method in found.methods.items()
    }
    registered, study = write(found, options.folder)
    found = read(options.folder)
    if options.json:
        print_json(
            {"registered": registered, "study": study, **of_registration(found, otherwise)},
        )
        return 0
    echo("Chosen from smoothed errors, to be judged by other seeds:")
    for line in _settings(found, otherwise):
        echo(line)
    if not found.compared:
        echo("No two landscapes differ in the algorithm alone: name pairs with --compare.")
    if not options.quiet:
        echo(f"\nWrote {registered} and {study}: {len(found.cells())} runs.")
        echo(f"The hash of what is registered is {found.sha256}.")
        if _in_git(options.folder):
            echo("Commit the first before you train: git then shows that it came before the runs.")
        echo("To train and judge:")
        echo(f"  weightdecay sweep {study} --out {options.folder / SECOND}")
        echo(f"  weightdecay judge {options.folder}")
    return 0


def _in_git(folder: Path) -> bool:
    """Whether a folder lies in a git work tree, which has a folder or a file of that name."""
    place = folder.resolve()
    return any((one / ".git").exists() for one in (place, *place.parents))


def check_folder(folder: Path) -> None:
    """Refuse a file, a tuner's folder, and the seeds that judge another folder."""
    from weightdecay.cli.tuned import is_tuners
    from weightdecay.studies.registration_file import registered_for

    if folder.is_file():
        cure = f"`weightdecay landscape {folder}` recommends a setting from it."
        if folder.suffix == ".toml":
            cure = f"Train it first: `weightdecay sweep {folder} --out FOLDER`."
        raise ValueError(
            "FOLDER must be the folder of a sweep, whose settings other seeds can train, and "
            f"{folder} is a file. {cure}"
        )
    if is_tuners(folder):
        raise ValueError(
            "FOLDER must be the folder of a sweep, whose grid chooses a setting, and "
            f"{folder} is a tuner's, whose settings are scattered. `weightdecay status {folder}` "
            "says what the tuner recommends: sweep a grid around it, and register that."
        )
    if folder.parent in registered_for(folder):
        raise ValueError(
            f"FOLDER must be the folder that chose, and the seeds of {folder} judge it. Run "
            f"`weightdecay judge {folder.parent}`."
        )


def _settings(found: "Registration", otherwise: dict[str, float | None]) -> Iterator[str]:
    from weightdecay.labels import SYMBOLS
    from weightdecay.studies.findings import unequal

    for name, method in found.methods.items():
        choice, share = method.choice, otherwise[name]
        told = f"  {name}: α = {choice.lr:g}, {SYMBOLS[method.way]} = {choice.decay:g}, of "
        told += f"{method.settings} settings"
        if share is not None:
            told += f"; {share:.0%} of resampled seeds choose otherwise".replace("%", " %")
        if choice.edges:
            told += f"; at an edge of its grid ({', '.join(choice.edges)})"
        yield told
    if apart := unequal(found):
        yield apart
