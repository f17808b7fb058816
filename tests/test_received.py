"""A folder that came from somebody else: reading it runs nothing of what it names."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weightdecay.cli import main

pytestmark = pytest.mark.cpu("what is read does not depend on the device")
# A task and an optimizer that leave a file when their module is imported.
TRAP = """
from pathlib import Path

from torch.optim import Adagrad as Algorithm
from tests.toys import toy as task

Path("ran").touch()
"""
STUDY = """
task = "trap:task"
epochs = 2
batch = 30
lr = "2^-8..2^-6"
weight_decay = 0.001

[[grid]]
model = "linear"
algorithm = ["adamw", "trap:Algorithm"]

[[grid]]
model = "missing"
algorithm = "adamw"
"""
READING = [
    ["status", "received"],
    ["status", "received", "--failures", "--check"],
    ["watch", "received"],
    ["export", "received", "table.csv"],
    ["merge", "mine", "received"],
    ["status", "mine"],
]


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cells that are done and cells that have failed, and the module that they name, in reach."""
    monkeypatch.chdir(tmp_path)
    Path("trap.py").write_text(TRAP)
    Path("study.toml").write_text(STUDY)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert main(["sweep", "study.toml", "--out", "received", "--on", "here"]) == 1
    sys.modules.pop("trap")
    yield
    sys.modules.pop("trap", None)


def test_reading_a_folder_imports_nothing_that_it_names(received: None) -> None:
    ran = Path("ran")
    assert ran.exists()  # by the sweep, which trained
    ran.unlink()
    for words in READING:
        command = [sys.executable, "-m", "weightdecay", *words]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Traceback" not in ended.stderr
        assert not ran.exists(), words
    lines = Path("table.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 6
    assert any("trap:Algorithm" in line for line in lines)
