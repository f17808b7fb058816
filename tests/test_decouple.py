"""Any class of torch's kind, decoupled: its own step on the loss alone, then ηλθ_{t−1} less."""

import copy
import pickle
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.cases import advance, each, parameter, set_gradients, start, third_party, weights
from weightdecay import (
    SGD,
    SGDW,
    Adam,
    AdamW,
    Cosine,
    Normalized,
    StepDrop,
    WarmRestarts,
    decouple,
    explain,
)

LAMBDA = 0.05
TORCH: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.05}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    "AMSGrad": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01}),
    "NAdam": (torch.optim.NAdam, {"lr": 0.01}),
    "NAdam decoupled": (torch.optim.NAdam, {"lr": 0.01, "decoupled_weight_decay": True}),
    "RAdam": (torch.optim.RAdam, {"lr": 0.01}),
    "Adamax": (torch.optim.Adamax, {"lr": 0.01}),
    "Adadelta": (torch.optim.Adadelta, {"lr": 0.5}),
    "Adafactor": (torch.optim.Adafactor, {"lr": 0.05}),
    "SGD": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "Adam fused": (torch.optim.Adam, {"lr": 0.01, "fused": True}),
    "Adam foreach": (torch.optim.Adam, {"lr": 0.01, "foreach": True}),
}
THIRD_PARTY: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "Lion": (third_party("Lion"), {"lr": 0.01}),
    "AdaBelief": (third_party("AdaBelief"), {"lr": 0.01}),
    "AdamP": (third_party("AdamP"), {"lr": 0.01}),
    "LAMB": (third_party("Lamb"), {"lr": 0.01}),
    "Adan": (third_party("Adan"), {"lr": 0.01}),
}
EVERY = {**TORCH, **THIRD_PARTY}
every_class = each(EVERY)


class NeedsClosure(torch.optim.SGD):
    def step(self, closure: Any) -> Any:  # type: ignore[override]
        return super().step(closure)


without_decay: dict[str, Any] = {"weight_decay": 0.0}


@every_class
def test_the_class_steps_alone_and_the_decay_is_of_the_weights_before(
    cls: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    """Step for step: a twin without decay, moved to the decayed weights, makes the same update."""
    schedule = Cosine(12, low=0.2)
    theta, twin = parameter(dtype=torch.float32), parameter(dtype=torch.float32)
    opt = decouple(cls)([theta], weight_decay=LAMBDA, schedule=schedule, **options)
    plain = cls([twin], **options, **without_decay)
    for t in range(1, 13):
        before = theta.detach().clone()
        twin.data.copy_(before)
        plain.param_groups[0]["lr"] = options["lr"] * schedule(t - 1)
        set_gradients(opt, t)
        set_gradients(plain, t)
        opt.step()
        plain.step()
        expected = twin - schedule(t - 1) * LAMBDA * before
        torch.testing.assert_close(theta.detach(), expected.detach(), rtol=1e-6, atol=1e-7)


@every_class
def test_changing_the_learning_rate_leaves_the_decay_alone(
    cls: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    """One update, with and without decay, at two rates: the difference is λθ at both."""
    for lr in (options["lr"], options["lr"] / 8):
        ends = []
        for decay in (0.0, LAMBDA):
            opt = decouple(cls)([parameter()], **{**options, "lr": lr}, weight_decay=decay)
            advance(opt, 1)
            ends.append(weights(opt)[0])
        np.testing.assert_allclose(ends[0] - ends[1], LAMBDA * start(), rtol=1e-5, atol=1e-9)


@every_class
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))],
    ids=["copy", "pickle"],
)
def test_a_copy_and_a_pickle_go_on_alike(
    cls: type[torch.optim.Optimizer], options: dict[str, Any], duplicate: Callable[[Any], Any]
) -> None:
    opt = decouple(cls)(
        [parameter()], weight_decay=Normalized(0.2), schedule=WarmRestarts(4), **options
    )
    advance(opt, 3)
    twin = duplicate(opt)
    assert type(twin) is type(opt)
    advance(opt, 8, first=4)
    advance(twin, 8, first=4)
    assert torch.equal(*weights(opt), *weights(twin))


@every_class
def test_a_resumed_run_goes_on_bit_for_bit(
    cls: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    def build(values: Any = None) -> Any:
        decay, schedule = Normalized(0.2), WarmRestarts(4)
        theta = parameter(values)
        return decouple(cls)([theta], weight_decay=decay, schedule=schedule, **options)

    whole, halted = build(), build()
    advance(whole, 10)
    advance(halted, 4)
    resumed = build(weights(halted)[0].numpy())
    resumed.load_state_dict(copy.deepcopy(halted.state_dict()))
    advance(resumed, 6, first=5)
    assert torch.equal(*weights(whole), *weights(resumed))


def test_the_same_class_gives_the_same_subclass() -> None:
    cls = decouple(torch.optim.Adagrad)
    assert decouple(torch.optim.Adagrad) is cls
    assert issubclass(cls, torch.optim.Adagrad)
    assert pickle.loads(pickle.dumps(cls)) is cls
    assert cls.__name__ == "DecoupledAdagrad"


def test_weight_decay_shows_lambda_and_the_class_never_sees_it() -> None:
    seen = []

    class Looking(torch.optim.RMSprop):
        def step(self, closure: Any = None) -> Any:
            seen.append([group["weight_decay"] for group in self.param_groups])
            return super().step(closure)

    groups: Any = [{"params": [parameter()]}, {"params": [parameter()], "weight_decay": 0.3}]
    opt = decouple(Looking)(groups, lr=0.01, weight_decay=0.1)
    opt.add_param_group({"params": [parameter()]})
    seen.clear()
    advance(opt, 1)
    assert seen == [[0.0, 0.0, 0.0]]
    assert [group["weight_decay"] for group in opt.param_groups] == [0.1, 0.3, 0.1]


def test_hooks_fire_once_where_the_class_calls_its_parents_step() -> None:
    class Calling(torch.optim.RMSprop):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    torch.optim.RMSprop([parameter()])
    opt = decouple(Calling)([parameter()], lr=0.01, weight_decay=0.1)
    events = []
    opt.register_step_pre_hook(lambda *_: events.append("pre"))
    opt.register_step_post_hook(lambda *_: events.append("post"))
    advance(opt, 1)
    assert events == ["pre", "post"]


def test_an_update_that_gradscaler_skips_decays_nothing() -> None:
    theta = parameter(dtype=torch.float32)
    opt = decouple(torch.optim.Adam)([theta], lr=0.1, weight_decay=0.1, fused=True)
    scaler = torch.amp.GradScaler(torch.get_default_device().type, init_scale=4.0)
    scaler.scale((theta * float("inf")).sum()).backward()  # type: ignore[no-untyped-call]
    scaler.step(opt)
    scaler.update()
    assert opt.param_groups[0]["updates"] == 0
    np.testing.assert_allclose(theta.detach(), start(), rtol=1e-6)


def test_a_probe_leaves_no_trace_and_undoes_nothing() -> None:
    """State made in __init__ keeps its keys; what was changed after the probe stays changed."""
    for cls, options in ((torch.optim.Adagrad, {}), (torch.optim.NAdam, {"betas": (0.5, 0.9)})):
        theta = parameter()
        opt = decouple(cls)([theta], lr=0.1, weight_decay=0.1, schedule=Cosine(9))
        theta.grad = torch.zeros_like(theta)
        opt.param_groups[0]["lr"] = 0.0
        opt.step()
        opt.param_groups[0]["lr"] = 0.1
        opt.rebase(0.05)
        opt.param_groups[0].update(options)
        advance(opt, 1)
        assert list(opt.state) == [theta]
        assert opt.param_groups[0]["base"] == 0.05
        assert {k: opt.param_groups[0][k] for k in options} == options
        opt.state_dict()


def test_a_class_that_loads_in_its_own_way_does() -> None:
    class Own(torch.optim.RMSprop):
        loaded = 0

        def load_state_dict(self, state_dict: Any) -> None:
            self.loaded += 1
            super().load_state_dict(state_dict)

    opt, other = (decouple(Own)([parameter()], lr=0.01, weight_decay=0.1) for _ in range(2))
    advance(opt, 2)
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    assert other.loaded == 1  # type: ignore[attr-defined]
    assert other.param_groups[0]["updates"] == 2


def test_16_bit_weights_decay_from_where_they_were_before_the_step() -> None:
    theta = torch.nn.Parameter(torch.ones(4096, dtype=torch.bfloat16))
    opt = decouple(torch.optim.SGD)([theta], lr=0.5, weight_decay=0.125)
    theta.grad = torch.ones_like(theta)
    opt.step()
    assert float(theta.detach().double().mean()) == pytest.approx(1 - 0.5 - 0.125, abs=1e-3)


def test_a_step_that_fails_leaves_lambda_where_it_was() -> None:
    class Failing(torch.optim.RMSprop):
        def step(self, _: Any = None) -> Any:
            raise OSError("no")

    with pytest.warns(UserWarning, match="Could not test whether .*: its step raised OSError: no"):
        opt = decouple(Failing)([parameter()], lr=0.01, weight_decay=0.1)
    set_gradients(opt, 1)
    with pytest.raises(OSError, match="no"):
        opt.step()
    assert opt.param_groups[0]["weight_decay"] == 0.1
    assert opt.param_groups[0]["updates"] == 0


def test_only_what_has_a_gradient_decays() -> None:
    idle, busy = parameter(), parameter()
    opt = decouple(torch.optim.Adagrad)([idle, busy], lr=0.01, weight_decay=0.1)
    busy.grad = torch.zeros_like(busy)
    opt.step()
    assert torch.equal(idle.detach(), torch.tensor(start()))
    np.testing.assert_allclose(busy.detach(), 0.9 * start(), rtol=1e-12)


def test_hooks_fire_once_and_a_closure_is_evaluated_once_first() -> None:
    """PEERS 15: the base step's hooks fire twice in a subclass that calls the hooked step."""
    torch.optim.Adagrad([parameter()])  # torch wraps a class's step when an instance is made
    theta = parameter()
    opt = decouple(torch.optim.Adagrad)([theta], lr=0.01, weight_decay=0.1)
    events = []
    opt.register_step_pre_hook(lambda *_: events.append("pre"))
    opt.register_step_post_hook(lambda *_: events.append("post"))

    def closure() -> float:
        events.append("closure")
        assert torch.is_grad_enabled()
        opt.zero_grad()
        loss = (theta**2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    loss = opt.step(closure)
    assert events == ["pre", "closure", "post"]
    assert loss == pytest.approx((start() ** 2).sum())


def test_decoupled_sgd_is_sgdw_only_while_lr_is_constant() -> None:
    """Algorithm 1 has η·α inside the momentum; torch multiplies the whole buffer by lr."""
    differences = []
    for schedule in (None, StepDrop(at=(5,))):
        ours = SGDW([parameter()], 0.05, momentum=0.9, weight_decay=LAMBDA, schedule=schedule)
        theirs = decouple(torch.optim.SGD)(
            [parameter()], lr=0.05, momentum=0.9, weight_decay=LAMBDA, schedule=schedule
        )
        advance(ours, 10)
        advance(theirs, 10)
        differences.append(float((weights(ours)[0] - weights(theirs)[0]).abs().max()))
    constant, dropped = differences
    assert constant < 1e-14
    assert dropped > 0.05


def test_decoupled_adam_is_adamw() -> None:
    ours = AdamW([parameter()], 0.01, weight_decay=LAMBDA, schedule=Cosine(20))
    theirs = decouple(torch.optim.Adam)(
        [parameter()], lr=0.01, weight_decay=LAMBDA, schedule=Cosine(20)
    )
    advance(ours, 15)
    advance(theirs, 15)
    np.testing.assert_allclose(weights(ours)[0], weights(theirs)[0], rtol=1e-12)


def test_a_decoupled_optimizer_can_be_explained() -> None:
    opt = decouple(torch.optim.Adagrad)([parameter()], lr=0.01, weight_decay=0.1)
    assert explain(opt, steps=7).groups[0].stretches[0].left == pytest.approx(0.9**7)


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (torch.optim.LBFGS, "LBFGS cannot be decoupled: it evaluates the loss several times"),
        (torch.optim.Rprop, "Rprop cannot be decoupled: it adapts its step sizes to the signs"),
        (torch.optim.ASGD, "ASGD cannot be decoupled: it decays weights by `lambd`"),
        (AdamW, "must not be a weightdecay class, got AdamW"),
        (SGD, "SGDW and AdamW are the decoupled SGD and Adam"),
        (Adam, "SGDW and AdamW are the decoupled SGD and Adam"),
        (decouple(torch.optim.Adagrad), "must not be a weightdecay class, got DecoupledAdagrad"),
        (NeedsClosure, "NeedsClosure cannot be decoupled: its step requires a closure"),
        (torch.nn.Linear, "must be a subclass of torch.optim.Optimizer, got"),
        ("Adam", "must be a subclass of torch.optim.Optimizer, got 'Adam'"),
    ],
)
def test_what_cannot_be_decoupled_is_refused_with_the_reason(cls: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        decouple(cls)


def test_a_class_without_lr_is_refused() -> None:
    class NoRate(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

    with pytest.raises(TypeError, match="must have an `lr`, and NoRate has none"):
        decouple(NoRate)([parameter()], weight_decay=0.1)


def test_sparse_gradients_with_decay_are_refused_and_without_it_served() -> None:
    theta = parameter()
    theta.grad = torch.ones(7, dtype=torch.float64).to_sparse()
    opt = decouple(torch.optim.SGD)([theta], lr=0.01, weight_decay=0.1)
    with pytest.raises(RuntimeError, match="dense gradients if weights decay, got a sparse"):
        opt.step()
    assert torch.equal(theta.detach(), torch.tensor(start()))
    opt.param_groups[0]["weight_decay"] = 0.0
    opt.step()
    np.testing.assert_allclose(theta.detach(), start() - 0.01, rtol=1e-12)


def test_weight_decay_must_be_stated() -> None:
    with pytest.raises(TypeError, match="`weight_decay` must be stated"):
        decouple(torch.optim.Adagrad)([parameter()], lr=0.01)


@pytest.mark.parametrize("bad", [1.0, -0.1, float("nan")])
def test_a_bad_decay_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=r"`weight_decay` must be in \[0, 1\)"):
        decouple(torch.optim.Adagrad)([parameter()], lr=0.01, weight_decay=bad)


PAGE = Path(__file__).parents[1] / "docs" / "decouple.md"
# What a class must be told.
NEEDED: dict[str, dict[str, Any]] = {"Ranger21": {"num_iterations": 100}}


def outcome(cls: type[torch.optim.Optimizer]) -> str:
    """Return the heading of docs/decouple.md under which a class belongs."""
    theta = torch.nn.Parameter(torch.ones(3, 4))
    options = {"lr": 0.01, "weight_decay": 0.1, **NEEDED.get(cls.__name__, {})}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            opt = decouple(cls)([theta], **options)
            for _ in range(13):
                before = theta.detach().clone()
                theta.grad = torch.zeros_like(theta)
                opt.step()
        except (AttributeError, ImportError, RuntimeError, TypeError, ValueError) as error:
            refused = "weights must shrink by λ in every update" in str(error)
            return "Refused" if refused else "Not tried"
    assert not any("Could not test whether" in str(each.message) for each in caught)
    # Gravity begins with a random velocity of its own, which moves idle weights.
    if cls is not third_party("Gravity"):
        np.testing.assert_allclose(theta.detach(), 0.9 * before, rtol=1e-4)
    return "Supported"


@pytest.mark.slow
def test_the_page_lists_what_every_class_of_pytorch_optimizer_does() -> None:
    pytorch_optimizer = pytest.importorskip("pytorch_optimizer", reason="it is not installed")
    names = pytorch_optimizer.get_supported_optimizers()
    classes = {pytorch_optimizer.load_optimizer(name) for name in names}
    found: dict[str, list[str]] = {"Supported": [], "Refused": [], "Not tried": []}
    for cls in sorted(classes, key=lambda cls: cls.__name__):
        found[outcome(cls)].append(cls.__name__)
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    listed = {part.partition("\n")[0]: re.findall(r"`(\w+)`", part) for part in sections}
    assert listed == found


@pytest.mark.parametrize("name", ["ScheduleFreeAdamW", "MADGRAD", "Ranger", "Nero", "Fromage"])
def test_a_class_that_keeps_or_rescales_weights_is_refused_where_they_decay(name: str) -> None:
    pytest.importorskip("pytorch_optimizer", reason="it is not installed")
    cls = third_party(name)
    with pytest.raises(
        TypeError, match=f"{name} cannot be decoupled with these arguments: with zero "
    ):
        decouple(cls)([parameter()], lr=0.01, weight_decay=1e-4)
    with pytest.raises(TypeError, match="in every update, but at λ"):
        decouple(cls)([parameter()], lr=0.01, weight_decay=Normalized(0.1), schedule=Cosine(9))
    opt = decouple(cls)([parameter()], lr=0.01, weight_decay=0.0)
    with pytest.raises(TypeError, match="cannot be decoupled with these arguments"):
        opt.add_param_group({"params": [parameter()], "weight_decay": 0.1})
    assert len(opt.param_groups) == 1


class Slow(torch.optim.SGD):
    """Every `k` updates, the weights go back halfway to where they were."""

    def __init__(self, params: Any, lr: float, k: int, weight_decay: float = 0.0) -> None:
        super().__init__(params, lr, weight_decay=weight_decay)
        for group in self.param_groups:
            group["k"] = k
        self.defaults["k"] = k

    def step(self, closure: Any = None) -> Any:
        super().step(closure)
        for group in self.param_groups:
            for param in group["params"]:
                state = self.state[param]
                state["count"] = state.get("count", 0) + 1
                slow = state.setdefault("slow", param.detach().clone())
                if state["count"] % group["k"] == 0:
                    slow.lerp_(param, 0.5)
                    param.copy_(slow)


@pytest.mark.parametrize("k", [2, 6, 20])
def test_weights_that_come_back_are_found_however_many_updates_later(k: int) -> None:
    with pytest.raises(TypeError, match=f"in update {k}"):
        decouple(Slow)([parameter()], lr=0.1, k=k, weight_decay=0.1)


def test_a_class_is_tried_out_with_arguments_that_were_given_by_place() -> None:
    theta = parameter()
    opt = decouple(torch.optim.Adagrad)([theta], 0.01, 0.1, weight_decay=0.05)
    assert opt.param_groups[0]["lr_decay"] == 0.1
    with pytest.raises(TypeError, match="Slow cannot be decoupled with these arguments"):
        decouple(Slow)([theta], 0.1, 3, weight_decay=0.05)


def test_trying_a_class_out_is_done_once_and_draws_no_random_numbers() -> None:
    built = []

    class Counted(torch.optim.Adamax):
        def __init__(self, *args: Any, **options: Any) -> None:
            built.append(options)
            super().__init__(*args, **options)

        def step(self, closure: Any = None) -> Any:
            torch.rand(1)
            random.random()
            return super().step(closure)

    states = torch.get_rng_state(), random.getstate()
    for eps, times in ((1e-8, 2), (1e-8, 0), (1e-7, 2)):
        built.clear()
        decouple(Counted)([parameter()], lr=0.1, eps=eps, weight_decay=0.1)
        assert len(built) == times + 1
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
