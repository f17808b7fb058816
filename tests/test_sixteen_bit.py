"""PEERS 1: a 16-bit weight decays as it should, for it is rounded at random, with exact odds."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weightdecay import SGDW, Adam, AdamW, Cosine, Normalized, decouple
from weightdecay.hashing import WORD, scramble
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
    noise = random_words(torch.arange(n), update=3, stream=5)
    rounded = stochastic_round(x, noise, dtype).double()
    low, high = rounded.min(), rounded.max()
    error = abs(float(rounded.mean()) - float(x[0].double()))
    assert error < 5 * float(high - low) / n**0.5


@both
def test_what_is_not_a_number_stays_so(dtype: torch.dtype) -> None:
    x = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0])
    rounded = stochastic_round(x, torch.full((4,), 2**32 - 1), dtype)
    torch.testing.assert_close(rounded.float(), x, equal_nan=True, rtol=0, atol=0)


@given(element=st.integers(0, 2**40), update=st.integers(0, 2**24), stream=st.integers(0, 2**34))
def test_a_random_word_is_the_hash_of_its_place(element: int, update: int, stream: int) -> None:
    """In Python's whole numbers, which do not overflow; a small one as either kind of integer."""
    seed = scramble(update * 0x9E3779B9 + stream & WORD)
    expected = scramble(element + (element >> 32) * 0x9E3779B9 + seed & WORD)
    dtypes = [torch.int64] if element >= 2**31 else [torch.int64, torch.int32]
    for dtype in dtypes:
        # As many as a processor takes at once, and some more.
        elements = torch.full((37,), element, dtype=dtype)
        words = random_words(elements, update=update, stream=stream)
        assert {word & WORD for word in words.tolist()} == {expected}


def test_the_random_words_are_uniform_and_uncorrelated() -> None:
    words = torch.stack(
        [random_words(torch.arange(4096), update=t, stream=n) for t in range(8) for n in range(8)]
    )
    bits = (words.flatten()[:, None] >> torch.arange(32)) & 1
    assert (bits.double().mean(0) - 0.5).abs().max() < 5 * 0.5 / words.numel() ** 0.5
    correlations = torch.corrcoef(words.double()) - torch.eye(64)
    assert correlations.abs().max() < 6 / 4096**0.5


def decayed(groups: Any, build: Callable[..., Any] = AdamW, **states: Any) -> Any:
    """Make an update with gradients of 0, which leaves every weight to chance."""
    opt = build(groups, lr=0.01, weight_decay=1e-3)
    if states:
        opt.load_state_dict(states)
    for group in opt.param_groups:
        for param in group["params"]:
            param.grad = torch.zeros_like(param)
    opt.step()
    return opt


def ones(*shapes: tuple[int, ...]) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.ones(shape, dtype=torch.bfloat16)) for shape in shapes]


keeping = pytest.mark.parametrize(
    "build", [SGDW, AdamW, decouple(torch.optim.RMSprop)], ids=["sgdw", "adamw", "decoupled"]
)


@keeping
def test_a_named_parameter_rounds_alike_whatever_it_is_grouped_with(
    build: Callable[..., Any],
) -> None:
    """In one optimizer or two, in any order, under a wrapper's name: as lanes do, and resumes."""
    names = "first.weight", "second.weight"
    together, apart, lanes = ones((999,), (999,)), ones((999,), (999,)), ones((999,), (999,))
    decayed(list(zip(names, together, strict=True)), build)
    decayed([{"params": [("module." + names[1], apart[1])]}], build)
    decayed([{"params": [("_orig_mod." + names[0], apart[0])]}], build)
    decayed([{"params": [(names[1], lane)]} for lane in lanes], build)
    assert not torch.equal(*together)
    assert all(map(torch.equal, together, apart))
    assert all(torch.equal(lane, together[1]) for lane in lanes)


@keeping
def test_without_names_parameters_of_other_shapes_make_no_difference(
    build: Callable[..., Any],
) -> None:
    together, apart = ones((999,), (30, 30), (999,)), ones((999,), (30, 30), (999,))
    decayed(together, build)
    decayed([{"params": [apart[1]]}, {"params": [apart[0], apart[2]]}], build)
    assert all(map(torch.equal, together, apart))
    assert not torch.equal(together[0], together[2])


@keeping
def test_a_resumed_parameter_rounds_by_the_key_it_began_with(build: Callable[..., Any]) -> None:
    """The states of two parameters of one shape, resumed the other way round."""
    params = ones((999,), (999,))
    saved = copy.deepcopy(decayed(params, build).state_dict())
    turned = [torch.nn.Parameter(param.detach().clone()) for param in reversed(params)]
    saved["state"] = {0: saved["state"][1], 1: saved["state"][0]}
    opt = decayed(turned, build, **saved)
    straight = copy.deepcopy(saved)
    straight["state"] = {0: saved["state"][1], 1: saved["state"][0]}
    decayed(params, build, **straight)
    assert all(map(torch.equal, params, reversed(turned)))
    assert opt.state_dict()["state"][0]["rounding_key"] == saved["state"][0]["rounding_key"]


@keeping
def test_a_state_saved_without_keys_is_loaded(build: Callable[..., Any]) -> None:
    params = ones((999,), (999,))
    saved = copy.deepcopy(decayed(params, build).state_dict())
    keys = [state.pop("rounding_key") for state in saved["state"].values()]
    opt = decayed(params, build, **saved)
    assert [state["rounding_key"] for state in opt.state.values()] == keys


@keeping
def test_a_parameter_rounds_alike_whichever_others_have_a_gradient(
    build: Callable[..., Any],
) -> None:
    params, alone = ones((999,), (999,)), ones((999,), (999,))
    decayed(params, build)
    opt = build(alone, lr=0.01, weight_decay=1e-3)
    alone[1].grad = torch.zeros_like(alone[1])
    opt.step()
    assert torch.equal(params[1], alone[1])


def test_float32_keeps_no_key() -> None:
    theta = torch.nn.Parameter(torch.ones(9))
    assert "rounding_key" not in decayed([theta]).state[theta]


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_complex_numbers_of_16_bits_round_apart() -> None:
    half = torch.ones(500, 2, dtype=torch.float16)
    params = [torch.nn.Parameter(torch.view_as_complex(half.clone())) for _ in range(2)]
    decayed(params)
    one, other = (torch.view_as_real(param.detach()) for param in params)
    assert not torch.equal(one, other)
