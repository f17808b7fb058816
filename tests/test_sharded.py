"""DTensors: an update of each rank's own shard, in any precision."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from tests.cases import CASES, gradient, start
from weightdecay import decouple


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", port, 1, is_master=True
    )
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


BUILDERS = {
    **{name: case.build for name, case in CASES.items()},
    "decoupled rmsprop": lambda p: decouple(torch.optim.RMSprop)(p, lr=0.01, weight_decay=0.1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_a_sharded_parameter_is_updated_like_a_whole_one(
    build: Any, dtype: torch.dtype, mesh: Any
) -> None:
    values = torch.tensor(start(64), dtype=dtype)
    whole = torch.nn.Parameter(values.clone())
    sharded = torch.nn.Parameter(distribute_tensor(values.clone(), mesh, [Shard(0)]))
    opts = build([whole]), build([sharded])
    for t in range(1, 6):
        noise = torch.tensor(gradient(t, start(64)), dtype=dtype)
        whole.grad = noise
        sharded.grad = distribute_tensor(noise, mesh, [Shard(0)])
        for opt in opts:
            opt.step()
    assert torch.equal(whole, sharded.full_tensor())  # type: ignore[attr-defined]
