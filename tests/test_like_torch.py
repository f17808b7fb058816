"""Where the paper is silent: what a user of `torch.optim` expects."""

import pickle
from typing import Any

import pytest
import torch

from tests.cases import Case, advance, every_case, parameter, set_gradients, start, weights
from weightdecay import AdamW, Cosine, Normalized, WarmRestarts


@every_case
def test_a_closure_is_evaluated_once_first_with_gradients(case: Case) -> None:
    theta = parameter()
    opt = case.build([theta])
    calls = []

    def closure() -> float:
        calls.append(theta.detach().clone())
        opt.zero_grad()
        loss = (theta**2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    assert opt.step(closure) == pytest.approx((start() ** 2).sum())
    assert len(calls) == 1
    assert torch.equal(calls[0], torch.tensor(start()))
    assert not torch.equal(theta.detach(), calls[0])
    assert opt.step() is None


@every_case
def test_hooks_fire_once_and_may_look_at_the_gradients(case: Case) -> None:
    opt = case.build([parameter()])
    events = []
    opt.register_step_pre_hook(lambda *_: events.append("pre"))
    opt.register_step_post_hook(lambda *_: events.append("post"))
    advance(opt, 2)
    assert events == ["pre", "post"] * 2


@every_case
def test_state_dict_hooks_fire(case: Case) -> None:
    opt = case.build([parameter()])
    opt.register_state_dict_post_hook(lambda _, state: {**state, "mine": 1})
    assert opt.state_dict()["mine"] == 1


@every_case
def test_named_parameters_keep_their_names(case: Case) -> None:
    net = torch.nn.Linear(3, 2)
    opt = case.build(net.named_parameters())
    assert opt.param_groups[0]["param_names"] == ["weight", "bias"]
    advance(opt, 1)
    other = case.build(net.named_parameters())
    other.load_state_dict(opt.state_dict())
    assert other.param_groups[0]["param_names"] == ["weight", "bias"]


@every_case
def test_a_parameter_twice_is_refused(case: Case) -> None:
    theta = parameter()
    with pytest.raises(ValueError, match="more than one parameter group"):
        case.build([{"params": [theta]}, {"params": [theta]}])


@every_case
def test_an_update_that_gradscaler_skips_is_no_update(case: Case) -> None:
    theta = parameter(dtype=torch.float32)
    opt = case.build([theta], schedule=WarmRestarts(3))
    scaler = torch.amp.GradScaler(torch.get_default_device().type, init_scale=4.0)
    for factor in (1.0, float("inf"), 1.0):
        before, lr = theta.detach().clone(), opt.param_groups[0]["lr"]
        updates = opt.param_groups[0]["updates"]
        opt.zero_grad()
        scaler.scale((theta * factor).sum()).backward()  # type: ignore[no-untyped-call]
        scaler.step(opt)
        scaler.update()
        skipped = factor == float("inf")
        assert torch.equal(theta.detach(), before) is skipped
        assert (opt.param_groups[0]["updates"] == updates) is skipped
        assert (opt.param_groups[0]["lr"] == lr) is skipped
    assert opt.param_groups[0]["updates"] == 2


@every_case
def test_gradscaler_unscales_before_the_step_where_it_can(case: Case) -> None:
    """So gradients can be clipped: trainers refuse to clip where the step unscales."""
    opt = case.build([parameter(dtype=torch.float32)])
    assert not getattr(opt, "_step_supports_amp_scaling", False)
    scaler = torch.amp.GradScaler(torch.get_default_device().type, init_scale=4.0)
    [theta] = opt.param_groups[0]["params"]
    scaler.scale(theta.sum()).backward()
    scaler.step(opt)
    assert torch.equal(theta.grad, torch.ones_like(theta))


@every_case
def test_gradscaler_serves_float16_parameters(case: Case) -> None:
    """Whose gradients it refuses to unscale itself."""
    ends = []
    for scale in (1.0, 4.0):
        theta = parameter(dtype=torch.float16)
        opt = case.build([theta])
        scaler = torch.amp.GradScaler(torch.get_default_device().type, init_scale=scale)
        scaler.scale(theta.square().sum()).backward()  # type: ignore[no-untyped-call]
        scaler.step(opt)
        ends.append(theta.detach())
    assert opt.param_groups[0]["updates"] == 1
    assert torch.equal(*ends)


def replace_groups(opt: Any) -> None:
    """Put copies of the groups in their place, as a trainer does that restores them itself."""
    opt.param_groups = [{**group, "params": list(group["params"])} for group in opt.param_groups]


@pytest.mark.parametrize("saved", [False, True])
@every_case
def test_groups_that_others_replace_go_on_with_their_schedules(case: Case, saved: bool) -> None:
    schedules = (WarmRestarts(3), Cosine(9), None)
    plain, replaced = (
        case.build([{"params": [parameter()], "schedule": schedule} for schedule in schedules])
        for _ in range(2)
    )
    for opt in (plain, replaced):
        advance(opt, 4)
    replace_groups(replaced)
    for opt in (plain, replaced):
        opt.param_groups[2]["lr"] = 0.01
        opt.param_groups[0][case.decay] = 0.2
    if saved:
        replaced = pickle.loads(pickle.dumps(replaced))
    for opt in (plain, replaced):
        advance(opt, 4, first=5)
    assert all(map(torch.equal, weights(plain), weights(replaced)))
    assert replaced.schedules == schedules
    assert replaced.applied() == plain.applied()


def test_groups_may_be_put_in_another_order_or_taken_away() -> None:
    groups = [{"params": [parameter()], "lr": lr, "schedule": Cosine(9)} for lr in (0.1, 0.2, 0.3)]
    opt = AdamW(groups, weight_decay=0.01)
    advance(opt, 2)
    opt.param_groups[:] = [opt.param_groups[2], opt.param_groups[0]]
    assert opt.applied() == [None, None]
    advance(opt, 1, first=3)
    assert [used and used.lr for used in opt.applied()] == [0.3 * Cosine(9)(2), 0.1 * Cosine(9)(2)]


def test_a_group_of_new_parameters_takes_the_optimizers_schedule() -> None:
    """As a trainer restores the groups that a callback had added before."""
    longer = AdamW([parameter()], 0.1, weight_decay=0.01, schedule=Cosine(9))
    advance(longer, 3)
    longer.add_param_group({"params": [parameter()], "lr": 0.05})
    resumed = AdamW([parameter()], 0.1, weight_decay=0.01, schedule=Cosine(9))
    resumed.param_groups = [
        {**group, "params": new}
        for group, new in zip(
            longer.param_groups, (resumed.param_groups[0]["params"], [parameter()]), strict=True
        )
    ]
    resumed.load_state_dict(longer.state_dict())
    for there, here in zip(weights(longer), resumed.param_groups, strict=True):
        here["params"][0].data.copy_(there)
    for opt in (longer, resumed):
        advance(opt, 3, first=4)
    assert resumed.schedules == (Cosine(9), Cosine(9))
    assert all(map(torch.equal, weights(longer), weights(resumed)))


def test_a_group_that_is_no_group_of_ours_is_refused() -> None:
    opt = AdamW([parameter()], 0.1, weight_decay=0.01, schedule=Cosine(9))
    opt.param_groups.append({"params": [parameter()], "lr": 0.1})
    set_gradients(opt, 1)
    before = weights(opt)
    with pytest.raises(ValueError, match=r"without 'amsgrad', 'base', .* opt\.add_param_group"):
        opt.step()
    assert all(map(torch.equal, before, weights(opt)))


def test_a_scheduled_group_needs_a_schedule_and_one_alone() -> None:
    groups = [{"params": [parameter()], "schedule": s} for s in (Cosine(9), Cosine(5))]
    opt = AdamW(groups, 0.1, weight_decay=0.01)
    first, second = opt.param_groups
    opt.param_groups = [{**first, "params": first["params"] + second["params"]}]
    with pytest.raises(ValueError, match="parameters of one schedule, got several"):
        opt.step()
    opt.param_groups = [first, {**second, "params": [parameter()]}]
    with pytest.raises(ValueError, match="that had a schedule must get one here"):
        opt.step()


@every_case
def test_zero_grad_and_repr_work(case: Case) -> None:
    opt = case.build([parameter()])
    set_gradients(opt, 1)
    opt.zero_grad()
    assert opt.param_groups[0]["params"][0].grad is None
    assert case.cls.__name__ in repr(opt)


def test_an_optimizer_per_parameter_in_the_backward_pass() -> None:
    """Step within backward: each optimizer's schedule counts its own updates."""
    net = torch.nn.Linear(3, 2)
    opts = {
        p: AdamW([p], weight_decay=Normalized(0.1), schedule=Cosine(5)) for p in net.parameters()
    }

    def update(param: torch.Tensor) -> None:
        opts[param].step()  # type: ignore[index]
        opts[param].zero_grad()  # type: ignore[index]

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(update)  # type: ignore[no-untyped-call]
    for _ in range(5):
        net(torch.randn(4, 3)).sum().backward()
    assert all(opt.cycle_ended for opt in opts.values())


def test_the_groups_can_be_read_by_a_logger() -> None:
    opt = AdamW([parameter()], 0.1, weight_decay=Normalized(0.1), schedule=Cosine(4))
    logged = []
    advance(opt, 4, then=lambda: logged.append(opt.param_groups[0]["lr"]))
    assert logged == [0.1 * Cosine(4)(t) for t in range(1, 5)]


@every_case
def test_two_optimizers_do_not_share_a_schedules_position(case: Case) -> None:
    schedule = WarmRestarts(3)
    one, two = (
        case.build([parameter()], schedule=schedule),
        case.build([parameter()], schedule=schedule),
    )
    advance(one, 5)
    assert (one.param_groups[0]["updates"], two.param_groups[0]["updates"]) == (5, 0)


def test_an_empty_step_counts_as_an_update() -> None:
    """No parameter had a gradient: the schedule moves on, as torch's would."""
    opt = AdamW([parameter()], weight_decay=0.1, schedule=Cosine(4))
    before = weights(opt)
    opt.step()
    assert opt.param_groups[0]["updates"] == 1
    assert torch.equal(*before, *weights(opt))
