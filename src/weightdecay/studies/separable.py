"""Claims that one method's learning rate and decay are more separable than another's.

Three measures say so: what it costs to keep λ when α changes (the transfer regret of the second
stage where there is one, else what the grid says), what it costs to tune one knob at a time, and
the interaction of the two knobs. The exponents s are stated beside them.
"""

from collections.abc import Sequence

from weightdecay.results import Estimate, interaction_share, measure_transfer, regret
from weightdecay.results.estimate import UNKNOWN, minus
from weightdecay.studies import verdicts
from weightdecay.studies.panel import titled
from weightdecay.studies.study import Evidence
from weightdecay.studies.verdicts import Quantity, Verdict


def more_separable(claim: str, seen: Evidence, *, one: str, rival: str) -> Verdict:
    """Judge whether one's knobs are more separable than its rival's."""
    scapes = [seen.landscape(name) for name in (one, rival)]
    titles = [titled(scape) for scape in scapes]
    less = f"the cost in {{error}} for {titles[0]} minus that for {titles[1]}"
    kept = minus(_cost_of_keeping(seen, one), _cost_of_keeping(seen, rival))
    tuned, shares = (
        minus(*(measure(scape) for scape in scapes))
        for measure in (lambda scape: regret(scape).mean, interaction_share)
    )
    parts = [
        verdicts.better("keeping λ when α changes", kept, less, metric=seen.metric),
        verdicts.better("tuning one knob at a time", tuned, less, metric=seen.metric),
        verdicts.judged(
            "interaction",
            Quantity(f"its share for {titles[0]} minus that for {titles[1]}", shares, below=0.0),
        ),
    ]
    beside = [
        Quantity(f"s of {title}", seen.exponent(name))
        for title, name in zip(titles, (one, rival), strict=True)
    ]
    return verdicts.by_measures(claim, parts, beside)


def _cost_of_keeping(seen: Evidence, name: str) -> Estimate:
    """Return the cost of leaving λ alone when α changes by a factor of 4."""
    judged = None if seen.second is None else seen.second.regrets.get(name)
    found = judged if judged and judged.costs else measure_transfer(seen.landscape(name))
    return found.costs.get(0.0, UNKNOWN)


def especially(claim: str, seen: Evidence, *, fixed: str, schedules: Sequence[str]) -> Verdict:
    """Judge whether AdamW's λ is cheaper to keep than Adam's by more under schedules."""

    def less(name: str) -> Estimate:
        return minus(*(_cost_of_keeping(seen, f"{one}, {name}") for one in ("adamw", "adam")))

    what = f"AdamW's cost in {{error}} of keeping λ minus Adam's, less the same at {fixed}"
    parts = [
        verdicts.better(f"with {name}", minus(less(name), less(fixed)), what, metric=seen.metric)
        for name in schedules
    ]
    return verdicts.all_of(claim, parts)
