"""`weightdecay sweep` and its kin, as a person types them: what is said, kept, and how it stops."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.screen import Screen, pretend_a_terminal
from tests.test_sweeps import Scripted, finished
from tests.toys import config
from weightdecay.cli import main, progress, status, sweep_view
from weightdecay.cli.printing import csv_stream
from weightdecay.cli.run import command_of
from weightdecay.notation import number
from weightdecay.number_format import typed
from weightdecay.records import Notice, Progress, Run, RunConfig, or_infinite, read
from weightdecay.records.codec import Failure
from weightdecay.records.tables import imported
from weightdecay.runs import pack
from weightdecay.sweeps import Store, SweepEvent, Working, estimate, forecast, read_study
from weightdecay.sweeps.engine import Ended, Failed, Job, Message

pytestmark = pytest.mark.cpu("sweeps are equal to the byte on a CPU")
COMMAND = [sys.executable, "-m", "weightdecay"]
TOY = """
task = "tests.toys:toy"
model = "linear"
algorithm = ["adamw", "sgdw"]
epochs = 2
batch = 30
lr = "2^-8..2^-6"
normalized_decay = [0, 0.1]
seed = "0..1"
"""
MOODY = '''
"""The toy, with a model that fails while there is a file `rain`, and one that takes forever."""

import time
from dataclasses import replace
from pathlib import Path

from tests.toys import toy

from weightdecay.runs import pack


def task():
    whole = toy()

    def moody(generator):
        if Path("rain").exists():
            raise ArithmeticError("it\\nrains")
        return whole.models["linear"](generator)

    return replace(whole, models={**whole.models, "moody": moody})


def endless():
    def prepare(batch, words):
        Path("begun").touch()
        time.sleep(300)

    pack.PROGRESS_EVERY = 0.0
    return replace(toy(), prepare=prepare)
'''
HERE = ["--on", "here", "--device", "cpu"]
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder to be in, with a study and a task of one's own."""
    (tmp_path / "toy.toml").write_text(TOY)
    (tmp_path / "moody.py").write_text(MOODY)
    half = TOY.replace('["adamw", "sgdw"]', '"adamw"')
    (tmp_path / "half.toml").write_text(half)
    moody = half.replace("tests.toys:toy", "moody:task").replace('"linear"', '["linear", "moody"]')
    (tmp_path / "moody.toml").write_text(moody)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    yield
    sys.modules.pop("moody", None)


def results(folder: str) -> list[str]:
    return list(Store(folder).results())


def started(*words: str, **how: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, text=True, **how)


def wait_for(pattern: str, where: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + 60
    while not list(Path().glob(pattern)):
        assert where.poll() is None, where.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_sweep_ends_with_its_standing_and_the_best_settings(capsys: Output) -> None:
    assert main(["sweep", "toy.toml", "--out", "s", *HERE]) == 0
    standing, titles, adamw, sgdw, *_ = capsys.readouterr().out.splitlines()
    assert standing == "24 planned · 0 running · 24 done · 0 failed · 0 waiting"
    assert re.split("  +", titles)[:3] == ["algorithm", "best lr", "best decay"]
    for name, row in (("adamw", adamw), ("sgdw", sgdw)):
        runs = [run for run in Store("s").runs() if run.config.algorithm == name]
        settings: dict[tuple[float, float | None], list[Run]] = {}
        for run in runs:
            settings.setdefault((run.config.lr, run.config.normalized_decay), []).append(run)
        errors = {
            setting: sum(or_infinite(run.last.validation_error) for run in seeds) / len(seeds)
            for setting, seeds in settings.items()
        }
        said = re.split("  +", row)
        assert said[0] == name
        chosen = number(said[1]), number(said[2].removeprefix("λ_norm "))
        assert errors[chosen] == min(errors.values())
        tested = [or_infinite(run.last.test_error) for run in settings[chosen]]
        assert said[3] == f"{errors[chosen]:.2%}"
        assert said[4].startswith(f"{sum(tested) / 2:.2%} ± ")
        assert said[5] == "2"


@given(st.integers(-40, 4), st.sampled_from(["1", "0.1", "0.001"]))
def test_a_setting_is_printed_as_a_study_has_it(power: int, factor: str) -> None:
    """Typed back it is the same, to the bit."""
    assert number(typed(number(f"{factor}*2^{power}"))) == number(f"{factor}*2^{power}")


@pytest.mark.parametrize(
    ("value", "text"),
    [(2**-6, "2^-6"), (0.0, "0"), (1.0, "1"), (0.05, "0.05"), (0.001 * 2**-9, "0.001*2^-9")],
)
def test_a_power_of_two_is_printed_as_one(value: float, text: str) -> None:
    assert typed(value) == text


def test_a_best_setting_at_an_edge_is_said_to_be(capsys: Output) -> None:
    """But for the decay 0, beneath which there is none; the other is too small to matter."""
    study = TOY.replace('"2^-8..2^-6"', "[1e-9, 0.01]").replace("[0, 0.1]", "[0, 1e-12]")
    Path("edge.toml").write_text(study)
    assert main(["sweep", "edge.toml", "--out", "s", *HERE]) == 0
    *_, edge, adamw, sgdw = capsys.readouterr().out.splitlines()
    assert edge.startswith("At an edge of the grid")
    assert [adamw, sgdw] == ["  adamw: highest lr", "  sgdw: highest lr"]


def test_a_narrowed_sweep_tells_of_its_own_cells(capsys: Output) -> None:
    assert main(["sweep", "toy.toml", "--out", "s", *HERE]) == 0
    capsys.readouterr()
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    said = capsys.readouterr().out
    assert said.startswith("12 planned · 0 running · 12 done")
    assert "sgdw" not in said


def test_a_finished_sweep_says_the_same_again_and_trains_nothing(capsys: Output) -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    before, said = results("s"), capsys.readouterr().out
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    assert capsys.readouterr().out == said
    assert results("s") == before


def failures(said: str) -> list[tuple[str, str]]:
    return re.findall(
        r"^Failed(?:, \d+ cells?)?: (.*)\n  to reproduce: (.*)$", said, flags=re.MULTILINE
    )


def test_a_failure_comes_with_its_reason_and_a_command_that_shows_it(capsys: Output) -> None:
    Path("rain").touch()
    assert main(["sweep", "moody.toml", "--out", "s", *HERE]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("24 planned · 0 running · 12 done · 12 failed · 0 waiting\n")
    assert told.out.endswith("To train the failed cells again, run `weightdecay retry s`.\n")
    (reason, command), *others = failures(told.err)
    assert reason == "ArithmeticError: it rains"
    assert {said for said, _ in others} == {"same reason as before"}
    program, *words = shlex.split(command)
    assert program == "weightdecay"
    with pytest.raises(ArithmeticError, match="rains"):
        main(words)
    Path("rain").unlink()
    assert main(words) == 0
    [trained] = Path("runs").iterdir()
    failed = {c.identity for c in read_study("moody.toml") if c.model == "moody"}
    assert trained.name in failed


def test_a_reason_that_many_share_does_not_flood_the_screen(capsys: Output) -> None:
    Path("rain").touch()
    main(["sweep", "moody.toml", "--out", "s", *HERE])
    said = capsys.readouterr().err
    assert len(failures(said)) == 3
    assert said.endswith("`weightdecay status s --failures` lists all of them.\n")
    assert main(["status", "s"]) == 1
    said = capsys.readouterr().out
    assert [reason for reason, _ in failures(said)] == ["ArithmeticError: it rains"]
    assert "Failed, 12 cells: " in said
    assert main(["status", "s", "--failures"]) == 1
    assert capsys.readouterr().out.count("--model moody") == 12


def test_failed_cells_are_trained_again_when_retried(capsys: Output) -> None:
    Path("rain").touch()
    main(["sweep", "moody.toml", "--out", "s", *HERE])
    Path("rain").unlink()
    assert main(["sweep", "moody.toml", "--out", "s", *HERE]) == 1
    capsys.readouterr()
    assert main(["retry", "s", *HERE]) == 0
    assert capsys.readouterr().out.startswith("24 planned · 0 running · 24 done · 0 failed")
    assert main(["retry", "s", *HERE]) == 0
    assert capsys.readouterr().out == "Nothing to retry: every cell is done.\n"
    assert main(["sweep", "moody.toml", "--out", "whole", *HERE]) == 0
    assert results("s") == results("whole")


def test_watch_ends_when_the_sweep_is_through(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    cells = {one.identity: one for one in read_study("half.toml")}
    Store("s").ask_for(cells)
    looks: list[float] = []
    said: list[str] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        said.append(capsys.readouterr().err)
        assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
        capsys.readouterr()

    monkeypatch.setattr("weightdecay.cli.sweep.time", SimpleNamespace(sleep=sleep))
    assert main(["watch", "s", "--every", "0.5"]) == 0
    assert looks == [0.5]
    assert said == ["0 of 12 done · 0 running · time left unknown\n"]  # at once, to a log too
    told = capsys.readouterr().out
    assert told.startswith("12 planned · 0 running · 12 done · 0 failed · 0 waiting\nalgorithm ")


def test_watch_ends_with_the_json_of_status_and_is_quiet_if_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    Store("s").ask_for({one.identity: one for one in read_study("half.toml")})
    said: list[str] = []

    def sleep(seconds: float) -> None:
        said.append(capsys.readouterr().err)
        assert main(["sweep", "half.toml", "--out", "s", *HERE, "--quiet"]) == 0
        capsys.readouterr()

    monkeypatch.setattr("weightdecay.cli.sweep.time", SimpleNamespace(sleep=sleep))
    assert main(["watch", "s", "--json", "--quiet"]) == 0
    told = parsed(capsys)
    assert main(["status", "s", "--json", "--check"]) == 0
    assert parsed(capsys) == told
    assert said == [""]


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_watch_reads_no_results_for_a_table_that_is_not_drawn(
    quiet: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Store("s").ask_for({one.identity: one for one in read_study("half.toml")})
    swept = partial(main, ["sweep", "half.toml", "--out", "s", *HERE, "--quiet"])
    monkeypatch.setattr("weightdecay.cli.sweep.time", SimpleNamespace(sleep=lambda _: swept()))
    monkeypatch.setattr(status.Best, "summary", lambda *_, **__: 1 / 0)
    assert main(["watch", "s", "--json", *quiet]) == 0


def test_status_has_the_best_settings_so_far_as_the_end_of_a_sweep_does(capsys: Output) -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    _, *best = capsys.readouterr().out.splitlines()
    Store("s").ask_for({one.identity: one for one in read_study("toy.toml")})
    assert main(["status", "s"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("24 planned · 0 running · 12 done")
    assert said[-len(best) :] == best


def test_watch_shows_the_best_settings_as_they_come(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    _, *best = capsys.readouterr().out.splitlines()
    Store("s").ask_for({one.identity: one for one in read_study("toy.toml")})
    looks = iter([None, None])

    def sleep(seconds: float) -> None:
        if next(looks, "over") == "over":
            raise KeyboardInterrupt

    monkeypatch.setattr("weightdecay.cli.sweep.time", SimpleNamespace(sleep=sleep))
    pretend_a_terminal(monkeypatch, columns=100, rows=24)
    assert main(["watch", "s"]) == 130
    frames = Screen(capsys.readouterr().err).frames
    assert any(frame[-len(best) :] == tuple(best) for frame in frames)


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ([[7]], "1 partly trained, saved at update 7"),
        ([[7], [300, 1200], []], "2 partly trained, saved at updates 7 to 1,200"),
        ([[]], None),
    ],
)
def test_status_says_how_far_the_checkpoints_are(
    updates: list[list[int]], said: str | None, capsys: Output
) -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    cells = {one.identity: one for one in read_study("toy.toml")}
    Store("s").ask_for(cells)
    waiting = [run for run in cells if run not in Store("s").refresh().finished]
    for run, saved in zip(["foreign", *waiting], [[9], *updates], strict=False):
        folder = Path("s/checkpoints") / run
        folder.mkdir(parents=True)
        for update in saved:
            (folder / f"checkpoint-{update:012d}.pt").touch()
    capsys.readouterr()
    assert main(["status", "s"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "partly" in line]
    assert told == [said] * (said is not None)


def test_status_says_that_nothing_runs_and_what_goes_on(capsys: Output) -> None:
    Store("s").ask_for({one.identity: one for one in read_study("half.toml")})
    assert main(["status", "s"]) == 0
    standing, idle = capsys.readouterr().out.splitlines()
    assert standing.startswith(
        "12 planned · 0 running · 0 done · 0 failed · 12 waiting · time left"
    )
    assert idle == (
        "Nothing is running. To continue, repeat the command that started it, or run "
        "`weightdecay retry s`."
    )
    assert main(["retry", "s", *HERE]) == 0
    assert capsys.readouterr().out.startswith("12 planned · 0 running · 12 done")


def test_merged_halves_are_the_whole(capsys: Output) -> None:
    other = Path("half.toml").read_text().replace("adamw", "sgdw")
    Path("other.toml").write_text(other)
    for name in ("toy", "half", "other"):
        assert main(["sweep", f"{name}.toml", "--out", name, *HERE]) == 0
    capsys.readouterr()
    assert main(["merge", "all", "half", "other", "toy"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Copied 12 cells from half.",
        "Copied 12 cells from other.",
        "Copied 0 cells from toy.",
    ]
    assert results("all") == results("toy")


@pytest.mark.parametrize(("form", "package"), [("csv", "csv"), ("parquet", "pyarrow")])
def test_an_export_holds_every_epoch(form: str, package: str, capsys: Output) -> None:
    pytest.importorskip(package)
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    capsys.readouterr()
    assert main(["export", "s", f"deep/table.{form}"]) == 0
    assert capsys.readouterr().out == f"Wrote 24 epochs of 12 runs to deep/table.{form}.\n"
    assert imported(Path(f"deep/table.{form}")) == Store("s").runs()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_says_how_long_runs_took_if_it_is_asked_to(form: str) -> None:
    pytest.importorskip("pyarrow")
    for folder in ("s", "again"):
        assert main(["sweep", "half.toml", "--out", folder, *HERE]) == 0
        assert main(["export", folder, f"{folder}.{form}"]) == 0
    assert Path(f"s.{form}").read_bytes() == Path(f"again.{form}").read_bytes()
    assert main(["export", "s", f"timed.{form}", "--seconds"]) == 0
    took = Store("s").seconds()
    assert len(took) == 12
    for source in (f"timed.{form}", "s"):
        assert {run.config.identity: run.seconds for run in read(source)} == took
    assert {run.seconds for run in read(f"s.{form}")} == {None}


def test_what_is_asked_of_a_folder_needs_no_torch() -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    asked = [["status", "s"], ["watch", "s"], ["merge", "t", "s"], ["export", "s", "t.csv"]]
    asked += [["retry", "s"], ["sweep", "half.toml", "--out", "s"]]  # with nothing left to train
    program = (
        f"import sys; from weightdecay.cli import main; assert not any(map(main, {asked}))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def parsed(capsys: Output) -> Any:
    """Return what was printed as JSON, which has no NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(capsys.readouterr().out, parse_constant=refuse)


def test_the_end_of_a_sweep_and_its_status_are_the_same_json(capsys: Output) -> None:
    Path("rain").touch()
    assert main(["sweep", "moody.toml", "--out", "s", *HERE, "--json"]) == 1
    told = parsed(capsys)
    counts = {"planned": 24, "done": 12, "diverged": 0, "failed": 12, "running": 0, "waiting": 0}
    assert told | counts == told
    assert {one["reason"] for one in told["failures"]} == {"ArithmeticError: it rains"}
    failed = {one.identity: one for one in read_study("moody.toml") if one.model == "moody"}
    for failure in told["failures"]:
        assert RunConfig.from_dict(failure["config"]) == failed.pop(failure["run"])
    [best] = told["best"]
    runs = [
        or_infinite(run.last.test_error)
        for run in Store("s").runs()
        if (run.config.lr, run.config.normalized_decay) == (best["lr"], best["decay"])
    ]
    assert best["test_error"] == sum(runs) / len(runs)
    assert (best["decay_is"], best["seeds"]) == ("normalized_decay", [0, 1])
    assert best["config"]["algorithm"] == "adamw"
    assert main(["status", "s", "--json"]) == 1
    assert parsed(capsys) == told
    Path("rain").unlink()
    assert main(["retry", "s", *HERE, "--json"]) == 0
    told = parsed(capsys)
    assert (told["done"], told["failures"]) == (24, [])
    assert main(["retry", "s", *HERE, "--json"]) == 0
    assert parsed(capsys) == told


def test_a_single_seed_has_no_standard_error_in_json(capsys: Output) -> None:
    Path("one.toml").write_text(Path("half.toml").read_text().replace('"0..1"', "0"))
    assert main(["sweep", "one.toml", "--out", "s", *HERE, "--json"]) == 0
    [best] = parsed(capsys)["best"]
    assert best["test_standard_error"] is None


def test_a_dry_run_a_merge_and_an_export_have_json(capsys: Output) -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["sweep", "half.toml", "--out", "s", *HERE, "--dry-run", "--json"]) == 0
    told = {"planned": 12, "done": 12, "failed": 0, "partly_trained": 0, "to_train": 0}
    assert parsed(capsys) == told | {"workers": 1, "packs": [], "seconds": 0.0}
    assert main(["merge", "t", "s", "--json"]) == 0
    taken = {"folder": "s", "taken": 12, "conflicts": [], "repeats": []}
    assert parsed(capsys) == {"merged": [taken], "left_out": [], "complete": True}
    assert main(["export", "s", "t.csv", "--json"]) == 0
    counted = {"file": "t.csv", "epochs": 24, "runs": 12}
    assert parsed(capsys) == counted | {"left_out": [], "complete": True}
    assert main(["export", "s", "-", "--json"]) == 2


def test_a_quiet_sweep_prints_its_results_and_failures_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.0)
    monkeypatch.setattr(forecast, "seconds_apart", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(sweep_view, "engine_of", lambda options: Scripted(going))
    assert main([*long_study()[:4], "--quiet"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("12 planned · 0 running · 12 done")
    assert told.err == ""


def test_a_quiet_sweep_still_says_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def script(job: Job) -> list[Message]:
        return [Notice("The disk is full.", problem=True), *going(job)]

    monkeypatch.setattr(sweep_view, "engine_of", lambda options: Scripted(script))
    assert main([*long_study()[:4], "--quiet"]) == 0
    assert capsys.readouterr().err == "The disk is full.\n"


def test_a_quiet_failure_is_still_shown(capsys: Output) -> None:
    Path("rain").touch()
    assert main(["sweep", "moody.toml", "--out", "s", *HERE, "--quiet"]) == 1
    told = capsys.readouterr()
    assert told.err.startswith("Failed: ArithmeticError: it rains\n")
    assert "weightdecay retry" not in told.out
    assert main(["status", "s", "--quiet"]) == 1
    assert "weightdecay retry" not in capsys.readouterr().out


def test_an_export_to_a_dash_is_the_csv_file_on_stdout() -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    assert main(["export", "s", "t.csv"]) == 0
    command = [*COMMAND, "export", "s", "-"]
    made = subprocess.run(command, capture_output=True, check=True)
    assert made.stdout == Path("t.csv").read_bytes()
    assert made.stderr == b"Wrote 24 epochs of 12 runs to stdout.\n"


def test_a_terminal_is_shown_what_it_would_obey(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    csv_stream().write("a\x1b[2Jb\n")
    assert capsys.readouterr().out == "a\\x1b[2Jb\n"


def long_study(**changes: str) -> list[str]:
    """Return a command whose sweep is long enough for an estimate."""
    text = Path("half.toml").read_text().replace("epochs = 2", "epochs = 200")
    for old, new in changes.items():
        text = text.replace(old, new)
    Path("long.toml").write_text(text)
    return ["sweep", "long.toml", "--out", "s", *HERE]


@pytest.mark.parametrize(
    ("decays", "warned"),
    [
        ("weight_decay = [0.05, 0.1]", True),
        ("weight_decay = [0, 0.05, 0.1]", True),  # without decay, nothing was meant
        ("weight_decay = [0.0001, 0.1]", False),  # a wide grid
        ("normalized_decay = [0.05, 0.1]", False),
    ],
)
def test_decays_that_look_like_torchs_are_warned_about(
    decays: str, warned: bool, capsys: Output
) -> None:
    study = TOY.replace("normalized_decay = [0, 0.1]", decays)
    Path("torchs.toml").write_text(study)
    sweep = ["sweep", "torchs.toml", "--out", "s", *HERE]
    assert main([*sweep, "--dry-run"]) == 0
    assert ("looks like torch's" in capsys.readouterr().err) == warned
    assert main([*sweep, "--dry-run", "--quiet"]) == 0
    assert not capsys.readouterr().err


def test_a_dry_run_says_what_there_is_to_train_and_makes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def seconds(cells: Any, *, workers: int | None, device: str | None) -> float:
        return 10.0 * len(cells)

    monkeypatch.setattr(forecast, "seconds_apart", seconds)
    command = ["sweep", "half.toml", "--out", "s", "--workers", "5", "--device", "cpu", "--dry-run"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "12 planned · 0 done · 0 failed · 12 to train",
        "5 packs of up to 3 cells on 5 workers, estimated time 2:00",
    ]
    assert not Path("s").exists()


def test_a_dry_run_counts_what_is_done_failed_and_saved(capsys: Output) -> None:
    Path("rain").touch()
    main(["sweep", "moody.toml", "--out", "s", *HERE])
    more = Path("moody.toml").read_text().replace("0..1", "0..2")
    Path("more.toml").write_text(more)
    new = [one for one in read_study("more.toml") if one not in read_study("moody.toml")]
    for folder, count in ((Path("s/checkpoints") / one.identity, n) for n, one in enumerate(new)):
        folder.mkdir(parents=True)
        for update in range(min(2, count)):
            (folder / f"checkpoint-{update:012d}.pt").touch()
    before = sorted(Path().rglob("*"))
    capsys.readouterr()
    assert main(["sweep", "more.toml", "--out", "s", *HERE, "--dry-run"]) == 0
    counted, work = capsys.readouterr().out.splitlines()
    assert counted == "36 planned · 12 done · 12 failed · 12 to train (11 partly trained, saved)"
    assert work.startswith("2 packs of up to 6 cells on 1 worker, estimated time 0:")
    assert sorted(Path().rglob("*")) == before


def test_a_long_sweep_is_estimated_before_it_starts_and_a_short_one_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def seconds(cells: Any, *, workers: int | None, device: str | None) -> float:
        assert (len(cells), workers, device) == (12, 2, None)
        assert not Path("s").exists()
        return 61.0

    monkeypatch.setattr(forecast, "seconds_apart", seconds)
    monkeypatch.setattr(sweep_view, "engine_of", lambda options: Scripted(workers=2, lanes=3))
    assert main(["sweep", "half.toml", "--out", "short"]) == 0
    assert "Estimated" not in capsys.readouterr().err
    assert main(long_study()[:4]) == 0
    told = capsys.readouterr().err.splitlines()[0]
    work, _, time = told.partition(". ")
    assert work == "12 of 12 cells to train in 4 packs of up to 3 cells on 2 workers"
    assert time == "Estimated time: 1:01"


@pytest.mark.slow
def test_a_misspelt_model_of_ones_own_is_refused_before_a_long_sweep_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """The task is loaded in a process of its own, which may print, and is not trained by it."""
    Path("moody.py").write_text(MOODY + "\nprint('hello')\n")
    monkeypatch.setattr(estimate, "_GIVEN_UP", 600.0)
    assert main(long_study(**{"tests.toys:toy": "moody:task", '"linear"': '"mooody"'})) == 2
    said = capsys.readouterr()
    assert "got 'mooody'. Did you mean `moody`?" in said.err
    assert said.out == ""
    assert not Path("s").exists()


@pytest.mark.slow
@pytest.mark.parametrize("program", ["while True: pass", "import os; os._exit(3)"])
def test_a_trial_that_hangs_or_dies_only_leaves_the_time_unknown(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("moody.py").write_text(f"def task():\n    {program}\n")
    monkeypatch.setattr(estimate, "_GIVEN_UP", 1.0 if "while" in program else 600.0)
    assert estimate.seconds_apart([config(task="moody:task")]) is None


@pytest.mark.slow
def test_a_trial_in_a_process_of_its_own_says_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(estimate, "_GIVEN_UP", 600.0)
    seconds = estimate.seconds_apart([config(epochs=1000)], workers=1, device="cpu")
    assert seconds is not None
    assert seconds > 0


WRONG = {
    "no study": (["sweep", "none.toml", "--out", "s"], "none.toml does not exist."),
    "no TOML": (["sweep", "moody.py", "--out", "s"], "moody.py is not valid TOML: "),
    "a value": (["sweep", "bad.toml", "--out", "s"], "bad.toml: `epochs` must be at least 1"),
    "a file": (
        ["sweep", "half.toml", "--out", "moody.py"],
        "--out must be a folder, and moody.py is a file.",
    ),
    "nowhere": (["sweep", "half.toml", "--out", "/proc/none"], "'/proc/none"),
    "no workers": (["sweep", "half.toml", "--out", "s", "--workers", "0"], "--workers must be at"),
    "workers here": (
        ["sweep", "half.toml", "--out", "s", "--on", "here", "--workers", "2"],
        "--workers must be 1 with --on here, got 2.",
    ),
    "no time": (["sweep", "half.toml", "--out", "s", "--timeout", "0"], "--timeout must be finite"),
    "a limit here": (
        ["sweep", "half.toml", "--out", "s", "--on", "here", "--timeout", "9"],
        "--timeout must be left out with --on here: it kills worker processes.",
    ),
    "an address": (
        ["sweep", "half.toml", "--out", "s", "--address", "auto"],
        "--address must be used with --on ray: it is a Ray cluster's.",
    ),
    "no device": (
        ["sweep", "half.toml", "--out", "s", "--device", "gpu"],
        "--device must be one that torch has here (cpu), got 'gpu'. Did you mean `cpu`?",
    ),
    "no model": (
        ["sweep", "model.toml", "--out", "s"],
        "`model` must be one of mlp, which mnist1d has, got 'mpl'. Did you mean `mlp`?",
    ),
    "no task": (
        ["sweep", "task.toml", "--out", "s"],
        "got 'mnist'. Did you mean `mnist1d`? For a task of your own, write MODULE:FUNCTION.",
    ),
    "no such option": (
        ["sweep", "option.toml", "--out", "s"],
        "Unknown option `widht` for mlp. Did you mean `width`? Its options are width, depth.",
    ),
    "no such option of an algorithm": (
        ["sweep", "eps.toml", "--out", "s"],
        "Unknown option `epsilon` for adamw. Did you mean `eps`?",
    ),
    "no such field": (
        ["sweep", "field.toml", "--out", "s"],
        "field.toml: Unknown field `learning_rate`. Did you mean `lr`?",
    ),
    "no such module": (["sweep", "module.toml", "--out", "s"], "no mody. Did you mean `moody`?"),
    "no such function": (
        ["sweep", "function.toml", "--out", "s"],
        "moody.py, got 'moody:tsk', and 'tsk' is not in it. Did you mean 'task'?",
    ),
    "no such class": (
        ["sweep", "class.toml", "--out", "s"],
        "and 'NAdamm' is not in it. Did you mean 'NAdam'?",
    ),
    "status of many": (
        ["status", "many"],
        "many is not a sweep folder: it has no plan.jsonl. It contains sweep folders:",
    ),
    "export of one figure": (
        ["export", "many/one/figure-2", "t.csv"],
        "many/one/figure-2 is not a sweep folder: it has no log. Its runs are in many/one.",
    ),
    "export of many": (
        ["export", "many", "t.csv"],
        "has no log. It contains sweep folders: many/one, many/two.",
    ),
    "status of nothing": (["status", "none"], "none is not a sweep folder: it has no"),
    "watch of nothing": (["watch", "none"], "none is not a sweep folder: it has no"),
    "watch too often": (["watch", "none", "--every", "0"], "--every must be finite and above 0"),
    "retry of nothing": (["retry", "none"], "none is not a sweep folder: it has no"),
    "merge of nothing": (["merge", "s", "none"], "none is not a sweep folder: it has no"),
    "export of nothing": (["export", "none", "t.csv"], "none is not a sweep folder: it"),
}


@pytest.mark.parametrize(("words", "text"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_said_in_one_line_and_nothing_is_made(
    words: list[str], text: str, capsys: Output
) -> None:
    Path("bad.toml").write_text(TOY.replace("epochs = 2", "epochs = 0"))
    task = TOY.replace("tests.toys:toy", "mnist1d")
    Path("model.toml").write_text(task.replace('"linear"', '["mlp,width=8", "mpl"]'))
    Path("task.toml").write_text(task.replace("mnist1d", "mnist"))
    Path("option.toml").write_text(task.replace('"linear"', '"mlp,widht=3"'))
    Path("field.toml").write_text(TOY.replace("lr =", "learning_rate ="))
    Path("eps.toml").write_text(TOY.replace('"adamw"', '"adamw,epsilon=1"'))
    Path("module.toml").write_text(TOY.replace("tests.toys:toy", "mody:task"))
    Path("function.toml").write_text(TOY.replace("tests.toys:toy", "moody:tsk"))
    Path("class.toml").write_text(TOY.replace('"adamw"', '"torch.optim:NAdamm"'))
    for name in ("one", "two"):
        Store(f"many/{name}").ask_for({one.identity: one for one in read_study("half.toml")})
        Path(f"many/{name}/figure-2").mkdir()  # as `reproduce` has
    before = sorted(Path().rglob("*"))
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.err.startswith("weightdecay: ")
    assert text in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "missing", "cure"),
    [
        (["sweep", "half.toml", "--out", "t", "--on", "ray"], "ray", "weightdecay[ray]"),
        (["export", "s", "t.parquet"], "pyarrow", "weightdecay[parquet]"),
    ],
)
def test_a_package_that_is_not_there_has_a_cure(
    words: list[str],
    missing: str,
    cure: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    capsys.readouterr()
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "weightdecay.sweeps.ray_engine", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("weightdecay: ")
    assert cure in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "unbuffered"), [(["status", "s"], ""), (["status", "s"], "1"), (["--help"], "")]
)
def test_a_reader_that_has_enough_is_not_complained_to(words: list[str], unbuffered: str) -> None:
    Store("s").ask_for({one.identity: one for one in read_study("half.toml")})
    reads, writes = os.pipe()
    os.close(reads)
    process = started(*words, stdout=writes, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    os.close(writes)
    assert process.communicate()[1] == ""
    assert process.returncode == 141


def test_what_cannot_be_written_is_said_once() -> None:
    Store("s").ask_for({one.identity: one for one in read_study("half.toml")})
    with Path("/dev/full").open("w") as full:
        process = started("status", "s", stdout=full)
    assert process.communicate()[1] == "weightdecay: [Errno 28] No space left on device\n"
    assert process.returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_missed_by_nobody(closed: str) -> None:
    command = shlex.join([*COMMAND, "sweep", "half.toml", "--out", "s", *HERE])
    subprocess.run(["sh", "-c", f"{command} {closed}"], check=True, capture_output=True)
    assert len(results("s")) == len(read_study("half.toml"))


def on_a_terminal(
    engine: Any, monkeypatch: pytest.MonkeyPatch, capsys: Output, *, columns: int, rows: int
) -> Screen:
    pretend_a_terminal(monkeypatch, columns=columns, rows=rows)
    monkeypatch.setattr(sweep_view, "engine_of", lambda options: engine)
    main(["sweep", "toy.toml", "--out", "s"])
    return Screen(capsys.readouterr().err)


class InTurns(Scripted):
    """An engine whose jobs go on side by side, a message each at a time."""

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        told = super().wait(seconds)
        first = dict(reversed(told))  # the first of each job, which comes last
        self._told = [(number, message) for number, message in told if message is not first[number]]
        return list(first.items())


def going(job: Job) -> list[Message]:
    here = Progress(
        update=9, updates=18, epoch=1, epochs=2, loss=2.0, error=0.5, multiplier=1.0, speed=9.0,
        lanes=len(job.cells),
    )  # fmt: skip
    return [here, Notice("Taken up."), finished(job.cells), Ended()]


@pytest.mark.parametrize("columns", [30, 80, 200])
def test_on_a_terminal_each_worker_has_a_line_and_all_are_gone_at_the_end(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    engine = InTurns(going, workers=4, lanes=8)
    screen = on_a_terminal(engine, monkeypatch, capsys, columns=columns, rows=24)
    assert list(screen.shown) == ["Taken up."]
    assert max(len(line) for frame in screen.frames for line in frame) < columns
    names = [f"worker {number}, 6 cells: " for number in (1, 2, 3, 4)]
    full = [frame for frame in screen.frames if sum("worker" in line for line in frame) == 4]
    assert full
    for frame in full:
        lines = [line[line.index("worker") :] for line in frame if "worker" in line]
        assert [line[: len(name)] for line, name in zip(lines, names, strict=True)] == names


def test_bars_are_equally_long_and_as_full_as_the_work_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    engine = InTurns(going, workers=2, lanes=12)
    screen = on_a_terminal(engine, monkeypatch, capsys, columns=100, rows=24)
    frame = next(frame for frame in screen.frames if sum("epoch" in line for line in frame) == 2)
    assert frame[0].startswith(f"{'':32}0 of 24 done")
    for line in frame[1:]:
        assert line.startswith(f"{'━' * 15:32}worker ")


def test_workers_beyond_the_screen_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    engine = Scripted(going, workers=12, lanes=2)
    screen = on_a_terminal(engine, monkeypatch, capsys, columns=80, rows=6)
    assert max(map(len, screen.frames)) <= 5 + 1  # and the notice above
    assert any(frame[-1] == "… and 9 more" for frame in screen.frames if frame)


def test_a_failure_stands_above_the_lines_that_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    bad = read_study("toy.toml")[0]

    def script(job: Job) -> list[Message]:
        failed: list[Message] = [Failed("ValueError: no good", "", memory=False)]
        return failed if bad in job.cells else going(job)

    engine = Scripted(script, workers=2, lanes=4)
    screen = on_a_terminal(engine, monkeypatch, capsys, columns=80, rows=24)
    said = list(screen.shown)
    assert {"Taken up.", "Failed: ValueError: no good"} < set(said)
    assert f"  to reproduce: weightdecay run --task {bad.task} --model {bad.model} " in "\n".join(
        said
    )
    assert not [line for line in said if "worker" in line or "done" in line]


def test_a_stopped_sweep_leaves_no_lines_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    class Interrupted(InTurns):
        waits = 0

        def wait(self, seconds: float) -> list[tuple[int, Message]]:
            self.waits += 1
            if self.waits == 3:
                sys.stderr.write("^C")  # as a terminal does
                os.kill(os.getpid(), signal.SIGINT)
            return super().wait(seconds)

    engine = Interrupted(lambda job: going(job)[:1], workers=2, lanes=12)
    screen = on_a_terminal(engine, monkeypatch, capsys, columns=80, rows=24)
    assert list(screen.shown) == [
        "Saving and stopping. Press Ctrl-C again to stop at once.",
        "Stopped. Run the same command again to continue.",
    ]
    assert results("s") == []


def test_a_watch_that_is_left_says_that_the_sweep_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    cells = {one.identity: one for one in read_study("half.toml")}
    store = Store("s")
    store.ask_for(cells)
    with store.writing(workers=1) as writer:
        writer.failure(Failure(next(iter(cells)), "Its process ended. It said:\none\r\n\ttwo"))

    def sleep(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("weightdecay.cli.sweep.time", SimpleNamespace(sleep=sleep))
    pretend_a_terminal(monkeypatch, columns=80, rows=24)
    assert main(["watch", "s"]) == 130
    screen = Screen(capsys.readouterr().err)
    left = list(screen.shown)
    assert left == ["Stopped watching. The sweep itself is not affected."]
    assert any("It said: one two" in line for frame in screen.frames for line in frame)


def test_a_log_gets_whole_lines(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.0)
    monkeypatch.setattr(pack, "PROGRESS_EVERY", 0.0)
    assert main(["sweep", "half.toml", "--out", "s", *HERE]) == 0
    said = capsys.readouterr().err
    assert "\r" not in said
    assert "\x1b" not in said
    assert said.startswith("0 of 12 done · 0 running · time left unknown\n")
    assert said.endswith("12 of 12 done · 0 running · time left 0:00\n")


def hasty_study() -> None:
    text = Path("half.toml").read_text().replace("tests.toys:toy", "tests.toys:hasty")
    text = text.replace("epochs = 2", "epochs = 40").replace('"2^-8..2^-6"', "0.01")
    Path("hasty.toml").write_text(text)


@pytest.mark.slow
def test_an_interrupt_saves_and_the_same_command_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHECKPOINT_EVERY", "PROGRESS_EVERY"):  # which the hasty task changes
        monkeypatch.setattr(pack, name, getattr(pack, name))
    hasty_study()
    command = ["sweep", "hasty.toml", "--out", "s", "--workers", "1", "--device", "cpu"]
    process = started(*command)
    wait_for("s/checkpoints/*/checkpoint-*.pt", process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines() == [
        "0 of 4 done · 0 running · time left unknown",
        "Saving and stopping. Press Ctrl-C again to stop at once.",
        "Stopped. Run the same command again to continue.",
    ]
    saved = {path.parent.name for path in Path("s/checkpoints").glob("*/checkpoint-*.pt")}
    assert saved == {one.identity for one in read_study("hasty.toml")}
    assert results("s") == []
    again = subprocess.run([*COMMAND, *command], capture_output=True, text=True, check=True)
    assert again.stderr.splitlines()[1].startswith("Resumed at update ")
    assert main(["sweep", "hasty.toml", "--out", "whole", *HERE]) == 0
    assert results("s") == results("whole")


@pytest.mark.slow
def test_a_second_interrupt_stops_at_once() -> None:
    text = Path("half.toml").read_text().replace("tests.toys:toy", "moody:endless")
    Path("endless.toml").write_text(text)
    process = started("sweep", "endless.toml", "--out", "s", "--workers", "1", "--device", "cpu")
    wait_for("begun", process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.endswith("Stopped. Run the same command again to continue.\n")
    assert "Traceback" not in said
    assert children
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_a_second_interrupt_is_heard_wherever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Scripted):
        asked = False

        def ask_to_stop(self) -> None:
            self.asked = True
            super().ask_to_stop()

    def show(screen: object, event: SweepEvent, bars: object) -> None:
        if isinstance(event, Working):
            raise KeyboardInterrupt

    engine = Asked(lambda job: [])
    monkeypatch.setattr(sweep_view, "engine_of", lambda options: engine)
    monkeypatch.setattr(sweep_view._Screen, "show", show)
    assert main(["sweep", "half.toml", "--out", "s"]) == 130
    assert engine.closed
    assert not engine.asked


def test_a_cell_is_the_same_configuration_in_a_study_and_in_a_command() -> None:
    """The command of a cell names every field: nothing is left to a default that may change."""
    one = config(schedule="restarts,first=1,factor=2", data=200, validation="test", seed=3)
    _, *words = shlex.split(command_of(one.as_dict(), device="cpu"))
    assert main(words) == 0
    assert [path.name for path in Path("runs").iterdir()] == [one.identity]
