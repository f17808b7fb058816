"""Figures 3 and 4: curves of single settings, and what one has at any time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weightdecay.records import Run, RunConfig
from weightdecay.results import (
    Landscape,
    against_training_loss,
    anytime,
    curve,
    equal_loss,
    landscapes,
)
from weightdecay.results.landscape import way_of
from weightdecay.studies import rulings
from weightdecay.studies.differences import compared, cycle_ends, first_half, reached
from weightdecay.studies.rulings import Ruling
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import Evidence, Study
from weightdecay.sweeps import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def long_axes(at: Scale) -> dict[str, Any]:
    """Return what long runs have in common."""
    own = {"model": at.model_of_long_runs, "task": at.task, "epochs": at.long, "seed": at.seeds}
    return {**at.common, **own, "evaluate_every": at.drawn}


def settings_cells(at: Scale) -> list[RunConfig]:
    """Return a dozen factors of Adam's L2 and seven normalized decays of AdamW, at one rate."""
    lr, l2, normalized = at.third
    axes = {**long_axes(at), "lr": lr}
    return [
        *grid(algorithm="adam", l2=l2, **axes),
        *grid(algorithm="adamw", normalized_decay=normalized, **axes),
    ]


def draw_settings(seen: Evidence, small_print: str) -> "Figure":
    """Draw curves of all settings, what they came to, and error against training loss."""
    from weightdecay.figures import Curves, Scatter, Settings, Trace, curves

    wanted = {config.identity for config in settings_cells(seen.scale)}
    runs: dict[str, list[Run]] = {"adam": [], "adamw": []}
    for run in seen.runs:
        if run.config.identity in wanted:
            runs[run.config.algorithm].append(run)
    error = seen.scale.error
    scapes = {name: landscapes(own, of=error)[0] for name, own in runs.items() if own}

    def of_setting(name: str, decays: Sequence[float]) -> list[Run]:
        return [run for run in runs[name] if getattr(run.config, way_of(run.config)) in decays]

    def panel(title: str, of: str, *, percent: bool) -> Curves:
        traces = [
            Trace(curve(of_setting(name, [decay]), of), name)
            for name, scape in scapes.items()
            for decay in scape.decays
        ]
        upward = "test error (%)" if percent else "training loss"
        return Curves(title, traces, upward=upward, percent=percent, log_y=not percent)

    best = {name: [cell.decay for cell in scape.ranked[:3]] for name, scape in scapes.items()}
    points = [
        (name, against_training_loss(of_setting(name, decays), f"test_{error}"))
        for name, decays in best.items()
    ]
    return curves(
        [
            panel("Training loss", "train_loss", percent=False),
            panel("Test error", f"test_{error}", percent=True),
            Settings("Final test error", list(scapes.items()), seen.scale.third[0]),
            Scatter("The three best settings of each", points),
        ],
        small_print=small_print,
    )


def rule_settings(seen: Evidence) -> list[Ruling]:
    """Rule on learning curves, and on generalization at equal training loss."""
    at = seen.scale
    long = {"epochs": at.long, "model": at.model_of_long_runs}
    adam = seen.landscape("adam", "l2", **long)
    adamw = seen.landscape("adamw", "normalized_decay", **long)
    alike = "The best curves of Adam and AdamW coincide in the first half"
    fitter = "AdamW generalizes better than Adam at equal training loss"
    better = f"AdamW's best is better than Adam's at α = {at.third[0]:g}"
    if adam is None or adamw is None:
        missing = "Not all runs are there."
        return [rulings.unseen(claim, missing) for claim in (alike, fitter, better)]
    return [
        first_half(alike, seen, adam, adamw),
        rulings.better(
            fitter,
            equal_loss(adamw, adam),
            "AdamW's test error minus Adam's at equal training loss",
        ),
        compared(rulings.better, better, "AdamW's best error minus Adam's", one=adamw, rival=adam),
    ]


FIGURE_3 = Study(
    "figure-3",
    "A dozen factors of Adam's L2 beside seven normalized decays of AdamW, at α = 0.001",
    settings_cells,
    draw_settings,
    rule_settings,
    curves=True,
)


def contestant(at: Scale, name: str) -> dict[str, Any]:
    """Return the algorithm, schedule and epochs of a curve: a name that ends in r restarts."""
    if not name.endswith("r"):
        return {"algorithm": name, "schedule": "cosine", "epochs": at.long}
    schedule = f"restarts,factor=2,first={at.first_cycle}"
    return {"algorithm": name.removesuffix("r"), "schedule": schedule, "epochs": at.restarted}


def _way(name: str) -> str:
    return "l2" if name == "adam" else "normalized_decay"


def restart_cells(at: Scale) -> list[RunConfig]:
    """Return what each curve is chosen from: Adam, AdamW and SGDW, and those two with restarts."""
    axes = {**long_axes(at), "seed": at.curve_seeds}
    return [
        cell
        for name, (lrs, decays) in at.fourth.items()
        for cell in grid(**{**axes, **contestant(at, name), "lr": lrs, _way(name): decays})
    ]


def _contest(seen: Evidence) -> dict[str, Landscape]:
    """Return those settings that each curve is chosen from and that there are runs of."""
    at = seen.scale
    found = {
        name: seen.landscape(way=_way(name), model=at.model_of_long_runs, **contestant(at, name))
        for name in at.fourth
    }
    return {name: landscape for name, landscape in found.items() if landscape is not None}


def draw_restarts(seen: Evidence, small_print: str, *, loss: bool = False) -> "Figure":
    """Draw what one would have had at any time; with restarts that is the last cycle's end.

    Each seed's run is of the setting that the others choose; one seed alone chooses its own.
    """
    from weightdecay.figures import Curves, Trace, curves

    best = {
        name: list(seen.fresh(landscape).values())
        or seen.runs_of(landscape, landscape.best.lr, landscape.best.decay)
        for name, landscape in _contest(seen).items()
    }

    def panel(title: str, of: str, *, percent: bool) -> Curves:
        traces = [Trace(anytime(runs, of), name, _marks(name, runs)) for name, runs in best.items()]
        upward = f"{title.lower()} (%)" if percent else title.lower()
        return Curves(title, traces, upward=upward, percent=percent, log_y=not percent)

    title = "Top-5 test error" if seen.scale.error == "error_top5" else "Test error"
    panels = [panel(title, f"test_{seen.scale.error}", percent=True)]
    if loss:
        panels.append(panel("Training loss", "train_loss", percent=False))
    return curves(panels, columns=1, small_print=small_print)


def _marks(name: str, runs: Sequence[Run]) -> tuple[float, ...]:
    return tuple(map(float, cycle_ends(runs))) if name.endswith("r") else ()


def rule_restarts(seen: Evidence) -> list[Ruling]:
    """Rule on how early restarts reach what is reached without them, and on what they end at."""
    return reached(_contest(seen), seen)


FIGURE_4 = Study(
    "figure-4",
    "Adam, AdamW, SGDW, AdamWR and SGDWR: what one has at any time",
    restart_cells,
    draw_restarts,
    rule_restarts,
    curves=True,
)
