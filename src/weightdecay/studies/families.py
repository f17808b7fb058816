"""The methods of the landscapes, with L2 regularization and with decoupled decay."""

from dataclasses import dataclass

from weightdecay.labels import NAMES
from weightdecay.studies.panel import Panel
from weightdecay.studies.scales import Scale


@dataclass(frozen=True)
class Method:
    """An algorithm and how it states its decay; methods of a family share their grids."""

    algorithm: str
    family: str
    way: str


METHODS = {
    "sgd": Method("sgd", "sgd", "l2"),
    "sgdw": Method("sgdw", "sgd", "weight_decay"),
    "adam": Method("adam", "adam", "l2"),
    "adamw": Method("adamw", "adam", "weight_decay"),
    "amsgrad": Method("adam,amsgrad=true", "amsgrad", "l2"),
    "amsgradw": Method("adamw,amsgrad=true", "amsgrad", "weight_decay"),
    "adagrad": Method("torch.optim:Adagrad", "adagrad", "l2"),
    "adagradw": Method("torch.optim:Adagrad", "adagrad", "weight_decay"),
    "rmsprop": Method("torch.optim:RMSprop", "rmsprop", "l2"),
    "rmspropw": Method("torch.optim:RMSprop", "rmsprop", "weight_decay"),
}


def conjectured(at: Scale) -> list[str]:
    """Return the families of a scale on which the paper's conjecture is judged."""
    return [family for family in ("amsgrad", "adagrad", "rmsprop") if family in at.lrs]


def landscape_of(
    at: Scale, name: str, *, schedule: str = "cosine", told: tuple[str, str] | None = None
) -> Panel:
    """Return a method's landscape under a schedule; `told` is added to its name and title."""
    method = METHODS[name]
    decays = at.l2 if method.way == "l2" else at.decays
    axes = {
        **at.common,
        "task": at.task,
        "epochs": at.epochs,
        "seed": at.seeds,
        "algorithm": method.algorithm,
        "schedule": schedule,
        "lr": at.lrs[method.family],
        method.way: decays[method.family],
    }
    called = (name, NAMES[name])
    if told is not None:
        called = (f"{name}, {told[0]}", f"{NAMES[name]}, {told[1]}")
    return Panel(*called, axes, at.error)
