"""What a run leaves beside its errors: what was applied, where it was trained, what it missed."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toys import config, records_of, toy
from weightdecay.optim.rates import Applied
from weightdecay.optim.scheduled import ScheduledOptimizer
from weightdecay.records import Event, Progress, Record, Started, package, unpacked
from weightdecay.runs import pack, train_events
from weightdecay.runs.build import schedule_of
from weightdecay.runs.checkpoints import RunFiles
from weightdecay.runs.environment import environment
from weightdecay.tasks.models import MLP

pytestmark = pytest.mark.cpu(
    "a resumed run is the same to the bit on a CPU; test_captured.py trains on a GPU"
)
CPU = torch.device("cpu")


def trained(configs: Any, **options: Any) -> dict[str, list[Record]]:
    return records_of(train_events(configs, device="cpu", **options))


def test_a_record_says_what_was_applied_and_how_long_the_run_and_its_cycle_are() -> None:
    lane = config(schedule="restarts,first=1,factor=2,warmup=1", epochs=4)
    [found] = trained(lane).values()
    schedule = schedule_of(lane, 9)
    for record in found:
        last = record.updates - 1
        assert record.budget == 36
        length = schedule.cycle(last).length
        assert length is not None
        assert record.cycle_updates == length
        assert record.lr == pytest.approx(0.02 * schedule(last), rel=1e-12)
        decay = 0.1 / math.sqrt(length)
        assert record.decay == pytest.approx(decay * schedule(last), rel=1e-12)


@pytest.mark.parametrize("model", ["mlp", "dropping"])
def test_a_run_whose_schedule_is_frozen_fails_and_leaves_no_record(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read back is compared with the schedule, whatever made the update."""
    frozen = Applied(0, 0.02, 0.1 / math.sqrt(27), 0.0)
    monkeypatch.setattr(ScheduledOptimizer, "applied", lambda opt: [frozen] * len(opt.param_groups))
    events = train_events([config(model=model, seed=seed) for seed in (1, 2)], device="cpu")
    found: list[Event] = []
    with pytest.raises(RuntimeError, match=r"Update 8 of adamw .* the last one made was update 0"):
        found.extend(events)
    assert not records_of(found)


def test_a_run_says_where_it_is_trained_before_its_records(tmp_path: Path) -> None:
    events = list(train_events(config(), folder=tmp_path, device="cpu"))
    [started] = [event for event in events if isinstance(event, Started)]
    assert events.index(started) < min(n for n, e in enumerate(events) if isinstance(e, Record))
    assert started.run == config().identity
    here = started.environment
    assert here.torch == torch.__version__
    assert here.source == environment(CPU).source
    assert re.fullmatch(r"[0-9a-f]{40}\+?|unknown", here.commit)
    [again] = [
        e for e in train_events(config(), folder=tmp_path, device="cpu") if isinstance(e, Started)
    ]
    assert again == started


def test_a_run_taken_up_in_another_environment_has_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = train_events(config(), folder=tmp_path, device="cpu")
    for event in events:
        if isinstance(event, Progress | Record):
            break
    monkeypatch.setattr(pack, "PROGRESS_EVERY", 0.0)
    for event in events:
        if isinstance(event, Progress):
            events.close()  # type: ignore[attr-defined]
    here = environment(CPU)
    monkeypatch.setattr(pack, "environment", lambda _: replace(here, torch="9.9"))
    [started] = [
        e for e in train_events(config(), folder=tmp_path, device="cpu") if isinstance(e, Started)
    ]
    assert started.environment == replace(here, torch=f"{here.torch} + 9.9")


def test_the_source_is_known_where_git_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    package.commit.cache_clear()
    monkeypatch.setenv("PATH", "")
    assert environment(CPU).commit == "unknown"
    assert re.fullmatch(r"[0-9a-f]{16}", environment(CPU).source)
    package.commit.cache_clear()


@pytest.mark.parametrize("model", ["mlp", "dropping"])
def test_missed_examples_are_those_that_the_error_counts(model: str) -> None:
    lanes = [config(model=model, seed=seed, keep_missed=True) for seed in (1, 2, 3)]
    for found in trained(lanes).values():
        assert [record.missed is None for record in found] == [True, True, False]
        bits = unpacked(str(found[-1].missed))
        assert len(bits) == 60
        assert sum(bits) / 60 == pytest.approx(found[-1].test_error, abs=1e-12)


def test_which_examples_were_missed_is_what_the_solution_misses(tmp_path: Path) -> None:
    lane = config(keep_missed=True)
    [found] = trained(lane, folder=tmp_path).values()
    [solution] = RunFiles(tmp_path, lane).solutions()
    model = MLP(12, 8, width=8, generator=torch.Generator())
    model.load_state_dict(torch.load(solution))
    test = toy().test
    with torch.no_grad():
        wrong = model.eval()(toy().prepare(test.inputs, None)).argmax(1) != test.targets
    assert unpacked(str(found[-1].missed)) == wrong.tolist()


def test_a_run_that_went_wrong_is_not_taken_up_from_its_own_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint in the middle of an epoch is checked as its end is."""
    real = ScheduledOptimizer.applied

    def frozen(opt: ScheduledOptimizer) -> list[Applied | None]:
        return [used and used._replace(lr=0.02) for used in real(opt)]

    monkeypatch.setattr(pack, "CHECKPOINT_EVERY", 0.0)
    lane = config(epochs=1)
    with monkeypatch.context() as patch:
        patch.setattr(ScheduledOptimizer, "applied", frozen)
        with pytest.raises(RuntimeError, match="The run is wrong from there on"):
            list(train_events(lane, folder=tmp_path, device="cpu"))
    kept = [path.name for path in RunFiles(tmp_path, lane).checkpoints()]
    assert kept in ([], ["checkpoint-000000000001.pt"])  # η = 1 until then, as it should be
    assert trained(lane, folder=tmp_path) == trained(lane)


def test_missed_examples_are_refused_over_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(ValueError, match="`keep_missed` must be False with several processes"):
        train_events(config(keep_missed=True), device="cpu")
