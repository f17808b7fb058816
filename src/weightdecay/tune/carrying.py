"""By which rule λ is to be carried to other numbers of epochs, as far as a tuner's runs show it.

Every shape of the belief says how its best λ falls with the epochs, λ ∝ epochs^(−p). To keep λ_norm
is p = 1/2. To leave λ as it is, which also keeps its timescale in epochs, is p = 0. The runs make
shapes that are nearer to one of the rules more probable than the others. What was believed before
the first run does not count: each rule begins with one half.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from weightdecay.tune.belief import Belief
from weightdecay.tune.shapes import exponents
from weightdecay.tune.space import Space

SURE = 0.9  # what the belief must say of a rule for it to be recommended
# And for how many runs at each of two lengths. In simulated lives (benchmarks/tuner_rules.py) it
# was then right in 86 of 100 or more, but it is sure in hardly any.
_ENOUGH = 6
_MOST = 0.75


@dataclass(frozen=True)
class Carrying:
    """Which rule the runs are for: keep λ_norm, or keep λ.

    kept        "λ_norm", "λ", or None if the runs cannot tell
    normalized  the probability of λ_norm; λ has the rest. Neither is above 75 %, as the belief was
                wrong too often where it was surer, and both are 50 % without enough runs
    epochs      of the runs, from the shortest to the longest
    runs        how many there are of each length
    noisy       whether there are too few validation examples to tell errors apart
    """

    kept: str | None
    normalized: float
    epochs: tuple[int, ...]
    runs: tuple[int, ...]
    noisy: bool = False

    def __str__(self) -> str:
        if self.kept is not None:
            sure = f"{max(self.normalized, 1 - self.normalized):.0%} sure"
            timescale = ", and so its timescale" if self.kept == "λ" else ""
            return f"For other epochs, keep {self.kept}{timescale} ({sure})."
        return (
            f"Whether to keep λ or λ_norm for other epochs, these runs cannot tell: {self._why()}."
        )

    def _why(self) -> str:
        if len(self.epochs) == 1:
            return f"all have {self.epochs[0]} epochs"
        if not _are_enough(self.runs):
            there = " and ".join(
                f"{count} of {epochs}" for count, epochs in zip(self.runs, self.epochs, strict=True)
            )
            return f"it takes {_ENOUGH} of each of two lengths, and there are {there} epochs"
        if self.noisy:
            return "they were judged on too few validation examples"
        return f"λ_norm has probability {self.normalized:.0%}"


def carrying(
    space: Space, belief: Belief, setting: int, rungs: Iterable[int], *, noisy: bool
) -> Carrying | None:
    """Return what runs at these rungs say; None without a run, or if no decay is decoupled.

    `setting` is the recommended one, at whose learning rate λ is carried.
    """
    made = Counter(rungs)
    if not made or space.convention == "l2" or len(space.ladder) == 1:
        return None
    epochs = tuple(space.ladder[rung] for rung in sorted(made))
    runs = tuple(made[rung] for rung in sorted(made))
    if noisy or not _are_enough(runs):
        return Carrying(None, 0.5, epochs, runs, noisy)
    normalized = believed(space, belief, setting)
    kept = "λ_norm" if normalized >= SURE else "λ" if 1 - normalized >= SURE else None
    return Carrying(kept, min(max(normalized, 1 - _MOST), _MOST), epochs, runs)


def _are_enough(runs: Iterable[int]) -> bool:
    return sum(count >= _ENOUGH for count in runs) >= 2


def believed(space: Space, belief: Belief, setting: int) -> float:
    """Return how probable λ_norm is by the belief, which is surer than it has reason to be."""
    lr, _ = space.setting(setting)
    doublings = math.log2(space.epochs / space.ladder[0])
    nearer = exponents(math.log2(lr), doublings, space.prior.expected) > 0.25  # to 1/2 than to 0
    weights = belief.weights.copy()
    for rule in (nearer, ~nearer):
        weights[rule] /= max(int(rule.sum()), 1)
    return float(weights[nearer].sum() / weights.sum())
