"""`weightdecay run`: one training, from its options to its table."""

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightdecay.cli.arguments import NUMBERS, Commands, number, option, whole, whole_or_test
from weightdecay.cli.output import add_output_options
from weightdecay.records import COUPLED, DECOUPLED, PRECISIONS, SCHEDULES

_DECAYS = {
    "weight_decay": "λ, the fraction removed in an update, whatever lr is",
    "normalized_decay": "λ_norm = λ√N, N the updates of a cycle",
    "l2": f"L2 regularization, for {', '.join(COUPLED)} and any MODULE:CLASS",
}


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="train one configuration",
        description="Train one configuration, or go on with it: what is found of it in --out is "
        "taken up where it was. Under torchrun, the processes share every batch.",
        epilog=f"{NUMBERS} A name may carry options, as in shakeshake26,width=32 or "
        "restarts,first=10,factor=2; lengths in a schedule are epochs.",
    )
    what = parser.add_argument_group("what is trained")
    what.add_argument(
        "--task", default="mnist1d", help="its name, or MODULE:FUNCTION (default mnist1d)"
    )
    what.add_argument("--model", help="its name (default the task's first)")
    what.add_argument("--data", type=whole, metavar="N", help="examples to train on (default all)")
    what.add_argument(
        "--validation",
        type=whole_or_test,
        metavar="N",
        help="examples to hold out and choose on, or test: choose on those (default a tenth)",
    )
    how = parser.add_argument_group("how")
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
        "--epochs", type=whole, default=20, metavar="N", help="their number (default 20)"
    )
    how.add_argument(
        "--batch", type=whole, default=64, metavar="N", help="the batch size (default 64)"
    )
    how.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="of all that is random (default 0)"
    )
    how.add_argument(
        "--precision", default="float32", help=f"{' or '.join(PRECISIONS)} (default float32)"
    )
    how.add_argument(
        "--evaluate-every",
        type=whole,
        default=1,
        metavar="N",
        help="epochs from one record to the next; 0: only where a cycle ends (default 1)",
    )
    how.add_argument(
        "--keep-missed",
        action="store_true",
        help="record which test examples the run missed at its end",
    )
    where = parser.add_argument_group("where, and what else")
    where.add_argument("--device", help="as torch names it (default a GPU, where there is one)")
    where.add_argument(
        "--threads",
        type=whole,
        metavar="N",
        help="of the CPU (default 1, the fastest for small models)",
    )
    where.add_argument(
        "--out",
        type=Path,
        default=Path("runs"),
        metavar="FOLDER",
        help="where runs are kept (default runs)",
    )
    where.add_argument("--fresh", action="store_true", help="forget what is kept of this run")
    where.add_argument(
        "--tensorboard", type=Path, metavar="FOLDER", help="write curves for TensorBoard there too"
    )
    where.add_argument(
        "--ensemble",
        action="store_true",
        help="evaluate the ensemble of the cycles' solutions at the end",
    )
    add_output_options(parser)
    parser.set_defaults(command=_run)


def command_of(config: Mapping[str, Any], *, device: str | None = None) -> str:
    """Return the command that trains a configuration, given as plain values."""
    words = [
        option(name) if value is True else f"{option(name)} {shlex.quote(str(value))}"
        for name, value in (*config.items(), ("device", device))
        if value is not None and value is not False
    ]
    return " ".join(["weightdecay run", *words])


def _run(options: argparse.Namespace) -> int:
    from weightdecay.cli.run_view import follow

    return follow(options)
