"""The optimizers' warning about torch's weight_decay, for configurations of runs."""

import sys
from collections.abc import Iterable

from weightdecay.cli.printing import echo
from weightdecay.records import RunConfig


def warn(configs: Iterable[RunConfig]) -> None:
    """Warn if all decays were probably meant as torch's; in a wide grid some may look so."""
    stated = [(one.lr, one.weight_decay) for one in configs if one.weight_decay]
    if not stated or any(decay <= lr for lr, decay in stated):
        return  # without torch, which takes a second to load
    from weightdecay.optim.rates import looks_like_torchs

    said = [
        looks_like_torchs({"base": lr, "weight_decay": decay, "normalized": None})
        for lr, decay in stated
    ]
    if all(said):
        echo(f"weightdecay: {said[0]}", file=sys.stderr)
