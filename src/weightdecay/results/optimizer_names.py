"""What torch's optimizers do with their `weight_decay`: add it to the gradient, or decay with it.

Names are those that people write into a table: `Adam`, `torch.optim.SGD`, `sgd_momentum`.
"""

import re

#: torch's optimizers that add weight_decay · weights to the gradient: L2 regularization.
COUPLED = (
    *("sgd", "asgd", "adam", "adamax", "amsgrad", "nadam", "radam"),
    *("adagrad", "adadelta", "rmsprop"),
)
#: Optimizers that shrink the weights by lr · weight_decay in a step.
DECOUPLED = ("adamw", "sgdw", "nadamw", "adafactor", "lion", "muon")
# Words that change nothing about the decay.
_BESIDE = {"torch", "optim", "fused", "foreach", "momentum", "nesterov", "hf"}


def decays_by(optimizer: object) -> str | None:
    """Return "l2" or "weight_decay" as torch's optimizer of this name has it; None if unknown."""
    if not isinstance(optimizer, str):
        return None
    words = {
        word
        for word in re.split(r"[^a-z0-9]+", optimizer.lower())
        if word and not word.isdigit() and word not in _BESIDE
    }
    if len(words) != 1:
        return None
    [name] = words
    return "l2" if name in COUPLED else "weight_decay" if name in DECOUPLED else None
