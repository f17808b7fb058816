"""Choose, register, judge: what decides is written down before the seeds that judge are trained.

A finished sweep chooses a setting per landscape. The registration states these settings, the seeds
that will judge them, what is compared, by which rules, and what was seen before. The second stage
trains these seeds alone; they choose nothing.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from weightdecay import checks
from weightdecay.records import DECAYS, Run, RunConfig
from weightdecay.results import (
    Estimate,
    Judgement,
    Landscape,
    doubts,
    judged,
    landscapes,
    transfer_regret,
)
from weightdecay.results.choosing import SLOPES, Choice, choose
from weightdecay.results.grouping import way_of
from weightdecay.results.judging import error_of, mean_of
from weightdecay.site.advice import title

_APART = 1000  # the seeds that judge, and those that carry, begin at multiples of this


@dataclass(frozen=True)
class Method:
    """A landscape's name, its chosen setting as a configuration, and how many were searched.

    `carries` says whether the cost of carrying its decay is measured.
    """

    name: str
    config: RunConfig
    choice: Choice
    settings: int
    carries: bool = True

    @property
    def way(self) -> str:
        """Return how the decay is stated."""
        return way_of(self.config)

    def at(self, lr: float, decay: float, seed: int) -> RunConfig:
        """Return the configuration of another setting and seed."""
        setting: dict[str, Any] = {"lr": lr, self.way: decay, "seed": seed}
        return replace(self.config, **setting)


@dataclass(frozen=True)
class Registration:
    """What was registered: settings, seeds and comparisons, and the runs that were seen before.

    `digest` is a hash of the first stage's `runs` runs and their errors. `commit` and `source`
    identify the package. `judges` and `carriers` are the seeds of the second stage.
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

    def cells(self) -> list[RunConfig]:
        """Return all configurations of the second stage, each once."""
        found = []
        for method in self.methods.values():
            choice = method.choice
            found += [method.at(choice.lr, choice.decay, seed) for seed in self.judges]
            for lr, decay in self._carried(method) if method.carries else ():
                found += [method.at(lr, decay, seed) for seed in self.carriers]
        return list(dict.fromkeys(found))

    @staticmethod
    def _carried(method: Method) -> Iterator[tuple[float, float]]:
        for one in method.choice.carried():
            yield one.used_at, method.choice.columns[one.used_at].decay
            yield one.used_at, one.decay


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
    from weightdecay.runs import environment  # imports torch

    found = {
        name: _method(name, scape, carries=carried is None or name in carried)
        for name, scape in scapes.items()
    }
    if not at_edge and (edged := [one for one in found.values() if one.choice.edges]):
        said = "; ".join(f"{one.name}: {', '.join(one.choice.edges)}" for one in edged)
        raise ValueError(
            f"A chosen setting must lie inside its grid, and these do not: {said}. Extend the grid "
            "there and sweep again, or register it with `at_edge`, which withdraws the claim."
        )
    pairs = tuple(compare) or tuple(_alike(list(found.values())))
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        checks.one_of("compare", name, tuple(found))
    first = _APART * (1 + max(run.config.seed for run in runs) // _APART)
    return Registration(
        date=date,
        commit=environment.commit(),
        source=environment.source(),
        runs=len(runs),
        digest=_digest(runs),
        judges=tuple(range(first, first + seeds)),
        carriers=tuple(range(first + _APART, first + _APART + carry)),
        compared=pairs,
        methods=found,
    )


def named(runs: Sequence[Run]) -> dict[str, Landscape]:
    """Return the landscapes of runs by their names: the method's, if no two have the same."""
    scapes = landscapes(runs)
    varied = doubts(runs, []).varied
    titles = [title(scape, varied) for scape in scapes]
    methods = [one.partition(", ")[0] for one in titles]
    names = methods if len({*methods}) == len(methods) else titles
    return dict(zip(names, scapes, strict=True))


def _method(name: str, landscape: Landscape, *, carries: bool) -> Method:
    choice = choose(landscape)
    setting: dict[str, Any] = {"lr": choice.lr, landscape.way: choice.decay, "seed": 0}
    config = replace(landscape.config, keep_missed=landscape.metric is None, **setting)
    return Method(name, config, choice, len(landscape.cells), carries)


def _alike(methods: Sequence[Method]) -> Iterator[tuple[str, str]]:
    """Yield every two methods that differ in nothing but the algorithm, the lower error first."""
    ranked = sorted(methods, key=lambda one: one.choice.error)
    for one, other in combinations(ranked, 2):
        if _shared(one.config) == _shared(other.config):
            yield one.name, other.name


def _shared(config: RunConfig) -> dict[str, Any]:
    own = ("algorithm", "lr", "seed", *DECAYS)
    return {name: value for name, value in config.as_dict().items() if name not in own}


def _digest(runs: Iterable[Run]) -> str:
    """Return a hash of runs and of the errors that they chose by."""
    lines = sorted(f"{run.config.identity} {run.last.validation_error!r}\n" for run in runs)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class Judged:
    """The second stage: runs at the chosen settings, comparisons, and the regret of each rule.

    `changed` lists what differs from the registration. What has no runs yet is missing.
    """

    runs: Mapping[str, Sequence[Run]]
    compared: Mapping[tuple[str, str], Judgement]
    regrets: Mapping[str, Mapping[float, Estimate]]
    changed: Sequence[str]


def judge(
    registration: Registration,
    scapes: Mapping[str, Landscape],
    first: Sequence[Run],
    second: Sequence[Run],
) -> Judged:
    """Judge the registered comparisons by the runs of the second stage."""
    there = {run.config: run for run in second}
    runs = {
        name: [
            there[cell]
            for seed in registration.judges
            if (cell := method.at(method.choice.lr, method.choice.decay, seed)) in there
        ]
        for name, method in registration.methods.items()
    }
    compared = {
        (one, other): judged(runs[one], runs[other])
        for one, other in registration.compared
        if len(runs[one]) > 1 and len(runs[other]) > 1
    }
    regrets = {
        name: _regrets(method, registration.carriers, there)
        for name, method in registration.methods.items()
    }
    return Judged(runs, compared, regrets, _changed(registration, scapes, first, second))


def _regrets(
    method: Method, carriers: Sequence[int], there: Mapping[RunConfig, Run]
) -> dict[float, Estimate]:
    """Return the regret of each rule whose runs are all there."""
    choice = method.choice
    best = {lr: column.decay for lr, column in choice.columns.items()}
    found = {}
    for s in SLOPES:
        moved = [one for one in choice.carried() if one.s == s]
        places = {(one.used_at, decay) for one in moved for decay in (one.decay, best[one.used_at])}
        errors = {
            (lr, decay): {
                seed: error_of(there[cell])
                for seed in carriers
                if (cell := method.at(lr, decay, seed)) in there
            }
            for lr, decay in places
        }
        if (
            moved
            and len(carriers) > 1
            and all(len(one) == len(carriers) for one in errors.values())
        ):
            found[s] = mean_of(transfer_regret(errors, best, moved))
    return found


def _changed(
    registration: Registration,
    scapes: Mapping[str, Landscape],
    first: Sequence[Run],
    second: Sequence[Run],
) -> list[str]:
    """Return what differs from the registration, in words."""
    said = []
    if _digest(first) != registration.digest:
        said.append(
            f"The first stage has changed: it had {registration.runs} runs, and has {len(first)}."
        )
    for name, scape in scapes.items():
        method = registration.methods.get(name)
        if method is None:
            said.append(f"{name} was not registered.")
        elif ((now := choose(scape)).lr, now.decay) != (method.choice.lr, method.choice.decay):
            said.append(
                f"The first stage would now choose α = {now.lr:g}, λ = {now.decay:g} for {name}."
            )
    cells = registration.cells()
    missing = len({*cells} - {run.config for run in second})
    if missing:
        said.append(f"{missing} of {len(cells)} registered runs are not trained yet.")
    if more := len({run.config for run in second} - {*cells}):
        said.append(f"{more} runs were not registered, and are left out.")
    return said
