"""Ways to state a weight decay, and the way from each to every other.

This library's `weight_decay` is the paper's λ: the fraction of a weight removed in one update at
η = 1, whatever the learning rate is. Other people write the same decay down as

    normalized         λ_norm = λ · √N, with N = B·T/b updates in the run (or the cycle)
    torch              λ/α, the `weight_decay` of `torch.optim.AdamW` at learning rate α
    half-life          the updates, or epochs, after which an idle weight has halved
    timescale          1/λ: the updates, or epochs, over which the weights average their updates

with b the batch size, B the training points and T the epochs. Half-life and timescale are those at
η = 1; a schedule stretches them.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from weightdecay import checks
from weightdecay.table import shown, table

NOT_TORCH = (
    "It is the fraction of a weight removed in one step: torch's weight_decay times lr, so that "
    "torch's default of 0.01 is 0.01*lr here."
)


def checked_weight_decay(value: object) -> float:
    """Return λ as a float, or say what it should have been."""
    if value is None:
        raise TypeError(
            "`weight_decay` must be stated, for the optimizer or in every group. " + NOT_TORCH
        )
    return checks.number("weight_decay", value, at_least=0, below=1, cure=NOT_TORCH)


@dataclass(frozen=True)
class Normalized:
    """A weight decay that knows the budget: λ = value · N^(−power), N the updates of the cycle.

    With `power` ½ this is the paper's λ_norm · √(b/(B·T)). N is the length of the schedule's
    current cycle, so λ changes exactly at a restart; `steps` states N where the schedule has no
    end, and overrides it where it has one.
    """

    value: float
    _: KW_ONLY
    power: float = 0.5
    steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checks.number("value", self.value, at_least=0))
        object.__setattr__(self, "power", checks.number("power", self.power, at_least=0))
        if self.steps is not None:
            object.__setattr__(self, "steps", checks.whole("steps", self.steps, at_least=1))

    def weight_decay(self, length: int | None) -> float:
        """Return λ for a cycle of `length` updates; None is a cycle that never ends."""
        updates = length if self.steps is None else self.steps
        if updates is None:
            raise ValueError(
                f"`weight_decay` must be told the number of updates, got {self!r} and a schedule "
                f"without an end. Use a schedule that ends, such as Cosine(steps) or WarmRestarts, "
                f"or pass Normalized({self.value:g}, steps=…)."
            )
        try:
            weight_decay: float = self.value / updates**self.power
        except OverflowError:  # a power so large that nothing is left
            weight_decay = 0.0
        if not weight_decay < 1:
            raise ValueError(
                f"`weight_decay` must be below 1, got {weight_decay:g} from {self!r} over "
                f"{updates} updates. Lower the value, or lengthen the cycle."
            )
        return weight_decay


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the other ways of stating a decay refer to; None is not known."""

    lr: float | None = None
    updates: float | None = None
    updates_per_epoch: float | None = None


@dataclass(frozen=True)
class Decay:
    """One weight decay, stated every way; a way whose reference is not known is None.

    The ways are attributes, named like the arguments of `convert`; `print` shows them all.
    """

    weight_decay: float
    run: Reference = Reference()

    def __str__(self) -> str:
        return table([(title, shown(getattr(self, way))) for way, title in TITLES.items()])

    @property
    def normalized(self) -> float | None:
        """λ_norm: the decay to use if only one update were allowed."""
        return None if self.run.updates is None else self.weight_decay * math.sqrt(self.run.updates)

    @property
    def torch(self) -> float | None:
        """The `weight_decay` of `torch.optim.AdamW` that decays as much at this `lr`."""
        return None if self.run.lr is None else self.weight_decay / self.run.lr

    @property
    def half_life(self) -> float:
        """Updates until an idle weight has halved."""
        return math.log(2) / -math.log1p(-self.weight_decay) if self.weight_decay else math.inf

    @property
    def half_life_epochs(self) -> float | None:
        """Epochs until an idle weight has halved."""
        return self._in_epochs(self.half_life)

    @property
    def timescale(self) -> float:
        """Updates over which the weights average their updates."""
        return 1 / self.weight_decay if self.weight_decay else math.inf

    @property
    def timescale_epochs(self) -> float | None:
        """Epochs over which the weights average their updates."""
        return self._in_epochs(self.timescale)

    def _in_epochs(self, updates: float) -> float | None:
        per_epoch = self.run.updates_per_epoch
        return None if per_epoch is None else updates / per_epoch


#: What each way to state a decay is called.
TITLES = {
    "weight_decay": "λ, weightdecay's weight_decay",
    "normalized": "λ_norm, the paper's normalized decay",
    "torch": "torch.optim.AdamW's weight_decay",
    "half_life": "half-life, updates",
    "half_life_epochs": "half-life, epochs",
    "timescale": "averaging timescale, updates",
    "timescale_epochs": "averaging timescale, epochs",
}
# Each way to state a decay, with the way from it to λ; `Decay` has the ways back.
WAYS: dict[str, Callable[[float, Reference], float]] = {
    "weight_decay": lambda value, _: value,
    "normalized": lambda value, run: value / math.sqrt(_known(run, "updates")),
    "torch": lambda value, run: value * _known(run, "lr"),
    "half_life": lambda value, _: _halving(value),
    "half_life_epochs": lambda value, run: _halving(value * _known(run, "updates_per_epoch")),
    "timescale": lambda value, _: 1 / value,
    "timescale_epochs": lambda value, run: 1 / (value * _known(run, "updates_per_epoch")),
}
_LENGTHS = {"half_life", "half_life_epochs", "timescale", "timescale_epochs"}
_KNOWN_FROM = {
    "lr": "`lr`",
    "updates": "`steps`, or `batch`, `data` and `epochs`",
    "updates_per_epoch": "`batch` and `data`",
}


def convert(
    *,
    lr: float | None = None,
    batch: float | None = None,
    data: float | None = None,
    epochs: float | None = None,
    steps: float | None = None,
    **stated: float,
) -> Decay:
    """Take one statement of a decay and return all of them.

    State one of `weight_decay`, `normalized`, `torch`, `half_life`, `half_life_epochs`, `timescale`
    and `timescale_epochs`. `lr` is the learning rate that torch's decay refers to; `batch`, `data`
    and `epochs`, or else the number of updates as `steps`, the run that the others refer to.
    """
    for name in stated:
        if name not in WAYS:
            raise TypeError(f"`{name}` is no way to state a decay. There are {', '.join(WAYS)}.")
    if len(stated) != 1:
        raise ValueError(
            f"Exactly one decay must be stated, got {', '.join(stated) or 'none'}. "
            f"State one of {', '.join(WAYS)}."
        )
    run = _run(lr, batch, data, epochs, steps)
    [(name, value)] = stated.items()
    if name in _LENGTHS:
        number = checks.number(name, value, above=0)
    else:
        number = checks.number(name, value, at_least=0)
    weight_decay = WAYS[name](number, run)
    if not weight_decay < 1:
        raise ValueError(
            f"`{name}` must state less than a whole weight an update, got {value!r}, which is "
            f"λ = {weight_decay:g}. λ is the fraction of a weight removed in one update."
        )
    return Decay(weight_decay, run)


def _run(
    lr: float | None,
    batch: float | None,
    data: float | None,
    epochs: float | None,
    steps: float | None,
) -> Reference:
    for name, value in {
        "lr": lr,
        "batch": batch,
        "data": data,
        "epochs": epochs,
        "steps": steps,
    }.items():
        if value is not None:
            checks.number(name, value, above=0)
    if steps is not None and epochs is not None:
        raise ValueError(
            f"`steps` must not stand beside `epochs`, got {steps!r} and {epochs!r}. "
            "Both state the length of the run: pass one of them."
        )
    per_epoch = data / batch if data is not None and batch is not None else None
    updates = per_epoch * epochs if per_epoch is not None and epochs is not None else steps
    return Reference(lr=lr, updates=updates, updates_per_epoch=per_epoch)


def _known(run: Reference, name: str) -> float:
    value: float | None = getattr(run, name)
    if value is None:
        raise ValueError(f"This way to state a decay must come with {_KNOWN_FROM[name]}, got none.")
    return value


def _halving(updates: float) -> float:
    return -math.expm1(-math.log(2) / updates)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long a run is: `epochs` over `data` training points, `batch` of them an update."""

    batch: float
    data: float
    epochs: float

    def __post_init__(self) -> None:
        for name in ("batch", "data", "epochs"):
            checks.number(name, getattr(self, name), above=0)

    @property
    def updates(self) -> float:
        """N = B·T/b."""
        return self.data * self.epochs / self.batch


@dataclass(frozen=True, kw_only=True)
class BudgetExponents:
    """How the best λ falls as the budget grows: with which power of the epochs, data and batch.

    λ goes as epochs^−e · data^−d · batch^b.
    """

    epochs: float
    data: float
    batch: float

    def __post_init__(self) -> None:
        for name in ("epochs", "data", "batch"):
            checks.number(name, getattr(self, name))


#: The paper: λ_norm = λ√N stays the same.
NORMALIZED = BudgetExponents(epochs=0.5, data=0.5, batch=0.5)
#: Wang & Aitchison, 2024: the averaging timescale in epochs stays the same.
TIMESCALE = BudgetExponents(epochs=0, data=1, batch=1)


def transfer(
    weight_decay: float, *, tuned: Budget, now: Budget, rule: BudgetExponents = NORMALIZED
) -> float:
    """Carry a λ that was tuned on one budget over to another, by the paper's rule or `rule`."""
    if not isinstance(rule, BudgetExponents):
        raise TypeError(f"`rule` must be NORMALIZED, TIMESCALE or BudgetExponents, got {rule!r}.")
    return checked_weight_decay(
        checked_weight_decay(weight_decay)
        * (tuned.epochs / now.epochs) ** rule.epochs
        * (tuned.data / now.data) ** rule.data
        * (now.batch / tuned.batch) ** rule.batch
    )
