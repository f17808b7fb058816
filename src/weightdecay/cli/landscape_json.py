"""The output of `weightdecay landscape --json`. docs/landscape.md describes every key."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightdecay.results import (
    Cell,
    Doubts,
    Estimate,
    Exponent,
    Range,
    Recommendation,
    TransferRegret,
)
from weightdecay.site import doubts as said
from weightdecay.site.plain_rules import alone
from weightdecay.site.rules import sentence

if TYPE_CHECKING:
    from weightdecay.cli.sources import Source
    from weightdecay.site import Advised

_CONFIG = ("task", "model", "algorithm", "schedule", "epochs", "batch", "data")


def as_json(
    path: Path, source: "Source", found: "Sequence[Advised]", doubtful: Doubts
) -> dict[str, Any]:
    """Return everything as plain values. What is unknown or not finite is None."""
    return {
        "source": str(path),
        "complete": source.complete,
        "columns": source.columns,
        "notes": source.notes,
        "doubts": said.lines(doubtful),
        "landscapes": [_landscape(one) for one in found],
        "tuner": None if source.tuned is None else source.tuned.values(),
    }


def _landscape(one: "Advised") -> dict[str, Any]:
    scape = one.landscape
    cells = scape.cells.values()
    return {
        "title": one.title,
        **{name: scape.labels.get(name) for name in _CONFIG},
        "decay_is": scape.way,
        "updates": scape.updates,
        "of": scape.of,
        "chosen_on": scape.chosen_on,
        "tested_on": scape.tested_on,
        "settings": len(cells),
        "runs": sum(len(cell.seeds) for cell in cells),
        "seeds": sorted({seed for cell in cells for seed in cell.seeds}),
        "lowest_cell": cell(scape.best),
        "recommendation": None if one.advice is None else _advice(one.advice),
    }


def _advice(advice: Recommendation) -> dict[str, Any]:
    decays, knobs = advice.decays, advice.knobs
    return {
        "lr": _range(advice.lr),
        "weight_decay": _range(decays.weight_decay),
        "normalized_decay": _range(decays.normalized),
        "torch_weight_decay": _range(decays.torch),
        "l2": _range(decays.l2),
        "best_run": advice.best_run,
        "differ": advice.differ,
        "test_error": estimate(advice.error),
        "no_interval": advice.no_interval or None,
        "without_decay": None if advice.without_decay is None else cell(advice.without_decay),
        "tied": advice.tied,
        "s": exponent(knobs.exponent),
        "s_from": "surface" if knobs.fitted else "coupling",
        "s_below": exponent(advice.coupling.below),
        "s_above": exponent(advice.coupling.above),
        "s_second": exponent(advice.coupling.check),
        "rule": knobs.rule,
        "possible_rules": list(knobs.possible),
        "disagree": knobs.contradicted,
        **regret(knobs.regret),
        "may_stay": alone(advice)[0],
        "sentence": sentence(advice),
        "add": [
            {
                "knob": one.knob,
                "beyond": one.end,
                "values": list(one.values),
                "best_is_near": one.edge,
            }
            for one in advice.add
        ],
        "repeat": None
        if advice.repeat is None
        else {
            "lr": list(advice.repeat.lrs),
            "knob": advice.repeat.knob,
            "decay": list(advice.repeat.decays),
            "seeds": list(advice.repeat.seeds),
        },
    }


def regret(found: TransferRegret) -> dict[str, Any]:
    """Return what each rule costs: over all pairs of learning rates, and for each of them."""
    judged = "fresh seeds" if found.fresh else "seeds left out"
    return {
        "costs": _costs(found.costs),
        "costs_by_pair": [
            {
                "tuned_at": tuned,
                "used_at": used,
                "costs": _costs(costs),
                "rules_out_of_grid": list(found.of_pair((tuned, used)).beyond),
            }
            for (tuned, used), costs in found.pairs.items()
        ],
        "costs_from": (judged if found.tied else "estimate") if found.costs else None,
        "least_costly_rule": found.least,
        "tied_rules": list(found.tied),
        "rules_out_of_grid": list(found.beyond),
        "why_no_costs": found.why or None,
    }


def _costs(costs: Mapping[float, Estimate]) -> dict[str, Any]:
    return {f"{rule:g}": estimate(cost) for rule, cost in costs.items()}


def cell(one: Cell) -> dict[str, Any]:
    """Return a setting's errors as plain values."""
    return {
        "lr": one.lr,
        "decay": one.decay,
        "score": _known(one.score),
        "test_error": _known(one.mean),
        "standard_error": _known(one.standard_error),
        "seeds": len(one.seeds),
    }


def _range(one: Range | None) -> dict[str, float | None] | None:
    return None if one is None else _three(one.value, one.low, one.high)


def estimate(one: Estimate) -> dict[str, float | None]:
    """Return an estimate and its interval."""
    return _three(one.value, one.low, one.high)


def exponent(one: Exponent) -> dict[str, Any]:
    """Return an exponent, its interval, and why it is unknown if it is."""
    return {**_three(one.value, one.low, one.high), "bound": one.bound, "why": one.why or None}


def _three(value: float | None, low: float, high: float) -> dict[str, float | None]:
    return {"value": _known(value), "low": _known(low), "high": _known(high)}


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
