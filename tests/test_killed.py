"""A run killed at any instant ends with the records and weights it would have ended with."""

import errno
import hashlib
import io
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toys import config, notices_of, records_of
from tests.trainee import lanes
from weightdecay.records import Record, RunConfig
from weightdecay.runs import pack, train_events
from weightdecay.runs.checkpoints import RunFiles, read, write
from weightdecay.runs.lanes import Lanes


def start(folder: Path, model: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "tests.trainee", str(folder), model])


def left(folder: Path, configs: list[RunConfig]) -> list[dict[str, Any]]:
    """Return what runs left: records, and the weights of every solution."""
    records = json.loads((folder / "found.json").read_text())
    return [
        {"records": records[one.identity]}
        | {path.name: torch.load(path) for path in RunFiles(folder, one).solutions()}
        for one in configs
    ]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mlp", "dropping"])
def test_killed_at_random_instants_a_pack_ends_the_same(model: str, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    assert start(whole, model).wait() == 0
    moment = random.Random()  # new ones every time: the law is for all of them
    kills = 0
    while kills < 6:
        process = start(killed, model)
        while process.poll() is None and not list(killed.glob("checkpoints/*/checkpoint-*.pt")):
            time.sleep(0.01)  # until it has something to lose
        time.sleep(moment.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
    assert kills > 0
    assert start(killed, model).wait() == 0
    assert all(map(same, left(whole, lanes(model)), left(killed, lanes(model))))
    assert not list(killed.glob("*/*/.*.unfinished"))


class Killed(BaseException):
    """What a kill is to a process that lives on to tell."""


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save at every chance."""
    monkeypatch.setattr(pack, "CHECKPOINT_EVERY", -1.0)
    monkeypatch.setattr(pack, "PROGRESS_EVERY", -1.0)


PAIR = [
    config(schedule="restarts,first=1.5,factor=1", seed=4),
    config(algorithm="torch.optim:NAdam", weight_decay=1e-3, schedule="drops,at=1.5"),
]


def interrupted(configs: list[RunConfig], folder: Path, updates: Iterator[int]) -> None:
    """Train with a kill after each so many updates."""
    whole = Lanes._examples
    for limit in updates:
        made = iter(range(limit))

        def until(self: Lanes, made: Iterator[int] = made) -> Any:
            if next(made, None) is None:
                raise Killed
            return whole(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Lanes, "_examples", until)
            try:
                list(train_events(configs, folder=folder, device="cpu"))
            except Killed:
                continue
            return


@pytest.mark.usefixtures("eager")
@pytest.mark.slow
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.integers(1, 26), max_size=4), st.sampled_from([PAIR, PAIR[:1]]))
def test_any_moment_is_as_good_as_another(
    tmp_path_factory: pytest.TempPathFactory, moments: list[int], configs: list[RunConfig]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    interrupted(configs, folder, iter(moments))
    resumed = records_of(train_events(configs, folder=folder, device="cpu"))
    assert resumed == records_of(train_events(configs, device="cpu"))


@pytest.mark.usefixtures("eager")
def test_lanes_that_were_saved_at_different_updates_get_in_step_again(tmp_path: Path) -> None:
    interrupted(PAIR, tmp_path, iter([14]))
    newest, older = RunFiles(tmp_path, PAIR[0]).checkpoints()
    newest.unlink()
    assert (RunFiles(tmp_path, PAIR[1]).folder / older.name).exists()
    events = list(train_events(PAIR, folder=tmp_path, device="cpu"))
    assert notices_of(events)[0].startswith("Resumed at update")
    assert not any("Resumed" in text for text in notices_of(events)[1:])
    assert records_of(events) == records_of(train_events(PAIR, device="cpu"))


@pytest.mark.usefixtures("eager")
def test_a_lane_goes_on_alone_to_the_same_bits(tmp_path: Path) -> None:
    """A sweep may take up one cell of a pack without the others."""
    interrupted(PAIR, tmp_path, iter([14]))
    alone = records_of(train_events(PAIR[0], folder=tmp_path, device="cpu"))
    assert alone[PAIR[0].identity] == records_of(train_events(PAIR, device="cpu"))[PAIR[0].identity]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(bytes(body))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


class Evil:
    """Something that runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("touched",)


def _poison(path: Path) -> None:
    stream = io.BytesIO()
    torch.save({"updates": 9, "model": Evil()}, stream, pickle_module=pickle)
    head = b"weightdecay 1 sha256 " + hashlib.sha256(stream.getvalue()).hexdigest().encode()
    path.write_bytes(head + b"\n" + stream.getvalue())


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", [_cut, _flip, _empty, _poison])
def test_where_a_checkpoint_is_damaged_the_one_before_it_serves(
    damage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lane = config()
    expected = records_of(train_events(lane, device="cpu"))
    for count in (1, 2):
        folder = tmp_path / str(count)
        interrupted([lane], folder, iter([14]))
        for path in RunFiles(folder, lane).checkpoints()[:count]:
            damage(path)
        events = list(train_events(lane, folder=folder, device="cpu"))
        *unused, last = notices_of(events)
        newest = rf"Run {lane.identity}: checkpoint-000000000014\.pt (is damaged|must hold only)"
        assert re.match(newest, unused[0])
        assert all(said.endswith("This checkpoint is not used.") for said in unused[:count])
        assert (len(unused), last) == [
            (1, "Resumed at update 13 of 27."),
            (2, f"Run {lane.identity} has no other checkpoint and starts from the beginning."),
        ][count - 1]
        assert records_of(events) == expected
    assert not Path("touched").exists()


@pytest.mark.usefixtures("eager")
def test_each_damaged_checkpoint_of_lanes_that_were_together_is_told_once(tmp_path: Path) -> None:
    pair = [config(seed=seed) for seed in (1, 2)]
    interrupted(pair, tmp_path, iter([14]))
    for lane in pair:
        _cut(RunFiles(tmp_path, lane).checkpoints()[0])
    _cut(RunFiles(tmp_path, pair[1]).checkpoints()[1])
    said = notices_of(train_events(pair, folder=tmp_path, device="cpu"))
    unused = [text.partition(":")[0] for text in said if text.endswith("is not used.")]
    assert sorted(unused) == sorted(f"Run {pair[n].identity}" for n in (0, 1, 1))
    assert sum("starts from the beginning" in text for text in said) == 1


@pytest.mark.usefixtures("eager")
def test_damaged_checkpoints_do_not_crowd_out_sound_ones(tmp_path: Path) -> None:
    lane = config()
    interrupted([lane], tmp_path, iter([14]))
    for path in RunFiles(tmp_path, lane).checkpoints():
        _cut(path)
    interrupted([lane], tmp_path, iter([6]))
    assert [read(path)["updates"] for path in RunFiles(tmp_path, lane).checkpoints()] == [6, 5]


@pytest.mark.usefixtures("eager")
def test_lanes_that_began_apart_and_together_each_go_on_as_they_began(tmp_path: Path) -> None:
    trio = [config(seed=seed) for seed in (1, 2, 3)]
    interrupted(trio[:1], tmp_path, iter([14]))
    interrupted(trio[1:], tmp_path, iter([14]))
    expected = records_of(train_events(trio[0], device="cpu")) | records_of(
        train_events(trio[1:], device="cpu")
    )
    assert records_of(train_events(trio, folder=tmp_path, device="cpu")) == expected


@pytest.mark.usefixtures("eager")
def test_a_full_disk_is_said_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = os.fsync, iter([True, True, True])

    def full(handle: int) -> None:
        if next(failures, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    events = list(train_events(config(), folder=tmp_path, device="cpu"))
    said = notices_of(events)
    assert len(said) == 3
    assert "No space left on device" in said[0]
    assert records_of(events) == records_of(train_events(config(), device="cpu"))
    assert not list(tmp_path.glob("*/*/.*.unfinished"))


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path: Path) -> None:
    first = train_events(config(), folder=tmp_path, device="cpu")
    assert isinstance(next(event for event in first if isinstance(event, Record)), Record)
    with pytest.raises(RuntimeError, match="must be trained by one process at a time"):
        list(train_events(config(), folder=tmp_path, device="cpu"))
    list(train_events(config(seed=5), folder=tmp_path, device="cpu"))
    first.close()  # type: ignore[attr-defined]
    list(train_events(config(), folder=tmp_path, device="cpu"))


def test_a_finished_run_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = records_of(train_events(config(), folder=tmp_path, device="cpu"))
    monkeypatch.delattr(Lanes, "_examples")
    assert records_of(train_events(config(), folder=tmp_path, device="cpu")) == expected


def test_a_diverged_run_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = config(algorithm="sgdw", lr=1e30, weight_decay=0.0)
    expected = records_of(train_events([lost, config()], folder=tmp_path, device="cpu"))
    monkeypatch.delattr(Lanes, "_examples")
    assert records_of(train_events([lost, config()], folder=tmp_path, device="cpu")) == expected


def test_a_file_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "solution.pt"
    write(path, {"a": torch.ones(3)})

    def dies(handle: int) -> None:
        raise Killed

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(Killed):
        write(path, {"a": torch.zeros(3)})
    assert torch.equal(read(path)["a"], torch.ones(3, device="cpu"))
    assert [file.name for file in tmp_path.iterdir()] == ["solution.pt"]
