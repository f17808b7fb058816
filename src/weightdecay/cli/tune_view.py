"""Asks a tuner for trials, sweeps them, and prints what it recommends."""

import argparse
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weightdecay import checks
from weightdecay.cli.output import print_json
from weightdecay.cli.printing import echo
from weightdecay.cli.run import command_of
from weightdecay.cli.sweep_view import engine_of, sweep_all
from weightdecay.decay import TITLES
from weightdecay.records import COUPLED, DECOUPLED, RunConfig
from weightdecay.records.config import Spec
from weightdecay.runs.build import updates_per_epoch
from weightdecay.sweeps import Store
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.kept import Kept
from weightdecay.tasks import load
from weightdecay.tasks.task import split
from weightdecay.tuning.recommendation import Recommendation
from weightdecay.tuning.trial import Trial
from weightdecay.tuning.tuner import Tuner


def tune_and_print(options: argparse.Namespace) -> int:
    """Train what the tuner asks for, print its recommendation, and return the exit status."""
    checks.whole("at_once", options.at_once, at_least=1)
    tuner = _tuner(options)
    with Kept(engine_of(options)) as engine:
        if not _searched(tuner, options, engine):
            return 130
    found = tuner.recommendation()
    long = _at(options, found.lr, found.weight_decay, options.epochs, seed=0)
    if options.json:
        print_json(_values(found, long))
        return 0
    echo(str(found))
    if not options.quiet:
        echo(f"To train it: {command_of(_stated(long), device=options.device)}")
        echo(f"All trials: weightdecay landscape {options.folder}")
    return 0


def _searched(tuner: Tuner, options: argparse.Namespace, engine: Engine) -> bool:
    """Train trials until the spend is used up; return whether it came to that."""
    asked: dict[RunConfig, Trial] = {}
    while trials := _next(tuner, options):
        now = {_config(options, trial): trial for trial in trials}
        asked.update(now)
        # With the earlier ones, so that the folder's plan holds every trial.
        done = _all_done(options.folder, now) or sweep_all(list(asked), options, engine=engine)
        if not done:
            return False
        _tell(tuner, now, Store(options.folder))
        if not options.quiet:
            echo(_so_far(tuner), file=sys.stderr, flush=True)
    return True


def _tuner(options: argparse.Namespace) -> Tuner:
    """Return the tuner of the options. It keeps nothing: what it asks for is in the sweep."""
    name = Spec.parse("algorithm", options.algorithm).name
    checks.one_of("algorithm", name, DECOUPLED + COUPLED)
    coupled = name in COUPLED
    middle = _at(options, 1.0, 0.0, options.epochs, seed=0)
    task = split(load(options.task), validation=options.validation, data=options.data)
    tuner = Tuner(
        options.epochs,
        updates_per_epoch=updates_per_epoch(middle, task),
        spend=options.spend,
        algorithm=f"{name}w" if coupled else name,
        convention="l2" if coupled else "normalized",
        lr=options.lr,
        normalized_decay=options.normalized_decay,
        shortest=options.shortest,
    )
    _check_schedule(options, tuner.space.ladder[0], coupled=coupled)
    return tuner


def _check_schedule(options: argparse.Namespace, shortest: int, *, coupled: bool) -> None:
    """Raise if the schedule of a short run would not be as long as that run."""
    schedule = Spec.parse("schedule", options.schedule)
    # Without an end, a normalized decay is unknown. L2 needs none.
    known = ("cosine", "constant") if coupled else ("cosine",)
    if schedule.name not in known:
        raise ValueError(
            f"`schedule` must be {' or '.join(known)}, got {options.schedule!r}: that of a short "
            "run must be as long as the run."
        )
    warmup = schedule.options.get("warmup", 0)
    if isinstance(warmup, int | float) and warmup >= shortest:
        raise ValueError(
            f"`schedule` must have a warm-up that is shorter than the shortest run, which has "
            f"{shortest} epoch{'s' * (shortest != 1)}, got {options.schedule!r}. Raise --shortest."
        )


def _next(tuner: Tuner, options: argparse.Namespace) -> list[Trial]:
    trials: list[Trial] = []
    try:
        while len(trials) < options.at_once and (trial := tuner.ask()) is not None:
            trials.append(trial)
    except RuntimeError as error:
        raise RuntimeError(
            f"{error} Then run `weightdecay retry {options.folder}`, and this command again."
        ) from error
    return trials


def _all_done(folder: Path, asked: Iterable[RunConfig]) -> bool:
    known = Store(folder).refresh()
    return all(one.identity in known.finished or one.identity in known.failures for one in asked)


def _config(options: argparse.Namespace, trial: Trial) -> RunConfig:
    return _at(options, trial.lr, trial.weight_decay, trial.epochs, trial.seed)


def _at(options: argparse.Namespace, lr: float, decay: float, epochs: int, seed: int) -> RunConfig:
    coupled = Spec.parse("algorithm", options.algorithm).name in COUPLED
    return RunConfig(
        task=options.task,
        model=options.model or next(iter(load(options.task).models)),
        algorithm=options.algorithm,
        lr=lr,
        normalized_decay=None if coupled else decay,
        l2=decay if coupled else None,
        schedule=options.schedule,
        epochs=epochs,
        batch=options.batch,
        data=options.data,
        validation=options.validation,
        seed=seed,
        precision=options.precision,
        evaluate_every=0,
    )


def _tell(tuner: Tuner, asked: Mapping[RunConfig, Trial], store: Store) -> None:
    runs = {run.config: run for run in store.runs()}
    failures = store.ledger.failures
    for config, trial in asked.items():
        if config in runs:
            last = runs[config].last
            error = None if last.diverged else last.validation_error
            tuner.tell(trial, error=math.nan if error is None else error)
        else:
            tuner.fail(trial, failures[config.identity].reason)


def _so_far(tuner: Tuner) -> str:
    found = tuner.recommendation()
    name = "L2 factor" if found.convention == "l2" else "λ_norm"
    return (
        f"{tuner.spent:.2f} of {tuner.spend:g} spent, {found.trials} runs. So far: "
        f"lr {found.lr:.3g}, {name} {found.weight_decay:.3g}."
    )


def _values(found: Recommendation, long: RunConfig) -> dict[str, Any]:
    rule = None if found.rule is None else {**asdict(found.rule), "possible": found.rule.possible}
    decay = {way: getattr(found.decay, way) for way in TITLES}
    return {
        **asdict(found),
        "decay": None if found.convention == "l2" else decay,
        "rule": rule,
        "config": long.as_dict(),
    }


def _stated(config: RunConfig) -> dict[str, Any]:
    """Return the fields of a configuration that `weightdecay run` does not have by default."""
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in config.as_dict().items()
        if name not in ("seed", "evaluate_every") and value != "float32"
    }
