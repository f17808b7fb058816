"""State is plain and complete: a run saved at any step, and resumed, goes on bit for bit."""

import copy
import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    _init_optim_state,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

from tests.cases import (
    DECOUPLED,
    Case,
    advance,
    every_case,
    parameter,
    set_gradients,
    start,
    weights,
    zero_gradients,
)
from weightdecay import (
    SGD,
    SGDW,
    AdamW,
    Cosine,
    Normalized,
    Schedule,
    WarmRestarts,
    Warmup,
    decouple,
    parameter_groups,
)

RESTARTS = Warmup(2, WarmRestarts(first=3, factor=2))


def build(case: Case, values: list[torch.Tensor] | None = None) -> Any:
    """Several groups, one with its own schedule, 16-bit weights, Normalized where there is λ."""
    dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
    params = [parameter(start(64), dtype) for dtype in dtypes]
    for param, value in zip(params, values or [], strict=False):
        param.data.copy_(value)
    changes = {"weight_decay": Normalized(0.1)} if case.decay == "weight_decay" else {}
    groups = [
        {"params": params[:1]},
        {"params": params[1:3], "lr": 0.003, **({} if not changes else {"weight_decay": 0.02})},
        {"params": params[3:], "schedule": Cosine(9, low=0.1)},
    ]
    return case.build(groups, schedule=RESTARTS, **changes)


def through_a_file(state: Any) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@every_case
@pytest.mark.parametrize("saved_after", [0, 1, 4, 5, 6, 10, 11])
def test_a_resumed_run_goes_on_bit_for_bit(case: Case, saved_after: int) -> None:
    """Before, at and after each restart (5, 11), and each warm-up update."""
    whole = build(case)
    advance(whole, 20)
    halted = build(case)
    advance(halted, saved_after)
    state, values = through_a_file((halted.state_dict(), weights(halted)))
    resumed = build(case, values)
    resumed.load_state_dict(state)
    advance(resumed, 20 - saved_after, first=saved_after + 1)
    assert all(map(torch.equal, weights(resumed), weights(whole)))
    assert [g["lr"] for g in resumed.param_groups] == [g["lr"] for g in whole.param_groups]


@every_case
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))],
    ids=["copy", "pickle"],
)
def test_a_copy_and_a_pickle_go_on_alike(case: Case, duplicate: Callable[[Any], Any]) -> None:
    original = build(case)
    advance(original, 4)
    twin = duplicate(original)
    advance(original, 10, first=5)
    advance(twin, 10, first=5)
    assert all(map(torch.equal, weights(original), weights(twin)))
    twin.add_param_group({"params": [parameter()]})
    assert set(twin.param_groups[-1]) == set(original.param_groups[-1])


def plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(plain, value))
    one = isinstance(value, torch.Tensor) and value.numel() == 1
    return value is None or one or isinstance(value, (bool, int, float, str))


@every_case
def test_group_values_are_plain_and_their_keys_fixed(case: Case) -> None:
    opt = build(case)
    keys = [set(group) for group in opt.param_groups]
    advance(opt, 7)
    state = opt.state_dict()
    assert [set(group) for group in opt.param_groups] == keys
    for group in state["param_groups"]:
        assert all(plain(value) for key, value in group.items() if key != "params"), group
    assert "schedule" not in str(state.keys())
    assert not any("schedule" in group for group in state["param_groups"])


@every_case
def test_loading_ones_own_state_changes_nothing(case: Case) -> None:
    opt = build(case)
    advance(opt, 4)
    before = copy.deepcopy(opt.state_dict())
    tensors = [v for state in opt.state.values() for v in state.values()]
    opt.load_state_dict(opt.state_dict())
    assert torch.utils._pytree.tree_all(lambda same: same, _same(before, opt.state_dict()))
    after = [v for state in opt.state.values() for v in state.values()]
    assert all(one is other for one, other in zip(tensors, after, strict=True))


def _same(one: Any, other: Any) -> Any:
    def equal(a: Any, b: Any) -> bool:
        return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b

    return torch.utils._pytree.tree_map(equal, one, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_loading_keeps_the_dtype_of_each_state(dtype: torch.dtype) -> None:
    """PEERS 14: torch would cast float32 moments to the parameter's 16 bits."""
    opt = AdamW([parameter(dtype=dtype)], weight_decay=0.1)
    advance(opt, 3)
    other = AdamW([parameter(dtype=dtype)], weight_decay=0.1)
    other.load_state_dict(opt.state_dict())
    [mine], [theirs] = opt.state.values(), other.state.values()
    assert theirs["exp_avg"].dtype is torch.float32
    assert torch.equal(theirs["exp_avg"], mine["exp_avg"])
    theirs["exp_avg"].zero_()
    assert mine["exp_avg"].any()


def test_loading_copies_into_the_tensors_that_are_there() -> None:
    opt, other = (AdamW([parameter()], weight_decay=0.1) for _ in range(2))
    advance(opt, 3)
    advance(other, 2)
    [state] = other.state.values()
    held = state["exp_avg"]
    other.load_state_dict(opt.state_dict())
    [loaded] = other.state.values()
    assert loaded["exp_avg"] is held
    assert torch.equal(held, next(iter(opt.state.values()))["exp_avg"])


def test_loading_drops_state_that_was_not_saved() -> None:
    fresh, used = (AdamW([parameter()], weight_decay=0.1) for _ in range(2))
    advance(used, 2)
    used.load_state_dict(fresh.state_dict())
    assert not used.state
    assert used.param_groups[0]["updates"] == 0


def test_loading_takes_the_saved_numbers_not_the_new_ones() -> None:
    saved = AdamW([parameter()], 0.3, betas=(0.5, 0.6), weight_decay=0.2)
    other = AdamW([parameter()], 0.1, weight_decay=0.1)
    other.load_state_dict(saved.state_dict())
    group = other.param_groups[0]
    assert (group["lr"], group["base"], group["betas"], group["weight_decay"]) == (
        *(0.3, 0.3),
        (0.5, 0.6),
        0.2,
    )


@pytest.mark.parametrize(
    ("saved_by", "text"),
    [
        (lambda p: torch.optim.AdamW([p]), r"no 'base'.*weightdecay.from_torch\(state_dict\)"),
        (lambda p: SGD([p], 0.1), r"saved by AdamW, got one whose groups have no 'amsgrad'"),
        (lambda p: AdamW([p, parameter()], weight_decay=0.1), r"sizes .* \[2\], got \[1\]"),
    ],
)
def test_a_foreign_state_is_refused(saved_by: Callable[[Any], Any], text: str) -> None:
    opt = AdamW([parameter()], weight_decay=0.1)
    with pytest.raises(ValueError, match=text):
        opt.load_state_dict(saved_by(parameter()).state_dict())


def test_a_state_saved_under_another_schedule_is_noticed_and_can_be_taken_on() -> None:
    old = AdamW([parameter()], weight_decay=0.1, schedule=Cosine(10))
    advance(old, 5)
    new = AdamW([parameter()], weight_decay=0.1, schedule=Cosine(20))
    new.load_state_dict(old.state_dict())
    set_gradients(new, 6)
    with pytest.raises(RuntimeError, match="saved under another schedule"):
        new.step()
    new.rebase(1e-3)
    assert new.param_groups[0]["lr"] == 1e-3 * Cosine(20)(5)
    new.step()


def test_forgetting_the_schedule_on_resume_is_an_error() -> None:
    saved = AdamW([parameter()], weight_decay=0.1, schedule=Cosine(10))
    other = AdamW([parameter()], weight_decay=0.1)
    with pytest.raises(ValueError, match="with one, got AdamW without: lr would never change"):
        other.load_state_dict(saved.state_dict())
    saved.load_state_dict(other.state_dict())


def test_load_hooks_fire_as_in_torch() -> None:
    opt = AdamW([parameter()], weight_decay=0.1)
    seen = []

    def replace(_: Any, state: dict[str, Any]) -> dict[str, Any]:
        seen.append("pre")
        return {**state, "param_groups": [{**state["param_groups"][0], "eps": 0.25}]}

    opt.register_load_state_dict_pre_hook(replace)
    opt.register_load_state_dict_post_hook(lambda _: seen.append("post"))
    opt.load_state_dict(opt.state_dict())
    assert seen == ["pre", "post"]
    assert opt.param_groups[0]["eps"] == 0.25


def test_a_tensor_lr_stays_that_very_tensor() -> None:
    lr = torch.tensor(0.02, dtype=torch.float64)
    opt = AdamW([parameter()], lr, weight_decay=0.1, schedule=Cosine(20))
    advance(opt, 5)
    assert opt.param_groups[0]["lr"] is lr
    assert lr.item() == pytest.approx(0.02 * Cosine(20)(5))
    other_lr = torch.tensor(0.5, dtype=torch.float64)
    other = AdamW([parameter()], other_lr, weight_decay=0.1, schedule=Cosine(20))
    other.load_state_dict(through_a_file(opt.state_dict()))
    assert other.param_groups[0]["lr"] is other_lr
    assert other_lr == lr


def test_a_tensor_lr_does_what_a_number_does() -> None:
    """Shared by two groups under warm-up, where α·η ≠ α from the start."""
    schedule = Warmup(5, Cosine(20))
    ends = []
    for lr in (0.02, torch.tensor(0.02, dtype=torch.float64)):
        groups: list[dict[str, Any]] = [
            {"params": [parameter()]},
            {"params": [parameter()]},
            {"params": [parameter()], "schedule": Cosine(9)},
        ]
        opt = AdamW(groups, lr, weight_decay=0.1, schedule=schedule)
        advance(opt, 12)
        opt.rebase(0.01)
        advance(opt, 4, first=13)
        ends.append(weights(opt))
    assert all(map(torch.equal, *ends))


def test_a_group_added_later_joins_where_the_others_are() -> None:
    opt = AdamW([parameter()], 0.02, weight_decay=Normalized(0.1), schedule=WarmRestarts(4))
    advance(opt, 6)
    opt.add_param_group({"params": [parameter()], "lr": 0.5})
    group = opt.param_groups[1]
    assert group["updates"] == 6
    assert group["base"] == 0.5
    assert group["lr"] == 0.5 * WarmRestarts(4)(6)
    assert group["weight_decay"] == opt.param_groups[0]["weight_decay"]
    advance(opt, 1, first=7)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm = torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5)

    def train_once(self, opt: Any) -> None:
        self(torch.randn(8, 3)).square().sum().backward()
        opt.step()
        opt.zero_grad()

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.one(x))


def _frozen(net: Net) -> list[torch.Tensor]:
    return [p.detach().clone() for p in net.parameters()]


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "adamw": lambda net: AdamW(
        parameter_groups(net, weight_decay=Normalized(0.4)), 0.1, schedule=WarmRestarts(3)
    ),
    "unscheduled": lambda net: AdamW(net.parameters(), 0.1, weight_decay=0.2),
    "starting at 0": lambda net: AdamW(
        net.parameters(), 0.1, weight_decay=0.2, schedule=lambda t: min(t / 4, 1.0)
    ),
    "tensor lr": lambda net: AdamW(
        net.parameters(), torch.tensor(0.1), weight_decay=0.2, schedule=WarmRestarts(3)
    ),
    "sgd": lambda net: SGD(net.parameters(), 0.1, l2=0.2, schedule=WarmRestarts(3)),
    "decoupled": lambda net: decouple(torch.optim.NAdam)(
        net.parameters(), lr=0.1, weight_decay=0.2, schedule=WarmRestarts(3)
    ),
}


@pytest.mark.parametrize("flatten", [False, True], ids=["nested", "flat"])
@pytest.mark.parametrize("build_for", BUILDERS.values(), ids=BUILDERS)
def test_distributed_checkpointing_touches_no_weight(
    build_for: Callable[[Net], Any], flatten: bool
) -> None:
    """PEERS 13: it initialises a fresh optimizer's state by a step with lr = 0."""
    options = StateDictOptions(flatten_optimizer_state_dict=flatten)
    trained = Net()
    opt = build_for(trained)
    for _ in range(5):
        trained.train_once(opt)
    saved = get_optimizer_state_dict(trained, opt, options=options)

    fresh_net = Net()
    fresh_net.load_state_dict(trained.state_dict())
    before = _frozen(fresh_net)
    fresh = build_for(fresh_net)
    get_optimizer_state_dict(fresh_net, fresh, options=options)
    assert all(map(torch.equal, before, _frozen(fresh_net)))
    assert {group["updates"] for group in fresh.param_groups} == {0}
    set_optimizer_state_dict(fresh_net, fresh, saved, options=options)
    assert all(map(torch.equal, before, _frozen(fresh_net)))

    for net, optimizer in ((trained, opt), (fresh_net, fresh)):
        torch.manual_seed(3)
        for _ in range(5):
            net.train_once(optimizer)
    assert all(map(torch.equal, _frozen(trained), _frozen(fresh_net)))


PROBED: dict[str, Callable[[Any], Any]] = {
    **{name: case.build for name, case in DECOUPLED.items()},
    **{
        cls.__name__: partial(decouple(cls), lr=0.02, weight_decay=0.1)
        for cls in (torch.optim.Adam, torch.optim.NAdam, torch.optim.Adagrad, torch.optim.Adafactor)
    },
}


@pytest.mark.parametrize("build_for", PROBED.values(), ids=PROBED)
def test_saving_before_the_first_update_changes_nothing_of_the_run(
    build_for: Callable[[Any], Any],
) -> None:
    """Bias correction included: the probe is no update."""
    probed, alone = build_for([parameter()]), build_for([parameter()])
    net = torch.nn.Module()
    net.theta = probed.param_groups[0]["params"][0]
    get_optimizer_state_dict(net, probed)
    advance(probed)
    advance(alone)
    assert torch.equal(*weights(probed), *weights(alone))


PARTLY_FROZEN: dict[str, Callable[[Any], Any]] = {
    **BUILDERS,
    "without state": lambda net: SGDW(
        net.parameters(), 0.1, momentum=0.0, weight_decay=0.2, schedule=Cosine(6)
    ),
    "tensor lr without a schedule": lambda net: AdamW(
        net.parameters(), torch.tensor(0.1), weight_decay=0.2
    ),
    "decoupled without a schedule": lambda net: decouple(torch.optim.Adam)(
        net.parameters(), lr=0.1, weight_decay=0.2
    ),
}


@pytest.mark.parametrize("updates", [0, 4, 6])
@pytest.mark.parametrize("build_for", PARTLY_FROZEN.values(), ids=PARTLY_FROZEN)
def test_distributed_checkpointing_may_ask_at_any_time(
    build_for: Callable[[Net], Any], updates: int
) -> None:
    """A frozen parameter has no gradient; an optimizer that keeps no state is asked every time."""
    net = Net()
    net.one.bias.requires_grad_(False)
    opt = build_for(net)
    for _ in range(updates):
        net.train_once(opt)
    rates, before = [float(group["lr"]) for group in opt.param_groups], _frozen(net)
    _init_optim_state(opt)
    assert [float(group["lr"]) for group in opt.param_groups] == rates
    assert {group["updates"] for group in opt.param_groups} == {updates}
    assert all(map(torch.equal, before, _frozen(net)))


LONGER: dict[str, Schedule] = {"cosine": Cosine(8), "restarts": WarmRestarts(3)}


@pytest.mark.parametrize("schedule", LONGER.values(), ids=LONGER)
@pytest.mark.parametrize("build_for", PROBED.values(), ids=PROBED)
def test_a_finished_run_goes_on_under_a_longer_schedule_when_told_to(
    build_for: Callable[..., Any], schedule: Schedule
) -> None:
    """Its lr is 0: an error says so and how to go on, in place of updates that change nothing."""
    finished = build_for([parameter()], schedule=Cosine(4))
    advance(finished, 4)
    longer = build_for([parameter(weights(finished)[0].numpy())], schedule=schedule)
    longer.load_state_dict(finished.state_dict())
    set_gradients(longer, 5)
    with pytest.raises(RuntimeError, match=r"got 0: .*another schedule.*call `opt\.rebase"):
        longer.step()
    before = weights(longer)
    longer.rebase(longer.param_groups[0]["base"])
    assert longer.param_groups[0]["lr"] == longer.param_groups[0]["base"] * schedule(4)
    advance(longer, 1, first=5)
    assert not torch.equal(*before, *weights(longer))


@pytest.mark.parametrize("build_for", PROBED.values(), ids=PROBED)
def test_a_rate_and_gradients_of_zero_change_no_state_of_a_run(
    build_for: Callable[..., Any],
) -> None:
    opt = build_for([parameter()], schedule=Cosine(9))
    advance(opt, 2)
    before, values = copy.deepcopy(opt.state_dict()), weights(opt)
    zero_gradients(opt)
    lr, opt.param_groups[0]["lr"] = opt.param_groups[0]["lr"], 0.0
    opt.step()
    opt.param_groups[0]["lr"] = lr
    assert torch.utils._pytree.tree_all(bool, _same(before, opt.state_dict()))
    assert torch.equal(*values, *weights(opt))


def test_groups_stay_in_step_whatever_their_gradients() -> None:
    """A warm-up from 0, one group idle or with zero gradients at first: that is no probe."""
    for first_gradient in (None, torch.zeros(7, dtype=torch.float64)):
        busy, late = parameter(), parameter()
        groups = [{"params": [busy]}, {"params": [late]}]
        opt = AdamW(groups, weight_decay=0.1, schedule=lambda t: min(t / 4, 1.0))
        for t in range(6):
            busy.grad = torch.ones_like(busy)
            late.grad = first_gradient if t == 0 else torch.ones_like(late)
            opt.step()
        assert [group["updates"] for group in opt.param_groups] == [6, 6]


def test_a_schedule_of_zeros_moves_on_without_momentum() -> None:
    opt = SGDW(
        [parameter()], 0.1, momentum=0.0, weight_decay=0.1, schedule=lambda t: [0.5, 0.0][t % 2]
    )
    advance(opt, 6)
    assert opt.param_groups[0]["updates"] == 6


def test_a_step_at_lr_zero_with_gradients_that_are_sparse_or_left_over_is_no_probe() -> None:
    """A parameter frozen after its backward pass still has a gradient, which moves it."""
    sparse, frozen = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    sparse.grad, frozen.grad = torch.ones(3).to_sparse(), torch.ones(3)
    frozen.requires_grad_(False)
    for theta in (sparse, frozen):
        opt = decouple(torch.optim.SGD)([theta], lr=0.1, weight_decay=0.0, schedule=Cosine(9))
        opt.param_groups[0]["lr"] = 0.0
        with pytest.raises(RuntimeError, match="something else set it"):
            opt.step()


def test_a_rate_of_zero_for_one_group_alone_is_another_hand() -> None:
    groups = [{"params": [parameter()]}, {"params": [parameter()]}]
    opt = AdamW(groups, weight_decay=0.1, schedule=Cosine(9))
    opt.param_groups[1]["lr"] = 0.0
    set_gradients(opt, 1)
    with pytest.raises(RuntimeError, match="something else set it"):
        opt.step()


def shared() -> torch.Tensor:
    return torch.tensor(0.4, dtype=torch.float64)


def test_a_shared_tensor_lr_is_rebased_once() -> None:
    lr = shared()
    opt = AdamW([{"params": [parameter()]}, {"params": [parameter()]}], lr, weight_decay=0.1)
    opt.rebase(0.2)
    assert lr.item() == 0.2
    opt.add_param_group({"params": [parameter()]})
    assert [g["base"] for g in opt.param_groups] == [0.2] * 3
    assert all(g["lr"] is lr for g in opt.param_groups)
    opt.rebase([0.1, 0.2, 0.1])
    assert [float(g["lr"]) for g in opt.param_groups] == [0.1, 0.2, 0.1]


def test_a_tensor_lr_given_to_two_groups_has_one_base() -> None:
    lr = shared()
    groups: Any = [{"params": [parameter()], "lr": lr}, {"params": [parameter()], "lr": lr}]
    opt = AdamW(groups, weight_decay=0.1, schedule=Warmup(5, Cosine(9)))
    assert [g["base"] for g in opt.param_groups] == [0.4, 0.4]
    advance(opt, 7)


def test_different_rates_loaded_into_a_shared_tensor_part_it() -> None:
    groups: Any = [{"params": [parameter()], "lr": 0.1}, {"params": [parameter()], "lr": 0.2}]
    saved = AdamW(groups, weight_decay=0.1)
    other = AdamW(
        [{"params": [parameter()]}, {"params": [parameter()]}], shared(), weight_decay=0.1
    )
    other.load_state_dict(saved.state_dict())
    assert [float(g["lr"]) for g in other.param_groups] == [0.1, 0.2]


def test_numbers_of_numpy_become_plain() -> None:
    class Half(Schedule):
        def __call__(self, t: int) -> float:
            return np.float64(0.5 / (t + 1))

    rate: Any = np.float64(0.1)
    opt = AdamW([parameter()], rate, weight_decay=np.float32(0.1), schedule=Half())  # type: ignore[call-overload]
    advance(opt, 2)
    through_a_file(opt.state_dict())


def test_the_count_of_updates_is_float32_whatever_the_default() -> None:
    torch.set_default_dtype(torch.bfloat16)
    try:
        opt = AdamW([parameter()], weight_decay=0.1)
        advance(opt, 300)
    finally:
        torch.set_default_dtype(torch.float32)
    [state] = opt.state.values()
    assert state["step"] == 300


def test_a_step_that_fails_has_changed_nothing() -> None:
    """A sparse gradient beside a dense one; a schedule that has no value for the coming update."""
    dense, sparse = parameter(), parameter()
    opt = AdamW([dense, sparse], weight_decay=0.1)
    dense.grad = torch.ones_like(dense)
    sparse.grad = torch.ones_like(sparse).to_sparse()
    with pytest.raises(RuntimeError, match="sparse"):
        opt.step()
    assert torch.equal(dense.detach(), torch.tensor(start()))
    short = AdamW([parameter()], weight_decay=0.1, schedule=lambda t: [1.0, 0.5][t])
    advance(short, 1)
    before = weights(short)
    set_gradients(short, 2)
    with pytest.raises(IndexError):
        short.step()
    assert torch.equal(*before, *weights(short))


def test_a_state_of_another_dtype_than_its_parameter_serves() -> None:
    saved = AdamW([parameter(dtype=torch.float32)], weight_decay=0.1)
    advance(saved, 2)
    other = AdamW([parameter()], weight_decay=0.1)
    other.load_state_dict(saved.state_dict())
    advance(other, 2, first=3)
    assert next(iter(other.state.values()))["exp_avg"].dtype is torch.float32


# Of timm's layer decay, of MMEngine, and of a user who names groups.
OWN_KEYS: dict[str, Any] = {
    "lr_scale": 0.75,
    "lr_mult": 0.1,
    "decay_mult": 0.0,
    "weight_decay_scale": 2.0,
    "layer_decay": 0.9,
    "group_name": "head",
    "name": "head",
    "names": ("weight", "bias"),
    "tag": None,
}


@every_case
def test_a_users_own_keys_are_carried_saved_and_loaded(case: Case) -> None:
    groups = [{"params": [parameter()], **OWN_KEYS}, {"params": [parameter()], "lr_scale": 0.5}]
    opt, other = case.build(groups), case.build([{"params": [parameter()]} for _ in groups])
    plain = case.build([{"params": [parameter()]} for _ in groups])
    advance(opt, 3)
    advance(plain, 3)
    assert all(map(torch.equal, weights(opt), weights(plain)))
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    for loaded in (opt, other, pickle.loads(pickle.dumps(opt))):
        found = [{key: group.get(key) for key in OWN_KEYS} for group in loaded.param_groups]
        assert found == [OWN_KEYS, {**dict.fromkeys(OWN_KEYS), "lr_scale": 0.5}]


def test_layer_decay_as_timm_scales_it() -> None:
    """Its schedulers write lr · lr_scale into every group; here α is built so."""
    scales = (0.25, 0.5, 1.0)
    groups = [{"params": [parameter()], "lr": 0.1 * s, "lr_scale": s} for s in scales]
    opt = AdamW(groups, 0.1, weight_decay=0.01)
    for t in range(1, 4):
        for group in opt.param_groups:
            group["lr"] = 0.1 / t * group["lr_scale"]
        advance(opt, 1, first=t)
        used = [(one.lr, one.decay) for one in opt.applied() if one is not None]
        assert used == [pytest.approx((0.1 / t * s, 0.01 / t)) for s in scales]
