"""The rules that were proposed for carrying λ, side by side: what each costs on the same runs.

A rule says how the best decay moves if one thing changes,

    λ* ∝ α^(−s)        λ* ∝ batch^p        λ* ∝ data^(−p)        λ* ∝ epochs^(−p)

each with a power of its own, or none where the rule says nothing. Over α that is the s of
`transfer`, and over a factor of the budget the p of `budget_transfer`: λ·N^p is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from weightdecay.results.budget_transfer import PowerCosts, compare_powers, pairs_over
from weightdecay.results.estimate import Estimate, bound
from weightdecay.results.landscape import Landscape
from weightdecay.results.transfer import TransferRegret

#: What may change.
CHANGES = ("alpha", "batch", "data", "epochs")


@dataclass(frozen=True)
class Proposal:
    """A rule, its powers by what changes, and the arXiv number of its paper, if it has one."""

    name: str
    powers: Mapping[str, float]
    paper: str = ""


_KEPT = {"batch": 0.0, "data": 0.0, "epochs": 0.0}
PROPOSALS = (
    Proposal(
        "λ_norm (Loshchilov & Hutter)",
        {"alpha": 0.0, "batch": 0.5, "data": 0.5, "epochs": 0.5},
        "1711.05101",
    ),
    Proposal(
        "timescale in epochs (Wang & Aitchison)",
        {"alpha": 0.0, "batch": 1.0, "data": 1.0, "epochs": 0.0},
        "2405.13698",
    ),
    Proposal("λ ∝ batch (Bergsma et al.)", {"batch": 1.0}, "2505.13738"),
    Proposal("equilibrium (Kosson et al.)", {"alpha": 0.0}, "2305.17212"),
    Proposal(
        "timescale as a share of training",
        {"alpha": 0.0, "batch": 1.0, "data": 1.0, "epochs": 1.0},
    ),
    Proposal("λ unchanged", {"alpha": 0.0, **_KEPT}),
    Proposal("torch's `weight_decay` unchanged", {"alpha": -1.0, **_KEPT}),
    Proposal("λ ∝ √α", {"alpha": -0.5}),
)


@dataclass(frozen=True)
class Outcome:
    """What a rule costs if one thing changes.

    If it leads `beyond` the measured decays, it costs at least the low end of that. `best` says
    that no other rule costs less by more than noise; None if there are no intervals.
    """

    cost: Estimate
    beyond: bool = False
    best: bool | None = None

    @property
    def value(self) -> float | None:
        """Return the cost, or what it is at least; None if nothing is known of it."""
        return bound(self.cost) if self.beyond else self.cost.value


#: What each power costs if one thing changes.
Outcomes = Mapping[float, Outcome]


def over_rates(found: TransferRegret) -> Outcomes:
    """Return what each s costs if the learning rate changes."""
    tied = [rule for rule in found.tied if rule not in found.beyond]
    return _outcomes(found.costs, found.beyond, tied)


def over_budgets(landscapes: Sequence[Landscape], factor: str) -> Outcomes:
    """Return what each p costs if a factor of the budget changes."""
    found: PowerCosts = compare_powers(pairs_over(landscapes, factor))
    known = {p: one for p, one in found.costs.items() if not one.why}
    beyond = [p for p, one in known.items() if one.beyond]
    costs = {p: one.least if p in beyond else one.cost for p, one in known.items()}
    return _outcomes(costs, beyond, found.tied)


def _outcomes(
    costs: Mapping[float, Estimate], beyond: Sequence[float], tied: Sequence[float]
) -> Outcomes:
    return {
        power: Outcome(cost, power in beyond, power in tied if tied else None)
        for power, cost in costs.items()
    }


def followed(rule: Proposal, found: Mapping[str, Outcomes]) -> dict[str, Outcome]:
    """Return what a rule costs by what changes, where it says something that was measured."""
    return {
        change: found[change][power]
        for change, power in rule.powers.items()
        if power in found.get(change, ())
    }


@dataclass(frozen=True)
class Total:
    """The mean cost over all changes and the largest; of a rule that leads out, at least that."""

    mean: float
    worst: float
    beyond: bool


def total(rule: Proposal, found: Mapping[str, Outcomes]) -> Total | None:
    """Sum a rule up; None if it says nothing about a change, or a cost is unknown.

    Changes have equal weights, however large they were. There is no interval: the same runs are
    behind several of the costs.
    """
    own = followed(rule, found)
    values = [value for one in own.values() if (value := one.value) is not None]
    if len(values) < len(CHANGES):
        return None
    return Total(fmean(values), max(values), any(one.beyond for one in own.values()))
