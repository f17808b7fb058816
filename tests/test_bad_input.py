"""Wrong numbers raise a ValueError with requirement, value and cure; wrong types a TypeError."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import StepLR

from tests.cases import Case, every_case, every_decoupled_case, parameter
from weightdecay import (
    SGD,
    SGDW,
    SGDWR,
    Adam,
    AdamW,
    AdamWR,
    Constant,
    Cosine,
    Normalized,
    StepDrop,
)

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("lr", [-0.1, NAN, INF, -INF, torch.tensor(NAN)])
@every_case
def test_a_bad_learning_rate(case: Case, lr: Any) -> None:
    """PEERS 12."""
    with pytest.raises(ValueError, match="`lr` must be finite and at least 0, got"):
        case.build([parameter()], lr=lr)


@pytest.mark.parametrize("lr", ["0.1", None, True, 1j, [0.1]])
@every_case
def test_a_learning_rate_of_the_wrong_type(case: Case, lr: Any) -> None:
    with pytest.raises(TypeError, match="`lr` must be a number, got"):
        case.build([parameter()], lr=lr)


@pytest.mark.parametrize("decay", [-0.1, 1.0, 5, NAN, INF])
@every_decoupled_case
def test_a_bad_decay(case: Case, decay: float) -> None:
    with pytest.raises(
        ValueError, match=r"must be in \[0, 1\), got .* torch's weight_decay times lr"
    ):
        case.build([parameter()], weight_decay=decay)


@pytest.mark.parametrize("decay", ["0.1", True, (0.1,)])
@every_decoupled_case
def test_a_decay_of_the_wrong_type(case: Case, decay: Any) -> None:
    with pytest.raises(TypeError, match="`weight_decay` must be a number, got"):
        case.build([parameter()], weight_decay=decay)


@every_decoupled_case
def test_decay_must_be_stated_somewhere(case: Case) -> None:
    with pytest.raises(TypeError, match="`weight_decay` must be stated"):
        case.build([parameter()], weight_decay=None)
    opt = case.build([{"params": [parameter()], "weight_decay": 0.1}], weight_decay=None)
    with pytest.raises(TypeError, match="`weight_decay` must be stated"):
        opt.add_param_group({"params": [parameter()]})


@every_decoupled_case
def test_a_rate_of_zero_with_decay_is_refused(case: Case) -> None:
    with pytest.raises(ValueError, match="`lr` must be above 0 if weights decay, got 0"):
        case.build([parameter()], lr=0)
    opt = case.build([parameter()], lr=0, weight_decay=0.0)
    opt.param_groups[0]["params"][0].grad = torch.ones(7, dtype=torch.float64)
    opt.step()


@every_decoupled_case
@pytest.mark.parametrize("schedule", [None, Constant(), StepDrop(at=(5,)), lambda _: 1.0])
def test_normalized_with_no_way_to_know_the_updates(case: Case, schedule: Any) -> None:
    with pytest.raises(ValueError, match=r"number of updates, got .*Normalized\(0.05, steps=…\)"):
        case.build([parameter()], weight_decay=Normalized(0.05), schedule=schedule)
    told = Normalized(0.05, steps=100)
    opt = case.build([parameter()], weight_decay=told, schedule=schedule)
    assert opt.param_groups[0]["weight_decay"] == 0.005


BAD: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda p: Adam(p, l2=-1), ValueError, "`l2` must be finite and at least 0, got -1"),
    (lambda p: SGD(p, 0.1, l2=NAN), ValueError, "`l2` must be finite and at least 0, got nan"),
    (lambda p: Adam(p, l2=Normalized(1)), TypeError, "`l2` must be a number, got Normalized"),  # type: ignore[arg-type]
    (lambda p: Adam(p, betas=(1.0, 0.9)), ValueError, r"`betas` must be in \[0, 1\), got 1.0"),
    (lambda p: Adam(p, betas=(0.9, NAN)), ValueError, r"`betas` must be in \[0, 1\), got nan"),
    (lambda p: Adam(p, betas=(-0.1, 0.9)), ValueError, r"`betas` must be in \[0, 1\), got -0.1"),
    (lambda p: Adam(p, betas=0.9), TypeError, "`betas` must be a pair of numbers, got 0.9"),  # type: ignore[arg-type]
    (lambda p: Adam(p, betas=(0.9,)), TypeError, "`betas` must be a pair of numbers"),  # type: ignore[arg-type]
    (lambda p: Adam(p, eps=-1e-8), ValueError, "`eps` must be finite and at least 0, got -1e-08"),
    (lambda p: Adam(p, amsgrad=1), TypeError, "`amsgrad` must be True or False, got 1"),  # type: ignore[arg-type]
    (lambda p: Adam(p, maximize="no"), TypeError, "`maximize` must be True or False"),  # type: ignore[arg-type]
    (lambda p: SGD(p, 0.1, momentum=1.0), ValueError, r"`momentum` must be in \[0, 1\), got 1.0"),
    (lambda p: SGD(p, 0.1, momentum=-1), ValueError, r"`momentum` must be in \[0, 1\), got -1"),
    (lambda p: SGD(p, 0.1, nesterov=1), TypeError, "`nesterov` must be True or False, got 1"),  # type: ignore[arg-type]
    (
        lambda p: SGD(p, 0.1, momentum=0, nesterov=True),
        ValueError,
        "`momentum` must be above 0 with nesterov=True, got 0",
    ),
    (
        lambda p: Adam(p, schedule=StepLR(torch.optim.SGD(p), 1)),  # type: ignore[arg-type]
        TypeError,
        "A torch scheduler works without it: leave it out.",
    ),
    (lambda p: Adam(p, schedule=0.5), TypeError, "`schedule` must be a schedule or a function"),  # type: ignore[arg-type]
    (
        lambda p: Adam(p, torch.ones(2)),
        ValueError,
        "float64 tensor of one element, got a tensor of torch.float32 and shape",
    ),
    (lambda _: Adam([]), ValueError, "empty parameter list"),
    (lambda p: Adam(p[0]), TypeError, "an iterable of Tensors"),
    (
        lambda p: AdamWR(p, 0.1, first=10, factor=0.5, normalized_decay=0.1),
        ValueError,
        "`factor` must be finite and at least 1, got 0.5. With 1 all cycles are equally long",
    ),
    (
        lambda p: SGDWR(p, 0.1, first=1, normalized_decay=2),
        ValueError,
        r"`weight_decay` must be below 1, got 2 from Normalized.* over 1 updates. Lower the value",
    ),
    (
        lambda p: Adam([{"params": p, "weight_decay": 0.1}]),
        TypeError,
        r"Adam has no `weight_decay`\. It has `lr`, `betas`.*L2 regularization is `l2` of SGD",
    ),
    (
        lambda p: SGDW([{"params": p, "l2": 0.1}], 0.1, weight_decay=0.1),
        TypeError,
        "SGDW has no `l2`",
    ),
    (
        lambda p: AdamW([{"params": p, "wieght_decay": 0.1}], weight_decay=0.1),
        TypeError,
        r"no `wieght_decay`\. Did you mean `weight_decay`\? It has `lr`, `betas`, `eps`, `weight_d",
    ),
    (
        lambda p: AdamWR(p, 0.1, first=9, weight_decay=0.1),  # type: ignore[call-arg]
        TypeError,
        r"AdamWR has no `weight_decay`\. .* Pass λ_norm as `normalized_decay`.* SGDW with `sched",
    ),
    (
        lambda p: SGDWR(p, 0.1, first=9, normalized_decay=0.1, schedule=Cosine(9)),  # type: ignore[call-arg]
        TypeError,
        r"SGDWR has no `schedule`\..* `WarmRestarts\(first\)`\. For another one, use AdamW or SGDW",
    ),
    (
        lambda p: AdamW(p, normalized_decay=0.1),  # type: ignore[call-overload]
        TypeError,
        r"AdamW has no `normalized_decay`\..* Pass `weight_decay=Normalized\(λ_norm\)`\.$",
    ),
    (
        lambda p: AdamWR([{"params": p, "normalized_decay": 0}], 0.1, first=9, normalized_decay=1),
        TypeError,
        r"A group of AdamWR has no `normalized_decay`\..* Pass `weight_decay=Normalized\(λ_norm\)",
    ),
    (
        lambda p: AdamW([{"params": p, "lr": NAN}], weight_decay=0.1),
        ValueError,
        "`lr` must be finite and at least 0, got nan",
    ),
]


@pytest.mark.parametrize(("build", "error", "text"), BAD, ids=[text for *_, text in BAD])
def test_a_bad_argument_says_requirement_value_and_cure(
    build: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        build([parameter()])


LEAVE_OUT = "Leave it out: the fastest kernel is chosen; `kernel=` forces one"


@pytest.mark.parametrize("key", ["fused", "foreach", "capturable", "differentiable"])
@pytest.mark.parametrize("value", [True, False, None])
@every_case
def test_torchs_choice_of_a_kernel_is_to_be_left_out(case: Case, key: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"has no `{key}`. {LEAVE_OUT}"):
        case.build([parameter()], **{key: value})
    with pytest.raises(TypeError, match=LEAVE_OUT):
        case.build([{"params": [parameter()], key: value}])


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("weight_decy", "weight_decay"),
        ("weightdecay", "weight_decay"),
        ("lambda", "weight_decay"),
        ("wd", "weight_decay"),
        ("beta", "betas"),
        ("beta1", "betas"),
        ("learning_rate", "lr"),
        ("LR", "lr"),
        ("epsilon", "eps"),
        ("ams_grad", "amsgrad"),
        ("scheduler", "schedule"),
    ],
)
def test_a_misspelt_key_of_a_group_is_told_from_a_users_own(key: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"AdamW has no `{key}`. Did you mean `{meant}`?"):
        AdamW([{"params": [parameter()], key: 0.1}])


@pytest.mark.parametrize("key", ["momentum", "nesterov", "dampening", "l2", "kernel"])
def test_a_key_that_another_class_has_is_no_key_of_a_users_own(key: str) -> None:
    with pytest.raises(TypeError, match=f"AdamW has no `{key}`. It has `lr`"):
        AdamW([{"params": [parameter()], key: 0.1}], weight_decay=0.1)


def test_a_misspelt_argument_is_told_what_was_meant() -> None:
    with pytest.raises(TypeError, match=r"AdamW has no `kernal`\. Did you mean `kernel`\?"):
        AdamW([parameter()], weight_decay=0.1, kernal="fused")  # type: ignore[call-overload]


def test_a_refused_group_leaves_the_optimizer_as_it_was() -> None:
    opt = AdamW([parameter()], weight_decay=0.1)
    with pytest.raises(ValueError, match="`lr` must be"):
        opt.add_param_group({"params": [parameter()], "lr": -1})
    assert len(opt.param_groups) == 1
    opt.step()


def test_a_group_given_is_not_changed() -> None:
    group = {"params": [parameter()], "lr": 0.1}
    AdamW([group], weight_decay=0.1)
    assert set(group) == {"params", "lr"}
