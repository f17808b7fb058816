"""A step inside a CUDA graph: a replay reads the coming η and λ, which no Python sends."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.cases import CASES, Case, every_case, weights
from weightdecay import SGDW, AdamW, Cosine, Normalized, StepDrop, WarmRestarts, Warmup
from weightdecay.optim.kernels.graph_rates import GraphRates
from weightdecay.optim.kernels.replays import AHEAD
from weightdecay.optim.rates import coming_of
from weightdecay.schedules import as_schedule

gpu = pytest.mark.gpu
#: torch's streams come from a pool of so many per device, and repeat.
STREAMS = 32
SCHEDULE = Warmup(3, WarmRestarts(4, high=(1, 0.5)))


class Captured:
    """A net whose whole training step is one graph; `wanted` is the same without."""

    def __init__(self, build: Any, *, scaled: bool = False) -> None:
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)
        )
        self.opt = build(list(self.net.parameters()))
        self.data = torch.randn(16, 6)
        self.scaler = torch.amp.GradScaler("cuda", enabled=scaled, init_scale=8.0)
        self.graph: Any = None

    def train(self) -> None:
        self.opt.zero_grad(set_to_none=True)
        self.scaler.scale(self.net(self.data).square().mean()).backward()
        self.scaler.step(self.opt)
        self.scaler.update()

    def capture(self) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.train()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.opt.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.train()


@gpu
@every_case
def test_a_replayed_run_is_the_run(case: Case) -> None:
    """Over warm-up, restarts and normalized decay, replayed one by one and many at once."""
    decay = {"weight_decay": Normalized(0.1)} if case.decay == "weight_decay" else {}

    def build(params: Any) -> Any:
        return case.build(params, schedule=SCHEDULE, **decay)

    eager, captured = Captured(build), Captured(build)
    captured.capture()
    for replays in (1, 1, 5, 1, 7):
        for _ in range(replays):
            captured.graph.replay()
        captured.opt.replayed(replays)
    for _ in range(17):
        eager.train()
    assert captured.opt.param_groups[0]["updates"] == 17
    assert captured.opt.param_groups[0]["lr"] == eager.opt.param_groups[0]["lr"]
    for one, other in zip(weights(captured.opt), weights(eager.opt), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    for mine, theirs in zip(captured.opt.state.values(), eager.opt.state.values(), strict=True):
        assert mine.get("step") == theirs.get("step")


@gpu
def test_eager_steps_and_changes_by_hand_are_noticed_between_replays() -> None:
    def build(params: Any) -> Any:
        return AdamW(params, 0.01, weight_decay=0.1, schedule=Cosine(40))

    eager, captured = Captured(build), Captured(build)
    captured.capture()
    for _ in range(2):
        eager.train()
    for turn in range(4):
        captured.train() if turn == 2 else captured.graph.replay()
        if turn != 2:
            captured.opt.replayed()
        eager.train()
        for net in (eager, captured):
            if turn == 0:
                net.opt.rebase(0.02)
            if turn == 1:
                net.opt.param_groups[0]["weight_decay"] = 0.3
        captured.opt.replayed(0)
    for one, other in zip(weights(captured.opt), weights(eager.opt), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@gpu
def test_an_overflow_inside_a_graph_is_no_update() -> None:
    def build(params: Any) -> Any:
        return SGDW(params, 0.1, weight_decay=0.1, schedule=Cosine(40))

    captured = Captured(build, scaled=True)
    captured.capture()
    before = weights(captured.opt)
    good = captured.data.clone()
    captured.data.fill_(float("inf"))
    captured.graph.replay()
    captured.opt.replayed()
    assert captured.opt.param_groups[0]["updates"] == 2
    assert all(map(torch.equal, before, weights(captured.opt)))
    captured.data.copy_(good)
    captured.graph.replay()
    captured.opt.replayed()
    assert captured.opt.param_groups[0]["updates"] == 3
    assert not any(map(torch.equal, before, weights(captured.opt)))


@gpu
def test_captures_move_on_whichever_stream_of_the_pool_comes_next() -> None:
    """A stream that is made during a capture may be the very one that is captured."""
    for shift in range(2 * STREAMS):
        captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1, schedule=Cosine(40)))
        captured.capture()
        for _ in range(5):
            captured.graph.replay()
        captured.opt.replayed(5)
        captured.opt.verify()
        [used] = captured.opt.applied()
        assert used is not None
        assert used.update == 6
        assert used.lr == pytest.approx(0.01 * Cosine(40)(6), rel=1e-6)
        for _ in range(shift % 3):
            torch.cuda.Stream()  # type: ignore[no-untyped-call]


class NothingButLaunches(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses every operation of torch's: kernels of Triton's are none."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} while a capture is on")


@gpu
@pytest.mark.parametrize("scaled", [False, True])
def test_a_captured_step_allocates_and_copies_nothing(
    monkeypatch: pytest.MonkeyPatch, scaled: bool
) -> None:
    captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1), scaled=scaled)
    record, recorded = captured.opt._capture, []

    def watched(scaling: Any) -> None:
        memory = torch.cuda.memory_stats()["allocation.all.allocated"]
        with NothingButLaunches():  # type: ignore[no-untyped-call]
            record(scaling)
        recorded.append(torch.cuda.memory_stats()["allocation.all.allocated"] - memory)

    monkeypatch.setattr(captured.opt, "_capture", watched)
    captured.capture()
    assert recorded == [0]


@gpu
@pytest.mark.parametrize("told", [4, 6])
def test_replays_that_were_not_told_of_are_noticed(told: int) -> None:
    captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1, schedule=Cosine(40)))
    captured.capture()
    for _ in range(5):
        captured.graph.replay()
    captured.opt.replayed(told)
    with pytest.raises(RuntimeError, match=f"made the {told} updates .* the device counts 5"):
        captured.opt.verify()


@gpu
def test_a_frozen_schedule_is_noticed_where_the_table_is_written_again() -> None:
    """As if the first rows were written again before every replay."""
    captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1, schedule=Cosine(AHEAD * 4)))
    captured.capture()
    [[replays]] = captured.opt._graph_rates._captured

    def replay() -> None:
        replays._tables.counts.zero_()
        captured.graph.replay()
        captured.opt.replayed()

    for _ in range(AHEAD // 2):
        replay()
    with pytest.raises(RuntimeError, match=r"made the 513 updates .* the device counts 1"):
        replay()


@gpu
def test_rates_that_are_not_the_schedules_are_noticed() -> None:
    captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1, schedule=Cosine(40)))
    captured.capture()
    [[replays]] = captured.opt._graph_rates._captured
    captured.graph.replay()
    captured.opt.replayed()
    replays._tables.rows[1, 0, 0] = 0.5
    captured.graph.replay()
    captured.opt.replayed()
    with pytest.raises(RuntimeError, match=r"update 3 at α·η = 0\.00986.* at 0\.5 and"):
        captured.opt.verify()


@gpu
def test_graphs_replayed_in_another_order_than_captured_make_the_same_updates() -> None:
    def build(params: Any) -> Any:
        return SGDW(params, 0.1, weight_decay=0.1, schedule=Cosine(40))

    eager, captured = Captured(build), Captured(build)
    captured.capture()
    first = captured.graph
    captured.capture()
    second = captured.graph
    for _ in range(4):
        eager.train()
    for graph in (second, first, second, second, first):
        graph.replay()
        captured.opt.replayed()
        eager.train()
    captured.opt.verify()
    for one, other in zip(weights(captured.opt), weights(eager.opt), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@gpu
def test_more_replays_than_were_written_ahead_change_nothing_and_are_an_error() -> None:
    captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1, schedule=Cosine(AHEAD * 4)))
    captured.capture()
    for _ in range(AHEAD):
        captured.graph.replay()
    full = weights(captured.opt)
    captured.graph.replay()
    assert all(map(torch.equal, full, weights(captured.opt)))
    with pytest.raises(RuntimeError, match="at least every 1024 updates, got 1025"):
        captured.opt.replayed(AHEAD + 1)


@gpu
def test_a_long_run_is_refilled_in_time() -> None:
    captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1, schedule=Cosine(AHEAD * 4)))
    captured.capture()
    for _ in range(AHEAD * 2):
        captured.graph.replay()
        captured.opt.replayed()
    assert captured.opt.param_groups[0]["updates"] == 2 + AHEAD * 2


@gpu
def test_an_update_must_come_before_a_capture() -> None:
    captured = Captured(lambda p: AdamW(p, 0.01, weight_decay=0.1))
    captured.net(captured.data).sum().backward()
    with pytest.raises(RuntimeError, match="must be made before a step is captured"):
        captured.opt._capture(None)


def test_groups_cannot_be_replaced_once_a_step_is_captured() -> None:
    opt = AdamW([torch.nn.Parameter(torch.zeros(3))], 0.01, weight_decay=0.1)
    opt._graph_rates = GraphRates(opt._scheduled_groups(), opt.algorithm)
    opt.param_groups = [dict(group) for group in opt.param_groups]
    for use in (opt.step, opt.replayed):
        with pytest.raises(RuntimeError, match="must not be replaced after a step was captured"):
            use()
    assert opt.param_groups[0]["updates"] == 0


@gpu
def test_what_triton_cannot_serve_cannot_be_captured() -> None:
    theta = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    opt = AdamW([theta], 0.01, weight_decay=0.1)
    theta.grad = torch.ones_like(theta)
    opt.step()
    with pytest.raises(
        RuntimeError, match=r"the triton kernel for every parameter, got torch\.float64"
    ):
        opt._capture(None)


def test_without_a_capture_there_is_nothing_to_replay() -> None:
    opt = AdamW([torch.nn.Parameter(torch.zeros(3))], weight_decay=0.1)
    with pytest.raises(RuntimeError, match="must have been captured to be replayed"):
        opt.replayed()


@pytest.mark.parametrize("decay", [0.1, Normalized(0.2)])
def test_what_is_written_ahead_is_what_steps_would_use(decay: Any) -> None:
    opt = CASES["adamw"].build(
        [torch.nn.Parameter(torch.zeros(3))], weight_decay=decay, schedule=SCHEDULE
    )
    rates = GraphRates(opt._scheduled_groups(), opt.algorithm)._rates()
    for expected in rates[:30]:
        group = opt.param_groups[0]
        eta = group["lr"] / group["base"]
        assert expected[0] == pytest.approx((group["lr"], eta * group["weight_decay"]), rel=1e-12)
        group["params"][0].grad = torch.ones(3)
        opt.step()


def test_a_schedule_that_groups_share_is_asked_once_for_the_updates_ahead() -> None:
    asked = []

    def schedule(t: int) -> float:
        asked.append(t)
        return 1 / (1 + t)

    groups = [{"params": [torch.nn.Parameter(torch.zeros(3))], "lr": 0.01 * n} for n in range(1, 5)]
    opt = AdamW(groups, weight_decay=0.001, schedule=as_schedule(schedule))
    asked.clear()
    GraphRates(opt._scheduled_groups(), opt.algorithm)._rates()
    assert asked == list(range(AHEAD))


DECAYS: dict[str, dict[str, Any]] = {
    "number": {"schedule": SCHEDULE, "lr": 0.007},
    "normalized": {"schedule": SCHEDULE, "weight_decay": Normalized(0.3)},
    "power": {"schedule": WarmRestarts(7, factor=1.3), "weight_decay": Normalized(0.1, power=0.37)},
    "ending": {"schedule": Cosine(700), "weight_decay": Normalized(0.3), "maximize": True},
    "none": {"schedule": StepDrop([5, 600], drop=0.3), "weight_decay": 0.0},
    "by hand": {"schedule": None, "weight_decay": Normalized(0.2, steps=77)},
}
GROUPS: dict[str, list[dict[str, Any]]] = {
    "adamw": [*DECAYS.values(), {"betas": (0.8, 0.95)}, {"eps": 1e-3}],
    "sgdw": [*DECAYS.values(), {"momentum": 0.7}],
    "adam": [{}, {"l2": 0.1}, {"schedule": Cosine(700)}, {"schedule": None}],
}


@pytest.mark.parametrize("name", GROUPS)
def test_rows_written_ahead_are_those_of_each_update_to_the_bit(name: str) -> None:
    params = [torch.nn.Parameter(torch.ones(3)) for _ in GROUPS[name]]
    groups = [{"params": [p], **own} for p, own in zip(params, GROUPS[name], strict=True)]
    opt = CASES[name].build(groups, lr=0.011, schedule=SCHEDULE, kernel="triton")
    for begun in (params[1:], params):  # the first group's bias correction is an update behind
        for param in begun:
            param.grad = torch.ones(3)
        opt.step()
    [table] = opt._plan.tables
    rates = GraphRates(opt._scheduled_groups(), opt.algorithm)._rates()
    written = table._rows(rates)
    one_by_one = np.zeros_like(written)
    for ahead, row in zip(rates.tolist(), one_by_one, strict=True):
        coming = [(g, *coming_of(g, s, g["updates"])) for g, s in opt._scheduled_groups()]
        expected = [(lr, (decay or 0.0) * lr / g["base"]) for g, lr, decay in coming]
        assert list(map(tuple, ahead)) == expected
        table._write(expected, row)
        table._made += 1
        for group in opt.param_groups:
            group["updates"] += 1
    np.testing.assert_array_equal(written.view(np.int32), one_by_one.view(np.int32))


def test_the_first_replay_loads_the_tables_and_every_replay_reads_the_next_row() -> None:
    """Without a GPU: launching under Triton's interpreter is what a replay does."""
    schedule = Cosine(9)
    theta, twin = (torch.nn.Parameter(torch.linspace(-1, 1, 1500)) for _ in range(2))
    opt = SGDW([theta], 0.1, weight_decay=0.2, schedule=schedule, kernel="triton")
    eager = SGDW([twin], 0.1, weight_decay=0.2, schedule=schedule, kernel="reference")
    for param in (theta, twin):
        param.grad = torch.full_like(param, 0.3)
    for one in (opt, eager):
        one.step()
    assert opt._plan is not None
    [table] = opt._plan.tables
    table.reserve_graph_tables()
    rates = GraphRates(opt._scheduled_groups(), opt.algorithm)._rates()
    replays = table.capture([theta.grad], rates, None)  # type: ignore[list-item]
    for count in range(1, 6):
        eager.step()
        torch.testing.assert_close(theta, twin, rtol=1e-6, atol=1e-7)
        assert replays.made() == count
        [mine], [theirs] = table.applied().values(), eager.applied()
        assert theirs is not None
        assert mine == pytest.approx(theirs, rel=1e-6)
        replays.launch(None)


def test_an_overflow_is_no_update_and_uses_no_row() -> None:
    theta = torch.nn.Parameter(torch.ones(4))
    opt = SGDW([theta], 0.1, weight_decay=0.2, schedule=Cosine(9), kernel="triton")
    theta.grad = torch.ones(4)
    opt.step()
    assert opt._plan is not None
    [table] = opt._plan.tables
    table.reserve_graph_tables()
    overflow = torch.ones(())
    rates = GraphRates(opt._scheduled_groups(), opt.algorithm)._rates()
    before = theta.detach().clone()
    replays = table.capture([theta.grad], rates, (overflow, None))
    assert replays.made() == 0
    assert torch.equal(theta, before)
    overflow.zero_()
    replays.launch((overflow, None))
    assert replays.made() == 1
    assert table.applied()[0].update == 1
    assert not torch.equal(theta, before)


def test_what_was_applied_is_what_the_last_update_used() -> None:
    schedule = WarmRestarts(4)
    kernels = ["reference", "foreach"] + ["fused"] * (torch.get_default_device().type == "cpu")
    for kernel in (*kernels, None):
        theta = torch.nn.Parameter(torch.ones(4))
        opt = AdamW([theta], 0.1, weight_decay=Normalized(0.2), schedule=schedule, kernel=kernel)
        assert opt.applied() == [None]
        for update in range(6):
            theta.grad = torch.ones(4)
            group = dict(opt.param_groups[0])
            opt.step()
            eta = schedule(update)
            wanted = (update, group["lr"], eta * group["weight_decay"], 0.0)
            rounding = 1e-12 if torch.get_default_device().type == "cpu" else 1e-6  # of float32
            assert opt.applied()[0] == pytest.approx(wanted, rel=rounding)
