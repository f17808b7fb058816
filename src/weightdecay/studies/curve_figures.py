"""Figures 3 and 4: curves of single settings, and the best result so far at any time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weightdecay.labels import NAMES
from weightdecay.records import Run
from weightdecay.results import against_training_loss, anytime, curve
from weightdecay.studies.curve_claims import claims_on_settings
from weightdecay.studies.long_runs import long_axes, long_of
from weightdecay.studies.panel import Panel
from weightdecay.studies.restart_claims import claims_on_restarts, cycle_ends
from weightdecay.studies.scales import Axis, Scale
from weightdecay.studies.study import Evidence, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weightdecay.figures import Curves, Trace


#: The learning rate of Figure 3, and by task a dozen factors of L2, and normalized decays: seven as
#: in the paper, or as many, with half steps.
_LR = 0.001
SETTINGS: Mapping[str, tuple[Axis, Axis]] = {
    "mnist1d": ([0, "2^-13..2^-3"], [0, "2^-6..2^0", "2^-3.5", "2^-2.5", "2^-1.5", "2^-0.5"]),
    "text": ([0, "2^-15..2^-5"], [0, "2^-8..2^-2", "2^-5.5", "2^-4.5", "2^-3.5", "2^-2.5"]),
    "cifar10": ([0, "0.001*2^-8..2^2"], "0.025*2^-3..2^3"),
    "cifar10-small": ([0, "0.001*2^-6..2^4"], "2^-7..2^-1"),
    "imagenet32": ([0, "0.001*2^-8..2^2"], "0.025*2^-3..2^3"),
}
_USUAL_SETTINGS: tuple[Axis, Axis] = (
    [0, "2^-14..2^-4"],
    [0, "2^-7..2^-1", "2^-5.5", "2^-4.5", "2^-3.5", "2^-2.5"],
)


def _settings(at: Scale) -> list[Panel]:
    l2, normalized = at.among(SETTINGS) or _USUAL_SETTINGS
    axes = {**long_axes(at), "lr": _LR}
    adam = {**axes, "algorithm": "adam", "l2": l2}
    adamw = {**axes, "algorithm": "adamw", "normalized_decay": normalized}
    return [Panel("adam", "Adam", adam, at.error), Panel("adamw", "AdamW", adamw, at.error)]


def _draw_settings(seen: Evidence, small_print: str) -> "Figure":
    """Draw curves of all settings, their final errors, and error against training loss."""
    from weightdecay.figures import Curves, Scatter, Settings, Trace, curves

    scapes = {name: one.landscape for name, one in seen.panels.items()}
    percent = seen.metric is None
    upward = seen.tested + " (%)" * percent

    def traces(of: str) -> list[Trace]:
        return [
            Trace(curve(seen[name].runs_at(_LR, decay), of), name)
            for name, scape in scapes.items()
            for decay in scape.decays
        ]

    error = f"test_{seen.scale.error}"
    points = []
    for name, scape in scapes.items():
        best = {cell.decay for cell in scape.ranked[:3]}
        runs = [run for run in seen[name].runs if getattr(run.config, scape.way) in best]
        points.append((name, against_training_loss(runs, error)))
    return curves(
        [
            _training_loss(traces("train_loss")),
            Curves(_title(seen.tested), traces(error), upward=upward, percent=percent),
            Settings(f"Final {seen.tested}", list(scapes.items()), _LR, upward=upward),
            Scatter("The three best settings of each", points, upward=upward, percent=percent),
        ],
        small_print=small_print,
    )


def _title(text: str) -> str:
    """Return a text that begins with a capital; a metric's own capitals stay."""
    return text[:1].upper() + text[1:]


def _training_loss(traces: "Sequence[Trace]") -> "Curves":
    from weightdecay.figures import Curves

    upward = "training loss"
    return Curves("Training loss", traces, upward=upward, percent=False, log_y=True)


FIGURE_3 = Study(
    "figure-3",
    "Factors of Adam's L2 beside normalized decays of AdamW, at α = 0.001",
    panels=_settings,
    draw=_draw_settings,
    claims=lambda _: claims_on_settings(_LR),
    curves=True,
    compared=[("adamw", "adam")],
)

# By task, the learning rates and decays from which each curve of Figure 4 is chosen: factors of L2
# for Adam, normalized decays for the others. Methods with an r at the end use restarts; Adam's grid
# with them is the same.
_Choices = Mapping[str, tuple[Axis, Axis]]
_OF_IMAGES: _Choices = {
    "adam": ([0.001], "0.001*2^-8..2^2"),  # the paper does not say which factor it used
    "adamw": ([0.001], [0.025]),
    "sgdw": ([0.05], [0.025]),
    "adamwr": ([0.001], [0.025]),
    "sgdwr": ([0.05], [0.025]),
}
CHOICES: Mapping[str, _Choices] = {
    "mnist1d": {
        "adam": ("2^-10..2^-6", "2^-7..2^-3"),
        "adamw": ("2^-12..2^-8", "2^-4..2^0"),
        "sgdw": ("2^-9..2^-5", "2^-4..2^0"),
        "adamwr": ("2^-11..2^-7", "2^-4..2^0"),
        "sgdwr": ("2^-8..2^-4", "2^-4..2^0"),
    },
    "text": {
        "adam": ("2^-6..2^-4", "2^-13..2^-10"),
        "adamw": ("2^-6..2^-4", "2^-2..2^1"),
        "sgdw": ("2^-2..2^0", "2^-6..2^-3"),
        "adamwr": ("2^-7..2^-5", "2^-4..2^-1"),
        "sgdwr": ("2^-4..2^-2", "2^-6..2^-3"),
    },
    "cifar10": _OF_IMAGES,
    "imagenet32": _OF_IMAGES,
}
_USUAL_CHOICES: _Choices = {
    "adam": ("2^-11..2^-8", "2^-13..2^-8"),
    "adamw": ("2^-11..2^-8", "2^-6..2^-1"),
    "sgdw": ("2^-6..2^-3", "2^-6..2^-1"),
    "adamwr": ("2^-11..2^-8", "2^-6..2^-1"),
    "sgdwr": ("2^-6..2^-3", "2^-6..2^-1"),
}
_CONTESTANTS = ("adam", "adamw", "sgdw", "adamr", "adamwr", "sgdwr")
# Seeds of these curves, if they are more than those of landscapes.
_SEEDS: Mapping[str, Axis] = {
    "cifar10-small": "0..3",
    "cifar10-medium": "0..3",
}


def _contest(at: Scale) -> list[Panel]:
    long = long_of(at)
    restarts = f"restarts,factor=2,first={long.first_cycle}"
    axes = {**long_axes(at), "seed": at.among(_SEEDS) or at.seeds}
    choices = at.among(CHOICES) or _USUAL_CHOICES
    found = []
    for name in _CONTESTANTS:
        algorithm = name.removesuffix("r")
        lrs, decays = choices[algorithm if algorithm == "adam" else name]
        own: dict[str, Any] = {"algorithm": algorithm, "lr": lrs}
        own["l2" if algorithm == "adam" else "normalized_decay"] = decays
        if name.endswith("r"):
            own |= {"schedule": restarts, "epochs": long.restarted}
        found.append(Panel(name, NAMES[name], {**axes, **own}, at.error))
    return found


def draw_contest(seen: Evidence, small_print: str, *, loss: bool = False) -> "Figure":
    """Draw the result of stopping at each time; with restarts, that of the last finished cycle.

    Each seed is shown at a setting that others chose; a single seed chooses its own.
    """
    from weightdecay.figures import Curves, Trace, curves

    best = {
        name: list(seen.fresh(name).values())
        or one.runs_at(one.landscape.best.lr, one.landscape.best.decay)
        for name, one in seen.panels.items()
    }

    def traces(of: str) -> list[Trace]:
        return [Trace(anytime(runs, of), name, _marks(name, runs)) for name, runs in best.items()]

    percent = seen.metric is None
    shown = traces(f"test_{seen.scale.error}")
    upward = seen.tested + " (%)" * percent
    panels = [Curves(_title(seen.tested), shown, upward=upward, percent=percent)]
    if loss:
        panels.append(_training_loss(traces("train_loss")))
    return curves(panels, columns=1, small_print=small_print)


def _marks(name: str, runs: Sequence[Run]) -> tuple[float, ...]:
    return tuple(map(float, cycle_ends(runs))) if name.endswith("r") else ()


FIGURE_4 = Study(
    "figure-4",
    "Adam, AdamW, SGDW, and all three with restarts: what one has at any time",
    panels=_contest,
    draw=draw_contest,
    claims=lambda _: claims_on_restarts(),
    curves=True,
    compared=[
        ("adamwr", "adamw"),
        ("sgdwr", "sgdw"),
        ("sgdwr", "adam"),
        ("sgdwr", "adamr"),
        ("adamw", "sgdw"),
        ("adamwr", "sgdwr"),
    ],
)
