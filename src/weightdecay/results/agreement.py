"""Runs that must agree: twins, which differ in the name of a decay that is 0, and repeats.

Without decay, L2 regularization and decoupled decay are the same steps: `sgd` with l2 = 0 is `sgdw`
with weight_decay = 0, and so on. On a CPU they agree to a few bits. On a GPU, rounding grows during
training up to the noise of their landscape, so differences are compared with that noise.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias

from weightdecay.records import (
    COUPLED,
    DECAYS,
    DECOUPLED,
    Environment,
    Run,
    RunConfig,
    Spec,
    or_infinite,
)
from weightdecay.results.grouping import apart, landscapes, way_of
from weightdecay.results.landscape import Landscape
from weightdecay.results.outliers import (
    Outlier,
    allowances,
    least_error,
    outliers,
    smallest_rises,
)

_COUPLED = dict(zip(DECOUPLED, COUPLED, strict=True))
# The relative difference that is allowed if there are too few cells to estimate noise.
_UNKNOWN = 0.1
_TOLD = [
    one.name
    for one in fields(RunConfig)
    if one.name not in ("algorithm", "lr", "seed", "evaluate_every", *DECAYS)
]
_Key: TypeAlias = tuple[RunConfig, str]


@dataclass(frozen=True)
class Pair:
    """Two runs that must agree, and the difference of test errors that noise may explain."""

    one: Run
    other: Run
    allowed: float

    @property
    def difference(self) -> float:
        """Return the difference of their test errors; 0 if both diverged."""
        if self.one.diverged and self.other.diverged:
            return 0.0
        return abs(_error(self.one) - _error(self.other))

    @property
    def repeated(self) -> bool:
        """Whether one configuration was trained twice; otherwise the two are twins."""
        return self.one.config == self.other.config

    @property
    def agrees(self) -> bool:
        """Whether noise explains the difference."""
        return self.difference <= self.allowed


@dataclass(frozen=True)
class Agreement:
    """All pairs of runs that must agree."""

    pairs: tuple[Pair, ...] = ()

    @property
    def largest(self) -> float:
        """Return the largest difference; 0 if there are no pairs."""
        return max((pair.difference for pair in self.pairs), default=0.0)

    @property
    def broken(self) -> tuple[Pair, ...]:
        """Return the pairs that differ by more than noise explains, worst first."""
        found = (pair for pair in self.pairs if not pair.agrees)
        return tuple(sorted(found, key=lambda pair: -pair.difference))


@dataclass(frozen=True)
class Doubts:
    """Reasons to doubt a sweep's runs: pairs that disagree, and cells that stand out.

    `varied` are the fields, besides the algorithm, in which the sweep's landscapes differ. `rises`
    say, for the cells of each landscape, how much too high an error must be to stand out.
    """

    agreement: Agreement = Agreement()
    outliers: tuple[tuple[Landscape, Outlier], ...] = ()
    varied: tuple[str, ...] = ()
    rises: tuple[tuple[Landscape, tuple[float, ...]], ...] = ()

    #: The environments of runs, if landscapes mix several of them.
    environments: Mapping[Environment | None, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.agreement.broken or self.outliers or self.environments)


def doubts(runs: Iterable[Run], repeats: Iterable[Run] = (), *, of: str = "error") -> Doubts:
    """Compare runs that must agree, and every cell with its neighbours.

    `of` is the error to compare: "error" or "error_top5".
    """
    runs = list(runs)
    found = landscapes(runs, of=of)
    return Doubts(
        agreement=_agreement(runs, repeats, found),
        outliers=tuple((scape, one) for scape in found for one in outliers(scape)),
        varied=varied(scape.config for scape in found),
        rises=tuple((scape, tuple(smallest_rises(scape).values())) for scape in found),
        environments=_mixed(found),
    )


def varied(configs: Iterable[RunConfig]) -> tuple[str, ...]:
    """Return the settings, besides learning rate, decay and seed, in which landscapes differ."""
    configs = list(configs)
    return tuple(name for name in _TOLD if len({getattr(one, name) for one in configs}) > 1)


def _mixed(scapes: Iterable[Landscape]) -> Mapping[Environment | None, int]:
    total: Counter[Environment | None] = Counter()
    for scape in scapes:
        if len(scape.environments) > 1:
            total.update(scape.environments)
    return total


def agreement(runs: Iterable[Run], repeats: Iterable[Run] = ()) -> Agreement:
    """Compare runs that must agree: twins, and one configuration trained more than once.

    `repeats` are second trainings of configurations that are among the runs. A configuration that
    occurs twice among the runs is a repeat as well. All are compared with the first of their kind.
    """
    runs = list(runs)
    return _agreement(runs, repeats, landscapes(runs))


def twin(config: RunConfig) -> RunConfig:
    """Return the equivalent configuration with L2 regularization; itself if there is none."""
    way = way_of(config)
    if getattr(config, way) != 0:
        return config
    spec = Spec.parse("algorithm", config.algorithm)
    coupled = replace(spec, name=_COUPLED.get(spec.name, spec.name))
    return replace(config, algorithm=str(coupled), weight_decay=None, normalized_decay=None, l2=0.0)


def _agreement(
    runs: Sequence[Run], repeats: Iterable[Run], scapes: Sequence[Landscape]
) -> Agreement:
    noise = _Noise(scapes)
    known = {run.config for run in runs}
    compared = _compared([*runs, *(run for run in repeats if run.config in known)])
    return Agreement(tuple(Pair(one, other, noise.of(one, other)) for one, other in compared))


def _compared(runs: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    """Yield each repeat with the first run of its configuration, and each twin with the first."""
    first: dict[RunConfig, Run] = {}
    kinds: dict[RunConfig, Run] = {}
    for run in runs:
        if not run.records:
            continue
        if run.config in first:
            yield first[run.config], run
            continue
        first[run.config] = run
        before = kinds.setdefault(twin(run.config), run)
        if before is not run:
            yield before, run


class _Noise:
    """How much noise may make two runs differ; each landscape is analysed once, when needed."""

    def __init__(self, scapes: Sequence[Landscape]) -> None:
        self._scapes = {apart(scape.config): scape for scape in scapes}
        self._known: dict[_Key, dict[tuple[float, float], float]] = {}
        # An error of 0 has no relative noise: it counts as the smallest other error.
        self._least = min((2 * least_error(scape) for scape in scapes), default=0.0)

    def of(self, one: Run, other: Run) -> float:
        """Return the difference between test errors that is allowed for two runs.

        If their landscapes differ in noise, the smaller one counts.
        """
        known = [noise for run in (one, other) if (noise := self._at(run.config)) is not None]
        allowed = min(known, default=_UNKNOWN)
        if math.isinf(allowed):
            return math.inf
        low = min(_error(one), _error(other))
        return max(low, self._least) * math.expm1(math.sqrt(2) * allowed)

    def _at(self, config: RunConfig) -> float | None:
        key = apart(config)
        if key not in self._known:
            scape = self._scapes.get(key)
            self._known[key] = allowances(scape) if scape is not None else {}
        return self._known[key].get((config.lr, getattr(config, way_of(config))))


def _error(run: Run) -> float:
    return or_infinite(run.last.test_error)
