"""How many images (or, on a CPU, updates) a second configurations train at, alone and as lanes.

    python -m benchmarks.lanes              # a GPU: the small conv net and Shake-Shake 26
    python -m benchmarks.lanes --cpu        # the MNIST-1D net

The yardstick is a plain loop with torch.optim.AdamW, on the same machine in the same run: on a GPU
with bfloat16 autocast and channels last too. Data are random bytes of CIFAR-10's shape, on the
device; every batch is chosen, flipped, cropped and normalized there. Medians of five measurements.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from benchmarks.step import environment, sync, tell
from weightdecay.records import RunConfig
from weightdecay.runs.captured import Captured
from weightdecay.runs.lanes import Lanes
from weightdecay.runs.separate import Separate
from weightdecay.runs.stacked import Stacked
from weightdecay.tasks import Examples, Task, load, split
from weightdecay.tasks.images import CIFAR10
from weightdecay.tasks.models import ConvNet, ShakeShake26

GPU = {
    "convnet": (1, 4, 8, 16),
    "shakeshake26,width=64": (1, 4),
    "shakeshake26,width=32": (1, 4),
}
CPU = {"mlp": (1, 8, 24, 72)}


def images() -> Task:
    """Return random images of CIFAR-10's shape."""
    generator = torch.Generator().manual_seed(0)

    def examples(count: int) -> Examples:
        pixels = torch.randint(256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
        return Examples(pixels, torch.randint(10, (count,), generator=generator))

    models: dict[str, Callable[..., torch.nn.Module]] = {
        "convnet": partial(ConvNet, 10),
        "shakeshake26": partial(ShakeShake26, classes=10),
    }
    return Task("random", examples(50_000), examples(10_000), 10, models, CIFAR10)


def configurations(model: str, lanes: int, cpu: bool) -> list[RunConfig]:
    """Return lanes that differ in their learning rate."""
    return [
        RunConfig(
            task="mnist1d" if cpu else "random",
            model=model,
            algorithm="adamw",
            lr=1e-3 * 2.0 ** (-lane / 8),
            normalized_decay=0.05,
            epochs=100,
            batch=64 if cpu else 128,
            precision="float32" if cpu else "bfloat16",
        )
        for lane in range(lanes)
    ]


def plain_loop(config: RunConfig, task: Task, device: torch.device) -> Callable[[int], None]:
    """Return an ordinary training loop."""
    name, *width = config.model.split(",width=")
    options = {"width": int(width[0])} if width else {}
    model = task.models[name](**options).to(device)
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if hasattr(model, "generator"):
        model.generator = torch.Generator(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    count = len(task.train)
    sixteen = config.precision == "bfloat16"

    def advance(updates: int) -> None:
        order = torch.randperm(count, device=device)
        for update in range(updates):
            first = update * config.batch % (count - config.batch)
            chosen = task.train[order[first : first + config.batch]]
            words = torch.randint(2**32, (config.batch,), device=device)
            inputs = task.prepare(chosen.inputs, words if task.augmented else None)
            if inputs.ndim == 4:
                inputs = inputs.contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16, enabled=sixteen):
                logits = model(inputs)
            functional.cross_entropy(logits.float(), chosen.targets).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return advance


def speed(advance: Callable[[int], None], device: str, seconds: float) -> float:
    """Return updates per second."""
    advance(10)
    sync(device)
    begun = time.perf_counter()
    advance(10)
    sync(device)
    count = max(10, min(300, round(seconds * 10 / (time.perf_counter() - begun))))
    found = []
    for _ in range(5):
        begun = time.perf_counter()
        advance(count)
        sync(device)
        found.append(count / (time.perf_counter() - begun))
    return statistics.median(found)


def within_epochs(lanes: Lanes) -> Callable[[int], None]:
    """Return a function that advances across the ends of epochs."""

    def advance(updates: int) -> None:
        while updates:
            made = min(updates, lanes.per_epoch - lanes.updates % lanes.per_epoch)
            lanes.advance(made)
            updates -= made

    return advance


def measure(cpu: bool, only: list[str] | None, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield one row per model and number of lanes."""
    device = torch.device("cpu" if cpu else "cuda")
    task = split(load("mnist1d") if cpu else images(), validation=None, data=None).to(device)
    yield environment()
    for model, counts in (CPU if cpu else GPU).items():
        if only and model not in only:
            continue
        [alone] = configurations(model, 1, cpu)
        per_update = 1 if cpu else alone.batch
        eager = per_update * speed(plain_loop(alone, task, device), device.type, seconds)
        yield {"model": model, "way": "plain loop", "lanes": 1, "speed": eager}
        for count in counts:
            gc.collect()
            if not cpu:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_reserved()
            begun = time.perf_counter()
            kind = Captured if not cpu else Stacked if count > 1 else Separate
            lanes = kind(configurations(model, count, cpu), task, device)
            advance = within_epochs(lanes)
            advance(5)
            sync(device.type)
            row: dict[str, Any] = {"model": model, "way": "lanes", "lanes": count}
            row["start_s"] = time.perf_counter() - begun
            row["speed"] = count * per_update * speed(advance, device.type, seconds)
            row["ratio"] = row["speed"] / eager
            if not cpu:
                lanes.evaluate(task.test)
                sync("cuda")
                begun = time.perf_counter()
                lanes.evaluate(task.test)
                row["evaluation"] = count * len(task.test) / (time.perf_counter() - begun)
                row["memory_a_lane_mb"] = (torch.cuda.memory_reserved() - before) / count / 2**20
            yield row
            del lanes, advance


def main() -> None:
    """Measure, print the rows, and append them to a file if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="*", help="only these models")
    parser.add_argument("--seconds", type=float, default=0.5, help="per measurement")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    options = parser.parse_args()
    if options.cpu:
        torch.set_num_threads(1)
    tell(measure(options.cpu, options.only, options.seconds), options.out)


if __name__ == "__main__":
    main()
