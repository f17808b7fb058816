"""State is plain and complete: a run saved at any step, and resumed, goes on bit for bit."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

from tests.cases import (
    CASES,
    DECOUPLED,
    Case,
    advance,
    every_case,
    parameter,
    set_gradients,
    start,
    weights,
)
from weightdecay import (
    SGD,
    AdamW,
    Cosine,
    Normalized,
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
    assert twin.cycle_ended is original.cycle_ended if not _differ(original) else True
    twin.add_param_group({"params": [parameter()]})
    assert set(twin.param_groups[-1]) == set(original.param_groups[-1])


def _differ(opt: Any) -> bool:
    return len(set(opt._schedules)) > 1


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
    assert theirs["exp_avg"] is not mine["exp_avg"]


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
    with pytest.raises(ValueError, match="loaded into a AdamW with one, got none: lr would stay"):
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


@pytest.mark.parametrize("name", sorted(DECOUPLED))
def test_saving_before_the_first_update_changes_nothing_of_the_run(name: str) -> None:
    """Bias correction included: the probe is no update."""
    case = CASES[name]
    probed, alone = case.build([parameter()]), case.build([parameter()])
    net = torch.nn.Module()
    net.theta = probed.param_groups[0]["params"][0]
    get_optimizer_state_dict(net, probed)
    advance(probed)
    advance(alone)
    assert torch.equal(*weights(probed), *weights(alone))
