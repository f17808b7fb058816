"""Finished runs are read the same way from a sweep's folder and from the tables made of it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from weightdecay import records
from weightdecay.records import StoreReader, tables
from weightdecay.results import landscapes

STORES = Path(__file__).parent / "stores" / "2026-11"
sources = pytest.mark.parametrize("name", ["store", "runs.csv", "runs.parquet"])


def needs_pyarrow(name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs it")


@sources
def test_a_folder_and_its_tables_hold_the_same_runs(name: str) -> None:
    needs_pyarrow(name)
    found = records.read(STORES / name)
    assert found.runs == StoreReader(STORES / "store").runs()
    assert not found.left_out


def test_runs_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    runs = StoreReader(STORES / "store").runs()
    assert len(runs) == 4
    tables.export(reversed(runs), tmp_path / "backwards.csv")
    assert records.read(str(tmp_path / "backwards.csv")).runs == runs


def test_what_was_read_is_a_sequence_of_runs() -> None:
    found, runs = records.read(STORES / "runs.csv"), StoreReader(STORES / "store").runs()
    assert (len(found), list(found), found[-1], found[1:3]) == (4, runs, runs[-1], runs[1:3])
    assert landscapes(found) == landscapes(runs)
    assert repr(found) == "<FinishedRuns: 4 runs, 0 repeats, 0 left out>"


def test_runs_that_were_trained_again_are_told_apart() -> None:
    [again] = records.read(STORES / "store").repeats
    assert again in StoreReader(STORES / "store").runs()


def test_the_tables_below_a_folder_are_one_data_set(tmp_path: Path) -> None:
    """A run that is in two of them counts once, and is a repeat if it came out otherwise."""
    pytest.importorskip("pyarrow", reason="Parquet needs it")
    runs = StoreReader(STORES / "store").runs()
    again = next(at for at, run in enumerate(runs) if len(run.records) > 1)
    other = replace(runs[again], records=runs[again].records[:-1])
    (tmp_path / "deep" / "er").mkdir(parents=True)
    tables.export(runs, tmp_path / "deep" / "a.parquet")
    tables.export([runs[0 if again else 1], other], tmp_path / "deep" / "er" / "b.parquet")
    found = records.read(tmp_path)
    assert [run.config for run in found] == [run.config for run in runs]
    assert len(found.repeats) == 1
    assert len(found.repeats[0].records) != len(found[again].records)


def test_what_cannot_be_used_is_left_out_and_told(tmp_path: Path) -> None:
    shutil.copytree(STORES / "store", tmp_path / "store")
    log = tmp_path / "store" / "log" / "000001.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    [first, *_] = [n for n, line in enumerate(lines) if line.startswith(b'{"result"')]
    lines[first] = lines[first].replace(b'"epoch": [', b'"epoch": [7')
    log.write_bytes(b"".join(lines))
    found = records.read(tmp_path / "store")
    assert len(found.runs) == 3
    [told] = found.left_out
    assert told.startswith(f"Line {first + 1} of 000001.jsonl is left out: ")


@sources
def test_landscapes_are_made_of_any_source(name: str) -> None:
    needs_pyarrow(name)
    assert landscapes(STORES / name) == landscapes(StoreReader(STORES / "store").runs())
    assert landscapes(str(STORES / name))


def test_landscapes_warn_of_what_was_left_out(tmp_path: Path) -> None:
    shutil.copytree(STORES / "store", tmp_path / "store")
    with (tmp_path / "store" / "log" / "000001.jsonl").open("a") as log:
        log.write("torn")
    with pytest.warns(
        RuntimeWarning, match="The last line of 000001.jsonl is incomplete and is left out"
    ):
        landscapes(tmp_path / "store")


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("missing", FileNotFoundError, "Give a sweep folder, or a .parquet or .csv file"),
        ("missing.csv", FileNotFoundError, "Give a sweep folder, or a .parquet or .csv"),
        ("", FileNotFoundError, "is not a sweep folder: it has no log"),
        ("notes.txt", ValueError, "must end in .csv or .parquet"),
    ],
)
def test_what_is_no_source_is_refused_with_a_cure(
    name: str, error: type[Exception], said: str, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(error, match=said):
        records.read(tmp_path / name)


def test_runs_of_a_table_that_were_trained_by_other_semantics_are_left_out_and_told(
    tmp_path: Path,
) -> None:
    """Their names are not those that this version gives their configurations."""
    old, *others = StoreReader(STORES / "store").runs()
    records_then = tuple(replace(record, run="0" * 20) for record in old.records)
    tables.export([replace(old, records=records_then), *others], tmp_path / "runs.csv")
    found = records.read(tmp_path / "runs.csv")
    assert found.runs == others
    [told] = found.left_out
    assert told.startswith("1 result left out: these cells were trained by a version of weight")
