"""Verdicts as plain values for JSON: their text, and the numbers that decided them."""

import math
from typing import Any

from weightdecay.results import Estimate, Exponent
from weightdecay.studies.formats import because, named, rule
from weightdecay.studies.verdicts import (
    AnyOf,
    Comparison,
    Difference,
    Measures,
    Quantity,
    Size,
    StepGaps,
    Verdict,
)


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values: its text, and under "measured" its numbers.

    Errors are fractions. Numbers have six digits; one that is unknown or infinite is None.
    """
    told: dict[str, Any] = {
        "claim": verdict.claim,
        "outcome": verdict.outcome,
        "because": because(verdict),
        "rule": rule(verdict),
        "measured": None,
    }
    if verdict.at_edge is not None:
        told["at_edge"] = {name: list(edges) for name, edges in verdict.at_edge}
    match verdict.reason:
        case Difference() as one:
            told["measured"] = {"what": named(one), **_bounded(one), "metric": one.metric}
        case Comparison() as one:
            found = one.found
            told["measured"] = {
                "what": named(one),
                "seeds": found.seeds,
                "log_ratio": _interval(found.ratio),
                "points": _interval(found.points),
                "detectable_log_ratio": _known(found.detectable),
                "margin": _known(one.margin),
                "metric": one.metric,
            }
        case Quantity() as one:
            told["measured"] = {"what": one.what, **_bounded(one)}
        case StepGaps() as gaps:
            told["measured"] = {
                name: value if isinstance(value, int) else _known(value)
                for name, value in vars(gaps).items()
            }
        case Size() as effect:
            told["measured"] = {
                "what": named(effect),
                "log_ratio": _interval(effect.found),
                "size": _known(effect.size),
                "metric": effect.metric,
            }
        case Measures() as several:
            told["parts"] = [as_json(part) for part in several.parts]
            told["beside"] = {one.what: _interval(one.found) for one in several.beside}
        case AnyOf(parts) | (tuple() as parts):
            told["parts"] = [as_json(part) for part in parts]
    return told


def _bounded(one: Difference | Quantity) -> dict[str, float | None]:
    return {**_interval(one.found), "above": _known(one.above), "below": _known(one.below)}


def _interval(found: Estimate | Exponent) -> dict[str, float | None]:
    return {name: _known(getattr(found, name)) for name in ("value", "low", "high")}


def _known(value: float | None) -> float | None:
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
