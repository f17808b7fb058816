"""What was written once loads in every later version: these files are never written anew."""

from pathlib import Path

import pytest

from weightdecay.records import Environment, Run, unpacked
from weightdecay.records.tables import imported
from weightdecay.sweeps import Store
from weightdecay.sweeps.status import store_status

STORES = Path(__file__).parent / "stores"
HERE = Environment(
    device="x86_64 AVX2",
    torch="2.13.0+cpu",
    python="3.11.7",
    version="0.1.0",
    commit="929082277b4bae845a10aaa1df1f4940422f9ee3",
    source="6378103f26ecddb2",
)
#: Of each run: epochs with a record, test errors, updates, N, and whether it diverged.
RUNS = {
    "5744ca3d2d1e7f014985": ([3], [46 / 60], [30], [30], False),
    "8914063a301098e8ef1c": ([1, 2, 3], [43 / 60, 44 / 60, 44 / 60], [9, 18, 27], [27] * 3, False),
    "9baf8a2f9104b5fac262": ([1], [1.0], [9], [27], True),
    "b4adae620f975ec8d5f8": ([1, 2], [55 / 60, 50 / 60], [9, 18], [9, 9], False),
}


def check(runs: list[Run]) -> None:
    assert {run.config.identity for run in runs} == set(RUNS)
    for run in runs:
        epochs, errors, updates, lengths, diverged = RUNS[run.config.identity]
        assert [record.epoch for record in run.records] == epochs
        assert [record.test_error for record in run.records] == pytest.approx(errors, rel=1e-15)
        assert [record.updates for record in run.records] == updates
        assert [record.cycle_updates for record in run.records] == lengths
        assert {record.budget for record in run.records} == {
            run.config.epochs * updates[0] // epochs[0]
        }
        assert run.diverged is diverged
        assert run.environment == HERE
    [kept] = [run for run in runs if run.config.keep_missed]
    assert kept.last.missed is not None
    assert sum(unpacked(kept.last.missed)) == 50


def test_a_store_of_november_2026_loads() -> None:
    store = Store(STORES / "2026-11" / "store")
    check(store.runs())
    [again] = store.repeats()
    assert again in store.runs()
    standing, failures, damage = store_status(Store(store.folder))
    assert (standing.planned, standing.done, standing.diverged, standing.failed) == (5, 4, 1, 1)
    assert [failure.reason for _, failure in failures] == ["RuntimeError: an example"]
    assert not damage


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_of_november_2026_loads(suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs it")
    runs = imported(STORES / "2026-11" / f"runs.{suffix}")
    check(runs)
    assert runs == Store(STORES / "2026-11" / "store").runs()


def test_a_store_from_before_environments_were_recorded_loads() -> None:
    runs = Store(STORES / "2026-10").runs()
    assert len(runs) == 3
    for run in runs:
        assert run.environment is None
        assert (run.last.budget, run.last.cycle_updates, run.last.missed) == (None, None, None)
        assert run.last.epoch == run.config.epochs
        assert run.last.test_error is not None
        assert 0 < run.last.test_error < 1
        assert run.last.metric is None
