"""A thousand workers and a hundred thousand cells, made small: what holds must hold at any size."""

import gc
import json
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulated import Law, Simulated, cells
from weightdecay.cli import main
from weightdecay.records import Run, RunConfig, table_files
from weightdecay.records.codec import Cost
from weightdecay.records.ledger import Ledger
from weightdecay.sweeps import merging, sweep_events
from weightdecay.sweeps.events import CellFailed, SweepEvent
from weightdecay.sweeps.status import Status, Tally
from weightdecay.sweeps.store import Store

HERE = ("000001.jsonl", 0)


def swept(configs: list[RunConfig], folder: Path, engine: Simulated) -> list[SweepEvent]:
    with engine.clock():
        return list(sweep_events(configs, folder=folder, engine=engine))


def kept(configs: list[RunConfig], folder: Path, law: Law) -> list[Run]:
    """Write a sweep that is done, and return its runs."""
    runs = [law.run(config) for config in configs]
    store = Store(folder)
    store.ask_for({config.identity: config for config in configs})
    with store.writing(workers=1) as writer:
        writer.results((run, Cost(run.config.identity, 1.0, 27, 1)) for run in runs)
    return runs


@pytest.mark.slow
def test_of_many_cells_on_many_workers_each_is_recorded_once_as_it_was_found(
    tmp_path: Path,
) -> None:
    law = Law(seconds=1, failing=0.005, diverging=0.1, dying=0.05, seed=3)
    configs, engine = cells(2000, epochs=3), Simulated(50, 16, law)
    events = swept(configs, tmp_path, engine)
    bad = {config.identity for config in configs if law.fails(config)}
    assert bad
    assert engine.measured.deaths
    assert {event.config.identity for event in events if isinstance(event, CellFailed)} == bad
    found = {run.config.identity: run for run in Store(tmp_path).runs()}
    assert found == {c.identity: law.run(c) for c in configs if c.identity not in bad}
    [log] = tmp_path.glob("log/*.jsonl")
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    ends = Counter(
        value["run"] for line in lines for kind, value in line.items() if kind not in _OTHER
    )
    assert set(ends.values()) == {1}
    last = events[-1]
    assert isinstance(last, Status)
    assert (last.done, last.failed, last.left) == (2000 - len(bad), len(bad), 0)
    assert last.diverged == sum(run.diverged for run in found.values()) > 0


_OTHER = ("writer", "timing", "crc32")


def test_a_worker_that_is_free_does_not_wait_while_there_is_something_to_do(
    tmp_path: Path,
) -> None:
    silent = Law(seconds=5, spread=0, failing=0, dying=0, diverging=0, progress=1e9)
    engine = Simulated(50, 4, silent)  # all are free at once, and then nobody says anything
    swept(cells(1000, epochs=1), tmp_path, engine)
    ideal = 1000 * silent.seconds / engine.workers
    assert ideal < engine.measured.simulated < ideal + engine.measured.busy + 1e-6


@pytest.mark.slow
def test_finished_cells_take_hardly_any_memory(tmp_path: Path) -> None:
    engine = Simulated(4, 8, Law(seconds=0.1, failing=0, dying=0))
    at: dict[int, int] = {}
    tracemalloc.start()
    try:
        with engine.clock():
            for event in sweep_events(cells(480), folder=tmp_path, engine=engine):
                if isinstance(event, Status) and (100 < event.done < 200 or not event.left):
                    gc.collect()
                    at[event.done] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    early, late = min(at), max(at)
    assert late - early > 250
    assert (at[late] - at[early]) / (late - early) < 600  # bytes; its records would be thousands


def peak_of(command: Sequence[str]) -> int:
    """Return the most bytes that a command has at a time, beyond what there was before."""
    gc.collect()
    tracemalloc.start()
    try:
        assert main(command) == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "to"), [("export", "table.csv"), ("export", "table.parquet"), ("merge", "merged")]
)
def test_runs_are_exported_and_merged_without_being_all_in_memory(
    command: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if to.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs it")
    monkeypatch.setattr(table_files, "_BATCH", 500)
    monkeypatch.setattr(merging, "_BATCH", 20)
    peaks = {}
    for number in (40, 100, 400):  # the first pays for imports
        folder, out = tmp_path / f"{number}", tmp_path / f"{number}-{to}"
        kept(cells(number), folder, Law(failing=0))
        words = [str(out), str(folder)] if command == "merge" else [str(folder), str(out)]
        peaks[number] = peak_of([command, *words])
    grown = (peaks[400] - peaks[100]) / 300
    assert grown < 1500  # bytes a cell; its line alone has six thousand


_ASK = """
import sys
from weightdecay.sweeps.status import store_status
from weightdecay.sweeps.store import Store
standing, failures, damage = store_status(Store(sys.argv[1]))
print(standing.planned, standing.done, standing.diverged, standing.failed, damage)
assert "torch" not in sys.modules
"""


@pytest.mark.slow
def test_ten_thousand_cells_are_counted_without_torch(tmp_path: Path) -> None:
    runs = kept(cells(10_000, epochs=2), tmp_path, Law(diverging=0.5))
    answer = subprocess.run(
        [sys.executable, "-c", _ASK, str(tmp_path)], check=True, capture_output=True, text=True
    )
    diverged = sum(run.diverged for run in runs)
    assert answer.stdout.split() == ["10000", "10000", str(diverged), "0", "[]"]
    assert 0 < diverged < 10_000


@pytest.mark.parametrize("seed", range(5))
def test_counting_as_the_log_grows_comes_to_the_same_as_counting_it_all(seed: int) -> None:
    draw = random.Random(seed)
    long, short = cells(30, epochs=27), cells(30, epochs=3)
    plan = {config.identity: config for config in long + short}
    strangers = [config.identity for config in cells(10, epochs=5)]
    ledger, tally = Ledger(), Tally(plan)
    for _ in range(300):
        run = draw.choice([*plan, *strangers])
        kind = draw.choice(["result", "timing", "failure"])
        said: dict[str, dict[str, Any]] = {
            "result": {"records": {"diverged": [draw.random() < 0.5]}},
            "timing": {"seconds": draw.random(), "epochs": 3},
            "failure": {"reason": "", "trace": ""},
        }
        if kind != "timing" or run in ledger.finished:  # the result comes first
            ledger.note(kind, {"run": run, **said[kind]}, HERE)
        counted = tally.status(ledger, running=2, workers=3)
        anew = Tally(plan).status(ledger, running=2, workers=3)
        assert counted.seconds_left == pytest.approx(anew.seconds_left)
        done = [run for run in plan if run in ledger.finished]
        assert counted.done == anew.done == len(done)
        assert counted.diverged == anew.diverged == sum(ledger.finished[run] for run in done)
        assert counted.failed == anew.failed == sum(run in ledger.failures for run in plan)
        assert (counted.planned, counted.running, counted.workers) == (60, 2, 3)


def test_what_is_left_is_estimated_by_what_cells_like_it_have_cost() -> None:
    quick, slow = cells(4, epochs=10), cells(4, epochs=27)
    slow = [RunConfig(**config.as_dict() | {"batch": 32}) for config in slow]
    ledger = Ledger()
    tally = Tally({config.identity: config for config in quick + slow})
    assert tally.status(ledger, running=0, workers=2).seconds_left is None
    for config, seconds in ((quick[0], 10.0), (slow[0], 270.0)):
        said = {"run": config.identity, "records": {"diverged": [False]}}
        ledger.note("result", said, HERE)
        spent = {"seconds": seconds, "epochs": config.epochs}
        ledger.note("timing", {"run": config.identity, **spent}, HERE)
    ledger.note("failure", {"run": quick[1].identity, "reason": ""}, HERE)
    left = 2 * 10 * 1.0 + 3 * 27 * 10.0
    assert tally.status(ledger, running=0, workers=2).seconds_left == pytest.approx(left / 2)
