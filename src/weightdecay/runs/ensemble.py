"""The snapshot ensemble: the solutions of a run's cycles, asked together.

Their probabilities are averaged, the most recent solutions first; alone, the most recent is the one
recommended. Where a task has a metric of its own, outputs are averaged as they are.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from weightdecay.records import RunConfig, finite
from weightdecay.runs.build import model_of
from weightdecay.runs.checkpoints import Shelf
from weightdecay.runs.lanes import CHUNK, judged
from weightdecay.tasks import Source, Task, given


@dataclass(frozen=True)
class Ensemble:
    """The test errors of a run's last so many solutions together."""

    members: int
    error: float
    error_top5: float | None


def ensemble(
    config: RunConfig,
    *,
    folder: Path | str,
    device: torch.device | str = "cpu",
    task: Source | None = None,
) -> list[Ensemble]:
    """Return how the last solution does on the test set, the last two together, and so on."""
    whole = given(config.task, task).to(device)
    paths = Shelf(Path(folder), config).solutions()
    if not paths:
        raise ValueError(
            f"Run {config.identity} must have ended a cycle to have a solution, got none in "
            f"{folder}. Train it with this folder."
        )
    total = torch.zeros(0)
    found = []
    for members, path in enumerate(reversed(paths), 1):
        answers = _answers(config, whole, path)
        total = answers if members == 1 else total + answers
        together = total.log() if whole.measure.classifies else total / members
        sums, _ = judged(whole.measure, together, whole.test.targets)
        _, error, top5 = (sums / len(whole.test)).tolist()
        found.append(Ensemble(members, error, finite(top5)))
    return found


@torch.no_grad()
def _answers(config: RunConfig, task: Task, path: Path) -> Tensor:
    """Return a solution's probabilities, [example, …, class], or what it returns otherwise."""
    model = model_of(config, task)
    model.load_state_dict(torch.load(path, "cpu", weights_only=True))
    device = task.test.inputs.device
    model.to(device).eval()
    with torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        chunks = [
            model(task.prepare(task.test.inputs[start : start + CHUNK], None)).float()
            for start in range(0, len(task.test), CHUNK)
        ]
    if task.measure.classifies:
        chunks = [chunk.softmax(-1) for chunk in chunks]
    return torch.cat(chunks).double()
