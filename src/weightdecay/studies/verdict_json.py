"""Verdicts as plain values for JSON: their text, and the numbers that decided them."""

import math
from typing import Any

from weightdecay.results import Estimate, Exponent
from weightdecay.studies.deciding import Blocked, Effort, effort, smallest
from weightdecay.studies.formats import because, named, rule
from weightdecay.studies.reasons import Comparison, Difference, Quantity, Size, StepGaps
from weightdecay.studies.verdicts import AnyOf, Measures, Verdict


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values: its text, and under "measured" its numbers.

    "to_decide" is what would decide it: None if that is unknown, or if it is decided.
    Errors are fractions. Numbers have six digits; one that is unknown or infinite is None.
    """
    told: dict[str, Any] = {
        "claim": verdict.claim,
        "outcome": verdict.outcome,
        "because": because(verdict, timed=False),
        "rule": rule(verdict),
        "to_decide": effort_json(effort(verdict)),
        "measured": None,
    }
    if verdict.at_edge is not None:
        told["at_edge"] = {name: list(edges) for name, edges in verdict.at_edge}
    match verdict.reason:
        case Difference() as one:
            told["measured"] = {
                "what": named(one),
                **_bounded(one),
                "metric": one.metric,
                "rival": _known(one.rival),
                "detectable": _known(smallest(one)),
            }
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
            name = "detectable" if one.apart is None else "detectable_log_ratio"
            told["measured"][name] = _known(smallest(one))
        case StepGaps() as gaps:
            told["measured"] = {
                name: value if isinstance(value, int) else _known(value)
                for name, value in vars(gaps).items()
            }
        case Size() as effect:
            told["measured"] = {
                "what": named(effect),
                "log_ratio": _interval(effect.found),
                "points": None if effect.points is None else _interval(effect.points),
                "size": _known(effect.size),
                "metric": effect.metric,
                "detectable_log_ratio": _known(smallest(effect)),
            }
        case Measures() as several:
            told["parts"] = [as_json(part) for part in several.parts]
            told["beside"] = {one.what: _interval(one.found) for one in several.beside}
        case AnyOf(parts) | (tuple() as parts):
            told["parts"] = [as_json(part) for part in parts]
    return told


def effort_json(one: Effort | Blocked | None) -> dict[str, Any] | None:
    """Return the seeds that would decide a claim, and their runs; None if they are unknown.

    The same runs take other times when they are trained again, so that these are left out.
    """
    if not isinstance(one, Effort):
        return None
    return {
        "part": one.part,
        "interval": _known(1 - 0.05 / one.share),
        "seeds": math.ceil(one.seeds) if math.isfinite(one.seeds) else None,
        "runs": one.runs,
    }


def _bounded(one: Difference | Quantity) -> dict[str, float | None]:
    return {**_interval(one.found), "above": _known(one.above), "below": _known(one.below)}


def _interval(found: Estimate | Exponent) -> dict[str, float | None]:
    return {name: _known(getattr(found, name)) for name in ("value", "low", "high")}


def _known(value: float | None) -> float | None:
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
