"""The figures of the paper's supplement."""

import math
from typing import TYPE_CHECKING

from weightdecay.records import RunConfig
from weightdecay.results import Landscape, budget_exponents
from weightdecay.schedules import WarmRestarts
from weightdecay.studies import rulings
from weightdecay.studies.curve_figures import (
    draw_restarts,
    draw_settings,
    long_axes,
    restart_cells,
    rule_restarts,
    rule_settings,
    settings_cells,
)
from weightdecay.studies.differences import compared, normalized_apart
from weightdecay.studies.landscape_figures import draw_landscapes
from weightdecay.studies.rulings import Ruling
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import Evidence, Study, family_cells, second_scale
from weightdecay.sweeps import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _no_cells(at: Scale) -> list[RunConfig]:
    del at
    return []


def _draw_schedule(seen: Evidence, small_print: str) -> "Figure":
    from weightdecay.figures import multipliers

    del seen
    an_epoch = 10  # updates, enough for a smooth line
    return multipliers(
        [("cosine annealing with warm restarts", WarmRestarts(100 * an_epoch, factor=2))],
        updates=1500 * an_epoch,
        updates_per_epoch=an_epoch,
        small_print=small_print,
    )


SUPPLEMENT_1 = Study(
    "supplement-1",
    "The schedule: cycles that end at 100, 300, 700 and 1500",
    _no_cells,
    _draw_schedule,
)


def _standard(at: Scale) -> list[RunConfig]:
    lrs, l2 = at.standard
    often = at.common.get("evaluate_every", 1)
    last = {"epochs": at.longest, "schedule": "constant", "evaluate_every": often}
    axes = {**long_axes(at), **last}
    own = grid(algorithm="adam", lr=lrs, l2=l2, **axes)
    return [*own, *(cell for cell in family_cells(at, "adam") if cell.algorithm == "adamw")]


def _draw_standard(seen: Evidence, small_print: str) -> "Figure":
    long = _long_adam(seen)
    return draw_landscapes(seen, [long], small_print, columns=1, schedule=True, epochs=True)


def _long_adam(seen: Evidence) -> Landscape | None:
    at = seen.scale
    long = {"epochs": at.longest, "model": at.model_of_long_runs}
    return seen.landscape("adam", "l2", schedule="constant", **long)


def _rule_standard(seen: Evidence) -> list[Ruling]:
    long, (_, short) = _long_adam(seen), seen.pair("adam")
    times = seen.scale.longest / seen.scale.epochs
    claim = f"Standard Adam, {times:g} times as long, at best matches AdamW"
    if long is None or short is None:
        return [rulings.unseen(claim, "Not all landscapes are there.")]
    what = "AdamW's best error minus that of long standard Adam"
    return [compared(rulings.no_worse, claim, what, one=short, rival=long)]


SUPPLEMENT_2 = Study(
    "supplement-2",
    "Standard Adam, L2 and a fixed learning rate, trained for long",
    _standard,
    _draw_standard,
    _rule_standard,
)


def _budget_cells(at: Scale, algorithm: str, way: str) -> list[RunConfig]:
    family = "sgd" if algorithm == "sgdw" else "adam"
    values = at.normalized if way == "normalized_decay" else at.decays[family]
    axes = {**at.common, "task": at.task, "seed": at.seeds, "lr": at.coarse[family]}
    return grid(algorithm=algorithm, epochs=list(at.budgets), **{way: values}, **axes)


def _normalization(at: Scale) -> list[RunConfig]:
    cells = [
        *_budget_cells(at, "adamw", "weight_decay"),
        *_budget_cells(at, "adamw", "normalized_decay"),
    ]
    if at.second is not None:
        other = second_scale(at)
        cells += _budget_cells(other, "adamw", "normalized_decay")
        cells += _budget_cells(other, "sgdw", "normalized_decay")
    return cells


def _budget_rows(seen: Evidence) -> list[list[Landscape | None]]:
    """Return rows of landscapes over budgets: raw and normalized, and of the second task."""
    at = seen.scale

    def row(where: Scale, algorithm: str, way: str) -> list[Landscape | None]:
        family = "sgd" if algorithm == "sgdw" else "adam"
        here = Evidence(where, seen.runs).at_coarse_rates(family)
        return [here.landscape(algorithm, way, epochs=epochs) for epochs in where.budgets]

    rows = [row(at, "adamw", "weight_decay"), row(at, "adamw", "normalized_decay")]
    if at.second is not None:
        other = second_scale(at)
        rows += [
            row(other, "adamw", "normalized_decay"),
            row(other, "sgdw", "normalized_decay"),
        ]
    return rows


def _draw_normalization(seen: Evidence, small_print: str) -> "Figure":
    panels = [panel for row in _budget_rows(seen) for panel in row]
    return draw_landscapes(seen, panels, small_print, columns=3, epochs=True)


def _rule_normalization(seen: Evidence) -> list[Ruling]:
    rows = _budget_rows(seen)
    raw, own = ([panel for panel in row if panel is not None] for row in rows[:2])
    longer, alike = (
        "Longer budgets want a smaller λ",
        "The best λ_norm is alike over budgets",
    )
    elsewhere = "The best λ_norm is alike over data sets, and for SGDW and AdamW"
    if len(raw) < 2 or len(own) < 2:
        missing = "Not all landscapes are there."
        return [rulings.unseen(claim, missing) for claim in (longer, alike, elsewhere)]
    falls, root = (budget_exponents(row)["epochs"] for row in (raw, own))
    what = "e in λ* ∝ epochs^−e"
    found = [
        rulings.between(longer, falls, what, above=0, below=math.inf),
        rulings.between(alike, root, what, above=0.25, below=0.75),
    ]
    middle = [row[len(row) // 2] for row in rows[1:]]
    if len(middle) < 3 or any(panel is None for panel in middle):
        return [*found, rulings.unseen(elsewhere, "The second task's landscapes are not there.")]
    here, there, sgdw = (panel for panel in middle if panel is not None)
    what = "doublings between the best λ_norm"
    parts = [
        rulings.between(name, normalized_apart(*pair), what, above=-1, below=1)
        for name, pair in (
            (f"{here.config.task} and {there.config.task}", (here, there)),
            ("AdamW and SGDW", (there, sgdw)),
        )
    ]
    return [*found, rulings.all_of(elsewhere, parts)]


SUPPLEMENT_3 = Study(
    "supplement-3",
    "Landscapes over three budgets: raw and normalized decay, and on a second data set",
    _normalization,
    _draw_normalization,
    _rule_normalization,
)


def _settings_elsewhere(at: Scale) -> list[RunConfig]:
    return settings_cells(second_scale(at))


def _elsewhere(seen: Evidence) -> Evidence:
    return Evidence(second_scale(seen.scale), seen.runs)


SUPPLEMENT_4 = Study(
    "supplement-4",
    "Figure 3 on a second data set",
    _settings_elsewhere,
    lambda seen, small_print: draw_settings(_elsewhere(seen), small_print),
    lambda seen: rule_settings(_elsewhere(seen)),
    curves=True,
)
SUPPLEMENT_5 = Study(
    "supplement-5",
    "Figure 4 with training loss",
    restart_cells,
    lambda seen, small_print: draw_restarts(seen, small_print, loss=True),
    rule_restarts,
    curves=True,
)


def _restarts_elsewhere(at: Scale) -> list[RunConfig]:
    return restart_cells(second_scale(at))


SUPPLEMENT_6 = Study(
    "supplement-6",
    "Figure 4 with training loss, on a second data set",
    _restarts_elsewhere,
    lambda seen, small_print: draw_restarts(_elsewhere(seen), small_print, loss=True),
    lambda seen: rule_restarts(_elsewhere(seen)),
    curves=True,
)
