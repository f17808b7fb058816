"""The output of `weightdecay reproduce --json`. docs/json.md describes every key."""

from pathlib import Path
from typing import Any

from weightdecay.cli.landscape_json import cell, estimate, exponent, regret
from weightdecay.site import doubts
from weightdecay.studies import verdict_json
from weightdecay.studies.findings import Findings
from weightdecay.studies.landscape_numbers import Numbers


def as_json(found: Findings, page: Path, *, drawn: bool) -> dict[str, Any]:
    """Return a figure's verdicts, numbers and files as plain values."""
    return {
        "name": found.study.name,
        "title": found.study.title,
        "runs": len(found.runs),
        "planned": len(found.study.cells(found.scale)),
        "verdicts": [verdict_json.as_json(verdict) for verdict in found.verdicts],
        "landscapes": [_landscape(one) for one in found.numbers],
        "doubts": doubts.lines(found.doubts),
        "picture": page.with_name("figure.png") if drawn else None,
        "report": page,
    }


def _landscape(one: Numbers) -> dict[str, Any]:
    return {
        "panel": one.panel,
        "label": one.label,
        "s": exponent(one.exponent),
        "s_in_torch": None if one.in_torch is None else exponent(one.in_torch),
        "s_below": exponent(one.below),
        "s_above": exponent(one.above),
        "s_second": exponent(one.check),
        **regret(one.transfer),
        "best": cell(one.best),
        "regret": {"mean": estimate(one.regret.mean), "worst": estimate(one.regret.worst)},
        "sensitivity": estimate(one.sensitivity),
        "interaction": estimate(one.interaction),
        "tied": one.tied,
        "settings": one.settings,
    }
