"""What the README shows is what one sees."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

import weightdecay
from weightdecay.cli import main
from weightdecay.sweeps import read_study

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
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


def test_the_python_lines_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one namespace, with a model as large as the one that `explain` shows."""
    names: dict[str, Any] = {"torch": torch, "explain": weightdecay.explain}
    names["model"] = torch.nn.Linear(11_653_977, 1)
    monkeypatch.setattr(torch, "save", lambda *_: None)
    printed: list[str] = []
    names["print"] = lambda value: printed.append(str(value))
    for block in PYTHON:
        code, _, shown = block.removeprefix(">>> ").partition("\n")
        if block.startswith(">>> "):
            exec(code, names)
            assert printed.pop() == shown.rstrip("\n")
        else:
            exec(block, names)


def test_the_task_of_the_docs_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")
    [module] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    [command] = re.findall(r"```sh\nweightdecay (.*?)\n```", page)
    (tmp_path / "spiral.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(command), "--epochs", "2"]) == 0
    assert list(tmp_path.glob("runs/*/records.jsonl"))


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
    records = list(weightdecay.train(names["config"], folder="runs"))
    [last] = [e for e in records if isinstance(e, weightdecay.Record) and e.epoch == 2]
    assert capsys.readouterr().out == f"tensor({last.test_error:.4f})\n"


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
    runs = weightdecay.Store("landscape").runs()
    assert len(runs) == len(names["cells"]) == 12
    best = names["best"]
    assert best.last.validation_error == min(run.last.validation_error for run in runs)
    said = f"{best.config.algorithm} {best.config.lr} {best.last.test_error}\n"
    assert capsys.readouterr().out == said
