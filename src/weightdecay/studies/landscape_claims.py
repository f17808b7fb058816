"""The paper's claims about landscapes over learning rate and decay: Figures 1 and 2."""

from functools import partial
from itertools import pairwise

from weightdecay.labels import NAMES
from weightdecay.results.estimate import minus
from weightdecay.results.moving import from_the_corner, from_the_lowest_rate, rises
from weightdecay.studies import verdicts
from weightdecay.studies.differences import better, gains, gains_nothing, no_worse, same_steps
from weightdecay.studies.reasons import Difference
from weightdecay.studies.samples import of_grids
from weightdecay.studies.separable import especially, more_separable
from weightdecay.studies.study import DECAY, NO_DECAY, Claim, Evidence
from weightdecay.studies.verdicts import Verdict

FIXED, DROPS, COSINE = "a fixed rate", "step-drop", "cosine"
_RANKED_APART = "Adam and AdamW do not agree on which schedule is better."


def claims_under_schedules() -> list[Claim]:
    """Return the claims on Adam and AdamW under three schedules."""
    return [
        Claim("Decoupled decay is better than L2 under every schedule", _better_under_every),
        Claim("Decoupled decay gains more, the better the schedule", _gains_more),
        Claim("Cosine annealing is the best schedule, for Adam and AdamW", _cosine_is_best),
        Claim("AdamW is more separable than Adam under every schedule", _separable_under_every),
        Claim(
            "AdamW gains more separability with a schedule",
            partial(especially, fixed=FIXED, schedules=(DROPS, COSINE)),
        ),
    ]


def claims_on_methods() -> list[Claim]:
    """Return the claims on SGD, SGDW, Adam and AdamW."""
    return [
        Claim(
            "L2 and decay are the same for SGD, and not for Adam",
            lambda claim, seen: same_steps(claim, seen.twins),
        ),
        Claim("SGD's basin lies on a diagonal", partial(_diagonal, "sgd")),
        Claim("At SGD's top left circle, one knob alone gains nothing, and both do", _corner),
        Claim("SGDW is more separable than SGD", partial(_more_separable, "sgdw", "sgd")),
        Claim("A decay tuned at the lowest α is good with SGDW, and not with SGD", _lowest_rate),
        Claim(
            "Adam's best is worse than SGD's, both with L2",
            partial(_better, "sgd", "adam", "SGD's best {error} minus Adam's"),
        ),
        Claim(
            "Adam gains nothing from L2 over λ = 0",
            lambda claim, seen: gains_nothing(claim, seen, "adam"),
        ),
        Claim("L2 gains less in Adam than in SGD", _less_effective),
        Claim("Decay gains as much in AdamW as in SGDW", _as_effective),
        Claim("Adam's basin lies on a diagonal", partial(_diagonal, "adam")),
        Claim("AdamW is more separable than Adam", partial(_more_separable, "adamw", "adam")),
        Claim(
            "AdamW's best is better than Adam's",
            partial(_better, "adamw", "adam", "AdamW's best {error} minus Adam's"),
        ),
        Claim("AdamW's basin is broader than Adam's", _broader),
        Claim("AdamW's best rivals SGD's and SGDW's", _rivals),
    ]


def the_same_holds(coupled: str, decoupled: str, claim: str, seen: Evidence) -> Verdict:
    """Judge whether another method behaves as Adam does in the paper."""
    what = "the best {error} with decay minus that with L2"
    parts = [
        _diagonal(coupled, "L2 lies on a diagonal", seen),
        _more_separable(decoupled, coupled, "decay is more separable", seen),
        _better(decoupled, coupled, what, "decay is better than L2", seen),
    ]
    return verdicts.all_of(claim, parts)


def _better_under_every(claim: str, seen: Evidence) -> Verdict:
    parts = [
        better(
            f"with {name}",
            "AdamW's best {error} minus Adam's",
            seen,
            one=f"adamw, {name}",
            rival=f"adam, {name}",
        )
        for name in (FIXED, DROPS, COSINE)
    ]
    return verdicts.all_of(claim, parts)


def _gains_more(claim: str, seen: Evidence) -> Verdict:
    """Judge whether decoupling gains more, the better the schedule is for both methods."""
    ranked, other = (_from_worst_to_best(one, seen) for one in ("adam", "adamw"))
    if ranked != other:
        return verdicts.unseen(claim, _RANKED_APART)
    parts = [
        gains(
            f"with {name}",
            f"AdamW's best {{error}} minus Adam's, less the same with {worse}",
            seen,
            first=(f"adamw, {name}", f"adam, {name}"),
            second=(f"adamw, {worse}", f"adam, {worse}"),
        )
        for worse, name in pairwise(ranked)
    ]
    return verdicts.all_of(claim, parts)


def _from_worst_to_best(method: str, seen: Evidence) -> list[str]:
    """Return the schedules in the order of a method's best errors."""
    lows = {name: seen.entrant(f"{method}, {name}").best.mean for name in (FIXED, DROPS, COSINE)}
    return sorted(lows, key=lambda name: lows[name], reverse=True)


def _cosine_is_best(claim: str, seen: Evidence) -> Verdict:
    parts = [
        better(
            f"{NAMES[one]}, than with {name}",
            f"{NAMES[one]}'s best {{error}} with cosine minus that",
            seen,
            one=f"{one}, {COSINE}",
            rival=f"{one}, {name}",
        )
        for one in ("adam", "adamw")
        for name in (FIXED, DROPS)
    ]
    return verdicts.all_of(claim, parts)


def _separable_under_every(claim: str, seen: Evidence) -> Verdict:
    parts = [
        _more_separable(f"adamw, {name}", f"adam, {name}", f"with {name}", seen)
        for name in (FIXED, DROPS, COSINE)
    ]
    return verdicts.all_of(claim, parts)


def _more_separable(one: str, rival: str, claim: str, seen: Evidence) -> Verdict:
    return more_separable(claim, seen, one=one, rival=rival)


def _diagonal(name: str, claim: str, seen: Evidence) -> Verdict:
    return verdicts.diagonal(claim, seen.exponent(name), by=of_grids(seen, name))


def _better(one: str, rival: str, what: str, claim: str, seen: Evidence) -> Verdict:
    return better(claim, what, seen, one=one, rival=rival)


def _corner(claim: str, seen: Evidence) -> Verdict:
    """Judge the paper's example: from one circle, only both knobs together lead further down."""
    one, both = from_the_corner(seen.landscape("sgd"))
    what, metric, by = "the change of the {error}", seen.metric, of_grids(seen, "sgd")
    worse = verdicts.judged("one knob", Difference(what, one, above=0.0, metric=metric, by=by))
    better = verdicts.better("both", both, what, metric=metric, by=by)
    return verdicts.all_of(claim, [worse, better])


def _lowest_rate(claim: str, seen: Evidence) -> Verdict:
    """Judge the paper's example: a decay that was tuned at the grid's lowest learning rate."""
    what, metric = "its cost in {error} at the best α", seen.metric
    parts = []
    for name, judge in (("sgdw", verdicts.no_worse), ("sgd", verdicts.worse)):
        scape = seen.landscape(name)
        cost, best, by = from_the_lowest_rate(scape), scape.best.mean, of_grids(seen, name)
        parts.append(judge(NAMES[name], cost, what, rival=best, metric=metric, by=by))
    return verdicts.all_of(claim, parts)


def _less_effective(claim: str, seen: Evidence) -> Verdict:
    """Judge whether L2 gains more over λ = 0 in SGD."""
    what = "the best {error} with L2 minus that with λ = 0 for SGD, less the same for Adam"
    first, second = ((f"{one}{DECAY}", f"{one}{NO_DECAY}") for one in ("sgd", "adam"))
    return gains(claim, what, seen, first=first, second=second)


def _as_effective(claim: str, seen: Evidence) -> Verdict:
    """Judge whether decay gains as much over λ = 0 in both, where λ = 0 is Adam and SGD."""
    what = "the best {error} with decay minus that with λ = 0 for AdamW, less the same for SGDW"
    first, second = ((f"{one}w", f"{one}{NO_DECAY}") for one in ("adam", "sgd"))
    return gains(claim, what, seen, first=first, second=second, alike=True)


def _broader(claim: str, seen: Evidence) -> Verdict:
    """Judge whether errors rise less around AdamW's best setting."""
    found = minus(*rises(seen.landscape("adamw"), seen.landscape("adam")))
    what = "the mean rise of the {error} within a factor of 4 of AdamW's best minus that for Adam"
    by = of_grids(seen, "adamw", "adam")
    return verdicts.better(claim, found, what, metric=seen.metric, by=by)


def _rivals(claim: str, seen: Evidence) -> Verdict:
    parts = [
        no_worse(
            f"against {NAMES[name]}",
            f"AdamW's best {{error}} minus {NAMES[name]}'s",
            seen,
            one="adamw",
            rival=name,
        )
        for name in ("sgd", "sgdw")
    ]
    return verdicts.all_of(claim, parts)
