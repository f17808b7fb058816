"""The command line: words typed by a person into calls. The only room that prints."""

import argparse
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from weightdecay import __version__
from weightdecay.decay import TIMESCALE, TITLES, Budget, Decay, convert, transfer
from weightdecay.table import shown, table

_MEANING = {
    "weight_decay": "the fraction removed in an update, whatever lr is",
    "normalized": "λ√N, N the updates of the run",
    "torch": "λ/lr",
    "half_life": "until an idle weight has halved",
    "half_life_epochs": "the same in epochs",
    "timescale": "1/λ",
    "timescale_epochs": "the same in epochs",
}
_CONTEXT = {
    "lr": "the learning rate that torch's weight_decay is multiplied by",
    "batch": "b, the batch size",
    "data": "B, the number of training points",
    "epochs": "T, the number of epochs",
}
_BUDGET = ("batch", "data", "epochs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` name, and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="weightdecay", description="Decoupled weight decay, as the paper means it."
    )
    parser.add_argument("--version", action="version", version=f"weightdecay {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_convert(commands)
    options = parser.parse_args(arguments)
    try:
        print(options.run(options))
    except (TypeError, ValueError) as error:
        print(f"weightdecay: {_as_options(str(error))}", file=sys.stderr)
        return 2
    return 0


def _add_convert(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "convert",
        help="state a weight decay every way there is",
        description="State a decay one way; see it stated every way, and carried to another run.",
        epilog="Numbers may be written 0.05, 2^-9 or 1/4*0.001.",
    )
    stated = parser.add_argument_group("the decay, stated in one of these ways")
    for name, title in TITLES.items():
        meaning = f"{title}: {_MEANING[name]}"
        stated.add_argument(_option(name), type=_number, metavar="X", help=meaning)
    context = parser.add_argument_group("the run it belongs to")
    for name, meaning in _CONTEXT.items():
        context.add_argument(_option(name), type=_number, metavar="X", help=meaning)
    context.add_argument(
        "--steps", type=_number, metavar="X", help="the number of updates, instead of --epochs"
    )
    target = parser.add_argument_group("another run to carry it to")
    for name in _BUDGET:
        target.add_argument(f"--to-{name}", type=_number, metavar="X", help="if it differs")
    parser.set_defaults(run=_convert)


def _convert(options: argparse.Namespace) -> str:
    given = {
        name: value
        for name in (*TITLES, *_CONTEXT, "steps")
        if (value := getattr(options, name)) is not None
    }
    decay = convert(**given)
    if all(getattr(options, f"to_{name}") is None for name in _BUDGET):
        text = str(decay)
    else:
        columns = {"tuned": decay, **_carried(decay, options)}
        rows = [
            (title, *(shown(getattr(column, name)) for column in columns.values()))
            for name, title in TITLES.items()
        ]
        text = table([("", *columns), *rows])
    missing = [_option(name) for name in _CONTEXT if getattr(options, name) is None]
    return f"{text}\n– is not known without more of {', '.join(missing)}" if "–" in text else text


def _carried(decay: Decay, options: argparse.Namespace) -> dict[str, Decay]:
    run = {name: getattr(options, name) for name in _BUDGET}
    if None in run.values():
        raise ValueError("To carry a decay to another run, state --batch, --data and --epochs.")
    target = {
        name: value if (to := getattr(options, f"to_{name}")) is None else to
        for name, value in run.items()
    }
    tuned, now = Budget(**run), Budget(**target)
    there = replace(decay.run, updates=now.updates, updates_per_epoch=now.data / now.batch)
    return {
        "carried: λ_norm kept": Decay(transfer(decay.weight_decay, tuned=tuned, now=now), there),
        "carried: timescale in epochs kept": Decay(
            transfer(decay.weight_decay, tuned=tuned, now=now, rule=TIMESCALE), there
        ),
    }


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _as_options(message: str) -> str:
    """Say `half_life` as it is typed here: --half-life."""
    return re.sub(r"`(\w+)`", lambda found: _option(found[1]), message)


def _number(text: str) -> float:
    """Read 0.05, 2^-9, 1/4*0.001."""
    parts = re.split(r"([*/])", text.replace(" ", ""))
    value = 1.0
    for operator, factor in zip(["*", *parts[1::2]], parts[::2], strict=True):
        base, caret, exponent = factor.partition("^")
        try:
            power = float(base) ** (float(exponent) if caret else 1)
            value = value * power if operator == "*" else value / power
        except (ValueError, ZeroDivisionError, OverflowError):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def script() -> None:
    """Run the command line as a program."""
    sys.exit(main())
