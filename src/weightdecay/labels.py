"""The names of methods, schedules and decays in figures, pages and tables.

A method has a short key: `adamw`, or `adamwr` with warm restarts.
"""

from collections.abc import Mapping

from weightdecay.records import COUPLED, DECAYS, RunConfig, Spec

NAMES = {
    "sgd": "SGD",
    "sgdw": "SGDW",
    "sgdwr": "SGDWR",
    "adam": "Adam",
    "adamr": "Adam with restarts",
    "adamw": "AdamW",
    "adamwr": "AdamWR",
    "adagrad": "AdaGrad",
    "adagradw": "AdaGradW",
    "amsgrad": "AMSGrad",
    "amsgradw": "AMSGradW",
    "rmsprop": "RMSProp",
    "rmspropw": "RMSPropW",
}
SCHEDULES = {
    "constant": "fixed learning rate",
    "drops": "step-drop",
    "cosine": "cosine annealing",
    "restarts": "warm restarts",
}
#: The name and the symbol of each kind of decay on an axis.
AXES = {
    "weight_decay": ("weight decay", "λ"),
    "normalized_decay": ("normalized weight decay", "λ_norm"),
    "l2": ("L₂ factor", "λ"),
}
#: The same in a table's column of decays, where rows differ in what their number is.
SYMBOLS = {"weight_decay": "λ", "normalized_decay": "λ_norm", "l2": "L2"}
assert set(AXES) == set(SYMBOLS) == set(DECAYS)
#: How the best decay moves with each factor of the budget.
LAWS = {"epochs": "λ* ∝ epochs^−e", "data": "λ* ∝ data^−e", "batch": "λ* ∝ batch^e"}


def method(algorithm: str, schedule: str = "cosine") -> str:
    """Return the key of a configuration's method: `adamw` under restarts is `adamwr`.

    A class of another library counts as decoupled, so `torch.optim:Adagrad` is `adagradw`.
    """
    spec = Spec.parse("algorithm", algorithm)
    name = spec.name
    if spec.options.get("amsgrad") is True:
        name = name.replace("adam", "amsgrad")
    if ":" in name:
        name = name.rpartition(":")[2].rpartition(".")[2] + "w"
    restarts = Spec.parse("schedule", schedule).name == "restarts"
    key = name.lower() + "r" * restarts
    return key if key in NAMES else name + "r" * restarts


def method_of(config: RunConfig, way: str) -> str:
    """Return the key of a landscape's method; without the w for another library's class with L2."""
    known = method(config.algorithm, config.schedule)
    foreign = Spec.parse("algorithm", config.algorithm).name not in COUPLED
    return known.removesuffix("w") if way == "l2" and foreign else known


def name(algorithm: str) -> str:
    """Return an algorithm's name as the paper spells it; an unknown name ends in capitals."""
    if algorithm in NAMES:
        return NAMES[algorithm]
    body = algorithm.rstrip("wr")
    return body + algorithm[len(body) :].upper()


def titled(labels: Mapping[str, object]) -> str:
    """Return a title from a landscape's labels: texts as they are, numbers after their name."""
    said = [
        value if isinstance(value, str) else f"{name} {value}" for name, value in labels.items()
    ]
    return ", ".join(said) or "all runs"
