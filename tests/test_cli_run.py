"""`weightdecay run`, as a person types it: what it prints, what it keeps, how it is stopped."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from tests.screen import Screen, pretend_a_terminal
from weightdecay import records
from weightdecay.cli import main, progress
from weightdecay.cli.arguments import option
from weightdecay.progress import duration
from weightdecay.records import Run
from weightdecay.runs import pack
from weightdecay.runs.checkpoints import RunFiles
from weightdecay.sweeps import Store, sweep_events
from weightdecay.sweeps.inprocess import InProcess

pytestmark = pytest.mark.cpu(
    "its task counts and breaks off updates in Python, which a CUDA graph replays without"
)
COMMAND = [sys.executable, "-m", "weightdecay"]
CLOUDS = '''
"""Two clouds of points. Training can be slowed down, and broken off at an update."""

import os
import time

import torch
from torch import nn

from weightdecay.tasks import Examples, Task

updates, stop_at, error = 0, None, KeyboardInterrupt


def prepare(batch, words):
    global updates
    if words is not None:
        updates += 1
        time.sleep(float(os.environ.get("CLOUDS_SLEEP", 0)))
        if updates == stop_at:
            raise error("clouds")
    return batch


def linear(generator):
    model = nn.Linear(2, 2)
    with torch.no_grad():
        model.weight.normal_(generator=generator)
        model.bias.zero_()
    return model


def task():
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(2, (100,), generator=generator)
    inputs = torch.randn(100, 2, generator=generator) + targets[:, None]
    both = Examples(inputs, targets)
    models = {"linear": linear, "other": linear}
    return Task("clouds", both[:80], both[80:], 2, models, prepare)
'''
# 80 points, less a tenth held out, are 9 updates of 8 points in an epoch. A run that begins makes 6
# more, on twins, to find out whether its model can be stacked.
TRIALS = 6
RUN = ["run", "--task", "clouds:task", "--lr", "0.1", "--normalized-decay", "0.05"]
SHORT = [*RUN, "--batch", "8", "--epochs", "4"]
RESTARTS = ["--schedule", "restarts,first=1,factor=1"]
Output = pytest.CaptureFixture[str]


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The task in the current directory; what it does can be set."""
    (tmp_path / "clouds.py").write_text(CLOUDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield import_module("clouds")
    del sys.modules["clouds"]


def the_run(folder: str | Path = "runs") -> Path:
    [run] = Path(folder).iterdir()
    return run


def recorded(folder: str | Path = "runs") -> Run:
    [run] = Store(the_run(folder)).runs()
    return run


def results(folder: str | Path = "runs") -> list[str]:
    return list(Store(the_run(folder)).results())


def test_a_run_ends_with_its_table_and_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--lr", "2^-9", "--normalized-decay", "0.05", "--epochs", "2"]) == 0
    head, *rows, identity, solution = capsys.readouterr().out.splitlines()
    assert head.split("  ")[:2] == ["epoch", "train loss"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    first, last = (float(row.split()[4].rstrip("%")) for row in rows)
    assert last < first < 90
    run = the_run()
    assert identity == f"Run {run.name} is in {run}"
    path = run / "solutions" / run.name / "solution-0000.pt"
    assert solution.split(": ")[1] == str(path)
    assert path.is_file()


def test_a_run_leaves_a_store_of_one_cell(clouds: Any) -> None:
    assert main(SHORT) == 0
    run, name = recorded(), the_run().name
    assert run.config.identity == name
    assert (run.config.model, run.config.schedule, run.config.seed) == ("linear", "cosine", 0)
    assert [record.epoch for record in run.records] == [1, 2, 3, 4]
    store = Store(the_run())
    assert list(store.plan()) == [name]
    seconds, epochs = store.refresh().costs[name]
    assert seconds > 0
    assert epochs == 4
    left = {path.name for path in the_run().iterdir()}
    assert left == {"plan.jsonl", "log", "claims", "checkpoints", "solutions"}
    assert not list((the_run() / "checkpoints").iterdir())


def test_a_run_is_asked_about_exported_and_merged_like_a_sweep(clouds: Any, capsys: Output) -> None:
    for seed in "12":
        assert main([*SHORT, "--seed", seed]) == 0
    capsys.readouterr()
    folders = sorted(map(str, Path("runs").iterdir()))
    assert main(["status", folders[0]]) == 0
    assert capsys.readouterr().out.startswith("1 planned · 0 running · 1 done · 0 failed")
    assert main(["export", folders[0], "one.csv"]) == 0
    assert main(["merge", "both", *folders]) == 0
    merged = Store("both")
    assert len(merged.runs()) == 2
    assert merged.runs() == [run for folder in folders for run in Store(folder).runs()]
    assert records.read("one.csv").runs == Store(folders[0]).runs()


def test_a_run_and_a_sweep_of_one_configuration_leave_the_same_bytes(
    clouds: Any, capsys: Output
) -> None:
    """Or merging them would tell of a conflict."""
    assert main(SHORT) == 0
    config = recorded().config
    list(sweep_events([config, replace(config, seed=1)], folder="swept", engine=InProcess("cpu")))
    [alone] = results()
    assert alone in list(Store("swept").results())
    assert main(["merge", "swept", str(the_run())]) == 0
    assert "with different results" not in capsys.readouterr().out


def test_a_run_that_a_sweep_is_asked_to_finish_goes_on_from_its_checkpoint(
    clouds: Any, capsys: Output
) -> None:
    command = [*SHORT, *RESTARTS]
    clouds.stop_at = TRIALS + 15
    assert main(command) == 130
    capsys.readouterr()
    assert main(["status", str(the_run())]) == 0
    assert capsys.readouterr().out.startswith("1 planned · 0 running · 0 done")
    clouds.updates, clouds.stop_at = 0, None
    assert main(["retry", str(the_run()), "--on", "here", "--device", "cpu"]) == 0
    assert clouds.updates == 4 * 9 - 9
    assert main([*command, "--out", "whole"]) == 0
    assert results() == results("whole")


def test_every_option_is_heard(clouds: Any) -> None:
    said = {
        "model": "other", "algorithm": "sgd,momentum=0.5", "lr": 0.25, "l2": 0.001,
        "schedule": "drops,at=1", "epochs": 2, "batch": 4, "data": 40, "validation": "test",
        "seed": 7, "precision": "bfloat16", "evaluate_every": 2,
    }  # fmt: skip
    typed = [word for name, value in said.items() for word in (option(name), str(value))]
    typed += ["--keep-missed", "--out", "elsewhere/deep"]
    assert main(["run", "--task", "clouds:task", *typed]) == 0
    nothing = {"weight_decay": None, "normalized_decay": None}
    assert recorded("elsewhere/deep").config.as_dict() == {
        "task": "clouds:task",
        **said,
        **nothing,
        "keep_missed": True,
    }


def test_a_finished_run_trains_nothing_and_says_the_same(clouds: Any, capsys: Output) -> None:
    assert main(SHORT) == 0
    said, trained = capsys.readouterr(), clouds.updates
    before = results()
    logs = sorted(the_run().glob("log/*"))
    assert main(SHORT) == 0
    assert capsys.readouterr() == (
        said.out,
        "This run was already trained: these are its records.\n",
    )
    assert clouds.updates == trained == TRIALS + 4 * 9
    assert (results(), sorted(the_run().glob("log/*"))) == (before, logs)


def test_a_fresh_start_forgets_what_is_kept(clouds: Any, capsys: Output) -> None:
    assert main(SHORT) == 0
    said, kept = capsys.readouterr(), results()
    assert main([*SHORT, "--fresh"]) == 0
    assert clouds.updates == 2 * (TRIALS + 4 * 9)
    assert capsys.readouterr() == said
    assert results() == kept
    assert [path.name for path in the_run().glob("log/*")] == ["000001.jsonl"]


def test_a_fresh_start_deletes_no_results_of_other_runs(clouds: Any, capsys: Output) -> None:
    assert main(SHORT) == 0
    first = the_run()
    assert main([*SHORT, "--seed", "1", "--out", "other"]) == 0
    assert main(["merge", str(first), str(the_run("other"))]) == 0
    capsys.readouterr()
    assert main([*SHORT, "--fresh"]) == 2
    assert "which holds results of 1 other runs" in capsys.readouterr().err
    assert len(Store(first).runs()) == 2


@pytest.mark.parametrize("schedule", [[], RESTARTS])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_stopped_at_any_moment_leaves_the_same_bytes(
    seed: int, schedule: list[str], clouds: Any, capsys: Output
) -> None:
    command = [*SHORT, *schedule]
    assert main([*command, "--out", "whole"]) == 0
    whole = capsys.readouterr().out
    draw = random.Random(seed)
    for _ in range(3):
        clouds.updates, clouds.stop_at = 0, draw.randint(1, 9 * 4)
        status = main(command)
        assert status == (130 if clouds.updates == clouds.stop_at else 0)
    clouds.stop_at = None
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().out == whole.replace("whole", "runs")
    assert results() == results("whole")


CONTINUE = "to continue from the last checkpoint."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Stopped before the first checkpoint. Run the same command again to start over."),
        (RESTARTS, f"Stopped. Run the same command again {CONTINUE}"),
        ([*RESTARTS, "--fresh"], f"Stopped. Run the same command again without --fresh {CONTINUE}"),
    ],
)
def test_a_stopped_run_says_how_to_go_on(
    options: list[str], said: str, clouds: Any, capsys: Output
) -> None:
    clouds.stop_at = TRIALS + 15
    assert main([*SHORT, *options]) == 130
    assert capsys.readouterr() == ("", f"{said}\n")


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_loses_nothing(clouds: Any, capsys: Output) -> None:
    command = [*SHORT, *RESTARTS]
    slow = {**os.environ, "CLOUDS_SLEEP": "0.05"}
    with subprocess.Popen([*COMMAND, *command], env=slow, stderr=subprocess.PIPE, text=True) as run:
        deadline = time.monotonic() + 60
        while (
            not list(Path().glob("runs/*/checkpoints/*/checkpoint-*.pt"))
            and time.monotonic() < deadline
        ):
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
    assert run.returncode == 130
    assert said.startswith(
        "Stopped. Run the same command again to continue from the last checkpoint"
    )
    assert said.count("\n") == 1
    assert main(command) == 0
    assert 0 < clouds.updates < 4 * 9
    assert capsys.readouterr().err.startswith("Resumed at update ")
    assert main([*command, "--out", "whole"]) == 0
    assert results() == results("whole")


@pytest.mark.slow
def test_processes_of_torchrun_speak_with_one_voice(clouds: Any, tmp_path: Path) -> None:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    once = {**os.environ, "OMP_NUM_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, *launch, *COMMAND[1:], *SHORT, "--ensemble"],
        check=True, capture_output=True, text=True, env=once,
    )  # fmt: skip
    assert said.stdout.count("epoch  train loss") == 1
    assert said.stdout.count("solutions averaged") == 1
    assert len(recorded().records) == 4


def test_a_diverged_run_is_a_result(clouds: Any, capsys: Output) -> None:
    run = ["run", "--task", "clouds:task", "--batch", "8", "--algorithm", "sgdw"]
    assert main([*run, "--lr", "1e38", "--weight-decay", "0", "--ensemble"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-1].startswith("It diverged in epoch 1.")
    assert said.err == ""
    assert recorded().diverged


def test_a_decay_that_looks_like_torchs_is_warned_about(clouds: Any, capsys: Output) -> None:
    run = ["run", "--task", "clouds:task", "--epochs", "1", "--lr", "0.001", "--weight-decay"]
    assert main([*run, "0.05"]) == 0
    assert "pass weight_decay = lr * 0.05 = 5e-05" in capsys.readouterr().err
    assert main([*run, "0.0005"]) == 0
    assert "torch's" not in capsys.readouterr().err


def test_a_long_run_is_told_in_twelve_rows(clouds: Any, capsys: Output) -> None:
    assert main([*RUN, "--batch", "36", "--epochs", "100"]) == 0
    *table, left_out, _, _ = capsys.readouterr().out.splitlines()
    export = f"weightdecay export {the_run()} run.csv"
    assert left_out == f"88 epochs are not shown. `{export}` writes all of them."
    epochs = [int(row.split()[0]) for row in table[1:]]
    assert (len(epochs), epochs[0], epochs[-1]) == (12, 1, 100)
    assert {b - a for a, b in pairwise(epochs)} == {9}


def test_a_run_as_json_is_what_its_store_has(clouds: Any, capsys: Output) -> None:
    assert main([*SHORT, *RESTARTS, "--ensemble", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    run = recorded()
    assert (told["run"], told["folder"]) == (the_run().name, str(the_run()))
    assert records.RunConfig.from_dict(told["config"]) == run.config
    assert tuple(records.Record(**one) for one in told["records"]) == run.records
    assert not told["diverged"]
    assert all(Path(path).is_file() for path in told["solutions"])
    assert [one["members"] for one in told["ensembles"]] == [1, 2, 3, 4]
    assert told["ensembles"][0]["error"] == run.last.test_error


def test_a_diverged_run_as_json_has_no_solutions(clouds: Any, capsys: Output) -> None:
    run = ["run", "--task", "clouds:task", "--batch", "8", "--algorithm", "sgdw", "--json"]
    assert main([*run, "--lr", "1e38", "--weight-decay", "0", "--ensemble"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["diverged"], told["solutions"], told["ensembles"]) == (True, [], [])


def test_a_quiet_run_prints_its_results_alone(
    clouds: Any, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(pack, "PROGRESS_EVERY", 0.0)
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.0)
    assert main([*SHORT, "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert (out.split()[0], err) == ("epoch", "")
    assert main([*SHORT, "--quiet"]) == 0  # without the notice that it was trained before
    assert capsys.readouterr() == (out, "")


def test_a_quiet_run_still_says_what_could_not_be_saved(
    clouds: Any, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RunFiles, "keep_solution", full)
    assert main([*SHORT, "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("The solution of cycle 0 could not be saved: [Errno 28] No space left")
    assert "Its solutions were deleted, or not saved." in out


def test_an_ensemble_is_asked_of_every_cycle(clouds: Any, capsys: Output) -> None:
    assert main([*SHORT, *RESTARTS, "--ensemble"]) == 0
    *_, solution, head, one, two, three, four = capsys.readouterr().out.splitlines()
    assert solution.endswith("solution-0003.pt")
    assert head.startswith("solutions averaged  test error")
    assert [row.split()[0] for row in (one, two, three, four)] == ["1", "2", "3", "4"]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have every bit of progress drawn, on a terminal of some columns or on none."""

    def set_up(*, columns: int | None) -> None:
        monkeypatch.setattr(pack, "PROGRESS_EVERY", 0.0)
        monkeypatch.setattr(progress, "LOGGED_EVERY", 0.0)
        if columns is not None:
            pretend_a_terminal(monkeypatch, columns=columns)

    return set_up


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_on_a_terminal_one_line_is_drawn_over_itself(
    columns: int, clouds: Any, capsys: Output, eager: Callable[..., None]
) -> None:
    eager(columns=columns)
    clouds.stop_at = TRIALS + 15
    assert main([*SHORT, *RESTARTS]) == 130
    clouds.stop_at = None
    capsys.readouterr()
    assert main([*SHORT, *RESTARTS]) == 0
    screen = Screen(capsys.readouterr().err)
    notice = "Resumed at update 9 of 36."
    assert screen.shown == (notice,)
    drawn = [frame[-1] for frame in screen.frames if frame and frame[-1] != notice]
    assert max(map(len, drawn)) < columns - 2
    assert any("epoch 4/4"[: columns - 1] in line for line in drawn)
    assert max(map(len, screen.frames)) == 2


def test_the_bar_says_how_far_it_is(
    clouds: Any, capsys: Output, eager: Callable[..., None]
) -> None:
    eager(columns=100)
    assert main([*SHORT]) == 0
    *_, (last,) = filter(None, Screen(capsys.readouterr().err).frames)
    bar, *words = last.split("  ")
    assert set(bar) == {"━"}
    assert words[0] == "epoch 4/4"
    starts = ("epoch", "loss", "error", "η")
    assert [word.split()[0] for word in words[:4]] == list(starts)
    assert words[4].endswith(" updates/s")
    assert words[5] == "0:00 left"


def test_a_log_gets_whole_lines_and_few(
    clouds: Any, capsys: Output, eager: Callable[..., None]
) -> None:
    assert main([*SHORT]) == 0
    assert capsys.readouterr().err == ""
    eager(columns=None)
    assert main([*SHORT, "--fresh"]) == 0
    said = capsys.readouterr().err
    assert "\r" not in said
    assert said.splitlines()[-1].startswith("epoch 4/4  loss ")


@pytest.mark.parametrize(
    ("seconds", "text"), [(6.6, "0:07"), (754, "12:34"), (3723, "1:02:03"), (float("inf"), "–")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_curves_for_tensorboard_begin_again_when_a_run_is_told_again(
    clouds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []

    class SummaryWriter:
        def __init__(self, folder: str, purge_step: int) -> None:
            written.append((folder, purge_step))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def close(self) -> None:
            written.append("closed")

    stand_in = ModuleType("torch.utils.tensorboard")
    stand_in.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    command = [*SHORT, "--tensorboard", "board"]
    assert main(command) == 0
    first, *curves, last = written
    assert first == (str(Path("board", the_run().name)), 0)
    assert [step for name, _, step in curves if name == "error/test"] == [9, 18, 27, 36]
    assert last == "closed"
    assert main(command) == 0
    assert written == [first, *curves, last] * 2


def test_tensorboard_that_is_not_there_has_a_cure(
    clouds: Any, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert main([*SHORT, "--tensorboard", "board"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("weightdecay: --tensorboard needs a package that is not installed: ")
    assert said.endswith("Run `pip install tensorboard`.\n")
    assert clouds.updates == 0


def test_a_run_is_trained_by_one_process_at_a_time(clouds: Any, capsys: Output) -> None:
    assert main(SHORT) == 0
    with Store(the_run()).claiming() as claims:
        assert claims.take(the_run().name)
        for options in ([], ["--fresh"]):
            assert main([*SHORT, *options]) == 2
            assert "must be trained by one process at a time" in capsys.readouterr().err
    assert len(recorded().records) == 4


def test_an_error_in_a_users_code_keeps_its_trace(clouds: Any) -> None:
    clouds.stop_at, clouds.error = 3, ValueError
    with pytest.raises(ValueError, match="clouds"):
        main(SHORT)


WRONG = {
    "no decay": (["--lr", "1"], "stated once, as --weight-decay or --normalized-decay, got none"),
    "a coupled decay": (["--lr", "1", "--l2", "0"], "or --normalized-decay, got --l2."),
    "no coupled decay": (
        ["--lr", "1", "--algorithm", "adam", "--normalized-decay", "1"],
        "must be stated once, as --l2, got --normalized-decay.",
    ),
    "lr": (["--lr", "0", "--weight-decay", "0"], "--lr must be finite and above 0, got 0.0"),
    "decay": (["--lr", "1", "--weight-decay", "1"], "--weight-decay must be in [0, 1), got 1.0"),
    "task": ([*RUN[3:], "--task", "mnist2d"], "A task must be one of mnist1d, "),
    "task of one's own": ([*RUN[3:], "--task", "nowhere:task"], "there is no nowhere"),
    "data that is not there": ([*RUN[3:], "--task", "cifar10"], "`weightdecay data fetch cifar10`"),
    "model": ([*RUN[3:], "--model", "mpl"], "--model must be one of mlp, which mnist1d has"),
    "algorithm": ([*RUN[3:], "--algorithm", "adamx"], "--algorithm must be one of sgdw, adamw, "),
    "algorithm's option": ([*RUN[3:], "--algorithm", "adamw,betas=2/3"], "`betas` must be in "),
    "schedule": ([*RUN[3:], "--schedule", "cosin"], "--schedule must be one of 'constant', "),
    "epochs": ([*RUN[3:], "--epochs", "0"], "--epochs must be at least 1, got 0."),
    "batch": (
        [*RUN[3:], "--batch", "5000"],
        "--batch must be at most 3600, the number of training examples",
    ),
    "data": (
        [*RUN[3:], "--data", "5000"],
        "--data must be at most 3600, the training examples of mnist1d",
    ),
    "validation": ([*RUN[3:], "--validation", "0"], "--validation must be at least 1, got 0."),
    "seed": ([*RUN[3:], "--seed", "2^32"], "--seed must be below 2^32, got 4294967296."),
    "precision": ([*RUN[3:], "--precision", "half"], "--precision must be one of 'float32', "),
    "device": ([*RUN[3:], "--device", "gpu"], "--device must be one that torch has here ("),
    "threads": ([*RUN[3:], "--threads", "0"], "--threads must be at least 1, got 0."),
    "folder": ([*RUN[3:], "--out", "/dev/null/runs"], "Not a directory: '/dev/null/runs"),
}


@pytest.mark.parametrize(("options", "text"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_said_in_one_line_as_it_was_typed(
    options: list[str],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEIGHTDECAY_DATA", str(tmp_path / "cache"))
    assert main(["run", *options]) == 2
    said = capsys.readouterr()
    assert text in said.err
    assert said.err.startswith("weightdecay: ")
    assert (said.err.count("\n"), said.out) == (1, "")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "--lr"),
        (["--lr", "fast"], "--lr: 'fast' is not a number"),
        (["--lr", "1", "--epochs", "2.5"], "--epochs: '2.5' is not a whole number"),
        (["--lr", "1", "--validation", "tset"], "--validation: 'tset' is not a number"),
    ],
)
def test_what_cannot_be_read_is_refused(options: list[str], text: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", *options])
    assert stopped.value.code == 2
    assert text in capsys.readouterr().err
