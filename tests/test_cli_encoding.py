"""What is printed where the output cannot hold every character, as in a Windows pipe."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from weightdecay.cli import main
from weightdecay.cli.encoding import spell_out
from weightdecay.cli.printing import echo

pytestmark = pytest.mark.cpu("what is printed does not depend on the device")
STUDY = """
task = "tests.toys:toy"
model = "linear"
algorithm = "adamw"
epochs = 2
batch = 30
lr = "2^-8..2^-6"
normalized_decay = [0, 0.1]
seed = "0..1"
"""
HERE = ["--on", "here", "--device", "cpu"]
# The program, with a scale at which the paper's figures take seconds.
PROGRAM = """
from weightdecay.cli import script
from weightdecay.studies import scales
from tests.test_cli_reproduce import TASK, TINY

scales._SCALES[TASK, "small"] = TINY
script()
"""
TINY = ["-c", PROGRAM]
PLAIN = ["-m", "weightdecay"]
# An environment in which Python writes another encoding, and that encoding.
ENVIRONMENTS = {
    "cp1252": ({"PYTHONIOENCODING": "cp1252"}, "cp1252"),
    "ascii": ({"PYTHONIOENCODING": "ascii"}, "ascii"),
    "C": ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "ascii"),
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)


# What would clear the screen, name the window, and turn what follows red.
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m"
HOSTILE = f"""
from dataclasses import replace

from tests.toys import toy


def task():
    def failing(generator):
        raise ArithmeticError({ESCAPES!r})

    return replace(toy(), models={{"failing": failing}})
"""


def said(locale: str, *words: str) -> str:
    """Return what a program that succeeds prints, on stdout and stderr."""
    environment, encoding = ENVIRONMENTS[locale]
    command = [sys.executable, *words]
    ended = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = ended.stdout.decode(encoding)
    assert (ended.returncode, "Traceback" in text) == (0, False), text
    return text


@pytest.mark.parametrize(
    "locale", ["C", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cp1252", "ascii"))]
)
def test_no_locale_ends_a_command(locale: str) -> None:
    for words in (["run", "--help"], ["reproduce", "--help"]):
        assert "alpha" in said(locale, *PLAIN, *words)
    assert said(locale, *PLAIN, "convert", "--weight-decay", "0.001").startswith("lambda, weightd")


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["cp1252", "ascii"])
def test_a_sweep_tells_its_results_in_any_encoding(locale: str) -> None:
    swept = said(locale, *PLAIN, "sweep", "study.toml", "--out", "s", *HERE)
    assert "lambda_norm " in swept
    assert "12 planned" in said(locale, *PLAIN, "status", "s")


@pytest.mark.slow
def test_a_figure_is_reported_in_any_encoding_and_its_files_are_utf_8() -> None:
    pytest.importorskip("matplotlib")
    words = ["reproduce", "figure-2", "--task", "tests.toys:toy", *HERE]
    for locale in ("cp1252", "ascii"):  # which trains nothing again
        assert "figure.png\nReport: file:" in said(locale, *TINY, *words)
        [page] = Path("reproduction").rglob("report.html")
        [verdicts] = Path("reproduction").rglob("verdicts.json")
        assert "λ" in page.read_text("utf-8")
        assert "α" in verdicts.read_text("utf-8")


def test_a_mistake_is_said_in_any_encoding() -> None:
    words = [*PLAIN, "status", "naïve-α"]
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, *words]
    ended = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ended.returncode == 2
    assert b"naive-alpha" in ended.stderr


@pytest.mark.parametrize(
    ("text", "encoding", "written"),
    [
        ("α·η ± 2·10⁻⁹", "ascii", b"alpha*eta +/- 2*10^-9"),
        ("α·η ± 2·10⁻⁹", "latin-1", b"alpha\xb7eta \xb1 2\xb710^-9"),
        ("β₁ – β₂ ≥ ½", "ascii", b"beta1 - beta2 >= 1/2"),
        ("x² + x³", "ascii", b"x^2 + x^3"),
        ("Å … 漢", "ascii", b"A ... ?"),
        ("α λ …", "utf-8", "α λ …".encode()),
        ("a name of \udcff", "utf-8", b"a name of \xff"),
    ],
)
def test_what_an_encoding_lacks_is_spelled_out(text: str, encoding: str, written: bytes) -> None:
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, encoding=encoding)
    spell_out(stream)
    stream.write(text)
    stream.flush()
    assert file.getvalue() == written


def test_a_stream_that_holds_every_character_is_left_alone() -> None:
    stream = io.StringIO()
    spell_out(stream)
    stream.write("λ")
    assert stream.getvalue() == "λ"


def test_what_a_file_says_does_not_reach_the_terminal_as_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reasons, names of folders and files, and what is wrong with them."""
    monkeypatch.syspath_prepend(".")
    Path("hostile.py").write_text(HOSTILE)
    study = STUDY.replace("tests.toys:toy", "hostile:task").replace("linear", "failing")
    Path("hostile.toml").write_text(study)
    folder, file = f"s{ESCAPES}", f"{ESCAPES}.csv"
    commands = [
        ["sweep", "hostile.toml", "--out", folder, *HERE],
        ["status", folder, "--failures"],
        ["watch", folder],
        ["export", folder, file],
        ["merge", "other", folder],
        ["status", f"no{ESCAPES}"],
        ["data", "fetch", "cifar10", "--from", f"no{ESCAPES}"],
    ]
    for command in commands:
        main(command)
        out, err = capsys.readouterr()
        assert r"\x1b[2J\x1b]0;owned\x07\x9b31m" in out + err
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out + err)


def test_bytes_of_a_name_that_are_no_text_are_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    echo(os.fsdecode(b"a\x9b\tb\n"))
    assert capsys.readouterr().out == "a\\x9b\tb\n\n"
