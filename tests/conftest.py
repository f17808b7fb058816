"""Every test runs on one thread: small work on two busy cores is far slower with two.

`pytest --device cuda` runs the suite on a GPU, with what needs one, which is marked `gpu`. What is
marked `cpu("why")` runs there too, as on a machine without a GPU. Without a GPU, Triton's kernel
runs under Triton's interpreter. `-m "not slow"` is the quick part, which `make test` runs.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import Phase, settings
from threadpoolctl import threadpool_limits

import weightdecay
from weightdecay.optim.rates import TORCHS

settings.register_profile("ours", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("ours")
# For whoever asks whether a test fails, and not what its smallest example is.
settings.register_profile(
    "unshrunk", settings.get_profile("ours"), phases=(Phase.explicit, Phase.generate)
)
torch.set_num_threads(1)
threadpool_limits(limits=1, user_api="blas")
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

# Processes that tests start find these tests, and the package that is tested, installed or not.
_paths = [str(Path(module).parents[1]) for module in (__file__, weightdecay.__file__)]
os.environ["PYTHONPATH"] = os.pathsep.join([*_paths, os.environ.get("PYTHONPATH", "")])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="where the tests' tensors live")


def pytest_configure(config: pytest.Config) -> None:
    # A decay that is seen after a few updates is large beside the default lr; test_torchs_number.py
    # says when that is warned about.
    config.addinivalue_line("filterwarnings", f"ignore:{TORCHS}:UserWarning")
    if config.getoption("--device") != "cpu":
        torch.set_default_device(config.getoption("--device"))
        torch.empty(0)  # which takes the GPU, before a test hides it,
        torch.cuda.device_count()  # and has torch remember how many there are
        _compare_on_the_host()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--device") == "cpu":
        chosen = [item for item in items if item.get_closest_marker("gpu") is None]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def _compare_on_the_host() -> None:
    """Let numpy, in which the reference is written, read tensors of a device."""
    to_numpy = torch.Tensor.numpy

    def numpy(tensor: torch.Tensor, *, force: bool = False) -> Any:
        return to_numpy(tensor.detach().cpu(), force=force)

    def array(tensor: torch.Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
        del copy
        values = numpy(tensor)
        return values if dtype is None else values.astype(dtype)

    torch.Tensor.numpy = numpy  # type: ignore[method-assign,assignment]
    torch.Tensor.__array__ = array  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def hidden_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hide the GPU from a test that is marked `cpu`, and from the processes that it starts."""
    marker = request.node.get_closest_marker("cpu")
    if marker is None:
        yield
        return
    [_reason] = marker.args
    with pytest.MonkeyPatch.context() as patch, torch.device("cpu"):
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.setattr(torch.cuda, "is_available", lambda: False)
        patch.setattr(torch.cuda, "device_count", lambda: 0)
        yield


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)
