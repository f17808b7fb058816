"""What a run is: everything that changes its result, and the hash of that as its identity.

A name may carry options: `shakeshake26,width=32` is a `Spec`, and so are `adamw,betas=0.9/0.98`
and `restarts,first=10,factor=2`.
"""

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, Self, TypeAlias

from weightdecay import checks

#: Raised when the same configuration would train to another result than before.
SEMANTICS = 1
DECOUPLED = ("sgdw", "adamw")
COUPLED = ("sgd", "adam")
_LARGEST = 2.0**127
DECAYS = ("weight_decay", "normalized_decay", "l2")
#: The schedules and their options. All may have a `warmup` before them.
SCHEDULES = {
    "constant": ("warmup",),
    "cosine": ("low", "warmup"),
    "restarts": ("first", "factor", "low", "warmup"),
    "drops": ("at", "drop", "warmup"),
}
_REQUIRED = {"restarts": ("first",), "drops": ("at",)}
PRECISIONS = ("float32", "bfloat16")
#: What configurations must have in common to be trained side by side, as lanes.
SHARED = (
    *("task", "model", "epochs", "batch", "data", "validation", "precision"),
    *("evaluate_every", "keep_missed"),
)
# Fields that came later, and their values before: a run that has these is named as it was then.
_BEFORE = {"evaluate_every": 1, "keep_missed": False}

Option: TypeAlias = bool | int | float | str | tuple[float, ...]


@dataclass(frozen=True)
class Spec:
    """A name and its options, as one word that can be typed."""

    name: str
    options: Mapping[str, Option]

    @classmethod
    def parse(cls, field: str, text: object) -> Self:
        """Read `name,key=value,…`; a value is a number, a word, true, false, or numbers with /."""
        if not isinstance(text, str) or not text:
            raise TypeError(f"`{field}` must be a name such as {_EXAMPLES[field]!r}, got {text!r}.")
        name, *rest = text.split(",")
        pairs = [part.partition("=") for part in rest]
        if not name or any(not key.isidentifier() or not value for key, _, value in pairs):
            raise ValueError(
                f"`{field}` must be a name, or a name with options as in {_EXAMPLES[field]!r}, "
                f"got {text!r}."
            )
        options = {key: _option(value) for key, _, value in pairs}
        if len(options) < len(pairs):
            raise ValueError(f"`{field}` must name an option once, got {text!r}.")
        return cls(name, options)

    def __str__(self) -> str:
        shown = (f"{key}={_shown(value)}" for key, value in sorted(self.options.items()))
        return ",".join([self.name, *shown])


_EXAMPLES = {
    "task": "mnist1d",
    "model": "shakeshake26,width=32",
    "algorithm": "sgdw,momentum=0.9",
    "schedule": "restarts,first=10,factor=2",
}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that changes a run's result.

    `task` is a name, or a function that can be imported, which becomes MODULE:FUNCTION. The decay
    is stated in one way: `weight_decay` (the paper's λ) or `normalized_decay` (λ_norm)
    for sgdw and adamw, `l2` for sgd and adam. Any `module:Class` takes either: `l2` is its own
    weight_decay, the others decouple it. Lengths in `schedule` are epochs. `data` is the number of
    examples trained on, None all of them; `validation` the number held out to choose on, None a
    tenth of them, "test" none: then choices are made on the test set, as in the paper. An epoch has
    as many whole batches as the data fill. A run is evaluated, and leaves a record, after
    every `evaluate_every` epochs, where a cycle ends with one, and at its own end; 0: only there.
    With `keep_missed`, its last record says which test examples it missed.
    """

    task: str
    model: str
    algorithm: str
    lr: float
    weight_decay: float | None = None
    normalized_decay: float | None = None
    l2: float | None = None
    schedule: str = "cosine"
    epochs: int
    batch: int
    data: int | None = None
    validation: int | str | None = None
    seed: int = 0
    precision: str = "float32"
    evaluate_every: int = 1
    keep_missed: bool = False

    def __post_init__(self) -> None:
        settle = partial(object.__setattr__, self)
        for name in ("model", "algorithm", "schedule"):
            settle(name, str(Spec.parse(name, getattr(self, name))))
        settle("task", _task_name(self.task))
        schedule = Spec.parse("schedule", self.schedule)
        name = checks.one_of("schedule", schedule.name, SCHEDULES)
        checks.options(name, schedule.options, SCHEDULES[name], _REQUIRED.get(name, ()))
        checks.one_of("precision", self.precision, PRECISIONS)
        settle("lr", checks.number("lr", self.lr, above=0))
        if self.lr > _LARGEST:
            raise ValueError(f"`lr` must be a number that float32 can hold, got {self.lr:g}.")
        for name in ("epochs", "batch"):
            settle(name, checks.whole(name, getattr(self, name), at_least=1))
        if self.data is not None:
            cure = f"A batch has {self.batch}."
            settle("data", checks.whole("data", self.data, at_least=self.batch, cure=cure))
        if isinstance(self.validation, str):
            checks.one_of("validation", self.validation, ("test",))
        elif self.validation is not None:
            settle("validation", checks.whole("validation", self.validation, at_least=1))
        for name in ("seed", "evaluate_every"):
            settle(name, checks.whole(name, getattr(self, name), at_least=0))
        checks.flag("keep_missed", self.keep_missed)
        if self.seed >= 2**32:
            raise ValueError(f"`seed` must be below 2^32, got {self.seed}.")
        self._check_decay()

    def _check_decay(self) -> None:
        name = Spec.parse("algorithm", self.algorithm).name
        if name not in DECOUPLED + COUPLED and ":" not in name:
            known = ", ".join(DECOUPLED + COUPLED)
            raise ValueError(
                f"`algorithm` must be one of {known}, or a class as in "
                f"'torch.optim:NAdam', got {name!r}. "
                f"{checks.did_you_mean(name, DECOUPLED + COUPLED)}".rstrip()
            )
        ways = [way for way in DECAYS if name not in (DECOUPLED if way == "l2" else COUPLED)]
        stated = [way for way in DECAYS if getattr(self, way) is not None]
        if len(stated) != 1 or stated[0] not in ways:
            raise ValueError(
                f"The decay of {name} must be stated once, as {' or '.join(f'`{w}`' for w in ways)}"
                f", got {', '.join(f'`{way}`' for way in stated) or 'none'}."
            )
        [way] = stated
        below = 1 if way == "weight_decay" else math.inf
        value = checks.number(way, getattr(self, way), at_least=0, below=below) + 0.0  # not -0
        object.__setattr__(self, way, value)

    @cached_property
    def identity(self) -> str:
        """Twenty letters and digits that stand for this configuration and no other."""
        values = self.as_dict()
        values = {k: v for k, v in values.items() if k not in _BEFORE or v != _BEFORE[k]}
        text = json.dumps({"semantics": SEMANTICS, **values}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration of such values; unknown names are an error."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            meant = " ".join(filter(None, (checks.did_you_mean(name, known) for name in unknown)))
            raise ValueError(f"Unknown RunConfig fields: {', '.join(unknown)}. {meant}".rstrip())
        return cls(**values)


def _task_name(task: object) -> str:
    """Return a task's name; of a function, the one that any process can import it by."""
    if isinstance(task, str):
        Spec.parse("task", task)
        return task
    if not callable(task):
        raise TypeError(
            f"`task` must be a name, or a function that can be imported, got a "
            f"{type(task).__name__}. A Task needs a name here, and is handed over beside the "
            "configuration: train(RunConfig(task='mine', …), task=…)."
        )
    module, name = getattr(task, "__module__", ""), getattr(task, "__qualname__", "")
    if module == "__main__" or getattr(sys.modules.get(module), name, None) is not task:
        raise ValueError(
            f"A function that is a `task` must be at the top of a module that can be imported, got "
            f"{task!r}. Move it there. Or choose a name, and hand the function over beside the "
            "configuration: train(RunConfig(task='mine', …), task=…)."
        )
    return f"{module}:{name}"


def _option(text: str) -> Option:
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float, _listed):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _listed(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split("/")))


def _shown(value: Option) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "/".join(map(repr, value)) if isinstance(value, tuple) else str(value)
