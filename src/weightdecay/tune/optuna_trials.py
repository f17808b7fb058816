"""What a tuner needs to know of the trials in a study of Optuna's, and how it ends the study."""

import math
from collections.abc import Sequence
from typing import NoReturn

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from weightdecay import checks
from weightdecay.tune.space import Space
from weightdecay.tune.trial import Cell, Outcome

#: The attribute of a trial that has its cell, and the parameters that the tuner suggests.
CELL = "weightdecay:cell"
NAMES = ("lr", "weight_decay", "epochs", "seed")
#: Why a trial that has ended has no error.
WHY = {
    TrialState.FAIL: "raised an exception, which Optuna logged, or returned no number (if a run "
    "diverged, return infinity)",
    TrialState.PRUNED: "was pruned before it reported an error",
}


def outcome(
    trial: FrozenTrial, state: TrialState, values: Sequence[float] | None, epochs: int
) -> Outcome | None:
    """Return what came of a trial; None if it has no error."""
    way = tuple(sorted(trial.intermediate_values.items()))
    if state == TrialState.COMPLETE and values:
        [error] = values
        return Outcome(_error(error, trial), epochs, way)
    if state == TrialState.PRUNED and way:
        step, error = way[-1]
        return Outcome(_error(error, trial), max(1, min(step, epochs)), way)
    return None


def _error(error: float, trial: FrozenTrial) -> float:
    if not math.isfinite(error):
        return math.inf
    cure = (
        f"It is that of trial {trial.number}. For an accuracy, return 1 - accuracy; for a run that "
        "diverged, return infinity. Then begin a new study."
    )
    return checks.number("error", error, at_least=0, cure=cure)


def differing(trial: FrozenTrial, space: Space) -> dict[str, float]:
    """Return what the cell of a trial has in place of parameters that the trial was given."""
    cell = Cell(*trial.system_attrs[CELL])
    if cell.rung >= len(space.ladder) or cell.setting >= space.size:  # of another tuner
        return dict.fromkeys(NAMES, math.nan)
    epochs = space.ladder[cell.rung]
    lr, _ = space.setting(cell.setting)
    values = (lr, space.stated(cell.setting, epochs), epochs, cell.seed)
    return {
        name: value
        for name, value in zip(NAMES, values, strict=True)
        if not math.isclose(trial.params.get(name, value), value, rel_tol=1e-6)
    }


def check_followed(trial: FrozenTrial, space: Space) -> None:
    """Raise if something else than the tuner or `enqueue_trial` has set a parameter."""
    for name, value in differing(trial, space).items():
        if "fixed_params" not in trial.system_attrs:
            raise ValueError(
                f"`{name}` must be what the tuner suggests, {value:.3g}, got "
                f"{trial.params[name]:.3g} in trial {trial.number}. Leave it to the tuner. To try "
                "few values, narrow the tuner's range."
            )


def trials(study: Study) -> list[FrozenTrial]:
    """Return the trials of a study that have a cell."""
    whole = getattr(study, "_study", study)  # Hyperband shows a sampler a part of the study
    return [trial for trial in whole.get_trials(deepcopy=False) if CELL in trial.system_attrs]


def running_note(study: Study) -> list[str]:
    """Return a sentence about the trials that are running, if there are any."""
    numbers = [str(one.number) for one in trials(study) if one.state == TrialState.RUNNING]
    if not numbers:
        return []
    note = (
        f"RUNNING trials count in full, and the study has {len(numbers)}: {', '.join(numbers)}. If "
        "their processes have died, call study.tell(NUMBER, state=optuna.trial.TrialState.FAIL) "
        "for each, and optimize again. A storage that was made with `heartbeat_interval` does it."
    )
    return [note]


def stop(study: Study) -> bool:
    """End the loop of a study; return whether there is one, or the user asks and tells."""
    try:
        study.stop()
    except RuntimeError:
        return False
    return True


def end(study: Study) -> NoReturn:
    """End a trial for which nothing is left, and the loop of its study."""
    found = "The spend of the tuner is used up. `recommendation(study)` says what it found."
    message = " ".join([found, *running_note(study)])
    raise optuna.TrialPruned(message) if stop(study) else RuntimeError(message)
