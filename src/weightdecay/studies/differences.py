"""What verdicts are made of, where a landscape does not say it: pairs of runs, seed by seed."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median_high, variance

from weightdecay.records import Run
from weightdecay.results import Estimate, Exponent, Landscape, difference, with_and_without
from weightdecay.results.budget import optimum
from weightdecay.results.estimate import UNKNOWN, within
from weightdecay.results.exponent import unknown
from weightdecay.site import Verdict
from weightdecay.studies import verdicts
from weightdecay.studies.formats import points, points_of
from weightdecay.studies.panel import Measurement, titled
from weightdecay.studies.study import NotMeasuredError, TwinRuns
from weightdecay.studies.verdicts import HELD, MARGIN, NOT_DECIDED, NOT_HELD

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
    rule: Callable[[str, Estimate, str], Verdict],
    claim: str,
    what: str,
    *,
    one: Landscape,
    rival: Landscape,
) -> Verdict:
    """Rule on the difference of two best errors, unless the loser's may lie beyond its grid."""
    return unless_at_edge(rule(claim, difference(one, rival), what), ones=[one], rivals=[rival])


def unless_at_edge(
    verdict: Verdict, *, ones: Sequence[Landscape], rivals: Sequence[Landscape]
) -> Verdict:
    """Take back a verdict where the best of what loses may lie beyond its grid."""
    told = [[(titled(side), _edges(side)) for side in sides] for sides in (ones, rivals)]
    return verdicts.unless_beyond(verdict, ones=told[0], rivals=told[1])


def _edges(landscape: Landscape) -> list[str]:
    """Return the edges that the best lies at; there is no decay below 0."""
    below = landscape.best.decay > 0
    return [edge for edge in landscape.edges if edge != "lowest decay" or below]


def same_steps(claim: str, twins: Mapping[str, Sequence[TwinRuns]]) -> Verdict:
    """Rule on Proposition 1: λ′ = λ/α makes L2 and decay the same for SGD, and not for Adam."""
    sgd, adam = _gaps(twins.get("SGD", ())), _gaps(twins.get("Adam", ()))
    if not sgd or not adam:
        raise NotMeasuredError("The pairs of runs are not there.")
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
    return Verdict(claim, outcome, because, rule)


def _gaps(twins: Sequence[TwinRuns]) -> list[float]:
    """Return by how much of its loss each run differs from its twin.

    Where one of the two diverged the difference is infinite; where both did, nothing is known.
    """
    losses = [(_loss(one), _loss(other)) for one, other in twins]
    return [
        abs(one - other) / min(one, other) for one, other in losses if min(one, other) < math.inf
    ]


def _loss(run: Run) -> float:
    return math.inf if run.last.train_loss is None else run.last.train_loss


def gains_nothing(claim: str, adam: Landscape) -> Verdict:
    """Rule on whether L2 regularization gains nothing over a decay of 0."""
    some, none = with_and_without(adam)
    if not some.cells or not none.cells:
        raise NotMeasuredError("There are no runs with λ = 0, or none with another.")
    what = "the best error with λ = 0 minus the best with L2"
    return compared(verdicts.no_worse, claim, what, one=none, rival=some)


def first_half(claim: str, adam: Measurement, adamw: Measurement, *, epochs: int) -> Verdict:
    """Rule on whether the best settings' curves coincide, part by part of training's first half."""
    seeds = sorted(adam.fresh.keys() & adamw.fresh.keys())
    what, error = "AdamW's mean test error minus Adam's", f"test_{adam.panel.error}"
    parts = []
    for begin, end in _parts(epochs):
        gaps = [
            _mean_within(adamw.fresh[seed], begin, end, error)
            - _mean_within(adam.fresh[seed], begin, end, error)
            for seed in seeds
        ]
        parts.append(verdicts.alike(f"epochs {begin + 1} to {end}", paired(gaps), what))
    return verdicts.all_of(claim, parts)


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


def at_cycle_ends(restarted: Measurement, plain: Measurement) -> dict[int, Estimate]:
    """Estimate the error at each end of a cycle less the final one without restarts.

    Each side has the setting that other seeds chose for it by their errors at the end.
    """
    ends = cycle_ends(list(restarted.fresh.values()))
    if not ends:
        raise NotMeasuredError("No cycle came to its end.")
    return {end: less_than_final(restarted, plain, epoch=end) for end in ends}


def less_than_final(restarted: Measurement, plain: Measurement, *, epoch: int) -> Estimate:
    """Estimate the error at an epoch less the final one without restarts, seed by seed.

    A run that diverged before has the error it ended with.
    """
    error = f"test_{plain.panel.error}"
    return paired(
        [
            getattr([record for record in run.records if record.epoch <= epoch][-1], error)
            - getattr(plain.fresh[seed].last, error)
            for seed, run in restarted.fresh.items()
            if seed in plain.fresh and run.records[0].epoch <= epoch
        ]
    )


def cycle_ends(runs: Sequence[Run]) -> list[int]:
    """Return the epochs at which cycles end: of the run that came farthest."""
    return sorted({record.epoch for run in runs for record in run.records if record.cycle_ended})


def early_enough(claim: str, found: Mapping[int, Estimate], *, epochs: int) -> Verdict:
    """Rule on differences at cycles' ends: whether one in half the epochs is as good as the end."""
    soon = [less for end, less in found.items() if 2 * end <= epochs]
    enough = [end for end, less in found.items() if less.high < MARGIN]
    outcome = NOT_DECIDED
    if any(less.high < MARGIN for less in soon):
        outcome = HELD
    elif soon and all(less.low > MARGIN for less in soon):
        outcome = NOT_HELD
    told = "; ".join(f"epoch {end}: {points_of(less)}" for end, less in found.items())
    said = f"{epochs / enough[0]:.1f} times as early" if enough else "at no cycle's end surely"
    if enough and enough[0] == epochs:
        said = "at the end"
    return Verdict(
        claim,
        outcome,
        f"AdamWR's error at its cycles' ends minus AdamW's after {epochs} epochs: {told}. "
        f"Below {points(MARGIN)}: {said}",
        f"Held if at a cycle's end, in half the epochs or fewer, the interval of that difference "
        f"lies below {points(MARGIN)}; not held if it lies above at all of these ends.",
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
