"""Our tuner as a sampler for Optuna, and Optuna's samplers for our tuner.

    def objective(trial):
        lr = trial.suggest_float("lr", 1e-6, 1, log=True)
        weight_decay = trial.suggest_float("weight_decay", 1e-9, 1, log=True)
        epochs = trial.suggest_int("epochs", 1, 300)
        seed = trial.suggest_int("seed", 0, 1000)
        return train(lr, weight_decay, epochs, seed)

    sampler = TunerSampler(300, updates_per_epoch=len(loader), spend=4.0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective)  # until the spend is used up
    print(sampler.recommendation(study))

Everything is kept in Optuna's study, so its storages, workers and dashboards work as usual.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, TypeAlias

from weightdecay.tune.recommendation import Recommendation
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome
from weightdecay.tune.tuner import Tuner

try:
    import optuna
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError:
    raise ImportError("Optuna's samplers need Optuna: pip install 'weightdecay[optuna]'") from None

from weightdecay.tune.optuna_trials import (
    CELL,
    NAMES,
    WHY,
    check_followed,
    differing,
    end,
    outcome,
    running_note,
    stop,
    trials,
)

#: Makes a sampler of Optuna's; its classes are such functions.
Makes: TypeAlias = Callable[..., BaseSampler]
_SEEDS = 1000
_MOST = 1000  # suggestions that are not new runs, after which a sampler has nothing to say


class TunerSampler(BaseSampler):
    """A sampler that suggests `lr`, `weight_decay`, `epochs` and `seed` as `Tuner` does.

    The arguments are those of `Tuner`. The objective returns the validation error, or infinity if
    the run diverged; it may report the error after each epoch, and be pruned by any pruner. Other
    parameters are suggested by `others`, at random by default.
    """

    def __init__(self, epochs: int, *, others: BaseSampler | None = None, **arguments: Any) -> None:
        if "folder" in arguments:
            raise TypeError("`folder` must be left out: Optuna's study keeps the trials.")
        self._epochs, self._arguments = epochs, arguments
        self._space = self._new().space
        self._others = RandomSampler() if others is None else others
        self._lock = Lock()  # of threads that share a study
        self._asked: set[int] = set()  # ids of the trials that have a cell from this sampler

    def _new(self) -> Tuner:
        return Tuner(self._epochs, **self._arguments)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        del study, trial
        space = self._space
        decays = [
            space.stated(setting, epochs)
            for setting in range(space.size)
            for epochs in (space.ladder[0], space.epochs)
        ]
        return {
            "lr": FloatDistribution(space.lrs[0], space.lrs[-1], log=True),
            "weight_decay": FloatDistribution(min(decays), max(decays), log=True),
            "epochs": IntDistribution(space.ladder[0], space.epochs),
            "seed": IntDistribution(0, _SEEDS),
        }

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        del search_space
        with self._lock:
            try:
                found = self.tuner(study).ask()
            except RuntimeError:  # no trial could be trained: `catch` must not go on for ever
                stop(study)
                raise
            if found is None:
                return {}  # the first parameter of the four ends the trial
            self._asked.add(trial._trial_id)
            cell = [found.cell.rung, found.cell.setting, found.cell.seed]
            study._storage.set_trial_system_attr(trial._trial_id, CELL, cell)
        return {name: getattr(found, name) for name in NAMES}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        if param_name in NAMES:
            if trial._trial_id not in self._asked:
                end(study)
            wanted = self.infer_relative_search_space(study, trial)[param_name]
            raise ValueError(
                f"`{param_name}` must be suggested from a range that has all that the tuner may "
                f"try, {_range(wanted)}, got {_range(param_distribution)}. Widen the range, or "
                "narrow the tuner's."
            )
        return self._others.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        del trial
        if study.direction != StudyDirection.MINIMIZE:
            raise ValueError(
                "The study must minimize an error, and it maximizes. Return 1 - accuracy."
            )

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._others.after_trial(study, trial, state, values)
        if trial._trial_id in self._asked and state != TrialState.FAIL:
            check_followed(trial, self._space)
        tuner = self.tuner(study, ended=(trial, state, values))
        with suppress(RuntimeError):  # no trial could be trained: the next one says so
            if tuner.ask() is None:
                stop(study)

    def reseed_rng(self) -> None:
        self._others.reseed_rng()

    def recommendation(self, study: Study) -> Recommendation:
        """Return the setting to use for the long run, by the trials of a study."""
        found = self.tuner(study).recommendation()
        return replace(found, notes=(*found.notes, *running_note(study)))

    def tuner(
        self,
        study: Study,
        *,
        ended: tuple[FrozenTrial, TrialState, Sequence[float] | None] | None = None,
    ) -> Tuner:
        """Return a tuner that knows all trials of a study that have its settings.

        Those with parameters from `enqueue_trial` are left out. Trials that failed under another
        sampler may be asked for again, as by a tuner that is started again. `ended` is a trial
        that is about to end, its state, and its values.
        """
        told: dict[Cell, Outcome] = {}
        failed: dict[Cell, str] = {}
        running: list[Cell] = []
        for trial in trials(study):
            if differing(trial, self._space):
                continue
            cell, state, values = Cell(*trial.system_attrs[CELL]), trial.state, trial.values
            if ended is not None and trial.number == ended[0].number:
                _, state, values = ended
            came = outcome(trial, state, values, self._space.ladder[cell.rung])
            if came is not None:
                told[cell] = came
            elif not state.is_finished():
                running.append(cell)
            elif trial._trial_id in self._asked:
                failed[cell] = f"trial {trial.number} {WHY[state]}"
        tuner = self._new()
        tuner.remember(told, failed, running)
        return tuner


def _range(distribution: BaseDistribution) -> str:
    low, high = getattr(distribution, "low", None), getattr(distribution, "high", None)
    return str(distribution) if low is None or high is None else f"{low:.3g} to {high:.3g}"


class OptunaChooser:
    """Lets a sampler of Optuna's choose the trials of a tuner: `Tuner(chooser=OptunaChooser(…))`.

    `makes` is a class of samplers, or a function, that takes a `seed`. It samples places of the
    tuner's lattice. Samplers know nothing of budgets: every trial has the shortest length that may
    be tried. A sampler is asked from the beginning each time, and told what is known of what it
    suggests, so that a tuner that is started again goes on as before; trials should be asked for
    one by one.
    """

    def __init__(self, makes: Makes, *, seed: int = 0) -> None:
        self._makes, self._seed = makes, seed
        try:
            makes(seed=seed)
        except TypeError as error:
            raise TypeError(
                "A sampler must need nothing but a seed, got "
                f"{getattr(makes, '__name__', makes)}: {error}. Write a function that takes seed "
                "and returns the sampler, and pass that (MODULE:FUNCTION on the command line)."
            ) from error

    def __call__(
        self,
        space: Space,
        told: Mapping[Cell, Outcome],
        running: Collection[Cell],
        *,
        guess: float | None,
        rungs: Sequence[int],
        avoid: Collection[tuple[int, int]],
    ) -> tuple[int, int] | None:
        del guess
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            study = optuna.create_study(sampler=self._makes(seed=self._seed))
            seen: dict[int, int] = {}
            for _ in range(_MOST):
                trial = study.ask()
                row = trial.suggest_int("lr", 0, len(space.lrs) - 1)
                column = trial.suggest_int("decay", 0, len(space.decays) - 1)
                setting = row * len(space.decays) + column
                if (rungs[0], setting) in avoid:
                    study.tell(trial, state=TrialState.FAIL)
                    continue
                cell = Cell(rungs[0], setting, seen.get(setting, 0))
                seen[setting] = cell.seed + 1
                if cell in told:
                    study.tell(trial, told[cell].error)
                elif cell not in running:
                    return rungs[0], setting
        finally:
            optuna.logging.set_verbosity(verbosity)
        return None
