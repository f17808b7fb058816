"""Runs over several processes, each with its shard, beside the same run of whole parameters.

On the CPU, whatever device the tests have: one GPU cannot be shared out to several processes of
NCCL, so that gloo joins them. What they find is left in a file for the tests.
"""

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, distributed, multiprocessing, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard

from weightdecay import SGDW, AdamW, decouple

#: The whole shape, the mesh, and how the one is placed on the other.
LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[Any]]] = {
    "rows": ((64, 37), (2,), [Shard(0)]),
    "uneven rows": ((33, 37), (2,), [Shard(0)]),
    "fewer rows than ranks": ((1, 1500), (2,), [Shard(0)]),
    "columns": ((40, 51), (2,), [Shard(1)]),
    "a middle dimension": ((9, 11, 13), (2,), [Shard(1)]),
    "a replica": ((40, 51), (2,), [Replicate()]),
    "rows and columns": ((31, 53), (2, 2), [Shard(0), Shard(1)]),
    "columns and rows": ((31, 53), (2, 2), [Shard(1), Shard(0)]),
    "rows twice": ((63, 37), (2, 2), [Shard(0), Shard(0)]),
    "replicated columns": ((31, 53), (2, 2), [Replicate(), Shard(1)]),
    "rows, first of the inner mesh": (
        (64, 37),
        (2, 2),
        [_StridedShard(0, split_factor=2), Shard(0)],
    ),
    "rows with gaps": ((64, 37), (2, 2), [Shard(0), _StridedShard(0, split_factor=2)]),
    "two inner dimensions": ((9, 11, 13), (2, 2), [Shard(1), Shard(2)]),
}
if torch.__version__ < "2.13":  # 2.11 shares a tensor out with gaps, but cannot gather it again
    del LAYOUTS["rows with gaps"]
RATE: dict[str, Any] = {"lr": 0.01, "weight_decay": 0.04}
BUILDERS: dict[str, Callable[..., Any]] = {
    "sgdw": lambda p: SGDW(p, momentum=0.0, **RATE),
    "adamw in bfloat16": lambda p: AdamW(p, **RATE, state_dtype="bfloat16", amsgrad=True),
    "sgdw compensated": lambda p: SGDW(p, **RATE, rounding="compensated", state_dtype="bfloat16"),
    "decoupled rmsprop": lambda p: decouple(torch.optim.RMSprop)(p, **RATE),
}
UPDATES = 3
Job: TypeAlias = Callable[[Path, int, int], None]


def noise(shape: tuple[int, ...], t: int) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(t)
    return torch.randn(shape, generator=generator, device="cpu").bfloat16()


def advance(opt: Any, place: Callable[[Tensor, Tensor], Tensor], first: int, last: int) -> None:
    """Make updates with gradients that depend on the parameter's whole shape and on t alone."""
    for t in range(first, last):
        for group in opt.param_groups:
            for param in group["params"]:
                param.grad = place(noise(tuple(param.shape), t), param)
        opt.step()


def whole(value: Tensor, _: Tensor) -> Tensor:
    return value


def sharded(value: Tensor, like: Any) -> Tensor:
    return distribute_tensor(value, like.device_mesh, like.placements)


def gathered(opt: Any) -> list[Tensor]:
    """Return parameters and their states as one process would hold them, in float32."""
    [param] = opt.param_groups[0]["params"]
    states = opt.state[param]
    tensors = [param, *(states[k] for k in sorted(states) if isinstance(states[k], Tensor))]
    full = [t.full_tensor() if hasattr(t, "full_tensor") else t for t in tensors]
    return [t.detach().float().clone() for t in full]


def compare(folder: Path, rank: int, world: int) -> None:
    """Run every layout of so many processes, sharded and whole."""
    found: dict[tuple[str, str], Any] = {}
    meshes: dict[tuple[int, ...], Any] = {}
    for layout, (shape, sizes, placements) in LAYOUTS.items():
        if prod(sizes) != world:
            continue
        if sizes not in meshes:
            meshes[sizes] = init_device_mesh("cpu", sizes)
        for name, build in BUILDERS.items():
            start = noise(shape, 1000)
            alone = build([nn.Parameter(start.clone())])
            shared = build([nn.Parameter(distribute_tensor(start, meshes[sizes], placements))])
            advance(alone, whole, 0, UPDATES)
            advance(shared, sharded, 0, UPDATES)
            found[layout, name] = gathered(alone), gathered(shared)
    if rank == 0:
        torch.save(found, folder / "compared.pt")


def decay_once(folder: Path, rank: int, world: int) -> None:
    """Let equal weights decay by less than 16 bits can say, so that chance decides on each."""
    ones = torch.ones(8192, dtype=torch.bfloat16, device="cpu")
    mesh = init_device_mesh("cpu", (world,))
    theta = nn.Parameter(distribute_tensor(ones, mesh, [Shard(0)]))
    theta.grad = torch.zeros_like(theta)
    SGDW([theta], 0.1, weight_decay=0.001).step()
    end = theta.full_tensor().detach()  # type: ignore[attr-defined]
    if rank == 0:
        torch.save(end, folder / "decayed.pt")


def model_and_optimizer(mesh: Any, *, turned: bool) -> tuple[nn.Module, Any]:
    """Two layers of one shape; `turned`, with the groups and all in them the other way round."""
    with torch.device("cpu"):
        model = nn.Sequential(nn.Linear(37, 37), nn.Linear(37, 37)).bfloat16()
    for t, param in enumerate(model.parameters()):
        param.data.copy_(noise(tuple(param.shape), 2000 + t))
    if mesh is not None:
        fully_shard(model, mesh=mesh)
    weights = [layer.weight for layer in model]
    biases = [layer.bias for layer in model]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": biases, "weight_decay": 0.1}]
    if turned:
        groups = [{**group, "params": group["params"][::-1]} for group in groups[::-1]]
    return model, BUILDERS["adamw in bfloat16"](groups)


WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def save(folder: Path, rank: int, world: int) -> None:
    """Make half of the updates, and save them as one process would."""
    model, opt = model_and_optimizer(init_device_mesh("cpu", (world,)), turned=False)
    advance(opt, sharded, 0, UPDATES)
    weights, states = get_state_dict(model, opt, options=WHOLE)
    if rank == 0:
        torch.save((weights, states), folder / "saved.pt")


def resume(folder: Path, rank: int, world: int) -> None:
    """Make the other half on another number of processes, with all groups turned round."""
    mesh = None if world == 1 else init_device_mesh("cpu", (world,))
    model, opt = model_and_optimizer(mesh, turned=True)
    weights, states = torch.load(folder / "saved.pt", weights_only=True)
    set_model_state_dict(model, weights, options=WHOLE)
    set_optimizer_state_dict(model, opt, states, options=WHOLE)
    advance(opt, whole if mesh is None else sharded, UPDATES, 2 * UPDATES)
    ends, _ = get_state_dict(model, opt, options=WHOLE)
    if rank == 0:
        torch.save(ends, folder / "resumed.pt")


def _work(rank: int, job: Job, folder: Path, world: int) -> None:
    torch.set_num_threads(1)
    store = f"file://{folder}/{job.__name__}-{world}"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    try:
        job(folder, rank, world)
        distributed.barrier()  # a process that leaves early may abort those that still talk to it
    finally:
        distributed.destroy_process_group()


def spawn(job: Job, folder: Path, world: int) -> None:
    """Do a job with so many processes; an error in one is raised here."""
    start: Any = multiprocessing.spawn  # type: ignore[attr-defined]
    start(_work, (job, folder, world), nprocs=world)
