"""What a tuner saves by stopping hopeless runs on their way, in lives simulated from a table.

    python -m benchmarks.tuner_stopping results/tuning/*.parquet --lives 40

Every life is lived twice, with the ranges and the runs of `benchmarks.tuners`: once with all runs
trained to their ends, and once reporting the errors on their way that the table has, and stopping
a run when the tuner says so. What is saved is spent on further runs. The tables of text have errors
on the way of the long runs alone.

"Foreseen" is what a rule could save at most that knows how each run will end: it stops those that
will be 20 % above the best of their length so far, at the first evaluation after a quarter of their
epochs.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.tuners import SPENDS, Table, _interval, _ours, _recommended
from weightdecay.records import Run, read
from weightdecay.tune import Tuner

_WORSE = 1.2  # than the best, which is not worth finishing for one who knows it
_SHARE = 0.25  # of a run, before which it is not stopped
#: The errors of a run on its way, by its seed, epochs, learning rate and normalized decay.
Ways: TypeAlias = Mapping[tuple[int, int, float, float], Sequence[tuple[int, float]]]


def ways(path: Path) -> Ways:
    """Return the validation errors after each epoch at which a table's runs were evaluated."""
    return {
        (one.seed, one.epochs, one.lr, one.normalized_decay or 0.0): _way(run)
        for run in read(path)
        for one in [run.config]
    }


def _way(run: Run) -> list[tuple[int, float]]:
    errors = [(one.epoch, None if one.diverged else one.validation_error) for one in run.records]
    return [(epoch, 1.0 if error is None else error) for epoch, error in errors]


@dataclass
class Life:
    """A tuner after its life: its trials, those stopped, and epochs: trained, saved, foreseen."""

    tuner: Tuner
    trials: int = 0
    stopped: int = 0
    trained: int = 0
    saved: int = 0
    foreseen: int = 0


def life(table: Table, known: Ways, seed: int, spend: float, *, stops: bool) -> Life:
    """Return a life, in which hopeless runs are stopped or all are trained to their ends."""
    draw = np.random.default_rng([seed, 1])
    found = Life(_ours(table, spend))
    seeds = sorted({at for at, *_ in known})
    best: dict[int, float] = {}
    for trial in found.tuner:
        row, column = divmod(trial.cell.setting, len(table.decays))
        at = seeds[int(draw.integers(len(table.chosen)))]
        way = known[at, trial.epochs, float(table.lrs[row]), float(table.decays[column])]
        last, error = way[-1]
        if error > _WORSE * best.get(last, error):
            found.foreseen += last - next(at for at, _ in way if at >= _SHARE * last)
        best[last] = min(error, best.get(last, error))
        for epoch, error in way if stops else way[-1:]:
            if found.tuner.report(trial, epoch, error):
                break
        found.tuner.tell(trial, error=error)
        found.trials += 1
        found.stopped += epoch < last
        found.trained += epoch
        found.saved += last - epoch
    return found


def compared(path: Path, spend: float, lives: int) -> str:
    """Return a line about what stopping saved at a spend, and how the error came out."""
    table, known = Table.of(path), ways(path)
    both: dict[bool, list[Life]] = {True: [], False: []}
    apart = []
    for seed in range(lives):
        own = table.within(np.random.default_rng([seed, 0]))
        for stops, some in both.items():
            some.append(life(own, known, seed, spend, stops=stops))
        errors = (own.worth[_recommended(own, some[-1].tuner)] for some in both.values())
        apart.append(100 * float(np.subtract(*errors)))
    stopping, whole = both.values()
    trials, stopped = (
        sum(getattr(one, what) for one in stopping) for what in ("trials", "stopped")
    )
    saved, trained = (sum(getattr(one, what) for one in stopping) for what in ("saved", "trained"))
    could = sum(one.foreseen for one in whole) / sum(one.trained for one in whole)
    low, high = _interval(np.array(apart))
    return (
        f"{path.stem}, {spend:g} long runs: {stopped} of {trials} trials stopped, "
        f"{saved / (saved + trained):.1%} of the epochs saved ({could:.1%} if foreseen); error "
        f"{np.mean(apart):+.2f} points ({low:+.2f} to {high:+.2f})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, and print one line per table and spend."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--lives", type=int, default=40)
    parser.add_argument("--spends", type=float, nargs="+", default=SPENDS[1:-1])
    given = parser.parse_args(arguments)
    for path in given.tables:
        for spend in given.spends:
            print(compared(path, spend, given.lives), flush=True)


if __name__ == "__main__":
    main()
