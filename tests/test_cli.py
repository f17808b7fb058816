"""`weightdecay convert` and `weightdecay data`, as a person types them."""

import argparse
import hashlib
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.serving import Served, serving
from tests.small_data import TEN, TEN_FILES, in_files, tar
from weightdecay import __version__
from weightdecay.cli import data, main, parser, progress
from weightdecay.tasks import catalogue, cifar

RUN = ["--batch", "128", "--data", "50000", "--epochs", "100"]


def commands_of(parser: argparse.ArgumentParser, *words: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each command that can be typed, and its options."""
    options = {text for action in parser._actions for text in action.option_strings}
    inner = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not inner:
        yield " ".join(words), options
    for action in inner:
        for name, command in action.choices.items():
            yield from commands_of(command, *words, name)


#: What prints no results: a script for a shell.
WITHOUT_RESULTS = {"completion"}


@pytest.mark.parametrize(("command", "options"), list(commands_of(parser())))
def test_every_command_with_results_has_json_and_quiet_and_its_folder_is_out(
    command: str, options: set[str]
) -> None:
    assert ({"--json", "--quiet"} <= options) == (command not in WITHOUT_RESULTS)
    assert not {"--folder", "--output", "--dir"} & options


def numbers(text: str) -> dict[str, list[str]]:
    rows = [line.rsplit("  ", 1) for line in text.splitlines()]
    return {row[0].strip(): row[1:] for row in rows}


def test_it_prints_a_decay_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--normalized", "0.05", "--lr", "0.001", *RUN]) == 0
    decay = 0.05 / math.sqrt(50_000 * 100 / 128)
    *lines, pointer = capsys.readouterr().out.splitlines()
    assert pointer == "docs/choosing.md says which decay to start with, and when to change it."
    assert numbers("\n".join(lines)) == {
        "λ, weightdecay's weight_decay": [f"{decay:.6g}"],
        "λ_norm, the paper's normalized decay": ["0.05"],
        "torch.optim.AdamW's weight_decay": [f"{decay / 0.001:.6g}"],
        "half-life, updates": [f"{math.log(2) / -math.log1p(-decay):.6g}"],
        "half-life, epochs": [f"{math.log(2) / -math.log1p(-decay) * 128 / 50_000:.6g}"],
        "averaging timescale, updates": [f"{1 / decay:.6g}"],
        "averaging timescale, epochs": [f"{1 / decay * 128 / 50_000:.6g}"],
    }


def test_what_is_not_known_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--half-life", "1000"]) == 0
    *lines, note, _ = capsys.readouterr().out.splitlines()
    assert [line[-1] == "–" for line in lines] == [False, True, True, False, True, False, True]
    assert note == "– means unknown. More would be known with --lr, --batch, --data, --epochs."


def test_it_carries_a_decay_to_another_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--weight-decay", "0.001", *RUN, "--to-epochs", "400"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header.split("  ")[-1] == "carried: timescale in epochs kept"
    assert first.split()[-3:] == ["0.001", "0.0005", "0.001"]


def test_a_decay_as_json_has_null_for_what_is_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["convert", "--half-life", "1000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["decay"]
    assert told["decay"]["half_life"] == pytest.approx(1000)
    assert told["decay"]["torch"] is None
    command = ["convert", "--weight-decay", "0.001", *RUN, "--to-epochs", "400", "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["weight_decay"] for one in told.values()] == pytest.approx([0.001, 0.0005, 0.001])
    assert list(told) == ["decay", "carried_normalized", "carried_timescale_epochs"]


def test_quiet_leaves_the_advice_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--half-life", "1000", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "means unknown" not in said
    assert "docs/choosing.md" not in said


@pytest.mark.parametrize(
    ("text", "value"),
    [("2^-9", 2**-9), ("1/4*0.001", 0.00025), ("0.001*2^3", 0.008), ("5e-4", 5e-4), ("1/8", 0.125)],
)
def test_numbers_as_the_paper_writes_them(
    text: str, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "--weight-decay", text]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[-1] == f"{value:.6g}"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["convert"], "Exactly one decay must be stated, got none"),
        (["convert", "--torch", "0.1"], "also needs --lr"),
        (
            ["convert", "--weight-decay", "1"],
            "--weight-decay must give a λ below 1, got 1.0",
        ),
        (["convert", "--torch", "1", "--weight-decay", "0.1"], "got weight_decay, torch"),
        (
            ["convert", "--weight-decay", "0.1", "--to-epochs", "3"],
            "needs --batch, --data and --epochs",
        ),
        (
            ["convert", "--weight-decay", "0.1", *RUN, "--to-epochs", "0"],
            "--epochs must be finite and above 0, got 0.0",
        ),
    ],
)
def test_a_mistake_is_said_in_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert text in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize("bad", ["abc", "1/0", "2^", "", "9^9999", "nan", "inf", "1*"])
def test_what_is_not_a_number_is_refused(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["convert", "--weight-decay", bad])
    assert stopped.value.code == 2
    assert "number" in capsys.readouterr().err


@pytest.mark.skipif(
    not list(distributions(name="weightdecay")), reason="these sources are not installed"
)
def test_without_stderr_an_error_does_not_go_to_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process without a console, such as pythonw, has None there."""
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["convert", "--normalized", "0.05"]) == 2
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["convert", "--weight-decay", "0.001"]) == 0


def test_it_is_installed_as_a_command() -> None:
    command = Path(sys.executable).with_name("weightdecay")
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == f"weightdecay {__version__}"


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "weightdecay", "--version"]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    assert said.stdout.strip() == f"weightdecay {__version__}"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here to complete in")
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("weightdecay sta", {"status"}),
        ("weightdecay status --fa", {"--failures"}),
        ("weightdecay sweep --on r", {"ray"}),
        ("weightdecay status fol", {"folder"}),  # and no file: a sweep is a folder
        ("weightdecay sweep fo", {"folder", "fold.toml"}),
    ],
)
def test_bash_completes_commands_options_choices_and_files(
    typed: str, found: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("shtab", reason="shtab is an extra: pip install 'weightdecay[completion]'")
    (tmp_path / "folder").mkdir()
    (tmp_path / "fold.toml").touch()
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script.sh").write_text(capsys.readouterr().out, "utf-8")
    words = typed.split()
    program = (
        f"source script.sh; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; "
        f"_shtab_weightdecay weightdecay {words[-1]} {words[-2]}; printf '%s\\n' ${{COMPREPLY[@]}}"
    )
    made = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert set(made.stdout.split()) == found, made.stderr


def test_without_shtab_completion_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'weightdecay[completion]'" in capsys.readouterr().err


ARCHIVE = tar("cifar-10-batches-bin", TEN_FILES)
FETCH = ["data", "fetch", "cifar10"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEIGHTDECAY_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def served(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A small CIFAR-10, and a server that has it."""
    monkeypatch.setenv("no_proxy", "*")
    with serving(Served(ARCHIVE)) as served:
        md5 = hashlib.md5(ARCHIVE).hexdigest()
        url = served.url("cifar-10-binary.tar.gz")
        layout = replace(TEN, url=url, md5=md5, package=None)
        entry = replace(
            catalogue._ENTRIES["cifar10"],
            load=partial(cifar.load, layout),
            fetch=partial(cifar.fetch, layout),
            check=partial(cifar.check, layout),
        )
        monkeypatch.setitem(catalogue._ENTRIES, "cifar10", entry)
        yield served


def states(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    head, *rows, _ = capsys.readouterr().out.splitlines()
    assert head.split() == ["set", "file", "state"]
    return {row.split(maxsplit=2)[1]: row.split(maxsplit=2)[2] for row in rows}


def test_data_is_fetched_and_checked(
    served: Served, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "check", "cifar10"]) == 1
    assert set(states(capsys).values()) == {"missing"}
    assert main(FETCH) == 0
    assert capsys.readouterr() == (f"cifar10: in {cache / 'cifar10'}\n", "")
    assert main(["data", "check", "cifar10"]) == 0
    assert states(capsys) == dict.fromkeys(TEN_FILES, "ok")


def test_data_has_json_and_its_exit_status_is_the_same(
    served: Served, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "check", "cifar10", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["cache"], found["ok"]) == (str(cache), False)
    missing = {"set": "cifar10", "state": "missing"}
    assert found["files"] == [{**missing, "file": file} for file in TEN_FILES]
    assert main([*FETCH, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "set": "cifar10",
        "folder": str(cache / "cifar10"),
    }
    assert main(["data", "check", "cifar10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    assert main(["data", "fetch", "mnist1d", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"set": "mnist1d", "folder": None}


def test_a_quiet_fetch_and_check_print_results_alone(
    served: Served,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.0)
    assert main([*FETCH, "--quiet"]) == 0
    assert capsys.readouterr() == (f"cifar10: in {cache / 'cifar10'}\n", "")
    assert main(["data", "check", "cifar10", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(TEN_FILES)


def test_data_comes_from_a_folder_too(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_files(tmp_path, "", TEN_FILES)
    assert main([*FETCH, "--from", str(tmp_path)]) == 0
    assert served.asked == []


def test_a_check_says_what_is_wrong_and_fails(
    served: Served, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(FETCH) == 0
    (cache / "cifar10" / "test_batch.bin").write_bytes(b"cut")
    capsys.readouterr()
    assert main(["data", "check", "cifar10"]) == 1
    assert states(capsys)["test_batch.bin"].startswith("must have 12,292 bytes, found 3")


def test_a_check_of_nothing_named_is_of_all(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "check"]) == 0
    *rows, last = capsys.readouterr().out.splitlines()
    assert {row.split()[0] for row in rows[1:]} == set(catalogue.NAMES)
    assert last == f"The cache is {cache}. Set $WEIGHTDECAY_DATA to use another folder."


def test_what_is_made_by_code_is_not_fetched(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "fetch", "mnist1d"]) == 0
    assert capsys.readouterr().out == "mnist1d: generated by code, nothing to download\n"


def test_a_fetch_shows_bytes_and_speed(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.0)
    assert main(FETCH) == 0
    first, *_ = capsys.readouterr().err.splitlines()
    name, size, speed = first.split("  ")
    assert name == "cifar-10-binary.tar.gz"
    assert size == f"0.0 of {len(ARCHIVE) / 1e6:.1f} MB"
    assert speed == "0.0 MB/s"


def test_a_stopped_fetch_goes_on_where_it_was(
    served: Served, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_module("weightdecay.tasks.fetch"), "_CHUNK", 1000)

    def stop(meter: data._Meter, name: str, done: int, total: int | None) -> str:
        if done > 5000:
            raise KeyboardInterrupt
        return name

    with monkeypatch.context() as patched:
        patched.setattr(data._Meter, "line", stop)
        assert main(FETCH) == 130
    said = "Stopped. Run the same command again to continue.\n"
    assert capsys.readouterr() == ("", said)
    assert main(FETCH) == 0
    assert served.asked == [None, "bytes=6000-"]


def test_what_cannot_be_reached_is_another_status(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    served.status = 503
    assert main(FETCH) == 1
    said = capsys.readouterr()
    assert "cannot be reached" in said.err
    assert "`weightdecay data fetch cifar10 --from FOLDER`" in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["fetch", "cifar11"], "must be one of mnist1d, cifar10, "),
        (["fetch", "cifar"], "got 'cifar'. Did you mean `cifar10`?"),
        (["check", "mnist1d", "cifar11"], "must be one of mnist1d, cifar10, "),
        (["fetch", "cifar10", "--from", "/nowhere"], "--from must be a folder or an archive"),
        (["fetch", "imagenet32"], "--from must be a folder: ImageNet32x32 is available only after"),
        (["fetch", "cifar10", "--from", "/dev"], "/dev must contain data_batch_1.bin"),
    ],
)
def test_a_mistake_about_data_is_said_in_one_line(
    arguments: list[str], text: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *arguments]) == 2
    said = capsys.readouterr()
    assert text in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["swep"], "sweep"),
        (["data", "fecth"], "fetch"),
        (["retry", "s", "--on", "lcal"], "local"),
    ],
)
def test_a_misspelt_command_or_choice_is_told_the_one_that_was_meant(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.endswith(f". Did you mean `{meant}`?\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["reproduce", "figure-2", "--tsk", "text"], "--task"),
        (["sweep", "study.toml", "--ot", "folder"], "--out"),  # and --out is missing
        (["sweep", "study.toml", "--ot=folder"], "--out"),
        (["data", "fetch", "cifar10", "--frm", "folder"], "--from"),
    ],
)
def test_a_misspelt_option_is_named_with_the_one_that_was_meant(
    typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(typed)
    assert capsys.readouterr().err.endswith(f"Did you mean `{meant}`?\n")


def test_an_option_may_be_shortened() -> None:
    assert main(["convert", "--weight-decay", "0.05", "--ba", "8"]) == 0


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["data", "fetch", "--help"]])
def test_help_comes_without_torch(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom weightdecay.cli import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit as stopped:\n    print(stopped.code, 'torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, *arguments]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    assert said.stdout.splitlines()[-1] == "0 False"
