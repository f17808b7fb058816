"""Points: one run each, with its learning rate, decay, seed and results.

A landscape needs no more than that, so runs of any origin can form one. `Points` is a table of them
as it was read, with remarks about rows that were left out and why.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, overload

from weightdecay import checks
from weightdecay.records import DECAYS

Label: TypeAlias = str | int | float | bool

#: The conventions of stating a decay: the name of ours that each is, and what it means.
CONVENTIONS = {
    "paper": (
        "weight_decay",
        "λ: one step removes this fraction of a weight; weightdecay's own weight_decay",
    ),
    "torch": (
        "weight_decay",
        "torch.optim's weight_decay: lr * decay is read as λ; rows of Adam or SGD are read as l2",
    ),
    "l2": (
        "l2",
        "a factor that goes through the gradient; torch.optim.SGD's and Adam's weight_decay",
    ),
    "normalized": ("normalized_decay", "λ_norm, which is λ times the root of the updates"),
}
#: What the numbers of a point can measure.
METRICS = ("error", "error_top5", "loss")
#: A loss this far from 0 is no result: its run diverged, and its square may overflow.
HUGE = 1e100


def is_result(value: float) -> bool:
    """Whether a number can be the result of a run that did not diverge."""
    return abs(value) < HUGE


@dataclass(frozen=True, kw_only=True)
class Point:
    """The result of one run.

    `way` is how the decay is stated: weight_decay (the paper's λ), normalized_decay or l2.
    `told_in` is the convention of the table that it was read from, if it was. `tested`
    is the number to report: an error as a fraction, or a loss, as `of` says. `chosen` is the number
    that choices are made on, None if that is `tested`. `tested_on` and `chosen_on` are their
    splits: "test", "validation", "training" or, if unknown, None. A run that diverged may have the
    error NaN. Points with equal splits and `labels` belong to one landscape; the label "updates" is
    the number of updates, N.
    """

    lr: float
    decay: float
    way: str
    tested: float
    told_in: str | None = None
    chosen: float | None = None
    tested_on: str | None = None
    chosen_on: str | None = None
    seed: int = 0
    train_loss: float | None = None
    diverged: bool = False
    of: str = "error"
    labels: Mapping[str, Label] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.number("lr", self.lr, above=0)
        checks.one_of("way", self.way, DECAYS)
        checks.number("decay", self.decay, at_least=0)
        if self.way == "weight_decay" and not self.decay < 1:
            raise ValueError(
                f"`decay` must be below 1, got {self.decay!r}. λ is the fraction of a weight that "
                "one step removes; if this is torch's weight_decay, λ is lr times that."
            )
        checks.whole("seed", self.seed, at_least=0)
        for name, split in (("tested_on", self.tested_on), ("chosen_on", self.chosen_on)):
            if split is not None:
                checks.one_of(name, split, ("training", "validation", "test"))
        checks.one_of("of", self.of, METRICS)
        for name, value in (("tested", self.tested), ("chosen", self.chosen)):
            if value is not None and not (self.diverged and not is_result(value)):
                cure = "A run without a result is no point, unless it diverged: diverged=True."
                checks.number(name, value, cure=cure)
                checks.number(f"abs({name})", abs(value), at_least=0, below=HUGE, cure=cure)


@dataclass(frozen=True)
class Remark:
    """Something to know about how a table was read: its kind, the number of rows, and a text.

    Kinds are "columns", "convention", "spelling", "optimizer", "diverged", "earlier", "repeated",
    "left out", "numbered" and "unused".
    """

    kind: str
    count: int
    text: str


@dataclass(frozen=True)
class Points(Sequence[Point]):
    """Points read from a table, with remarks about how it was read.

    `columns` names the column of the table that each setting, label and metric was read from.
    """

    points: tuple[Point, ...]
    remarks: tuple[Remark, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    @overload
    def __getitem__(self, at: int) -> Point: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Point, ...]: ...
    def __getitem__(self, at: int | slice) -> Point | tuple[Point, ...]:
        return self.points[at]

    def __repr__(self) -> str:
        said = "".join(f"\n  {remark.text}" for remark in self.remarks)
        return f"<{len(self)} points>{said}"


def checked_convention(value: object) -> str:
    """Return the convention; an unknown or missing one is an error that explains the choices."""
    if isinstance(value, str) and value in CONVENTIONS:
        return value
    meant = "".join(f"\n  {name!r}: {meaning}" for name, (_, meaning) in CONVENTIONS.items())
    got = "nothing" if value is None else repr(value)
    raise ValueError(
        f"`convention` must say how the decay is stated, got {got}. There is no default. It is one "
        f"of{meant}"
    )
