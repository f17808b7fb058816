"""`weightdecay run`: train one configuration."""

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightdecay.cli.arguments import NUMBERS, Commands, number, option, whole, whole_or_test
from weightdecay.cli.output import add_output_options
from weightdecay.records import COUPLED, DECOUPLED, PRECISIONS, SCHEDULES

_DECAYS = {
    "weight_decay": "λ, the fraction of a weight removed per update, independent of lr",
    "normalized_decay": "λ_norm = λ√N, where N is the number of updates in a cycle",
    "l2": f"L2 regularization, for {', '.join(COUPLED)} and any MODULE:CLASS",
}


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="train one configuration",
        description="Train one configuration. If --out has it already, training continues from its "
        "last checkpoint. Under torchrun, the processes share every batch.",
        epilog=f"{NUMBERS} A name may have options, as in shakeshake26,width=32 or "
        "restarts,first=10,factor=2. Lengths in a schedule are in epochs.",
    )
    what = parser.add_argument_group("what to train")
    what.add_argument(
        "--task", default="mnist1d", help="a task's name, or MODULE:FUNCTION (default mnist1d)"
    )
    what.add_argument("--model", help="a model of the task (default its first)")
    what.add_argument(
        "--data", type=whole, metavar="N", help="number of training examples (default all)"
    )
    what.add_argument(
        "--validation",
        type=whole_or_test,
        metavar="N",
        help="number of examples to hold out for choosing settings; or test, to choose on the "
        "test examples (default a tenth)",
    )
    how = parser.add_argument_group("how to train it")
    how.add_argument(
        "--algorithm",
        default="adamw",
        help=f"{', '.join(DECOUPLED + COUPLED)}, or MODULE:CLASS (default adamw)",
    )
    how.add_argument("--lr", type=number, required=True, metavar="X", help="α, the learning rate")
    for name, meaning in _DECAYS.items():
        how.add_argument(option(name), type=number, metavar="X", help=meaning)
    how.add_argument(
        "--schedule", default="cosine", help=f"{', '.join(SCHEDULES)} (default cosine)"
    )
    how.add_argument(
        "--epochs", type=whole, default=20, metavar="N", help="number of epochs (default 20)"
    )
    how.add_argument("--batch", type=whole, default=64, metavar="N", help="batch size (default 64)")
    how.add_argument("--seed", type=whole, default=0, metavar="N", help="random seed (default 0)")
    how.add_argument(
        "--precision", default="float32", help=f"{' or '.join(PRECISIONS)} (default float32)"
    )
    how.add_argument(
        "--evaluate-every",
        type=whole,
        default=1,
        metavar="N",
        help="epochs between evaluations; 0 evaluates only at the end of a cycle (default 1)",
    )
    how.add_argument(
        "--keep-missed",
        action="store_true",
        help="record which test examples are misclassified at the end",
    )
    where = parser.add_argument_group("where to train it, and output")
    where.add_argument("--device", help="a torch device (default a GPU, if there is one)")
    where.add_argument(
        "--threads",
        type=whole,
        metavar="N",
        help="number of CPU threads (default 1, the fastest for small models)",
    )
    where.add_argument(
        "--out",
        type=Path,
        default=Path("runs"),
        metavar="FOLDER",
        help="where to keep runs (default runs)",
    )
    where.add_argument(
        "--fresh", action="store_true", help="delete what is kept of this run, and start over"
    )
    where.add_argument(
        "--tensorboard",
        type=Path,
        metavar="FOLDER",
        help="also write curves for TensorBoard to this folder",
    )
    where.add_argument(
        "--ensemble",
        action="store_true",
        help="evaluate ensembles of the solutions at the end of each cycle",
    )
    add_output_options(parser)
    parser.set_defaults(command=_run)


def command_of(config: Mapping[str, Any], *, device: str | None = None) -> str:
    """Return the command that trains a configuration."""
    words = [
        option(name) if value is True else f"{option(name)} {shlex.quote(str(value))}"
        for name, value in (*config.items(), ("device", device))
        if value is not None and value is not False
    ]
    return " ".join(["weightdecay run", *words])


def _run(options: argparse.Namespace) -> int:
    from weightdecay.cli.run_view import train_and_print

    return train_and_print(options)
