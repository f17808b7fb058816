"""A task's loss and metric are what is minimized and recorded, whatever they are."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from tests.own_tasks import CLASSES, convolutions, net, numbers, pixels
from tests.toys import config, records_of, toy
from weightdecay.cli import run_tables
from weightdecay.hashing import word
from weightdecay.records import Record, RunConfig
from weightdecay.records.tables import export, imported
from weightdecay.results import landscapes
from weightdecay.runs import ensemble, train_events
from weightdecay.runs.build import ORDER, WEIGHTS
from weightdecay.runs.captured import _measure
from weightdecay.runs.checkpoints import RunFiles
from weightdecay.runs.stacked import can_stack
from weightdecay.sweeps import Store, sweep_events
from weightdecay.sweeps.local import Local
from weightdecay.table import table
from weightdecay.tasks import Task, split


def mean_squared(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.mse_loss(outputs, targets)


def mean_absolute(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.l1_loss(outputs, targets)


def mean_intersection(outputs: Tensor, targets: Tensor) -> Tensor:
    """One minus the mean intersection over union, counted image by image and class by class."""
    errors = []
    for found, true in zip(outputs.argmax(1), targets, strict=True):
        shares = []
        for one in range(CLASSES):
            either = int(((found == one) | (true == one)).sum())
            both = int(((found == one) & (true == one)).sum())
            shares.append(both / either if either else 1.0)
        errors.append(1 - sum(shares) / CLASSES)
    return torch.tensor(errors).mean()


@dataclass(frozen=True)
class Own:
    """A task, and what its loss and metric are in plain torch: means over a whole batch."""

    task: Callable[[], Task]
    build: Callable[..., nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    metric: Callable[[Tensor, Tensor], Tensor]
    metric_name: str

    def lane(self, **changes: Any) -> RunConfig:
        return config(
            **{
                "task": f"tests.own_tasks:{self.task.__name__}",
                "model": self.build.__name__,
                "algorithm": "sgd,momentum=0.9",
                "l2": 0.01,
                "lr": 0.05,
                "schedule": "constant",
                "batch": 18,
                **changes,
            }
        )


OWN = {
    "regression": Own(numbers, net, mean_squared, mean_absolute, "absolute error"),
    "segmentation": Own(
        pixels, convolutions, F.cross_entropy, mean_intersection, "intersection error"
    ),
}


@pytest.fixture(params=OWN)
def own(request: pytest.FixtureRequest) -> Own:
    return OWN[request.param]


def by_hand(own: Own, lane: RunConfig) -> list[tuple[float, ...]]:
    """Train as anybody would, with torch's optimizer; return what each epoch came to."""
    task = split(own.task(), validation=lane.validation, data=lane.data)
    assert task.choices is not None
    device = torch.get_default_device()
    with torch.device("cpu"):
        model = own.build(generator=torch.Generator().manual_seed(word(lane.seed, WEIGHTS)))
    model.to(device)
    optimizer = torch.optim.SGD(
        model.parameters(), lane.lr, momentum=0.9, weight_decay=lane.l2 or 0
    )
    found = []
    for epoch in range(lane.epochs):
        model.train()
        order = word(lane.seed, ORDER, epoch, torch.arange(len(task.train), device="cpu"))
        batches = order.argsort(stable=True).split(lane.batch)[: len(task.train) // lane.batch]
        trained = []
        for batch in batches:
            inputs, targets = (
                part[batch].to(device) for part in (task.train.inputs, task.train.targets)
            )
            outputs = model(inputs)
            loss = own.loss(outputs, targets)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            trained.append((float(loss.detach()), float(own.metric(outputs.detach(), targets))))
        model.eval()
        judged = []
        for part in (task.choices, task.test):
            with torch.no_grad():
                outputs = model(part.inputs.to(device))
            targets = part.targets.to(device)
            judged += [float(own.loss(outputs, targets)), float(own.metric(outputs, targets))]
        means = (math.fsum(column) / len(trained) for column in zip(*trained, strict=True))
        found.append((*means, *judged))
    return found


def numbers_of(record: Record) -> tuple[float | None, ...]:
    return (
        record.train_loss,
        record.train_error,
        record.validation_loss,
        record.validation_error,
        record.test_loss,
        record.test_error,
    )


def check_same(records: list[Record], expected: list[tuple[float, ...]]) -> None:
    for record, wanted in zip(records, expected, strict=True):
        assert numbers_of(record) == pytest.approx(wanted, rel=2e-4)


def test_a_loss_and_a_metric_train_as_in_a_loop_of_ones_own(own: Own) -> None:
    """One alone, and lanes side by side."""
    device = torch.get_default_device()
    lanes = [own.lane(seed=seed) for seed in range(3)]
    [alone] = records_of(train_events(lanes[0], device=device)).values()
    check_same(alone, by_hand(own, lanes[0]))
    for lane, records in zip(
        lanes, records_of(train_events(lanes, device=device)).values(), strict=True
    ):
        check_same(records, by_hand(own, lane))
        assert {record.metric for record in records} == {own.metric_name}
        assert {(r.validation_error_top5, r.test_error_top5) for r in records} == {(None, None)}


@pytest.mark.cpu("what is mapped over lanes is so on a CPU")
def test_a_loss_of_ones_own_is_mapped_over_lanes() -> None:
    regression = OWN["regression"]
    parts = split(regression.task(), validation=None, data=None)
    assert can_stack(regression.lane(), parts)


@pytest.mark.slow
@pytest.mark.cpu("two processes share a CPU")
def test_a_sweep_over_two_workers_finds_what_a_loop_does(own: Own, tmp_path: Path) -> None:
    cells = [own.lane(seed=seed, lr=lr) for seed in range(2) for lr in (0.02, 0.05)]
    for _ in sweep_events(cells, folder=tmp_path, engine=Local(2, "cpu")):
        pass
    runs = {run.config: run for run in Store(tmp_path).runs()}
    for cell in cells:
        check_same(list(runs[cell].records), by_hand(own, cell))
    table = tmp_path / "runs.csv"
    export(runs.values(), table)
    assert {run.config: run for run in imported(table)} == runs
    [scape] = landscapes(runs.values())
    assert scape.metric == own.metric_name
    with pytest.raises(ValueError, match=f"{own.metric_name} has no error_top5"):
        landscapes(runs.values(), of="error_top5")


@pytest.mark.cpu("a run is taken up to the bit on a CPU")
@pytest.mark.parametrize("lanes", [1, 2])
def test_a_run_with_a_loss_of_its_own_is_taken_up_where_it_was(
    own: Own, lanes: int, tmp_path: Path
) -> None:
    chosen = [own.lane(seed=seed, epochs=4) for seed in range(lanes)]
    whole = records_of(train_events(chosen, device="cpu"))
    events = train_events(chosen, folder=tmp_path, device="cpu")
    while not (isinstance(event := next(events), Record) and event.epoch == 2):
        pass
    events.close()  # type: ignore[attr-defined]
    assert records_of(train_events(chosen, folder=tmp_path, device="cpu")) == whole


def test_in_bfloat16_a_loss_is_of_float32(own: Own) -> None:
    seen = set()
    task = own.task()

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        seen.add(outputs.dtype)
        assert task.loss is not None
        return task.loss(outputs, targets)

    lane = own.lane(precision="bfloat16")
    device = torch.get_default_device()
    [records] = records_of(
        train_events(lane, task=replace(task, loss=loss), device=device)
    ).values()
    assert records[-1].train_loss == pytest.approx(by_hand(own, lane)[-1][0], rel=0.05)
    assert seen == {torch.float32}


def test_without_a_metric_the_loss_is_the_error() -> None:
    regression = OWN["regression"]
    task = replace(regression.task(), metric=None)
    device = torch.get_default_device()
    [records] = records_of(train_events(regression.lane(), task=task, device=device)).values()
    for record in records:
        assert record.metric == "squared error"
        assert record.test_error == pytest.approx(record.test_loss)
        assert record.train_error == pytest.approx(record.train_loss)


def test_a_loss_alone_leaves_the_error_of_classification() -> None:
    """Label smoothing trains otherwise, and is judged as ever."""
    smooth = partial(F.cross_entropy, reduction="none", label_smoothing=0.1)
    device = torch.get_default_device()
    [plain] = records_of(train_events(config(keep_missed=True), device=device)).values()
    smoothed = replace(toy(), loss=smooth)
    lane = config(keep_missed=True)
    [found] = records_of(train_events(lane, task=smoothed, device=device)).values()
    assert found[0].train_loss != plain[0].train_loss
    for record in found:
        assert record.metric is None
        assert record.test_error is not None
        assert record.test_error * 60 == pytest.approx(round(record.test_error * 60))
        assert record.test_error_top5 is not None
    same = replace(toy(), loss=partial(F.cross_entropy, reduction="none"))
    [again] = records_of(train_events(lane, task=same, device=device)).values()
    assert [r.test_error for r in again] == [r.test_error for r in plain]
    assert again[-1].train_loss == pytest.approx(plain[-1].train_loss)


def test_a_metric_that_is_not_finite_is_a_run_that_diverged() -> None:
    regression = OWN["regression"]
    lane = regression.lane(lr=1e6)
    device = torch.get_default_device()
    [records] = records_of(train_events(lane, task=regression.task(), device=device)).values()
    assert records[-1].diverged
    assert records[-1].test_error is None


def overflown(outputs: Tensor, targets: Tensor) -> Tensor:
    """A metric that overflows once outputs have moved at all."""
    return (outputs - targets).abs().mean(1) * 1e38 * 1e38


def test_a_metric_that_overflows_alone_ends_its_run(tmp_path: Path) -> None:
    regression = OWN["regression"]
    task = replace(regression.task(), metric=overflown)
    cell = regression.lane()
    [records] = records_of(train_events(cell, task=task, device="cpu", folder=tmp_path)).values()
    assert [(r.epoch, r.diverged, r.test_error) for r in records] == [(1, True, None)]
    assert records[0].train_loss is not None


@pytest.mark.cpu("a table is of a CPU")
def test_tables_say_the_metrics_name_and_no_percent(own: Own) -> None:
    [records] = records_of(train_events(own.lane(), device="cpu")).values()
    told = table(run_tables.of_records(records))
    head = told.splitlines()[0]
    for part in ("train", "validation", "test"):
        assert f"{part} {own.metric_name}" in head
    assert "%" not in told
    assert f"{records[-1].test_error:.4g}" in told


@pytest.mark.cpu("solutions are kept from a CPU")
def test_solutions_of_regression_answer_together_by_their_mean(tmp_path: Path) -> None:
    regression = OWN["regression"]
    lane = regression.lane(schedule="restarts,first=1,factor=1")
    list(train_events(lane, device="cpu", folder=tmp_path))
    found = ensemble(lane, folder=tmp_path)
    assert [one.members for one in found] == [1, 2, 3]
    task = numbers()
    answers = []
    for path in RunFiles(tmp_path, lane).solutions():
        model = net()
        model.load_state_dict(torch.load(path))
        answers.append(model(task.test.inputs).detach())
    for one in found:
        together = torch.stack(answers[-one.members :]).mean(0)
        assert one.error == pytest.approx(float((together - task.test.targets).abs().mean()))
        assert one.error_top5 is None


def flat(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.mse_loss(outputs, targets)


def per_column(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).abs().mean(0)


def as_numbers(outputs: Tensor, targets: Tensor) -> list[float]:
    del targets
    return outputs.mean(1).tolist()


def counted(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs > targets).sum(1)


def single(task: Task) -> Task:
    """Return the task with one target per example, of shape [example], not [example, 1]."""
    train, test = (replace(part, targets=part.targets[:, 0]) for part in (task.train, task.test))
    return replace(task, train=train, test=test, models={"net": partial(net, outputs=1)})


WRONG: list[tuple[str, Callable[[Task], Task], dict[str, Any], str]] = [
    (
        "a mean",
        lambda task: replace(task, loss=flat),
        {},
        (
            "`loss` of numbers must return one number per example, or per target of each example, "
            "got shape () for 2 examples with outputs (2, 2) and targets (2, 2). torch's losses do "
            'with reduction="none"'
        ),
    ),
    (
        "a metric over the batch",
        lambda task: replace(task, metric=per_column),
        {},
        "`metric` of numbers must return one number per example",
    ),
    (
        "no tensor",
        lambda task: replace(task, metric=as_numbers),  # type: ignore[arg-type]
        {},
        "got list for 2 examples",
    ),
    (
        "every output against every target",
        single,
        {},
        "got shape (2, 2) for 2 examples with outputs (2, 1) and targets (2,)",
    ),
    (
        "outputs that do not fit",
        lambda task: task,
        {"model": "net,outputs=3"},
        (
            "`loss` of numbers must take what the model returns and the targets, outputs (2, 3) "
            "and targets (2, 2), but raised RuntimeError: The size of tensor a (3) must match"
        ),
    ),
    (
        "a loss in whole numbers",
        lambda task: replace(task, loss=counted),
        {},
        "`loss` of numbers must return floats, got torch.int64",
    ),
    (
        "missed examples",
        lambda task: task,
        {"keep_missed": True},
        "`keep_missed` must be False for numbers, which has its own metric",
    ),
]


@pytest.mark.parametrize(("change", "options", "message"), [one[1:] for one in WRONG])
def test_what_does_not_fit_is_said_before_training(
    change: Callable[[Task], Task], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    lane = OWN["regression"].lane(**options)
    with pytest.raises((ValueError, TypeError)) as caught:
        train_events(lane, task=change(numbers()), folder=tmp_path)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_classes_that_come_first_are_told_where_to_go() -> None:
    segmentation = OWN["segmentation"]
    task = replace(segmentation.task(), loss=None, metric=None)
    with pytest.raises(
        ValueError, match=r"got \(2, 3, 8, 8\)\. Put the classes last: outputs\.mov"
    ):
        train_events(segmentation.lane(), task=task)


def no_generator(width: int = 4) -> nn.Module:
    return nn.Linear(6, width)


def test_a_builder_without_a_generator_is_told_what_to_add() -> None:
    task = replace(numbers(), models={"net": no_generator})
    message = (
        r"The builder of model 'net' of numbers must take `generator=`, .*but takes width\. Add "
        r"`generator=None` to its arguments"
    )
    with pytest.raises(ValueError, match=message):
        train_events(OWN["regression"].lane(), task=task)


def test_a_task_of_numbers_needs_a_loss() -> None:
    task = numbers()
    with pytest.raises(
        ValueError, match=r"`loss` must be given .*loss=weightdecay\.tasks\.squared"
    ):
        replace(task, loss=None)
    with pytest.raises(TypeError, match=r"must be int64 classes, got torch\.float32.*pass a loss"):
        replace(task, loss=None, classes=3)
    with pytest.raises(TypeError, match=r"`metric` of numbers must be a function .*got 'mse'"):
        replace(task, metric="mse")  # type: ignore[arg-type]


def test_another_loss_is_another_task_to_take_up(tmp_path: Path) -> None:
    lane = OWN["regression"].lane()
    list(train_events(lane, task=numbers(), folder=tmp_path, device="cpu"))
    with pytest.raises(
        ValueError, match="must be those that the run was started with, but have changed"
    ):
        list(
            train_events(lane, task=replace(numbers(), metric=None), folder=tmp_path, device="cpu")
        )
    names = [task.fingerprint for task in (numbers(), replace(numbers(), metric=None), toy())]
    assert all(one != other for one, other in itertools.pairwise(names))


@pytest.mark.slow
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_a_loss_of_ones_own_compiles_whole(own: Own, precision: torch.dtype) -> None:
    """As it must for a CUDA graph: no break, the same numbers, the same gradients."""
    device = torch.get_default_device()
    task = own.task().to(device)
    model = own.build().to(device)
    compiled = torch.compile(_measure, backend="aot_eager", fullgraph=True, dynamic=False)
    found = []
    for measure in (compiled, _measure):
        model.zero_grad()
        with torch.autocast(device.type, precision, enabled=precision is not torch.float32):
            loss, error = measure(task.measure, model, task.test.inputs, task.test.targets)
        loss.backward()  # type: ignore[no-untyped-call]
        assert not error.requires_grad
        found.append([loss.detach(), error, *(weight.grad for weight in model.parameters())])
    torch.testing.assert_close(
        *found, rtol=1e-2 if precision is torch.bfloat16 else 1e-5, atol=1e-6
    )
