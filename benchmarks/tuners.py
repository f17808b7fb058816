"""Whole lives of tuners, simulated from a table of finished runs, so that a life costs nothing.

    python -m benchmarks.tuners results/tuning/mnist1d.parquet --lives 200 --out rows.jsonl
    python -m benchmarks.tuners --report rows.jsonl
    python -m benchmarks.tuners results/tuning/mnist1d.parquet --lives 20 --beliefs

A table has runs of every setting of a lattice at several budgets, with several seeds. A tuner asks
for a run, and gets the validation error of one that was really trained, with a random seed of the
table: nothing is interpolated. What its recommendation is worth is the mean test error of the long
runs at that setting, over the table's seeds. Compute is counted in long runs.

In each life the ranges are drawn anew: up to two learning rates and a quarter of the decays are cut
off, at random ends, so that no tuner profits from where the table's middle is. In one life, all
tuners have the same ranges. The others are Optuna's samplers over the places of the lattice, which
recommend the best trial that they saw:

    tpe, gp, cmaes, random, sobol    in α and λ_norm
    tpe-torch                        in α and λ/α, the weight_decay of torch.optim.AdamW

each with trials of a full run, and of 1/2, 1/4, 1/8 and 1/16 of one, whose λ is carried by keeping
λ_norm (torch's: by keeping weight_decay); and TPE with full trials and a pruner that sees the
intermediate errors: tpe-hyperband, tpe-median. tpe-start and cmaes-start are given our tuner's
start, as their first trial and as the place where CMA-ES begins its search. A sampler makes at
most 64 trials, and GP, which takes a second for each, 32; it recommends the same from then on.

A simulation that was interrupted goes on by the same command: tuners that `--out` has are left out.

Two controls make no runs: "middle" is the middle of the ranges, and "start" is what our tuner
recommends before its first run. Ours also knows the updates per epoch and the error of guessing,
and its start was read off sweeps of the same tasks (docs/choosing.md): the row "start" says what
that alone is worth.
"""

import argparse
import json
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weightdecay.records import read
from weightdecay.tune import Tuner

Array: TypeAlias = NDArray[np.float64]
#: Compute at which tuners are compared, in long runs.
SPENDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
FRACTIONS = (1, 2, 4, 8, 16)
#: The error of guessing by table: ten equal classes, and the most frequent character of the text.
GUESSES = {"mnist1d": 0.9, "cifar10": 0.9, "text": 0.84}
GUESSES |= {"mnist1d-few": 0.9, "cifar10-narrow": 0.9, "text-wide": 0.84}
GUESSES |= {"mnist1d-deep": 0.9, "cifar10-little": 0.9, "text-deep": 0.84}
GUESSES |= {"fashion": 0.9, "text-long": 0.84}
# The most trials in a life, and the most lives of a Gaussian process, which is slow.
_MOST = {"gp": 32}
_FEWER = 8
_DIVERGED = 1.0


@dataclass(frozen=True)
class Table:
    """Errors by seed, budget, learning rate and decay; `curves` are those within long runs.

    `guess` is the error of guessing, if it is known.
    """

    lrs: Array
    decays: Array
    epochs: tuple[int, ...]
    chosen: Array
    tested: Array
    steps: tuple[int, ...]
    curves: Array
    updates_per_epoch: int
    guess: float | None

    @classmethod
    def of(cls, path: Path) -> "Table":
        """Read a table. A seed counts if it has all runs that any seed has."""
        runs = [run for run in read(path) if run.config.normalized_decay is not None]
        counts = Counter(run.config.seed for run in runs)
        runs = [run for run in runs if counts[run.config.seed] == max(counts.values())]
        configs = [run.config for run in runs]
        axes = [
            sorted({getattr(config, name) for config in configs})
            for name in ("seed", "epochs", "lr", "normalized_decay")
        ]
        chosen, tested = np.full((2, *map(len, axes)), np.nan)
        longest = axes[1][-1]
        steps = sorted(
            {one.epoch for run in runs if run.config.epochs == longest for one in run.records}
        )
        curves = np.full((len(axes[0]), len(axes[2]), len(axes[3]), len(steps)), _DIVERGED)
        for run in runs:
            one = run.config
            values = (one.seed, one.epochs, one.lr, one.normalized_decay)
            at = tuple(axis.index(value) for axis, value in zip(axes, values, strict=True))
            ended = not run.diverged
            chosen[at] = (run.last.validation_error if ended else None) or _DIVERGED
            tested[at] = (run.last.test_error if ended else None) or _DIVERGED
            if one.epochs == longest:
                for record in run.records:
                    error = _DIVERGED if record.diverged else record.validation_error
                    curves[at[0], at[2], at[3], steps.index(record.epoch)] = error
        if missing := int(np.isnan(chosen).sum()):
            raise ValueError(
                f"{path} must have every setting at every budget, but lacks {missing}."
            )
        lrs, decays = np.array(axes[2]), np.array(axes[3])
        updates = runs[0].last.updates // runs[0].last.epoch
        return cls(
            lrs,
            decays,
            tuple(axes[1]),
            chosen,
            tested,
            tuple(steps),
            curves,
            updates_per_epoch=updates,
            guess=GUESSES.get(path.stem),
        )

    def within(self, draw: np.random.Generator) -> "Table":
        """Return the table with narrower ranges, for one life."""
        kept = []
        for count, most in ((len(self.lrs), 2), (len(self.decays), len(self.decays) // 4)):
            low = int(draw.integers(most + 1))
            high = int(draw.integers(most + 1 - low))
            kept.append(slice(low, count - high))
        rows, columns = kept
        return replace(
            self,
            lrs=self.lrs[rows],
            decays=self.decays[columns],
            chosen=self.chosen[:, :, rows, columns],
            tested=self.tested[:, :, rows, columns],
            curves=self.curves[:, rows, columns],
        )

    @property
    def worth(self) -> Array:
        """The mean test error of long runs at each setting."""
        worth: Array = self.tested[:, -1].mean(axis=0)
        return worth


#: The compute spent so far, and the setting that would be recommended now.
Event: TypeAlias = tuple[float, tuple[int, int]]
Life: TypeAlias = Callable[[Table, int, float], Iterator[Event]]


def optuna_life(
    sampler: str, fraction: int, pruner: str | None = None, *, from_start: bool = False
) -> Life:
    """Return the life of a sampler of Optuna's with trials of one fixed length.

    With `from_start`, its first trial is our tuner's start, and CMA-ES begins its search there.
    """

    def life(table: Table, seed: int, most: float) -> Iterator[Event]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        draw = np.random.default_rng([seed, 1])
        budget = table.epochs.index(table.epochs[-1] // fraction)
        first = dict(zip(("lr", "decay"), _recommended(table, _ours(table, most)), strict=True))
        samplers: dict[str, Callable[[], Any]] = {
            "tpe": lambda: optuna.samplers.TPESampler(seed=seed),
            "tpe-torch": lambda: optuna.samplers.TPESampler(seed=seed),
            "gp": lambda: optuna.samplers.GPSampler(seed=seed),
            "cmaes": lambda: optuna.samplers.CmaEsSampler(
                x0=first if from_start else None, seed=seed
            ),
            "random": lambda: optuna.samplers.RandomSampler(seed=seed),
            "sobol": lambda: optuna.samplers.QMCSampler(seed=seed, scramble=True),
        }
        pruners: dict[str | None, Callable[[], Any]] = {
            None: optuna.pruners.NopPruner,
            "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=4),
            "hyperband": lambda: optuna.pruners.HyperbandPruner(
                min_resource=table.steps[0], max_resource=table.steps[-1], reduction_factor=2
            ),
        }
        study = optuna.create_study(sampler=samplers[sampler](), pruner=pruners[pruner]())
        if from_start:
            study.enqueue_trial(first)
        rows, columns = table.worth.shape
        spent, best, found = 0.0, math.inf, (rows // 2, columns // 2)
        for _ in range(_MOST.get(sampler, 64)):
            trial = study.ask()
            row = trial.suggest_int("lr", 0, rows - 1)
            column = trial.suggest_int("decay", 0, columns - 1)
            used = _torch(table, row, column, fraction) if sampler == "tpe-torch" else column
            at = int(draw.integers(len(table.chosen)))
            error, cost = float(table.chosen[at, budget, row, used]), 1 / fraction
            stopped = False
            for step, seen in zip(table.steps, table.curves[at, row, used], strict=True):
                if pruner is not None and step < table.steps[-1]:
                    trial.report(float(seen), step)
                    if trial.should_prune():
                        stopped, cost = True, step / table.steps[-1]
                        break
            spent += cost
            if spent > most + 1e-9:
                return
            if stopped:
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                study.tell(trial, error)
                if error < best:
                    long = _torch(table, row, column, 1) if sampler == "tpe-torch" else column
                    best, found = error, (row, long)
            if math.isfinite(best):
                yield spent, found

    return life


def _torch(table: Table, row: int, column: int, fraction: int) -> int:
    """Return the place of the λ_norm that a torch's weight_decay comes to, or the nearest.

    It has as many values as λ_norm has, and is the same in the middle of the learning rates.
    """
    middle = math.exp(np.log(table.lrs).mean())
    norm = table.decays[column] * table.lrs[row] / middle / math.sqrt(fraction)
    return int(np.abs(np.log(table.decays) - math.log(norm)).argmin())


def our_life(at_once: int = 1) -> Life:
    """Return the life of the tuner of this package, which asks for so many trials at once."""

    def life(table: Table, seed: int, most: float) -> Iterator[Event]:
        for spend in (one for one in SPENDS if one <= most):
            yield spend, _recommended(table, _tuned(table, spend, seed, at_once))

    return life


def _tuned(table: Table, spend: float, seed: int, at_once: int = 1) -> Tuner:
    """Return our tuner after its life."""
    draw = np.random.default_rng([seed, 1])
    tuner = _ours(table, spend)
    while trials := [trial for _ in range(at_once) if (trial := tuner.ask()) is not None]:
        for trial in trials:
            row, column = divmod(trial.cell.setting, len(table.decays))
            at = int(draw.integers(len(table.chosen)))
            tuner.tell(trial, error=table.chosen[at, trial.cell.rung, row, column])
    return tuner


def start(table: Table, seed: int, most: float) -> Iterator[Event]:
    """Recommend what our tuner recommends before its first run."""
    del seed
    yield 0.0, _recommended(table, _ours(table, most))


def _ours(table: Table, spend: float) -> Tuner:
    return Tuner(
        table.epochs[-1],
        updates_per_epoch=table.updates_per_epoch,
        spend=spend,
        guess=table.guess,
        lr=table.lrs.tolist(),
        normalized_decay=table.decays.tolist(),
        shortest=table.epochs[0],
    )


def _recommended(table: Table, tuner: Tuner) -> tuple[int, int]:
    found = tuner.recommendation()
    row = int(np.abs(table.lrs - found.lr).argmin())
    column = int(np.abs(table.decays - (found.decay.normalized or 0)).argmin())
    return row, column


def middle(table: Table, seed: int, most: float) -> Iterator[Event]:
    """Recommend the middle of the ranges, without a run: what the ranges alone are worth."""
    del seed, most
    rows, columns = table.worth.shape
    yield 0.0, ((rows - 1) // 2, (columns - 1) // 2)


def tuners() -> dict[str, Life]:
    """Return all tuners by name."""
    found: dict[str, Life] = {"weightdecay": our_life(), "start": start, "middle": middle}
    found |= {f"weightdecay, {count} at once": our_life(count) for count in (2, 4)}
    for sampler in ("random", "sobol", "tpe", "tpe-torch", "cmaes", "gp"):
        for fraction in FRACTIONS:
            name = sampler if fraction == 1 else f"{sampler} 1/{fraction}"
            found[name] = optuna_life(sampler, fraction)
    for sampler in ("tpe", "cmaes"):
        for fraction in FRACTIONS:
            name = f"{sampler}-start" if fraction == 1 else f"{sampler}-start 1/{fraction}"
            found[name] = optuna_life(sampler, fraction, from_start=True)
    for pruner in ("hyperband", "median"):
        found[f"tpe-{pruner}"] = optuna_life("tpe", 1, pruner)
    return found


def lived(life: Life, table: Table, seed: int, spends: Sequence[float]) -> list[float]:
    """Return what the recommendation of one life is worth at each spend; NaN if there is none."""
    own = table.within(np.random.default_rng([seed, 0]))
    worth = own.worth
    errors = [math.nan] * len(spends)
    for spent, setting in life(own, seed, max(spends)):
        for at, spend in enumerate(spends):
            if spent <= spend + 1e-9:
                errors[at] = float(worth[setting])
    return errors


def measured(
    path: Path, names: Iterable[str], lives: int, *, processes: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield one row per tuner, with the error of each life at each spend."""
    table = Table.of(path)
    for name in names:
        fraction = int(name.rpartition("/")[2]) if "/" in name else 1
        if table.epochs[-1] % fraction or table.epochs[-1] // fraction not in table.epochs:
            continue  # the table has no runs of that length
        spends = SPENDS[:-1] if name.startswith("weightdecay") else SPENDS
        count = min(lives, _FEWER) if name.startswith("gp") else lives
        given = [(name, table, seed, spends) for seed in range(count)]
        if processes > 1:
            with ProcessPoolExecutor(processes) as pool:
                errors = list(pool.map(_lived, given))
        else:
            errors = [_lived(one) for one in given]
        rounded = [[round(error, 5) for error in one] for one in errors]
        yield {"table": path.stem, "tuner": name, "spends": spends, "errors": rounded}


def _lived(given: tuple[str, Table, int, Sequence[float]]) -> list[float]:
    name, table, seed, spends = given
    return lived(tuners()[name], table, seed, spends)


def missing(names: Iterable[str], path: Path | None, table: str) -> list[str]:
    """Return the tuners that a file of rows does not have for a table."""
    lines = path.read_text("utf-8").splitlines() if path is not None and path.exists() else []
    made = {row["tuner"] for row in map(json.loads, lines) if row["table"] == table}
    return [name for name in names if name not in made]


def reported(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a report: errors in per cent with 95 % intervals, and the bar."""
    for table in dict.fromkeys(row["table"] for row in rows):
        here = {row["tuner"]: np.array(row["errors"]) for row in rows if row["table"] == table}
        first = {
            name: here.pop(name)
            for name in [*here]
            if name.startswith("weightdecay") or name in ("start", "middle")
        }
        yield f"{table}: test error in % of the long run at the recommended setting"
        yield f"{'long runs spent':<22}" + "".join(f"{spend:>14g}" for spend in SPENDS)
        for name, errors in {**first, **here}.items():
            yield f"{name:<22}" + "".join(f"{_shown(column):>14}" for column in errors.T)
        untold = {name: errors for name, errors in here.items() if "-start" not in name}
        for others, who in ((here, "the best other"), (untold, "the best that has not our start")):
            for times, compute in ((2, "twice the compute"), (1, "the same compute")):
                yield f"our error, less that of {who}, with {compute}:"
                yield from _verdicts(first["weightdecay"], others, times)
        yield ""


def _verdicts(ours: Array, others: dict[str, Array], times: int) -> Iterator[str]:
    """Yield, for each spend, how our error compares with the best other's at once or twice it."""
    for at, spend in enumerate(SPENDS[:-1]):
        then = at + times - 1
        means = {name: errors[:, then].mean() for name, errors in others.items()}
        best = min((name for name in means if means[name] == means[name]), key=means.__getitem__)
        both = min(len(ours), len(others[best]))
        apart = ours[:both, at] - others[best][:both, then]
        low, high = _interval(apart)
        verdict = "reached" if apart.mean() <= 0 else "open" if low <= 0 else "not reached"
        yield (
            f"{spend:>6g} against {best} at {times * spend:g}: {100 * apart.mean():+.2f} points "
            f"({100 * low:+.2f} to {100 * high:+.2f}), {verdict}"
        )


def beliefs(path: Path, lives: int) -> Iterator[str]:
    """Yield, for each spend, what our tuner says of its recommendation, and what is true.

    That is by how much its error exceeds that of the best setting; how probable it is that the best
    is within a doubling; and how probable the runs make it that λ_norm is to be kept if the epochs
    change, where 0.5 means that they cannot tell.
    """
    table = Table.of(path)
    for spend in SPENDS[:-1]:
        rows = []
        for seed in range(lives):
            own = table.within(np.random.default_rng([seed, 0]))
            tuner = _tuned(own, spend, seed)
            found, worth = tuner.recommendation(), own.worth
            row, column = _recommended(own, tuner)
            best = int(worth.argmin())
            near = tuner.space.doublings(row * len(own.decays) + column, best) <= 1.01
            excess = float(worth[row, column] / worth.min() - 1)
            kept = 0.5 if found.carrying is None else found.carrying.normalized
            rows.append((found.loss, excess, found.near, near, kept))
        *means, _ = np.array(rows).mean(axis=0)
        rule = [row[-1] for row in rows]
        yield (
            f"{path.stem}, {spend:g} long runs: excess {means[0]:.1%} said, {means[1]:.1%} true; "
            f"near {means[2]:.0%} said, {means[3]:.0%} true; λ_norm {min(rule):.2f} to "
            f"{max(rule):.2f}"
        )


def _interval(values: Array) -> tuple[float, float]:
    half = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def _shown(values: Array) -> str:
    if np.isnan(values).any():
        return "–"
    low, high = _interval(values)
    return f"{100 * values.mean():.2f} ±{50 * (high - low):.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, or report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("table", nargs="?", type=Path)
    parser.add_argument("--lives", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=[*tuners()])
    parser.add_argument("--out", type=Path, help="what it has already is not simulated again")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--report", type=Path, nargs="+")
    parser.add_argument("--beliefs", action="store_true")
    given = parser.parse_args(arguments)
    if given.report:
        lines = [line for path in given.report for line in path.read_text("utf-8").splitlines()]
        print("\n".join(reported([json.loads(line) for line in lines])))
        return
    if given.beliefs:
        print("\n".join(beliefs(given.table, given.lives)))
        return
    names = missing(given.only or tuners(), given.out, given.table.stem)
    for row in measured(given.table, names, given.lives, processes=given.processes):
        if given.out:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        values = np.array(row["errors"])
        print(f"{row['tuner']:<18}", *(f"{_shown(one):>14}" for one in values.T), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
