"""`weightdecay convert`, as a person types it."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from weightdecay import __version__
from weightdecay.cli import main

RUN = ["--batch", "128", "--data", "50000", "--epochs", "100"]


def numbers(text: str) -> dict[str, list[str]]:
    rows = [line.rsplit("  ", 1) for line in text.splitlines()]
    return {row[0].strip(): row[1:] for row in rows}


def test_it_prints_a_decay_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--normalized", "0.05", "--lr", "0.001", *RUN]) == 0
    decay = 0.05 / math.sqrt(50_000 * 100 / 128)
    assert numbers(capsys.readouterr().out) == {
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
    *lines, note = capsys.readouterr().out.splitlines()
    assert [line[-1] == "–" for line in lines] == [False, True, True, False, True, False, True]
    assert note == "– is not known without more of --lr, --batch, --data, --epochs"


def test_it_carries_a_decay_to_another_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--weight-decay", "0.001", *RUN, "--to-epochs", "400"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header.split("  ")[-1] == "carried: timescale in epochs kept"
    assert first.split()[-3:] == ["0.001", "0.0005", "0.001"]


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
        (["convert", "--torch", "0.1"], "must come with --lr"),
        (
            ["convert", "--weight-decay", "1"],
            "--weight-decay must state less than a whole weight an update, got 1.0",
        ),
        (["convert", "--torch", "1", "--weight-decay", "0.1"], "got weight_decay, torch"),
        (
            ["convert", "--weight-decay", "0.1", "--to-epochs", "3"],
            "state --batch, --data and --epochs",
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


def test_it_is_installed_as_a_command() -> None:
    command = Path(sys.executable).with_name("weightdecay")
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == f"weightdecay {__version__}"
