"""The output of `register --json` and `judge --json`. docs/json.md describes every key."""

from collections.abc import Mapping
from typing import Any

from weightdecay.cli.judge import to_decide, verdict
from weightdecay.cli.landscape_json import estimate, regret
from weightdecay.studies.registration import Registration
from weightdecay.studies.second_stage import Judged
from weightdecay.studies.verdict_json import effort_json


def of_registration(found: Registration, otherwise: Mapping[str, float | None]) -> dict[str, Any]:
    """Return the chosen settings and the seeds of the second stage as plain values."""
    return {
        "sha256": found.sha256,
        "runs": len(found.cells()),
        "judges": list(found.judges),
        "carriers": list(found.carriers),
        "compared": [list(pair) for pair in found.compared],
        "chosen": [
            {
                "name": name,
                "lr": method.choice.lr,
                "decay": method.choice.decay,
                "decay_is": method.way,
                "settings": method.settings,
                "edges": list(method.choice.edges),
                "chosen_otherwise": otherwise[name],
            }
            for name, method in found.methods.items()
        ],
    }


def of_judged(found: Registration, seen: Judged, costs: Mapping[str, float]) -> dict[str, Any]:
    """Return comparisons and regrets as plain values."""
    needed = {pair: to_decide(found, seen, pair, costs) for pair in seen.compared}
    return {
        "registered": {
            "date": found.date,
            "commit": found.commit,
            "source": found.source,
            "sha256": found.sha256 or None,
            "edited": found.edited,
        },
        "changed": list(seen.changed),
        "methods": [
            {
                "name": name,
                "lr": found.methods[name].choice.lr,
                "decay": found.methods[name].choice.decay,
                "decay_is": found.methods[name].way,
                "edges": list(found.methods[name].choice.edges),
                "test_errors": seen.errors(name),
                **regret(seen.regrets[name]),
            }
            for name in seen.runs
        ],
        "compared": [
            {
                "one": one,
                "other": other,
                "seeds": judgement.seeds,
                "log_ratio": estimate(judgement.ratio),
                "points": estimate(judgement.points),
                "detectable_log_ratio": judgement.detectable,
                "verdict": verdict(found, (one, other), judgement, needed[one, other]),
                "to_decide": effort_json(needed[one, other]),
                "better": judgement.better,
                "as_good": judgement.as_good,
            }
            for (one, other), judgement in seen.compared.items()
        ],
    }
