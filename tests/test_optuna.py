"""Our tuner under Optuna, and Optuna's samplers under our tuner: `make peers`."""

import json
import math
import re
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.test_tune import HERE, WORDS
from tests.test_tuning import UPDATES, excess, surface, tuned
from weightdecay.cli import main
from weightdecay.records import read
from weightdecay.tune import Trial, Tuner
from weightdecay.tune.trial import Cell

pytest.importorskip(
    "optuna", reason="Optuna is not installed: `make peers` installs it and runs these"
)
import optuna

from weightdecay.tune.optuna_sampler import OptunaChooser, TunerSampler

pytestmark = [
    pytest.mark.cpu("no tensor of it is on a device"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]
optuna.logging.set_verbosity(optuna.logging.WARNING)
LOOP, State = surface(), optuna.trial.TrialState


def sampler(**arguments: Any) -> TunerSampler:
    return TunerSampler(64, **{"updates_per_epoch": UPDATES, **arguments})


def suggested(trial: Any) -> Trial:
    """Return what a study suggests, as a trial of ours."""
    return Trial(
        trial.suggest_float("lr", 1e-6, 1, log=True),
        trial.suggest_float("weight_decay", 1e-9, 1, log=True),
        trial.suggest_int("epochs", 1, 64),
        trial.suggest_int("seed", 0, 1000),
        Cell(*trial.study.trials[trial.number].system_attrs["weightdecay:cell"]),
    )


def objective(trial: Any) -> float:
    return LOOP(suggested(trial))


def by_hand(**arguments: Any) -> tuple[list[Trial], Tuner]:
    tuner = Tuner(64, **{"updates_per_epoch": UPDATES, **arguments})
    return tuned(LOOP, tuner), tuner


def test_a_study_makes_the_trials_of_the_tuner_and_stops_when_the_spend_is_used_up() -> None:
    ours, study = sampler(spend=1), optuna.create_study(sampler=sampler(spend=1))
    study.optimize(objective, n_trials=100)
    trials, tuner = by_hand(spend=1)
    names = ("lr", "weight_decay", "epochs", "seed")
    made = [{name: getattr(one, name) for name in names} for one in trials]
    assert [one.params for one in study.trials] == made
    assert ours.recommendation(study) == tuner.recommendation()


def test_a_study_that_was_killed_goes_on_in_its_storage(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path}/study.db"
    for _ in range(20):  # each time with a new sampler, as another process has one
        study = optuna.create_study(
            sampler=sampler(spend=1), storage=where, study_name="one", load_if_exists=True
        )
        if sampler(spend=1).tuner(study).ask() is None:
            break
        study.optimize(objective, n_trials=1)
    trials, tuner = by_hand(spend=1)
    assert len(study.trials) == len(trials)
    assert sampler(spend=1).recommendation(study) == tuner.recommendation()


def test_trials_of_parallel_workers_are_different_runs_within_the_spend() -> None:
    study = optuna.create_study(sampler=sampler(spend=4, shortest=64))
    trials = [study.ask() for _ in range(4)]
    asked = [suggested(trial) for trial in trials]
    assert len({one.cell for one in asked}) == 4
    with pytest.raises(RuntimeError, match="The spend of the tuner is used up"):
        suggested(study.ask())
    for trial, one in zip(trials, asked, strict=True):
        study.tell(trial, LOOP(one))
    assert sampler(spend=4, shortest=64).recommendation(study).trials == 4


def test_a_pruned_trial_counts_with_what_it_reported_last() -> None:
    study = optuna.create_study(sampler=sampler(spend=4, shortest=64))
    trial = study.ask()
    suggested(trial)
    for epoch, error in ((8, 0.9), (16, 0.7)):
        trial.report(error, epoch)
    study.tell(trial, state=State.PRUNED)
    tuner = sampler(spend=4, shortest=64).tuner(study)
    assert tuner.spent == 16 / 64
    assert [one.error for one in tuner._told.values()] == [0.7]


def test_infinity_is_a_run_that_diverged_and_an_exception_is_a_run_that_failed() -> None:
    ours = sampler(spend=4, shortest=64)
    study = optuna.create_study(sampler=ours)
    for error, state in ((math.inf, "COMPLETE"), (None, "FAIL")):
        trial = study.ask()
        suggested(trial)
        study.tell(trial, error, state=State[state])
    tuner = ours.tuner(study)
    assert [one.diverged for one in tuner._told.values()] == [True]
    assert len(tuner._failed) == 1
    assert tuner.spent == 1


def test_a_trial_that_is_pruned_at_step_0_costs_an_epoch() -> None:
    study = optuna.create_study(sampler=sampler(spend=4, shortest=64))
    trial = study.ask()
    suggested(trial)
    trial.report(0.9, 0)
    study.tell(trial, state=State.PRUNED)
    assert sampler(spend=4, shortest=64).tuner(study).spent == 1 / 64


def test_a_trial_with_a_parameter_of_the_users_own_is_not_taken_for_the_tuners() -> None:
    study = optuna.create_study(sampler=sampler(spend=1))
    study.enqueue_trial({"lr": 0.5})
    study.optimize(objective)
    trials, tuner = by_hand(spend=1)
    assert study.trials[0].params["lr"] == 0.5
    assert [one.params["lr"] for one in study.trials[1:]] == [one.lr for one in trials]
    assert sampler(spend=1).recommendation(study) == tuner.recommendation()


@pytest.mark.parametrize("rates", [(0.01, 0.5), (0.01, 0.011)])
def test_a_tuner_with_other_ranges_leaves_out_the_trials_of_a_study(
    rates: tuple[float, float],
) -> None:
    study = optuna.create_study(sampler=sampler(spend=1))
    study.optimize(objective)
    assert sampler(spend=1).tuner(study).spent > 0
    assert sampler(spend=1, lr=rates).tuner(study).spent == 0


def test_a_range_of_one_value_that_the_tuner_did_not_suggest_is_refused_with_a_cure() -> None:
    def at_one_rate(trial: Any) -> float:
        trial.suggest_float("lr", 0.5, 0.5)  # Optuna asks no sampler
        trial.suggest_float("weight_decay", 1e-9, 1, log=True)
        return 0.5

    study = optuna.create_study(sampler=sampler(spend=1))
    with pytest.raises(ValueError, match=r"`lr` must be what the tuner suggests, .* got 0.5 in"):
        study.optimize(at_one_rate, n_trials=20)


def test_a_study_whose_spend_dead_trials_hold_says_so_and_goes_on_when_they_are_failed(
    tmp_path: Path,
) -> None:
    arguments: dict[str, Any] = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "one"}
    dead = optuna.create_study(sampler=sampler(spend=4, shortest=64), **arguments)
    for _ in range(4):
        suggested(dead.ask())
    study = optuna.load_study(sampler=sampler(spend=4, shortest=64), **arguments)
    study.optimize(objective, n_trials=20)
    said = str(sampler(spend=4, shortest=64).recommendation(study))
    assert "No trial was told yet." in said
    assert "RUNNING trials count in full, and the study has 4: 0, 1, 2, 3. If their" in said
    with pytest.raises(RuntimeError, match=r"is used up\. .* the study has 4: 0, 1, 2, 3\. If"):
        suggested(study.ask())
    study.tell(5, state=State.FAIL)
    for number in range(3):
        study.tell(number, state=State.FAIL)
    storage = study._storage  # as a heartbeat does
    storage.set_trial_state_values(study.trials[3]._trial_id, State.FAIL)
    study.optimize(objective, n_trials=20)
    trials, tuner = by_hand(spend=4, shortest=64)
    done = [one for one in study.trials if one.state == State.COMPLETE]
    assert [one.params["lr"] for one in done] == [one.lr for one in trials]
    assert sampler(spend=4, shortest=64).recommendation(study) == tuner.recommendation()


def test_a_study_whose_spend_is_used_up_ends_without_an_error_and_without_a_failed_trial() -> None:
    study = optuna.create_study(sampler=sampler(spend=4, shortest=64))
    begun = Barrier(4)

    def together(trial: Any) -> float:
        one = suggested(trial)
        begun.wait(60)  # four trials at once use up the spend
        return LOOP(one)

    study.optimize(together, n_jobs=8)
    count = len(study.trials)
    study.optimize(together)
    assert len(study.trials) == count + 1
    states = [one.state for one in study.trials]
    assert states.count(State.COMPLETE) == 4
    assert states.count(State.PRUNED) == len(states) - 4 > 0
    found = sampler(spend=4, shortest=64).recommendation(study)
    assert (found.trials, found.spent) == (4, 4)


def test_a_pruner_that_splits_the_study_does_not_multiply_the_spend() -> None:
    def reporting(trial: Any) -> float:
        error = objective(trial)
        trial.report(error, 1)
        trial.should_prune()  # from the first time on, a sampler is shown one bracket of trials
        return error

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=64)
    study = optuna.create_study(study_name="one", sampler=sampler(spend=1), pruner=pruner)
    study.optimize(reporting, n_trials=20)
    trials, _ = by_hand(spend=1)
    assert len(study.trials) == len(trials)


def test_three_trials_that_return_nan_end_the_study_with_the_reason() -> None:
    def lost(trial: Any) -> float:
        suggested(trial)
        return math.nan

    study = optuna.create_study(sampler=sampler(spend=1))
    with pytest.raises(RuntimeError, match="trial 2 raised an exception, which Optuna logged, or"):
        study.optimize(lost, n_trials=20)
    study = optuna.create_study(sampler=sampler(spend=1))
    study.optimize(lost, n_trials=20, catch=(Exception,))
    assert len(study.trials) == 4


def test_a_negative_error_is_refused_with_what_to_return() -> None:
    def accuracy(trial: Any) -> float:
        return -objective(trial)

    study = optuna.create_study(sampler=sampler(spend=1))
    with pytest.raises(ValueError, match=r"It is that of trial 0. .* diverged, return infinity"):
        study.optimize(accuracy, n_trials=20)


def test_other_parameters_are_left_to_another_sampler() -> None:
    def with_width(trial: Any) -> float:
        assert trial.suggest_int("width", 1, 8) in range(1, 9)
        return objective(trial)

    study = optuna.create_study(sampler=sampler(spend=1, others=optuna.samplers.TPESampler(seed=0)))
    study.optimize(with_width, n_trials=3)
    assert all("width" in trial.params for trial in study.trials)


def test_wrong_uses_are_refused_with_a_cure() -> None:
    with pytest.raises(TypeError, match="`folder` must be left out: Optuna's study keeps"):
        sampler(folder="tuning")
    with pytest.raises(TypeError, match="Tuner has no `learning_rate`"):
        sampler(learning_rate=(0.1, 1))
    study = optuna.create_study(sampler=sampler(), direction="maximize")
    with pytest.raises(ValueError, match="The study must minimize an error"):
        study.ask()
    trial = optuna.create_study(sampler=sampler()).ask()
    with pytest.raises(ValueError, match=r"`lr` must be suggested from a range .* 0.000125 to"):
        trial.suggest_float("lr", 0.5, 1, log=True)


SAMPLERS = ["TPESampler", "CmaEsSampler", "RandomSampler", "QMCSampler"]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_of_optunas_chooses_in_place_of_ours_and_the_tuner_recommends(name: str) -> None:
    if name == "CmaEsSampler":
        pytest.importorskip("cmaes", reason="cmaes is not installed: `make peers` installs it")
    makes = getattr(optuna.samplers, name)
    trials, tuner = by_hand(spend=1, shortest=16, chooser=OptunaChooser(makes, seed=3))
    again, _ = by_hand(spend=1, shortest=16, chooser=OptunaChooser(makes, seed=3))
    other, _ = by_hand(spend=1, shortest=16, chooser=OptunaChooser(makes, seed=4))
    ours, _ = by_hand(spend=1, shortest=16)
    assert trials == again
    assert trials not in (other, ours)
    assert [trial.epochs for trial in trials] == [16] * 4
    assert tuner.spent == 1
    assert excess(tuner) < 0.5


def test_a_tuner_with_another_sampler_goes_on_after_a_kill(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"spend": 2, "chooser": OptunaChooser(optuna.samplers.TPESampler)}
    whole, _ = by_hand(**arguments)
    resumed = []
    for _ in whole:
        tuner = Tuner(64, updates_per_epoch=UPDATES, folder=tmp_path, **arguments)
        trial = tuner.ask()
        assert trial is not None
        tuner.tell(trial, error=LOOP(trial))
        resumed.append(trial)
    assert resumed == whole


def test_the_command_takes_a_sampler_of_optunas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tune", *WORDS, *HERE, "--spend", "2", "--json"]
    found = []
    for name, more in (("ours", []), ("tpe", ["--sampler", "optuna.samplers:TPESampler"])):
        assert main([*words, *more, "--out", str(tmp_path / name)]) == 0
        found.append(json.loads(capsys.readouterr().out))
        assert len(read(tmp_path / name)) == found[-1]["trials"]
    assert all(one["spent"] <= 2 for one in found)
    settings = [
        {(run.config.lr, run.config.normalized_decay) for run in read(tmp_path / name)}
        for name in ("ours", "tpe")
    ]
    assert settings[0] != settings[1]
    assert main([*words, "--sampler", "optuna.samplers:TPE", "--out", str(tmp_path / "x")]) == 2
    assert "'TPE' is not in it" in capsys.readouterr().err
    assert main([*words, "--sampler", "optuna.samplers:GridSampler", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "A sampler must need nothing but a seed, got GridSampler: " in said
    assert "Write a function that takes seed and returns the sampler" in said


def test_the_program_on_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "tuning.md").read_text("utf-8")
    *_, program = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["sampler"].recommendation(names["study"]).learned > 2
