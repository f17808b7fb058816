"""What a strict type checker tells a user, before anything runs."""

import re
from pathlib import Path

import pytest

import weightdecay

api = pytest.importorskip("mypy.api", reason="mypy is not installed: it is in the dev extra")

FORGOTTEN = (
    "AdamW(model.parameters(), lr=1e-3)",
    "AdamW(model.named_parameters(), 1e-3, betas=(0.9, 0.99))",
    "AdamW([torch.nn.Parameter(torch.zeros(2))])",
    "AdamW(model.parameters(), weight_decay=None)",
    "SGDW(model.parameters(), lr=0.1)",
    "SGDW(model.parameters(), 0.1, schedule=Cosine(9), kernel='fused')",
    "AdamWR(model.parameters(), 0.1, first=9)",
)
STATED = (
    "AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)",
    "AdamW(model.named_parameters(), weight_decay=Normalized(0.05), schedule=Cosine(9))",
    "AdamW([{'params': model.parameters(), 'weight_decay': 1e-4}], lr=1e-3, kernel='fused')",
    "AdamW(parameter_groups(model, weight_decay=Normalized(0.05)), schedule=Cosine(9))",
    "AdamW(anything, weight_decay=1e-4)",
    "SGDW(model.parameters(), 0.1, weight_decay=0)",
    "SGDW([{'params': model.parameters(), 'weight_decay': 1e-4}], 0.1)",
    "SGDWR(model.parameters(), 0.1, first=9, normalized_decay=0.05, low=(0.1, 0.0), nesterov=True)",
)
PREAMBLE = """\
import torch
from torch.optim.optimizer import ParamsT
from weightdecay import SGDW, SGDWR, AdamW, AdamWR, Cosine, Normalized, parameter_groups

def build(model: torch.nn.Module, anything: ParamsT) -> None:
"""


@pytest.mark.slow
def test_a_forgotten_decay_is_a_type_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(Path(weightdecay.__file__).parents[1]))
    lines = [*FORGOTTEN, *STATED]
    program = tmp_path / "program.py"
    program.write_text(PREAMBLE + "".join(f"    {line}\n" for line in lines))
    said, errors, _ = api.run(["--strict", "--hide-error-context", str(program)])
    assert errors == ""
    numbers = re.findall(r"program\.py:(\d+): error: ", said)
    wrong = {lines[int(number) - PREAMBLE.count("\n") - 1] for number in numbers}
    assert wrong == set(FORGOTTEN), said
