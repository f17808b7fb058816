"""One training over several processes: DDP through torchrun, on gloo."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toys import config, records_of
from weightdecay.runs import train_events
from weightdecay.runs.checkpoints import RunFiles


def launch(folder: Path, model: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["-m", "tests.trainee", str(folder), model, "shared"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_two_processes_train_what_one_would(tmp_path: Path) -> None:
    """Without batch statistics, which each process has its own of, but for rounding the same."""
    process = launch(tmp_path, "linear")
    assert process.returncode == 0, process.stderr
    lane = config(model="linear", epochs=4)
    [found] = json.loads((tmp_path / "found.json").read_text()).values()
    [alone] = records_of(train_events(lane, device="cpu")).values()
    for one, other in zip(found, alone, strict=True):
        for name in ("train_loss", "train_error", "test_loss", "test_error", "weight_norm"):
            assert one[name] == pytest.approx(getattr(other, name), rel=1e-5)
        assert one["updates"] == other.updates
    # What one of them kept, the other did not write again.
    assert len(RunFiles(tmp_path, lane).solutions()) == 1


@pytest.mark.slow
def test_two_processes_take_a_run_up_where_it_was(tmp_path: Path) -> None:
    assert launch(tmp_path, "mlp").returncode == 0
    first = (tmp_path / "found.json").read_bytes()
    [newest, *_] = RunFiles(tmp_path, config(epochs=4)).checkpoints()
    newest.unlink()
    assert launch(tmp_path, "mlp").returncode == 0
    assert (tmp_path / "found.json").read_bytes() == first
