"""η is lr/base: torch's schedulers scale the decay too, and a schedule of ours is nobody else's."""

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler as torch_schedulers

from tests.cases import (
    CASES,
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
    AdamW,
    Constant,
    Cosine,
    Normalized,
    StepDrop,
    WarmRestarts,
    Warmup,
    decouple,
)

LR = 0.05
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "OneCycleLR": lambda opt: torch_schedulers.OneCycleLR(
        opt,
        max_lr=[group["lr"] for group in opt.param_groups],
        total_steps=STEPS + 1,
        cycle_momentum=False,
    ),
    "CosineAnnealingWarmRestarts": lambda opt: torch_schedulers.CosineAnnealingWarmRestarts(
        opt, T_0=7, T_mult=2
    ),
    "CosineAnnealingLR": lambda opt: torch_schedulers.CosineAnnealingLR(opt, T_max=STEPS),
    "LambdaLR": lambda opt: torch_schedulers.LambdaLR(opt, lambda t: min(t / 10, 1.0)),
    "SequentialLR": lambda opt: torch_schedulers.SequentialLR(
        opt,
        [
            torch_schedulers.LinearLR(opt, start_factor=0.1, total_iters=5),
            torch_schedulers.ExponentialLR(opt, gamma=0.9),
        ],
        milestones=[5],
    ),
    "ReduceLROnPlateau": lambda opt: torch_schedulers.ReduceLROnPlateau(opt, patience=2),
}
every_scheduler = pytest.mark.parametrize("attach", SCHEDULERS.values(), ids=SCHEDULERS)


def follow(opt: Any, scheduler: Any, steps: int = STEPS) -> list[float]:
    """Train under a torch scheduler, and return the η that each update should have had."""
    eta = []
    plateau = isinstance(scheduler, torch_schedulers.ReduceLROnPlateau)
    for t in range(1, steps + 1):
        eta.append(float(opt.param_groups[0]["lr"]) / opt.param_groups[0]["base"])
        set_gradients(opt, t)
        opt.step()
        scheduler.step(*([1.0] if plateau else []))
    return eta


@every_scheduler
@every_decoupled_case
def test_torchs_schedulers_scale_both(case: Case, attach: Callable[[Any], Any]) -> None:
    """PEERS 2: OneCycleLR overwrites `initial_lr`; η must not come from there."""
    opt = case.build([parameter()], lr=LR)
    eta = follow(opt, attach(opt))
    assert max(eta) <= 1 + 1e-6
    assert min(eta) < 0.5
    expected = case.reference(start(), gradient, eta=eta, lr=LR)
    np.testing.assert_allclose(weights(opt)[0], expected, rtol=1e-11)


def test_a_scheduler_may_move_the_momentum_too() -> None:
    opt = AdamW([parameter()], LR, weight_decay=0.04)
    scheduler = torch_schedulers.OneCycleLR(opt, max_lr=LR, total_steps=11, cycle_momentum=True)
    opt.register_step_post_hook(lambda *_: scheduler.step())
    betas = []
    advance(opt, 10, then=lambda: betas.append(opt.param_groups[0]["betas"]))
    assert len(set(betas)) == 10


@every_scheduler
@every_decoupled_case
def test_idle_weights_decay_by_the_sum_of_the_multipliers(
    case: Case, attach: Callable[[Any], Any]
) -> None:
    opt = case.build([parameter()], lr=LR)
    scheduler = attach(opt)
    kept = 1.0
    for _ in range(STEPS):
        kept *= 1 - 0.04 * float(opt.param_groups[0]["lr"]) / LR
        opt.param_groups[0]["params"][0].grad = torch.zeros(7, dtype=torch.float64)
        opt.step()
        scheduler.step(*([1.0] if "Plateau" in type(scheduler).__name__ else []))
    np.testing.assert_allclose(weights(opt)[0], start() * kept, rtol=1e-11)


@every_scheduler
def test_groups_keep_their_own_rate_and_decay_under_any_scheduler(
    attach: Callable[[Any], Any],
) -> None:
    """PEERS 3: η is each group's own lr over its own base."""
    own = {"lr": LR / 10, "weight_decay": 0.3, "betas": (0.8, 0.99)}
    groups: list[dict[str, Any]] = [{"params": [parameter()]}, {"params": [parameter()], **own}]
    both = AdamW(groups, LR, weight_decay=0.04)
    alone = AdamW([{"params": [parameter()], **own}], LR, weight_decay=0.04)
    follow(both, attach(both))
    follow(alone, attach(alone))
    np.testing.assert_allclose(weights(both)[1], weights(alone)[0], rtol=1e-11)


def test_a_group_added_under_a_torch_scheduler_has_its_own_base() -> None:
    opt = AdamW([parameter()], LR, weight_decay=0.04)
    scheduler = torch_schedulers.StepLR(opt, step_size=1, gamma=0.5)
    follow(opt, scheduler, 3)
    opt.add_param_group({"params": [parameter()], "lr": 0.4, "weight_decay": 0.2})
    for _ in range(2):
        for group in opt.param_groups:
            group["params"][0].grad = torch.zeros(7, dtype=torch.float64)
        opt.step()
        scheduler.step()
    assert opt.param_groups[1]["lr"] == pytest.approx(0.1)
    np.testing.assert_allclose(weights(opt)[1], start() * (1 - 0.2) * (1 - 0.1), rtol=1e-12)


@every_case
def test_a_multiplier_above_one_is_an_error_with_its_cure(case: Case) -> None:
    opt = case.build([parameter()], lr=LR)
    opt.param_groups[0]["lr"] = LR * 10
    set_gradients(opt, 1)
    with pytest.raises(RuntimeError, match=r"at most 0\.05.*got 0\.5.*scheduler's largest lr"):
        opt.step()
    assert torch.equal(weights(opt)[0], torch.tensor(start()))
    opt.param_groups[0]["lr"] = LR * (1 + 1e-9)
    opt.step()


@pytest.mark.parametrize("lr", [float("nan"), -0.01])
@every_case
def test_a_rate_that_is_no_rate_is_an_error(case: Case, lr: float) -> None:
    opt = case.build([parameter()], lr=LR)
    opt.param_groups[0]["lr"] = lr
    set_gradients(opt, 1)
    with pytest.raises(RuntimeError, match="`lr` must be"):
        opt.step()


@every_case
def test_a_foreign_hand_on_a_schedule_of_ours_is_an_error_with_its_cure(case: Case) -> None:
    opt = case.build([parameter()], lr=LR, schedule=Cosine(10))
    advance(opt, 3)
    opt.param_groups[0]["lr"] = 0.01
    set_gradients(opt, 4)
    with pytest.raises(RuntimeError, match=r"for update 3.*opt\.scheduler\(\).*opt\.rebase"):
        opt.step()
    for slight in (1 + 1e-5, 1 + 1e-9):
        opt.param_groups[0]["lr"] = LR * Cosine(10)(3) * slight
        with contextlib.ExitStack() as stack:
            if slight > 1 + 1e-6:
                stack.enter_context(pytest.raises(RuntimeError, match="something else set it"))
            opt.step()


def test_a_torch_scheduler_on_top_of_ours_is_noticed() -> None:
    opt = AdamW([parameter()], LR, weight_decay=0.04, schedule=Cosine(10))
    scheduler = torch_schedulers.StepLR(opt, step_size=1)
    set_gradients(opt, 1)
    opt.step()
    scheduler.step()
    with pytest.raises(RuntimeError, match="something else set it"):
        opt.step()


def test_a_foreign_hand_on_a_normalized_decay_is_an_error() -> None:
    opt = AdamW([parameter()], LR, weight_decay=Normalized(0.1), schedule=Cosine(10))
    opt.param_groups[0]["weight_decay"] = 0.2
    set_gradients(opt, 1)
    with pytest.raises(RuntimeError, match=r"`weight_decay` must be .* as Normalized"):
        opt.step()


def test_a_plain_decay_may_be_set_by_hand() -> None:
    """A weight-decay schedule of one's own: the number in the group is the number used."""
    opt = SGDW([parameter()], LR, weight_decay=0.1)
    for decay in (0.1, 0.3, 0.0):
        opt.param_groups[0]["weight_decay"] = decay
        opt.param_groups[0]["params"][0].grad = torch.zeros(7, dtype=torch.float64)
        opt.step()
    np.testing.assert_allclose(weights(opt)[0], start() * 0.9 * 0.7, rtol=1e-12)
    opt.param_groups[0]["weight_decay"] = 1.5
    with pytest.raises(ValueError, match=r"`weight_decay` must be in \[0, 1\), got 1\.5"):
        opt.step()


@pytest.mark.parametrize(("value", "error"), [(-1.0, ValueError), ("a", TypeError)])
def test_what_a_schedule_says_is_checked(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"`schedule\(0\)` must be"):
        AdamW([parameter()], weight_decay=0.1, schedule=lambda _: value)


def test_a_decay_set_by_hand_where_lr_is_zero_is_refused() -> None:
    opt = AdamW([parameter()], lr=0, weight_decay=0.0)
    opt.param_groups[0]["weight_decay"] = 0.1
    set_gradients(opt, 1)
    with pytest.raises(ValueError, match="`lr` must be above 0 if weights decay"):
        opt.step()


def test_a_multiplier_that_makes_the_decay_a_whole_weight_is_an_error() -> None:
    opt = AdamW([parameter()], weight_decay=0.6, schedule=lambda _: 2.0)
    set_gradients(opt, 1)
    with pytest.raises(RuntimeError, match=r"below 1, got 0\.6 times 2"):
        opt.step()


@every_case
def test_a_rate_of_zero_from_outside_is_another_hand(case: Case) -> None:
    """Unless all gradients are zero too: then state is created and nothing changes, t included."""
    opt = case.build([parameter()], lr=LR, schedule=Cosine(10))
    opt.param_groups[0]["lr"] = 0.0
    set_gradients(opt, 1)
    with pytest.raises(RuntimeError, match="got 0: something else set it"):
        opt.step()
    zero_gradients(opt)
    opt.step()
    assert torch.equal(weights(opt)[0], torch.tensor(start()))
    assert opt.param_groups[0]["updates"] == 0
    opt.param_groups[0]["lr"] = LR
    other = case.build([parameter()], lr=LR, schedule=Cosine(10))
    advance(opt, 5)
    advance(other, 5)
    assert torch.equal(*weights(opt), *weights(other))


@every_case
def test_an_ordinary_step_reads_no_gradient_back(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would make a device wait for the host."""
    opt = case.build([parameter()], lr=LR, schedule=Cosine(10))
    advance(opt, 1)
    monkeypatch.setattr(torch.Tensor, "any", None)
    advance(opt, 2, first=2)


@pytest.mark.filterwarnings("ignore:Training continues with lr = 0")
@every_case
def test_an_update_past_a_cosines_end_is_counted(case: Case) -> None:
    opt = case.build([parameter()], lr=LR, schedule=Cosine(2))
    advance(opt, 4)
    assert opt.param_groups[0]["updates"] == 4
    expected = case.reference(start(), gradient, eta=[1, 0.5, 0, 0], lr=LR)
    np.testing.assert_allclose(weights(opt)[0], expected, rtol=1e-12)


@every_case
def test_a_schedulers_own_zero_is_an_update(case: Case) -> None:
    """A warm-up of torch's from 0: moments gather, weights stay."""
    opt = case.build([parameter()], lr=LR)
    opt.param_groups[0]["lr"] = 0.0
    advance(opt, 1)
    opt.param_groups[0]["lr"] = LR
    advance(opt, 4, first=2)
    expected = case.reference(start(), gradient, eta=[0, 1, 1, 1, 1], lr=LR)
    np.testing.assert_allclose(weights(opt)[0], expected, rtol=1e-12)


def test_lr_shows_the_coming_update_and_base_the_papers_alpha() -> None:
    opt = AdamW([parameter()], LR, weight_decay=0.1, schedule=WarmRestarts(3))
    shown = []
    for t in range(1, 8):
        shown.append(opt.param_groups[0]["lr"])
        set_gradients(opt, t)
        opt.step()
    assert shown == [LR * WarmRestarts(3)(t) for t in range(7)]
    assert opt.param_groups[0]["base"] == LR


def test_a_trainer_that_insists_gets_a_scheduler_that_changes_nothing() -> None:
    opt, alone = (
        AdamW([parameter()], LR, weight_decay=0.1, schedule=WarmRestarts(3)) for _ in range(2)
    )
    scheduler = opt.scheduler()
    assert isinstance(scheduler, torch_schedulers.LRScheduler)
    assert scheduler.base_lrs == [LR]
    advance(opt, 5, then=scheduler.step)
    advance(alone, 5)
    assert torch.equal(*weights(opt), *weights(alone))
    assert scheduler.get_last_lr() == [LR * WarmRestarts(3)(5)]
    assert scheduler.last_epoch == 5
    assert scheduler.state_dict() == {}
    scheduler._step_count += 1
    opt.rebase(2 * LR)
    assert scheduler.base_lrs == [2 * LR]
    assert scheduler.get_lr() == [2 * LR * WarmRestarts(3)(5)]
    scheduler.load_state_dict({})


def test_a_scheduler_of_ours_reports_what_torchs_reports_at_the_same_place() -> None:
    """Before its `step` the rate of the update just made, and after it the coming one's."""
    ours = AdamW([parameter()], LR, weight_decay=0.1, schedule=Cosine(6))
    torchs = AdamW([parameter()], LR, weight_decay=0.1)
    schedulers = [ours.scheduler(), torch_schedulers.LambdaLR(torchs, Cosine(6))]
    reported: list[list[Any]] = [[], []]
    for t in range(1, 6):
        for opt, scheduler, log in zip((ours, torchs), schedulers, reported, strict=True):
            log.extend(scheduler.get_last_lr())
            advance(opt, 1, first=t)
            log.extend(scheduler.get_last_lr())
            scheduler.step()
            log.extend(scheduler.get_last_lr())
    assert reported[0] == pytest.approx(reported[1], rel=1e-12)


def test_a_scheduler_that_is_never_stepped_reports_what_was_used() -> None:
    opt, resumed = (
        AdamW([parameter()], LR, weight_decay=0.1, schedule=Cosine(9)) for _ in range(2)
    )
    schedulers = opt.scheduler(), resumed.scheduler()
    advance(opt, 4)
    resumed.load_state_dict(opt.state_dict())
    opt.add_param_group({"params": [parameter()], "lr": 0.5})
    assert schedulers[0].get_last_lr() == [LR * Cosine(9)(3), 0.5 * Cosine(9)(3)]
    assert schedulers[1].get_last_lr() == [LR * Cosine(9)(3)]
    assert [used is None for used in opt.applied()] == [False, True]
    opt.rebase([0.25, 0.25])
    assert schedulers[0].get_last_lr()[0] == LR * Cosine(9)(3)


@pytest.mark.parametrize("begin", [0, 2])
def test_torchs_sequence_of_our_schedulers_changes_nothing(begin: int) -> None:
    opt, alone = (
        AdamW([parameter()], LR, weight_decay=0.1, schedule=Warmup(3, Cosine(9))) for _ in range(2)
    )
    opt.scheduler()
    for one in (opt, alone):
        advance(one, begin)
    sequence = torch_schedulers.SequentialLR(opt, [opt.scheduler(), opt.scheduler()], [3])
    advance(opt, 6, then=sequence.step, first=begin + 1)
    advance(alone, 6, first=begin + 1)
    assert torch.equal(*weights(opt), *weights(alone))
    assert sequence.get_last_lr() == [alone.param_groups[0]["lr"]]


def test_rebase_changes_alpha_and_leaves_decay_alone() -> None:
    opt = AdamW([parameter()], LR, weight_decay=0.1, schedule=Cosine(10))
    advance(opt, 5)
    opt.rebase(0.5)
    group = opt.param_groups[0]
    assert group["lr"] == 0.5 * Cosine(10)(5)
    assert group["weight_decay"] == 0.1
    before = weights(opt)[0]
    group["params"][0].grad = torch.zeros(7, dtype=torch.float64)
    next(iter(opt.state.values()))["exp_avg"].zero_()
    opt.step()
    np.testing.assert_allclose(weights(opt)[0], before * (1 - 0.1 * Cosine(10)(5)), rtol=1e-12)


def test_rebase_keeps_a_torch_schedulers_multiplier() -> None:
    opt = AdamW([parameter()], 0.4, weight_decay=0.1)
    opt.param_groups[0]["lr"] = 0.1
    opt.rebase(0.8)
    assert opt.param_groups[0]["lr"] == pytest.approx(0.2)


def test_rebase_of_groups_that_differ_wants_a_number_each() -> None:
    groups: list[dict[str, Any]] = [{"params": [parameter()]}, {"params": [parameter()], "lr": 0.3}]
    opt = AdamW(groups, LR, weight_decay=0.1)
    with pytest.raises(
        ValueError, match="one number per group, since the groups have different ones"
    ):
        opt.rebase(0.1)
    with pytest.raises(ValueError, match="got 3 numbers for 2 groups"):
        opt.rebase([0.1, 0.2, 0.3])
    opt.rebase([0.1, 0.2])
    assert [group["lr"] for group in opt.param_groups] == [0.1, 0.2]
    for bad in (0, -1, float("nan")):
        with pytest.raises(ValueError, match=rf"`lr` must be .*, got {bad}"):
            opt.rebase([0.1, bad])
        assert [group["base"] for group in opt.param_groups] == [0.1, 0.2]


def test_a_cycle_has_ended_right_after_its_last_update() -> None:
    opt = AdamW([parameter()], weight_decay=Normalized(0.1), schedule=WarmRestarts(2))
    assert opt.cycle is not None
    assert (opt.cycle.index, opt.cycle_ended) == (0, False)
    ended = []
    for t in range(1, 15):
        set_gradients(opt, t)
        opt.step()
        if opt.cycle_ended:
            ended.append((t, opt.cycle.index))
    assert ended == [(2, 1), (6, 2), (14, 3)]


OVER = r"Training continues with lr = 0: .*Cosine\(steps=3.* update 3, .*use a longer one"


def _ending(schedule: Any) -> dict[str, Any]:
    return {
        "ours": AdamW([parameter()], 0.02, weight_decay=0.1, schedule=schedule),
        "decoupled": decouple(torch.optim.Adagrad)(
            [parameter()], lr=0.02, weight_decay=0.1, schedule=schedule
        ),
    }


@pytest.mark.parametrize("name", ["ours", "decoupled"])
def test_training_past_a_cosines_end_is_said_once_to_the_caller(name: str) -> None:
    """As many updates as the schedule has are made in silence: warnings are errors here."""
    opt = _ending(Cosine(3))[name]
    advance(opt, 3)
    set_gradients(opt, 4)
    with pytest.warns(UserWarning, match=OVER) as said:
        opt.step()
    assert [warning.filename for warning in said] == [__file__]
    advance(opt, 2, first=5)


@pytest.mark.parametrize(
    "schedule",
    [
        *(Cosine(3, low=0.1), WarmRestarts(3, factor=1), Constant()),
        *(StepDrop(at=(3,), drop=0.0), Warmup(2, Cosine(4)), lambda t: float(t < 3)),
    ],
)
def test_a_schedule_that_means_to_go_on_says_nothing(schedule: Any) -> None:
    for opt in _ending(schedule).values():
        advance(opt, 6)


def test_a_cosine_may_end_before_another_groups() -> None:
    groups: Any = [{"params": [parameter()]}, {"params": [parameter()], "schedule": Cosine(6)}]
    opt = AdamW(groups, weight_decay=0.1, schedule=Cosine(3))
    advance(opt, 6)
    with pytest.warns(UserWarning, match="has ended, and this was update 6"):
        advance(opt, 1, first=7)


def test_an_update_that_is_skipped_is_not_one_too_many() -> None:
    opt = AdamW([parameter(dtype=torch.float32)], 0.02, weight_decay=0.1, schedule=Cosine(3))
    advance(opt, 3)
    opt.found_inf = torch.ones(1)  # type: ignore[attr-defined]  # as GradScaler leaves it
    advance(opt, 1, first=4)
    assert opt.param_groups[0]["updates"] == 3


def test_replays_past_a_cosines_end_are_said_once_too(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = AdamW([parameter()], 0.02, weight_decay=0.1, schedule=Cosine(3))
    graph = SimpleNamespace(replayed=lambda updates: updates, refill=lambda: None, tables=[])
    monkeypatch.setattr(opt, "_graph_rates", graph)
    opt.replayed(3)
    opt.replayed(0)
    with pytest.warns(UserWarning, match=OVER):
        opt.replayed(1)
    opt.replayed(2)


@pytest.mark.filterwarnings("ignore:Training continues with lr = 0")
def test_a_cosine_ends_once() -> None:
    opt = AdamW([parameter()], weight_decay=0.1, schedule=Cosine(3))
    ended = []
    advance(opt, 6, then=lambda: ended.append(opt.cycle_ended))
    assert ended == [False, False, True, False, False, False]


def test_without_a_schedule_there_is_no_cycle() -> None:
    opt = AdamW([parameter()], weight_decay=0.1)
    advance(opt, 2)
    assert opt.cycle is None
    assert opt.cycle_ended is False


def test_groups_in_different_cycles_must_be_asked_one_by_one() -> None:
    groups: list[dict[str, Any]] = [
        {"params": [parameter()]},
        {"params": [parameter()], "schedule": WarmRestarts(3)},
    ]
    opt = AdamW(groups, weight_decay=0.1, schedule=WarmRestarts(2))
    with pytest.raises(RuntimeError, match=r"in one cycle .* got several.*opt\.schedules\[0\]"):
        _ = opt.cycle
    assert opt.schedules == (WarmRestarts(2), WarmRestarts(3))
    assert "WarmRestarts(first=3" in repr(opt)


@pytest.mark.parametrize("cls", [torch.optim.RMSprop, torch.optim.Adagrad])
def test_decoupled_classes_follow_torchs_schedulers_too(cls: Any) -> None:
    opt = decouple(cls)([parameter()], lr=LR, weight_decay=0.04)
    scheduler = torch_schedulers.ExponentialLR(opt, gamma=0.5)
    for _ in range(3):
        opt.param_groups[0]["params"][0].grad = torch.zeros(7, dtype=torch.float64)
        opt.step()
        scheduler.step()
    kept = (1 - 0.04) * (1 - 0.02) * (1 - 0.01)
    np.testing.assert_allclose(weights(opt)[0], start() * kept, rtol=1e-12)


def test_every_case_has_decay() -> None:
    """PEERS 9: tests with weight_decay = 0 catch nothing."""
    assert all(case.options[case.decay] > 0 for case in CASES.values())
