"""Training by Lightning's Trainer, the real one: `make peers`."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from weightdecay import AdamW, Normalized, WarmRestarts

lightning: Any = pytest.importorskip(
    "lightning", reason="lightning is not installed: `make peers` installs it and runs these"
)
precisions: Any = pytest.importorskip("lightning.pytorch.plugins")
callbacks: Any = pytest.importorskip("lightning.pytorch.callbacks")
pytestmark = [
    pytest.mark.cpu("Lightning would take the GPU for itself"),
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),  # of few workers, no loggers
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]
MIXED = ["bf16-mixed", "16-mixed"]


class Net(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.body, self.head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)

    def training_step(self, batch: Tensor) -> Tensor:
        loss: Tensor = self.head(self.body(batch)).square().mean()
        return 100 * loss  # whose gradients are worth clipping

    def configure_optimizers(self) -> Any:
        return AdamW(
            self.parameters(), 0.01, weight_decay=Normalized(0.1), schedule=WarmRestarts(3)
        )


class Tuned(Net):
    def configure_optimizers(self) -> Any:
        params = [param for param in self.parameters() if param.requires_grad]
        return AdamW(params, 0.01, weight_decay=Normalized(0.1), schedule=WarmRestarts(3))


def batches() -> Any:
    return torch.utils.data.DataLoader(
        torch.randn(12, 4, generator=torch.Generator().manual_seed(5)),  # type: ignore[arg-type]
        batch_size=4,
    )


def mixed(precision: str) -> Any:
    """Return the plugin: asked by its name for float16 on the CPU, Lightning takes bfloat16."""
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0) if precision == "16-mixed" else None
    return precisions.MixedPrecision(precision, "cpu", scaler)


def fit(net: Net, folder: Path, *, epochs: int, resume: Path | None = None, **options: Any) -> Any:
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    trainer.fit(net, batches(), ckpt_path=resume, weights_only=False)
    return trainer


@pytest.mark.parametrize("precision", MIXED)
def test_gradients_are_clipped_in_mixed_precision(precision: str, tmp_path: Path) -> None:
    """As a loop of one's own does it: unscale, clip, step."""
    net, twin = Net(), Net()
    fit(net, tmp_path, epochs=2, plugins=[mixed(precision)], gradient_clip_val=1.0)
    half = precision == "16-mixed"
    opt, scaler = twin.configure_optimizers(), torch.amp.GradScaler("cpu", 8.0, enabled=half)
    dtype = torch.float16 if half else torch.bfloat16
    for batch in [*batches()] * 2:
        opt.zero_grad()
        with torch.autocast("cpu", dtype=dtype, cache_enabled=False):
            loss = twin.training_step(batch)
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        scaler.unscale_(opt)
        assert torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0) > 1
        scaler.step(opt)
        scaler.update()
    assert opt.param_groups[0]["updates"] == 6
    assert all(map(torch.equal, net.parameters(), twin.parameters()))


@pytest.mark.parametrize("precision", MIXED)
def test_a_resumed_training_is_the_whole_one_bit_for_bit(precision: str, tmp_path: Path) -> None:
    whole, begun, resumed = Net(), Net(), Net()

    def train(net: Net, **options: Any) -> Any:
        return fit(net, tmp_path, plugins=[mixed(precision)], gradient_clip_val=1.0, **options)

    train(whole, epochs=3)
    train(begun, epochs=1).save_checkpoint(tmp_path / "one.ckpt")
    trainer = train(resumed, epochs=3, resume=tmp_path / "one.ckpt")
    assert trainer.optimizers[0].param_groups[0]["updates"] == 9
    assert not any(map(torch.equal, begun.parameters(), whole.parameters()))
    assert all(map(torch.equal, resumed.parameters(), whole.parameters()))


class Unfreeze(callbacks.BaseFinetuning):  # type: ignore[misc]
    """Trains the body from the second epoch on."""

    def freeze_before_training(self, net: Net) -> None:
        self.freeze(net.body)

    def finetune_function(self, net: Net, epoch: int, optimizer: Any) -> None:
        if epoch >= 1:  # a resumed one is frozen again
            self.make_trainable(net.body)
        if epoch == 1:
            self.unfreeze_and_add_param_group(net.body, optimizer, lr=0.005)


def test_a_fine_tuning_that_added_groups_is_resumed(tmp_path: Path) -> None:
    """Lightning puts a list of its own in place of `param_groups`, with more groups than built."""
    whole, begun, resumed = Tuned(), Tuned(), Tuned()
    fit(whole, tmp_path, epochs=4, callbacks=[Unfreeze()])
    first = fit(begun, tmp_path, epochs=2, callbacks=[Unfreeze()])
    first.save_checkpoint(tmp_path / "two.ckpt")
    trainer = fit(resumed, tmp_path, epochs=4, callbacks=[Unfreeze()], resume=tmp_path / "two.ckpt")
    assert trainer.optimizers[0].schedules == (WarmRestarts(3), WarmRestarts(3))
    assert [g["updates"] for g in trainer.optimizers[0].param_groups] == [12, 12]
    assert all(map(torch.equal, resumed.parameters(), whole.parameters()))
