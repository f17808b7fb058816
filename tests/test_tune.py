"""`weightdecay tune`: a tuner whose trials are real trainings, kept as a sweep."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toys import toy
from weightdecay.cli import main
from weightdecay.records import RunConfig, read
from weightdecay.runs import train
from weightdecay.sweeps import InProcess, Store, sweep
from weightdecay.sweeps.store import Writer
from weightdecay.tasks import split
from weightdecay.tune import Recommendation, Tuner, Tuning, space

pytestmark = pytest.mark.cpu("a killed run ends with the same bits on a CPU")
SMALL: dict[str, Any] = {"epochs": 8, "batch": 10, "data": 240, "validation": 60, "shortest": 1}
RATES = (0.004, 0.5)
WORDS = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
WORDS += ["--lr", *map(str, RATES), "--task", "tests.toys:toy", "--model", "linear"]
HERE = ["--on", "here", "--device", "cpu"]
Output = pytest.CaptureFixture[str]


def tuning(folder: Path, **arguments: Any) -> Tuning:
    return Tuning(folder, **{"task": toy, "model": "linear", "lr": RATES, **SMALL, **arguments})


def trained(folder: Path, **arguments: Any) -> Recommendation:
    return tuning(folder, **arguments).run(engine=InProcess("cpu"), progress=False)


def spent(folder: Path) -> float:
    """Return what a folder's runs cost, in long runs, by their own records."""
    return sum(run.last.epoch for run in read(folder)) / 8


def test_the_command_and_a_loop_of_ones_own_make_the_same_recommendation(
    tmp_path: Path, capsys: Output
) -> None:
    assert main(["tune", *WORDS, *HERE, "--spend", "4", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    classes = split(toy(), validation=60, data=240).choices
    assert classes is not None
    guess = 1 - classes.targets.bincount().max().item() / 60  # the most frequent class of all
    tuner = Tuner(8, updates_per_epoch=24, spend=4, shortest=1, lr=RATES, guess=guess)
    for trial in tuner:
        config = RunConfig(
            task=toy,  # type: ignore[arg-type]
            model="linear",
            algorithm="adamw",
            lr=trial.lr,
            weight_decay=trial.weight_decay,
            epochs=trial.epochs,
            batch=10,
            data=240,
            validation=60,
            seed=trial.seed,
        )
        [run] = train([config], progress=False)
        assert run.last.validation_error is not None
        tuner.tell(trial, error=run.last.validation_error)
    own = tuner.recommendation()
    assert own.learned > 2
    for name in ("lr", "weight_decay", "near", "loss", "gain", "spent", "trials", "learned"):
        assert found[name] == pytest.approx(getattr(own, name)), name


@pytest.mark.parametrize("spend", [0.2, 0.8, 1.0, 3.3])
@pytest.mark.parametrize("at_once", [1, 3])
def test_no_more_is_trained_than_the_spend_pays_for_and_no_less_than_half_of_it(
    spend: float, at_once: int, tmp_path: Path
) -> None:
    found = trained(tmp_path, spend=spend, at_once=at_once)
    assert spent(tmp_path) == pytest.approx(found.spent)
    assert spend / 2 <= spent(tmp_path) <= spend
    assert tuning(tmp_path, spend=spend, at_once=at_once).plan() == []


def test_spending_more_goes_on_from_what_is_there_and_spending_less_trains_nothing(
    tmp_path: Path,
) -> None:
    first = trained(tmp_path, spend=1)
    before = {run.config.identity for run in read(tmp_path)}
    second = trained(tmp_path, spend=2)
    after = {run.config.identity for run in read(tmp_path)}
    assert before < after
    assert 1 < second.spent <= 2
    assert second.trials == len(after) > first.trials
    assert trained(tmp_path, spend=0.5) == second
    assert {run.config.identity for run in read(tmp_path)} == after


def test_a_begun_round_is_not_finished_where_a_lower_spend_does_not_pay_for_it(
    tmp_path: Path,
) -> None:
    begun = tuning(tmp_path, spend=4, at_once=4, shortest=8).plan()
    assert [config.epochs for config in begun] == [8] * 4
    Store(tmp_path).ask_for({config.identity: config for config in begun})
    found = trained(tmp_path, spend=2.5, shortest=8)
    assert spent(tmp_path) == found.spent <= 2.5
    made = {run.config for run in read(tmp_path)}
    assert [config in made for config in begun] == [True, True, False, False]


class StopError(Exception):
    """The death of a process, for a test."""


@pytest.mark.parametrize(("at_once", "spend"), [(1, 2), (3, 6)])
def test_a_tuning_that_is_killed_after_any_run_ends_as_if_it_had_not_been(
    at_once: int, spend: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tmp_path / "whole", spend=spend, at_once=at_once)
    expected = list(Store(tmp_path / "whole").results())
    results: Callable[..., None] = Writer.results

    def dying(self: Writer, runs: Any) -> None:
        first, *_ = list(runs)  # of a round that finishes together, one run is recorded
        results(self, [first])
        raise StopError

    monkeypatch.setattr(Writer, "results", dying)
    for _ in expected:
        with pytest.raises(StopError):
            trained(tmp_path / "killed", spend=spend, at_once=at_once)
    monkeypatch.undo()
    assert trained(tmp_path / "killed", spend=spend, at_once=at_once) == whole
    assert list(Store(tmp_path / "killed").results()) == expected


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_the_command_killed_again_and_again_ends_with_the_same_bytes(
    sign: signal.Signals, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "weightdecay", "tune", "--task", "mnist1d", "--epochs", "32"]
    command += ["--data", "1000", "--spend", "2", "--at-once", "2", "--workers", "2", "--quiet"]
    command += ["--device", "cpu", "--json", "--out"]
    whole = subprocess.run([*command, str(tmp_path / "whole")], capture_output=True, check=True)
    for pause in (2.5, 4.0, 5.5):
        process = subprocess.Popen(
            [*command, str(tmp_path / "killed")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        time.sleep(pause)
        os.kill(process.pid, sign)
        process.communicate(timeout=60)
    last = subprocess.run([*command, str(tmp_path / "killed")], capture_output=True, check=True)
    one, other = (json.loads(done.stdout) for done in (whole, last))
    assert {**one, "folder": ""} == {**other, "folder": ""}
    assert [*Store(tmp_path / "killed").results()] == [*Store(tmp_path / "whole").results()]


def test_the_folder_is_one_that_status_landscape_and_report_read(
    tmp_path: Path, capsys: Output
) -> None:
    folder = str(tmp_path / "tuned")
    assert main(["tune", *WORDS, *HERE, "--spend", "4", "--out", folder]) == 0
    said = capsys.readouterr()
    assert "For 8 epochs, use lr " in said.out
    assert "with probability " in said.out
    assert "One more run, of " in said.out
    assert "these runs cannot tell" in said.out or "For other epochs, keep " in said.out
    assert "The long run: weightdecay run --task tests.toys:toy --model linear" in said.out
    first, *_, last = re.findall(r"^\d+ runs? done, .*$", said.err, re.MULTILINE)
    assert first == "0 runs done, 0.00 of 4 long runs spent. Next: 1 run of 8 epochs."
    assert re.fullmatch(
        r"\d runs done, [23]\.\d\d of 4 long runs spent. Next: 1 run of . epochs.", last
    )
    assert main(["status", folder]) == 0
    count = len(read(folder))
    assert f"{count} planned · 0 running · {count} done" in capsys.readouterr().out
    assert main(["landscape", folder]) == 0
    assert "use    α = " in capsys.readouterr().out
    assert main(["report", folder, "--out", str(tmp_path / "page.html")]) == 0


@pytest.mark.parametrize("algorithm", ["adamw,betas=0.9/0.98", "sgd", "adam"])
def test_status_and_landscape_recommend_what_the_command_did(
    algorithm: str, tmp_path: Path, capsys: Output
) -> None:
    folder, page = str(tmp_path / "tuned"), str(tmp_path / "page.html")
    words = ["tune", *WORDS, *HERE, "--algorithm", algorithm, "--spend", "2", "--out", folder]
    assert main([*words, "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    del expected["folder"], expected["failed"], expected["run"]
    assert expected["learned"] > 0
    for command in ("status", "landscape"):
        assert main([command, folder, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["tuner"] == {"spend": 2.0, **expected}, command
    assert main(["report", folder, "--out", page, "--quiet"]) == 0
    said = f"{expected['spent']:.2f} of 2 long runs spent. The tuner recommends: For 8 epochs"
    assert said in Path(page).read_text("utf-8")


def test_a_run_that_diverged_is_lost_for_status_too(tmp_path: Path, capsys: Output) -> None:
    trained(tmp_path, algorithm="sgdw", model="mlp", lr=(1e32, 1e36), spend=1)
    assert main(["status", str(tmp_path)]) == 0
    assert "  Every trial diverged. No run supports this setting." in capsys.readouterr().out


def test_a_tuning_that_goes_on_says_what_is_done_and_what_comes(
    tmp_path: Path, capsys: Output
) -> None:
    """Of a round that was begun, what is done is not yet to come, and what is to come not spent."""
    first, *others = tuning(tmp_path, spend=3, at_once=3).plan()
    Store(tmp_path).ask_for({one.identity: one for one in (first, *others)})
    sweep([first], folder=tmp_path, task=toy, engine=InProcess("cpu"), progress=False)
    Store(tmp_path).ask_for({one.identity: one for one in (first, *others)})
    words = ["tune", *WORDS, *HERE, "--spend", "3", "--at-once", "3", "--out", str(tmp_path)]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "1 run done, 1.00 of 3 long runs spent. Next: 2 runs of 8 epochs." in said


def test_quiet_prints_the_recommendation_alone(tmp_path: Path, capsys: Output) -> None:
    assert main(["tune", *WORDS, *HERE, "--quiet", "--out", str(tmp_path / "tuned")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("For 8 epochs, use lr ")
    assert "weightdecay run" not in said.out
    assert not said.err


def test_the_recommended_long_run_is_a_run_of_the_tuner(tmp_path: Path) -> None:
    made = tuning(tmp_path, spend=1)
    found = made.run(engine=InProcess("cpu"), progress=False)
    config = made.long_run()
    assert (config.lr, config.epochs) == (found.lr, 8)
    cell = made.cells.cell(replace(config, evaluate_every=0))
    assert cell is not None
    assert made.cells.config(cell) == replace(config, evaluate_every=0)  # to the last digit
    assert made.cells.space.stated(cell.setting, 8) == pytest.approx(found.weight_decay)


@pytest.mark.parametrize(
    ("algorithm", "way"), [("sgdw", "normalized_decay"), ("sgd", "l2"), ("adam", "l2")]
)
def test_each_algorithm_is_trained_with_its_own_kind_of_decay(
    algorithm: str, way: str, tmp_path: Path
) -> None:
    found = trained(tmp_path, algorithm=algorithm, lr=None, spend=2)
    assert found.trials == len(read(tmp_path)) > 1
    for run in read(tmp_path):
        assert getattr(run.config, way) is not None


def test_runs_that_diverge_count_as_lost_whatever_error_they_had(tmp_path: Path) -> None:
    found = trained(tmp_path, algorithm="sgdw", model="mlp", lr=(1e32, 1e36), spend=1)
    assert all(run.diverged for run in read(tmp_path))
    assert "Every trial diverged. No run supports this setting." in str(found)


MOODY = '''
"""A task whose model fails while there is a file `rain`."""

from dataclasses import replace
from pathlib import Path

from tests.toys import toy


def task():
    whole = toy()

    def moody(generator):
        if Path("rain").exists():
            raise ArithmeticError("it rains")
        return whole.models["linear"](generator)

    return replace(whole, models={"moody": moody})
'''


def test_a_task_that_fails_is_said_with_the_cure_and_goes_on_after_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("moodily.py").write_text(MOODY)
    Path("rain").touch()
    words = ["tune", *WORDS[:-4], "--task", "moodily:task", *HERE, "--out", "tuned"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "The first 3 trials could not be trained" in said
    assert "it rains" in said
    assert "Then run `weightdecay retry tuned`, and tune again." in said
    Path("rain").unlink()
    assert main(["retry", "tuned", *HERE]) == 0
    capsys.readouterr()
    assert main(words) == 0
    assert "For 8 epochs, use lr " in capsys.readouterr().out


def test_one_run_that_fails_is_counted_apart_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    once = MOODY.replace("raise Arith", 'Path("rain").unlink()\n            raise Arith')
    Path("briefly.py").write_text(once)
    Path("rain").touch()
    words = ["tune", *WORDS[:-4], "--task", "briefly:task", *HERE, "--spend", "2", "--out", "tuned"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert "it rains" in said.err
    assert "1 run could not be trained: `weightdecay status tuned` says why." in said.out
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["failed"], found["trials"]) == (1, len(read("tuned")))
    assert 1 < found["spent"] <= 2


def test_a_stopped_tuning_is_said_to_continue_by_the_same_command(
    tmp_path: Path, capsys: Output
) -> None:
    made = tuning(tmp_path, spend=1)
    plan = made.plan()
    Store(tmp_path).ask_for({one.identity: one for one in plan})
    assert main(["status", str(tmp_path)]) == 0
    assert "repeat the command that started it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--spend", "0.01"], "--spend must pay for one of the shortest runs, of 1 of 8 epochs"),
        (["--spend", "0"], "--spend must be finite and above 0, got 0.0"),
        (["--at-once", "0"], "--at-once must be at least 1, got 0"),
        (["--algorithm", "lion"], "--algorithm must be one of 'adamw', 'sgdw', 'adam', 'sgd'"),
        (["--lr", "0.1", "0.01"], "--lr must increase"),
        (["--shortest", "9"], "--shortest must be at most the 8 epochs, got 9"),
        (["--task", "mnist2d"], "Did you mean `mnist1d`"),
        (["--model", "linaer"], "Did you mean `linear`"),
        (["--batch", "241"], "--data must be at least 241, got 240. A batch has 241 examples"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(
    words: list[str], message: str, tmp_path: Path, capsys: Output
) -> None:
    assert main(["tune", *WORDS, *HERE, *words, "--out", str(tmp_path / "new")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_choosing_on_the_test_examples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a tuner that chose on the test examples would be judged"):
        tuning(tmp_path, validation="test")


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["--algorithm", "sgd"], ["--algorithm was adamw and is sgd"]),
        (["--epochs", "10"], ["--epochs was 8 and is 10"]),
        (
            ["--epochs", "10", "--shortest", "2"],
            ["--epochs was 8 and is 10", "--shortest was 1 an"],
        ),
        (["--batch", "20", "--seed", "3"], ["--batch was 10 and is 20", "--seed was 0 and is 3"]),
        (["--lr", "0.004", "0.25"], ["--lr was 0.004 to 0.5 and is 0.004 to 0.25"]),
        (["--validation", "50"], ["--validation was 60 and is 50"]),
    ],
)
def test_another_tuning_may_not_continue_in_a_folder(
    words: list[str], changes: list[str], tmp_path: Path, capsys: Output
) -> None:
    """And what is said to have changed is what was given, with its old and its new value."""
    own = ["tune", *WORDS, *HERE, "--normalized-decay", "0.01", "1", "--out", str(tmp_path)]
    assert main([*own, "--quiet", "--spend", "0.125"]) == 0
    capsys.readouterr()
    assert main([*own, *words]) == 2
    said = capsys.readouterr().err
    assert f"A tuner must continue as it began, but in {tmp_path} --" in said
    assert said.count(" was ") == len(changes)
    assert all(change in said for change in changes)


def test_a_loop_and_the_command_may_not_continue_in_each_others_folders(tmp_path: Path) -> None:
    """Even if they are told the same of task and settings."""
    same: dict[str, Any] = {"lr": RATES, "shortest": 1, "task": "tests.toys:toy"}
    tuning(tmp_path / "command")
    changed = r"by `weightdecay tune` and are now by a loop of your own\. Pass .* another folder"
    with pytest.raises(ValueError, match=changed):
        Tuner(8, updates_per_epoch=24, folder=tmp_path / "command", **same)
    Tuner(8, updates_per_epoch=24, folder=tmp_path / "loop", **same)
    with pytest.raises(
        ValueError, match=r"by a loop of your own and are now by `weightdecay tune`"
    ):
        tuning(tmp_path / "loop")


def test_a_folder_of_a_version_with_more_digits_is_continued_and_nothing_is_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean: Callable[..., tuple[float, ...]] = space._axis

    def as_before(*arguments: Any, **named: Any) -> tuple[float, ...]:
        axis = clean(*arguments, **named)
        return tuple(float(value) for value in np.geomspace(axis[0], axis[-1], len(axis)))

    monkeypatch.setattr(space, "_axis", as_before)
    trained(tmp_path, spend=1)
    begun = tuning(tmp_path, spend=2).plan()
    Store(tmp_path).ask_for({config.identity: config for config in begun})
    before = {run.config for run in read(tmp_path)}
    monkeypatch.undo()
    assert not {config.lr for config in begun} <= {*tuning(tmp_path).cells.space.lrs}
    found = trained(tmp_path, spend=2)
    after = {run.config for run in read(tmp_path)}
    assert {*before, *begun} <= after
    assert found.trials == len(after)
    assert spent(tmp_path) <= 2


def test_the_folder_of_a_sweep_is_refused_and_stays_as_it_was(
    tmp_path: Path, capsys: Output
) -> None:
    names: dict[str, Any] = {"task": "tests.toys:toy", "model": "linear", "algorithm": "adamw"}
    config = RunConfig(**names, lr=0.1, weight_decay=0.001, epochs=1, batch=10, data=240)
    sweep([config], folder=tmp_path, engine=InProcess("cpu"), progress=False)
    plan = Store(tmp_path).plan()
    (tmp_path / "logged" / "log").mkdir(parents=True)
    (tmp_path / "planned").mkdir()
    (tmp_path / "planned" / "plan.jsonl").touch()
    capsys.readouterr()
    for folder, found in (
        (tmp_path, "plan.jsonl and log"),
        (tmp_path / "logged", "log"),
        (tmp_path / "planned", "plan.jsonl"),
    ):
        assert main(["tune", *WORDS, *HERE, "--out", str(folder)]) == 2
        said = capsys.readouterr().err
        assert f"must have a folder of its own, but {folder} has {found} and no tuner.json" in said
        assert "Use another folder." in said
        assert not (folder / "tuner.json").exists()
    assert Store(tmp_path).plan() == plan


def test_a_best_at_an_end_of_the_range_names_the_option_to_widen(
    tmp_path: Path, capsys: Output
) -> None:
    words = [*WORDS, *HERE, "--lr", "0.0005", "0.002", "--spend", "4", "--out", str(tmp_path)]
    assert main(["tune", *words]) == 0
    assert "--lr above 0.002" in capsys.readouterr().out


def test_a_metric_below_zero_is_refused_and_what_was_trained_is_kept(tmp_path: Path) -> None:
    below = replace(toy(), name="below", metric=lambda outputs, _: 0 * outputs[:, 0] - 1.0)
    with pytest.raises(ValueError, match="`error` must be finite and at least 0, got -1"):
        trained(tmp_path, task=below, spend=1)
    assert len(read(tmp_path)) == 1


def test_a_task_whose_error_never_changes_is_said_to_have_taught_nothing(tmp_path: Path) -> None:
    constant = replace(toy(), name="constant", metric=lambda outputs, _: 0 * outputs[:, 0] + 0.5)
    found = trained(tmp_path, task=constant, spend=3)
    assert "Nothing was learned" in str(found)
    assert math.isfinite(found.loss)


def test_the_programs_on_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "tuning.md").read_text("utf-8")
    command, loop, _ = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    Path("command.py").write_text(command)
    done = subprocess.run(
        [sys.executable, "command.py"], capture_output=True, text=True, check=True
    )
    assert "For 48 epochs, use lr " in done.stdout
    assert "Nothing was learned" not in done.stdout
    assert "RunConfig(task='mnist1d', model='mlp', algorithm='adamw', lr=" in done.stdout
    names: dict[str, Any] = {}
    exec(loop, names)
    assert names["tuner"].recommendation().learned > 2
