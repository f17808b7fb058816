"""Training: what a lane sees, what its neighbours cannot change, and what it leaves."""

import errno
import logging
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from tests.toys import config, notices_of, records_of, toy
from weightdecay import Constant, Cosine, Schedule, StepDrop, WarmRestarts, Warmup
from weightdecay.records import Progress, Record, RunConfig, Timing
from weightdecay.runs import Keep, ensemble, pack, train, train_events, training
from weightdecay.runs.build import schedule_of
from weightdecay.runs.captured import Fitting
from weightdecay.runs.checkpoints import RunFiles
from weightdecay.runs.lanes import Lanes
from weightdecay.runs.separate import Separate
from weightdecay.runs.stacked import Stacked, can_stack
from weightdecay.tasks import Examples, Task, split
from weightdecay.tasks.measure import cross_entropy, rank
from weightdecay.tasks.models import MLP

pytestmark = pytest.mark.cpu(
    "lanes are equal to the bit on a CPU; test_captured.py trains on a GPU"
)
CPU = torch.device("cpu")
ALGORITHMS = {
    "adamw": "normalized_decay",
    "sgdw,momentum=0.9,nesterov=true": "weight_decay",
    "adam,betas=0.9/0.98": "l2",
    "sgd": "l2",
    "torch.optim:NAdam": "weight_decay",
    "torch.optim:Adafactor": "weight_decay",
}


def mixed() -> list[RunConfig]:
    """Return a lane for each algorithm, with schedules and seeds of their own."""
    shapes = ["cosine", "restarts,first=1,factor=2", "drops,at=1/2", "constant,warmup=0.5"]
    return [
        config(algorithm=algorithm, **{way: 1e-3}, seed=n, schedule=shapes[n % len(shapes)])
        for n, (algorithm, way) in enumerate(ALGORITHMS.items())
    ]


def trained(configs: Any, **options: Any) -> dict[str, list[Record]]:
    return records_of(train_events(configs, device="cpu", **options))


def close(one: list[Record], other: list[Record]) -> bool:
    """Whether two runs are the same but for rounding."""
    return all(
        math.isclose(a.train_loss or 0, b.train_loss or 0, rel_tol=2e-5)
        and math.isclose(a.weight_norm or 0, b.weight_norm or 0, rel_tol=2e-5)
        and (a.updates, a.lr, a.decay, a.cycle_ended) == (b.updates, b.lr, b.decay, b.cycle_ended)
        for a, b in zip(one, other, strict=True)
    )


def test_a_lane_is_that_configuration_trained_alone() -> None:
    lanes = mixed()
    together = trained(lanes)
    for lane in lanes:
        [alone] = trained(lane).values()
        assert close(together[lane.identity], alone)


def test_a_lanes_bits_do_not_depend_on_its_neighbours() -> None:
    lanes = mixed()
    together = trained(lanes)
    for some in (lanes[:2], lanes[1:4], lanes[::-1], lanes[3:]):
        for identity, records in trained(some).items():
            assert records == together[identity]


def test_lanes_of_one_schedule_share_it() -> None:
    """What is written ahead of CUDA graphs asks a schedule once for all groups that share it."""
    shapes = ["cosine", "cosine,low=0.1", "cosine"]
    configs = [config(seed=n, schedule=shape) for n, shape in enumerate(shapes)]
    lanes = Separate(configs, split(toy(), validation=None, data=None), CPU)
    [optimizer] = lanes.optimizers.values()
    one, other, same = optimizer.schedules
    assert one is same
    assert one != other


@pytest.mark.parametrize("model", ["dropping", "forking"])
def test_lanes_that_cannot_be_stacked_train_apart(model: str) -> None:
    lanes = [config(model=model, seed=seed) for seed in (3, 4)]
    assert not can_stack(lanes[0], toy())
    together = trained(lanes)
    for lane in lanes:
        assert trained(lane)[lane.identity] == together[lane.identity]


ODD = [
    *(f"odd,thing={name}" for name in ("frozen", "unused", "functional", "tied")),
    *(f"odd,thing=none,width={width}" for width in (5, 8, 33)),
    "odd,thing=transient",
    "default",
    "mlp,width=10",
]


@pytest.mark.parametrize(
    "model",
    ["odd,thing=reassigned", *(pytest.param(model, marks=pytest.mark.slow) for model in ODD)],
)
def test_whatever_a_model_is_a_lane_is_what_it_is_alone(model: str, tmp_path: Path) -> None:
    """And beside whom, in which order, and killed between, makes no difference to the bit."""
    lanes = [config(model=model, seed=seed, schedule="restarts,first=1") for seed in (1, 2, 3)]
    together = trained(lanes)
    for lane in lanes:
        assert close(together[lane.identity], trained(lane)[lane.identity])
    assert trained(lanes[::-1]) == together
    events = train_events(lanes, folder=tmp_path, device="cpu")
    while not (isinstance(event := next(events), Record) and event.epoch == 2):
        pass
    events.close()  # type: ignore[attr-defined]
    assert trained(lanes[1:], folder=tmp_path) == {
        lane.identity: together[lane.identity] for lane in lanes[1:]
    }
    assert ensemble(lanes[1], folder=tmp_path)[0].error == pytest.approx(
        together[lanes[1].identity][-1].test_error
    )


def test_frozen_weights_stay() -> None:
    lane = config(model="odd,thing=frozen")
    whole = Separate([lane, config(seed=5, model="odd,thing=frozen")], split_toy(), CPU)
    before = whole.solution(0)["one.weight"]
    whole.advance(3)
    assert torch.equal(whole.solution(0)["one.weight"], before)
    assert not can_stack(lane, split_toy())


def test_of_equal_logits_the_first_is_the_answer() -> None:
    """A network that says nothing is right as often as one that always says 0."""
    targets = torch.arange(8)
    assert rank(torch.zeros(8, 8), targets).tolist() == targets.tolist()
    lost = rank(torch.full((8, 8), torch.nan), targets)
    assert lost.tolist() == [8] * 8


def test_training_leaves_torchs_random_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trained(config(model="dropping", epochs=1))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_lane_that_diverges_is_marked_and_stops_and_others_never_notice(others: int) -> None:
    lost = config(algorithm="sgdw", lr=1e30, weight_decay=0.0)
    steady = [config(seed=seed) for seed in range(others)]
    found = trained([lost, *steady])
    [last] = found[lost.identity]
    assert last.diverged
    assert last.train_loss is None
    assert last.weight_norm is None
    beside = trained([*steady, config(seed=99)])
    for lane in steady:
        assert found[lane.identity] == beside[lane.identity]
        assert not any(record.diverged for record in found[lane.identity])


def test_a_record_is_what_its_epoch_came_to() -> None:
    lane = config(algorithm="sgdw", weight_decay=0.01, schedule="restarts,first=1,factor=1")
    [records] = trained(lane).values()
    eta = math.cos(math.pi * 8 / 9 / 2) ** 2  # the ninth update of a cycle of nine
    for epoch, record in enumerate(records, 1):
        assert (record.epoch, record.updates, record.run) == (epoch, 9 * epoch, lane.identity)
        assert record.lr == pytest.approx(0.02 * eta)
        assert record.decay == pytest.approx(0.01 * eta)
        assert record.cycle_ended
    assert records[-1].train_loss < records[0].train_loss  # type: ignore[operator]


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e30])
def test_the_cross_entropy_and_its_gradients_are_torchs(scale: float) -> None:
    draw = torch.Generator().manual_seed(0)
    logits = (scale * torch.randn(7, 5, 10, generator=draw)).requires_grad_()
    targets = torch.randint(10, (7, 5), generator=draw)
    ours, theirs = (
        function(logits.flatten(0, 1), targets.flatten())
        for function in (
            cross_entropy,
            partial(torch.nn.functional.cross_entropy, reduction="none"),
        )
    )
    torch.testing.assert_close(cross_entropy(logits, targets), ours)
    torch.testing.assert_close(ours, theirs)
    grads = [torch.autograd.grad(each.sum(), logits, retain_graph=True) for each in (ours, theirs)]
    torch.testing.assert_close(*grads)


def test_errors_are_of_the_weights_at_the_epochs_end(tmp_path: Path) -> None:
    lane = config()
    [records] = trained(lane, folder=tmp_path).values()
    model, task = toy().models["mlp"](generator=None), toy()
    model.load_state_dict(torch.load(RunFiles(tmp_path, lane).solutions()[-1]))
    model.eval()
    with torch.no_grad():
        logits = model(task.test.inputs)
    ranked = logits.argsort(1, descending=True)
    hits = ranked == task.test.targets[:, None]
    assert records[-1].test_error == pytest.approx(1 - hits[:, 0].float().mean().item())
    assert records[-1].test_error_top5 == pytest.approx(
        1 - hits[:, :5].any(1).float().mean().item()
    )
    loss = torch.nn.functional.cross_entropy(logits, task.test.targets).item()
    assert records[-1].test_loss == pytest.approx(loss, rel=1e-5)


def test_timings_and_progress_come_beside_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weightdecay.runs.pack.PROGRESS_EVERY", -1.0)
    events = list(train_events(config(), device="cpu"))
    timings = [event for event in events if isinstance(event, Timing)]
    progress = [event for event in events if isinstance(event, Progress)]
    assert [timing.epoch for timing in timings] == [1, 2, 3]
    assert all(timing.training > 0 < timing.evaluation for timing in timings)
    assert [event.update for event in progress] == sorted({event.update for event in progress})
    assert progress[-1].update == progress[-1].updates == 27


@pytest.mark.parametrize("evaluate_every", [0, 2, 3])
def test_to_evaluate_less_often_leaves_fewer_records_and_the_same(evaluate_every: int) -> None:
    shapes = ("cosine", "restarts,first=1,factor=2", "drops,at=2")
    often = [
        config(epochs=7, schedule=shape, seed=n, normalized_decay=None, weight_decay=0.01)
        for n, shape in enumerate(shapes)
    ]
    seldom = [replace(lane, evaluate_every=evaluate_every) for lane in often]
    all_of_them, some = trained(often), trained(seldom)
    for lane, other in zip(often, seldom, strict=True):
        assert some[other.identity] == [
            replace(record, run=other.identity)
            for record in all_of_them[lane.identity]
            if record.cycle_ended
            or record.epoch == 7
            or (evaluate_every and record.epoch % evaluate_every == 0)
        ]


def test_a_run_that_diverges_between_evaluations_says_so_at_once() -> None:
    wild, calm = (config(algorithm="sgd", l2=0.0, lr=lr, epochs=5) for lr in (1e30, 0.01))
    often = trained([wild, calm])
    lanes = [replace(lane, evaluate_every=0) for lane in (wild, calm)]
    seldom = trained(lanes)
    for lane, whole in zip(lanes, often.values(), strict=True):
        assert seldom[lane.identity] == [replace(whole[-1], run=lane.identity)]
    assert seldom[lanes[0].identity][0].diverged


def test_a_run_of_few_records_goes_on_from_where_it_was(tmp_path: Path) -> None:
    lanes = [config(epochs=6, evaluate_every=0, seed=seed) for seed in (1, 2)]
    events = train_events(lanes, folder=tmp_path, device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weightdecay.runs.pack.PROGRESS_EVERY", -1.0)
        while not (isinstance(event := next(events), Progress) and event.epoch == 4):
            pass
        events.close()  # type: ignore[attr-defined]
    assert trained(lanes, folder=tmp_path) == trained(lanes)
    assert trained(lanes, folder=tmp_path) == trained(lanes)  # which is done by now


def test_timings_tell_of_all_epochs_until_a_record() -> None:
    lane = config(epochs=5, evaluate_every=2)
    timings = [event for event in train_events(lane, device="cpu") if isinstance(event, Timing)]
    assert [(timing.epoch, timing.epochs) for timing in timings] == [(2, 2), (4, 2), (5, 1)]


def test_a_neighbours_record_takes_no_epochs_from_a_lanes_timings() -> None:
    shapes = ("cosine", "restarts,first=1,factor=2")
    lanes = [config(epochs=7, evaluate_every=0, schedule=shape) for shape in shapes]
    timings = [event for event in train_events(lanes, device="cpu") if isinstance(event, Timing)]
    for lane, ends in zip(lanes, ([7], [1, 2, 4]), strict=True):
        assert [t.epochs for t in timings if t.run == lane.identity] == ends


def test_an_epoch_is_every_example_once_in_an_order_of_its_own() -> None:
    lanes = Separate([config(seed=0), config(seed=1)], split_toy(), CPU)
    orders = torch.stack([lanes._epoch_order(epoch).flatten(1) for epoch in (0, 1)])
    flat = orders.flatten(0, 1)
    assert torch.equal(flat.sort(1).values, torch.arange(270).expand(4, 270))
    assert len({tuple(order.tolist()) for order in flat}) == 4


def test_the_last_smaller_batch_of_an_epoch_is_left_out_and_is_not_an_update() -> None:
    lanes = Separate([config(batch=40, epochs=3)], split_toy(), CPU)
    orders = [lanes._epoch_order(epoch)[0] for epoch in (0, 1)]
    assert [order.shape for order in orders] == [(6, 40), (6, 40)]  # of 270 examples
    one, other = (set(range(270)) - set(order.flatten().tolist()) for order in orders)
    assert len(one) == len(other) == 30
    assert one != other
    assert lanes.schedules[0].cycle(0).length == 3 * 6


def split_toy(**sizes: Any) -> Any:
    return split(toy(), **{"validation": None, "data": None, **sizes})


def test_validation_is_held_out_and_the_same_for_all() -> None:
    tenth, some, paper = (split_toy(validation=size) for size in (None, 50, "test"))
    assert len(tenth.choices) == 30
    assert len(tenth.train) == 270
    assert len(some.train) == 250
    rows = {tuple(row.tolist()) for row in some.train.inputs}
    assert not rows & {tuple(row.tolist()) for row in some.choices.inputs}
    assert paper.choices is paper.test
    assert len(paper.train) == 300
    small, large = (split_toy(data=size).train.inputs for size in (60, 120))
    assert torch.equal(large[:60], small)
    with pytest.raises(
        ValueError, match="`data` must be at most 250, the training examples of toy"
    ):
        split_toy(validation=50, data=251)


def test_choosing_on_the_test_set_is_the_papers_way() -> None:
    [records] = trained(config(validation="test")).values()
    for record in records:
        assert record.validation_error == record.test_error
        assert record.validation_loss == record.test_loss


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("constant", Constant()),
        ("cosine", Cosine(300)),
        ("cosine,low=0.1", Cosine(300, low=0.1)),
        ("cosine,warmup=0.5", Warmup(50, Cosine(250))),
        ("restarts,first=1", WarmRestarts(100, factor=2)),
        ("restarts,first=0.5,factor=1.5,low=0.1", WarmRestarts(50, factor=1.5, low=0.1)),
        ("drops,at=1/2.5,drop=0.2", StepDrop([100, 250], drop=0.2)),
        ("drops,at=2", StepDrop([200], drop=0.1)),
    ],
)
def test_schedules_are_said_in_epochs(text: str, expected: Schedule) -> None:
    assert schedule_of(config(schedule=text), 100) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "cosine,warmup=3"}, "`warmup` must be shorter than the run's 3 epochs"),
        ({"schedule": "constant,warmup=a"}, "`warmup` must be a number, got 'a'"),
        ({"schedule": "drops,at=1/x"}, "`at` must be a number, got '1/x'"),
        ({"algorithm": "adamw,lr=3"}, "Options of `algorithm` must not include lr, which"),
        ({"algorithm": "adamw,l2=3"}, "Options of `algorithm` must not include l2, which"),
        ({"model": "mlp,generator=a"}, "Options of `model` must not include generator, which"),
        ({"model": "vgg"}, "`model` must be one of mlp, dropping, forking, linear, odd"),
        ({"model": "mlp,widht=3"}, "Unknown option `widht` for mlp. Did you mean `width`? Its"),
        ({"model": "odd"}, "odd needs the option `thing`. Its options are thing, width."),
        ({"algorithm": "adamw,momentum=0.9"}, "Unknown option `momentum` for adamw."),
        ({"algorithm": "torch.optim:Nope"}, "and 'Nope' is not in it"),
        ({"algorithm": "torch.nn:Linear"}, "must name a subclass of torch.optim.Optimizer"),
        ({"batch": 271}, "`batch` must be at most 270, the number of training examples, got 271"),
    ],
)
def test_what_cannot_be_trained_is_said_at_once_and_leaves_nothing(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        train_events(config(**changes), folder=tmp_path)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([], "at least one configuration"),
        (
            [config(), config(batch=10)],
            "Lanes must share `batch`, got 10, 30. Train them separately.",
        ),
        ([config(), config()], "must all be different"),
    ],
)
def test_lanes_that_do_not_go_together_are_refused_at_once(
    configs: list[RunConfig], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        train_events(configs)


def test_the_solution_of_every_cycle_is_kept_and_can_be_asked_together(tmp_path: Path) -> None:
    lane = config(schedule="restarts,first=1,factor=1", epochs=4)
    [records] = trained(lane, folder=tmp_path).values()
    assert len(RunFiles(tmp_path, lane).solutions()) == 4
    found = ensemble(lane, folder=tmp_path)
    assert [each.members for each in found] == [1, 2, 3, 4]
    assert found[0].error == pytest.approx(records[-1].test_error)
    assert found[0].error_top5 == pytest.approx(records[-1].test_error_top5)
    assert len({each.error for each in found}) > 1
    with pytest.raises(ValueError, match="must have a solution from the end of a cycle"):
        ensemble(config(seed=9), folder=tmp_path)


def test_a_cycle_that_ends_within_an_epoch_leaves_its_solution(tmp_path: Path) -> None:
    lane = config(schedule="restarts,first=0.5,factor=1", epochs=2)
    trained([lane, config()][:1], folder=tmp_path)
    assert len(RunFiles(tmp_path, lane).solutions()) == 4  # 18 updates in cycles of 4


@pytest.mark.parametrize("kind", [Stacked, Separate])
def test_a_lanes_state_is_all_of_it(kind: type[Lanes]) -> None:
    """From one way of computing to the other, too: a checkpoint is not bound to its machine."""
    lanes = mixed()
    whole = kind(lanes, split_toy(), CPU)
    whole.advance(5)
    states = [whole.state(n) for n in range(len(lanes))]
    whole.advance(4)
    for other in (Stacked, Separate):
        taken_up = other(lanes, split_toy(), CPU)
        taken_up.load(states)
        taken_up.advance(4)
        for n in range(len(lanes)):
            one, another = taken_up.solution(n), whole.solution(n)
            assert one.keys() == another.keys()
            for name in one:
                torch.testing.assert_close(one[name], another[name], rtol=1e-4, atol=1e-6)
                assert other is not kind or torch.equal(one[name], another[name])


def test_a_solution_that_is_not_finite_is_not_kept(tmp_path: Path) -> None:
    lost = config(algorithm="sgdw", lr=1e30, weight_decay=0.0, schedule="restarts,first=1,factor=1")
    trained(lost, folder=tmp_path)
    assert not RunFiles(tmp_path, lost).solutions()


def test_a_task_that_changed_under_its_name_is_noticed(tmp_path: Path) -> None:
    lane = config(schedule="restarts,first=1,factor=1")
    trained(lane, folder=tmp_path)
    max(RunFiles(tmp_path, lane).folder.glob("checkpoint-*")).unlink()
    model = replace(toy(), models={"mlp": partial(MLP, 12, 8, width=4)})
    with pytest.raises(ValueError, match="the task has changed under the same name"):
        trained(lane, folder=tmp_path, task=model)
    data = replace(toy(), test=toy().train)
    with pytest.raises(
        ValueError, match="must be those that the run was started with, but have changed"
    ):
        trained(lane, folder=tmp_path, task=data)


@pytest.mark.parametrize(("fit", "said"), [(2, "2 of 3 lanes fit into memory"), (0, "without")])
def test_lanes_that_do_not_fit_are_split_and_what_cannot_be_captured_trains_without(
    fit: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without a GPU, with lanes that stand in for captured ones."""
    lanes = [config(model="dropping", seed=seed) for seed in (1, 2, 3)]
    expected = trained(lanes)
    monkeypatch.setattr(training, "Captured", Separate)

    class Fits(Fitting):
        def __call__(self, *_: Any) -> int:
            return fit

    monkeypatch.setattr(training, "fitting", Fits())
    events = list(train_events(lanes, device="cpu"))
    assert any(said in text for text in notices_of(events))
    assert records_of(events) == expected
    most = {event.lanes for event in events if isinstance(event, Timing)}
    assert most == ({1, 2} if fit else {3})


def test_data_of_any_kind_have_a_fingerprint_of_their_own() -> None:
    kinds = [torch.bfloat16, torch.float32, torch.float64]
    tasks = [
        replace(toy(), test=Examples(toy().test.inputs.to(k), toy().test.targets)) for k in kinds
    ]
    assert len({task.fingerprint for task in tasks}) == 3
    assert toy().fingerprint == toy().fingerprint == tasks[1].fingerprint


def test_a_cycle_that_the_budget_cuts_short_has_not_ended(tmp_path: Path) -> None:
    """What is recommended is the last that did; only where none did, the end must do."""
    for first, kept, ended in ((2, 1, [False, True, False]), (5, 1, [False] * 3)):
        lane = config(schedule=f"restarts,first={first},factor=2")
        events = list(train_events(lane, folder=tmp_path, device="cpu"))
        [records] = records_of(events).values()
        assert [record.cycle_ended for record in records] == ended
        assert len(RunFiles(tmp_path, lane).solutions()) == kept
        assert "in the middle of cycle " in notices_of(events)[0]


@pytest.mark.slow
def test_a_run_stopped_by_its_listener_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weightdecay.runs.pack.PROGRESS_EVERY", -1.0)
    lane = config(schedule="restarts,first=0.5,factor=2")
    expected = trained(lane)
    for update in range(1, 28):
        folder = tmp_path / str(update)
        events = train_events(lane, folder=folder, device="cpu")
        while getattr(next(events), "update", None) != update:
            pass
        events.close()  # type: ignore[attr-defined]
        newest = RunFiles(folder, lane).checkpoints()[0]
        assert newest.name == f"checkpoint-{update:012d}.pt"
        assert trained(lane, folder=folder) == expected


def test_trainings_on_one_task_split_and_send_their_data_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Task] = []

    def counted(*args: Any, **options: Any) -> Task:
        made.append(split(*args, **options))
        return made[-1]

    monkeypatch.setattr("weightdecay.tasks.task.split", counted)
    task = toy()
    one, other = (trained(config(), task=task) for _ in range(2))
    assert one == other
    assert len(made) == 1
    trained(config(data=36), task=task)  # another split replaces it
    [kept] = task.parts.values()
    assert len(kept.train) == 36
    assert len(made) == 2


class Clock:
    """Stands for the module `time`: updates take a second, and checkpoints five."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for cls, name, seconds in ((Separate, "advance", 1.0), (RunFiles, "save", 5.0)):
            monkeypatch.setattr(cls, name, self._slow(getattr(cls, name), seconds))
        monkeypatch.setattr(pack, "time", self)

    def monotonic(self) -> float:
        return self.now

    def _slow(self, function: Any, seconds: float) -> Any:
        def slow(*args: Any) -> Any:
            self.now += seconds
            return function(*args)

        return slow


def test_checkpoints_that_take_long_are_made_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "CHECKPOINT_EVERY", 2.5)
    monkeypatch.setattr(pack, "SAVED_WITHIN", 1.0)
    monkeypatch.setattr(pack, "_saving", {})
    Clock(monkeypatch)
    for seed, saved in ((1, [3, 16]), (2, [13, 26])):  # the first one learns what it takes
        lane = config(seed=seed, model="dropping")
        trained(lane, folder=tmp_path, keep=Keep(checkpoints=False))
        kept = [path.stem for path in RunFiles(tmp_path, lane).checkpoints()[::-1]]
        assert kept == [f"checkpoint-{update:012d}" for update in saved]


def test_a_checkpoint_that_took_very_long_once_does_not_put_off_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "_saving", {("dropping", 1): 1e6})
    monkeypatch.setattr(pack, "CHECKPOINT_EVERY", 2.5)
    monkeypatch.setattr(pack, "RAREST", 7.5)
    Clock(monkeypatch)
    lane = config(seed=1, model="dropping")
    trained(lane, folder=tmp_path, keep=Keep(checkpoints=False))
    assert len(RunFiles(tmp_path, lane).checkpoints()) == 2
    assert pack._saving["dropping", 1] < 10


@pytest.mark.parametrize(("kept", "last"), [(True, 27), (False, 26)])
def test_a_checkpoint_of_the_end_is_kept_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool, last: int
) -> None:
    """Whoever records runs in a store removes their checkpoints then."""
    monkeypatch.setattr("weightdecay.runs.pack.CHECKPOINT_EVERY", -1.0)
    monkeypatch.setattr("weightdecay.runs.pack.PROGRESS_EVERY", -1.0)  # an update at a time
    lane = config()
    trained(lane, folder=tmp_path, keep=Keep(checkpoints=kept))
    assert RunFiles(tmp_path, lane).checkpoints()[0].name == f"checkpoint-{last:012d}.pt"


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (torch.zeros(3, 1), torch.zeros(2).long(), "one target per input"),
        (torch.zeros(0, 1), torch.zeros(0).long(), "at least one, got 0 inputs"),
        (
            torch.zeros(2, 1),
            torch.zeros(2),
            "`targets` of toy must be int64 classes, got torch.float32. Use .long.*pass a loss",
        ),
        (torch.zeros(2, 1), torch.tensor([0, 8]), "must be from 0 to 7, got 8"),
        (torch.zeros(2, 1), torch.tensor([-1, 7]), "must be from 0 to 7, got -1"),
    ],
)
def test_data_that_cannot_be_trained_on_are_refused(
    inputs: torch.Tensor, targets: torch.Tensor, message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        replace(toy(), test=Examples(inputs, targets))


def test_a_notice_says_where_a_run_was_taken_up(tmp_path: Path) -> None:
    lane = config()
    events = train_events(lane, folder=tmp_path, device="cpu")
    while not isinstance(next(events), Record):
        pass
    events.close()  # type: ignore[attr-defined]
    list(train_events(lane, folder=tmp_path, device="cpu"))
    again = notices_of(train_events(lane, folder=tmp_path, device="cpu"))
    assert again == ["This run was already trained: these are its records."]
    longer = replace(lane, schedule="restarts,first=1,factor=1")
    events = train_events(longer, folder=tmp_path, device="cpu")
    while not (isinstance(event := next(events), Record) and event.epoch == 2):
        pass
    events.close()  # type: ignore[attr-defined]
    assert notices_of(train_events(longer, folder=tmp_path, device="cpu")) == [
        "Resumed at update 9 of 27."
    ]


@pytest.mark.parametrize("solutions", [True, False])
@pytest.mark.parametrize("checkpoints", [True, False])
def test_what_is_kept_is_what_was_asked_for(
    tmp_path: Path, solutions: bool, checkpoints: bool
) -> None:
    lane = config()
    trained(lane, folder=tmp_path, keep=Keep(solutions=solutions, checkpoints=checkpoints))
    files = RunFiles(tmp_path, lane)
    assert (bool(files.solutions()), bool(files.checkpoints())) == (
        solutions,
        checkpoints,
    )


def test_one_lane_stacked_has_the_bits_it_has_in_company() -> None:
    lanes = [config(seed=seed) for seed in (1, 2, 3)]
    together = trained(lanes)
    [alone] = trained(lanes[1], stacked=True).values()
    assert alone == together[lanes[1].identity]
    assert alone != trained(lanes[1])[lanes[1].identity]


def test_train_returns_the_run_that_its_events_tell_of(tmp_path: Path) -> None:
    lane = config()
    run = train(lane, device="cpu", folder=tmp_path)
    assert run.config == lane
    assert list(run.records) == trained(lane)[lane.identity]
    assert run.environment is not None
    assert train(lane, device="cpu", folder=tmp_path) == run


def test_train_returns_runs_in_the_order_of_their_configurations() -> None:
    """Whichever of them ends first."""
    lost = config(algorithm="sgdw", lr=1e30, weight_decay=0.0)
    lanes = [config(seed=2), lost, config(seed=1)]
    runs = train(lanes, device="cpu")
    assert [run.config for run in runs] == lanes
    assert [run.diverged for run in runs] == [False, True, False]
    assert {run.config.identity: list(run.records) for run in runs} == trained(lanes)


def test_train_logs_what_a_person_should_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lane = config()
    train(lane, device="cpu", folder=tmp_path)
    with caplog.at_level("INFO", "weightdecay"):
        train(lane, device="cpu", folder=tmp_path)
    assert caplog.messages == ["This run was already trained: these are its records."]


def test_train_logs_a_failed_save_as_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RunFiles, "keep_solution", full)
    train(config(), device="cpu", folder=tmp_path)
    [(_, level, said)] = caplog.record_tuples
    assert level == logging.WARNING
    assert said.startswith("The solution of cycle 0 could not be saved: [Errno 28]")
