"""Choose, register, judge: what decides is written down before the seeds that judge are trained.

A finished sweep chooses a setting per landscape. The registration states these settings, the seeds
that will judge them, what is compared, by which rules, and what was seen before. The second stage
trains these seeds alone; they choose nothing.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from weightdecay import checks
from weightdecay.records import DECAYS, Run, RunConfig, package
from weightdecay.results import (
    Landscape,
    doubts,
    landscapes,
)
from weightdecay.results.choosing import Choice, choose
from weightdecay.results.grouping import decay_limit, way_of
from weightdecay.results.judging import Carried
from weightdecay.site.advice import title
from weightdecay.studies.earlier import Earlier
from weightdecay.studies.judging_rules import RULES, Rules

_APART = 1000  # the seeds that judge, and those that carry, begin at multiples of this


@dataclass(frozen=True)
class Block:
    """Settings that were searched: every learning rate with every decay, each with these seeds."""

    lrs: tuple[float, ...]
    decays: tuple[float, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Method:
    """A landscape's name, its chosen setting as a configuration, and how many were searched.

    `grid` has the settings that were searched; older files do not say them. `carries` says
    whether the cost of carrying its decay is measured. A carried decay stays below `limit`, at
    which an update would remove whole weights.
    """

    name: str
    config: RunConfig
    choice: Choice
    settings: int
    carries: bool = True
    limit: float = math.inf
    grid: tuple[Block, ...] = ()

    @property
    def way(self) -> str:
        """Return how the decay is stated."""
        return way_of(self.config)

    def carried(self) -> Iterator[Carried]:
        """Yield what is carried, if that is asked for."""
        limit = 1.0 if self.way == "weight_decay" else self.limit
        for one in self.choice.carried() if self.carries else ():
            if one.decay < limit:
                yield one

    def judged(self, seeds: Iterable[int]) -> list[RunConfig]:
        """Return the chosen setting with each of these seeds."""
        return [self.at(self.choice.lr, self.choice.decay, seed) for seed in seeds]

    def carrying(self, seeds: Sequence[int]) -> list[RunConfig]:
        """Return the settings with carried decays, and with those they are compared with."""
        return [
            self.at(one.used_at, decay, seed)
            for one in self.carried()
            for decay in (self.choice.columns[one.used_at].decay, one.decay)
            for seed in seeds
        ]

    def at(self, lr: float, decay: float, seed: int) -> RunConfig:
        """Return the configuration of another setting and seed."""
        setting: dict[str, Any] = {"lr": lr, self.way: decay, "seed": seed}
        return replace(self.config, **setting)


@dataclass(frozen=True)
class Registration:
    """What was registered: settings, seeds and comparisons, and the runs that were seen before.

    `digest` is a hash of the first stage's `runs` runs and their errors. `commit` and `source`
    identify the package. `judges` and `carriers` are the seeds of the second stage. `rules` are
    those that were to choose and judge, in words. `sha256` is a hash of all this in its file; that
    of an older file is empty. `edited` says that the file was changed after it was written.
    `earlier` has registrations that it states again.
    """

    date: str
    commit: str
    source: str
    runs: int
    digest: str
    judges: tuple[int, ...]
    carriers: tuple[int, ...]
    compared: tuple[tuple[str, str], ...]
    methods: Mapping[str, Method]
    rules: Rules
    sha256: str = field(default="", compare=False)
    edited: bool = False
    earlier: tuple[Earlier, ...] = ()

    def cells(self) -> list[RunConfig]:
        """Return all configurations of the second stage, each once."""
        found = []
        for method in self.methods.values():
            found += [*method.judged(self.judges), *method.carrying(self.carriers)]
        return list(dict.fromkeys(found))


def register(
    scapes: Mapping[str, Landscape],
    runs: Sequence[Run],
    *,
    date: str,
    seeds: int = 24,
    carry: int = 8,
    carried: Collection[str] | None = None,
    compare: Sequence[tuple[str, str]] = (),
    at_edge: bool = False,
) -> Registration:
    """Choose a setting per landscape, and state how `seeds` others will judge them.

    `runs` are the runs of the landscapes. `carry` is the number of seeds that measure the cost of
    carried decays, of all landscapes or of those named in `carried`. `compare` are pairs of names;
    if there are none, every two landscapes are compared that differ in nothing but the algorithm. A
    choice at an edge of its grid is refused, unless `at_edge`.
    """
    checks.whole("seeds", seeds, at_least=2)
    checks.whole("carry", carry, at_least=0)
    if max(seeds, carry) > _APART:
        raise ValueError(f"At most {_APART} seeds can judge or carry, got {max(seeds, carry)}.")
    found = {
        name: _method(name, scape, runs, carries=carried is None or name in carried)
        for name, scape in scapes.items()
    }
    if not at_edge and (edged := [one for one in found.values() if one.choice.edges]):
        said = "; ".join(f"{one.name}: {', '.join(one.choice.edges)}" for one in edged)
        raise ValueError(
            f"A chosen setting must lie inside its grid, and these do not: {said}. Extend the grid "
            "there and sweep again, or register it with `at_edge`, which withdraws the claim."
        )
    pairs = tuple(compare) or tuple(_alike(list(found.values())))
    for one, other in pairs:
        for name in (one, other):
            checks.one_of("compare", name, tuple(found))
        if one == other:
            raise ValueError(f"`compare` must name two landscapes, got {one!r} twice.")
    first = _APART * (1 + max(run.config.seed for run in runs) // _APART)
    return Registration(
        date=date,
        commit=package.commit(),
        source=package.source(),
        runs=len(runs),
        digest=digest(runs),
        judges=tuple(range(first, first + seeds)),
        carriers=tuple(range(first + _APART, first + _APART + carry)),
        compared=pairs,
        methods=found,
        rules=RULES,
    )


def named(runs: Sequence[Run]) -> dict[str, Landscape]:
    """Return the landscapes of runs by their names: the method's, if no two have the same."""
    scapes = landscapes(runs)
    varied = doubts(runs, []).varied
    titles = [title(scape, varied) for scape in scapes]
    methods = [one.partition(", ")[0] for one in titles]
    names = methods if len({*methods}) == len(methods) else titles
    if len({*names}) < len(names):
        raise ValueError(
            f"Landscapes must differ in their names, got {', '.join(names)}. Sweep those that "
            "differ in another field, such as evaluate_every, to another folder."
        )
    return dict(zip(names, scapes, strict=True))


def registered(registration: Registration, runs: Sequence[Run]) -> dict[str, Landscape]:
    """Return the landscapes of runs by the names that they are registered under, if they are."""
    found: dict[str, Landscape] = {}
    for name, scape in named(runs).items():
        names = (
            method.name
            for method in registration.methods.values()
            if method.name not in found and _is_of(method, scape)
        )
        found[next(names, name)] = scape
    return found


def _is_of(method: Method, landscape: Landscape) -> bool:
    """Whether a method was registered from such a landscape; judges also keep what they missed."""
    one, other = (_shared(each, "keep_missed") for each in (method.config, landscape.config))
    return method.way == landscape.way and one == other


def _method(name: str, landscape: Landscape, runs: Sequence[Run], *, carries: bool) -> Method:
    choice = choose(landscape)
    shared = _shared(landscape.config)
    limit = decay_limit(landscape.way, (run for run in runs if _shared(run.config) == shared))
    setting: dict[str, Any] = {"lr": choice.lr, landscape.way: choice.decay, "seed": 0}
    config = replace(landscape.config, keep_missed=landscape.metric is None, **setting)
    return Method(name, config, choice, len(landscape.cells), carries, limit, grid_of(landscape))


def grid_of(landscape: Landscape) -> tuple[Block, ...]:
    """Return a landscape's settings in as few blocks as there are kinds of learning rates."""
    rows: dict[float, dict[tuple[int, ...], list[float]]] = {}
    for cell in sorted(landscape.cells.values(), key=lambda cell: (cell.lr, cell.decay)):
        rows.setdefault(cell.lr, {}).setdefault(tuple(sorted(cell.seeds)), []).append(cell.decay)
    blocks: dict[tuple[tuple[float, ...], tuple[int, ...]], list[float]] = {}
    for lr, of_seeds in rows.items():
        for seeds, decays in of_seeds.items():
            blocks.setdefault((tuple(decays), seeds), []).append(lr)
    return tuple(Block(tuple(lrs), decays, seeds) for (decays, seeds), lrs in blocks.items())


def _alike(methods: Sequence[Method]) -> Iterator[tuple[str, str]]:
    """Yield every two methods that differ in nothing but the algorithm, the lower error first."""
    ranked = sorted(methods, key=lambda one: one.choice.error)
    for one, other in combinations(ranked, 2):
        if _shared(one.config, "algorithm") == _shared(other.config, "algorithm"):
            yield one.name, other.name


def _shared(config: RunConfig, *apart: str) -> dict[str, Any]:
    """Return a configuration without learning rate, decay and seed, and what else is `apart`."""
    own = ("lr", "seed", *DECAYS, *apart)
    return {name: value for name, value in config.as_dict().items() if name not in own}


def digest(runs: Iterable[Run]) -> str:
    """Return a hash of runs and of the errors that they chose by."""
    lines = sorted(f"{run.config.identity} {run.last.validation_error!r}\n" for run in runs)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
