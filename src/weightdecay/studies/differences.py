"""What rulings are made of, where a landscape does not say it: pairs of runs, seed by seed."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from weightdecay.records import Record, Run
from weightdecay.results import Estimate, Landscape
from weightdecay.results.budget import optimum
from weightdecay.results.estimate import UNKNOWN, within
from weightdecay.studies import rulings
from weightdecay.studies.rulings import HELD, MARGIN, NOT_DECIDED, NOT_HELD, Ruling
from weightdecay.studies.scales import Scale
from weightdecay.studies.study import Evidence

#: Relative difference of training losses below which two runs took the same steps, and above which
#: they did not. Rounding in float32 is far below the first.
SAME, OTHER = 1e-3, 1e-2


def paired(differences: Sequence[float]) -> Estimate:
    """Estimate a mean difference from one number a seed."""
    if len(differences) < 2:
        return UNKNOWN
    spread = variance(differences) / len(differences)
    return within(fmean(differences), spread, len(differences) - 1)


def apart(one: Estimate, other: Estimate) -> Estimate:
    """Estimate the difference of two numbers that were measured apart."""
    value = one.value - other.value
    width = math.hypot(one.high - one.value, other.high - other.value)
    return Estimate(value, value - width, value + width)


def same_steps(seen: Evidence) -> Ruling:
    """Rule on Proposition 1: λ′ = λ/α makes L2 and decay the same for SGD, and not for Adam."""
    apart_by = {
        family: [
            abs(one - other) / other
            for one, other in _pairs(seen, *names)
            if math.isfinite(one) and math.isfinite(other)
        ]
        for family, names in (
            ("SGD", ("sgd,momentum=0", "sgdw,momentum=0")),
            ("Adam", ("adam", "adamw")),
        )
    }
    claim = "L2 and decay are the same for SGD, and not for Adam"
    if not all(apart_by.values()):
        return rulings.unseen(claim, "The pairs of runs are not there.")
    largest, typical = max(apart_by["SGD"]), sorted(apart_by["Adam"])[len(apart_by["Adam"]) // 2]
    outcome = HELD if largest < SAME and typical > OTHER else NOT_HELD
    because = (
        f"training losses of the first epoch differ by {largest:.1e} at most for SGD, and by "
        f"{typical:.1e} (median) for Adam, in {len(apart_by['SGD'])} pairs each"
    )
    rule = (
        f"Held if, with λ′ = λ/α, training losses of the first epoch differ by less than {SAME:g} "
        f"in all pairs of SGD without momentum, and by more than {OTHER:g} in half of Adam's."
    )
    return Ruling(claim, outcome, because, rule)


def _pairs(seen: Evidence, coupled: str, decoupled: str) -> list[tuple[float, float]]:
    ones = seen.some(algorithm=coupled, epochs=1, task=seen.scale.task)
    others = seen.some(algorithm=decoupled, epochs=1, task=seen.scale.task)
    found = []
    for one in ones:
        for other in others:
            decay, l2 = other.config.weight_decay or 0.0, one.config.l2 or 0.0
            same = one.config.lr == other.config.lr
            if same and math.isclose(decay, l2 * one.config.lr):
                found.append((_loss(one), _loss(other)))
    return found


def _loss(run: Run) -> float:
    return math.nan if run.last.train_loss is None else run.last.train_loss


def gap_of(claim: str, gain: Estimate) -> Ruling:
    """Rule on whether nothing is gained: a difference that is negative if something is."""
    opposite = Estimate(-gain.value, -gain.high, -gain.low)
    what = "the best error with λ = 0 less the best with L2"
    return rulings.no_worse(claim, opposite, what)


def first_half(seen: Evidence, adam: Landscape, adamw: Landscape) -> Ruling:
    """Rule on whether the best settings' curves coincide in the first half of training."""
    halves = []
    for landscape in (adam, adamw):
        best = landscape.best
        wanted = {landscape.way: best.decay, "lr": best.lr, "algorithm": landscape.config.algorithm}
        runs = seen.some(**wanted, task=seen.scale.task, epochs=landscape.config.epochs)
        halves.append({run.config.seed: _mean_of_half(run.records) for run in runs})
    seeds = sorted(halves[0].keys() & halves[1].keys())
    found = paired([halves[1][seed] - halves[0][seed] for seed in seeds])
    return rulings.alike(
        "The best curves of Adam and AdamW coincide in the first half",
        found,
        "AdamW's mean test error over the first half less Adam's",
    )


def _mean_of_half(records: Sequence[Record]) -> float:
    half = records[: max(1, len(records) // 2)]
    return fmean(record.test_error for record in half)


def reached(
    plain: Mapping[str, list[Run]], restarted: Mapping[str, list[Run]], at: Scale
) -> list[Ruling]:
    """Rule on restarts: how early they are as good, and whether they end better."""
    early = "AdamWR reaches AdamW's result much earlier"
    last = "Restart variants generalize better in the end"
    if not all((*plain.values(), *restarted.values())):
        return [rulings.unseen(claim, "Not all runs are there.") for claim in (early, last)]
    ends = [record.epoch for record in restarted["adamw"][0].records if record.cycle_ended]
    found = {end: _difference(restarted["adamw"], plain["adamw"], end) for end in ends}
    enough = [end for end, less in found.items() if less.high < MARGIN]
    sure = [end for end, less in found.items() if less.low > MARGIN]
    factor = at.long / enough[0] if enough else math.nan
    outcome = NOT_DECIDED
    if enough and factor >= 2:
        outcome = HELD
    elif set(ends[:-1]) <= set(sure):
        outcome = NOT_HELD
    told = "; ".join(f"epoch {end}: {rulings.points_of(less)}" for end, less in found.items())
    said = f"{factor:.1f} times as early" if enough else "at no cycle's end surely"
    ruling = Ruling(
        early,
        outcome,
        f"AdamWR's error at its cycles' ends less AdamW's after {at.long} epochs: {told}. "
        f"Within {rulings.points(MARGIN)[1:]}: {said}",
        f"Held if at a cycle's end, in half the epochs or fewer, the interval of that difference "
        f"lies below {rulings.points(MARGIN)}; not held if it lies above at all ends but the last.",
    )
    finals = [
        rulings.better(
            f"{name.upper().replace('ADAM', 'Adam')}R",
            _difference(restarted[name], plain[name], at.long),
            "its final error less that without restarts",
        )
        for name in ("adamw", "sgdw")
    ]
    return [ruling, rulings.all_of(last, finals)]


def _difference(restarted: list[Run], plain: list[Run], epoch: int) -> Estimate:
    """Estimate the error of runs at an epoch less that of others at their end, seed by seed."""
    ends = {run.config.seed: run.last.test_error for run in plain}
    return paired(
        [
            record.test_error - ends[run.config.seed]
            for run in restarted
            for record in run.records
            if record.epoch == epoch and run.config.seed in ends
        ]
    )


def normalized_apart(one: Landscape, other: Landscape) -> Estimate:
    """Estimate how many doublings one's best normalized decay lies above the other's."""
    best = [optimum(landscape) for landscape in (one, other)]
    if any(math.isnan(found.log_decay) or found.edge for found in best):
        return UNKNOWN
    assert one.updates is not None and other.updates is not None  # noqa: PT018
    shift = (math.log2(one.updates) - math.log2(other.updates)) / 2
    value = best[0].log_decay - best[1].log_decay + shift
    spread = sum(found.variance for found in best)
    return within(value, spread, min(found.freedom for found in best))
