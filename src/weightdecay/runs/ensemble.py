"""The snapshot ensemble: the solutions of a run's cycles, used together.

Their probabilities are averaged, beginning with the most recent solution, which is also the one
recommended on its own. If a task has its own metric, the outputs are averaged as they are.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from weightdecay.records import RunConfig, finite
from weightdecay.runs.build import model_of
from weightdecay.runs.checkpoints import RunFiles
from weightdecay.runs.lanes import CHUNK, judged
from weightdecay.tasks import Source, Task, given


@dataclass(frozen=True)
class Ensemble:
    """The test errors of a run's last `members` solutions together."""

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
    """Return the test errors of the last solution, of the last two together, and so on."""
    whole = given(config.task, task).to(device)
    paths = RunFiles(Path(folder), config).solutions()
    if not paths:
        raise ValueError(
            f"Run {config.identity} must have a solution from the end of a cycle, but {folder} has "
            "none. Train it with this folder."
        )
    total = torch.zeros(0)
    found = []
    for members, path in enumerate(reversed(paths), 1):
        outputs = _outputs(config, whole, path)
        total = outputs if members == 1 else total + outputs
        together = total.log() if whole.measure.classifies else total / members
        sums, _ = judged(whole.measure, together, whole.test.targets)
        _, error, top5 = (sums / len(whole.test)).tolist()
        found.append(Ensemble(members, error, finite(top5)))
    return found


@torch.no_grad()
def _outputs(config: RunConfig, task: Task, path: Path) -> Tensor:
    """Return a solution's probabilities, [example, …, class], or its outputs as they are."""
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
