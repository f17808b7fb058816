"""Simulated runs of the paper's figures, for claims of which one knows the outcome."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.landscapes import record
from weightdecay.records import DECAYS, Run, RunConfig
from weightdecay.studies import STUDIES, Evidence, Scale, scale
from weightdecay.studies.registration import register
from weightdecay.studies.scales import Axis
from weightdecay.studies.verdicts import Verdict

_DECAYS: Axis = [0, "2^-11..2^-3"]
#: A scale whose grids are centred at 2^-4 for SGD and at 2^-7 for everything else.
AT: Scale = replace(
    scale("mnist1d", "small"),
    seeds="0..2",
    judges=6,
    carriers=4,
    lrs={"sgd": "2^-7..2^-1", "adam": "2^-10..2^-4"},
    l2={"sgd": _DECAYS, "adam": _DECAYS},
    decays={"sgd": _DECAYS, "adam": _DECAYS},
)
Trained = Callable[[RunConfig], Run]


@dataclass(frozen=True)
class Basin:
    """A basin whose best decay moves by the power −s of the learning rate.

    Errors rise quadratically: by `along` per squared doubling of the learning rate on the ridge,
    and by `across` per squared doubling of the decay off it. Without decay they are `without`
    above the lowest.
    """

    low: float = 0.2
    s: float = 0.0
    along: float = 0.01
    across: float = 0.01
    without: float = 0.1

    def error(self, cell: RunConfig) -> float:
        """Return the true error of a cell of `AT`."""
        decay = next(value for way in DECAYS if (value := getattr(cell, way)) is not None)
        x = math.log2(cell.lr) + (4 if cell.algorithm.startswith("sgd") else 7)
        rise = self.along * x**2
        if decay == 0:
            return min(0.9, self.low + self.without + rise)
        off = math.log2(decay) + 7 + self.s * x
        return min(0.9, self.low + rise + self.across * off**2)


def noisy(cell: RunConfig, error: float, noise: float, **values: Any) -> Run:
    """Return a run that ended about this error, alike each time; both splits are independent."""
    draw = np.random.default_rng(int(cell.identity[:12], 16))
    test, validation = (max(0.001, error + noise * draw.normal()) for _ in range(2))
    last = record(cell, epoch=cell.epochs, test_error=test, validation_error=validation, **values)
    return Run(cell, (last,))


def easier(train: Trained, factor: float) -> Trained:
    """Return how cells train on a task on which all errors are smaller by a factor."""

    def trained(cell: RunConfig) -> Run:
        run = train(cell)
        records = [
            replace(
                one,
                test_error=None if one.test_error is None else factor * one.test_error,
                validation_error=(
                    None if one.validation_error is None else factor * one.validation_error
                ),
            )
            for one in run.records
        ]
        return replace(run, records=tuple(records))

    return trained


def seen_in(figure: str, train: Trained, *, at: Scale = AT, stages: int = 1) -> Evidence:
    """Return a figure's runs, and if there are two stages, what fresh seeds come to."""
    study = STUDIES[figure]
    first = study.evidence(at, [train(cell) for cell in study.cells(at)])
    if stages == 1:
        return first
    made = register(
        study.entrants(first),
        first.runs,
        date="2026-11-16",
        seeds=at.judges,
        carry=at.carriers,
        carried=study.carried,
        compare=study.pairs(at),
        at_edge=True,
    )
    return study.judged(first, made, [train(cell) for cell in made.cells()])


def verdict_on(words: str, figure: str, seen: Evidence) -> Verdict:
    """Judge the one claim of a figure that begins with these words."""
    claims: Sequence[Any] = STUDIES[figure].claims(seen.scale)
    [claim] = [claim for claim in claims if claim.words.startswith(words)]
    found: Verdict = claim.verdict(seen)
    return found
