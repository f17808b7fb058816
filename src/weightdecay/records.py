"""What a run is, and what it leaves: plain data that knows no torch.

    RunConfig     everything that changes a run's result; its hash is the run's identity
    Record        what an epoch of a run came to
    Environment   where a run was trained: device, versions, commit, a hash of the source
    Run           a configuration with all its records, and its environment
    Started       a run's environment, before its records
    Timing        how long that took: apart, so that results can be compared byte for byte
    Progress      how far a run has come since its last record, for the person who waits
    Notice        something that person should read

A name may carry options: `shakeshake26,width=32` is a `Spec`, and so are `adamw,betas=0.9/0.98`
and `restarts,first=10,factor=2`.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
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
SCHEDULES = ("constant", "cosine", "restarts", "drops")
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

    The decay is stated in one way: `weight_decay` (the paper's λ) or `normalized_decay` (λ_norm)
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
        Spec.parse("task", self.task)
        checks.one_of("schedule", Spec.parse("schedule", self.schedule).name, SCHEDULES)
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
                f"'torch.optim:NAdam', got {name!r}."
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
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"A RunConfig must have no {', '.join(sorted(unknown))}, got some.")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class Record:
    """What an epoch came to. Losses and errors are means over examples; errors are fractions.

    Those of training were gathered while the weights moved; the others are of the weights at the
    epoch's end. `lr` and `decay` are α·η and λ·η of its last update, as the optimizer applied them.
    `budget` is the number of updates that the whole run has, and `cycle_updates` those of the cycle
    that the epoch ended in: the N that normalized decay is divided by the root of. `missed` are the
    test examples that were missed, as `unpacked` reads them, where the run keeps them. Where a run
    diverged, numbers that are not finite are None. So is what was not recorded yet in its time.
    """

    run: str
    epoch: int
    updates: int
    train_loss: float | None
    train_error: float
    validation_loss: float | None
    validation_error: float
    validation_error_top5: float
    test_loss: float | None
    test_error: float
    test_error_top5: float
    lr: float
    decay: float
    weight_norm: float | None
    cycle_ended: bool
    budget: int | None = None
    cycle_updates: int | None = None
    missed: str | None = None
    diverged: bool = False  # last, where a line of a log ends


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where a run was trained: what may change its bits and is no part of its configuration.

    `source` is a hash of the package's own files. `commit` is git's, with "+" where files differ
    from it, and "unknown" where there is none. Of a run that was taken up elsewhere each field has
    all its values, as in "2.11.0 + 2.13.0".
    """

    device: str
    torch: str
    python: str
    version: str
    commit: str
    source: str

    def then(self, later: Self) -> Self:
        """Return the environment of a run that was begun in this one and taken up in another."""
        return type(self)(
            **{
                name: " + ".join(
                    dict.fromkeys([*mine.split(" + "), *vars(later)[name].split(" + ")])
                )
                for name, mine in vars(self).items()
            }
        )


@dataclass(frozen=True)
class Run:
    """A run that has ended: its configuration, and its records until the last that it had.

    Of one that was made before environments were recorded, that is None.
    """

    config: RunConfig
    records: tuple[Record, ...]
    environment: Environment | None = None

    @property
    def last(self) -> Record:
        """Return what the run came to."""
        return self.records[-1]

    @property
    def diverged(self) -> bool:
        """Whether it diverged: a result like any other."""
        return self.last.diverged


@dataclass(frozen=True)
class Started:
    """A run that is trained from here on, and where; its records come after it."""

    run: str
    environment: Environment


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What epochs took, until one that left a record, in seconds; how many lanes shared them."""

    run: str
    epoch: int
    epochs: int
    training: float
    evaluation: float
    lanes: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a pack of lanes has come, and the means of its best lane in this epoch."""

    update: int
    updates: int
    epoch: int
    epochs: int
    loss: float
    error: float
    multiplier: float
    speed: float
    lanes: int

    @property
    def seconds_left(self) -> float:
        """Return what is left at this speed, which is in updates of all lanes a second."""
        return (self.updates - self.update) * self.lanes / self.speed if self.speed else math.inf


@dataclass(frozen=True)
class Notice:
    """Something the person who waits should read."""

    text: str


@dataclass(frozen=True)
class Saving:
    """What a run has come to is being saved, which may take long."""


#: What a training yields.
Event: TypeAlias = Started | Record | Timing | Progress | Notice | Saving


def packed(bits: Sequence[bool]) -> str:
    """Return bits as their number and base64, which `unpacked` reads."""
    whole = int("1" + "".join("1" if bit else "0" for bit in bits), 2)
    size = (len(bits) + 8) // 8
    return f"{len(bits)}:{base64.b64encode(whole.to_bytes(size)).decode()}"


def unpacked(text: str) -> list[bool]:
    """Return the bits that `packed` was given."""
    count, _, body = text.partition(":")
    found = f"{int.from_bytes(base64.b64decode(body, validate=True)):b}"[1:]
    if len(found) != int(count):
        raise ValueError(f"Packed bits must be the {count} that they say, got {len(found)}.")
    return [bit == "1" for bit in found]


def finite(value: float) -> float | None:
    """Return a number that JSON can say, or None."""
    return value if math.isfinite(value) else None


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
