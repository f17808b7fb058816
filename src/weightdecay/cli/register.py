"""`weightdecay register` and `weightdecay judge`: methods compared by seeds that chose nothing."""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from weightdecay.cli.arguments import Commands, whole
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo, print_table

if TYPE_CHECKING:
    from weightdecay.results import Estimate, Judgement
    from weightdecay.studies.registration import Registration
    from weightdecay.studies.second_stage import Judged

_REGISTER = """\
Choose a setting for each landscape of a finished sweep, and write down how
other seeds will judge these settings, before they are trained: settings,
seeds, comparisons, rules and margins, with date, commit and a hash of the
runs seen so far."""
_JUDGE = """\
Compare methods at their registered settings, by seeds that chose nothing, and
measure what it costs to carry a decay to another learning rate. Says what
differs from the registration."""


def add(commands: Commands) -> None:
    """Add the commands."""
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

    judge = commands.add_parser(
        "judge",
        help="compare methods at their registered settings",
        description=_JUDGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    judge.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that is registered")
    judge.add_argument(
        "--second",
        type=Path,
        metavar="FOLDER",
        help="the folder of the second stage (default FOLDER/judging)",
    )
    add_output_options(judge)
    judge.set_defaults(command=_judge)


def _register(options: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from weightdecay.cli import sources
    from weightdecay.cli.register_json import of_registration
    from weightdecay.records.readers import StoreReader
    from weightdecay.results.choosing import chosen_otherwise
    from weightdecay.studies.registration import named, register
    from weightdecay.studies.registration_file import SECOND, check_new, write

    _check_folder(options.folder)
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
        echo("Commit the first, so that its date can be trusted. Then train and judge:")
        echo(f"  weightdecay sweep {study} --out {options.folder / SECOND}")
        echo(f"  weightdecay judge {options.folder}")
    return 0


def _check_folder(folder: Path) -> None:
    """Refuse a file, for which no seeds can be trained, and the seeds that judge another folder."""
    from weightdecay.studies.registration_file import registered_for

    if folder.is_file():
        cure = f"`weightdecay landscape {folder}` recommends a setting from it."
        if folder.suffix == ".toml":
            cure = f"Train it first: `weightdecay sweep {folder} --out FOLDER`."
        raise ValueError(
            "FOLDER must be the folder of a sweep, whose settings other seeds can train, and "
            f"{folder} is a file. {cure}"
        )
    if folder.parent in registered_for(folder):
        raise ValueError(
            f"FOLDER must be the folder that chose, and the seeds of {folder} judge it. Run "
            f"`weightdecay judge {folder.parent}`."
        )


def _settings(found: "Registration", otherwise: dict[str, float | None]) -> Iterator[str]:
    from weightdecay.labels import SYMBOLS

    for name, method in found.methods.items():
        choice, share = method.choice, otherwise[name]
        told = f"  {name}: α = {choice.lr:g}, {SYMBOLS[method.way]} = {choice.decay:g}, of "
        told += f"{method.settings} settings"
        if share is not None:
            told += f"; {share:.0%} of resampled seeds choose otherwise".replace("%", " %")
        if choice.edges:
            told += f"; at an edge of its grid ({', '.join(choice.edges)})"
        yield told
    sizes = {method.settings for method in found.methods.values()}
    if max(sizes) > 1.1 * min(sizes):
        yield "The grids differ in size: the larger has had more chances to find a low error."


def _judge(options: argparse.Namespace) -> int:
    from weightdecay.cli import sources
    from weightdecay.cli.register_json import of_judged
    from weightdecay.studies.registration import registered
    from weightdecay.studies.registration_file import SECOND, read
    from weightdecay.studies.second_stage import judge

    _check_folder(options.folder)
    _check_own(options.folder)
    found = read(options.folder)
    second = options.second or options.folder / SECOND
    if not (second / "log").is_dir():
        raise FileNotFoundError(
            f"{second} must hold the registered runs, and is not a sweep. Train them: `weightdecay "
            f"sweep {options.folder / 'judge.toml'} --out {second}`."
        )
    first = sources.read(options.folder).runs
    seen = judge(found, registered(found, first), first, sources.read(second).runs)
    if options.json:
        print_json(of_judged(found, seen))
    else:
        _show(found, seen)
    return 1 if seen.changed else 0


def _check_own(folder: Path) -> None:
    """Refuse what `reproduce` registered: only the study knows which runs it had seen."""
    from weightdecay.studies.registration_file import FILE

    a_sweep, in_a_sweep = ((one / "log").is_dir() for one in (folder, folder.parent))
    if (folder / FILE).is_file():
        pages = [folder] if in_a_sweep and not a_sweep else []
    else:
        pages = sorted(path.parent for path in folder.glob(f"*/{FILE}")) if a_sweep else []
    if pages:
        raise ValueError(
            f"{folder} was registered by `weightdecay reproduce`, which judges it too. Run the "
            "same `weightdecay reproduce` again: it trains only what is missing, and writes "
            f"{', '.join(str(page / 'report.html') for page in pages)}."
        )


def _show(found: "Registration", seen: "Judged") -> None:
    from weightdecay.labels import SYMBOLS
    from weightdecay.number_format import measured, metric_words
    from weightdecay.site.rules import negative
    from weightdecay.studies.second_stage import UNCHANGED

    metrics = {name: runs[0].last.metric if runs else None for name, runs in seen.runs.items()}
    tested = metric_words(runs[0].last for runs in seen.runs.values() if runs) or "error"
    rows = [("method", "α", "decay", f"test {tested}", "seeds")]
    for name, runs in seen.runs.items():
        choice, symbol = found.methods[name].choice, SYMBOLS[found.methods[name].way]
        error = "–" if not runs else measured(fmean(seen.errors(name)), metrics[name])
        decay = f"{symbol} {choice.decay:g}"
        rows.append((name, f"{choice.lr:g}", decay, error, str(len(runs))))
    print_table(rows)
    if seen.compared:
        echo("")
        units = ("difference" if metrics[one] else "points" for one, _ in seen.compared)
        compared = [("compared", "relative", " or ".join(dict.fromkeys(units)), "verdict")]
        for (one, other), judgement in seen.compared.items():
            numbers = _relative(judgement.ratio), _difference(judgement.points, metrics[one])
            said = verdict(found, (one, other), judgement)
            compared.append((f"{one} − {other}", *numbers, said))
        print_table(compared)
    regrets = {name: own.costs for name, own in seen.regrets.items() if own.costs}
    slopes = list(dict.fromkeys(s for own in regrets.values() for s in own))
    if slopes:
        cost = " or ".join(dict.fromkeys(metrics[name] or "Points of error" for name in regrets))
        echo(f"\n{cost} that it costs to carry the decay to another α, by λ ∝ α^(−s):")
        head = ("method", *(f"s = {s:g}".replace("-", "−") for s in slopes))
        body = [
            (name, *(_difference(own[s], metrics[name]) if s in own else "–" for s in slopes))
            for name, own in regrets.items()
        ]
        print_table([head, *body])
        for name, own_regret in seen.regrets.items():
            for note in negative(own_regret, metrics[name]):
                echo(f"{name}: {note}.")
    echo(f"\nRegistered on {found.date}, commit {found.commit[:12]}.")
    for line in seen.changed or [UNCHANGED]:
        echo(line)


def verdict(found: "Registration", pair: tuple[str, str], judgement: "Judgement") -> str:
    """Return what a registered comparison came to, in words."""
    if any(found.methods[name].choice.edges for name in pair):
        return "withdrawn: a setting is at an edge of its grid"
    if judgement.seeds < len(found.judges):
        return f"not yet: {judgement.seeds} of {len(found.judges)} seeds"
    if judgement.better:
        return "better"
    if judgement.ratio.low > 0:
        return "worse"
    if judgement.as_good:
        return "as good, within 3 %"
    least = 100 * math.expm1(judgement.detectable)
    return f"not decided; a difference of {least:.1f} % would have been seen"


def _relative(found: "Estimate") -> str:
    from weightdecay.number_format import between

    value, low, high = (100 * math.expm1(end) for end in (found.value, found.low, found.high))
    return f"{value:+.2f} % {between(f'{low:+.2f}', f'{high:+.2f}')}".replace("-", "−")


def _difference(found: "Estimate", metric: str | None) -> str:
    from weightdecay.number_format import between

    ends = (found.value, found.low, found.high)
    value, low, high = (f"{100 * x:+.2f}" if metric is None else f"{x:+.3g}" for x in ends)
    return f"{value} {between(low, high)}".replace("-", "−")
