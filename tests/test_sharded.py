"""DTensors: an update of each rank's own shard, in any precision."""

import socket
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from tests.cases import CASES, gradient, start
from tests.sharding import (
    BUILDERS,
    LAYOUTS,
    UPDATES,
    advance,
    compare,
    decay_once,
    model_and_optimizer,
    resume,
    save,
    spawn,
    whole,
)
from weightdecay import SGDW, AdamW, decouple
from weightdecay.optim.kernels import slot
from weightdecay.optim.rounding import random_words
from weightdecay.optim.shards import Region, region_of

HERE = torch.get_default_device()
CLASSES = {
    **{name: case.build for name, case in CASES.items()},
    "decoupled rmsprop": lambda p: decouple(torch.optim.RMSprop)(p, lr=0.01, weight_decay=0.1),
}


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", port, 1, is_master=True
    )
    backend = "nccl" if HERE.type == "cuda" else "gloo"
    distributed.init_process_group(backend, store=store, rank=0, world_size=1)
    yield init_device_mesh(HERE.type, (1,))
    distributed.destroy_process_group()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("build", CLASSES.values(), ids=CLASSES)
def test_a_parameter_on_a_mesh_of_one_is_updated_like_any_other(
    build: Any, dtype: torch.dtype, mesh: Any
) -> None:
    values = torch.tensor(start(64), dtype=dtype)
    plain = torch.nn.Parameter(values.clone())
    sharded = torch.nn.Parameter(distribute_tensor(values.clone(), mesh, [Shard(0)]))
    opts = build([plain]), build([sharded])
    for t in range(1, 6):
        noise = torch.tensor(gradient(t, start(64)), dtype=dtype)
        plain.grad = noise
        sharded.grad = distribute_tensor(noise, mesh, [Shard(0)])
        for opt in opts:
            opt.step()
    assert torch.equal(plain, sharded.full_tensor())  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 4])
def test_shards_round_bit_for_bit_as_the_whole_does(world: int, tmp_path: Path) -> None:
    spawn(compare, tmp_path, world)
    found = torch.load(tmp_path / "compared.pt", weights_only=True)
    expected = {name for name, (_, mesh, _) in LAYOUTS.items() if prod(mesh) == world}
    assert set(found) == set(product(expected, BUILDERS))
    unlike = [key for key, pair in found.items() if not all(map(torch.equal, *pair))]
    assert unlike == []


@pytest.mark.slow
def test_two_ranks_round_apart(tmp_path: Path) -> None:
    """Rounded by their local elements, their noise would be the same: a correlation of 1."""
    spawn(decay_once, tmp_path, 2)
    ranks = torch.load(tmp_path / "decayed.pt", weights_only=True).double().view(2, -1)
    assert torch.corrcoef(ranks)[0, 1].abs() < 5 / ranks.shape[1] ** 0.5


@pytest.mark.slow
def test_a_run_goes_on_bit_for_bit_on_another_number_of_processes(tmp_path: Path) -> None:
    """Saved by two; resumed by one and by three, with groups the other way round."""
    model, opt = model_and_optimizer(None, turned=False)
    advance(opt, whole, 0, 2 * UPDATES)
    spawn(save, tmp_path, 2)
    for world in (1, 3):
        spawn(resume, tmp_path, world)
        ends = torch.load(tmp_path / "resumed.pt", weights_only=True)
        assert all(torch.equal(value, ends[name]) for name, value in model.state_dict().items())


def box(*sides: tuple[int, int, int]) -> Region:
    """The region from first to last of each dimension's length."""
    coordinates = (torch.arange(first, last, device="cpu") for first, last, _ in sides)
    return Region(tuple(length for *_, length in sides), tuple(coordinates))


FAR = 2**33
REGIONS = {
    "rows": box((5, 40, 90), (0, 61, 61)),
    "columns": box((0, 70, 70), (7, 40, 51)),
    "long rows": box((0, 2, 2), (1000, 2300, 4000)),
    "one column": box((0, 1500, 1500), (3, 4, 7)),
    "rows and columns": box((20, 60, 80), (7, 58, 90)),
    "planes": box((0, 5, 5), (3, 21, 30), (0, 17, 17)),
    "beyond 2³² elements": box((1, 3, 3), (FAR - 700, FAR, FAR)),
    "around 2³² elements": box((2**32 - 600, 2**32 + 600, FAR)),
    "nothing": box((4, 4, 4), (0, 7, 7)),
}
every_region = pytest.mark.parametrize("region", REGIONS.values(), ids=REGIONS)
SCATTERED = {
    "two inner dimensions": box((0, 4, 4), (2, 5, 6), (1, 7, 9)),
    "every other row": Region(
        (8, 5), (torch.arange(0, 8, 2, device="cpu"), torch.arange(5, device="cpu"))
    ),
}


@every_region
def test_the_numbers_of_a_regions_elements_are_the_whole_tensors(region: Region) -> None:
    elements = region.elements(torch.device("cpu")).flatten()
    rows = region.rows()
    assert rows is not None
    length, pitch, first = rows
    order = torch.arange(elements.numel(), device="cpu")
    assert torch.equal(first + order // length * pitch + order % length, elements)
    if prod(region.shape) < FAR:
        numbers = torch.arange(prod(region.shape), device="cpu").view(region.shape)
        here = torch.meshgrid(*region.coordinates, indexing="ij")
        assert torch.equal(numbers[here].flatten(), elements)


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (SGDW, {"momentum": 0.0}),
        (AdamW, {"state_dtype": "bfloat16", "amsgrad": True}),
        (SGDW, {"rounding": "compensated", "state_dtype": "bfloat16"}),
    ],
    ids=["sgdw", "adamw in bfloat16", "sgdw compensated"],
)
@every_region
def test_the_kernel_rounds_a_region_as_the_reference_does(
    cls: Any, options: Any, region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gradients of 0, so that no last place of the arithmetic can differ."""
    monkeypatch.setattr(slot, "region_of", lambda _: region)
    shape = tuple(map(len, region.coordinates))
    values = torch.randn(shape).bfloat16()
    ends = []
    for kernel in ("reference", "triton"):
        theta = torch.nn.Parameter(values.clone())
        opt = cls([theta], lr=0.1, weight_decay=0.04, kernel=kernel, **options)
        for _ in range(2):
            theta.grad = torch.zeros_like(theta)
            opt.step()
        states = (v for v in opt.state[theta].values() if isinstance(v, torch.Tensor))
        ends.append([theta.detach(), *states])
    assert all(map(torch.equal, *ends))


@pytest.mark.parametrize("region", SCATTERED.values(), ids=SCATTERED)
def test_a_region_in_more_than_rows_is_left_to_the_reference(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "region_of", lambda _: region)
    theta = torch.nn.Parameter(torch.randn(*map(len, region.coordinates)).bfloat16())
    theta.grad = torch.zeros_like(theta)
    AdamW([theta], weight_decay=0.1).step()
    with pytest.raises(RuntimeError, match="rows at equal distances, got one cut along several"):
        AdamW([theta], weight_decay=0.1, kernel="triton").step()


def test_words_do_not_repeat_after_2_to_the_32_elements() -> None:
    near, far = (random_words(torch.arange(4096) + n * 2**32, update=1, stream=4) for n in (0, 1))
    assert torch.corrcoef(torch.stack([near, far]).double())[0, 1].abs() < 5 / 64


def test_a_16_bit_shard_that_torch_would_not_have_cut_is_refused(mesh: Any) -> None:
    odd = DTensor.from_local(
        torch.ones(3).bfloat16(), mesh, [Shard(0)], shape=torch.Size([5]), stride=(1,)
    )
    with pytest.raises(RuntimeError, match=r"must have the shape \(5,\), as torch would .* \(3,\)"):
        region_of(odd)
