"""The time of one optimizer step: ours compared with torch's and with other libraries'.

    python -m benchmarks.step              # the table, on a GPU
    python -m benchmarks.step --cpu        # the CPU's table
    python -m benchmarks.step --tune       # block and warps of the kernel

Wall time is that of a loop of steps with the host in it, device time that of a CUDA graph of one
step. The floor is the bytes a step must move (28 a weight for AdamW, 20 for SGDW) over the
bandwidth that a copy reaches in the same run. The numbers are medians of five measurements.
"""

import argparse
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

import weightdecay
from weightdecay.optim.kernels import table

Shapes = list[tuple[int, ...]]


def gpt(layers: int, width: int, vocabulary: int, *, biases: bool) -> Shapes:
    """Return a GPT's parameters: matrices, norms, embeddings."""
    block: Shapes = [(width,), (3 * width, width), (width, width), (width,)]
    block += [(4 * width, width), (width, 4 * width)]
    if biases:
        block += [(width,), (3 * width,), (width,), (width,), (4 * width,), (width,)]
    ends: Shapes = [(vocabulary, width), (width,)]
    return block * layers + ends + ([(1024, width), (width,)] if biases else [])


def shake_shake(width: int) -> Shapes:
    """Shake-Shake 26 2x{width}d, whose 161 tensors are mostly small."""
    shapes: Shapes = [(16, 3, 3, 3), (16,), (16,)]
    inputs = 16
    for stage in range(3):
        outputs = width * 2**stage
        for block in range(4):
            for _ in range(2):
                first = inputs if block == 0 else outputs
                shapes += [(outputs, first, 3, 3), (outputs,), (outputs,)]
                shapes += [(outputs, outputs, 3, 3), (outputs,), (outputs,)]
            if block == 0:
                shapes += [(outputs // 2, inputs, 1, 1)] * 2 + [(outputs,), (outputs,)]
        inputs = outputs
    return [*shapes, (10, inputs), (10,)]


SETS: dict[str, tuple[Shapes, int]] = {
    "1.04 B in 146": (gpt(24, 1816, 50304, biases=False), 1),
    "124 M in 148": (gpt(12, 768, 50257, biases=True), 1),
    "11.7 M in 161": (shake_shake(64), 1),
    "8.2 M in 2,000": ([(4096,)] * 2000, 1),
    "746 M in 10,304, 64 groups": (shake_shake(64), 64),
}


def parameters(shapes: Shapes, device: str) -> list[torch.nn.Parameter]:
    """Return parameters with random gradients, since zeros can run faster than real data."""
    params = [torch.nn.Parameter(torch.randn(shape, device=device) * 0.02) for shape in shapes]
    for param in params:
        param.grad = torch.randn_like(param) * 0.01
    return params


def groups_of(name: str, device: str) -> list[dict[str, Any]]:
    """Return a set's parameters, one group per lane."""
    shapes, lanes = SETS[name]
    return [
        {"params": parameters(shapes, device), "lr": 1e-3 / (lane + 1)} for lane in range(lanes)
    ]


def contenders(algorithm: str, device: str) -> dict[str, Callable[[Any], Any]]:
    """Return the contenders, each as a function from groups to an optimizer."""
    ours: Any
    theirs: Any
    ours, theirs = (
        (weightdecay.AdamW, torch.optim.AdamW)
        if algorithm == "adamw"
        else (weightdecay.SGDW, torch.optim.SGD)
    )
    momentum = {} if algorithm == "adamw" else {"momentum": 0.9}
    common = {"lr": 1e-3, "weight_decay": 1e-4, **momentum}
    schedule = weightdecay.Cosine(1_000_000)
    choices: dict[str, Callable[[Any], Any]] = {
        "weightdecay": lambda groups: ours(groups, schedule=schedule, **common),
        "torch fused": lambda groups: theirs(groups, fused=True, **common),
        "torch foreach": lambda groups: theirs(groups, foreach=True, **common),
    }
    if device == "cuda":
        choices["torch compiled"] = lambda groups: _Compiled(theirs(groups, foreach=True, **common))
        choices |= _peers(algorithm, common)
    return choices


def _peers(algorithm: str, common: dict[str, Any]) -> dict[str, Callable[[Any], Any]]:
    found: dict[str, Callable[[Any], Any]] = {}
    try:
        import optimi

        cls = optimi.AdamW if algorithm == "adamw" else optimi.SGD
        found["optimi"] = lambda groups: cls(groups, triton=True, **common)
    except ImportError:
        pass
    try:
        import flashoptim

        flash = flashoptim.FlashAdamW if algorithm == "adamw" else flashoptim.FlashSGDW
        whole = {"quantize": False, "master_weight_bits": None}  # as exact as the others
        found["flashoptim"] = lambda groups: flash(groups, **whole, **common)
    except (ImportError, AttributeError):
        pass
    return found


class _Compiled:
    """Compile the step with torch.compile, with lr as a tensor, as torch advises."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(group["lr"], device="cuda")
        self.step = torch.compile(optimizer.step, fullgraph=False)


def _with_new_gradients(optimizer: Any) -> Callable[[], Any]:
    """Return a step that finds every gradient at a new address."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    if sum(param.numel() for param in params) > 1 << 28:  # two sets would not leave room
        step: Callable[[], Any] = optimizer.step
        return step
    sets = itertools.cycle([[torch.randn_like(p) * 0.01 for p in params] for _ in range(2)])

    def renewed() -> None:
        for param, grad in zip(params, next(sets), strict=True):
            param.grad = grad
        optimizer.step()

    return renewed


def wall(step: Callable[[], Any], device: str, seconds: float = 0.3) -> float:
    """Return the milliseconds per step in a loop, including the host."""
    for _ in range(3):
        step()
    sync(device)
    begun = time.perf_counter()
    step()
    sync(device)
    count = max(3, math.ceil(seconds / max(time.perf_counter() - begun, 1e-5)))
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(count):
            step()
        sync(device)
        times.append((time.perf_counter() - begun) / count * 1e3)
    return statistics.median(times)


def in_graph(step: Callable[[], Any]) -> float:
    """Return the milliseconds per step on the device, as a CUDA graph."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return repeated(graph.replay)


def repeated(work: Callable[[], Any]) -> float:
    """Return the milliseconds that repeated work takes on the device."""
    for _ in range(5):
        work()
    torch.cuda.synchronize()
    times: list[float] = []
    first: Any
    last: Any
    for _ in range(5):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        first.record()
        for _ in range(20):
            work()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / 20)
    return statistics.median(times)


def sync(device: str) -> None:
    """Wait for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def copy_bandwidth() -> float:
    """Return the bytes per second that a large copy reads and writes."""
    source = torch.randn(1 << 30, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / (repeated(lambda: target.copy_(source)) * 1e-3)


def measure(
    device: str, names: list[str], algorithms: list[str], only: list[str] | None
) -> Iterator[dict[str, Any]]:
    """Yield one row per set of parameters, algorithm and contender."""
    bandwidth = copy_bandwidth() if device == "cuda" else None
    yield {"copy bandwidth": bandwidth, **environment()}
    for name, algorithm in itertools.product(names, algorithms):
        weights = sum(math.prod(shape) for shape in SETS[name][0]) * SETS[name][1]
        size = weights * (28 if algorithm == "adamw" else 20)
        floor = size / bandwidth * 1e3 if bandwidth else None
        for contender, build in contenders(algorithm, device).items():
            if only and contender not in only:
                continue
            row: dict[str, Any] = {"set": name, "algorithm": algorithm, "contender": contender}
            row |= {"weights": weights, "floor_ms": floor}
            if contender == "torch compiled" and len(SETS[name][0]) * SETS[name][1] > 1000:
                yield {**row, "error": "not tried: compiling takes minutes for so many tensors"}
                continue
            try:
                optimizer = build(groups_of(name, device))
                row["wall_ms"] = wall(optimizer.step, device)
                if contender == "weightdecay" and device == "cuda":
                    row["new_gradients_ms"] = wall(_with_new_gradients(optimizer), device)
                if device == "cuda" and contender in ("weightdecay", "torch fused"):
                    if contender == "torch fused":
                        for group in optimizer.param_groups:
                            group["capturable"] = True
                    row["graph_ms"] = in_graph(optimizer.step)
            except Exception as error:  # noqa: BLE001  # a peer that fails is a row too
                row["error"] = f"{type(error).__name__}: {error}"[:200]
            finally:
                optimizer = None
                torch._dynamo.reset()
                if device == "cuda":
                    torch.cuda.empty_cache()
            yield row


def environment() -> dict[str, Any]:
    """Return what the numbers depend on."""
    git = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "commit": os.environ.get("COMMIT") or git.stdout.strip() or None,
        "torch": torch.__version__,
        "triton": metadata.version("triton") if find_spec("triton") else None,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else platform.processor(),
        "threads": torch.get_num_threads(),
    }


def tune(names: list[str]) -> None:
    """Print the time of each configuration of the kernel."""
    for block, warps in itertools.product((512, 1024, 2048, 4096), (4, 8)):
        table.BLOCK, table.WARPS = block, warps
        times = []
        for name in names:
            optimizer = contenders("adamw", "cuda")["weightdecay"](groups_of(name, "cuda"))
            optimizer.step()
            times.append(in_graph(optimizer.step))
            del optimizer
            torch.cuda.empty_cache()
        print(block, warps, *(f"{t:.4f}" for t in times), flush=True)


def tell(rows: Iterable[dict[str, Any]], out: Path | None) -> None:
    """Print the rows, and append them to a file if asked."""
    for row in rows:
        line = json.dumps(row)
        print(line, flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


def main() -> None:
    """Measure, print the rows, and append them to a file if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--algorithms", nargs="*", default=["adamw", "sgdw"])
    parser.add_argument("--only", nargs="*", help="only these contenders")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    options = parser.parse_args()
    if options.tune:
        tune(options.sets)
        return
    device = "cpu" if options.cpu else "cuda"
    if options.cpu:
        torch.set_num_threads(1)
    tell(measure(device, options.sets, options.algorithms, options.only), options.out)


if __name__ == "__main__":
    main()
