"""What docs/integrations.md shows, run with the libraries it names: `make peers`."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from weightdecay import AdamW, Cosine

PAGE = (Path(__file__).parents[1] / "docs" / "integrations.md").read_text("utf-8")
BLOCKS: dict[str, list[str]] = {
    title: re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    for title, text in re.findall(
        r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE
    )
}
BATCHES, EPOCHS = 4, 3
UPDATES = BATCHES * EPOCHS
pytestmark = [
    pytest.mark.cpu("a trainer would take the GPU for itself"),
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),  # of few workers, no loggers
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]


class Net(nn.Module):
    """A model as Trainer takes them: it returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1)

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        return {"loss": self.head(self.norm(self.body(inputs))).sub(1).square().mean()}


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    loss: Tensor = model(batch)["loss"]
    return loss


def run(block: str, **names: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    model = Net()
    data: Any = torch.randn(BATCHES * 8, 4)
    names = {
        "model": model,
        "start": [param.detach().clone() for param in model.parameters()],
        "batches": DataLoader(data, batch_size=8),
        "dataset": [{"inputs": row} for row in data],
        "steps": UPDATES,
        "loss_of": loss_of,
        **names,
    }
    exec(block, names)
    return names


def check_trained(names: dict[str, Any], opt: Any, *, updates: int = UPDATES) -> None:
    assert [group["updates"] for group in opt.param_groups] == [updates] * 2
    for param, start in zip(names["start"], names["model"].parameters(), strict=True):
        assert not torch.equal(param, start)


def quiet(folder: Path) -> dict[str, Any]:
    return {
        "output_dir": folder,
        "per_device_train_batch_size": 8,
        "report_to": [],
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "use_cpu": True,
    }


def test_the_recipe_for_a_plain_loop_trains() -> None:
    names = run(BLOCKS["A plain loop"][0])
    check_trained(names, names["opt"])
    assert names["opt"].cycle.index == 2
    assert names["opt"].cycle_ended
    assert names["kept"].keys() == names["model"].state_dict().keys()
    names["opt"].load_state_dict(names["checkpoint"]["optimizer"])


def test_the_recipe_for_lightning_trains(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed: `make peers` installs it")
    options = {
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": tmp_path,
    }
    names = run(BLOCKS["Lightning"][0], options=options)
    check_trained(names, names["opt"])
    assert names["opt"].schedules[0] == Cosine(UPDATES)
    assert names["opt"].cycle_ended


def trainers() -> Any:
    pytest.importorskip(
        "accelerate", reason="accelerate is not installed: `make peers` installs it"
    )
    return pytest.importorskip(
        "transformers", reason="transformers is not installed: `make peers` installs it"
    )


def test_trainer_takes_an_optimizer_that_was_built(tmp_path: Path) -> None:
    trainers()
    names = run(BLOCKS["Transformers"][0], options=quiet(tmp_path))
    check_trained(names, names["opt"])
    assert names["opt"].applied()[0].lr == pytest.approx(1e-3 * Cosine(UPDATES)(UPDATES - 1))
    assert names["opt"].applied()[0].decay > 0


def test_trainer_builds_an_optimizer_that_decays(tmp_path: Path) -> None:
    trainers()
    names = run(BLOCKS["Transformers"][1], options=quiet(tmp_path))
    opt = names["trainer"].optimizer.optimizer
    check_trained(names, opt)
    assert [group["weight_decay"] for group in opt.param_groups] == [1e-4, 0]
    used = opt.applied()[0]
    assert used.lr == pytest.approx(1e-3 * Cosine(UPDATES)(UPDATES - 1))
    assert used.decay == pytest.approx(1e-4 * Cosine(UPDATES)(UPDATES - 1))  # which follows lr


def test_trainer_overrides_a_decay_given_as_a_keyword(tmp_path: Path) -> None:
    """Why the page says where to state it. If this fails, Transformers has changed: say that."""
    library = trainers()
    trainer = library.Trainer(
        model=Net(),
        args=library.TrainingArguments(**quiet(tmp_path)),
        optimizer_cls_and_kwargs=(AdamW, {"lr": 1e-3, "weight_decay": 1e-4}),
    )
    opt = trainer.create_optimizer()
    assert [group["weight_decay"] for group in opt.param_groups] == [0, 0]


def test_a_prepared_optimizer_has_ours_inside() -> None:
    pytest.importorskip(
        "accelerate", reason="accelerate is not installed: `make peers` installs it"
    )
    names = run(BLOCKS["Accelerate"][0])
    prepared = names["prepared"]
    for name in ("cycle_ended", "scheduler"):
        assert not hasattr(prepared, name)  # else the page need not say where they are
    assert prepared.optimizer is names["opt"]
    check_trained(names, names["opt"], updates=UPDATES // 2)
    assert names["opt"].cycle_ended
    assert names["kept"].keys() == names["model"].state_dict().keys()
    assert names["scheduler"].get_last_lr() == [1e-3, 1e-3]
