"""Judges registered comparisons by the runs of the second stage, and says what has changed."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weightdecay.labels import SYMBOLS
from weightdecay.records import Environment, Run, RunConfig
from weightdecay.results import Judgement, Landscape, TransferRegret, judged, transfer_regret
from weightdecay.results.choosing import choose
from weightdecay.results.estimate import Array
from weightdecay.results.judging import error_of
from weightdecay.results.transfer import of_fresh_seeds
from weightdecay.studies.judging_rules import changes
from weightdecay.studies.registered_when import short
from weightdecay.studies.registration import Method, Registration, digest, grid_of

#: Said if nothing differs. A task's own code is known by its name alone.
UNCHANGED = (
    "What judged is what was registered (rules are compared by their words; code of your own is "
    "not compared)."
)
#: Said if the file's hash is not that of its content.
EDITED = "registered.toml was changed after it was written: its hash does not match."


@dataclass(frozen=True)
class Judged:
    """The second stage: runs at the chosen settings, comparisons, and the regret of each rule.

    `trained` are all registered runs, also those that carry decays. `changed` lists what differs
    from the registration. What has no runs yet is missing. `worst` has for each method the error
    that a diverged run counts with: the highest of any run of its task, in either stage.
    """

    runs: Mapping[str, Sequence[Run]]
    compared: Mapping[tuple[str, str], Judgement]
    regrets: Mapping[str, TransferRegret]
    changed: Sequence[str]
    worst: Mapping[str, float]
    trained: Sequence[Run]

    def errors(self, name: str) -> list[float]:
        """Return the test errors of a method's judges."""
        return [error_of(run, self.worst[name]) for run in self.runs[name]]


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
    cells = {*registration.cells()}
    trained = [run for run in second if run.config in cells]
    of_tasks = _worst([*first, *trained])
    worst = {
        name: of_tasks.get(method.config.task, math.nan)
        for name, method in registration.methods.items()
    }
    said = _changed(registration, scapes, first, second)
    compared = {}
    for one, other in registration.compared:
        seeds = ({run.config.seed for run in runs[name]} for name in (one, other))
        if len(set.intersection(*seeds)) > 1:
            if all(run.last.diverged for name in (one, other) for run in runs[name]):
                said.append(f"{one} and {other} cannot be compared. Every run diverged.")
                continue
            try:
                chance = max(worst[one], worst[other])
                compared[one, other] = judged(runs[one], runs[other], chance=chance)
            except ValueError as error:
                said.append(f"{one} and {other} cannot be compared. {error}")
    regrets = {
        name: _regrets(method, registration.carriers, there, worst[name])
        for name, method in registration.methods.items()
    }
    return Judged(runs, compared, regrets, said, worst, trained)


def _worst(runs: Iterable[Run]) -> dict[str, float]:
    """Return the highest test error of each task, over runs that did not diverge."""
    found: dict[str, float] = {}
    for run in runs:
        if not run.last.diverged and run.last.test_error is not None:
            task = run.config.task
            found[task] = max(run.last.test_error, found.get(task, -math.inf))
    return found


def _regrets(
    method: Method, carriers: Sequence[int], there: Mapping[RunConfig, Run], worst: float
) -> TransferRegret:
    """Return the regret of each rule whose runs are all there."""
    best = {lr: column.decay for lr, column in method.choice.columns.items()}
    costs: dict[tuple[float, float], dict[float, Array]] = {}
    for one in method.carried() if len(carriers) > 1 else ():
        errors = {
            (one.used_at, decay): {
                seed: error_of(there[cell], worst)
                for seed in carriers
                if (cell := method.at(one.used_at, decay, seed)) in there
            }
            for decay in (one.decay, best[one.used_at])
        }
        own = costs.setdefault((one.tuned_at, one.used_at), {})
        if all(len(of_seed) == len(carriers) for of_seed in errors.values()):
            own[one.s] = transfer_regret(errors, best, [one])
    return of_fresh_seeds(costs, error=method.choice.error, best=method.choice.lr)


def _changed(
    registration: Registration,
    scapes: Mapping[str, Landscape],
    first: Sequence[Run],
    second: Sequence[Run],
) -> list[str]:
    """Return what differs from the registration, in words."""
    said = [EDITED] if registration.edited else []
    said += changes(registration.rules, edited=registration.edited)
    if digest(first) != registration.digest:
        now = f"it had {registration.runs} runs, and now has {len(first)}"
        if len(first) == registration.runs:
            now = f"it still has {len(first)} runs, but some are others, or their errors differ"
        said.append(f"The first stage has changed: {now}.")
    for name, scape in scapes.items():
        method = registration.methods.get(name)
        if method is None:
            said.append(f"{name} was not registered.")
        else:
            said += _chosen_otherwise(method, scape)
    cells = {*registration.cells()}
    missing = len(cells - {run.config for run in second})
    if missing:
        said.append(f"{missing} of {len(cells)} registered runs are not trained yet.")
    said += _trained_by(registration, [run for run in second if run.config in cells])
    if more := len({run.config for run in second} - cells):
        said.append(f"{more} runs were not registered, and are left out.")
    return said


def _chosen_otherwise(method: Method, scape: Landscape) -> Iterator[str]:
    """Yield how what the first stage says now differs from a method that was registered."""
    now, then = choose(scape), method.choice
    if (now.lr, now.decay) != (then.lr, then.decay):
        yield (
            f"The first stage would now choose α = {now.lr:g}, {SYMBOLS[scape.way]} = "
            f"{now.decay:g} for {method.name}."
        )
    if now.edges != then.edges:
        edges = (", ".join(one.edges) or "none" for one in (then, now))
        yield "At an edge of the grid of {}, registered: {}; now: {}.".format(method.name, *edges)
    columns = [
        {lr: (one.decay, one.inside) for lr, one in choice.columns.items()}
        for choice in (then, now)
    ]
    if columns[0] != columns[1]:
        yield f"Some best decays of {method.name} are not those that were registered."
    if method.grid and method.grid != grid_of(scape):
        yield f"The grid of {method.name} is not the one that was registered."


def _trained_by(registration: Registration, runs: Iterable[Run]) -> list[str]:
    """Return by which other versions of this package runs were trained, if by any."""
    others = Counter(
        _version(run.environment)
        for run in runs
        if run.environment and run.environment.source != registration.source
    )
    if not others:
        return []
    told = "; ".join(
        f"{count} run{'s' * (count > 1)} by {version}" for version, count in sorted(others.items())
    )
    other = "The second stage was trained by another version of weightdecay."
    return [f"{other} Registered: {_version(registration)}. Trained: {told}."]


def _version(made_by: Registration | Environment) -> str:
    known = made_by.commit != "unknown"
    return f"source {made_by.source}{f' (commit {short(made_by.commit)})' * known}"
