"""What the marks of tests mean: `cpu`, `gpu`, and `slow`, which `make test` leaves out."""

import ast
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


@pytest.mark.cpu("it looks for the GPU, and must not find it")
def test_what_is_marked_cpu_sees_no_gpu() -> None:
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""  # for the processes that it starts
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert torch.get_default_device().type == torch.zeros(1).device.type == "cpu"


@pytest.mark.gpu
def test_what_is_marked_gpu_has_its_tensors_there() -> None:
    assert torch.cuda.is_available()
    assert torch.zeros(1).is_cuda


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("target", "options"), [("check", []), ("test", ["-m", "not slow"])])
def test_make_check_runs_every_test_once_and_make_test_all_but_the_slow(
    target: str, options: list[str]
) -> None:
    command = ["make", "--dry-run", "--no-print-directory", target]
    lines = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    words = [shlex.split(line) for line in lines if line.startswith(".venv/bin/pytest")]
    assert words == [[".venv/bin/pytest", *options]]


def test_of_every_file_of_tests_something_is_quick() -> None:
    """So that `make test` is a pass over everything; but a type checker takes half a minute."""
    slow = set()
    for path in ROOT.glob("tests/test_*.py"):
        nodes = ast.parse(path.read_text(encoding="utf-8")).body
        tests = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name[:5] == "test_"]
        marks = [list(map(ast.unparse, test.decorator_list)) for test in tests]
        slow |= {path.name} if all("pytest.mark.slow" in found for found in marks) else set()
    assert slow == {"test_types.py"}
