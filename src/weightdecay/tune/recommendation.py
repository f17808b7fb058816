"""What a tuner recommends, how sure it is, and what more compute would buy.

The setting is the one with the lowest expected height at the long run's budget. How sure that is,
and by which rule the best decay moves between budgets, are read off surfaces that are drawn at
random from the belief.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weightdecay.decay import Decay
from weightdecay.tune.belief import Belief, Places
from weightdecay.tune.choosing import belief_of, gains
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome

#: How a setting is stated in each convention of a decay. A factor of L2 is no λ: it also goes
#: through the momentum and, in Adam, through the division by √v̂.
_STATED = {
    "weight_decay": "weight_decay {λ:.3g} (λ),\nthat is λ_norm = {norm:.3g}.",
    "normalized": "λ_norm = {norm:.3g},\nthat is λ = {λ:.3g}.",
    "torch": "torch's weight_decay {torch:.3g},\nthat is λ = {λ:.3g} and λ_norm = {norm:.3g}.",
    "l2": "an L2 factor of {torch:.3g}.",
}
#: Ways to carry λ from one number of epochs T to another: λ ∝ T^(−power).
RULES = {0.0: "keep λ", 0.5: "keep λ_norm", 1.0: "keep λ·epochs"}
_DRAWS = 400
_FEWEST = 3  # trials at each of two budgets, to measure a rule


@dataclass(frozen=True)
class Rule:
    """How the best λ moves with the epochs T: λ ∝ T^(−power), with its 95 % interval."""

    power: float
    low: float
    high: float

    @property
    def possible(self) -> tuple[str, ...]:
        """The rules inside the interval."""
        return tuple(name for power, name in RULES.items() if self.low <= power <= self.high)


@dataclass(frozen=True)
class Recommendation:
    """The setting to use for the long run.

    epochs        of the long run           spent   by the trials, in long runs
    lr            α                         trials  how many were told
    weight_decay  in the tuner's `convention`; `decay` has it in every convention, where a factor of
                  L2 counts as λ/α, though no decay does the same
    near          the probability that the best setting is within one doubling of this α and λ
    loss          by what fraction the error here is expected to exceed that of the best setting
    gain          by what fraction the next run alone is expected to lower the error, at least
    rule          how λ moves with the epochs, as these runs say; None if they do not
    notes         sentences about what is wrong with the runs, or with the ranges
    """

    epochs: int
    lr: float
    weight_decay: float
    convention: str
    decay: Decay
    near: float
    loss: float
    gain: float
    rule: Rule | None
    spent: float
    trials: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        count, decay = f"{self.trials} trial{'s' * (self.trials != 1)}", self.decay
        stated = _STATED[self.convention].format(
            λ=decay.weight_decay, norm=decay.normalized, torch=decay.torch
        )
        text = f"""\
For {self.epochs} epochs, use lr {self.lr:.3g} and {stated}
Found by {count} that cost {self.spent:.2f} long runs.
The best is within a factor of two of both with probability {self.near:.0%}.
This setting is expected to have {self.loss:.1%} more error than the best.
The next run would save about {self.gain:.1%}."""
        lines = [text]
        if self.rule is not None:
            between = f"{-self.rule.high:.2f} to {-self.rule.low:.2f}"
            usual = " or ".join(self.rule.possible) or "no usual rule"
            text = f"Over epochs, the best λ goes as epochs^{-self.rule.power:.2f}"
            lines.append(f"{text} ({between}): {usual}.")
        return "\n".join([*lines, *self.notes])


def recommend(space: Space, told: Mapping[Cell, Outcome]) -> Recommendation:
    """Return the recommendation after what was told."""
    belief = belief_of(space, told)
    best = int(belief.mean(space.long).argmin())
    draws, shapes = belief.drawn(space.long, _DRAWS)
    lowest = draws.argmin(axis=1)
    lr, _ = space.setting(best)
    candidates = np.unique(lowest)
    candidates = np.concatenate(
        [candidates + space.place(at, 0) for at in range(len(space.ladder))]
    )
    return Recommendation(
        epochs=space.epochs,
        lr=lr,
        weight_decay=space.stated(best, space.epochs),
        convention=space.convention,
        decay=space.decay(best, space.epochs),
        near=float(np.mean([space.doublings(best, int(at)) <= 1.01 for at in lowest])),
        loss=float((draws[:, best] - draws.min(axis=1)).mean()),
        gain=float(gains(belief, space.long, candidates).max()),
        rule=_rule(space, belief, told, shapes),
        spent=sum(outcome.epochs for outcome in told.values()) / space.epochs,
        trials=len(told),
        notes=tuple(_notes(space, told, best)),
    )


def _rule(
    space: Space, belief: Belief, told: Mapping[Cell, Outcome], shapes: Places
) -> Rule | None:
    """Return how the best λ moves with the epochs, on the shapes that were drawn."""
    rungs = [cell.rung for cell, outcome in told.items() if not outcome.diverged]
    often = {rung for rung in rungs if rungs.count(rung) >= _FEWEST}
    if len(often) < 2 or len(space.decays) < 3 or not _differ(told):
        return None
    powers = 0.5 - belief.prior.drifts[shapes]
    low, high = np.quantile(powers, [0.025, 0.975])
    return Rule(float(powers.mean()), float(low), float(high))


def _differ(told: Mapping[Cell, Outcome]) -> bool:
    """Whether trials of the same length came out differently."""
    by_rung: dict[int, set[float]] = {}
    for cell, outcome in told.items():
        by_rung.setdefault(cell.rung, set()).add(outcome.error)
    return any(len(errors) > 1 for errors in by_rung.values())


def _notes(space: Space, told: Mapping[Cell, Outcome], best: int) -> list[str]:
    notes = []
    diverged = sum(outcome.diverged for outcome in told.values())
    if not told:
        notes.append("No trial was told yet: this is the middle of the ranges.")
    elif diverged == len(told):
        notes.append(
            "Every trial diverged: nothing is known about the best setting. Lower the learning "
            "rates with `lr`."
        )
    elif len(told) > 1 and len({outcome.error for outcome in told.values()}) == 1:
        notes.append(
            f"All {len(told)} trials came out the same: nothing was learned. Check that the loop "
            "uses a trial's lr and weight_decay, or give it longer runs with `shortest`."
        )
    elif len(told) > 2 and not _differ(told):
        notes.append("No two trials of the same length came out differently: little was learned.")
    elif edges := space.edges(best):
        notes.append(
            f"The setting lies at an end of what was tried: better ones may have "
            f"{' or '.join(edges)}. Widen the range."
        )
    if 0 < diverged < len(told):
        notes.append(f"{diverged} of {len(told)} trials diverged.")
    return notes
