"""A new algorithm is a value and a class: Lion, in `tests/lion.py` alone, gets all the rest."""

import copy
import pickle
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

from tests.cases import STEPS, Case, advance, gradient, parameter, start, weights
from tests.lion import Lion
from tests.reference import Gradient, Vector
from weightdecay import AdamW, Cosine, Normalized, WarmRestarts, explain, to_torch
from weightdecay.decay import Decay


def lion(
    theta: Vector,
    gradient: Gradient,
    *,
    eta: Iterable[float],
    lr: float,
    betas: tuple[float, float],
    weight_decay: list[float],
) -> Vector:
    """Lion in float64, an update at a time; η and λ are given for t = 1, 2, …"""
    m, (beta1, beta2) = np.zeros_like(theta), betas
    for t, (eta_t, decay) in enumerate(zip(eta, weight_decay, strict=True), start=1):
        g = gradient(t, theta)
        step = np.sign(beta1 * m + (1 - beta1) * g)
        theta = theta - eta_t * (lr * step + decay * theta)
        m = beta2 * m + (1 - beta2) * g
    return theta


LION = Case(Lion, lion, {"lr": 0.02, "weight_decay": 0.04, "betas": (0.8, 0.95)})
RESTARTS = WarmRestarts(8, factor=2)
LENGTHS = [RESTARTS.cycle(t).length for t in range(STEPS)]
# A schedule, what it gives the reference, a decay, and its λ in every update.
PLANS: dict[str, tuple[Any, list[float], Any, list[float]]] = {
    "constant": (None, [1.0] * STEPS, 0.04, [0.04] * STEPS),
    "restarts": (RESTARTS, [RESTARTS(t) for t in range(STEPS)], 0.04, [0.04] * STEPS),
    "normalized": (
        RESTARTS,
        [RESTARTS(t) for t in range(STEPS)],
        Normalized(0.2),
        [0.2 / float(length or 0) ** 0.5 for length in LENGTHS],
    ),
}


@pytest.mark.parametrize("kernel", [None, "foreach", "reference"])
@pytest.mark.parametrize(("schedule", "eta", "decay", "decays"), PLANS.values(), ids=PLANS)
def test_it_equals_its_float64_reference(
    schedule: Any, eta: list[float], decay: Any, decays: list[float], kernel: str | None
) -> None:
    opt = LION.build([parameter()], schedule=schedule, weight_decay=decay, kernel=kernel)
    advance(opt)
    expected = LION.reference(start(), gradient, eta=eta, weight_decay=decays)
    np.testing.assert_allclose(weights(opt)[0].numpy(), expected, rtol=1e-12)


def test_changing_its_learning_rate_leaves_its_decay_alone() -> None:
    """Where gradients are 0, each update removes λ of a weight, and not lr · λ."""
    for lr in (0.001, 0.1):
        theta = parameter()
        before = theta.detach().clone()
        theta.grad = torch.zeros_like(theta)
        LION.build([theta], lr=lr).step()
        torch.testing.assert_close(theta.detach(), before * (1 - 0.04))


@pytest.mark.parametrize("kernel", ["foreach", "reference"])
def test_it_goes_on_from_a_checkpoint_to_the_bit(kernel: str) -> None:
    options = {"weight_decay": Normalized(0.2), "schedule": RESTARTS, "kernel": kernel}
    whole, first = (LION.build([parameter()], **options) for _ in range(2))
    advance(whole)
    advance(first, 17)
    resumed = LION.build([parameter(weights(first)[0].numpy())], **options)
    resumed.load_state_dict(copy.deepcopy(first.state_dict()))
    pickled = pickle.loads(pickle.dumps(first))
    for opt in (resumed, pickled):
        advance(opt, STEPS - 17, first=18)
        assert torch.equal(*weights(opt), *weights(whole))
        assert opt.state_dict()["param_groups"] == whole.state_dict()["param_groups"]


def test_a_state_without_its_momentum_is_refused() -> None:
    opt = LION.build([parameter()])
    advance(opt, 2)
    state = opt.state_dict()
    del state["state"][0]["exp_avg"]
    state["state"][0]["step"] = torch.tensor(2.0)
    with pytest.raises(ValueError, match="must have `exp_avg`, and `exp_avg` is missing"):
        LION.build([parameter()]).load_state_dict(state)


def test_the_fastest_kernel_that_has_its_formula_is_chosen() -> None:
    params = [torch.nn.Parameter(torch.ones(3, dtype=d)) for d in (torch.float32, torch.bfloat16)]
    opt = LION.build(params)
    for param in params:
        param.grad = torch.ones_like(param)
    opt.step()
    [(step, _, of)] = opt._plan._lists
    assert (step, of, opt._plan._singles) == (Lion.algorithm.foreach, [0], [1])
    assert not opt._plan.tables


@pytest.mark.parametrize("kernel", ["triton", "fused"])
def test_a_kernel_that_has_no_formula_of_it_says_so(kernel: str) -> None:
    theta = parameter(dtype=torch.float32)
    opt = LION.build([theta], kernel=kernel)
    theta.grad = torch.ones_like(theta)
    before = theta.detach().clone()
    with pytest.raises(
        RuntimeError,
        match=f"kernel='{kernel}' must be given an algorithm that has a formula for {kernel}, got "
        "Lion, which has none. Leave `kernel` out",
    ):
        opt.step()
    assert torch.equal(theta, before)


@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rounding", ["stochastic", "compensated"])
def test_its_16_bit_weights_decay_by_lambda(rounding: str, state_dtype: str) -> None:
    """Rounded to nearest, 1 − 0.001 of a bfloat16 weight is the weight itself."""
    theta = torch.nn.Parameter(torch.ones(20_000, dtype=torch.bfloat16))
    options = {"rounding": rounding, "state_dtype": state_dtype, "weight_decay": 0.001}
    opt = LION.build([theta], **options)
    theta.grad = torch.zeros_like(theta)
    for _ in range(50):
        opt.step()
    assert theta.float().mean().item() == pytest.approx(0.999**50, abs=2e-3)


def test_maximizing_is_minimizing_the_negative() -> None:
    for kernel in ("foreach", "reference"):
        up, down = parameter(), parameter()
        climbing = LION.build([up], maximize=True, kernel=kernel)
        falling = LION.build([down], kernel=kernel)
        for t in range(1, 6):
            up.grad = torch.tensor(gradient(t, start()))
            down.grad = -up.grad
            climbing.step()
            falling.step()
        assert torch.equal(up, down)


def test_its_arguments_are_checked_like_those_of_any_class() -> None:
    with pytest.raises(TypeError, match=r"Lion has no `bettas`\. Did you mean `betas`\?"):
        LION.build([parameter()], bettas=(0.9, 0.99))
    with pytest.raises(TypeError, match=r"Lion has no `momentum`\. It has `lr`, `betas`"):
        LION.build([{"params": [parameter()], "momentum": 0.9}])
    with pytest.raises(ValueError, match=r"`betas` must be in \[0, 1\), got 1.0"):
        LION.build([parameter()], betas=(1.0, 0.9))
    with pytest.raises(TypeError, match="`weight_decay` must be stated"):
        LION.build([parameter()], weight_decay=None)


def test_an_argument_that_only_it_has_is_known_in_its_groups() -> None:
    """A misspelt one is not taken for a key of the user's own."""

    class Sharper(Lion):
        def __init__(self, params: Any) -> None:
            super().__init__(params, 0.1, weight_decay=0.1)

        def add_param_group(self, param_group: dict[str, Any]) -> None:
            self.defaults.setdefault("sharpness", 1.0)
            super().add_param_group(param_group)

    with pytest.raises(TypeError, match=r"no `sharpnes`\. Did you mean `sharpness`\?"):
        Sharper([{"params": [parameter()], "sharpnes": 2.0}])
    AdamW([{"params": [parameter()], "sharpnes": 2.0}], weight_decay=0.1)  # there it is


def test_it_is_explained_and_is_not_taken_for_one_of_torchs() -> None:
    opt = LION.build([parameter()], schedule=Cosine(100))
    [stretch] = explain(opt).groups[0].stretches
    assert isinstance(stretch.decay, Decay)
    assert stretch.decay.weight_decay == 0.04
    advance(opt, 1)
    with pytest.raises(ValueError, match="must come from AdamW, Adam or SGD, got groups with"):
        to_torch(opt.state_dict())
