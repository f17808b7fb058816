"""Lanes in a CUDA graph: what they would be one after the other, but for rounding."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.toys import config, notices_of, records_of, toy
from weightdecay.records import Record, RunConfig
from weightdecay.runs import captured as captured_module
from weightdecay.runs import train_events
from weightdecay.runs.captured import Captured, Fitting, fitting
from weightdecay.runs.lanes import Lanes
from weightdecay.runs.separate import Separate
from weightdecay.tasks import Builder, Task, split
from weightdecay.tasks.models import MLP, Noisy

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's compiler about itself
]
CUDA = torch.device("cuda")


class Shaky(Noisy):
    """A network that draws from its own generator."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__(generator)
        self.body = MLP(12, 8, width=8, generator=generator)

    def draw(self, inputs: Tensor) -> Tensor:
        if not self.training:
            return torch.ones_like(inputs)
        return 2 * self.uniform(*inputs.shape, device=inputs.device)

    def compute(self, inputs: Tensor, noise: Tensor) -> Tensor:
        outputs: Tensor = self.body(inputs * noise)
        return outputs


@pytest.fixture(autouse=True)
def on_the_host() -> Iterator[None]:
    """Make data and first weights where users make them."""
    with torch.device("cpu"):
        yield


def task() -> Task:
    whole = toy()
    models: dict[str, Builder] = {**whole.models, "shaky": Shaky}
    return Task("toy", whole.train, whole.test, 8, models, whole.prepare)


def lanes_of(kind: type[Lanes], configs: list[RunConfig]) -> Any:
    return kind(configs, split(task(), validation=None, data=None).to(CUDA), CUDA)


def some(model: str = "mlp", **changes: Any) -> list[RunConfig]:
    changes = {"model": model, **changes}
    return [
        config(**changes, seed=1),
        config(**{"schedule": "restarts,first=1", **changes}, seed=2, algorithm="sgdw"),
        config(**changes, seed=3, algorithm="adam", l2=1e-3),
    ]


def test_captured_lanes_are_those_trained_one_after_the_other() -> None:
    captured, separate = (lanes_of(kind, some()) for kind in (Captured, Separate))
    for pieces in ((2, 7), (9,), (1, 1, 7)):
        for updates in pieces:
            captured.advance(updates)
            separate.advance(updates)
        assert captured.updates == separate.updates
        for one, other in zip(captured.gathered(), separate.gathered(), strict=True):
            assert one == pytest.approx(other, rel=1e-3)
        for lane in range(3):
            assert captured.rates(lane) == separate.rates(lane)
            assert captured.weight_norm(lane) == pytest.approx(separate.weight_norm(lane), rel=1e-3)
        test = captured.task.test
        for one, other in zip(captured.evaluate(test), separate.evaluate(test), strict=True):
            assert one.loss == pytest.approx(other.loss, rel=1e-2)
        captured.begin_epoch()
        separate.begin_epoch()


def test_a_captured_lane_is_taken_up_where_it_was() -> None:
    whole = lanes_of(Captured, some("shaky"))
    whole.advance(6)
    states = [whole.state(lane) for lane in range(3)]
    whole.advance(3)
    again = lanes_of(Captured, some("shaky"))
    again.load(states)
    again.advance(3)
    for one, other in zip(again.gathered(), whole.gathered(), strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    drawn = [lanes.models[0].generator.get_state() for lanes in (whole, again)]
    assert torch.equal(*drawn)


def test_every_replay_draws_anew() -> None:
    lanes = lanes_of(Captured, some("shaky"))
    lanes.advance(6)
    before = lanes.models[0].generator.get_state()
    lanes.advance(1)
    assert not torch.equal(before, lanes.models[0].generator.get_state())


def test_training_on_a_gpu_leaves_records_and_resumes(tmp_path: Path) -> None:
    lost = config(algorithm="sgdw", lr=1e30, weight_decay=0.0)
    chosen = [*some(schedule="restarts,first=1,factor=1")[::2], lost]
    events = train_events(chosen, folder=tmp_path, task=task(), device="cuda")
    first: list[Record] = []
    while len(first) < 4:
        event = next(events)
        first += [event] if isinstance(event, Record) else []
    events.close()  # type: ignore[attr-defined]
    again = list(train_events(chosen, folder=tmp_path, task=task(), device="cuda"))
    found = records_of(again)
    assert any("ompil" in text for text in notices_of(again))
    assert [len(found[one.identity]) for one in chosen] == [3, 3, 1]
    assert found[lost.identity][0].diverged
    for record in first[:3]:
        assert record in found[record.run]


def test_how_many_lanes_fit_is_found_by_trying() -> None:
    parts = split(task(), validation=None, data=None).to(CUDA)
    assert fitting(config(), parts, CUDA) > 100


def test_fifty_packs_in_one_process_are_each_what_they_are_without_graphs() -> None:
    """With streams made in between: torch's come from a pool, and repeat."""
    for number in range(56):
        configs = [
            config(seed=number, lr=0.02 * 2 ** -(number % 5)),
            config(seed=number, algorithm="sgdw", schedule="restarts,first=1"),
            config(seed=number, algorithm="adam", l2=1e-3),
            config(seed=number, algorithm="sgd", l2=1e-3),
        ]
        captured, separate = (lanes_of(kind, configs) for kind in (Captured, Separate))
        for updates in (9, 9, 9):
            captured.advance(updates)
            separate.advance(updates)
            captured.verify()
            for lane in range(4):
                assert captured.rates(lane) == pytest.approx(separate.rates(lane), rel=1e-6)
                norms = captured.weight_norm(lane), separate.weight_norm(lane)
                assert norms[0] == pytest.approx(norms[1], rel=1e-3)
        for _ in range(number % 3):
            torch.cuda.Stream()  # type: ignore[no-untyped-call]


def test_a_pack_whose_schedule_is_frozen_fails_and_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if the first rows were written again before every replay."""
    advance = Captured._advance

    def frozen(lanes: Captured, updates: int) -> None:
        for _ in range(updates):
            advance(lanes, 1)
            for optimizer in lanes.optimizers.values():
                for replays in getattr(optimizer._graph_rates, "_captured", None) or []:  # type: ignore[attr-defined]
                    replays[0]._tables.counts.zero_()

    monkeypatch.setattr(Captured, "_advance", frozen)
    events = train_events(some()[:1], task=task(), device="cuda")
    with pytest.raises(RuntimeError, match="the device counts 0"):
        assert not [event for event in events if isinstance(event, Record)]


def test_a_lane_of_a_kind_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = split(task(), validation=None, data=None).to(CUDA)
    tries: list[RunConfig] = []
    measure = captured_module._memory_of_lane

    def counted(one: RunConfig, *rest: Any) -> int | None:
        tries.append(one)
        return measure(one, *rest)

    monkeypatch.setattr(captured_module, "_memory_of_lane", counted)
    fresh = Fitting()
    for lr in (0.1, 0.2, 0.3):
        assert fresh(config(lr=lr, model="linear"), parts, CUDA) > 100
    assert len(tries) == 1


def test_missed_examples_are_those_that_the_error_counts() -> None:
    lanes = lanes_of(Captured, some())
    lanes.advance(9)
    for _ in range(2):
        for tested in lanes.evaluate(lanes.task.test):
            assert tested.missed.double().mean() == pytest.approx(tested.error, abs=1e-12)


def test_evaluations_in_any_order_change_nothing() -> None:
    """Graphs of one pack share memory, and are replayed in other orders than they were captured."""
    often, seldom = (lanes_of(Captured, some()) for _ in range(2))
    for part in ("test", "choices", "choices", "test", "choices", "test", "test", "choices"):
        often.advance(3)
        often.evaluate(getattr(often.task, part))
        seldom.advance(3)
    for part in ("choices", "test"):
        pairs = zip(
            often.evaluate(getattr(often.task, part)),
            seldom.evaluate(getattr(seldom.task, part)),
            strict=True,
        )
        for one, other in pairs:
            assert one.loss == pytest.approx(other.loss, rel=1e-5)
            assert torch.equal(one.missed, other.missed)
    for lane in range(3):
        norms = often.weight_norm(lane), seldom.weight_norm(lane)
        assert norms[0] == pytest.approx(norms[1], rel=1e-6)
