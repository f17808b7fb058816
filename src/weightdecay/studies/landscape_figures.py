"""Figures 1 and 2, and the paper's conjecture: landscapes over learning rate and decay."""

from functools import partial

from weightdecay.labels import NAMES, SCHEDULES
from weightdecay.records import Spec
from weightdecay.studies.families import conjectured, landscape_of
from weightdecay.studies.landscape_claims import (
    COSINE,
    DROPS,
    FIXED,
    claims_on_methods,
    claims_under_schedules,
    the_same_holds,
)
from weightdecay.studies.panel import Panel
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import DECAY, NO_DECAY, Claim, Study, Twins, heatmaps_of
from weightdecay.sweeps import grid


def _schedules(at: Scale) -> dict[str, str]:
    """Return Figure 1's schedules; drops are by a factor 10, at 30 %, 60 % and 80 % of training."""
    places = "/".join(repr(round(part * at.epochs, 6)) for part in (0.3, 0.6, 0.8))
    return {FIXED: "constant", DROPS: f"drops,at={places}", COSINE: "cosine"}


def _under_schedules(at: Scale) -> list[Panel]:
    return [
        landscape_of(
            at,
            method,
            schedule=schedule,
            told=(name, SCHEDULES[Spec.parse("schedule", schedule).name]),
        )
        for method in ("adam", "adamw")
        for name, schedule in _schedules(at).items()
    ]


FIGURE_1 = Study(
    "figure-1",
    "Adam and AdamW under a fixed learning rate, step-drops and cosine annealing",
    panels=_under_schedules,
    draw=heatmaps_of(columns=3),
    claims=lambda _: claims_under_schedules(),
    compared=[
        *((f"adamw, {name}", f"adam, {name}") for name in (FIXED, DROPS, COSINE)),
        *(
            (f"{one}, {COSINE}", f"{one}, {name}")
            for one in ("adam", "adamw")
            for name in (FIXED, DROPS)
        ),
    ],
    carried=[f"{one}, {name}" for one in ("adam", "adamw") for name in (FIXED, DROPS, COSINE)],
)


def _twins(at: Scale) -> dict[str, list[Twins]]:
    """Return pairs of one-epoch runs with λ′ = λ/α; for SGD without momentum they are equal.

    In bfloat16, rounding alone would tell them apart.
    """
    axes = {**at.common, "task": at.task, "epochs": 1, "seed": 0, "schedule": "cosine"}
    axes["precision"] = "float32"

    def pair(coupled: str, decoupled: str, lr: float, decay: float) -> Twins:
        [one] = grid(algorithm=coupled, lr=lr, l2=decay / lr, **axes)
        [other] = grid(algorithm=decoupled, lr=lr, weight_decay=decay, **axes)
        return one, other

    settings = [(lr, decay) for lr in (2**-7, 2**-5, 2**-3) for decay in (2**-9, 2**-7)]
    return {
        "SGD": [pair("sgd,momentum=0", "sgdw,momentum=0", *setting) for setting in settings],
        "Adam": [pair("adam", "adamw", lr / 8, decay) for lr, decay in settings],
    }


FIGURE_2 = Study(
    "figure-2",
    "SGD, SGDW, Adam and AdamW over learning rate and decay",
    panels=lambda at: [landscape_of(at, name) for name in ("sgd", "sgdw", "adam", "adamw")],
    twins=_twins,
    draw=heatmaps_of(columns=2),
    claims=lambda _: claims_on_methods(),
    compared=[
        ("adamw", "adam"),
        ("adamw", "sgd"),
        ("adamw", "sgdw"),
        ("sgd", "adam"),
        (f"adam{NO_DECAY}", f"adam{DECAY}"),
        (f"sgd{NO_DECAY}", f"sgd{DECAY}"),
    ],
    carried=["sgd", "sgdw", "adam", "adamw"],
)


CONJECTURE = Study(
    "conjecture",
    "Other adaptive methods, with L2 and with decoupled decay",
    panels=lambda at: [
        landscape_of(at, name) for one in conjectured(at) for name in (one, f"{one}w")
    ],
    draw=heatmaps_of(columns=2),
    claims=lambda at: [
        Claim(f"The same holds for {NAMES[one]}", partial(the_same_holds, one, f"{one}w"))
        for one in conjectured(at)
    ],
    compared=[("amsgradw", "amsgrad"), ("adagradw", "adagrad"), ("rmspropw", "rmsprop")],
    carried=[name for one in ("amsgrad", "adagrad", "rmsprop") for name in (one, f"{one}w")],
)
