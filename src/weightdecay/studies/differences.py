"""Comparisons that verdicts rest on: best settings, gains, pairs of runs."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median_high, variance

from weightdecay.records import Run, or_infinite
from weightdecay.results import (
    Estimate,
    Exponent,
    Judgement,
    Landscape,
    contrast,
    difference,
    with_and_without,
)
from weightdecay.results.budget import best_decays, exponent_of
from weightdecay.results.estimate import UNKNOWN, within
from weightdecay.results.exponent import unknown
from weightdecay.results.judging import contrasted, summed
from weightdecay.studies import verdicts
from weightdecay.studies.panel import titled
from weightdecay.studies.reasons import Comparison, Size, StepGaps
from weightdecay.studies.samples import of_grids, of_judges
from weightdecay.studies.study import DECAY, NO_DECAY, Evidence, NotMeasuredError, TwinRuns
from weightdecay.studies.verdicts import HELD, NOT_DECIDED, NOT_HELD, Verdict

#: Two runs took the same steps if their training losses differ by less than the first share, and
#: other steps if by more than the second. Rounding in float32 is far below the first.
SAME, OTHER = 1e-3, 1e-2


def paired(differences: Sequence[float]) -> Estimate:
    """Estimate a mean from one number per seed; it is unknown if one of them is."""
    if len(differences) < 2 or not all(map(math.isfinite, differences)):
        return UNKNOWN
    spread = variance(differences) / len(differences)
    return within(fmean(differences), spread, len(differences) - 1)


def weighed(seen: Evidence, weights: Mapping[str, float]) -> Estimate:
    """Estimate a weighted sum of methods' last errors, seed by seed.

    By seeds of a second stage, its interval has the test set's sampling error.
    """
    sides = {name: seen.fresh(name) for name in weights}
    seeds = sorted(set.intersection(*(set(side) for side in sides.values())))
    if seen.second is not None and seen.registration and seeds == sorted(seen.registration.judges):
        signed = [(weights[name], [*side.values()]) for name, side in sides.items()]
        worst = max(seen.second.worst[name] for name in weights)
        try:
            return summed(signed, chance=worst)
        except ValueError as wrong:  # some runs kept which examples they missed, and others did not
            raise NotMeasuredError(str(wrong)) from wrong
    error = f"test_{seen.scale.error}"
    return paired(
        [
            sum(
                weights[name] * or_infinite(getattr(sides[name][seed].last, error))
                for name in weights
            )
            for seed in seeds
        ]
    )


def better(claim: str, what: str, seen: Evidence, *, one: str, rival: str) -> Verdict:
    """Judge whether one's best error is lower, unless the loser's best may be beyond its grid."""
    scapes = seen.entrant(one), seen.entrant(rival)
    if _is_registered(seen, one, rival):
        return _compared(claim, what, seen, (one, rival))
    less, by = difference(*scapes), of_grids(seen, one, rival)
    verdict = verdicts.better(claim, less, what, metric=seen.metric, by=by)
    return unless_at_edge(verdict, seen, one, rival)


def no_worse(claim: str, what: str, seen: Evidence, *, one: str, rival: str) -> Verdict:
    """Judge whether one's best error is as low, unless the loser's best may be beyond its grid."""
    scapes = seen.entrant(one), seen.entrant(rival)
    if _is_registered(seen, one, rival):
        return _compared(claim, what, seen, (one, rival), margin=verdicts.AS_GOOD)
    less, error, by = difference(*scapes), scapes[1].best.mean, of_grids(seen, one, rival)
    verdict = verdicts.no_worse(claim, less, what, rival=error, metric=seen.metric, by=by)
    return unless_at_edge(verdict, seen, one, rival)


def lower_by(
    claim: str, what: str, seen: Evidence, *, one: str, rival: str, share: float
) -> Verdict:
    """Judge whether one's best error is lower by the share that the paper states."""
    if _is_registered(seen, one, rival):
        judged = _second_of(seen, (one, rival))
        found, points = judged.ratio, judged.points
    else:
        sides, points = (seen.fresh(one), seen.fresh(rival)), weighed(seen, {one: 1, rival: -1})
        found = paired(
            [
                _log_error(sides[0][k], seen) - _log_error(sides[1][k], seen)
                for k in sides[0].keys() & sides[1].keys()
            ]
        )
    by = of_judges(seen, one, rival)
    verdict = verdicts.sized(claim, Size(what, found, 1 - share, seen.metric, by, points))
    return unless_at_edge(verdict, seen, one, rival)


def _log_error(run: Run, seen: Evidence) -> float:
    error = getattr(run.last, f"test_{seen.scale.error}")
    return math.log(error) if error else math.nan


def gains(
    claim: str,
    what: str,
    seen: Evidence,
    *,
    first: tuple[str, str],
    second: tuple[str, str],
    alike: bool = False,
) -> Verdict:
    """Judge whether the first of two comparisons gains more; or if `alike`, as much.

    A comparison is a pair of names, of which the first is to have the lower error.
    """
    judged = _contrast_of_seconds(seen, first, second)
    if judged is not None:
        margin, by = verdicts.AS_GOOD if alike else 1.0, of_judges(seen, *first, *second)
        reason = Comparison(what, judged, margin=margin, metric=seen.metric, both=alike, by=by)
        verdict = verdicts.compared(claim, reason)
    else:
        scapes = [seen.entrant(name) for name in (*first, *second)]
        found = contrast((scapes[0], scapes[1]), (scapes[2], scapes[3]))
        by = of_grids(seen, *first, *second)
        verdict = verdicts.better(claim, found, what, metric=seen.metric, by=by)
        if alike:
            error = scapes[1].best.mean
            verdict = verdicts.alike(claim, found, what, rival=error, metric=seen.metric, by=by)
    return unless_at_edge(verdict, seen, *first, *second)


def _contrast_of_seconds(
    seen: Evidence, first: tuple[str, str], second: tuple[str, str]
) -> Judgement | None:
    """Compare two comparisons by fresh seeds; None if they have not all been trained."""
    if seen.second is None or seen.registration is None:
        return None
    runs = [seen.second.runs.get(name, ()) for name in (*first, *second)]
    if min(map(len, runs)) < len(seen.registration.judges):
        return None
    worst = max(seen.second.worst[name] for name in (*first, *second))
    try:
        return contrasted((runs[0], runs[1]), (runs[2], runs[3]), chance=worst)
    except ValueError as error:  # an error of 0 has no ratio to another
        raise NotMeasuredError(str(error)) from error


def _is_registered(seen: Evidence, *pair: str) -> bool:
    """Whether fresh seeds judge this pair."""
    return seen.registration is not None and pair in seen.registration.compared


def _second_of(seen: Evidence, pair: tuple[str, str]) -> Judgement:
    """Return what fresh seeds found; nothing is judged before all of them are trained."""
    assert seen.second is not None
    assert seen.registration is not None
    found, count = seen.second.compared.get(pair), len(seen.registration.judges)
    if found is None:
        raise NotMeasuredError("The seeds that judge are missing.")
    if found.seeds < count:
        raise NotMeasuredError(f"{found.seeds} of the {count} seeds that judge are trained.")
    return found


def _compared(
    claim: str, what: str, seen: Evidence, pair: tuple[str, str], *, margin: float = 1.0
) -> Verdict:
    """Judge by the second stage; a choice at an edge withdraws the claim."""
    found, by = _second_of(seen, pair), of_judges(seen, *pair)
    reason = Comparison(what, found, margin=margin, metric=seen.metric, by=by)
    verdict = verdicts.compared(claim, reason)
    return unless_at_edge(verdict, seen, *pair)


def unless_at_edge(verdict: Verdict, seen: Evidence, *names: str) -> Verdict:
    """Take a verdict back if the best setting of one of these lies at an edge of its grid.

    The best setting is the registered one, if there is one.
    """
    return verdicts.unless_beyond(verdict, [_edged(seen, name) for name in names])


def _edged(seen: Evidence, name: str) -> tuple[str, Sequence[str]]:
    """Return a landscape's title, and the edges of its grid that its best setting lies at."""
    scape = seen.entrant(name)
    method = None if seen.registration is None else seen.registration.methods.get(name)
    return titled(scape), _edges(scape) if method is None else method.choice.edges


def _edges(landscape: Landscape) -> list[str]:
    """Return the edges that the best lies at; a decay of 0 is none, as nothing is below it."""
    below = landscape.best.decay > 0
    return [edge for edge in landscape.edges if edge != "lowest decay" or below]


def same_steps(claim: str, twins: Mapping[str, Sequence[TwinRuns]]) -> Verdict:
    """Judge Proposition 1: λ′ = λ/α makes L2 and decay the same for SGD, but not for Adam."""
    sgd, adam = _gaps(twins.get("SGD", ())), _gaps(twins.get("Adam", ()))
    if not sgd or not adam:
        raise NotMeasuredError("The pairs of runs, of one epoch each, are missing: train them.")
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


def normalized_apart(one: Landscape, other: Landscape) -> Exponent:
    """Estimate by how many doublings one's best normalized decay exceeds the other's."""
    located = []
    for landscape in (one, other):
        found = best_decays(landscape)
        if isinstance(found, str) or found.at_best is None:
            return unknown(found if isinstance(found, str) else found.why)
        located.append(found.at_best)
    assert one.updates is not None
    assert other.updates is not None
    shift = (math.log2(one.updates) - math.log2(other.updates)) / 2
    # The slope from the one, at 0, to the other, at 1.
    raw = exponent_of([[(float(x), best, 0) for x, best in enumerate(located)]], sign=-1)
    assert raw.value is not None
    low, high = raw.low + shift, raw.high + shift
    return Exponent(raw.value + shift, low, high, freedom=raw.freedom)
