"""What a tuner may try: a lattice of learning rates and decays, and a ladder of budgets.

Decays are normalized here, λ_norm = λ·√N with N the updates of a run, and stated in the convention
of a user's optimizer at the door.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from weightdecay import checks
from weightdecay.decay import Decay, Reference
from weightdecay.tune.belief import Places, Prior
from weightdecay.tune.shapes import Expected

#: The learning rates to search if none are given: four doublings on either side of the start.
LRS = {"adamw": (0.002 / 16, 0.002 * 16), "sgdw": (0.05 / 16, 0.05 * 16)}
#: The normalized decays to search if none are given.
DECAYS = (2.0**-8, 2.0)
#: What they are multiplied by if an optimizer has L2 regularization: a momentum of 0.9 applies
#: L2 ten times, and Adam divides it by √v̂, which makes smaller factors do. In committed sweeps the
#: best factors times α·√updates are 0.010 to 0.038 for SGD, and 0.0002 to 0.009 for Adam.
L2 = {"adamw": 2.0**-6, "sgdw": 0.1}
#: Where the search starts (docs/choosing.md): λ_norm = 1.5/√n with n updates per epoch, and at most
#: λ = 3α with Adam, less in runs of fewer than 600 updates, in proportion to them. No such start is
#: known for Adam with L2: there, it is the middle of the range.
START, BOUND, FEW = 1.5, 3.0, 600
#: How a user's optimizer states its decay.
CONVENTIONS = ("weight_decay", "normalized", "torch", "l2")
_HALVINGS = 4  # the shortest run is this many halvings of the long one
_SPREAD = 1 / 6  # of a range, by which the best is expected to differ from its middle
_DOUBT = 0.55  # doublings by which the best λ_norm is expected to differ from the start
Axis: TypeAlias = Sequence[float]


@dataclass(frozen=True)
class Space:
    """Learning rates, normalized decays, and the epochs of runs, from the shortest to the long one.

    `convention` is how the user's optimizer states a decay, and `algorithm` is what it does, apart
    from L2.
    """

    lrs: tuple[float, ...]
    decays: tuple[float, ...]
    ladder: tuple[int, ...]
    updates_per_epoch: int
    convention: str
    algorithm: str

    @property
    def epochs(self) -> int:
        """The epochs of the long run."""
        return self.ladder[-1]

    @property
    def longest(self) -> int:
        """The rung of the long run."""
        return len(self.ladder) - 1

    @property
    def size(self) -> int:
        """The number of settings."""
        return len(self.lrs) * len(self.decays)

    def place(self, rung: int, setting: int) -> int:
        """Return the number of a place: a setting at a rung of the ladder."""
        return rung * self.size + setting

    @cached_property
    def long(self) -> Places:
        """The places at the long run's budget."""
        return np.arange(self.size) + self.place(self.longest, 0)

    @property
    def prior(self) -> Prior:
        """The belief about all places before the first run."""
        return _prior(self)

    def setting(self, index: int) -> tuple[float, float]:
        """Return the learning rate and the normalized decay of a setting."""
        row, column = divmod(index, len(self.decays))
        return self.lrs[row], self.decays[column]

    def doublings(self, one: int, other: int) -> float:
        """Return how far apart two settings are, along the axis on which they are farther."""
        (lr, decay), (lr_other, decay_other) = self.setting(one), self.setting(other)
        return max(abs(math.log2(lr / lr_other)), abs(math.log2(decay / decay_other)))

    def decay(self, index: int, epochs: int) -> Decay:
        """Return the decay of a setting in a run of so many epochs, in every convention."""
        lr, normalized = self.setting(index)
        updates = epochs * self.updates_per_epoch
        run = Reference(lr=lr, updates=updates, updates_per_epoch=self.updates_per_epoch)
        return Decay(normalized / math.sqrt(updates), run)

    def stated(self, index: int, epochs: int) -> float:
        """Return a setting's decay in the user's convention."""
        decay = self.decay(index, epochs)
        if self.convention == "weight_decay":
            return decay.weight_decay
        value = decay.normalized if self.convention == "normalized" else decay.torch
        assert value is not None
        return value

    def edges(self, index: int) -> tuple[str, ...]:
        """Return what to widen if a setting lies at an end of the ranges."""
        row, column = divmod(index, len(self.decays))
        found = []
        for name, at, axis in (("lr", row, self.lrs), ("normalized_decay", column, self.decays)):
            if len(axis) > 1 and at in (0, len(axis) - 1):
                end = "below" if at == 0 else "above"
                found.append(f"`{name}` {end} {axis[at]:.3g}")
        return tuple(found)


def space(
    *,
    epochs: int,
    updates_per_epoch: int,
    algorithm: str,
    convention: str,
    lr: Axis | None,
    normalized_decay: Axis | None,
    shortest: int | None,
) -> Space:
    """Check what a user gave, and return the lattice and the ladder."""
    epochs = checks.whole("epochs", epochs, at_least=1)
    updates = checks.whole(
        "updates_per_epoch",
        updates_per_epoch,
        at_least=1,
        cure="It is the number of optimizer steps per epoch: len(loader) in most loops.",
    )
    checks.one_of("algorithm", algorithm, tuple(LRS))
    checks.one_of("convention", convention, CONVENTIONS)
    if shortest is not None and checks.whole("shortest", shortest, at_least=1) > epochs:
        raise ValueError(f"`shortest` must be at most the {epochs} epochs, got {shortest}.")
    if normalized_decay is None:
        factor = L2[algorithm] if convention == "l2" else 1.0
        normalized_decay = [factor * end for end in DECAYS]
    found = Space(
        _axis("lr", LRS[algorithm] if lr is None else lr, step=1.0),
        _axis("normalized_decay", normalized_decay, 0.5),
        ladder(epochs, shortest),
        updates,
        convention,
        algorithm,
    )
    highest = found.decays[-1] / math.sqrt(found.ladder[0] * updates)
    if not highest < 1:
        raise ValueError(
            f"`normalized_decay` must give a λ below 1 in the shortest run, got "
            f"{found.decays[-1]:g} over {found.ladder[0] * updates} updates. Lower its upper end, "
            "or raise `shortest`."
        )
    return found


@lru_cache(maxsize=8)  # it is large, and tuners of the same space share it
def _prior(space: Space) -> Prior:
    x, z = np.log2(space.lrs), np.log2(space.decays)
    budgets = np.log2(np.array(space.ladder) / space.epochs)
    rows = [(one, other, budget) for budget in budgets for one in x for other in z]
    spread = max(float(x[-1] - x[0]) * _SPREAD, 0.5)
    decay, doubt = float(z[0] + z[-1]) / 2, max(float(z[-1] - z[0]) * _SPREAD, 0.5)
    bound = None
    coupled, adam = space.convention == "l2", space.algorithm == "adamw"
    updates = space.epochs * space.updates_per_epoch
    room = math.log2(updates / FEW)
    if not (coupled and adam):
        start = START * (L2[space.algorithm] if coupled else 1.0)
        decay = math.log2(start / math.sqrt(space.updates_per_epoch)) + min(room, 0)
        decay, doubt = min(max(decay, float(z[0])), float(z[-1])), _DOUBT
        if adam:
            bound = math.log2(BOUND * math.sqrt(updates))
    middle = float(x[0] + x[-1]) / 2
    return Prior(np.array(rows), Expected(middle, spread, decay, doubt, bound, room))


def ladder(epochs: int, least: int | None = None) -> tuple[int, ...]:
    """Return the epochs of runs, each half of the next; `least` is a sixteenth by default."""
    least = max(1, epochs >> _HALVINGS) if least is None else least
    rungs = [epochs]
    while rungs[-1] // 2 >= least:
        rungs.append(rungs[-1] // 2)
    return tuple(reversed(rungs))


def _axis(name: str, given: Any, step: float) -> tuple[float, ...]:
    """Return the values of an axis: those given or, of two, all between them in equal factors."""
    cure = "Give its lowest and highest value, or all values to try."
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise TypeError(f"`{name}` must be two numbers or more, got {given!r}. {cure}")
    values = [checks.number(name, value, above=0, cure=cure) for value in given]
    if any(one >= other for one, other in itertools.pairwise(values)):
        raise ValueError(f"`{name}` must increase, got {given!r}. {cure}")
    if len(values) != 2:
        return tuple(values)
    low, high = values
    count = max(1, round(math.log2(high / low) / step))
    between = np.geomspace(low, high, count + 1)[1:-1]
    return (low, *(float(f"{value:.12g}") for value in between), high)  # without rounding errors
