"""By which rule λ is to be carried to other numbers of epochs, as far as a tuner's runs show it.

Every shape of the belief says how its best λ falls with the epochs, λ ∝ epochs^(−p). To keep λ_norm
is p = 1/2. To leave λ as it is, which also keeps its timescale in epochs, is p = 0. The runs make
shapes that are nearer to one of the rules more probable than the others. What was believed before
the first run does not count: each rule begins with one half.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weightdecay.tune.belief import Belief
from weightdecay.tune.shapes import exponents
from weightdecay.tune.space import Space

_SURE = 0.95  # the probability of a rule from which on it is recommended


@dataclass(frozen=True)
class Carrying:
    """Which rule the runs are for: keep λ_norm, or keep λ.

    normalized  the probability of λ_norm; λ has the rest
    low, high   between which p is, with probability 95 %; NaN if all runs have the same epochs
    epochs      of the runs, from the shortest to the longest
    """

    normalized: float
    low: float
    high: float
    epochs: tuple[int, ...]

    @property
    def kept(self) -> str | None:
        """What to keep when the epochs change; None if the runs cannot tell."""
        if self.normalized >= _SURE:
            return "λ_norm"
        return "λ" if 1 - self.normalized >= _SURE else None

    def __str__(self) -> str:
        measured = f"λ ∝ epochs^(−p) with p from {self.low:.2f} to {self.high:.2f}"
        if self.kept == "λ_norm":
            return f"For other epochs, keep λ_norm ({self.normalized:.0%} sure): {measured}."
        if self.kept == "λ":
            sure = f"{1 - self.normalized:.0%} sure"
            return f"For other epochs, keep λ, and so its timescale ({sure}): {measured}."
        why = f"λ_norm has probability {self.normalized:.0%}, and {measured}."
        if len(self.epochs) == 1:
            why = f"all have {self.epochs[0]} epochs."
        return f"Whether to keep λ or λ_norm for other epochs, these runs cannot tell: {why}"


def carrying(space: Space, belief: Belief, setting: int, rungs: Iterable[int]) -> Carrying | None:
    """Return what runs at these rungs say; None without a run, or if no decay is decoupled.

    `setting` is the recommended one, at whose learning rate λ is carried.
    """
    made = sorted(set(rungs))
    if not made or space.convention == "l2" or len(space.ladder) == 1:
        return None
    lr, _ = space.setting(setting)
    doublings = math.log2(space.epochs / space.ladder[0])
    found = exponents(math.log2(lr), doublings, space.prior.expected)
    nearer = found > 0.25  # to 1/2 than to 0
    weights = belief.weights.copy()
    for rule in (nearer, ~nearer):
        weights[rule] /= max(int(rule.sum()), 1)
    weights /= weights.sum()
    epochs = tuple(space.ladder[rung] for rung in made)
    if len(made) == 1:  # they say nothing about others
        return Carrying(0.5, math.nan, math.nan, epochs)
    order = np.argsort(found)
    below = np.cumsum(weights[order])
    low, high = (
        float(found[order][min(int(np.searchsorted(below, share)), len(order) - 1)])
        for share in (0.025, 0.975)
    )
    return Carrying(float(weights[nearer].sum()), low, high, epochs)
