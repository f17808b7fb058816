"""`weightdecay tune`: recommend a learning rate and a decay for a long run, from short runs."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay.cli.arguments import NUMBERS, Commands, as_options, number, whole
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo
from weightdecay.cli.sweep import add_engine
from weightdecay.cli.tuned import recommended
from weightdecay.decay import CHOOSING
from weightdecay.records import PRECISIONS

if TYPE_CHECKING:
    from weightdecay.tune import Tuning

# The arguments of `Tuning` that are options.
_WHAT = (
    *("task", "model", "algorithm", "epochs", "batch", "data", "validation", "seed", "precision"),
    *("spend", "at_once", "lr", "normalized_decay", "shortest"),
)


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "tune",
        help="recommend a learning rate and a decay for a long run, from short runs",
        description="Recommend a learning rate and a weight decay for a run of --epochs, from runs "
        "that are mostly shorter and cost at most --spend such runs together. Settings are chosen "
        "on validation examples. You can interrupt it and run it again.",
        epilog=f"{NUMBERS} {CHOOSING}. docs/tuning.md has more, also for a training loop of your "
        "own.",
    )
    what = parser.add_argument_group("the long run")
    what.add_argument(
        "--task", default="mnist1d", help="a task's name, or MODULE:FUNCTION (default mnist1d)"
    )
    what.add_argument("--model", help="a model of the task (default its first)")
    what.add_argument(
        "--algorithm", default="adamw", help="adamw, sgdw, adam or sgd (default adamw)"
    )
    what.add_argument("--epochs", type=whole, required=True, metavar="N", help="number of epochs")
    what.add_argument(
        "--batch", type=whole, default=64, metavar="N", help="batch size (default 64)"
    )
    what.add_argument(
        "--data", type=whole, metavar="N", help="number of training examples (default all)"
    )
    what.add_argument(
        "--precision", default="float32", help=f"{' or '.join(PRECISIONS)} (default float32)"
    )
    how = parser.add_argument_group("how to look for the setting")
    how.add_argument(
        "--spend",
        type=number,
        default=1.0,
        metavar="X",
        help="what all runs together may cost, in runs of --epochs (default 1)",
    )
    how.add_argument(
        "--validation",
        type=whole,
        metavar="N",
        help="number of examples to hold out for choosing settings (default a tenth)",
    )
    how.add_argument(
        "--lr",
        type=number,
        nargs="+",
        metavar="X",
        help="the lowest and highest learning rate to try, or all to try (default four doublings "
        "on either side of the usual one)",
    )
    how.add_argument(
        "--normalized-decay",
        type=number,
        nargs="+",
        metavar="X",
        help="the same of λ_norm; with adam or sgd, of the L2 factor times lr·√updates",
    )
    how.add_argument(
        "--shortest",
        type=whole,
        metavar="N",
        help="the fewest epochs of a run (default a sixteenth of --epochs)",
    )
    how.add_argument(
        "--at-once",
        type=whole,
        default=1,
        metavar="N",
        help="runs to train at once, before the next ones are chosen (default 1, which learns most "
        "from each; with more, more workers are busy)",
    )
    how.add_argument(
        "--sampler",
        metavar="MODULE:CLASS",
        help="let a sampler of Optuna's choose the runs, such as optuna.samplers:TPESampler (needs "
        "Optuna)",
    )
    how.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="the first random seed (default 0)"
    )
    add_engine(parser)
    parser.add_argument(
        "--out",
        dest="folder",
        type=Path,
        default=Path("tuned"),
        metavar="FOLDER",
        help="where to keep the runs (default tuned)",
    )
    add_output_options(parser)
    parser.set_defaults(command=_tune)


def _tune(options: argparse.Namespace) -> int:
    from weightdecay.cli.sweep_view import check_folder, engine_of, sweep_all
    from weightdecay.sweeps.kept import Kept
    from weightdecay.tune import Tuning

    check_folder(options.folder)
    what = {name: getattr(options, name) for name in _WHAT}
    if options.sampler is not None:
        from weightdecay.references import imported
        from weightdecay.tune.optuna_sampler import OptunaChooser

        what["chooser"] = OptunaChooser(imported("sampler", options.sampler), seed=options.seed)
    tuning = Tuning(options.folder, **what)
    with Kept(engine_of(options)) as engine:
        engine.repeats = 0.0  # a control would not be within the spend
        while plan := tuning.plan():
            if not options.quiet:
                echo(_round(tuning), file=sys.stderr, flush=True)
            if sweep_all(plan, options, engine=engine) is None:
                return 130
    _show(tuning, options)
    return 1 if tuning.failed else 0


def _round(tuning: "Tuning") -> str:
    """Return which runs are about to be trained, in one line."""
    found = tuning.recommendation()
    coming = [
        f"{count} run{'s' * (count != 1)} of {epochs} epochs"
        for epochs, count in sorted(tuning.coming.items())
    ]
    return (
        f"{found.trials} run{'s' * (found.trials != 1)} done, {found.spent:.2f} of "
        f"{tuning.tuner.spend:g} long runs spent. Next: {' and '.join(coming)}."
    )


def _show(tuning: "Tuning", options: argparse.Namespace) -> None:
    from weightdecay.cli.run import command_of

    found, failed = tuning.recommendation(), len(tuning.failed)
    command = command_of(tuning.long_run().as_dict(), device=options.device)
    if options.json:
        values = recommended(found)
        print_json({"folder": options.folder, "failed": failed, **values, "run": command})
        return
    echo(as_options(str(found), vars(options)))
    if failed:
        echo(
            f"{failed} run{'s' * (failed != 1)} could not be trained: "
            f"`weightdecay status {options.folder}` says why."
        )
    if not options.quiet:
        echo(f"The long run: {command}\n{CHOOSING}.")
