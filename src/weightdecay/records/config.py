"""What a run is: everything that changes its result, and the hash of that as its identity.

A name may have options, as in `shakeshake26,width=32`, `adamw,betas=0.9/0.98` and
`restarts,first=10,factor=2`: each is a `Spec`.
"""

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from typing import Any, Self, TypeAlias

from weightdecay import checks

#: Increased when a change makes the same configuration train to a different result.
SEMANTICS = 1
# Added to it for a built-in task whose data changed. mnist1d: 20,000 test examples, not 1,000.
_CHANGED = {"mnist1d": 1}
DECOUPLED = ("sgdw", "adamw")
COUPLED = ("sgd", "adam")
_LARGEST = 2.0**127
DECAYS = ("weight_decay", "normalized_decay", "l2")
#: The schedules and their options.
SCHEDULES = {
    "constant": ("warmup",),
    "cosine": ("low", "warmup"),
    "restarts": ("first", "factor", "low", "warmup"),
    "drops": ("at", "drop", "warmup"),
}
_REQUIRED = {"restarts": ("first",), "drops": ("at",)}
PRECISIONS = ("float32", "bfloat16")
#: The fields that configurations must share to train side by side, as lanes.
SHARED = (
    *("task", "model", "epochs", "batch", "data", "validation", "precision"),
    *("evaluate_every", "keep_missed"),
)
# Fields that were added later, and the values that runs had before. A field with that value is left
# out of the identity, so that older runs keep their names.
_ADDED = {"evaluate_every": 1, "keep_missed": False}

Option: TypeAlias = bool | int | float | str | tuple[float, ...]


@dataclass(frozen=True)
class Spec:
    """A name and its options, written as one word."""

    name: str
    options: Mapping[str, Option]

    @classmethod
    def parse(cls, field: str, text: object) -> Self:
        """Parse `name,key=value,…`; a value is true, false, a number, 0.9/0.98 or a word."""
        if not isinstance(text, str) or not text:
            raise TypeError(f"`{field}` must be a name such as {_EXAMPLES[field]!r}, got {text!r}.")
        return cls._parsed(field, text)

    @classmethod
    @lru_cache(maxsize=1024)  # a grid has few names and many cells
    def _parsed(cls, field: str, text: str) -> Self:
        name, *rest = text.split(",")
        pairs = [part.partition("=") for part in rest]
        if not name or any(not key.isidentifier() or not value for key, _, value in pairs):
            raise ValueError(
                f"`{field}` must be a name, or a name with options as in {_EXAMPLES[field]!r}, "
                f"got {text!r}."
            )
        options = {key: _option(value) for key, _, value in pairs}
        if len(options) < len(pairs):
            raise ValueError(f"`{field}` must have each option only once, got {text!r}.")
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

    `task` is a name, or a function that can be imported, which becomes MODULE:FUNCTION.

    The decay is given in exactly one way: `weight_decay` (the paper's λ) or `normalized_decay`
    (λ_norm) for sgdw and adamw, `l2` for sgd and adam. An optimizer class `module:Class` takes any
    of them: `l2` is passed as its own weight_decay, the other two decouple the decay.

    Lengths in `schedule` are in epochs. An epoch has as many whole batches as the data fill.

    `data` is the number of training examples; None means all. `validation` is the number held out
    to choose settings on; None means a tenth. "test" holds out none, and settings are chosen on the
    test set, as in the paper.

    A run is evaluated and leaves a record every `evaluate_every` epochs, at the end of each cycle
    that ends with an epoch, and at its own end; with 0, only at cycle ends and its own end. With
    `keep_missed`, the last record says which test examples were misclassified.
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
        set_field = partial(object.__setattr__, self)
        for name in ("model", "algorithm", "schedule"):
            set_field(name, str(Spec.parse(name, getattr(self, name))))
        set_field("task", _task_name(self.task))
        schedule = Spec.parse("schedule", self.schedule)
        name = checks.one_of("schedule", schedule.name, SCHEDULES)
        checks.options(name, schedule.options, SCHEDULES[name], _REQUIRED.get(name, ()))
        checks.one_of("precision", self.precision, PRECISIONS)
        set_field("lr", checks.number("lr", self.lr, above=0))
        if self.lr > _LARGEST:
            raise ValueError(f"`lr` must fit in float32, got {self.lr:g}.")
        for name in ("epochs", "batch"):
            set_field(name, checks.whole(name, getattr(self, name), at_least=1))
        if self.data is not None:
            cure = f"A batch has {self.batch} examples."
            set_field("data", checks.whole("data", self.data, at_least=self.batch, cure=cure))
        if isinstance(self.validation, str):
            checks.one_of("validation", self.validation, ("test",))
        elif self.validation is not None:
            set_field("validation", checks.whole("validation", self.validation, at_least=1))
        for name in ("seed", "evaluate_every"):
            set_field(name, checks.whole(name, getattr(self, name), at_least=0))
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
        """Return a hash of twenty hexadecimal digits that no other configuration has."""
        values = self.as_dict()
        values = {k: v for k, v in values.items() if k not in _ADDED or v != _ADDED[k]}
        text = json.dumps({"semantics": semantics(self.task), **values}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration with these values; unknown fields are an error."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            meant = " ".join(filter(None, (checks.did_you_mean(name, known) for name in unknown)))
            raise ValueError(f"Unknown RunConfig fields: {', '.join(unknown)}. {meant}".rstrip())
        return cls(**values)


def semantics(task: str) -> int:
    """Return the version of what runs of a task mean; results of another version do not count."""
    return SEMANTICS + _CHANGED.get(task, 0)


def _task_name(task: object) -> str:
    """Return a task's name; for a function, the name that any process can import it by."""
    if isinstance(task, str):
        Spec.parse("task", task)
        return task
    if not callable(task):
        raise TypeError(
            f"`task` must be a name, or a function that can be imported, got a "
            f"{type(task).__name__}. Give a Task a name here, and pass the Task itself to `train` "
            "or `sweep`: train(RunConfig(task='mine', …), task=…)."
        )
    module, name = getattr(task, "__module__", ""), getattr(task, "__qualname__", "")
    if module == "__main__" or getattr(sys.modules.get(module), name, None) is not task:
        raise ValueError(
            f"A `task` function must be defined at the top level of an importable module, got "
            f"{task!r}. Move it there. Or choose a name, and pass the function itself to `train` "
            "or `sweep`: train(RunConfig(task='mine', …), task=…)."
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
