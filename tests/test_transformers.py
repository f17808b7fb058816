"""Models as transformers builds them, and training by its Trainer: `make peers`."""

from pathlib import Path
from typing import Any

import pytest
import torch

from weightdecay import AdamW, Cosine, explain, parameter_groups

transformers: Any = pytest.importorskip(
    "transformers", reason="transformers is not installed: `make peers` installs it and runs these"
)

WIDE = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
GROUPED = {**WIDE, "num_key_value_heads": 1, "head_dim": 8, "pad_token_id": 0}
T5 = {"vocab_size": 32, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
GPT2 = {
    "vocab_size": 32,
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
# Each model's sizes, and the classes of which some parameters decay.
MODELS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "Llama": (GROUPED, {"Linear", "Embedding"}),
    "Qwen3": (GROUPED, {"Linear", "Embedding"}),
    "Mistral": (GROUPED, {"Linear", "Embedding"}),
    "Gemma2": (GROUPED, {"Linear", "Gemma2TextScaledWordEmbedding"}),
    "T5": (T5, {"Linear", "Embedding"}),
    "Bert": (WIDE, {"Linear", "Embedding"}),
    "GPT2": (GPT2, {"Conv1D", "Embedding"}),
}


def build(name: str) -> Any:
    config = getattr(transformers, f"{name}Config")(**MODELS[name][0])
    return getattr(transformers, f"{name}Model")(config)


@pytest.mark.parametrize("name", MODELS)
def test_only_matrices_and_embeddings_decay(name: str) -> None:
    model = build(name)
    groups = parameter_groups(model, weight_decay=0.1)
    assert {d.module for d in groups.decisions if d.decays} == MODELS[name][1]
    assert all(len(d.shape) == 2 for d in groups.decisions if d.decays)
    assert all(len(d.shape) == 1 for d in groups.decisions if not d.decays)
    assert explain(AdamW(groups, 0.1), model).unusual == ()


@pytest.mark.parametrize("name", MODELS)
def test_explain_names_the_norms_that_decay_when_all_parameters_do(name: str) -> None:
    model = build(name)
    unusual = explain(AdamW(model.parameters(), 0.1, weight_decay=0.1), model).unusual
    flat = [name for name, param in model.named_parameters() if param.dim() == 1]
    assert unusual is not None
    assert set(unusual) == set(flat)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(4, 1)

    def forward(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.body(inputs).square().mean()}


@pytest.mark.cpu("Trainer would take the GPU for itself")
def test_trainer_logs_the_lr_that_an_update_used(tmp_path: Path) -> None:
    net = Net()
    opt = AdamW(net.parameters(), 0.01, weight_decay=1e-4, schedule=Cosine(5))
    trainer = transformers.Trainer(
        model=net,
        args=transformers.TrainingArguments(
            output_dir=tmp_path,
            max_steps=5,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=[{"inputs": torch.randn(4)} for _ in range(40)],
        optimizers=(opt, opt.scheduler()),
    )
    trainer.train()
    logged = [entry["learning_rate"] for entry in trainer.state.log_history if "loss" in entry]
    assert logged == pytest.approx([0.01 * Cosine(5)(t) for t in range(5)], rel=1e-12)
