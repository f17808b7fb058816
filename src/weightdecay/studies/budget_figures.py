"""How the best decay moves with the budget: the supplement's Figure 3, and the budget exponents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from weightdecay.labels import LAWS, NAMES
from weightdecay.results import (
    Estimate,
    Exponent,
    Landscape,
    budget_exponents,
    budget_regret,
    pairs_over,
)
from weightdecay.studies import verdicts
from weightdecay.studies.differences import normalized_apart
from weightdecay.studies.panel import Panel
from weightdecay.studies.reasons import Sample
from weightdecay.studies.samples import of_grids
from weightdecay.studies.scales import Axis, Scale
from weightdecay.studies.study import (
    Claim,
    Evidence,
    Judge,
    NotAtThisScaleError,
    NotMeasuredError,
    Study,
    heatmaps_of,
    second_scale,
)
from weightdecay.studies.verdicts import Verdict


@dataclass(frozen=True)
class Grids:
    """Learning rates per method, and normalized decays, of landscapes that vary the budget."""

    sgdw: Axis
    adamw: Axis
    normalized: Axis


_OF_IMAGES = Grids("2^-8..2^-1", "0.01*2^-8..2^-1", [0, "0.025*2^-3..2^5"])
# The medium scales take half steps where best decays are.
GRIDS = {
    "mnist1d": Grids("2^-8..2^-3", "2^-11..2^-6", [0, "2^-6..2^1"]),
    "mnist1d-medium": Grids(
        "2^-8..2^-3", "2^-11..2^-6", [0, "2^-5..2^1", "2^-3.5", "2^-2.5", "2^-1.5", "2^-0.5"]
    ),
    "text": Grids("2^-3..2^0", "2^-7..2^-4", [0, "2^-6..2^0"]),
    "text-medium": Grids(
        "2^-3..2^-1", "2^-8..2^-3", [0, "2^-8..2^0", "2^-3.5", "2^-2.5", "2^-1.5"]
    ),
    "cifar10": _OF_IMAGES,
    "cifar10-small": replace(_OF_IMAGES, normalized=[0, "2^-8..2^0"]),
    "imagenet32": _OF_IMAGES,
}
#: Between these powers, e counts as the paper's ½.
_ROOT = (0.25, 0.75)
#: Seeds, if they are not the scale's. No second stage follows: each seed estimates what the others
#: chose, which takes three.
_SEEDS: dict[str, Axis] = {"mnist1d-small": "0..4", "text-small": "0..2"}
#: Epochs, if they are not a quarter, the same and four times those of a landscape.
_EPOCHS = {"text": (24, 48, 96), "imagenet32": (1, 4, 16)}


def _epochs(at: Scale) -> tuple[int, ...]:
    usual = (-(-at.epochs // 4), at.epochs, 4 * at.epochs)
    return at.among(_EPOCHS) or tuple(dict.fromkeys(usual))


def _grids(at: Scale) -> Grids:
    return at.among(GRIDS) or Grids(at.lrs["sgd"], at.lrs["adam"], [0, "2^-6..2^0"])


def _axes(at: Scale, algorithm: str, way: str) -> dict[str, Any]:
    grids = _grids(at)
    decays = grids.normalized if way == "normalized_decay" else at.decays["adam"]
    seeds = at.among(_SEEDS) or at.seeds
    own = {"task": at.task, "seed": seeds, "epochs": at.epochs, "algorithm": algorithm}
    return {**at.common, **own, "lr": getattr(grids, algorithm), way: decays}


def _row(at: Scale, algorithm: str, way: str, *, task: bool) -> list[Panel]:
    """Return one landscape per budget; with `task`, titles name the task."""
    axes = _axes(at, algorithm, way)
    told = f", {at.task}" if task else ""
    return [
        Panel(
            f"{algorithm}, {way}, {at.task}, {epochs} epochs",
            f"{NAMES[algorithm]}, {epochs} epochs{told}",
            {**axes, "epochs": epochs},
            at.error,
        )
        for epochs in _epochs(at)
    ]


def _rows(at: Scale) -> list[list[Panel]]:
    """Return rows of landscapes: raw and normalized decay, and the latter on the second task."""
    several = at.second is not None
    rows = [
        _row(at, "adamw", "weight_decay", task=several),
        _row(at, "adamw", "normalized_decay", task=several),
    ]
    if several:
        other = second_scale(at)
        rows += [_row(other, name, "normalized_decay", task=True) for name in ("adamw", "sgdw")]
    return rows


def _measured(panels: Sequence[Panel], seen: Evidence) -> list[Landscape]:
    """Return the measured landscapes; raise if there are fewer than two."""
    found = [seen.landscape(panel.name) for panel in panels if panel.name in seen.panels]
    if len(found) < 2:
        raise NotMeasuredError("Some landscapes are missing.")
    return found


def _sample(factor: str, panels: Sequence[Panel], seen: Evidence) -> Sample:
    """Return the runs of those landscapes that differ from another in a factor alone."""
    scapes = {name: seen.landscape(name) for panel in panels if (name := panel.name) in seen.panels}
    varied = {id(one) for pair in pairs_over([*scapes.values()], factor) for one in pair}
    return of_grids(seen, *(name for name, one in scapes.items() if id(one) in varied))


def _normalization_claims(at: Scale) -> list[Claim]:
    raw, own, *others = _rows(at)

    # Both rows measure the same λ*, at other decays.
    rows = [*raw, *own]

    def elsewhere(claim: str, seen: Evidence) -> Verdict:
        if not others:
            raise NotMeasuredError(f"The scale of {at.folder} has no second task.")
        middle = [row[len(row) // 2].name for row in (own, *others)]
        tasks = (seen.landscape(name).config.task for name in middle[:2])
        what = "doublings between the best λ_norm"
        parts = []
        for told, pair in ((" and ".join(tasks), middle[:2]), ("AdamW and SGDW", middle[1:])):
            found, by = normalized_apart(*map(seen.landscape, pair)), of_grids(seen, *pair)
            parts.append(verdicts.between(told, found, what, above=-1, below=1, by=by))
        return verdicts.all_of(claim, parts)

    return [
        Claim("Longer budgets want a smaller λ", _power("epochs", rows, 0, math.inf)),
        Claim("The best λ_norm is alike over budgets", _power("epochs", rows, *_ROOT)),
        Claim("The best λ_norm is alike over data sets, and for SGDW and AdamW", elsewhere),
        Claim("Over epochs, keeping λ is much worse than keeping λ_norm", _worse("epochs", own)),
    ]


def _power(factor: str, panels: Sequence[Panel], above: float, below: float) -> Judge:
    """Judge whether the power of the best decay lies between two numbers."""

    def judge(claim: str, seen: Evidence) -> Verdict:
        exponents = budget_exponents(_measured(panels, seen))
        if factor not in exponents:
            raise NotMeasuredError("Some landscapes are missing.")
        found = _estimated(exponents[factor].fixed)
        what, by = f"e in {LAWS[factor]} at a fixed α", _sample(factor, panels, seen)
        return verdicts.between(claim, found, what, above=above, below=below, by=by)

    return judge


def _estimated(found: Exponent) -> Exponent | Estimate:
    """Return an exponent of which nothing else is to be said as an estimate."""
    if found.value is None or found.bound or found.why:
        return found
    return Estimate(found.value, found.low, found.high, found.freedom)


def _worse(factor: str, panels: Sequence[Panel]) -> Judge:
    """Judge whether λ that is carried as it is costs a margin more than λ_norm that is kept."""

    def judge(claim: str, seen: Evidence) -> Verdict:
        scapes = _measured(panels, seen)
        pairs = pairs_over(scapes, factor)
        if not pairs:
            raise NotMeasuredError("Some landscapes are missing.")
        found = budget_regret(pairs, 0.0, instead=0.5)
        if found.why or found.beyond:
            raise NotMeasuredError(found.why or "A carried decay lies beyond the grid.")
        what = f"{{error}} with λ kept over {factor} minus that with λ_norm kept"
        error, metric = fmean(used.best.mean for _, used in pairs), scapes[0].metric
        by = _sample(factor, panels, seen)
        return verdicts.worse(claim, found.cost, what, rival=error, metric=metric, by=by)

    return judge


SUPPLEMENT_3 = Study(
    "supplement-3",
    "Landscapes over three budgets: raw and normalized decay, and on a second data set",
    panels=lambda at: [panel for row in _rows(at) for panel in row],
    draw=heatmaps_of(columns=3),
    budgets=True,
    claims=_normalization_claims,
)


def _varied(at: Scale) -> list[Panel]:
    """Return AdamW's landscapes over epochs, data and batch, each varied alone."""
    whole, batch = at.common.get("data"), at.common["batch"]
    if whole is None:
        raise NotAtThisScaleError(
            f"`scale` must say how many examples are trained on, and that of {at.folder} does not. "
            "Choose a task whose scale does, such as mnist1d or text."
        )
    axes = _axes(at, "adamw", "normalized_decay")
    panels = _row(at, "adamw", "normalized_decay", task=False)
    for name, words, amounts in (
        ("data", "{} examples", (whole // 4, whole // 2)),
        ("batch", "batch {}", (batch // 2, batch * 2)),
    ):
        for amount in amounts:
            told = f"{at.epochs} epochs, {words.format(amount)}"
            own: Mapping[str, Any] = {**axes, name: amount}
            panels.append(Panel(f"adamw, {told}", f"AdamW, {told}", own, at.error))
    return panels


def _exponent_claims(at: Scale) -> list[Claim]:
    """Return the claims on data and batch; the supplement's figure judges the one on epochs."""
    panels = _varied(at)
    return [
        *(
            Claim(f"The paper's square root: {LAWS[factor]}, e = ½", _power(factor, panels, *_ROOT))
            for factor in ("data", "batch")
        ),
        Claim("Over data, keeping λ is much worse than keeping λ_norm", _worse("data", panels)),
    ]


EXPONENTS = Study(
    "exponents",
    "How the best decay moves with epochs, data and batch",
    panels=_varied,
    draw=heatmaps_of(columns=3),
    budgets=True,
    claims=_exponent_claims,
)
