"""What rulings are made of, where a landscape does not say it: pairs of runs, seed by seed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median_high, variance
from typing import Any

from weightdecay.look import NAMES
from weightdecay.records import Run, RunConfig
from weightdecay.results import Estimate, Landscape, difference
from weightdecay.results.budget import optimum
from weightdecay.results.estimate import UNKNOWN, within
from weightdecay.studies import rulings
from weightdecay.studies.rulings import HELD, MARGIN, NOT_DECIDED, NOT_HELD, Ruling
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import Evidence, titled

#: Relative difference of training losses below which two runs took the same steps, and above which
#: they did not. Rounding in float32 is far below the first.
SAME, OTHER = 1e-3, 1e-2


def paired(differences: Sequence[float]) -> Estimate:
    """Estimate a mean difference from one number a seed."""
    if len(differences) < 2:
        return UNKNOWN
    spread = variance(differences) / len(differences)
    return within(fmean(differences), spread, len(differences) - 1)


def compared(
    rule: Callable[[str, Estimate, str], Ruling],
    claim: str,
    what: str,
    *,
    one: Landscape,
    rival: Landscape,
) -> Ruling:
    """Rule on the difference of two best errors, unless the rival's may lie beyond its grid."""
    edges = [edge for edge in rival.edges if edge != "lowest decay" or rival.best.decay > 0]
    return rulings.unless_beyond(rule(claim, difference(one, rival), what), titled(rival), edges)


def apart(one: Estimate, other: Estimate) -> Estimate:
    """Estimate the difference of two numbers that were measured apart."""
    value = one.value - other.value
    width = math.hypot(one.high - one.value, other.high - other.value)
    return Estimate(value, value - width, value + width)


def same_steps(seen: Evidence) -> Ruling:
    """Rule on Proposition 1: λ′ = λ/α makes L2 and decay the same for SGD, and not for Adam."""
    sgd = _gaps(seen, "sgd,momentum=0", "sgdw,momentum=0")
    adam = _gaps(seen, "adam", "adamw")
    claim = "L2 and decay are the same for SGD, and not for Adam"
    if not sgd or not adam:
        return rulings.unseen(claim, "The pairs of runs are not there.")
    largest, typical = max(sgd), median_high(adam)
    outcome = NOT_DECIDED
    if largest < SAME and typical > OTHER:
        outcome = HELD
    elif largest > OTHER or typical < SAME:
        outcome = NOT_HELD
    because = (
        f"training losses of the first epoch differ by {largest:.1e} at most in {len(sgd)} pairs "
        f"of SGD, and by {typical:.1e} (median) in {len(adam)} of Adam"
    )
    rule = (
        f"Held if, with λ′ = λ/α, training losses of the first epoch differ by less than {SAME:g} "
        f"of the loss in all pairs of SGD without momentum, and by more than {OTHER:g} in half of "
        f"Adam's; not held if by more than {OTHER:g} in a pair of SGD, or by less than {SAME:g} in "
        "more than half of Adam's."
    )
    return Ruling(claim, outcome, because, rule)


def _gaps(seen: Evidence, coupled: str, decoupled: str) -> list[float]:
    """Return by how much of its loss each run of an epoch differs from its twin, λ′ = λ/α.

    Where one of the two diverged they differ without end; where both did, nothing is known.
    """
    ones = seen.some(algorithm=coupled, epochs=1, task=seen.scale.task)
    others = seen.some(algorithm=decoupled, epochs=1, task=seen.scale.task)
    return [
        abs(_loss(one) - _loss(other)) / min(_loss(one), _loss(other))
        for one in ones
        for other in others
        if _are_twins(one.config, other.config) and min(_loss(one), _loss(other)) < math.inf
    ]


def _are_twins(one: RunConfig, other: RunConfig) -> bool:
    if one.l2 is None or other.weight_decay is None:
        return False
    turned = replace(one, algorithm=other.algorithm, l2=None, weight_decay=other.weight_decay)
    return turned == other and math.isclose(other.weight_decay, one.l2 * one.lr)


def _loss(run: Run) -> float:
    return math.inf if run.last.train_loss is None else run.last.train_loss


def gains_nothing(claim: str, gain: Estimate) -> Ruling:
    """Rule on whether L2 gains nothing: a difference that is negative if it gains something."""
    opposite = Estimate(-gain.value, -gain.high, -gain.low)
    what = "the best error with λ = 0 minus the best with L2"
    return rulings.no_worse(claim, opposite, what)


def first_half(claim: str, seen: Evidence, adam: Landscape, adamw: Landscape) -> Ruling:
    """Rule on whether the best settings' curves coincide in the first half of training."""
    halves = []
    for landscape in (adam, adamw):
        setting: dict[str, Any] = {"lr": landscape.best.lr, landscape.way: landscape.best.decay}
        best = replace(landscape.config, **setting)
        runs = [run for run in seen.runs if replace(run.config, seed=best.seed) == best]
        halves.append({run.config.seed: _mean_of_half(run) for run in runs})
    seeds = sorted(halves[0].keys() & halves[1].keys())
    found = paired([halves[1][seed] - halves[0][seed] for seed in seeds])
    return rulings.alike(
        claim,
        found,
        "AdamW's mean test error over the first half minus Adam's",
    )


def _mean_of_half(run: Run) -> float:
    """Return the mean test error of the epochs in the first half, or until the run diverged."""
    half = [record.test_error for record in run.records if 2 * record.epoch <= run.config.epochs]
    return fmean(half) if half else math.nan


def reached(
    plain: Mapping[str, list[Run]], restarted: Mapping[str, list[Run]], at: Scale
) -> list[Ruling]:
    """Rule on restarts: how early they are as good, and whether they end better."""
    early = "AdamWR reaches AdamW's result much earlier"
    last = "Restart variants generalize better in the end"
    if not all((*plain.values(), *restarted.values())):
        return [rulings.unseen(claim, "Not all runs are there.") for claim in (early, last)]
    ends = cycle_ends(restarted["adamw"])
    found = {end: _difference(restarted["adamw"], plain["adamw"], end) for end in ends}
    finals = [
        rulings.better(
            NAMES[f"{name}r"],
            _difference(restarted[name], plain[name], ends[-1] if ends else at.long),
            "its error at the last cycle's end minus the final one without restarts",
        )
        for name in ("adamw", "sgdw")
    ]
    return [_rule_early(early, found, at.long), rulings.all_of(last, finals)]


def cycle_ends(runs: Sequence[Run]) -> list[int]:
    """Return the epochs at which cycles end: of the run that came farthest."""
    return sorted({record.epoch for run in runs for record in run.records if record.cycle_ended})


def _rule_early(claim: str, found: Mapping[int, Estimate], epochs: int) -> Ruling:
    """Rule on differences at cycles' ends: whether one in half the epochs is as good as the end."""
    soon = [less for end, less in found.items() if 2 * end <= epochs]
    enough = [end for end, less in found.items() if less.high < MARGIN]
    outcome = NOT_DECIDED
    if any(less.high < MARGIN for less in soon):
        outcome = HELD
    elif soon and all(less.low > MARGIN for less in soon):
        outcome = NOT_HELD
    told = "; ".join(f"epoch {end}: {rulings.points_of(less)}" for end, less in found.items())
    said = f"{epochs / enough[0]:.1f} times as early" if enough else "at no cycle's end surely"
    return Ruling(
        claim,
        outcome,
        f"AdamWR's error at its cycles' ends minus AdamW's after {epochs} epochs: {told}. "
        f"Below {rulings.points(MARGIN)}: {said}",
        f"Held if at a cycle's end, in half the epochs or fewer, the interval of that difference "
        f"lies below {rulings.points(MARGIN)}; not held if it lies above at all of these ends.",
    )


def _difference(restarted: list[Run], plain: list[Run], epoch: int) -> Estimate:
    """Estimate the error of runs at an epoch less that of others at their end, seed by seed.

    A run that diverged before has the error it ended with.
    """
    ends = {run.config.seed: run.last.test_error for run in plain}
    return paired(
        [
            [record.test_error for record in run.records if record.epoch <= epoch][-1]
            - ends[run.config.seed]
            for run in restarted
            if run.config.seed in ends and run.records[0].epoch <= epoch
        ]
    )


def normalized_apart(one: Landscape, other: Landscape) -> Estimate:
    """Estimate how many doublings one's best normalized decay lies above the other's."""
    best = [optimum(landscape) for landscape in (one, other)]
    unsure = any(math.isnan(found.log_decay) or found.edge for found in best)
    if unsure or one.updates is None or other.updates is None:
        return UNKNOWN
    shift = (math.log2(one.updates) - math.log2(other.updates)) / 2
    value = best[0].log_decay - best[1].log_decay + shift
    spread = sum(found.variance for found in best)
    return within(value, spread, min(found.freedom for found in best))
