"""`torch.compile` of `opt.step`, or of a whole training step, changes nothing but the speed."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from weightdecay import SGDW, AdamW, Cosine, Normalized, decouple

UPDATES = 12
CLASSES = {"adamw": AdamW, "sgdw": SGDW, "adagrad": decouple(torch.optim.Adagrad)}
# The compiler itself uses what is deprecated, looks for the gradient of a loss, and on a GPU
# recommends a lower precision.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore:The .grad attribute of a Tensor",
    "ignore:TensorFloat32 tensor cores",
)
Step = Callable[[], Any]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    """What was compiled before is forgotten; recompiling past the limit is an error."""
    torch._dynamo.reset()
    counters.clear()
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        yield
    torch._dynamo.reset()


def build(name: str) -> tuple[nn.Module, Any, Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt: Any = CLASSES[name](
        model.parameters(), lr=0.02, weight_decay=Normalized(0.05), schedule=Cosine(UPDATES)
    )
    return model, opt, torch.randn(16, 4)


def compiled_step(model: nn.Module, opt: Any, x: Tensor, **how: Any) -> Step:
    step: Step = torch.compile(opt.step, **how)

    def update() -> None:
        opt.zero_grad()
        model(x).square().mean().backward()
        step()

    return update


def compiled_whole(model: nn.Module, opt: Any, x: Tensor, **how: Any) -> Step:
    def update() -> Any:
        opt.zero_grad()
        loss: Any = model(x).square().mean()
        loss.backward()
        opt.step()
        return loss

    return torch.compile(update, **how)


def trained(name: str, compile_: Callable[..., Step], **how: Any) -> tuple[list[Tensor], Any]:
    model, opt, x = build(name)
    update = compile_(model, opt, x, **how)
    for _ in range(UPDATES):
        update()
    return [param.detach() for param in model.parameters()], opt


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("compile_", [compiled_step, compiled_whole])
@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)
def test_a_compiled_step_is_the_step(
    name: str, compile_: Callable[..., Step], backend: str
) -> None:
    if backend == "inductor" and not shutil.which("g++"):
        pytest.skip("inductor needs a C++ compiler")
    expected, plain = trained(name, compile_, disable=True)
    found, opt = trained(name, compile_, backend=backend)
    assert counters["stats"]["unique_graphs"] <= 2
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 if backend == "inductor" else 0)
    assert [group["updates"] for group in opt.param_groups] == [UPDATES]
    assert opt.applied() == plain.applied()


def test_hooks_and_closures_work_in_a_compiled_step() -> None:
    model, opt, x = build("adamw")
    _, twin, _ = other = build("adamw")
    seen: list[str] = []
    opt.register_step_pre_hook(lambda *_: seen.append("before"))
    opt.register_step_post_hook(lambda *_: seen.append("after"))

    def closure(model: nn.Module, opt: Any) -> Step:
        def loss() -> Any:
            opt.zero_grad()
            value: Any = model(x).square().mean()
            value.backward()
            return value

        return loss

    step: Any = torch.compile(opt.step, backend="eager")
    for _ in range(3):
        assert step(closure(model, opt)) == twin.step(closure(other[0], twin))
    assert seen == ["before", "after"] * 3
    for one, same in zip(model.parameters(), other[0].parameters(), strict=True):
        assert torch.equal(one, same)


def test_a_step_that_is_refused_is_refused_in_a_compiled_one() -> None:
    model, opt, x = build("adamw")
    update = compiled_whole(model, opt, x, backend="eager")
    update()
    opt.param_groups[0]["lr"] = 1.0
    with pytest.raises(RuntimeError, match=r"`lr` must be .* for update 1, as the schedule says"):
        update()
