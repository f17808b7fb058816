"""How many configurations an hour are trained: by a loop, by Ray Tune, and by us, in one run.

    python -m benchmarks.sweeps --out rows.jsonl         # two cores, the MNIST-1D net
    python -m benchmarks.sweeps --gpu --out rows.jsonl   # a GPU, the conv net, without Ray

Every way trains the same cells, a quarter of them by each algorithm, and evaluates them on the
validation and the test set after each epoch. The loop is what one writes with torch.optim: a cell
after the other, in one process that is warm already. Ray Tune has that loop as its trainable, a
trial a cell, and the actors of finished trials are used again, which is its faster way. Ray runs
before anybody's clock does; our workers begin within ours. torch has no SGDW: where we train that,
the others train SGD. Ray Tune needs pip install 'ray[tune]'.
"""

import argparse
import contextlib
import functools
import logging
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.optim.lr_scheduler import CosineAnnealingLR

from benchmarks.step import environment, tell
from weightdecay.records import RunConfig, or_infinite
from weightdecay.runs.build import model_of, updates_per_epoch
from weightdecay.sweeps import Store, sweep_events
from weightdecay.sweeps.engine import Engine
from weightdecay.sweeps.local import Local
from weightdecay.tasks import Examples, Task, load, split

ALGORITHMS = ("adamw", "adam", "sgdw", "sgd")
CHUNK = 1000
CORES = 2


def cells(count: int, epochs: int, gpu: bool) -> list[RunConfig]:
    """Return a grid of learning rates and decays around good values."""
    found = []
    for number in range(count):
        algorithm = ALGORITHMS[number % 4]
        rate, decay = divmod(number // 4, 4)
        way = "normalized_decay" if algorithm.endswith("w") else "l2"
        strength = 0.05 if way == "normalized_decay" else 0.0005
        decay_of: dict[str, Any] = {way: strength * 2.0**-decay}
        found.append(
            RunConfig(
                task="benchmarks.lanes:images" if gpu else "mnist1d",
                model="convnet" if gpu else "mlp",
                algorithm=algorithm,
                lr=(2**-8 if "adam" in algorithm else 2**-4) * 2.0 ** (-rate / 4),
                epochs=epochs,
                batch=128 if gpu else 64,
                precision="bfloat16" if gpu else "float32",
                **decay_of,
            )
        )
    return found


@functools.cache
def data(name: str, device: str) -> Task:
    """Return a task, split as in a sweep, loaded once per process."""
    return split(load(name), validation=None, data=None).to(device)


def optimizer_of(config: RunConfig, parameters: Any, updates: int) -> torch.optim.Optimizer:
    """Return torch's nearest optimizer; its decay is ours divided by the learning rate."""
    decay = config.l2
    if config.normalized_decay is not None:
        decay = config.normalized_decay / math.sqrt(updates) / config.lr
    kind: Callable[..., torch.optim.Optimizer] | None = {
        "adamw": torch.optim.AdamW,
        "adam": torch.optim.Adam,
    }.get(config.algorithm)
    if kind is None:
        kind = functools.partial(torch.optim.SGD, momentum=0.9)
    return kind(parameters, lr=config.lr, weight_decay=decay)


def plain_loop(config: RunConfig, device: str) -> Iterator[dict[str, float]]:
    """Train a cell with an ordinary loop, and yield the test error of each epoch."""
    task = data(config.task, device)
    image = task.train.inputs.ndim == 4
    sixteen = config.precision == "bfloat16"
    model = model_of(config, task).to(device)
    if image:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    per_epoch = updates_per_epoch(config, task)
    optimizer = optimizer_of(config, model.parameters(), config.epochs * per_epoch)
    schedule = CosineAnnealingLR(optimizer, T_max=config.epochs * per_epoch)

    def forward(inputs: torch.Tensor) -> torch.Tensor:
        if image:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device, torch.bfloat16, enabled=sixteen):
            logits: torch.Tensor = model(inputs).float()
            return logits

    @torch.no_grad()
    def judged(examples: Examples) -> tuple[float, float]:
        model.eval()
        sums = torch.zeros(2, device=device)
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            logits = forward(task.prepare(chunk.inputs, None))
            sums[0] += functional.cross_entropy(logits, chunk.targets, reduction="sum")
            sums[1] += (logits.argmax(1) != chunk.targets).sum()
        model.train()
        loss, error = (sums / len(examples)).tolist()
        return loss, error

    model.train()
    for epoch in range(config.epochs):
        order = torch.randperm(len(task.train), device=device)
        total = torch.zeros((), device=device)
        for index in order[: per_epoch * config.batch].view(per_epoch, config.batch):
            chosen = task.train[index]
            words = torch.randint(2**32, (len(index),), device=device) if task.augmented else None
            optimizer.zero_grad()
            logits = forward(task.prepare(chosen.inputs, words))
            loss = functional.cross_entropy(logits, chosen.targets)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += loss.detach()
        row = {"epoch": epoch + 1, "train_loss": float(total) / per_epoch}
        assert task.choices is not None
        row["validation_loss"], row["validation_error"] = judged(task.choices)
        row["test_loss"], row["test_error"] = judged(task.test)
        yield row


def by_loop(configs: list[RunConfig], device: str) -> list[float]:
    """Train cells one after the other, and return their last test errors."""
    return [list(plain_loop(config, device))[-1]["test_error"] for config in configs]


def trial(parameters: dict[str, Any]) -> None:
    """Train a cell for Ray Tune."""
    from ray import tune

    from benchmarks import sweeps  # this module, which keeps the data between trials

    torch.set_num_threads(1)
    for row in sweeps.plain_loop(RunConfig.from_dict(parameters["cell"]), "cpu"):
        tune.report(row)


def by_tune(configs: list[RunConfig]) -> list[float]:
    """Train cells as trials of Ray Tune, one per core at a time."""
    from ray import tune

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        tuner = tune.Tuner(
            tune.with_resources(trial, {"cpu": 1}),
            param_space={"cell": tune.grid_search([config.as_dict() for config in configs])},
            tune_config=tune.TuneConfig(max_concurrent_trials=CORES, reuse_actors=True),
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        )
        found: Any = tuner.fit()
        return [result.metrics["test_error"] for result in found]


def by_us(configs: list[RunConfig], engine: Engine) -> list[float]:
    """Train cells as a sweep."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in sweep_events(configs, folder=folder, engine=engine):
            pass
        return [or_infinite(run.last.test_error) for run in Store(folder).runs()]


def timed(
    way: str, cores: int, configs: list[RunConfig], train: Callable[[list[RunConfig]], list[float]]
) -> dict[str, Any]:
    """Return a row with the time that cells took."""
    begun = time.perf_counter()
    errors = train(configs)
    seconds = time.perf_counter() - begun
    assert len(errors) == len(configs)
    return {
        "way": way,
        "cells": len(configs),
        "cores": cores,
        "seconds": seconds,
        "an_hour": 3600 * len(configs) / seconds,
        "least_test_error": min(errors),
    }


def start_ray() -> None:
    """Start Ray as our engine does, for Ray Tune and for us."""
    import ray

    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    ray.init("local", num_cpus=CORES, include_dashboard=False, **quiet)


def measure(count: int, epochs: int, by_loop_count: int | None, gpu: bool) -> Iterator[Any]:
    """Yield one row per way of training."""
    configs, device = cells(count, epochs, gpu), "cuda" if gpu else "cpu"
    yield {**environment(), "epochs": epochs, "model": configs[0].model}
    few = configs[:by_loop_count]
    data(configs[0].task, device)
    by_loop([cells(1, 1, gpu)[0]], device)
    yield timed("plain loop", 1, few, functools.partial(by_loop, device=device))
    if gpu:
        data.cache_clear()
        torch.cuda.empty_cache()
        engine = Local(1, "cuda")
        yield timed("weightdecay", 1, configs, functools.partial(by_us, engine=engine))
        return
    yield timed(
        "weightdecay, processes", CORES, configs, lambda some: by_us(some, Local(CORES, "cpu"))
    )
    from weightdecay.sweeps.ray_engine import OnRay

    start_ray()
    yield timed(
        "weightdecay, Ray", CORES, configs, lambda some: by_us(some, OnRay(None, CORES, "cpu"))
    )
    yield timed("Ray Tune", CORES, configs, by_tune)


def main() -> None:
    """Measure, print the rows, and append them to a file if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--cells", type=int, help="default 256, on a GPU 32")
    parser.add_argument("--epochs", type=int, help="default 27, on a GPU 16")
    parser.add_argument("--loop-cells", type=int, help="cells trained by the loop, default all")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    options = parser.parse_args()
    count = options.cells or (32 if options.gpu else 256)
    epochs = options.epochs or (16 if options.gpu else 27)
    if not options.gpu:
        torch.set_num_threads(1)
    tell(measure(count, epochs, options.loop_cells, options.gpu), options.out)


if __name__ == "__main__":
    main()
