"""A run begun with `torch.optim` goes on with ours from its checkpoint, and back."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from tests.cases import advance, parameter, set_gradients, weights
from weightdecay import SGD, SGDW, Adam, AdamW, Cosine, Normalized, from_torch, to_torch

# Ours, theirs, and what theirs is built with; ours are built with other numbers, to be replaced.
PAIRS: dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any]]] = {
    "adamw": (torch.optim.AdamW, AdamW, {"lr": 0.02, "weight_decay": 2.0}, {"weight_decay": 0.5}),
    "adamw-amsgrad": (
        torch.optim.AdamW,
        AdamW,
        {"lr": 0.02, "weight_decay": 2.0, "amsgrad": True, "betas": (0.7, 0.8)},
        {"weight_decay": 0.5},
    ),
    "adam": (torch.optim.Adam, Adam, {"lr": 0.02, "weight_decay": 0.3}, {}),
    "sgd": (torch.optim.SGD, SGD, {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.3}, {"lr": 1.0}),
    "sgd-nesterov": (
        torch.optim.SGD,
        SGD,
        {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.3, "nesterov": True},
        {"lr": 1.0},
    ),
    "sgd-plain": (torch.optim.SGD, SGD, {"lr": 0.02, "weight_decay": 0.3}, {"lr": 1.0}),
    "sgd-maximize": (
        torch.optim.SGD,
        SGD,
        {"lr": 0.001, "momentum": 0.5, "maximize": True},
        {"lr": 1.0},
    ),
}
every_pair = pytest.mark.parametrize(
    ("theirs", "ours", "options", "other"), PAIRS.values(), ids=PAIRS
)


def begun(cls: Any, options: dict[str, Any], steps: int) -> Any:
    groups = [{"params": [parameter()]}, {"params": [parameter()], "lr": options["lr"] / 2}]
    opt = cls(groups, **options)
    advance(opt, steps)
    return opt


def continued(cls: Any, options: dict[str, Any], state: Any, values: list[torch.Tensor]) -> Any:
    groups = [{"params": [parameter(value.numpy())]} for value in values]
    opt = cls(groups, **options)
    opt.load_state_dict(copy.deepcopy(state))
    return opt


@every_pair
@pytest.mark.parametrize("saved_after", [0, 1, 7])
def test_a_run_of_torchs_goes_on_with_ours(
    theirs: Any, ours: Any, options: dict[str, Any], other: dict[str, Any], saved_after: int
) -> None:
    whole = begun(theirs, options, 20)
    halted = begun(theirs, options, saved_after)
    resumed = continued(ours, other, from_torch(halted.state_dict()), weights(halted))
    advance(resumed, 20 - saved_after, first=saved_after + 1)
    for one, two in zip(weights(resumed), weights(whole), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11)


@every_pair
@pytest.mark.parametrize("saved_after", [0, 1, 7])
def test_and_back(
    theirs: Any, ours: Any, options: dict[str, Any], other: dict[str, Any], saved_after: int
) -> None:
    whole = begun(theirs, options, 20)
    halted = begun(theirs, options, saved_after)
    mine = continued(ours, other, from_torch(halted.state_dict()), weights(halted))
    resumed = continued(theirs, {"lr": 0.5}, to_torch(mine.state_dict()), weights(mine))
    advance(resumed, 20 - saved_after, first=saved_after + 1)
    for one, two in zip(weights(resumed), weights(whole), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11)


def test_under_a_torch_scheduler_adamw_goes_on_exactly() -> None:
    """The decay is lr · weight_decay at every step, whatever base is taken."""
    whole, halted = (torch.optim.AdamW([parameter()], 0.05, weight_decay=2.0) for _ in range(2))
    schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(opt, 30) for opt in (whole, halted)]
    advance(whole, 20, then=schedulers[0].step)
    advance(halted, 8, then=schedulers[1].step)
    resumed = AdamW([parameter(weights(halted)[0].numpy())], 0.05, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(resumed, 30)
    scheduler.load_state_dict(schedulers[1].state_dict())
    resumed.load_state_dict(from_torch(halted.state_dict()))
    advance(resumed, 12, first=9, then=scheduler.step)
    np.testing.assert_allclose(weights(resumed)[0], weights(whole)[0], rtol=1e-10)


def test_a_torch_scheduler_made_anew_finds_where_it_began() -> None:
    """`last_epoch` needs the `initial_lr` that the first scheduler left in the groups."""
    whole, halted = (torch.optim.AdamW([parameter()], 0.05, weight_decay=2.0) for _ in range(2))
    schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(opt, 30) for opt in (whole, halted)]
    advance(whole, 20, then=schedulers[0].step)
    advance(halted, 8, then=schedulers[1].step)
    resumed = AdamW([parameter(weights(halted)[0].numpy())], 0.05, weight_decay=0.1)
    resumed.load_state_dict(from_torch(halted.state_dict()))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(resumed, 30, last_epoch=7)
    assert resumed.param_groups[0]["lr"] == pytest.approx(halted.param_groups[0]["lr"])
    advance(resumed, 12, first=9, then=scheduler.step)
    np.testing.assert_allclose(weights(resumed)[0], weights(whole)[0], rtol=1e-10)


def test_keys_of_ones_own_are_carried_along() -> None:
    own = {"lr_scale": 0.5, "group_name": "head"}
    theirs = torch.optim.SGD([{"params": [parameter()], **own}], 0.1)
    mine = SGD([parameter()], 1.0)
    mine.load_state_dict(from_torch(theirs.state_dict()))
    assert own.items() <= mine.param_groups[0].items()
    assert not {"foreach", "fused", "dampening"} & mine.param_groups[0].keys()
    back = to_torch(mine.state_dict())["param_groups"][0]
    assert own.items() <= back.items()
    assert not {"base", "scheduled", "updates", "rounding", "state_dtype", "l2"} & back.keys()


def test_it_copies_and_does_not_change_what_it_is_given() -> None:
    halted = begun(torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, 3)
    state = halted.state_dict()
    before = copy.deepcopy(state)
    from_torch(state)
    assert str(state) == str(before)
    mine = continued(SGD, {"lr": 1.0}, from_torch(state), weights(halted))
    kept = copy.deepcopy(mine.state_dict())
    to_torch(mine.state_dict())
    assert str(mine.state_dict()) == str(kept)


def test_updates_are_taken_from_adams_steps_and_are_one_for_all_groups() -> None:
    idle = torch.nn.Parameter(torch.zeros(2))
    groups: Any = [{"params": [parameter()]}, {"params": [idle]}]
    halted = torch.optim.AdamW(groups, 0.1, weight_decay=1.0)
    for _ in range(5):
        groups[0]["params"][0].grad = torch.ones(7, dtype=torch.float64)
        halted.step()
    converted = from_torch(halted.state_dict())["param_groups"]
    assert [group["updates"] for group in converted] == [5, 5]


def test_old_torches_saved_steps_as_numbers() -> None:
    state = begun(torch.optim.AdamW, {"lr": 0.1, "weight_decay": 1.0}, 5).state_dict()
    numbers = {k: {**v, "step": 5} for k, v in state["state"].items()}
    assert from_torch({**state, "state": numbers})["state"][0]["step"] == 5.0


def test_a_peak_that_is_still_to_come_is_taken_as_base() -> None:
    opt = torch.optim.AdamW([parameter()], 0.01, weight_decay=1.0)
    torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.5, total_steps=10)
    [group] = from_torch(opt.state_dict())["param_groups"]
    assert (group["base"], group["weight_decay"]) == (0.5, 0.5)


def test_a_run_that_torch_finished_goes_on_under_our_schedule_when_told_to() -> None:
    finished = torch.optim.AdamW([parameter()], 0.1, weight_decay=0.5)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(finished, T_max=4)
    advance(finished, 4, then=scheduler.step)
    opt = AdamW([parameter()], 0.1, weight_decay=0.05, schedule=Cosine(8))
    opt.load_state_dict(from_torch(finished.state_dict()))
    set_gradients(opt, 5)
    with pytest.raises(RuntimeError, match="got 0: something else set it"):
        opt.step()
    opt.rebase(0.1)
    opt.step()
    assert opt.param_groups[0]["lr"] == 0.1 * Cosine(8)(5)


def test_momentum_begun_anew_converts_under_any_schedule() -> None:
    state = from_torch({**_scheduled_sgd(), "state": {}})
    opt = SGD([parameter()], 0.1)
    opt.load_state_dict(state)
    advance(opt, 1)
    restarted = SGD([parameter()], 0.1, schedule=Cosine(10))
    to_torch(restarted.state_dict())


def test_a_normalized_decay_goes_to_torch_as_it_stands() -> None:
    opt = AdamW([parameter()], 0.1, weight_decay=Normalized(0.2), schedule=Cosine(100))
    advance(opt, 3)
    [group] = to_torch(opt.state_dict())["param_groups"]
    assert group["weight_decay"] == pytest.approx(0.02 / 0.1)
    assert group["lr"] == 0.1 * Cosine(100)(3)
    assert group["initial_lr"] == 0.1


def _scheduled_sgd() -> dict[str, Any]:
    opt = torch.optim.SGD([parameter()], 0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, step_size=1)
    advance(opt, 2, then=scheduler.step)
    return opt.state_dict()


def _our_scheduled_sgd() -> dict[str, Any]:
    opt = SGD([parameter()], 0.1, schedule=Cosine(10))
    advance(opt, 2)
    return opt.state_dict()


def _without(state: dict[str, Any], key: str) -> dict[str, Any]:
    groups = [{k: v for k, v in group.items() if k != key} for group in state["param_groups"]]
    return {**state, "param_groups": groups}


@pytest.mark.parametrize(
    ("convert", "state", "text"),
    [
        (from_torch, _scheduled_sgd, "`lr` must have been constant and above 0 to convert SGD's"),
        (to_torch, _our_scheduled_sgd, "`lr` must have been constant and above 0 to convert SGD's"),
        (
            from_torch,
            lambda: torch.optim.SGD([parameter()], 0.1, 0.9, dampening=0.5).state_dict(),
            "`dampening` must be 0, as in Algorithm 1, got 0.5",
        ),
        (
            to_torch,
            lambda: SGDW([parameter()], 0.1, weight_decay=0.1).state_dict(),
            "got SGDW's. torch has no SGDW",
        ),
        (
            from_torch,
            lambda: torch.optim.RMSprop([parameter()]).state_dict(),
            "must come from torch.optim.AdamW, Adam or SGD, got groups with",
        ),
        (
            from_torch,
            lambda: Adam([parameter()]).state_dict(),
            "come from torch.optim, got one from weigh",
        ),
        (
            from_torch,
            lambda: torch.optim.AdamW([parameter()], 1.0, weight_decay=2.0).state_dict(),
            r"`weight_decay` must be in \[0, 1\), got 2.0",
        ),
        (
            from_torch,
            lambda: torch.optim.AdamW([parameter()], 0.0, weight_decay=2.0).state_dict(),
            "`lr` must be above 0 to convert torch's weight_decay 2, got 0: λ is their product",
        ),
        (
            to_torch,
            lambda: torch.optim.Adam([parameter()]).state_dict(),
            "come from weightdecay, got",
        ),
        (
            from_torch,
            lambda: _without(
                torch.optim.AdamW([parameter()]).state_dict(), "decoupled_weight_decay"
            ),
            "`decoupled` must be given, .* Pass decoupled=True for AdamW",
        ),
    ],
)
def test_what_cannot_be_exact_is_refused(convert: Any, state: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        convert(state())


@pytest.mark.parametrize("convert", [from_torch, to_torch])
@pytest.mark.parametrize("bad", [{}, None, AdamW([parameter()], weight_decay=0.1)])
def test_what_is_no_state_is_refused(convert: Any, bad: Any) -> None:
    with pytest.raises(TypeError, match=r"what an optimizer's state_dict\(\) returns, got"):
        convert(bad)


def test_an_old_state_can_be_told_apart_by_hand() -> None:
    halted = torch.optim.AdamW([parameter()], 0.1, weight_decay=2.0)
    state = _without(halted.state_dict(), "decoupled_weight_decay")
    assert from_torch(state, decoupled=True)["param_groups"][0]["weight_decay"] == 0.2
    assert from_torch(state, decoupled=False)["param_groups"][0]["l2"] == 2.0


def test_sgd_without_momentum_converts_under_any_schedule() -> None:
    opt = torch.optim.SGD([parameter()], 0.1, weight_decay=0.3)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.5)
    advance(opt, 2, then=scheduler.step)
    [group] = from_torch(opt.state_dict())["param_groups"]
    assert (group["lr"], group["base"], group["l2"]) == (0.025, 0.1, 0.3)


def test_torch_is_not_given_the_key_that_16_bit_weights_round_by() -> None:
    theta = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    mine = AdamW([theta], weight_decay=0.1)
    theta.grad = torch.ones_like(theta)
    mine.step()
    [state] = to_torch(mine.state_dict())["state"].values()
    assert set(state) == {"step", "exp_avg", "exp_avg_sq"}
    assert "rounding_key" in mine.state[theta]
