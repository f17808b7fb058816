"""`weightdecay tune`: recommend a learning rate and a decay from short runs."""

import argparse
from pathlib import Path

from weightdecay.cli.arguments import NUMBERS, Commands, number, whole
from weightdecay.cli.output import add_output_options
from weightdecay.cli.run import add_task
from weightdecay.cli.sweep import add_engine
from weightdecay.records import COUPLED, DECOUPLED, PRECISIONS


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "tune",
        help="recommend a learning rate and a decay from short runs",
        description="Recommend a learning rate and a decay for a long run, from short runs that "
        "together cost no more than --spend long runs. You can interrupt it and run it again: "
        "finished runs are not trained again. For a training loop of your own, see "
        "weightdecay.Tuner.",
        epilog=NUMBERS,
    )
    add_task(parser)
    how = parser.add_argument_group("how to train it")
    how.add_argument(
        "--algorithm",
        default="adamw",
        help=f"{', '.join(DECOUPLED + COUPLED)} (default adamw)",
    )
    how.add_argument(
        "--epochs", type=whole, required=True, metavar="N", help="number of epochs of the long run"
    )
    how.add_argument("--batch", type=whole, default=64, metavar="N", help="batch size (default 64)")
    how.add_argument(
        "--schedule",
        default="cosine",
        help="cosine, which may have a warm-up; with L2, also constant (default cosine)",
    )
    how.add_argument(
        "--precision", default="float32", help=f"{' or '.join(PRECISIONS)} (default float32)"
    )
    search = parser.add_argument_group("how to search")
    search.add_argument(
        "--spend",
        type=number,
        default=1.0,
        metavar="X",
        help="what all short runs together may cost, in long runs (default 1)",
    )
    for name, meaning in (("--lr", "learning rate"), ("--normalized-decay", "λ_norm")):
        search.add_argument(
            name,
            type=number,
            nargs=2,
            metavar=("LOW", "HIGH"),
            help=f"the lowest and the highest {meaning} to try",
        )
    search.add_argument(
        "--shortest",
        type=whole,
        metavar="N",
        help="the fewest epochs from which something can be learned (default a sixteenth)",
    )
    search.add_argument(
        "--at-once",
        type=whole,
        default=4,
        metavar="N",
        help="runs to train side by side; with fewer, each is chosen knowing more (default 4)",
    )
    parser.add_argument(
        "--out",
        dest="folder",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where to keep the runs",
    )
    add_engine(parser)
    add_output_options(parser)
    parser.set_defaults(command=_tune)


def _tune(options: argparse.Namespace) -> int:
    from weightdecay.cli.tune_view import tune_and_print

    return tune_and_print(options)
