"""What torch's optimizers do with their `weight_decay`: add it to the gradient, or decay with it.

Names are those that people write into a table: `Adam`, `torch.optim.SGD`, `SGD with momentum`.
"""

import re

#: torch's optimizers that add weight_decay · weights to the gradient: L2 regularization.
COUPLED = (
    *("sgd", "asgd", "adam", "adamax", "amsgrad", "nadam", "radam"),
    *("adagrad", "adadelta", "rmsprop"),
)
#: Optimizers that shrink the weights by lr · weight_decay in a step.
DECOUPLED = ("adamw", "sgdw", "nadamw", "adafactor", "lion", "muon")
# Words that make another optimizer of a known one.
_ANOTHER = {"mini"}
# `Adam-W` is AdamW, and `SGD w/ momentum` is SGD.
_SPLIT_W = re.compile(r"[_-]w\b(?!/)|\sw$")
_NOT_DECOUPLED = re.compile(r"decoupled_weight_decay\W+false")


def decays_by(optimizer: object) -> str | None:
    """Return "l2" or "weight_decay" as torch's optimizer of this name has it; None if unknown."""
    if not isinstance(optimizer, str):
        return None
    name = _NOT_DECOUPLED.sub("", _SPLIT_W.sub("w", optimizer.strip().lower()))
    words = set(re.split(r"[^a-z0-9]+", name))
    known = words & {*COUPLED, *DECOUPLED}
    if len(known) > 1:
        known.discard("amsgrad")  # an option of others, too
    ways = {"l2" if one in COUPLED else "weight_decay" for one in known}
    if len(ways) != 1 or words & _ANOTHER:
        return None
    return "weight_decay" if "decoupled" in words else ways.pop()
