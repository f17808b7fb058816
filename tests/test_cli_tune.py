"""`weightdecay tune`, as a person types it: what it spends, says, keeps, and how it continues."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from weightdecay.cli import main
from weightdecay.records import Run
from weightdecay.sweeps import Store

pytestmark = pytest.mark.cpu("sweeps are equal to the byte on a CPU")
HERE = ["--on", "here", "--device", "cpu", "--quiet"]
TOY = ["--task", "tests.toys:toy", "--model", "linear", "--batch", "30", "--epochs", "16"]
Output = pytest.CaptureFixture[str]


def tune(folder: Path, *more: str) -> int:
    return main(["tune", *TOY, "--out", str(folder), *HERE, *more])


def runs(folder: Path) -> list[Run]:
    return sorted(Store(folder).runs(), key=lambda run: run.config.identity)


def outcomes(folder: Path) -> dict[str, float | None]:
    return {run.config.identity: run.last.validation_error for run in runs(folder)}


@pytest.mark.parametrize("spend", ["1/4", "1"])
def test_all_runs_together_cost_no_more_than_the_spend(tmp_path: Path, spend: str) -> None:
    assert tune(tmp_path, "--spend", spend) == 0
    spent = sum(run.config.epochs for run in runs(tmp_path)) / 16
    assert spent == {"1/4": 0.25, "1": 1.0}[spend]
    assert len({run.config.identity for run in runs(tmp_path)}) == len(runs(tmp_path)) > 2


def test_without_its_last_results_it_asks_for_the_same_runs_again(tmp_path: Path) -> None:
    """What a kill in the middle leaves is a log that ends earlier."""
    assert tune(tmp_path / "whole") == 0
    assert tune(tmp_path / "killed") == 0
    [*_, last] = sorted((tmp_path / "killed" / "log").iterdir())
    last.unlink()
    left = len(runs(tmp_path / "killed"))
    assert 0 < left < len(runs(tmp_path / "whole"))
    assert tune(tmp_path / "killed") == 0
    assert outcomes(tmp_path / "killed") == outcomes(tmp_path / "whole")


def test_tuning_again_trains_nothing_and_says_the_same(tmp_path: Path, capsys: Output) -> None:
    assert tune(tmp_path) == 0
    said, log = capsys.readouterr().out, sorted((tmp_path / "log").iterdir())
    assert tune(tmp_path) == 0
    assert capsys.readouterr().out == said
    assert sorted((tmp_path / "log").iterdir()) == log


@pytest.mark.parametrize(
    ("algorithm", "decay"), [("adamw,betas=0.9/0.98", "normalized_decay"), ("sgd", "l2")]
)
def test_the_recommended_configuration_can_be_trained(
    tmp_path: Path, capsys: Output, algorithm: str, decay: str
) -> None:
    assert tune(tmp_path, "--algorithm", algorithm, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    config: dict[str, Any] = said["config"]
    assert config["algorithm"] == algorithm
    assert config[decay] == pytest.approx(said["weight_decay"])
    assert (said["decay"] is None) == (decay == "l2")
    assert decay == "l2" or said["decay"]["normalized"] == pytest.approx(said["weight_decay"])
    assert {run.config.algorithm for run in runs(tmp_path)} == {algorithm}
    assert all(getattr(run.config, decay) is not None for run in runs(tmp_path))


def test_the_command_for_the_long_run_is_one(tmp_path: Path, capsys: Output) -> None:
    assert main(["tune", *TOY, "--out", str(tmp_path / "tuning"), *HERE[:-1]]) == 0
    [command] = [
        line.removeprefix("To train it: weightdecay ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("To train it: ")
    ]
    assert main([*shlex.split(command), "--out", str(tmp_path / "runs"), "--quiet"]) == 0
    [trained] = [run for store in (tmp_path / "runs").iterdir() for run in Store(store).runs()]
    assert trained.config.epochs == 16


def test_the_folder_is_a_sweep_with_every_run_in_its_plan(tmp_path: Path, capsys: Output) -> None:
    assert tune(tmp_path) == 0
    assert set(Store(tmp_path).plan()) == {run.config.identity for run in runs(tmp_path)}
    capsys.readouterr()
    assert main(["landscape", str(tmp_path)]) == 0
    assert "AdamW" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--spend", "0.01"], "--spend must pay for one of the shortest runs"),
        (["--algorithm", "lion"], "--algorithm must be"),
        (["--at-once", "0"], "--at-once must be at least 1"),
        (["--lr", "1", "0.1"], "--lr must increase"),
        (["--batch", "100000"], "--batch must be at most"),
        (["--task", "nosuch"], "nosuch"),
        (["--schedule", "constant"], "--schedule must be cosine, got 'constant'"),
        (["--schedule", "restarts,first=4"], "--schedule must be cosine, got 'restarts,first=4'"),
        (
            ["--schedule", "drops,at=8", "--algorithm", "sgd"],
            "--schedule must be cosine or constant",
        ),
        (["--schedule", "cosine,warmup=1"], "a warm-up that is shorter than the shortest run"),
    ],
)
def test_what_cannot_be_tuned_is_said_with_a_cure(
    tmp_path: Path, capsys: Output, arguments: list[str], said: str
) -> None:
    assert tune(tmp_path, *arguments) == 2
    assert said in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_model_that_cannot_be_trained_ends_the_search_with_its_reason(
    tmp_path: Path, capsys: Output
) -> None:
    assert tune(tmp_path, "--model", "failing") == 2
    said = capsys.readouterr().err
    assert "could not be trained" in said
    assert "failing" in said
    assert f"weightdecay retry {tmp_path}" in said
