"""`weightdecay judge`: methods compared at registered settings, by seeds that chose nothing."""

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from weightdecay.cli.arguments import Commands
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo, print_table
from weightdecay.cli.register import check_folder

if TYPE_CHECKING:
    from weightdecay.results import Estimate, Judgement
    from weightdecay.studies.deciding import Effort
    from weightdecay.studies.registration import Registration
    from weightdecay.studies.second_stage import Judged

_DESCRIPTION = """\
Compare methods at their registered settings, by seeds that chose nothing, and
measure what it costs to carry a decay to another learning rate. Says what
differs from the registration, and returns 1 if anything does."""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "judge",
        help="compare methods at their registered settings",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that is registered")
    parser.add_argument(
        "--second",
        type=Path,
        metavar="FOLDER",
        help="the folder of the second stage (default FOLDER/judging)",
    )
    add_output_options(parser)
    parser.set_defaults(command=_judge)


def _judge(options: argparse.Namespace) -> int:
    from weightdecay.cli import sources
    from weightdecay.cli.register_json import of_judged
    from weightdecay.records.readers import StoreReader
    from weightdecay.studies.registration import registered
    from weightdecay.studies.registration_file import SECOND, read
    from weightdecay.studies.second_stage import judge

    check_folder(options.folder)
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
    costs = StoreReader(second).seconds()
    if options.json:
        print_json(of_judged(found, seen, costs))
    else:
        _show(found, seen, costs)
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


def _show(found: "Registration", seen: "Judged", costs: Mapping[str, float]) -> None:
    from weightdecay.labels import SYMBOLS
    from weightdecay.number_format import measured, metric_words
    from weightdecay.site.rule_costs import negative
    from weightdecay.studies.findings import unequal
    from weightdecay.studies.registered_when import when
    from weightdecay.studies.second_stage import UNCHANGED

    metrics = {name: runs[0].last.metric if runs else None for name, runs in seen.runs.items()}
    tested = metric_words(runs[0].last for runs in seen.runs.values() if runs) or "error"
    rows = [("method", "α", "decay", f"test {tested}", "seeds")]
    for name, runs in seen.runs.items():
        choice, symbol = found.methods[name].choice, SYMBOLS[found.methods[name].way]
        error = "–" if not runs else measured(fmean(seen.errors(name)), metrics[name])
        if lost := sum(run.last.diverged for run in runs):
            error += f" ({lost} diverged)"
        decay = f"{symbol} {choice.decay:g}"
        rows.append((name, f"{choice.lr:g}", decay, error, str(len(runs))))
    print_table(rows)
    if seen.compared:
        echo("")
        units = ("difference" if metrics[one] else "points" for one, _ in seen.compared)
        compared = [("compared", "relative", " or ".join(dict.fromkeys(units)), "verdict")]
        for (one, other), judgement in seen.compared.items():
            numbers = _relative(judgement.ratio), _difference(judgement.points, metrics[one])
            said = verdict(
                found, (one, other), judgement, to_decide(found, seen, (one, other), costs)
            )
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
    echo(f"\n{when(found)}")
    if apart := unequal(found):
        echo(apart)
    for line in seen.changed or [UNCHANGED]:
        echo(line)


def to_decide(
    found: "Registration", seen: "Judged", pair: tuple[str, str], costs: Mapping[str, float]
) -> "Effort | None":
    """Return the seeds that would decide a comparison; None if it is decided, or not to be.

    `costs` are the seconds that runs took, where they are known.
    """
    from weightdecay.studies.deciding import of_judgement
    from weightdecay.studies.samples import sample_of, worker_of

    judgement = seen.compared[pair]
    if not _is_open(found, pair, judgement):
        return None
    cells = {cell for name in pair for cell in found.methods[name].judged(found.judges)}
    workers = {worker_of(run) for name in pair for run in seen.runs[name]}
    return of_judgement(judgement, sample_of(cells, costs, workers))


def _is_open(found: "Registration", pair: tuple[str, str], judgement: "Judgement") -> bool:
    """Whether all seeds of a comparison are trained, inside of both grids, and decide nothing."""
    inside = not any(found.methods[name].choice.edges for name in pair)
    shown = judgement.better or judgement.as_good or judgement.ratio.low > 0
    return inside and judgement.seeds >= len(found.judges) and not shown


def verdict(
    found: "Registration",
    pair: tuple[str, str],
    judgement: "Judgement",
    needed: "Effort | None" = None,
) -> str:
    """Return what a registered comparison came to, in words; if nothing, what would decide it."""
    from weightdecay.studies.formats import would_decide

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
    return f"not decided; a difference of {least:.1f} % would have been seen{would_decide(needed)}"


def _relative(found: "Estimate") -> str:
    from weightdecay.number_format import between

    value, low, high = (100 * math.expm1(end) for end in (found.value, found.low, found.high))
    return f"{value:+.2f} % {between(f'{low:+.2f}', f'{high:+.2f}')}".replace("-", "−")


def _difference(found: "Estimate", metric: str | None) -> str:
    from weightdecay.number_format import between

    ends = (found.value, found.low, found.high)
    value, low, high = (f"{100 * x:+.2f}" if metric is None else f"{x:+.3g}" for x in ends)
    return f"{value} {between(low, high)}".replace("-", "−")
