"""The figures of the paper's supplement, except the one on budgets."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from weightdecay.schedules import WarmRestarts
from weightdecay.studies.curve_figures import FIGURE_3, FIGURE_4, draw_contest
from weightdecay.studies.differences import no_worse
from weightdecay.studies.families import landscape_of
from weightdecay.studies.long_runs import long_axes, long_of
from weightdecay.studies.panel import Panel
from weightdecay.studies.scales import Axis, Scale
from weightdecay.studies.study import Claim, Evidence, Study, heatmaps_of, second_scale
from weightdecay.studies.verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _draw_schedule(seen: Evidence, small_print: str) -> "Figure":
    from weightdecay.figures import multipliers

    del seen
    per_epoch = 10  # updates, enough for a smooth line
    return multipliers(
        [("cosine annealing with warm restarts", WarmRestarts(100 * per_epoch, factor=2))],
        updates=1500 * per_epoch,
        updates_per_epoch=per_epoch,
        small_print=small_print,
    )


SUPPLEMENT_1 = Study(
    "supplement-1",
    "The schedule: cycles that end at 100, 300, 700 and 1500",
    panels=lambda _: [],
    draw=_draw_schedule,
)

# By task: learning rates and factors of L2 of Adam at a fixed rate, and epochs if they are not 18
# times a landscape's.
_OF_IMAGES: tuple[Axis, Axis] = (
    ["0.01*2^-6", "0.01*2^-4", "0.01*2^-2", "0.01"],
    ["0.001*2^-8", "0.001*2^-6", "0.001*2^-4", "0.001*2^-2"],
)
STANDARD: Mapping[str, tuple[Axis, Axis]] = {
    "mnist1d": ("2^-12..2^-9", "2^-6..2^-3"),
    "text": ("2^-8..2^-5", "2^-10..2^-7"),
    "cifar10": _OF_IMAGES,
    "imagenet32": _OF_IMAGES,
}
_USUAL = (["2^-12", "2^-10", "2^-8", "2^-6"], ["2^-12", "2^-10", "2^-8", "2^-6"])
#: By task, as many learning rates and decays of AdamW, if they are not all of its landscape.
RIVALS: Mapping[str, tuple[Axis, Axis]] = {
    "mnist1d": ("2^-10..2^-7", "2^-9..2^-6"),
    "text": ("2^-7..2^-4", "2^-8..2^-5"),
}
EPOCHS = {"text": 288}
#: The network of standard Adam, larger than AdamW's, where long runs do not have a larger one.
_MODELS = {
    "mnist1d": "mlp,width=96",
    "text": "transformer,width=48,depth=2,dropout=0",
    "cifar10-small": "convnet,width=96",
    "cifar10-medium": "shakeshake26,width=48",
}
_LONG_ADAM = "adam, at a fixed rate"


def standard_epochs(at: Scale) -> int:
    """Return the number of epochs of standard Adam."""
    return at.among(EPOCHS) or 18 * at.epochs


def _model(at: Scale) -> str:
    return at.among(_MODELS) or long_of(at).model or str(at.common["model"])


def _standard(at: Scale) -> list[Panel]:
    lrs, l2 = at.among(STANDARD) or _USUAL
    epochs = standard_epochs(at)
    axes = {
        **long_axes(at),
        "model": _model(at),
        "algorithm": "adam",
        "lr": lrs,
        "l2": l2,
        "epochs": epochs,
        "schedule": "constant",
        "evaluate_every": at.common.get("evaluate_every", 1),
    }
    title = f"Adam, fixed learning rate, {epochs} epochs"
    lrs, decays = at.among(RIVALS) or (at.lrs["adam"], at.decays["adam"])
    rival = replace(at, lrs={**at.lrs, "adam": lrs}, decays={**at.decays, "adam": decays})
    return [Panel(_LONG_ADAM, title, axes, at.error), landscape_of(rival, "adamw")]


def _matches(claim: str, seen: Evidence) -> Verdict:
    what = "AdamW's best {error} minus that of long standard Adam"
    return no_worse(claim, what, seen, one="adamw", rival=_LONG_ADAM)


def _standard_claims(at: Scale) -> list[Claim]:
    longer = f"{standard_epochs(at) / at.epochs:g} times as long"
    if _model(at) != at.common["model"]:
        longer += " in a larger network"
    return [Claim(f"Standard Adam, {longer}, at best matches AdamW", _matches)]


SUPPLEMENT_2 = Study(
    "supplement-2",
    "Standard Adam, L2 and a fixed learning rate, trained for long",
    panels=_standard,
    draw=heatmaps_of(columns=1, names=[_LONG_ADAM]),
    claims=_standard_claims,
    compared=[("adamw", _LONG_ADAM)],
)
SUPPLEMENT_4 = replace(
    FIGURE_3, name="supplement-4", title="Figure 3 on a second data set", place=second_scale
)
SUPPLEMENT_5 = replace(
    FIGURE_4,
    name="supplement-5",
    title="Figure 4 with training loss",
    draw=partial(draw_contest, loss=True),
)
SUPPLEMENT_6 = replace(
    SUPPLEMENT_5,
    name="supplement-6",
    title="Figure 4 with training loss, on a second data set",
    place=second_scale,
)
