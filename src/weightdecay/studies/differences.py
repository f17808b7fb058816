"""Comparisons that verdicts rest on: best settings, pairs of runs, curves, cycle ends."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median_high, variance

from weightdecay.records import Run
from weightdecay.results import (
    Estimate,
    Exponent,
    Landscape,
    difference,
    with_and_without,
)
from weightdecay.results.budget import optimum
from weightdecay.results.estimate import UNKNOWN, within
from weightdecay.results.exponent import unknown
from weightdecay.studies import verdicts
from weightdecay.studies.panel import Measurement, titled
from weightdecay.studies.study import DECAY, NO_DECAY, Evidence, NotMeasuredError, TwinRuns
from weightdecay.studies.verdicts import (
    HELD,
    NOT_DECIDED,
    NOT_HELD,
    Comparison,
    CycleEnds,
    StepGaps,
    Verdict,
    margin_of,
)

#: Two runs took the same steps if their training losses differ by less than the first share, and
#: other steps if by more than the second. Rounding in float32 is far below the first.
SAME, OTHER = 1e-3, 1e-2


def paired(differences: Sequence[float]) -> Estimate:
    """Estimate a mean difference from one number per seed."""
    if len(differences) < 2:
        return UNKNOWN
    spread = variance(differences) / len(differences)
    return within(fmean(differences), spread, len(differences) - 1)


def better(claim: str, what: str, seen: Evidence, *, one: str, rival: str) -> Verdict:
    """Judge whether one's best error is lower, unless the loser's best may be beyond its grid."""
    scapes = seen.entrant(one), seen.entrant(rival)
    if _is_registered(seen, one, rival):
        return _compared(claim, what, seen, (one, rival))
    verdict = verdicts.better(claim, difference(*scapes), what, metric=seen.metric)
    return unless_at_edge(verdict, ones=scapes[:1], rivals=scapes[1:])


def no_worse(claim: str, what: str, seen: Evidence, *, one: str, rival: str) -> Verdict:
    """Judge whether one's best error is as low, unless the loser's best may be beyond its grid."""
    scapes = seen.entrant(one), seen.entrant(rival)
    if _is_registered(seen, one, rival):
        return _compared(claim, what, seen, (one, rival), margin=verdicts.AS_GOOD)
    less, margin = difference(*scapes), margin_of(scapes[1])
    verdict = verdicts.no_worse(claim, less, what, margin=margin, metric=seen.metric)
    return unless_at_edge(verdict, ones=scapes[:1], rivals=scapes[1:])


def _is_registered(seen: Evidence, *pair: str) -> bool:
    """Whether fresh seeds judge this pair."""
    return seen.registration is not None and pair in seen.registration.compared


def _compared(
    claim: str, what: str, seen: Evidence, pair: tuple[str, str], *, margin: float = 1.0
) -> Verdict:
    """Judge by the second stage; a choice at an edge withdraws what it would win."""
    assert seen.second is not None
    found = seen.second.compared.get(pair)
    if found is None:
        raise NotMeasuredError("The seeds that judge are missing.")
    reason = Comparison(what, found, margin=margin, metric=seen.metric)
    ones, rivals = ([edges_of(seen, name)] for name in pair)
    return verdicts.unless_beyond(verdicts.compared(claim, reason), ones=ones, rivals=rivals)


def edges_of(seen: Evidence, name: str) -> tuple[str, tuple[str, ...]]:
    """Return a registered landscape's title, and the edges of its grid that its choice lies at."""
    assert seen.registration is not None
    return titled(seen.entrant(name)), seen.registration.methods[name].choice.edges


def unless_at_edge(
    verdict: Verdict, *, ones: Sequence[Landscape], rivals: Sequence[Landscape]
) -> Verdict:
    """Take a verdict back if the loser's best setting lies at an edge of its grid."""
    sides = [[(titled(scape), _edges(scape)) for scape in side] for side in (ones, rivals)]
    return verdicts.unless_beyond(verdict, ones=sides[0], rivals=sides[1])


def _edges(landscape: Landscape) -> list[str]:
    """Return the edges that the best lies at; a decay of 0 is none, as nothing is below it."""
    below = landscape.best.decay > 0
    return [edge for edge in landscape.edges if edge != "lowest decay" or below]


def same_steps(claim: str, twins: Mapping[str, Sequence[TwinRuns]]) -> Verdict:
    """Judge Proposition 1: λ′ = λ/α makes L2 and decay the same for SGD, but not for Adam."""
    sgd, adam = _gaps(twins.get("SGD", ())), _gaps(twins.get("Adam", ()))
    if not sgd or not adam:
        raise NotMeasuredError("The pairs of runs are missing.")
    largest, typical = max(sgd), median_high(adam)
    outcome = NOT_DECIDED
    if largest < SAME and typical > OTHER:
        outcome = HELD
    elif largest > OTHER or typical < SAME:
        outcome = NOT_HELD
    return Verdict(claim, outcome, StepGaps(largest, len(sgd), typical, len(adam), SAME, OTHER))


def _gaps(twins: Sequence[TwinRuns]) -> list[float]:
    """Return each pair's difference as a share of the lower loss.

    It is infinite if one of the two diverged. A pair in which both diverged is left out.
    """
    losses = [(_loss(one), _loss(other)) for one, other in twins]
    return [
        abs(one - other) / min(one, other) for one, other in losses if min(one, other) < math.inf
    ]


def _loss(run: Run) -> float:
    return math.inf if run.last.train_loss is None else run.last.train_loss


def gains_nothing(claim: str, seen: Evidence, name: str) -> Verdict:
    """Judge whether L2 regularization gains nothing over a decay of 0."""
    if not all(part.cells for part in with_and_without(seen.landscape(name))):
        raise NotMeasuredError("There are no runs with λ = 0, or none with another.")
    what = "the best {error} with λ = 0 minus the best with L2"
    return no_worse(claim, what, seen, one=f"{name}{NO_DECAY}", rival=f"{name}{DECAY}")


def first_half(claim: str, adam: Measurement, adamw: Measurement, *, epochs: int) -> Verdict:
    """Judge whether the best settings' curves coincide in each part of training's first half."""
    margin, metric = margin_of(adam.landscape), adam.landscape.metric
    seeds = sorted(adam.fresh.keys() & adamw.fresh.keys())
    what, error = "AdamW's mean test {error} minus Adam's", f"test_{adam.panel.error}"
    parts = []
    for begin, end in _parts(epochs):
        gaps = [
            _mean_within(adamw.fresh[seed], begin, end, error)
            - _mean_within(adam.fresh[seed], begin, end, error)
            for seed in seeds
        ]
        name = f"epochs {begin + 1} to {end}"
        parts.append(verdicts.alike(name, paired(gaps), what, margin=margin, metric=metric))
    return verdicts.all_of(claim, parts)


def _parts(epochs: int) -> list[tuple[int, int]]:
    """Return the thirds of the first half.

    They are long enough to be certain, and short enough that opposite gaps do not cancel.
    """
    ends = [round(epochs * part / 6) for part in range(4)]
    return [(begin, end) for begin, end in pairwise(ends) if begin < end]


def _mean_within(run: Run, begin: int, end: int, error: str) -> float:
    """Return the mean error of the epochs from `begin` + 1 to `end`.

    An epoch that was not evaluated has the error of the last one that was.
    """
    held = [
        getattr(until[-1], error)
        for epoch in range(begin + 1, end + 1)
        if (until := [record for record in run.records if record.epoch <= epoch])
    ]
    return fmean(held) if held else math.nan


def at_cycle_ends(restarted: Measurement, plain: Measurement, *, epochs: int) -> CycleEnds:
    """Estimate the error at the end of each cycle minus the final error without restarts.

    For each seed, both sides use the setting that the other seeds chose by their final errors.
    """
    ends = cycle_ends(list(restarted.fresh.values()))
    if not ends:
        raise NotMeasuredError("No cycle has finished.")
    found = tuple((end, less_than_final(restarted, plain, epoch=end)) for end in ends)
    scape = plain.landscape
    return CycleEnds(found, epochs, margin_of(scape), scape.metric)


def less_than_final(restarted: Measurement, plain: Measurement, *, epoch: int) -> Estimate:
    """Estimate the error at an epoch minus the final error without restarts, seed by seed.

    A run that diverged earlier keeps the error it ended with.
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
    """Return the epochs at which a cycle of some run ends."""
    return sorted({record.epoch for run in runs for record in run.records if record.cycle_ended})


def early_enough(claim: str, ends: CycleEnds) -> Verdict:
    """Judge whether a cycle that ends in the first half of training is as good as the end."""
    soon = [less for end, less in ends.found if 2 * end <= ends.epochs]
    outcome = NOT_DECIDED
    if any(less.high < ends.margin for less in soon):
        outcome = HELD
    elif soon and all(less.low > ends.margin for less in soon):
        outcome = NOT_HELD
    return Verdict(claim, outcome, ends)


def normalized_apart(one: Landscape, other: Landscape) -> Exponent:
    """Estimate by how many doublings one's best normalized decay exceeds the other's."""
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
