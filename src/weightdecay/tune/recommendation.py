"""What a tuner recommends, how sure it is, and what more compute would buy.

The setting is the one with the lowest expected height at the long run's budget. How sure that is,
is read off surfaces that are drawn at random from the belief.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weightdecay.decay import Decay
from weightdecay.tune.carrying import Carrying, carrying
from weightdecay.tune.choosing import belief_of, gains
from weightdecay.tune.heights import are_equal, unlearned
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome

#: How a setting is stated in each convention of a decay. A factor of L2 is no λ: it also goes
#: through the momentum and, in Adam, through the division by √v̂.
_STATED = {
    "weight_decay": "weight_decay {λ:.3g} (λ),\nthat is λ_norm = {norm:.3g}{in_torch}.",
    "normalized": "λ_norm = {norm:.3g},\nthat is λ = {λ:.3g}{in_torch}.",
    "torch": "torch's weight_decay {torch:.3g},\nthat is λ = {λ:.3g} and λ_norm = {norm:.3g}.",
    "l2": "an L2 factor of {torch:.3g}.",
}
_DRAWS = 400
_NOISE = 0.05  # of an error, which validation examples must measure more precisely than that
_UNSUPPORTED = "No run supports this setting."
_CURE = "Check that lr and weight_decay reach the optimizer, or spend more{longer}."
_LONGER = ", or make longer runs with `shortest`"


@dataclass(frozen=True)
class Recommendation:
    """The setting to use for the long run.

    epochs        of the long run           spent   by the trials, in long runs
    lr            α                         trials  how many were told
    learned       how many of them say something about the best setting
    weight_decay  in the tuner's `convention`; `decay` has it in every convention, where a factor of
                  L2 counts as λ/α, though no decay does the same
    algorithm     what the optimizer does, apart from L2: "adamw" or "sgdw"
    near          the probability that the best setting is within one doubling of this α and λ
    loss          by what fraction the error here is expected to exceed that of the best setting
    gain          by what fraction one more run is expected to lower the error
    next_epochs   the epochs of that run, the most instructive one of those that may be made
    carrying      by which rule λ is to be carried to other epochs, as far as the runs show it
    notes         sentences about what is wrong with the runs, or with the ranges
    """

    epochs: int
    lr: float
    weight_decay: float
    convention: str
    algorithm: str
    decay: Decay
    near: float
    loss: float
    gain: float
    next_epochs: int
    carrying: Carrying | None
    spent: float
    trials: int
    learned: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        count, decay = f"{self.trials} trial{'s' * (self.trials != 1)}", self.decay
        stated = _STATED[self.convention].format(
            λ=decay.weight_decay,
            norm=decay.normalized,
            torch=decay.torch,
            # Of SGD, torch has L2 alone.
            in_torch=f", or weight_decay {decay.torch:.3g} in torch" * (self.algorithm == "adamw"),
        )
        lines = [f"For {self.epochs} epochs, use lr {self.lr:.3g} and {stated}"]
        if self.learned:
            text = f"""\
Found by {count} that cost {self.spent:.2f} long runs.
The best is within a factor of two of both with probability {self.near:.0%}.
This setting is expected to have {self.loss:.1%} more error than the best.
One more run, of {self.next_epochs} epochs, would save about {self.gain:.1%}."""
            lines.append(text)
            if self.carrying is not None:
                lines.append(str(self.carrying))
        return "\n".join([*lines, *self.notes])


def recommend(
    space: Space,
    told: Mapping[Cell, Outcome],
    guess: float | None,
    validation: int | None = None,
) -> Recommendation:
    """Return the recommendation after what was told of so many validation examples."""
    equal = are_equal(told)
    belief = belief_of(space, {} if equal else told, guess)
    nothing = {*unlearned(told, guess, longest=space.longest)}
    nothing |= {cell.rung for cell in told if equal}
    finite = [cell for cell, outcome in told.items() if not outcome.diverged]
    learned = [cell for cell in finite if cell.rung not in nothing]
    best = int(belief.mean(space.long).argmin())
    draws = belief.drawn(space.long, _DRAWS)
    lowest = draws.argmin(axis=1)
    lr, _ = space.setting(best)
    plausible = np.unique(lowest)
    candidates = [plausible + space.place(at, 0) for at in range(len(space.ladder))]
    noise = (
        None if validation is None else _noise([told[cell].error for cell in learned], validation)
    )
    notes = _notes(space, told, best, nothing, None if equal else guess)
    gained = gains(belief, space.long, np.concatenate(candidates))
    instructive = int(gained.argmax()) // len(plausible)
    return Recommendation(
        epochs=space.epochs,
        lr=lr,
        weight_decay=space.stated(best, space.epochs),
        convention=space.convention,
        algorithm=space.algorithm,
        decay=space.decay(best, space.epochs),
        near=float(np.mean([space.doublings(best, int(at)) <= 1.01 for at in lowest])),
        loss=float((draws[:, best] - draws.min(axis=1)).mean()),
        gain=float(gained.max()),
        next_epochs=space.ladder[instructive],
        carrying=carrying(
            space, belief, best, (cell.rung for cell in learned), noisy=noise is not None
        ),
        spent=sum(outcome.epochs for outcome in told.values()) / space.epochs,
        trials=len(told),
        learned=len(learned),
        notes=(*notes, *([noise] if noise else [])),
    )


def _noise(errors: Sequence[float], examples: int) -> str | None:
    """Return a sentence if so few examples measure the lowest error too coarsely."""
    lowest = min(errors, default=1.0)
    error = max(lowest, 1 / examples)  # an error of 0 is not known more precisely
    if error >= 1 or (spread := math.sqrt(error * (1 - error) / examples)) <= _NOISE * error:
        return None
    needed = math.ceil((1 - error) / error / _NOISE**2)
    step = max(1, 10 ** (len(str(needed)) - 2))
    needed = math.ceil(needed / step) * step
    digits = 1 - math.floor(math.log10(spread))
    return (
        f"{examples} validation examples measure an error of {lowest:.{digits}f} only to "
        f"± {spread:.{digits}f}, so that all of this is less sure than it says. Hold out about "
        f"{needed} with `validation`."
    )


def _notes(
    space: Space,
    told: Mapping[Cell, Outcome],
    best: int,
    nothing: Collection[int],
    guess: float | None,
) -> Iterator[str]:
    diverged = sum(outcome.diverged for outcome in told.values())
    blank = [cell for cell, one in told.items() if cell.rung in nothing and not one.diverged]
    if not told:
        yield f"No trial was told yet. {_UNSUPPORTED}"
    elif diverged == len(told):
        yield (
            f"Every trial diverged. {_UNSUPPORTED} Check that a small learning rate trains at "
            "all, and lower the rates with `lr`."
        )
    elif len(blank) + diverged == len(told):
        cure = _CURE.format(longer=_LONGER * any(cell.rung < space.longest for cell in blank))
        yield f"Nothing was learned: {_why(space, nothing, blank, guess)} {_UNSUPPORTED} {cure}"
    else:
        if blank:
            yield f"Left out: {_why(space, nothing, blank, guess)}"
        if edges := space.edges(best):
            yield (
                f"The setting lies at an end of what was tried: better ones may have "
                f"{' or '.join(edges)}. Widen the range."
            )
    if 0 < diverged < len(told):
        yield f"{diverged} of {len(told)} trials diverged."


def _why(space: Space, rungs: Iterable[int], blank: list[Cell], guess: float | None) -> str:
    *some, last = (str(space.ladder[rung]) for rung in sorted(rungs))
    epochs = " and ".join(filter(None, (", ".join(some), last)))
    count = "the only trial" if len(blank) == 1 else f"all {len(blank)} trials"
    if guess is None:
        return f"{count} of {epochs} epochs came out alike."
    return f"{count} of {epochs} epochs learned too little: guessing has an error of {guess:g}."
