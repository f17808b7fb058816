"""What the project asks beyond the paper's figures: its conjecture, and the budget exponents."""

from typing import TYPE_CHECKING

from weightdecay.records import RunConfig
from weightdecay.results import Landscape, budget_exponents
from weightdecay.results.exponent import unknown
from weightdecay.studies import rulings
from weightdecay.studies.differences import compared
from weightdecay.studies.landscape_figures import draw_landscapes
from weightdecay.studies.rulings import Ruling
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import Evidence, NotAtThisScaleError, Study, family_cells
from weightdecay.sweeps import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _conjecture(at: Scale) -> list[RunConfig]:
    return [*family_cells(at, "amsgrad"), *family_cells(at, "adagrad")]


def _draw_conjecture(seen: Evidence, small_print: str) -> "Figure":
    panels = [*seen.pair("amsgrad"), *seen.pair("adagrad")]
    return draw_landscapes(seen, panels, small_print, columns=2)


def _rule_conjecture(seen: Evidence) -> list[Ruling]:
    found = []
    for name, family in (("AMSGrad", "amsgrad"), ("AdaGrad", "adagrad")):
        coupled, decoupled = seen.pair(family)
        if coupled is None or decoupled is None:
            found.append(rulings.unseen(f"The same holds for {name}", "Not all runs are there."))
            continue
        parts = [
            rulings.diagonal("L2 lies on a diagonal", seen.coupling(coupled).exponent),
            rulings.upright("decay stands upright", seen.coupling(decoupled).exponent),
            compared(
                rulings.better,
                "decay is better than L2",
                "the best error with decay minus that with L2",
                one=decoupled,
                rival=coupled,
            ),
        ]
        found.append(rulings.all_of(f"The same holds for {name}", parts))
    return found


CONJECTURE = Study(
    "conjecture",
    "AMSGrad and AdaGrad, with L2 and with decoupled decay",
    _conjecture,
    _draw_conjecture,
    _rule_conjecture,
)


def _exponents(at: Scale) -> list[RunConfig]:
    """Return AdamW's landscapes over epochs, data and batch, each varied alone."""
    whole = at.common.get("data")
    if whole is None:
        raise NotAtThisScaleError(
            f"`scale` must say how many examples are trained on, and that of {at.folder} does not."
        )
    batch = at.common["batch"]
    axes = {**at.common, "task": at.task, "seed": at.seeds, "lr": at.coarse["adam"]}
    axes |= {"algorithm": "adamw", "normalized_decay": at.normalized}
    cells = grid(**axes | {"epochs": list(at.budgets)})
    cells += grid(**axes | {"epochs": at.epochs, "data": [whole // 4, whole // 2]})
    cells += grid(**axes | {"epochs": at.epochs, "batch": [batch // 2, batch * 2]})
    return cells


def _exponent_landscapes(seen: Evidence) -> list[Landscape]:
    at = seen.scale
    whole, batch = at.common["data"], at.common["batch"]
    wanted = [
        *({"epochs": epochs} for epochs in at.budgets),
        *({"data": data} for data in (whole // 4, whole // 2)),
        *({"batch": size} for size in (batch // 2, batch * 2)),
    ]
    here = seen.at_coarse_rates("adam")
    usual = {"data": whole, "batch": batch}
    found = [here.landscape("adamw", "normalized_decay", **usual | one) for one in wanted]
    return [landscape for landscape in found if landscape is not None]


def _draw_exponents(seen: Evidence, small_print: str) -> "Figure":
    panels: list[Landscape | None] = [*_exponent_landscapes(seen)]
    return draw_landscapes(seen, panels, small_print, columns=3, epochs=True)


def _rule_exponents(seen: Evidence) -> list[Ruling]:
    found = budget_exponents(_exponent_landscapes(seen))
    told = {
        "epochs": "λ* ∝ epochs^−e",
        "data": "λ* ∝ data^−e",
        "batch": "λ* ∝ batch^e",
    }
    missing = unknown("Not all landscapes are there.")
    return [
        rulings.between(
            f"The paper's square root: {law}, e = ½",
            found.get(name, missing),
            "e",
            above=0.25,
            below=0.75,
        )
        for name, law in told.items()
    ]


EXPONENTS = Study(
    "exponents",
    "How the best decay moves with epochs, data and batch",
    _exponents,
    _draw_exponents,
    _rule_exponents,
)
