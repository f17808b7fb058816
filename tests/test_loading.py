"""A state that does not fit is refused with its reason, and nothing is changed."""

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.cases import advance, parameter, weights
from weightdecay import SGDW, AdamW, Cosine, Normalized, decouple

Change = Callable[[dict[str, Any]], Any]


def build(cls: Any = AdamW, **options: Any) -> Any:
    groups = [{"params": [parameter(), parameter()]}, {"params": [parameter()], "lr": 0.02}]
    decay = {"weight_decay": Normalized(0.1), "schedule": Cosine(20)}
    return cls(groups, lr=0.01, **{**decay, **options})


def halted(cls: Any = AdamW, **options: Any) -> Any:
    opt = build(cls, **options)
    advance(opt, 4)
    return opt


def as_bytes(opt: Any) -> bytes:
    file = io.BytesIO()
    torch.save((opt.state_dict(), weights(opt)), file)
    return file.getvalue()


def check_refusal(opt: Any, state: Any, error: type[Exception], text: str) -> None:
    """The error says why, and the optimizer is as it was: its values, and the tensors they are in.

    Its next updates are those of one that never met the state.
    """
    twin = copy.deepcopy(opt)
    before = as_bytes(opt)
    held = [(id(one), [id(v) for v in one.values()]) for one in opt.state.values()]
    with pytest.raises(error, match=text):
        opt.load_state_dict(state)
    assert as_bytes(opt) == before
    assert [(id(one), [id(v) for v in one.values()]) for one in opt.state.values()] == held
    advance(opt, 2, first=5)
    advance(twin, 2, first=5)
    assert all(map(torch.equal, weights(opt), weights(twin)))


WHAT = r"what an optimizer's state_dict\(\) returns, got "


@pytest.mark.parametrize("cls", [AdamW, SGDW, decouple(torch.optim.Adagrad)])
@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({}, WHAT + "a dict without 'param_groups' and 'state'.*pass the optimizer's"),
        ({"state": {}}, WHAT + "a dict without 'param_groups'"),
        (None, WHAT + "None"),
        ([1, 2], WHAT + r"\[1, 2\]"),
        ({"state": [], "param_groups": []}, WHAT + "one whose 'state' is not a dict"),
        ({"state": {}, "param_groups": None}, WHAT + "one whose 'param_groups' is not a list"),
        ({"state": {}, "param_groups": [{}]}, WHAT + "one whose .* dicts with 'params'"),
    ],
)
def test_what_is_no_state_is_refused(cls: Any, state: Any, text: str) -> None:
    check_refusal(halted(cls), state, TypeError, text)


def group(key: str, value: Any) -> Change:
    """Change a value of the last group: those before it could be loaded."""
    return lambda state: state["param_groups"][-1].update({key: value})


def moment(key: str, value: Any) -> Change:
    return lambda state: state["state"][2].update({key: value})


def without(key: str) -> Change:
    return lambda state: state["state"][2].pop(key)


IMPOSSIBLE: dict[str, tuple[Change, type[Exception], str]] = {
    "betas above 1": (
        group("betas", (0.9, 1.5)),
        ValueError,
        r"`betas` must be in \[0, 1\), got 1",
    ),
    "one beta": (group("betas", 0.9), TypeError, "`betas` must be a pair of numbers, got 0.9"),
    "eps below 0": (group("eps", -1.0), ValueError, "`eps` must be finite and at least 0, got -1"),
    "a decay of 2": (
        lambda state: state["param_groups"][-1].update(weight_decay=2.0, normalized=None),
        ValueError,
        r"`weight_decay` must be .*got 2.0",
    ),
    "no decay": (group("weight_decay", None), TypeError, "`weight_decay` must be a number"),
    "half a Normalized": (group("normalized", (0.1, 0.5)), TypeError, "`normalized` must be a val"),
    "NaN for lr": (group("lr", float("nan")), ValueError, "`lr` must be finite and at least 0"),
    "no base": (group("base", None), TypeError, "`base` must be a number, got None"),
    "updates below 0": (group("updates", -1), ValueError, "`updates` must be at least 0, got -1"),
    "no updates": (
        lambda state: state["param_groups"][-1].pop("updates"),
        ValueError,
        "saved by AdamW, got one whose groups have no 'updates'",
    ),
    "amsgrad's moment": (group("amsgrad", True), ValueError, "and `max_exp_avg_sq` is missing"),
    "a missing moment": (
        without("exp_avg_sq"),
        ValueError,
        "must have `exp_avg`, `exp_avg_sq`, `step`, and `exp_avg_sq` is missing",
    ),
    "a missing count": (without("step"), ValueError, "and `step` is missing"),
    "a moment of None": (moment("exp_avg", None), TypeError, "`exp_avg` must be a tensor, got No"),
    "another shape": (moment("exp_avg", torch.zeros(3)), ValueError, r"shape \(7,\), got \(3,\)"),
    "no dict": (
        lambda state: state["state"].update({2: None}),
        TypeError,
        "the state of a parameter must be a dict, got None",
    ),
}


@pytest.mark.parametrize(("change", "error", "text"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_state_with_an_impossible_value_is_refused(
    change: Change, error: type[Exception], text: str
) -> None:
    state = copy.deepcopy(halted().state_dict())
    advance(opt := halted(), 1, first=5)
    change(state)
    check_refusal(opt, state, error, text)


def test_a_missing_momentum_is_refused_and_an_absent_state_begins_anew() -> None:
    state = copy.deepcopy(halted(SGDW).state_dict())
    state["state"][2] = {"exp_avg": torch.zeros(7)}
    check_refusal(halted(SGDW), state, ValueError, "`momentum_buffer` is missing")
    del state["state"][2]
    (opt := halted(SGDW)).load_state_dict(state)
    assert len(opt.state) == 2
    advance(opt, 1, first=5)
    assert len(opt.state) == 3


def test_a_decoupled_class_refuses_impossible_numbers_of_ours() -> None:
    cls = decouple(torch.optim.Adagrad)
    state = copy.deepcopy(halted(cls).state_dict())
    state["param_groups"][-1].update(weight_decay=-0.1, normalized=None)
    check_refusal(halted(cls), state, ValueError, "`weight_decay` must be")


def named(*names: str) -> Any:
    layers = nn.ModuleDict({name: nn.Linear(2, 2, bias=False) for name in names})
    return AdamW(layers.named_parameters(), weight_decay=0.1)


def test_named_parameters_in_another_order_are_refused() -> None:
    """They have one shape: torch would give each the other's moments."""
    advance(saved := named("encoder", "decoder"), 2)
    advance(opt := named("decoder", "encoder"), 4)
    text = (
        "in the order in which it was saved, got 'decoder.weight' at place 0 of a group where "
        "'encoder.weight' was saved. Pass the parameters in that order. .*remove 'param_names'"
    )
    check_refusal(opt, saved.state_dict(), ValueError, text)


def test_what_wraps_a_model_or_leaves_names_out_does_not_matter() -> None:
    advance(saved := named("encoder", "decoder"), 2)
    state = saved.state_dict()
    wrapped, bare = copy.deepcopy(state), copy.deepcopy(state)
    names = wrapped["param_groups"][0]["param_names"]
    wrapped["param_groups"][0]["param_names"] = [f"module._orig_mod.{name}" for name in names]
    bare["param_groups"][0].pop("param_names")
    for one in (wrapped, bare):
        opt = named("encoder", "decoder")
        opt.load_state_dict(one)
        assert len(opt.state) == 2


def test_numbers_that_others_keep_in_a_group_are_loaded() -> None:
    saved, opt = (AdamW([parameter()], 0.1, weight_decay=0.01) for _ in range(2))
    for one in (saved, opt):
        torch.optim.lr_scheduler.OneCycleLR(one, max_lr=0.1, total_steps=9, cycle_momentum=False)
    advance(saved, 3)
    opt.load_state_dict(saved.state_dict())
    assert opt.param_groups[0]["max_lr"] == 0.1
