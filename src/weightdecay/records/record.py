"""What a run leaves behind: one record per evaluated epoch, and where it was trained."""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from weightdecay.records.config import DECAYS, RunConfig


@dataclass(frozen=True, kw_only=True)
class Record:
    """The results of one epoch. Losses and errors are means over examples; errors are fractions.

    If a task has its own metric, `metric` is its name, errors are values of that metric, and there
    is no top-5 error.

    Training loss and error are measured during the epoch, while the weights change; the others are
    of the weights at its end. `lr` and `decay` are α·η and λ·η of its last update, as the optimizer
    applied them. `budget` is the number of updates in the whole run. `cycle_updates` is the number
    of updates in the cycle that the epoch ended in: the N in λ = λ_norm/√N. `missed` are the test
    examples that were misclassified, packed for `unpacked`, if the run keeps them.

    If a run diverged, numbers that are not finite are None. So are values that were not recorded
    yet when the run was trained.
    """

    run: str
    epoch: int
    updates: int
    train_loss: float | None
    train_error: float | None
    validation_loss: float | None
    validation_error: float | None
    validation_error_top5: float | None
    test_loss: float | None
    test_error: float | None
    test_error_top5: float | None
    lr: float
    decay: float
    weight_norm: float | None
    cycle_ended: bool
    budget: int | None = None
    cycle_updates: int | None = None
    missed: str | None = None
    metric: str | None = None
    diverged: bool = False  # last: the codec looks for it at the end of a line


#: What the names of processors begin with.
_PROCESSORS = ("x86_64", "AMD64", "i686", "aarch64", "arm", "ppc64", "riscv", "s390x")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where a run was trained: what may change its bits but is not part of its configuration.

    `source` is a hash of the package's own files. `commit` is the git commit, with "+" if files
    differ from it, or "unknown". If a run was resumed in another environment, each field lists all
    its values, as in "2.11.0 + 2.13.0".
    """

    device: str
    torch: str
    python: str
    version: str
    commit: str
    source: str

    @property
    def on_cpu(self) -> bool:
        """Whether the device is a processor, and not a GPU; a resumed run has several."""
        return all(device.startswith(_PROCESSORS) for device in self.device.split(" + "))

    def then(self, later: Self) -> Self:
        """Return the environment of a run that started in this one and was resumed in another."""
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
    """A finished run: its configuration, records and environment.

    `environment` is None for runs from before environments were recorded. `pack` has the seconds
    that a worker spent on the run, and how many epochs it trained in them. It is the same for runs
    that were trained together, side by side in one process, and None if it is not known.
    """

    config: RunConfig
    records: tuple[Record, ...]
    environment: Environment | None = None
    pack: tuple[float, int] | None = field(default=None, compare=False)

    @property
    def seconds(self) -> float | None:
        """Return how long one worker trained it; None if that is not known.

        The seconds of a pack are divided among its runs. What another worker trained before the run
        was resumed is not included.
        """
        return None if self.pack is None else self.pack[0]

    def __repr__(self) -> str:
        config = self.config
        given = {name: getattr(config, name) for name in ("lr", *DECAYS, "seed")}
        settings = ", ".join(f"{name}={v}" for name, v in given.items() if v is not None)
        what = f"{config.task}, {config.model}, {config.algorithm}, {settings}"
        return f"<Run {config.identity}: {what}, {self._outcome()}>"

    def _outcome(self) -> str:
        if not self.records:
            return "no records"
        last = self.last
        if last.diverged:
            return f"diverged in epoch {last.epoch}"
        split, value = "test", last.test_error
        if value is last.test_loss is None and last.validation_error is not None:
            split, value = "validation", last.validation_error
        error = "unknown" if value is None else f"{value:.4g}"
        return f"epoch {last.epoch}, {split} {last.metric or 'error'} {error}"

    @property
    def last(self) -> Record:
        """Return the last record, which is the run's result."""
        return self.records[-1]

    @property
    def diverged(self) -> bool:
        """Whether the run diverged, which is a result like any other."""
        return self.last.diverged


def packed(bits: Sequence[bool]) -> str:
    """Return bits as text: their number, and the bits in base64."""
    whole = int("1" + "".join("1" if bit else "0" for bit in bits), 2)
    size = (len(bits) + 8) // 8
    return f"{len(bits)}:{base64.b64encode(whole.to_bytes(size)).decode()}"


def unpacked(text: str) -> list[bool]:
    """Return the bits that `packed` was given."""
    count, _, body = text.partition(":")
    found = f"{int.from_bytes(base64.b64decode(body, validate=True)):b}"[1:]
    if len(found) != int(count):
        raise ValueError(f"Packed bits must have the stated length {count}, got {len(found)}.")
    return [bit == "1" for bit in found]


def finite(value: float) -> float | None:
    """Return a finite number unchanged, and None for any other, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def or_infinite(value: float | None) -> float:
    """Return a recorded number; None stands for one that was not finite, and becomes infinity."""
    return math.inf if value is None else value
