"""What rulings are made of, where a landscape does not say it: pairs of runs, seed by seed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median_high, variance

from weightdecay.look import NAMES
from weightdecay.records import Run, RunConfig
from weightdecay.results import Estimate, Exponent, Landscape, difference, with_and_without
from weightdecay.results.budget import optimum
from weightdecay.results.estimate import UNKNOWN, within
from weightdecay.results.exponent import unknown
from weightdecay.studies import rulings
from weightdecay.studies.rulings import HELD, MARGIN, NOT_DECIDED, NOT_HELD, Ruling
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
    """Rule on the difference of two best errors, unless the loser's may lie beyond its grid."""
    return unless_at_edge(rule(claim, difference(one, rival), what), ones=[one], rivals=[rival])


def unless_at_edge(
    ruling: Ruling, *, ones: Sequence[Landscape], rivals: Sequence[Landscape]
) -> Ruling:
    """Take back a ruling where the best of what loses may lie beyond its grid."""
    told = [[(titled(side), _edges(side)) for side in sides] for sides in (ones, rivals)]
    return rulings.unless_beyond(ruling, ones=told[0], rivals=told[1])


def _edges(landscape: Landscape) -> list[str]:
    """Return the edges that the best lies at; there is no decay below 0."""
    below = landscape.best.decay > 0
    return [edge for edge in landscape.edges if edge != "lowest decay" or below]


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


def gains_nothing(claim: str, adam: Landscape) -> Ruling:
    """Rule on whether L2 regularization gains nothing over a decay of 0."""
    some, none = with_and_without(adam)
    if not some.cells or not none.cells:
        return rulings.unseen(claim, "There are no runs with λ = 0, or none with another.")
    what = "the best error with λ = 0 minus the best with L2"
    return compared(rulings.no_worse, claim, what, one=none, rival=some)


def first_half(claim: str, seen: Evidence, adam: Landscape, adamw: Landscape) -> Ruling:
    """Rule on whether the best settings' curves coincide, part by part of training's first half."""
    theirs, ours = seen.fresh(adam), seen.fresh(adamw)
    seeds = sorted(theirs.keys() & ours.keys())
    what, error = "AdamW's mean test error minus Adam's", f"test_{seen.scale.error}"
    parts = []
    for begin, end in _parts(seen.scale.long):
        gaps = [
            _mean_within(ours[seed], begin, end, error)
            - _mean_within(theirs[seed], begin, end, error)
            for seed in seeds
        ]
        parts.append(rulings.alike(f"epochs {begin + 1} to {end}", paired(gaps), what))
    return rulings.all_of(claim, parts)


def _parts(epochs: int) -> list[tuple[int, int]]:
    """Return thirds of the first half: long enough to be certain, too short for gaps to cancel."""
    ends = [round(epochs * part / 6) for part in range(4)]
    return [(begin, end) for begin, end in pairwise(ends) if begin < end]


def _mean_within(run: Run, begin: int, end: int, error: str) -> float:
    """Return the mean error after `begin` epochs and until `end`; each holds until the next."""
    held = [
        getattr(until[-1], error)
        for epoch in range(begin + 1, end + 1)
        if (until := [record for record in run.records if record.epoch <= epoch])
    ]
    return fmean(held) if held else math.nan


def reached(contest: Mapping[str, Landscape], seen: Evidence) -> list[Ruling]:
    """Rule on restarts: how early they are as good, and whether they end better.

    Each side has the setting that other seeds chose for it by their errors at the end.
    """
    at = seen.scale
    first = f"At the first restart, {at.long / at.first_cycle:g} times as early, it is as good"
    claims = (
        "AdamWR reaches AdamW's result much earlier",
        first,
        "Restart variants generalize better in the end",
    )
    if not {"adamw", "sgdw", "adamwr", "sgdwr"} <= contest.keys():
        return [rulings.unseen(claim, "Not all runs are there.") for claim in claims]
    fresh = {name: seen.fresh(landscape) for name, landscape in contest.items()}
    ends = cycle_ends(list(fresh["adamwr"].values()))
    error = f"test_{at.error}"
    found = {end: _difference(fresh["adamwr"], fresh["adamw"], end, error) for end in ends}
    if not found:
        return [rulings.unseen(claim, "No cycle came to its end.") for claim in claims]
    minus = f"AdamWR's error there minus AdamW's after {at.long} epochs"

    def sides(name: str) -> dict[str, list[Landscape]]:
        return {"ones": [contest[f"{name}r"]], "rivals": [contest[name]]}

    finals = [
        unless_at_edge(
            rulings.better(
                NAMES[f"{name}r"],
                _difference(fresh[f"{name}r"], fresh[name], at.restarted, error),
                "its error at the end minus that without restarts",
            ),
            **sides(name),
        )
        for name in ("adamw", "sgdw")
    ]
    return [
        unless_at_edge(_rule_early(claims[0], found, at.long), **sides("adamw")),
        unless_at_edge(rulings.no_worse(first, found[ends[0]], minus), **sides("adamw")),
        rulings.all_of(claims[2], finals),
    ]


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
    if enough and enough[0] == epochs:
        said = "at the end"
    return Ruling(
        claim,
        outcome,
        f"AdamWR's error at its cycles' ends minus AdamW's after {epochs} epochs: {told}. "
        f"Below {rulings.points(MARGIN)}: {said}",
        f"Held if at a cycle's end, in half the epochs or fewer, the interval of that difference "
        f"lies below {rulings.points(MARGIN)}; not held if it lies above at all of these ends.",
    )


def _difference(
    restarted: Mapping[int, Run], plain: Mapping[int, Run], epoch: int, error: str
) -> Estimate:
    """Estimate the error of runs at an epoch less that of others at their end, seed by seed.

    A run that diverged before has the error it ended with.
    """
    return paired(
        [
            getattr([record for record in run.records if record.epoch <= epoch][-1], error)
            - getattr(plain[seed].last, error)
            for seed, run in restarted.items()
            if seed in plain and run.records[0].epoch <= epoch
        ]
    )


def normalized_apart(one: Landscape, other: Landscape) -> Exponent:
    """Estimate how many doublings one's best normalized decay lies above the other's."""
    best = [optimum(landscape) for landscape in (one, other)]
    for found in best:
        if found.why:
            return unknown(found.why)
    assert one.updates is not None
    assert other.updates is not None
    shift = (math.log2(one.updates) - math.log2(other.updates)) / 2
    value = best[0].log_decay - best[1].log_decay + shift
    spread = sum(found.variance for found in best)
    apart = within(value, spread, min(found.freedom for found in best))
    return Exponent(apart.value, apart.low, apart.high)
