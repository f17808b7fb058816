"""`weightdecay convert`: one weight decay in every convention."""

import argparse
from dataclasses import replace

from weightdecay.cli.arguments import NUMBERS, Commands, number, option
from weightdecay.cli.output import add_output_options, print_json
from weightdecay.cli.printing import echo, print_table
from weightdecay.decay import CHOOSING, TIMESCALE, TITLES, Budget, Decay, convert, transfer
from weightdecay.table import shown

_MEANING = {
    "weight_decay": "the fraction of a weight removed per update, independent of lr",
    "normalized": "λ√N, where N is the number of updates",
    "torch": "λ/lr",
    "half_life": "until a weight without gradient has halved",
    "half_life_epochs": "the same in epochs",
    "timescale": "1/λ",
    "timescale_epochs": "the same in epochs",
}
_CONTEXT = {
    "lr": "the learning rate, by which torch multiplies its weight_decay",
    "batch": "b, the batch size",
    "data": "B, the number of training examples",
    "epochs": "T, the number of epochs",
}
_BUDGET = ("batch", "data", "epochs")
# The keys in --json of the decays carried to another run.
_CARRIED = ("carried_normalized", "carried_timescale_epochs")


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "convert",
        help="convert a weight decay between conventions",
        description="Convert a weight decay to every convention, and carry it over to another run.",
        epilog=f"{NUMBERS} {CHOOSING}.",
    )
    stated = parser.add_argument_group("the decay, in one of these conventions")
    for name, title in TITLES.items():
        meaning = f"{title}: {_MEANING[name]}"
        stated.add_argument(option(name), type=number, metavar="X", help=meaning)
    context = parser.add_argument_group("the run it belongs to")
    for name, meaning in _CONTEXT.items():
        context.add_argument(option(name), type=number, metavar="X", help=meaning)
    context.add_argument(
        "--steps", type=number, metavar="X", help="the number of updates, instead of --epochs"
    )
    target = parser.add_argument_group("another run to carry it over to")
    for name in _BUDGET:
        target.add_argument(f"--to-{name}", type=number, metavar="X", help="if different")
    add_output_options(parser)
    parser.set_defaults(command=_convert)


def _convert(options: argparse.Namespace) -> int:
    given = {
        name: value
        for name in (*TITLES, *_CONTEXT, "steps")
        if (value := getattr(options, name)) is not None
    }
    decay = convert(**given)
    carried = {}
    if any(getattr(options, f"to_{name}") is not None for name in _BUDGET):
        carried = _carried(decay, options)
    if options.json:
        print_json(_values({"decay": decay, **dict(zip(_CARRIED, carried.values(), strict=False))}))
        return 0
    columns = {"tuned": decay, **carried}
    rows = [
        (title, *(shown(getattr(column, name)) for column in columns.values()))
        for name, title in TITLES.items()
    ]
    if carried:
        print_table([("", *columns), *rows])
    else:
        echo(str(decay))
    if options.quiet:
        return 0
    if any("–" in row for row in rows):
        missing = [option(name) for name in _CONTEXT if getattr(options, name) is None]
        echo(f"– means unknown. More would be known with {', '.join(missing)}.")
    echo(f"{CHOOSING}.")
    return 0


def _values(decays: dict[str, Decay]) -> dict[str, dict[str, float | None]]:
    return {key: {name: getattr(decay, name) for name in TITLES} for key, decay in decays.items()}


def _carried(decay: Decay, options: argparse.Namespace) -> dict[str, Decay]:
    run = {name: getattr(options, name) for name in _BUDGET}
    if None in run.values():
        raise ValueError("Carrying a decay to another run needs --batch, --data and --epochs.")
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
