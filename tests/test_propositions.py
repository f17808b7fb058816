"""The paper's propositions, its mechanism and its Bayesian reading, as things that can be run.

docs/propositions.md says what they show.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from weightdecay import SGD, SGDW, Adam, AdamW, Cosine, decouple

# A class of this file has scales on the tests' device, and is tried out on the CPU.
pytestmark = pytest.mark.filterwarnings("ignore:Could not test whether")
ALPHA, LAMBDA, STEPS = 0.1, 0.04, 30
SCALES = torch.tensor([0.2, 1.0, 3.0, 10.0], dtype=torch.float64)


def loss(theta: Tensor, t: int) -> Tensor:
    """A batch loss f_t: not quadratic, and of very different slope from weight to weight."""
    noise = torch.tensor(np.random.default_rng(t).normal(size=theta.shape))
    return torch.sum(SCALES * torch.cosh(theta - 1 + 0.3 * noise))


def trajectory(build: Any, penalty: Any = lambda theta: 0.0 * theta.sum()) -> Tensor:
    theta = torch.nn.Parameter(torch.tensor([1.5, -0.7, 0.4, 2.0], dtype=torch.float64))
    opt = build([theta])
    seen = []
    for t in range(STEPS):
        opt.zero_grad()
        (loss(theta, t) + penalty(theta)).backward()
        opt.step()
        seen.append(theta.detach().clone())
    return torch.stack(seen)


class FixedPreconditioner(torch.optim.Optimizer):
    """θ ← θ − α ∇f/s: Proposition 3's algorithm O, with M = diag(s)⁻¹."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        assert closure is None
        for group in self.param_groups:
            for param in group["params"]:
                param.sub_(group["lr"] * param.grad / SCALES)


@pytest.mark.parametrize("schedule", [None, Cosine(STEPS)], ids=["constant", "cosine"])
def test_proposition_1_weight_decay_is_l2_for_plain_sgd(schedule: Any) -> None:
    """With λ′ = λ/α: the best λ′ is tied to α."""
    rate = ALPHA / 20
    options = {"lr": rate, "momentum": 0.0, "schedule": schedule}
    decayed = trajectory(lambda p: SGDW(p, **options, weight_decay=LAMBDA))
    l2 = trajectory(lambda p: SGD(p, **options, l2=LAMBDA / rate))
    torch.testing.assert_close(decayed, l2, rtol=1e-12, atol=1e-12)
    by_hand = trajectory(
        lambda p: SGD(p, **options),
        penalty=lambda theta: LAMBDA / rate / 2 * theta.square().sum(),
    )
    torch.testing.assert_close(decayed, by_hand, rtol=1e-10, atol=1e-10)


def test_with_momentum_they_are_no_longer_the_same() -> None:
    """L2 goes through the momentum, decay does not."""
    rate = ALPHA / 20
    decayed = trajectory(lambda p: SGDW(p, rate, weight_decay=LAMBDA))
    l2 = trajectory(lambda p: SGD(p, rate, l2=LAMBDA / rate))
    assert (decayed - l2).abs().max() > 0.1


def _gap(decayed: Tensor, with_l2: Any) -> float:
    grid = [0.0, *np.geomspace(1e-4, 1e4, 81)]  # of 401, the least gap is the same
    return min(
        float((decayed - trajectory(lambda p, c=c: with_l2(p, c))).abs().max()) for c in grid
    )


@pytest.mark.slow
def test_proposition_2_no_l2_coefficient_gives_adams_decay() -> None:
    """Over eight decades of λ′ none comes near; for plain SGD the same search finds it."""
    decayed = trajectory(lambda p: AdamW(p, ALPHA, weight_decay=LAMBDA))
    assert _gap(decayed, lambda p, c: Adam(p, ALPHA, l2=c)) > 0.05
    rate = ALPHA / 20
    plain = trajectory(lambda p: SGDW(p, rate, momentum=0.0, weight_decay=rate))
    assert _gap(plain, lambda p, c: SGD(p, rate, momentum=0.0, l2=c)) < 1e-10


def test_proposition_2_each_weight_would_need_its_own_coefficient() -> None:
    """The proof's equation λθ = α λ′ M θ, solved for λ′ weight by weight: λ′ = λs/α."""
    wanted = LAMBDA * SCALES / ALPHA
    assert wanted.max() / wanted.min() == pytest.approx(50)
    for number, coefficient in enumerate(wanted.tolist()):
        decayed = trajectory(lambda p: decouple(FixedPreconditioner)(p, ALPHA, weight_decay=LAMBDA))
        l2 = trajectory(
            lambda p: FixedPreconditioner(p, ALPHA),
            penalty=lambda theta, c=coefficient: c / 2 * theta.square().sum(),
        )
        same = torch.isclose(decayed, l2, rtol=1e-10, atol=1e-10).all(dim=0)
        assert same.tolist() == [index == number for index in range(4)]


def test_proposition_3_decay_is_scale_adjusted_l2_as_proved() -> None:
    """f + λ′/2 ‖θ ⊙ √s‖² with λ′ = λ/α, the form of the proof."""
    decayed = trajectory(lambda p: decouple(FixedPreconditioner)(p, ALPHA, weight_decay=LAMBDA))
    adjusted = trajectory(
        lambda p: FixedPreconditioner(p, ALPHA),
        penalty=lambda theta: LAMBDA / ALPHA / 2 * (theta * SCALES.sqrt()).square().sum(),
    )
    torch.testing.assert_close(decayed, adjusted, rtol=1e-10, atol=1e-10)


def test_proposition_3_as_stated_is_a_slip() -> None:
    """The statement has λ′/(2α) beside λ′ = λ/α: one α too many, unless α = 1."""
    decayed = trajectory(lambda p: decouple(FixedPreconditioner)(p, ALPHA, weight_decay=LAMBDA))
    stated = trajectory(
        lambda p: FixedPreconditioner(p, ALPHA),
        penalty=lambda theta: LAMBDA / ALPHA / (2 * ALPHA) * (theta * SCALES.sqrt()).square().sum(),
    )
    assert (decayed - stated).abs().max() > 0.1


def _shrinkage(
    build: Any, *, gradients: Sequence[float], weights: Sequence[float] = (1.0, 1.0, 1.0)
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the shares that regularization takes from weights whose gradients alternate."""
    ends = []
    for amount in (0.0, 1e-3):
        theta = torch.nn.Parameter(torch.tensor(weights, dtype=torch.float64))
        opt = build([theta], amount)
        for t in range(200):
            theta.grad = (-1.0) ** t * torch.tensor(gradients, dtype=torch.float64)
            opt.step()
        ends.append(theta.detach().numpy())
    plain, regularized = ends
    return np.asarray(1 - regularized / plain)


def test_the_mechanism_l2_spares_weights_with_large_gradients_and_decay_does_not() -> None:
    scales = (1.0, 10.0, 100.0)
    spared = _shrinkage(lambda p, amount: Adam(p, 1e-2, l2=amount), gradients=scales)
    assert spared[0] > 5 * spared[1] > 25 * spared[2] > 0
    alike = _shrinkage(lambda p, amount: AdamW(p, 1e-2, weight_decay=amount), gradients=scales)
    np.testing.assert_allclose(alike, alike[0], rtol=0.01)
    assert alike[0] == pytest.approx(1 - (1 - 1e-3) ** 200, rel=0.01)


def test_the_mechanism_l2_spares_large_weights_and_decay_does_not() -> None:
    """Where the penalty's gradient is not small beside the loss's, Adam divides it by itself."""
    sizes = {"gradients": (0.1, 0.1, 0.1), "weights": (10.0, 100.0, 1000.0)}
    spared = _shrinkage(lambda p, amount: Adam(p, 1e-2, l2=amount), **sizes)
    assert spared[0] > spared[1] > 5 * spared[2] > 0
    alike = _shrinkage(lambda p, amount: AdamW(p, 1e-2, weight_decay=amount), **sizes)
    np.testing.assert_allclose(alike, alike[0], rtol=0.01)


def _normal(x: Any, mean: Any, deviation: float) -> Any:
    return np.exp(-(((x - mean) / deviation) ** 2) / 2) / (deviation * np.sqrt(2 * np.pi))


@pytest.mark.parametrize("uncertainty", [0.01, 0.3, 2.0])
def test_the_bayesian_filters_transition_decays_the_mean_whatever_the_uncertainty(
    uncertainty: float,
) -> None:
    """P(θ′|θ) = N((1 − λ)θ, Q), marginalized over N(μ, σ²) by quadrature: the mean is (1 − λ)μ."""
    mean, wander = 1.3, 0.2
    theta = np.linspace(mean - 9 * uncertainty, mean + 9 * uncertainty, 4001)
    reach = 9 * (uncertainty + wander)
    grid = np.linspace(mean - reach, mean + reach, 801)
    transition = _normal(grid[:, None], (1 - LAMBDA) * theta, wander)
    density = np.trapezoid(transition * _normal(theta, mean, uncertainty), theta)
    assert np.trapezoid(density * grid, grid) == pytest.approx((1 - LAMBDA) * mean, rel=1e-6)
    variance = np.trapezoid(density * (grid - (1 - LAMBDA) * mean) ** 2, grid)
    assert variance == pytest.approx((1 - LAMBDA) ** 2 * uncertainty**2 + wander**2, rel=1e-5)


def test_the_bayesian_filter_is_decoupled_decay_with_the_posterior_as_preconditioner() -> None:
    """μ ← (1 − λ)μ + Σ·g, exactly: a Kalman filter beside a decoupled optimizer.

    An L2 penalty would enter through g and be multiplied by Σ: certain weights would shrink less.
    """
    mean = np.array([1.5, -0.7, 0.4, 2.0])
    prior = np.array([0.01, 0.1, 1.0, 10.0])
    seen, noise = np.array([1.0, 0.0, -1.0, 2.5]), 0.5
    predicted_mean = (1 - LAMBDA) * mean
    predicted_variance = (1 - LAMBDA) ** 2 * prior + 0.02
    gain = predicted_variance / (predicted_variance + noise)
    filtered = predicted_mean + gain * (seen - predicted_mean)

    posterior = torch.tensor(1 / (1 / predicted_variance + 1 / noise))

    class Posterior(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            assert closure is None
            for param in self.param_groups[0]["params"]:
                param.sub_(posterior * param.grad)

    theta = torch.nn.Parameter(torch.tensor(mean))
    opt = decouple(Posterior)([theta], 1.0, weight_decay=LAMBDA)
    theta.grad = torch.tensor((predicted_mean - seen) / noise)
    opt.step()
    np.testing.assert_allclose(theta.detach(), filtered, rtol=1e-12)
    relative = (mean - (filtered - posterior.numpy() * (seen - predicted_mean) / noise)) / mean
    np.testing.assert_allclose(relative, LAMBDA, rtol=1e-12)
