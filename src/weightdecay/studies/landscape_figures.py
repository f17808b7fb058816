"""Figures 1 and 2, and the paper's conjecture: landscapes over learning rate and decay."""

from functools import partial

from weightdecay.labels import NAMES, SCHEDULES
from weightdecay.records import Spec
from weightdecay.results import Judgement, contrast
from weightdecay.results.judging import contrasted
from weightdecay.studies import verdicts
from weightdecay.studies.differences import (
    better,
    edges_of,
    gains_nothing,
    no_worse,
    same_steps,
    unless_at_edge,
)
from weightdecay.studies.families import conjectured, landscape_of
from weightdecay.studies.panel import Panel
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import (
    DECAY,
    NO_DECAY,
    Claim,
    Evidence,
    Study,
    Twins,
    heatmaps_of,
)
from weightdecay.studies.verdicts import Comparison, Verdict
from weightdecay.sweeps import grid

_FIXED, _DROPS, _COSINE = "a fixed rate", "step-drop", "cosine"


def _schedules(at: Scale) -> dict[str, str]:
    """Return Figure 1's schedules; drops are by a factor 10, at 30 %, 60 % and 80 % of training."""
    places = "/".join(repr(round(part * at.epochs, 6)) for part in (0.3, 0.6, 0.8))
    return {_FIXED: "constant", _DROPS: f"drops,at={places}", _COSINE: "cosine"}


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


def _better_under_every(claim: str, seen: Evidence) -> Verdict:
    parts = [
        better(
            f"with {name}",
            "AdamW's best {error} minus Adam's",
            seen,
            one=f"adamw, {name}",
            rival=f"adam, {name}",
        )
        for name in (_FIXED, _DROPS, _COSINE)
    ]
    return verdicts.all_of(claim, parts)


def _gains_more(claim: str, seen: Evidence) -> Verdict:
    """Judge whether decoupling gains more under each better schedule than at a fixed rate."""
    what = "AdamW's best {error} minus Adam's, less the same at a fixed rate"
    fixed_adam, fixed_adamw = (seen.landscape(f"{one}, {_FIXED}") for one in ("adam", "adamw"))
    parts = []
    for name in (_DROPS, _COSINE):
        adam, adamw = (seen.landscape(f"{one}, {name}") for one in ("adam", "adamw"))
        if (judged := _contrast_of_seconds(seen, name)) is not None:
            reason = Comparison(what, judged, metric=adam.metric)
            edged = [
                edges_of(seen, f"{one}, {schedule}")
                for one, schedule in (
                    ("adamw", name),
                    ("adam", _FIXED),
                    ("adam", name),
                    ("adamw", _FIXED),
                )
            ]
            verdict = verdicts.compared(f"with {name}", reason)
            parts.append(verdicts.unless_beyond(verdict, ones=edged[:2], rivals=edged[2:]))
            continue
        found = contrast((adamw, adam), (fixed_adamw, fixed_adam))
        verdict = verdicts.better(f"with {name}", found, what, metric=adam.metric)
        sides = {"ones": [adamw, fixed_adam], "rivals": [adam, fixed_adamw]}
        parts.append(unless_at_edge(verdict, **sides))
    return verdicts.all_of(claim, parts)


def _contrast_of_seconds(seen: Evidence, name: str) -> Judgement | None:
    """Return AdamW against Adam under a schedule, over the same at a fixed rate, by fresh seeds."""
    if seen.second is None:
        return None
    pairs = [
        (seen.second.runs[f"adamw, {one}"], seen.second.runs[f"adam, {one}"])
        for one in (name, _FIXED)
    ]
    seeds = ({run.config.seed for run in runs} for pair in pairs for runs in pair)
    if len(set.intersection(*seeds)) < 2:
        return None
    return contrasted(*pairs, chance=seen.second.worst)


def _cosine_is_best(claim: str, seen: Evidence) -> Verdict:
    parts = [
        better(
            f"than with {name}",
            "AdamW's best {error} with cosine minus that",
            seen,
            one=f"adamw, {_COSINE}",
            rival=f"adamw, {name}",
        )
        for name in (_FIXED, _DROPS)
    ]
    return verdicts.all_of(claim, parts)


FIGURE_1 = Study(
    "figure-1",
    "Adam and AdamW under a fixed learning rate, step-drops and cosine annealing",
    panels=_under_schedules,
    draw=heatmaps_of(columns=3),
    claims=lambda _: [
        Claim("Decoupled decay is better than L2 under every schedule", _better_under_every),
        Claim("It gains more under better schedules than at a fixed rate", _gains_more),
        Claim("Cosine annealing is the best of the schedules", _cosine_is_best),
    ],
    compared=[
        *((f"adamw, {name}", f"adam, {name}") for name in (_FIXED, _DROPS, _COSINE)),
        *(
            (f"{one}, {_COSINE}", f"{one}, {name}")
            for one in ("adam", "adamw")
            for name in (_FIXED, _DROPS)
        ),
    ],
    carried=[f"{one}, {name}" for one in ("adam", "adamw") for name in (_FIXED, _DROPS, _COSINE)],
)


def _twins(at: Scale) -> dict[str, list[Twins]]:
    """Return pairs of one-epoch runs with λ′ = λ/α; for SGD without momentum they are equal."""
    axes = {**at.common, "task": at.task, "epochs": 1, "seed": 0, "schedule": "cosine"}

    def pair(coupled: str, decoupled: str, lr: float, decay: float) -> Twins:
        [one] = grid(algorithm=coupled, lr=lr, l2=decay / lr, **axes)
        [other] = grid(algorithm=decoupled, lr=lr, weight_decay=decay, **axes)
        return one, other

    settings = [(lr, decay) for lr in (2**-7, 2**-5, 2**-3) for decay in (2**-9, 2**-7)]
    return {
        "SGD": [pair("sgd,momentum=0", "sgdw,momentum=0", *setting) for setting in settings],
        "Adam": [pair("adam", "adamw", lr / 8, decay) for lr, decay in settings],
    }


def _upright(name: str, claim: str, seen: Evidence) -> Verdict:
    return verdicts.upright(claim, seen.exponent(name))


def _diagonal(name: str, claim: str, seen: Evidence) -> Verdict:
    return verdicts.diagonal(claim, seen.exponent(name))


def _better(one: str, rival: str, what: str, claim: str, seen: Evidence) -> Verdict:
    return better(claim, what, seen, one=one, rival=rival)


def _rivals(claim: str, seen: Evidence) -> Verdict:
    parts = [
        no_worse(
            f"against {told}",
            f"AdamW's best {{error}} minus {told}'s",
            seen,
            one="adamw",
            rival=name,
        )
        for name, told in (("sgd", "SGD"), ("sgdw", "SGDW"))
    ]
    return verdicts.all_of(claim, parts)


FIGURE_2 = Study(
    "figure-2",
    "SGD, SGDW, Adam and AdamW over learning rate and decay",
    panels=lambda at: [landscape_of(at, name) for name in ("sgd", "sgdw", "adam", "adamw")],
    twins=_twins,
    draw=heatmaps_of(columns=2),
    claims=lambda _: [
        Claim(
            "L2 and decay are the same for SGD, and not for Adam",
            lambda claim, seen: same_steps(claim, seen.twins),
        ),
        Claim("SGD's basin lies on a diagonal", partial(_diagonal, "sgd")),
        Claim("SGDW's basin stands upright", partial(_upright, "sgdw")),
        Claim("Adam's basin lies on a diagonal", partial(_diagonal, "adam")),
        Claim("AdamW's basin stands upright", partial(_upright, "adamw")),
        Claim(
            "Adam gains nothing from L2 over λ = 0",
            lambda claim, seen: gains_nothing(claim, seen, "adam"),
        ),
        Claim(
            "AdamW's best is better than Adam's",
            partial(_better, "adamw", "adam", "AdamW's best {error} minus Adam's"),
        ),
        Claim("AdamW's best rivals SGD's and SGDW's", _rivals),
    ],
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


def _the_same_holds(coupled: str, decoupled: str, claim: str, seen: Evidence) -> Verdict:
    what = "the best {error} with decay minus that with L2"
    parts = [
        _diagonal(coupled, "L2 lies on a diagonal", seen),
        _upright(decoupled, "decay stands upright", seen),
        _better(decoupled, coupled, what, "decay is better than L2", seen),
    ]
    return verdicts.all_of(claim, parts)


CONJECTURE = Study(
    "conjecture",
    "Other adaptive methods, with L2 and with decoupled decay",
    panels=lambda at: [
        landscape_of(at, name) for one in conjectured(at) for name in (one, f"{one}w")
    ],
    draw=heatmaps_of(columns=2),
    claims=lambda at: [
        Claim(f"The same holds for {NAMES[one]}", partial(_the_same_holds, one, f"{one}w"))
        for one in conjectured(at)
    ],
    compared=[("amsgradw", "amsgrad"), ("adagradw", "adagrad"), ("rmspropw", "rmsprop")],
    carried=[name for one in ("amsgrad", "adagrad", "rmsprop") for name in (one, f"{one}w")],
)
