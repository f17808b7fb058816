"""What a verdict rests on: a measured number, and the bounds that its interval is compared with."""

import math
from dataclasses import dataclass

from weightdecay.results import Estimate, Exponent, Judgement


@dataclass(frozen=True)
class Sample:
    """The runs that a number comes from: their seeds, and what they took in all.

    `seconds` are those of one `worker`, a core or a GPU; None if the records do not have them.
    """

    seeds: int
    runs: int
    seconds: float | None = None
    worker: str = "core"


@dataclass(frozen=True)
class Difference:
    """A difference between test errors, and the bounds that its interval is compared with.

    `what` names it; "{error}" in it stands for the word "error", or for the task's own `metric`. If
    its bounds are the margin, `rival` is the error that this is a share of. `by` are the runs that
    it comes from.
    """

    what: str
    found: Estimate
    above: float = -math.inf
    below: float = math.inf
    metric: str | None = None
    rival: float | None = None
    by: Sample | None = None


@dataclass(frozen=True)
class Comparison:
    """Two methods at registered settings, judged by seeds that chose nothing.

    `found` has the mean of ln(error / other error), which is compared with the logarithm of
    `margin`: 1 for "better", and a little more for "as good". With `both`, the ratio must also be
    above 1 / `margin`.
    """

    what: str
    found: Judgement
    margin: float = 1.0
    metric: str | None = None
    both: bool = False
    by: Sample | None = None


@dataclass(frozen=True)
class Quantity:
    """Any other measured number, and the bounds that its interval is compared with.

    If it is the share of curves that are alike, `apart` estimates ln(error / other error) of two
    that are, with the noise that hides it.
    """

    what: str
    found: Exponent | Estimate
    above: float = -math.inf
    below: float = math.inf
    by: Sample | None = None
    apart: Estimate | None = None


@dataclass(frozen=True)
class StepGaps:
    """Relative differences between the training losses of twin runs after one epoch.

    `largest` is over the pairs of SGD, `typical` the median over the pairs of Adam. Twins took the
    same steps if they differ by less than `same`, and other steps if by more than `other`.
    """

    largest: float
    sgd_pairs: int
    typical: float
    adam_pairs: int
    same: float
    other: float


@dataclass(frozen=True)
class Size:
    """An effect whose size the paper states, as a ratio: 0.85 for 15 % less, 10 for ten times.

    `found` estimates the logarithm of the ratio. Without any effect it is 0. If it is a ratio of
    errors, `points` is their difference.
    """

    what: str
    found: Estimate
    size: float
    metric: str | None = None
    by: Sample | None = None
    points: Estimate | None = None


@dataclass(frozen=True)
class Missing:
    """Why nothing was measured."""

    why: str
