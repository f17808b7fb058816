"""Every optimizer equals its float64 reference, is deterministic, and obeys the laws of decay."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import (
    CASES,
    DECOUPLED,
    STEPS,
    Case,
    advance,
    every_case,
    every_decoupled_case,
    gradient,
    parameter,
    set_gradients,
    start,
    weights,
    zero_gradients,
)
from weightdecay import (
    SGDW,
    SGDWR,
    Adam,
    AdamW,
    AdamWR,
    Constant,
    Cosine,
    Normalized,
    StepDrop,
    WarmRestarts,
    Warmup,
)

SCHEDULES: dict[str, Any] = {
    "none": None,
    "constant": Constant(),
    "drops": StepDrop(at=(10, 25), drop=0.2),
    "cosine": Cosine(30, low=0.1),
    "restarts": WarmRestarts(first=5, factor=1.5),
    "warm-up": Warmup(6, WarmRestarts(first=7, high=(1.0, 0.6), low=0.05)),
    "function": lambda t: 1 / (1 + t),
}
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)


def etas(schedule: Any, steps: int = STEPS) -> list[float]:
    return [1.0 if schedule is None else schedule(t) for t in range(steps)]


@pytest.mark.parametrize("kernel", ["reference", None])
@every_case
@every_schedule
def test_it_equals_the_paper(case: Case, schedule: Any, kernel: str | None) -> None:
    opt = case.build([parameter()], schedule=schedule, kernel=kernel)
    advance(opt)
    expected = case.reference(start(), gradient, eta=etas(schedule))
    np.testing.assert_allclose(weights(opt)[0], expected, rtol=1e-12, atol=1e-13)


@every_case
def test_it_equals_the_paper_in_float32(case: Case) -> None:
    opt = case.build([parameter(dtype=torch.float32)], schedule=Cosine(STEPS))
    advance(opt)
    expected = case.reference(start(), gradient, eta=etas(Cosine(STEPS)))
    np.testing.assert_allclose(weights(opt)[0], expected, rtol=0, atol=2e-6)


@given(
    name=st.sampled_from(sorted(CASES)),
    lr=st.floats(1e-4, 0.5),
    decay=st.floats(1e-3, 0.5),
    eta=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    size=st.integers(0, 5),
)
def test_it_equals_the_paper_for_any_rate_decay_and_schedule(
    name: str, lr: float, decay: float, eta: list[float], size: int
) -> None:
    case = CASES[name]
    changes = {"lr": lr, case.decay: decay}
    opt = case.build([parameter(start(size))], schedule=lambda t: eta[t % len(eta)], **changes)
    advance(opt, len(eta))
    expected = case.reference(start(size), gradient, eta=eta, **changes)
    np.testing.assert_allclose(weights(opt)[0], expected, rtol=1e-10, atol=1e-12)


@every_case
def test_it_is_deterministic(case: Case) -> None:
    first, second = (case.build([parameter()], schedule=Cosine(STEPS)) for _ in range(2))
    advance(first)
    advance(second)
    assert torch.equal(*weights(first), *weights(second))


@every_case
def test_it_converges(case: Case) -> None:
    """With decay small beside the slope, the noise-free minimum is found to within the decay."""
    theta = parameter()
    opt = case.build([theta], schedule=Cosine(2000), **{case.decay: 1e-5})
    for _ in range(2000):
        theta.grad = theta.detach() - 1
        opt.step()
    assert (theta - 1).abs().max() < 1e-2


@every_decoupled_case
@pytest.mark.parametrize("lr", [1e-3, 0.3])
def test_changing_the_learning_rate_leaves_the_decay_alone(case: Case, lr: float) -> None:
    """Idle weights shrink by (1 − λ) a step at any lr."""
    opt = case.build([parameter()], lr=lr)
    for _ in range(10):
        zero_gradients(opt)
        opt.step()
    np.testing.assert_allclose(weights(opt)[0], start() * (1 - 0.04) ** 10, rtol=1e-12)


@every_decoupled_case
def test_the_schedule_scales_both(case: Case) -> None:
    """Where η = 0 nothing moves; where η = ½ idle weights lose half of λ."""
    opt = case.build([parameter()], schedule=lambda t: [0.5, 0.0][t % 2])
    zero_gradients(opt)
    opt.step()
    np.testing.assert_allclose(weights(opt)[0], start() * (1 - 0.02), rtol=1e-12)
    before = weights(opt)[0]
    zero_gradients(opt)
    opt.step()
    assert torch.equal(weights(opt)[0], before)


@every_decoupled_case
def test_a_schedule_is_not_forgotten_by_the_decay(case: Case) -> None:
    """PEERS 10: an unscheduled λ grows relative to the shrinking lr."""
    opt = case.build([parameter()], schedule=Cosine(100))
    for _ in range(100):
        zero_gradients(opt)
        opt.step()
    kept = np.prod([1 - 0.04 * Cosine(100)(t) for t in range(100)])
    np.testing.assert_allclose(weights(opt)[0], start() * kept, rtol=1e-11)


@every_decoupled_case
def test_decay_is_of_the_weights_before_the_update(case: Case) -> None:
    """PEERS 8: not (1 − λ)(θ − update)."""
    plain = case.build([parameter()], weight_decay=0.0)
    decayed = case.build([parameter()])
    for opt in (plain, decayed):
        set_gradients(opt, 1)
        opt.step()
    difference = (weights(plain)[0] - weights(decayed)[0]).numpy()
    np.testing.assert_allclose(difference, 0.04 * start(), rtol=1e-12)


ADAM_VALUES = {"betas": (0.6, 0.7), "eps": 1e-3, "amsgrad": True}
SGD_VALUES = {"momentum": 0.5, "nesterov": True}


@pytest.mark.parametrize(
    ("restarting", "plain", "own"), [(AdamWR, AdamW, ADAM_VALUES), (SGDWR, SGDW, SGD_VALUES)]
)
def test_the_restarting_classes_pass_everything_on(
    restarting: Any, plain: Any, own: dict[str, Any]
) -> None:
    shared: dict[str, Any] = {**own, "maximize": True, "kernel": "reference"}
    shared |= {"rounding": "compensated", "state_dtype": "bfloat16"}
    cycles: dict[str, Any] = {"factor": 1.5, "high": (1.0, 0.5), "low": 0.1}
    schedule = WarmRestarts([3, 4], **cycles)
    opts = (
        restarting([parameter()], 0.05, first=[3, 4], normalized_decay=0.2, **cycles, **shared),
        plain([parameter()], 0.05, weight_decay=Normalized(0.2), schedule=schedule, **shared),
    )
    ends = []
    for opt in opts:
        advance(opt, 15)
        groups = [{k: v for k, v in g.items() if k != "params"} for g in opt.param_groups]
        ends.append((groups, opt.schedules, opt._kernel, weights(opt)[0].tolist()))
    assert ends[0] == ends[1]
    taken = {name for cls in (plain, WarmRestarts) for name in inspect.signature(cls).parameters}
    replaced = {"weight_decay", "schedule"}
    assert inspect.signature(restarting).parameters.keys() == taken - replaced | {
        "normalized_decay"
    }


@pytest.mark.parametrize("cls", [AdamWR, SGDWR])
@pytest.mark.parametrize("name", ["weight_decay", "schedule", "l2"])
def test_the_restarting_classes_name_what_they_take_instead(cls: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"WR has no `{name}`. It has .*`normalized_decay`"):
        cls([parameter()], 0.1, first=3, normalized_decay=0.1, **{name: 0.1})


@pytest.mark.parametrize(("restarting", "plain"), [(AdamWR, AdamW), (SGDWR, SGDW)])
def test_the_r_forms_are_restarts_and_normalized_decay_and_nothing_more(
    restarting: Any, plain: Any
) -> None:
    thin = restarting([parameter()], 0.02, first=4, factor=3, normalized_decay=0.3)
    full = plain(
        [parameter()], 0.02, weight_decay=Normalized(0.3), schedule=WarmRestarts(4, factor=3)
    )
    advance(thin)
    advance(full)
    assert torch.equal(*weights(thin), *weights(full))


@every_decoupled_case
def test_normalization_changes_exactly_at_a_restart(case: Case) -> None:
    """PEERS 5: the first batch after a restart has the new cycle's λ, and η = 1."""
    schedule = WarmRestarts(first=3, factor=2)
    opt = case.build([parameter()], weight_decay=Normalized(0.2), schedule=schedule)
    shown = []
    for t in range(1, 22):
        shown.append((opt.param_groups[0]["lr"], opt.param_groups[0]["weight_decay"]))
        set_gradients(opt, t)
        opt.step()
    lengths = [3] * 3 + [6] * 6 + [12] * 12
    decay = [0.2 / n**0.5 for n in lengths]
    assert [lam for _, lam in shown] == pytest.approx(decay, rel=1e-15)
    assert [lr for lr, _ in shown] == [case.options["lr"] * schedule(t) for t in range(21)]
    assert [shown[t][0] for t in (0, 3, 9)] == [case.options["lr"]] * 3
    expected = case.reference(start(), gradient, eta=etas(schedule, 21), weight_decay=decay)
    np.testing.assert_allclose(weights(opt)[0], expected, rtol=1e-12)


def test_warm_up_uses_the_first_cycles_decay() -> None:
    schedule = Warmup(2, WarmRestarts(first=3))
    opt = AdamW([parameter()], weight_decay=Normalized(0.2), schedule=schedule)
    shown = []
    advance(opt, 6, then=lambda: shown.append(opt.param_groups[0]["weight_decay"]))
    assert shown == pytest.approx([0.2 / n**0.5 for n in (3, 3, 3, 3, 6, 6)])


@pytest.mark.parametrize("case", DECOUPLED.values(), ids=DECOUPLED)
def test_each_group_keeps_its_own_values(case: Case) -> None:
    """PEERS 3, 6: own lr, λ and schedule, and a group decays once, whatever shares it."""
    own = {"lr": 0.007, "weight_decay": 0.3, "schedule": StepDrop(at=(5,), drop=0.3)}
    opt = case.build(
        [{"params": [parameter()]}, {"params": [parameter()], **own}], schedule=Cosine(STEPS)
    )
    advance(opt)
    for theta, schedule, changes in zip(
        weights(opt),
        (Cosine(STEPS), own.pop("schedule")),
        ({}, own),
        strict=True,
    ):
        expected = case.reference(start(), gradient, eta=etas(schedule), **changes)
        np.testing.assert_allclose(theta, expected, rtol=1e-12)


def test_a_group_may_have_its_own_betas_and_momentum() -> None:
    for name, own in (("adamw", {"betas": (0.5, 0.6), "eps": 0.1}), ("sgdw", {"momentum": 0.3})):
        case = CASES[name]
        opt = case.build([{"params": [parameter()]}, {"params": [parameter()], **own}])
        advance(opt)
        for theta, changes in zip(weights(opt), ({}, own), strict=True):
            expected = case.reference(start(), gradient, eta=etas(None), **changes)
            np.testing.assert_allclose(theta, expected, rtol=1e-12)


@every_case
def test_mixed_dtypes_in_a_group_decay_once_each(case: Case) -> None:
    """PEERS 6: buckets by dtype must not decay everything once a bucket."""
    dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float32)
    together = case.build([parameter(dtype=dtype) for dtype in dtypes])
    advance(together, 5)
    for number, dtype in enumerate(dtypes):
        # Rounding at random depends on a tensor's place among those of its shape: put it there.
        filler = [parameter() for _ in range(number)]
        alone = case.build([*filler, parameter(dtype=dtype)])
        advance(alone, 5)
        assert torch.equal(weights(together)[number], weights(alone)[number])


@every_case
def test_a_parameter_without_a_gradient_is_left_alone(case: Case) -> None:
    idle, busy = parameter(), parameter()
    opt = case.build([idle, busy])
    for _ in range(3):
        busy.grad = torch.ones_like(busy)
        opt.step()
    assert torch.equal(idle.detach(), torch.tensor(start()))
    assert idle not in opt.state


@pytest.mark.parametrize("cls", [Adam, AdamW])
def test_bias_correction_counts_a_parameters_own_updates(cls: Any) -> None:
    """A parameter that first sees a gradient late is corrected as if the run began there."""
    late, early = parameter(), parameter()
    decay = {"l2": 0.3} if cls is Adam else {"weight_decay": 0.04}
    opt = cls([late, early], lr=0.02, **decay)
    for t in range(1, 31):
        early.grad = torch.ones_like(early)
        late.grad = torch.tensor(gradient(t - 10, late.detach().numpy())) if t > 10 else None
        opt.step()
    expected = CASES[cls.__name__.lower()].reference(start(), gradient, eta=[1.0] * 20)
    np.testing.assert_allclose(late.detach(), expected, rtol=1e-12)


@every_case
def test_maximize_climbs(case: Case) -> None:
    up, down = case.build([parameter()], maximize=True), case.build([parameter()])
    for t in range(1, 11):
        set_gradients(up, t)
        up.param_groups[0]["params"][0].grad.neg_()
        up.step()
    advance(down, 10)
    np.testing.assert_allclose(weights(up)[0], weights(down)[0], rtol=1e-13)


@every_case
def test_a_complex_parameter_is_a_pair_of_real_ones(case: Case) -> None:
    real = torch.tensor(start(8)).view(4, 2)
    pair, number = torch.nn.Parameter(real.clone()), torch.nn.Parameter(torch.view_as_complex(real))
    one, other = case.build([pair]), case.build([number])
    for t in range(1, 11):
        grad = torch.tensor(np.random.default_rng(t).normal(size=(4, 2)))
        pair.grad, number.grad = grad, torch.view_as_complex(grad)
        one.step()
        other.step()
    torch.testing.assert_close(
        torch.view_as_real(number.detach()), pair.detach(), rtol=1e-12, atol=1e-12
    )


@every_case
def test_a_transposed_parameter_is_updated_like_any_other(case: Case) -> None:
    flat = parameter(start(12).reshape(3, 4))
    turned = torch.nn.Parameter(torch.tensor(start(12).reshape(3, 4)).t().contiguous().t())
    opts = [case.build([theta]) for theta in (flat, turned)]
    for t in range(1, 11):
        for opt in opts:
            set_gradients(opt, t)
            opt.step()
    torch.testing.assert_close(flat, turned, rtol=1e-12, atol=1e-12)


@every_case
def test_sparse_gradients_are_refused_with_a_cure(case: Case) -> None:
    theta = parameter()
    opt = case.build([theta])
    theta.grad = torch.ones(7, dtype=torch.float64).to_sparse()
    with pytest.raises(RuntimeError, match=r"dense gradients, got a sparse one.*to_dense"):
        opt.step()
    assert torch.equal(theta.detach(), torch.tensor(start()))


def test_torchs_adamw_is_ours_with_its_decay_times_lr() -> None:
    """The trap, as a law: weight_decay = lr · torch's, and a schedule is η on both."""
    ours = AdamW([parameter()], 0.02, weight_decay=0.02 * 3.0)
    theirs = torch.optim.AdamW([parameter()], 0.02, weight_decay=3.0)
    advance(ours)
    advance(theirs)
    np.testing.assert_allclose(weights(ours)[0], weights(theirs)[0], rtol=1e-11)
