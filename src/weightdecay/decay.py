"""Ways to state a weight decay, and conversions between them.

This library's `weight_decay` is the paper's λ: the fraction of a weight removed in one update at
η = 1, whatever the learning rate is. Others state the same decay as

    normalized         λ_norm = λ · √N, with N = B·T/b updates in the run (or the cycle)
    torch              λ/α, the `weight_decay` of `torch.optim.AdamW` at learning rate α
    half-life          the updates, or epochs, after which a weight without gradients has halved
    timescale          1/λ: the updates, or epochs, over which the weights average their updates

where b is the batch size, B the number of training points and T the epochs. Half-life and timescale
are given at η = 1; a schedule makes them longer.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from weightdecay import checks
from weightdecay.table import shown, table

#: Where a person who reads about a decay finds out which one to use.
CHOOSING = "docs/choosing.md says which decay to start with, and when to change it"
NOT_TORCH = (
    "It is the fraction of a weight removed in one step: torch's weight_decay times lr, so "
    "torch's default of 0.01 is 0.01*lr here."
)


def checked_weight_decay(value: object) -> float:
    """Return λ as a float; raise if it is not in [0, 1)."""
    if value is None:
        raise TypeError(
            "`weight_decay` must be stated, for the optimizer or in every group. " + NOT_TORCH
        )
    return checks.number("weight_decay", value, at_least=0, below=1, cure=NOT_TORCH)


# From these values on, λ was probably meant as torch's: a weight without gradients halves within 69
# updates, and AdamW keeps weights within about α/λ, which is at most a third. In no landscape under
# results/ is such a cell near the best; the best cells have λ up to 0.0156, but then α ≥ λ.
_LARGE, _TIMES_LR = 0.01, 3


def meant_as_torchs(weight_decay: float, lr: float) -> bool:
    """Whether λ was probably meant as torch's: it is at least 0.01 and at least three times α."""
    return weight_decay >= max(_LARGE, _TIMES_LR * lr)


@checks.constructor
@dataclass(frozen=True)
class Normalized:
    """A weight decay that depends on the budget: λ = value · N^(−power), with N updates.

    With `power` ½ this is the paper's λ_norm · √(b/(B·T)). N is the length of the schedule's
    current cycle, so λ changes exactly at a restart. `steps` sets N instead; it is required if the
    schedule never ends.
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
        """Return λ for a cycle of `length` updates; None means that the cycle never ends."""
        updates = length if self.steps is None else self.steps
        if updates is None:
            raise ValueError(
                f"A normalized decay must know the number of updates, got {self!r} and a schedule "
                "that never ends. Use one that ends, such as Cosine(steps) or WarmRestarts, or "
                f"pass Normalized({self.value:g}, steps=…)."
            )
        try:
            weight_decay: float = self.value / updates**self.power
        except OverflowError:  # the power is so large that λ is 0
            weight_decay = 0.0
        if not weight_decay < 1:
            raise ValueError(
                f"`weight_decay` must be below 1, got {weight_decay:g} from {self!r} over "
                f"{updates} updates. Lower the value, or lengthen the cycle."
            )
        return weight_decay


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The run that other ways of stating a decay refer to; None if a number is unknown."""

    lr: float | None = None
    updates: float | None = None
    updates_per_epoch: float | None = None


@dataclass(frozen=True)
class Decay:
    """One weight decay, stated in every way; None if the numbers for a way are unknown.

    The attributes are named like the arguments of `convert`; `print` shows them all.
    """

    weight_decay: float
    run: Reference = Reference()

    def __str__(self) -> str:
        return table([(title, shown(getattr(self, way))) for way, title in TITLES.items()])

    @property
    def normalized(self) -> float | None:
        """λ_norm: the decay to use if the run had only one update."""
        return None if self.run.updates is None else self.weight_decay * math.sqrt(self.run.updates)

    @property
    def torch(self) -> float | None:
        """The `weight_decay` of `torch.optim.AdamW` that does the same at this `lr`."""
        return None if self.run.lr is None else self.weight_decay / self.run.lr

    @property
    def half_life(self) -> float:
        """Updates until a weight without gradients has halved."""
        return math.log(2) / -math.log1p(-self.weight_decay) if self.weight_decay else math.inf

    @property
    def half_life_epochs(self) -> float | None:
        """Epochs until a weight without gradients has halved."""
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


#: The label of each way to state a decay.
TITLES = {
    "weight_decay": "λ, weightdecay's weight_decay",
    "normalized": "λ_norm, the paper's normalized decay",
    "torch": "torch.optim.AdamW's weight_decay",
    "half_life": "half-life, updates",
    "half_life_epochs": "half-life, epochs",
    "timescale": "averaging timescale, updates",
    "timescale_epochs": "averaging timescale, epochs",
}
#: For each way to state a decay, the conversion to λ. `Decay` converts back.
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
    """Convert a decay that is stated in one way to all other ways.

    Pass one of `weight_decay`, `normalized`, `torch`, `half_life`, `half_life_epochs`, `timescale`
    and `timescale_epochs`. `lr` is the learning rate that torch's decay refers to. `batch`, `data`
    and `epochs`, or the number of updates as `steps`, describe the run that the others refer to.
    docs/choosing.md says which decay to start with, and when to change it.
    """
    for name in stated:
        if name not in WAYS:
            meant = checks.did_you_mean(name, WAYS)
            problem = f"Unknown way to state a decay: `{name}`. {meant}".rstrip()
            raise TypeError(f"{problem} Pass one of {', '.join(WAYS)}.")
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
            f"`{name}` must give a λ below 1, got {value!r}, which is λ = {weight_decay:g}. λ is "
            "the fraction of a weight removed in one update."
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
            f"`steps` and `epochs` must not both be given, got {steps!r} and {epochs!r}. "
            "Both state the length of the run: pass one of them."
        )
    per_epoch = data / batch if data is not None and batch is not None else None
    updates = per_epoch * epochs if per_epoch is not None and epochs is not None else steps
    return Reference(lr=lr, updates=updates, updates_per_epoch=per_epoch)


def _known(run: Reference, name: str) -> float:
    value: float | None = getattr(run, name)
    if value is None:
        raise ValueError(
            f"Converting this decay also needs {_KNOWN_FROM[name]}, which was not given."
        )
    return value


def _halving(updates: float) -> float:
    return -math.expm1(-math.log(2) / updates)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The length of a run: `epochs` over `data` training points, `batch` of them per update."""

    batch: float
    data: float
    epochs: float

    def __post_init__(self) -> None:
        for name in ("batch", "data", "epochs"):
            checks.number(name, getattr(self, name), above=0)

    @property
    def updates(self) -> float:
        """The number of updates, N = B·T/b."""
        return self.data * self.epochs / self.batch


@dataclass(frozen=True, kw_only=True)
class BudgetExponents:
    """How the best λ changes with the budget: λ ∝ epochs^−e · data^−d · batch^b.

    The fields are the exponents e, d and b.
    """

    epochs: float
    data: float
    batch: float

    def __post_init__(self) -> None:
        for name in ("epochs", "data", "batch"):
            checks.number(name, getattr(self, name))


#: The paper's rule: λ_norm = λ√N stays constant.
NORMALIZED = BudgetExponents(epochs=0.5, data=0.5, batch=0.5)
#: Wang & Aitchison, 2024: the averaging timescale in epochs stays constant.
TIMESCALE = BudgetExponents(epochs=0, data=1, batch=1)


def transfer(
    weight_decay: float, *, tuned: Budget, now: Budget, rule: BudgetExponents = NORMALIZED
) -> float:
    """Convert a λ tuned on one budget to another, by `rule`; the default is the paper's rule."""
    if not isinstance(rule, BudgetExponents):
        raise TypeError(f"`rule` must be NORMALIZED, TIMESCALE or BudgetExponents, got {rule!r}.")
    return checked_weight_decay(
        checked_weight_decay(weight_decay)
        * (tuned.epochs / now.epochs) ** rule.epochs
        * (tuned.data / now.data) ** rule.data
        * (now.batch / tuned.batch) ** rule.batch
    )
