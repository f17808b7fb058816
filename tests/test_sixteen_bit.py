"""PEERS 1: a 16-bit weight decays as it should, for it is rounded at random, with exact odds."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weightdecay import SGDW, Adam, AdamW, Cosine, Normalized, decouple
from weightdecay.optim.rounding import random_words, stochastic_round

BUILDERS: dict[str, Callable[..., Any]] = {
    "sgdw": SGDW,
    "sgdw-nesterov": lambda *a, **k: SGDW(*a, nesterov=True, **k),
    "adamw": AdamW,
    "adamw-amsgrad": lambda *a, **k: AdamW(*a, amsgrad=True, **k),
    # Their own steps are float16's: an eps of 1e-10 would be 0 there, and the step 0/0.
    "decoupled rmsprop": lambda *a, **k: decouple(torch.optim.RMSprop)(*a, eps=1e-3, **k),
    "decoupled adagrad": lambda *a, **k: decouple(torch.optim.Adagrad)(*a, eps=1e-3, **k),
}
every_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
both = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
HERE = torch.get_default_device()


@both
@every_builder
def test_a_thousand_small_decays_leave_0368_of_the_norm(
    build: Callable[..., Any], dtype: torch.dtype
) -> None:
    theta = torch.nn.Parameter(torch.randn(4096).to(dtype))
    before = theta.detach().float().norm()
    opt = build([theta], lr=0.01, weight_decay=1e-3)
    for _ in range(1000):
        theta.grad = torch.zeros_like(theta)
        opt.step()
    assert float(theta.detach().float().norm() / before) == pytest.approx(0.368, rel=0.02)


@both
def test_torch_alone_would_leave_it_as_it_was(dtype: torch.dtype) -> None:
    """What this room is for: rounded to nearest, small decays do nothing at all."""
    theta = torch.randn(4096).to(dtype)
    shrunk = theta.clone()
    for _ in range(3):
        shrunk.mul_(1 - 1e-4)
    assert torch.equal(shrunk, theta)


@both
def test_small_updates_arrive_in_the_mean(dtype: torch.dtype) -> None:
    """The gradient's part of the update is inside the rounded quantity too."""
    theta = torch.nn.Parameter(torch.ones(20_000, dtype=dtype))
    opt = SGDW([theta], lr=1e-4, momentum=0.0, weight_decay=1e-4)
    for _ in range(10):
        theta.grad = torch.ones_like(theta)
        opt.step()
    assert float(theta.detach().double().mean()) == pytest.approx(1 - 10 * 2e-4, abs=1e-4)


@both
def test_moments_of_16_bit_weights_are_float32(dtype: torch.dtype) -> None:
    theta = torch.nn.Parameter(torch.ones(4, dtype=dtype))
    opt = Adam([theta], l2=0.1)
    theta.grad = torch.full_like(theta, 1e-3)
    opt.step()
    assert {opt.state[theta][key].dtype for key in ("exp_avg", "exp_avg_sq")} == {torch.float32}


@both
def test_every_replica_rounds_alike_and_every_tensor_and_update_apart(dtype: torch.dtype) -> None:
    def run() -> list[torch.Tensor]:
        params = [torch.nn.Parameter(torch.ones(512, dtype=dtype)) for _ in range(2)]
        opt = AdamW(params, weight_decay=Normalized(0.01), schedule=Cosine(30))
        seen = []
        for _ in range(3):
            for param in params:
                param.grad = torch.zeros_like(param)
            opt.step()
            seen += [param.detach().clone() for param in params]
        return seen

    first, second = run(), run()
    assert all(map(torch.equal, first, second))
    assert not any(torch.equal(first[i], first[j]) for i in range(len(first)) for j in range(i))


@both
@given(value=st.floats(-65000, 65000, width=32), word=st.integers(0, 2**32 - 1))
def test_rounding_goes_to_a_neighbour(dtype: torch.dtype, value: float, word: int) -> None:
    x = torch.tensor(value)
    rounded = stochastic_round(x, torch.tensor(word), dtype)
    near = x.to(dtype)
    spacing = (
        torch.nextafter(near.abs(), torch.tensor(torch.inf, dtype=dtype)) - near.abs()
    ).float()
    assert abs(rounded.float() - x) <= spacing
    if near.float() == x:
        assert rounded == near


@both
@pytest.mark.parametrize("value", [1.0003, -1.0003, 0.1, -3.3e-5, 6e-8, 1.9999, 1000.3])
def test_rounding_is_right_in_the_mean(dtype: torch.dtype, value: float) -> None:
    n = 200_000
    x = torch.full((n,), value)
    noise = random_words(n, update=3, stream=5, device=HERE)
    rounded = stochastic_round(x, noise, dtype).double()
    low, high = rounded.min(), rounded.max()
    error = abs(float(rounded.mean()) - float(x[0].double()))
    assert error < 5 * float(high - low) / n**0.5


@both
def test_what_is_not_a_number_stays_so(dtype: torch.dtype) -> None:
    x = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0])
    rounded = stochastic_round(x, torch.full((4,), 2**32 - 1), dtype)
    torch.testing.assert_close(rounded.float(), x, equal_nan=True, rtol=0, atol=0)


def test_the_random_words_are_uniform_and_uncorrelated() -> None:
    words = torch.stack(
        [random_words(4096, update=t, stream=n, device=HERE) for t in range(8) for n in range(8)]
    )
    bits = (words.flatten()[:, None] >> torch.arange(32)) & 1
    assert (bits.double().mean(0) - 0.5).abs().max() < 5 * 0.5 / words.numel() ** 0.5
    correlations = torch.corrcoef(words.double()) - torch.eye(64)
    assert correlations.abs().max() < 6 / 4096**0.5
