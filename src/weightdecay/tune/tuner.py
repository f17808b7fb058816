"""Ask and tell: a tuner says which run to make next, and is told how it came out.

    tuner = Tuner(epochs=300, updates_per_epoch=len(loader), spend=1.0, folder="tuning")
    for trial in tuner:
        error = train(trial.lr, trial.weight_decay, trial.epochs, seed=trial.seed)
        tuner.tell(trial, error=error)
    print(tuner.recommendation())

A choice depends only on what was told and what is still running, so a tuner that was killed and
started again in its folder goes on as if nothing had happened.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from weightdecay import checks
from weightdecay.tune.choosing import Chooser, choose, lengths
from weightdecay.tune.keeping import Keeper
from weightdecay.tune.recommendation import Recommendation, recommend
from weightdecay.tune.space import Axis, space
from weightdecay.tune.stopping import is_hopeless
from weightdecay.tune.trial import Cell, Outcome, Trial

_TOO_MANY = 3  # failures before the first success


class Tuner:
    """Finds a learning rate and a decay for a run of `epochs`, mostly by shorter runs.

    epochs             of the long run
    updates_per_epoch  optimizer steps per epoch: len(loader) in most loops
    spend              what all trials together may cost, in long runs
    algorithm          adamw or sgdw, or a relative: where to look for α if `lr` is not given
    convention         what a trial's `weight_decay` is: "weight_decay", the paper's λ, which the
                       optimizers of this package take; "normalized", λ_norm; "torch", that of
                       torch.optim.AdamW; or "l2", a factor of L2 regularization
    lr                 the lowest and highest learning rate to try, or all values to try
    normalized_decay   the same of λ_norm = λ·√(updates); with L2, of its factor times α·√(updates)
    shortest           the fewest epochs of a run
    guess              the error of guessing, which is that of an untrained network: 0.9 with ten
                       classes. Lengths at which no run is a third better are given up
    validation         the number of validation examples, if an error is the fraction of them that
                       is wrong. Only the recommendation uses it, to say whether they are too few
    folder             where to keep the trials, and to continue from
    task, metric       names for them in the folder
    chooser            what chooses the next trial, if not this tuner: a sampler of Optuna's,
                       with `weightdecay.tune.optuna_sampler.OptunaChooser`
    """

    @checks.arguments
    def __init__(
        self,
        epochs: int,
        *,
        updates_per_epoch: int,
        spend: float = 1.0,
        algorithm: str = "adamw",
        convention: str = "weight_decay",
        lr: Axis | None = None,
        normalized_decay: Axis | None = None,
        shortest: int | None = None,
        guess: float | None = None,
        validation: int | None = None,
        folder: Path | str | None = None,
        task: str = "own",
        metric: str = "error",
        chooser: Chooser = choose,
    ) -> None:
        self.space = space(
            epochs=epochs,
            updates_per_epoch=updates_per_epoch,
            algorithm=algorithm,
            convention=convention,
            lr=lr,
            normalized_decay=normalized_decay,
            shortest=shortest,
        )
        self.spend = checks.number("spend", spend, above=0)
        if self.spend * epochs < self.space.ladder[0]:
            raise ValueError(
                f"`spend` must pay for one of the shortest runs, of {self.space.ladder[0]} of "
                f"{epochs} epochs, got {spend!r}. Spend {self.space.ladder[0] / epochs:.3g} or "
                "more, or lower `shortest`."
            )
        self.guess = None if guess is None else checks.number("guess", guess, above=0)
        self._validation = (
            None if validation is None else checks.whole("validation", validation, at_least=1)
        )
        self._keeper = (
            None
            if folder is None
            else Keeper(folder, self.space, task=task, metric=metric, changing=self.changing)
        )
        self._choose = chooser
        self._told: dict[Cell, Outcome] = {} if self._keeper is None else self._keeper.outcomes()
        self._running: dict[Cell, float] = {}
        self._reports: dict[Cell, list[tuple[int, float]]] = {}
        # Running trials that were told to stop when they last reported.
        self._stopped: set[Cell] = set()
        self._failed: dict[Cell, str] = {}

    def remember(
        self,
        told: Mapping[Cell, Outcome],
        failed: Mapping[Cell, str],
        running: Iterable[Cell] = (),
    ) -> None:
        """Take over what came of trials that another tuner of the same space has asked for."""
        self._told |= {
            cell: replace(outcome, error=self._error(outcome.error))
            for cell, outcome in told.items()
        }
        self._failed |= failed
        self._running |= dict.fromkeys(running, time.monotonic())

    @property
    def changing(self) -> dict[str, float | None]:
        """What may change when a tuner is started again in its folder, by the names there."""
        return {"spend": self.spend, "guess": self.guess, "examples": self._validation}

    @property
    def spent(self) -> float:
        """What the trials have cost so far, in long runs; running ones count in full."""
        done = sum(outcome.epochs for outcome in self._told.values())
        running = sum(self.space.ladder[cell.rung] for cell in self._running)
        return (done + running) / self.space.epochs

    def __iter__(self) -> Iterator[Trial]:
        while (trial := self.ask()) is not None:
            yield trial
            if trial.cell in self._running:
                raise RuntimeError(
                    f"The tuner was not told what came of {trial}. Call tell(trial, error=…), or "
                    "fail(trial, reason) if it could not be trained. To train several at once, "
                    "use ask()."
                )

    def ask(self) -> Trial | None:
        """Return the next trial, or None if no more can be learned for the spend.

        May be called again before earlier trials are told: they are expected to come out as the
        tuner believes.
        """
        if self._keeper is not None:
            self._keeper.claim()
        if len(self._failed) >= _TOO_MANY and not self._told:
            *_, reason = self._failed.values()
            raise RuntimeError(
                f"The first {len(self._failed)} trials could not be trained, the last because: "
                f"{reason}. See to that first, then start again: they are tried again."
            )
        left = (self.spend - self.spent) * self.space.epochs + 1e-9
        running = list(self._running)
        rungs = lengths(
            self.space, self._told, running, guess=self.guess, spend=self.spend, left=left
        )
        if not rungs:
            return None
        avoid = {(cell.rung, cell.setting) for cell in self._failed}
        found = self._choose(
            self.space, self._told, running, guess=self.guess, rungs=rungs, avoid=avoid
        )
        if found is None:
            return None
        rung, setting = found
        taken = [
            cell.seed
            for cell in (*self._told, *self._running)
            if (cell.rung, cell.setting) == (rung, setting)
        ]
        cell = Cell(rung, setting, max(taken, default=-1) + 1)
        self._running[cell] = time.monotonic()
        return self._trial(cell)

    def _trial(self, cell: Cell) -> Trial:
        epochs = self.space.ladder[cell.rung]
        lr, _ = self.space.setting(cell.setting)
        return Trial(lr, self.space.stated(cell.setting, epochs), epochs, cell.seed, cell)

    def report(self, trial: Trial, epoch: int, error: float) -> bool:
        """Report the validation error after an epoch; return whether to stop the trial.

        Then tell the error that it has: the epochs that it did not train are not counted.
        """
        cell = self._known(trial)
        epoch = checks.whole("epoch", epoch, at_least=1)
        seen = self._reports.setdefault(cell, [])
        last = seen[-1][0] if seen else 0
        if not last < epoch <= trial.epochs:
            raise ValueError(
                f"`epoch` must be after the last one reported, {last}, and at most "
                f"{trial.epochs}, got {epoch}."
            )
        seen.append((epoch, self._error(error)))
        others = [outcome for other, outcome in self._told.items() if other.rung == cell.rung]
        stop = epoch < trial.epochs and is_hopeless(seen[-1], trial.epochs, others)
        (self._stopped.add if stop else self._stopped.discard)(cell)
        return stop

    def tell(self, trial: Trial, *, error: float) -> None:
        """Tell the validation error of a trial: smaller is better, NaN if it diverged."""
        cell = self._known(trial)
        value = self._error(error)
        way = self._reports.get(cell, [])
        ended = cell in self._stopped or not math.isfinite(value)
        epochs = way[-1][0] if way and ended else trial.epochs
        outcome = Outcome(value, epochs, tuple(way))
        if self._keeper is not None:
            self._keeper.keep(cell, outcome, seconds=time.monotonic() - self._running[cell])
        self._forget(cell)
        self._told[cell] = outcome

    def fail(self, trial: Trial, reason: object) -> None:
        """Say that a trial could not be trained: it costs nothing and is not asked for again.

        A tuner that is started again in the folder may ask for it.
        """
        cell = self._known(trial)
        if self._keeper is not None:
            self._keeper.keep_failure(cell, str(reason))
        self._forget(cell)
        self._failed[cell] = str(reason)

    def _forget(self, cell: Cell) -> None:
        """Forget what is only known of running trials."""
        del self._running[cell]
        self._reports.pop(cell, None)
        self._stopped.discard(cell)

    def recommendation(self) -> Recommendation:
        """Return the setting to use for the long run, by what was told so far."""
        return recommend(self.space, self._told, self.guess, self._validation)

    def _known(self, trial: Trial) -> Cell:
        if not isinstance(trial, Trial):
            raise TypeError(f"`trial` must be one that the tuner asked for, got {trial!r}.")
        if trial.cell not in self._running or self._trial(trial.cell) != trial:
            told = " It was told already." if trial.cell in self._told else ""
            raise ValueError(f"`trial` must be one that is running, got {trial!r}.{told}")
        return trial.cell

    def _error(self, error: object) -> float:
        """Return an error as a float, infinite if it is not finite."""
        cure = (
            "For an accuracy, pass 1 - accuracy. For a run that diverged, pass NaN. For a tensor, "
            "pass its item()."
        )
        if isinstance(error, float | np.floating) and not math.isfinite(error):
            return math.inf
        value = checks.number("error", error, at_least=0, cure=cure)
        if self.guess is not None and self.guess <= 1 < value:
            raise ValueError(
                f"`error` must be at most 1, like the error of guessing, `guess` = {self.guess:g}, "
                f"got {value:g}. If it is in percent, divide it by 100. If it is a loss, which may "
                "be larger, make the tuner without `guess`."
            )
        return value
