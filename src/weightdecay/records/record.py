"""What a run leaves: a record per evaluated epoch, and where it was trained."""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from weightdecay.records.config import RunConfig


@dataclass(frozen=True, kw_only=True)
class Record:
    """What an epoch came to. Losses and errors are means over examples; errors are fractions.

    A task may have a `metric` of its own, which is named here: errors are then that metric's, and
    there is no top-5.

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


def or_infinite(value: float | None) -> float:
    """Return a recorded number; one that was not finite is infinite."""
    return math.inf if value is None else value
