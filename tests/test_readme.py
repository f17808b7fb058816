"""What the README shows is what one sees."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weightdecay
from benchmarks import report
from weightdecay.cli import main
from weightdecay.records import or_infinite
from weightdecay.sweeps import read_study

pytestmark = pytest.mark.cpu("a page is run as it stands, where no default device is set")
ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, flags=re.DOTALL)
PYTHON = [block for language, block in BLOCKS if language == "python"]
CONSOLE = [block for language, block in BLOCKS if language == "console"]


def test_it_lists_the_public_names() -> None:
    assert not [name for name in weightdecay.__all__ if f"`{name}`" not in TEXT]


@pytest.mark.parametrize("block", CONSOLE)
def test_a_command_prints_what_stands_under_it(
    block: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, shown = block.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "weightdecay"
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("block", PYTHON)
def test_the_python_lines_run_after_the_first_of_them(
    block: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(PYTHON[0], names)
    *typed, shown = re.split(r"^>>> (.*)\n", block, flags=re.MULTILINE)
    exec("\n".join(typed) or block, names)
    assert not typed or capsys.readouterr().out == shown


@pytest.mark.parametrize("page", report.texts(), ids=lambda page: page.parent.name)
def test_tables_of_measurements_are_those_of_the_committed_rows(page: Path) -> None:
    told = report.texts()[page]
    assert page.read_text("utf-8") == told, "`python -m benchmarks.report` brings it up to date"


def test_every_mark_of_a_table_is_filled() -> None:
    """A pair of marks that the report does not know would keep what was typed there."""
    for page, parts in report.tables().items():
        marks = re.findall(r"<!-- /(.+) -->", page.read_text("utf-8"))
        assert sorted(mark for mark in marks if mark != "reproduction") == sorted(parts)


def test_a_page_without_a_mark_is_refused() -> None:
    assert report.filled("a\n<!-- b -->\nc\n<!-- /b -->\nd", "b", "e").split() == [
        *("a", "<!--", "b", "-->", "e", "<!--", "/b", "-->", "d"),
    ]
    for text in ("", "<!-- b -->\n", "\n<!-- /b -->"):
        with pytest.raises(ValueError, match=r"must have the marks <!-- b --> and <!-- /b -->"):
            report.filled(text, "b", "e")


LOG = """\
# a comment about 7 kills
 1    25 kills (worker 2, coordinator 12, both 11) in  117 s: the same results
 0   {} kills (worker 9, coordinator 10, both 6) in  133 s: {}
{} kills in 2 sweeps of 36 cells.
"""


@pytest.mark.parametrize(
    ("kills", "result", "begins", "ends"),
    [
        (25, "the same results", "After 50 kills every one of 2 sweeps ended", "spent before."),
        (975, "the same results", "After 1,000 kills every one of 2 sweeps ended", "for byte."),
        (25, "OTHER RESULTS", "After 50 kills 1 of 2 sweeps ended", "spent before."),
    ],
)
def test_a_log_of_kills_is_counted(kills: int, result: str, begins: str, ends: str) -> None:
    said = report.kills(LOG.format(kills, result, kills + 25))
    assert said.startswith(begins)
    assert said.endswith(ends)


def test_faults_that_kill_nobody_are_counted_apart() -> None:
    log = (
        " 0    25 kills (worker 9) and    3 other faults (interrupt 2, suspended 1) in   90 s: {}\n"
        " 0     5 kills (worker 5) and    0 other faults (none) in    9 s: the same results\n"
    )
    said = report.kills(log.format("the same results"))
    assert said.startswith("After 30 kills and 3 other faults every one of 2 sweeps ended")
    said = report.kills(log.format("FAILED, coordinator 7 hangs in 3 s: the same results"))
    assert said.startswith("After 30 kills and 3 other faults 1 of 2 sweeps ended")


def test_the_tasks_of_the_docs_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")
    spiral, wave, *python = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    [command] = re.findall(r"```sh\nweightdecay (.*?)\n```", page)
    (tmp_path / "spiral.py").write_text(spiral)
    (tmp_path / "wave_task.py").write_text(wave)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main([*shlex.split(command), "--epochs", "2"]) == 0
    assert list(tmp_path.glob("runs/*/log/*.jsonl"))
    names: dict[str, Any] = {}
    exec(compile("\n".join(python), "tasks.md", "exec"), names)
    runs = names["runs"]
    assert {run.config.task for run in runs} == {"wave_task:task"}
    assert {run.last.metric for run in runs} == {"absolute error"}
    assert len(names["others"]) == len(runs) == 6
    assert {run.last.metric for run in names["others"]} == {"squared error"}


def executed(page: str) -> dict[str, Any]:
    """Run the Python of a page of the docs, and return what it has named."""
    text = (Path(__file__).parents[1] / "docs" / page).read_text(encoding="utf-8")
    [block] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, page, "exec"), names)
    return names


def test_a_solution_is_used_as_the_docs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = executed("runs.md")
    error = weightdecay.runs.train(names["config"], folder="runs").last.test_error
    assert capsys.readouterr().out == f"tensor({error:.4f}) {error}\n"


@pytest.mark.parametrize("page", ["README.md", "docs/sweeps.md"])
def test_the_study_that_is_shown_has_as_many_cells_as_is_said(page: str, tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / page).read_text(encoding="utf-8")
    [study] = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "study.toml").write_text(study)
    assert len(read_study(tmp_path / "study.toml")) == 300
    assert " 300" in text


def test_a_sweep_runs_as_the_docs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = executed("sweeps.md")
    runs = weightdecay.sweeps.Store("landscape").runs()
    assert len(runs) == len(names["cells"]) == 12
    best = names["best"]
    assert best.last.validation_error == min(or_infinite(run.last.validation_error) for run in runs)
    said = f"{best.config.algorithm} {best.config.lr} {best.last.test_error}\n"
    assert capsys.readouterr().out == said


def test_what_was_judged_on_cifar10_is_what_its_records_say(tmp_path: Path) -> None:
    """The page is written again from a copy of the records, and must be the committed one."""
    records = ROOT / "results" / "cifar10-small"
    shutil.copytree(records, tmp_path / "copy")
    (tmp_path / "copy" / "judged.md").unlink()
    script = [sys.executable, str(tmp_path / "copy" / "judge.py")]
    subprocess.run(script, check=True, capture_output=True)
    told = (tmp_path / "copy" / "judged.md").read_text("utf-8")
    assert told == (records / "judged.md").read_text("utf-8"), "`make book` brings it up to date"
