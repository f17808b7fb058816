"""A process that trains the toy in lanes and can be killed: python -m tests.trainee FOLDER.

It saves all the time, so that a kill often meets a half-written file.
"""

import gc
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist

from tests.toys import config, records_of
from weightdecay.records import RunConfig
from weightdecay.runs import pack, train_events


def lanes(model: str = "mlp") -> list[RunConfig]:
    """Return what is trained: 900 updates of three lanes."""
    restarts = "restarts,first=10,factor=2"
    return [
        config(model=model, epochs=100, seed=1, schedule=restarts),
        config(model=model, epochs=100, seed=2, algorithm="sgdw"),
        config(model=model, epochs=100, seed=3, algorithm="adam", l2=1e-3),
    ]


def main(folder: str, model: str, shared: str = "alone") -> None:
    torch.set_num_threads(1)
    pack.CHECKPOINT_EVERY = 0.02
    chosen = lanes(model)
    if shared == "shared":
        dist.init_process_group("gloo")
        chosen = [config(model=model, epochs=4)]
    found = records_of(train_events(chosen, folder=folder, device="cpu"))
    if not dist.is_initialized() or dist.get_rank() == 0:
        plain = {run: [asdict(record) for record in records] for run, records in found.items()}
        (Path(folder) / "found.json").write_text(json.dumps(plain))
    if dist.is_initialized():
        dist.barrier()
        gc.collect()
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
