"""Claims that one method's learning rate and decay are more separable than another's.

Three measures say so: what it costs to keep λ when α changes (the transfer regret of the second
stage where there is one, else what the grid says), what it costs to tune one knob at a time, and
the interaction of the two knobs. The exponents s are stated beside them.
"""

from collections.abc import Sequence
from itertools import chain

from weightdecay.results import interaction_share, regret
from weightdecay.results.choosing import PAIRS
from weightdecay.results.estimate import minus
from weightdecay.results.transfer_contrast import extra_cost, shared_moves
from weightdecay.studies import verdicts
from weightdecay.studies.panel import titled
from weightdecay.studies.reasons import Quantity
from weightdecay.studies.samples import of_carriers, of_grids, transfer_of
from weightdecay.studies.study import Evidence
from weightdecay.studies.verdicts import Verdict

# The rule λ ∝ α^(−s) that leaves λ alone.
_KEPT = 0.0
# Its cost is then a lower bound alone.
_OUT = "Keeping λ leads beyond the trained decays."
_UNTRAINED = "The seeds that carry its decay are missing."
_APART = "No change of α was measured for all of the methods."


def more_separable(claim: str, seen: Evidence, *, one: str, rival: str) -> Verdict:
    """Judge whether one's knobs are more separable than its rival's."""
    scapes = [seen.landscape(name) for name in (one, rival)]
    titles = [titled(scape) for scape in scapes]
    less = f"the cost in {{error}} for {titles[0]} minus that for {titles[1]}"
    tuned, shares = (
        minus(*(measure(scape) for scape in scapes))
        for measure in (lambda scape: regret(scape).mean, interaction_share)
    )
    what, by = f"its share for {titles[0]} minus that for {titles[1]}", of_grids(seen, one, rival)
    parts = [
        _cheaper_to_keep("keeping λ when α changes", seen, [(one, rival)], less),
        verdicts.better("tuning one knob at a time", tuned, less, metric=seen.metric, by=by),
        verdicts.judged("interaction", Quantity(what, shares, below=0.0, by=by)),
    ]
    beside = [
        Quantity(f"s of {title}", seen.exponent(name))
        for title, name in zip(titles, (one, rival), strict=True)
    ]
    return verdicts.by_measures(claim, parts, beside)


def especially(claim: str, seen: Evidence, *, fixed: str, schedules: Sequence[str]) -> Verdict:
    """Judge whether AdamW's λ is cheaper to keep than Adam's by more under schedules."""
    what = f"AdamW's cost in {{error}} of keeping λ minus Adam's, less the same at {fixed}"
    pairs = {name: (f"adamw, {name}", f"adam, {name}") for name in (fixed, *schedules)}
    parts = [
        _cheaper_to_keep(f"with {name}", seen, [pairs[name], pairs[fixed]], what)
        for name in schedules
    ]
    return verdicts.all_of(claim, parts)


def _cheaper_to_keep(
    claim: str, seen: Evidence, pairs: Sequence[tuple[str, str]], what: str
) -> Verdict:
    """Judge the difference that a pair makes to the cost of keeping λ, less that of the next.

    It is over the changes of α that all methods have. If a cost is unknown, the verdict says whose,
    and why.
    """
    names = list(chain.from_iterable(pairs))
    found = {name: transfer_of(seen, name) for name in names}
    for name, one in found.items():
        if _KEPT not in one.costs:
            why = one.why or _UNTRAINED
            return verdicts.unseen(claim, f"{titled(seen.landscape(name))}: {why}")
    moves = shared_moves(found.values())
    if not moves:
        return verdicts.unseen(claim, _APART)
    found = {name: transfer_of(seen, name, moves) for name in names}
    for name, one in found.items():
        if _KEPT in one.beyond:
            return verdicts.unseen(claim, f"{titled(seen.landscape(name))}: {_OUT}")
    cheaper = extra_cost([(found[one], found[rival]) for one, rival in pairs], _KEPT, moves)
    if len(moves) < len(PAIRS):
        what = f"{what}, over {len(moves)} of {len(PAIRS)} changes of α"
    by = of_carriers(seen, *names)
    return verdicts.better(claim, cheaper, what, metric=seen.metric, by=by)
