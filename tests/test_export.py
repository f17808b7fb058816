"""Runs written as a table come back as they were, and tables that are damaged do not come back."""

import csv
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay.records import (
    Environment,
    Record,
    Run,
    RunConfig,
    packed,
    table_columns,
    table_files,
)
from weightdecay.records.tables import export, imported

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SUFFIXES = (".csv", ".parquet")
both = pytest.mark.parametrize("suffix", SUFFIXES)

numbers = st.floats(allow_nan=False, allow_infinity=False)
unknown = st.none() | numbers
names = st.sampled_from(["mlp", "mlp,width=8", 'a"b', "two\nlines", "née λ", " spaced "])
configs = st.builds(
    RunConfig,
    task=names.filter(lambda name: "," not in name),
    model=names,
    algorithm=st.just("adamw"),
    lr=st.floats(1e-30, 1e30),
    normalized_decay=st.floats(0, 1e9),
    schedule=st.sampled_from(["cosine", "drops,at=1.5/2.0,drop=0.1"]),
    epochs=st.integers(1, 2**62),
    batch=st.integers(1, 100),
    data=st.none() | st.integers(100, 2**62),
    validation=st.sampled_from([None, 1, 5000, "test"]),
    seed=st.integers(0, 2**32 - 1),
    precision=st.sampled_from(["float32", "bfloat16"]),
) | st.builds(
    RunConfig,
    task=st.just("mnist1d"),
    model=names,
    algorithm=st.sampled_from(["sgd", "adam,betas=0.9/0.98"]),
    lr=st.floats(1e-30, 1e30),
    l2=st.floats(0, 1e9),
    epochs=st.integers(1, 9),
    batch=st.integers(1, 9),
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.just("filled in below"),
    int: st.integers(-(2**63), 2**63 - 1),
    float: numbers,
    float | None: unknown,
    int | None: st.none() | st.integers(0, 2**63 - 1),
    str | None: st.sampled_from([None, packed([True, False, True])]),
    bool: st.booleans(),
}
places = st.none() | st.builds(
    Environment,
    **{
        field.name: st.sampled_from(["x86_64 AVX2", "2.11.0 + 2.13.0", "née λ"])
        for field in fields(Environment)
    },
)
records = st.builds(Record, **{field.name: VALUES[field.type] for field in fields(Record)})


def run_of(config: RunConfig, records: list[Record], place: Environment | None = None) -> Run:
    return Run(config, tuple(replace(record, run=config.identity) for record in records), place)


runs_of = st.lists(
    st.builds(run_of, configs, st.lists(records, min_size=1, max_size=3), places),
    max_size=3,
    unique_by=lambda run: run.config.identity,
)

CONFIG = RunConfig(
    task="mnist1d", model="mlp", algorithm="adamw", lr=0.1, weight_decay=0, epochs=2, batch=8
)
RECORD = Record(
    run=CONFIG.identity,
    epoch=1,
    updates=9,
    train_loss=0.1 + 0.2,
    train_error=1 / 3,
    validation_loss=None,
    validation_error=0.5,
    validation_error_top5=0.0,
    test_loss=5e-324,
    test_error=1e22,
    test_error_top5=0.0,
    lr=0.05,
    decay=0.0,
    weight_norm=None,
    cycle_ended=False,
)
RUN = Run(CONFIG, (RECORD, replace(RECORD, epoch=2, updates=18, cycle_ended=True)))


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"runs{request.param}"


@both
@given(runs=runs_of)
def test_what_is_exported_comes_back_exactly(suffix: str, runs: list[Run]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"runs{suffix}"
        assert export(iter(runs), path) == sum(len(run.records) for run in runs)
        back = imported(path)
    assert back == runs
    assert repr(back) == repr(runs)  # where 0 and -0, 1 and 1.0, True and 1 differ


@both
def test_the_same_runs_are_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    for name in "ab":
        export([RUN], tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def timed(seconds: float) -> Run:
    return replace(RUN, pack=(seconds, 2))


@both
def test_how_long_runs_took_comes_back_if_it_is_asked_for(suffix: str, tmp_path: Path) -> None:
    """Timings differ from sweep to sweep, and without them the same results are the same bytes."""
    path, other = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    unknown = run_of(replace(CONFIG, seed=1), [RECORD])
    runs = [timed(0.1 + 0.2), unknown]
    assert export(runs, path, seconds=True) == 3
    back = imported(path)
    assert back == runs
    assert [run.seconds for run in back] == [0.1 + 0.2, None]
    assert [run.pack for run in back] == [run.pack for run in runs]
    export(runs, path)
    export([timed(7), unknown], other)
    assert path.read_bytes() == other.read_bytes()
    assert [run.seconds for run in imported(path)] == [None, None]


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (",1.5,2", ",1.5,", "must have all of seconds, timed_epochs for a run, or none, got secon"),
        (",1.5,2", ",nan,2", "must have finite `seconds` of at least 0, got nan"),
        (",1.5,2", ",-1.5,2", "must have finite `seconds` of at least 0, got -1.5"),
        (",1.5,2", ",inf,2", "must have finite `seconds` of at least 0, got inf"),
        (",1.5,2", ",1.5,0", "must have `timed_epochs` of at least 1, got 0"),
        (",1.5,2", ",long,2", "line 2: `seconds` must be a number, got 'long'"),
    ],
)
def test_timings_that_cannot_be_are_refused(tmp_path: Path, was: str, now: str, said: str) -> None:
    path = tmp_path / "runs.csv"
    export([Run(CONFIG, (RECORD,), pack=(1.5, 2))], path, seconds=True)
    path.write_text(path.read_text().replace(was, now))
    with pytest.raises(ValueError, match=said):
        imported(path)


def test_a_run_of_two_timings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    export([timed(1.5)], path, seconds=True)
    path.write_text(path.read_text().replace(",1.5,2", ",1.6,2", 1))
    with pytest.raises(ValueError, match="environment and timing per run, got two for"):
        imported(path)


def test_more_rows_than_are_held_at_a_time_are_all_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_files, "_BATCH", 3)
    monkeypatch.setattr(table_files, "_GROUP", 2)
    configs = [replace(CONFIG, seed=seed) for seed in range(4)]
    runs = [run_of(config, list(RUN.records)) for config in configs]
    assert export(runs, path) == 8
    assert imported(path) == runs


def test_a_csv_file_says_what_it_holds_in_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    export([Run(replace(CONFIG, validation="test"), RUN.records)], path)
    text = path.read_bytes().decode()
    assert "\r" not in text
    header, first, _ = csv.reader(io.StringIO(text, newline=""))
    row = dict(zip(header, first, strict=True))
    config = [field.name for field in fields(RunConfig)]
    assert header[: len(config)] == config
    columns = len(config) + len(fields(Record)) + len(fields(Environment))
    assert len(header) == len(set(header)) == columns
    assert (row["lr"], row["epoch_lr"], row["epoch"]) == ("0.1", "0.05", "1")
    assert (row["validation"], row["data"], row["weight_norm"]) == ("test", "", "")
    assert (row["train_loss"], row["cycle_ended"]) == ("0.30000000000000004", "false")


def test_a_columns_type_does_not_depend_on_what_is_in_it(tmp_path: Path) -> None:
    """All of one column may be unknown, and of another whole."""
    path = tmp_path / "runs.parquet"
    schemas = []
    for validation in (None, 100, "test"):
        export([Run(replace(CONFIG, validation=validation), RUN.records)], path)
        schemas.append(parquet.read_schema(path))
    export([], path)
    assert all(schema == parquet.read_schema(path) for schema in schemas)
    types = dict(zip(schemas[0].names, map(str, schemas[0].types), strict=True))
    assert (types["validation"], types["data"], types["l2"]) == ("string", "int64", "double")
    assert (types["weight_norm"], types["cycle_ended"]) == ("double", "bool")


def failing() -> Iterator[Run]:
    yield RUN
    raise KeyboardInterrupt


def test_an_export_that_fails_leaves_what_was_there(path: Path) -> None:
    export([RUN], path)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        export(failing(), path)
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == [path.name]


OTHER = replace(RECORD, run="another")


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([Run(CONFIG, ())], "must have records, all under one name, to be exported, got none for"),
        ([Run(CONFIG, (RECORD, OTHER))], "all under one name, .*another"),
        ([RUN, RUN], f"must be exported once, got {CONFIG.identity} twice"),
        ([Run(CONFIG, (replace(RECORD, epoch=None),))], "`epoch` must be a whole number, got None"),  # type: ignore[arg-type]
    ],
)
def test_what_would_not_come_back_is_not_exported(path: Path, runs: list[Run], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        export(runs, path)
    assert not path.exists()


def test_a_carriage_return_is_kept_or_refused(tmp_path: Path) -> None:
    run = run_of(replace(CONFIG, model="a\rb"), [RECORD])
    export([run], tmp_path / "runs.parquet")
    assert imported(tmp_path / "runs.parquet") == [run]
    with pytest.raises(ValueError, match=r"must not contain a carriage return, got 'a\\rb'"):
        export([run], tmp_path / "runs.csv")


def test_a_name_says_the_form(tmp_path: Path) -> None:
    for name in ("runs.json", "runs", "runs.csv.gz"):
        with pytest.raises(ValueError, match=f"must end in .csv or .parquet, got '{name}'"):
            export([RUN], tmp_path / name)
        with pytest.raises(ValueError, match=r"must end in .csv or .parquet"):
            imported(tmp_path / name)


def test_without_pyarrow_the_cure_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "runs.parquet"
    with pytest.raises(ImportError, match=r"pip install 'weightdecay\[parquet\]'"):
        export([RUN], path)
    with pytest.raises(ImportError, match=r"pip install 'weightdecay\[parquet\]'"):
        imported(path)
    assert export([RUN], tmp_path / "runs.csv") == 2


def test_a_table_from_before_a_column_was_added_still_loads(path: Path) -> None:
    """What was added later is then unknown."""
    place = Environment(
        **{field.name: "x" for field in fields(Environment)},
    )
    later = replace(RECORD, budget=18, cycle_updates=18, missed=packed([True]))
    export([Run(CONFIG, (later,), place, (1.5, 2))], path, seconds=True)
    assert imported(path) == [Run(CONFIG, (later,), place)]
    added = [*(field.name for field in fields(Environment)), *table_columns._ADDED]
    if path.suffix == ".parquet":
        parquet.write_table(parquet.read_table(path).drop_columns(sorted(set(added))), path)
    else:
        header, *rows = csv.reader(io.StringIO(path.read_text()))
        kept = [n for n, name in enumerate(header) if name not in added]
        lines = [",".join(row[n] for n in kept) for row in (header, *rows)]
        path.write_text("\n".join(lines) + "\n")
    [back] = imported(path)
    assert (back, back.seconds) == (Run(CONFIG, (RECORD,)), None)


def test_rows_may_lie_apart(tmp_path: Path) -> None:
    """Someone sorted them by epoch."""
    path = tmp_path / "runs.csv"
    runs = [run_of(replace(CONFIG, seed=seed), list(RUN.records)) for seed in range(2)]
    export(runs, path)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *rows[::2], *rows[1::2], ""]))
    assert imported(path) == runs


DAMAGE: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda text: "", "line 0: .*got no task, no model"),
    "renamed": (
        lambda text: text.replace("seed", "sead", 1),
        "line 1: .*got no seed, unknown sead",
    ),
    "moved": (
        lambda text: text.replace("task,model", "model,task", 1),
        "line 1: .*in this order: task, model",
    ),
    "cut": (lambda text: text[: text.rindex(",")], "line 3: A row must have 42 values, got 41"),
    "no number": (lambda text: text.replace("0.05", "fast", 1), "line 2: `epoch_lr` must be a num"),
    "no whole": (lambda text: text.replace(",9,", ",9.5,", 1), "line 2: `updates` must be a who"),
    "no truth": (lambda text: text.replace("true", "yes", 1), "line 3: `cycle_ended` must be true"),
    "unclosed": (lambda text: text + '"', "line 4: unexpected end of data"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_csv_file_is_refused_by_line(tmp_path: Path, case: str) -> None:
    damage, said = DAMAGE[case]
    path = tmp_path / "runs.csv"
    export([RUN], path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=rf"runs\.csv, {said}") as caught:
        imported(path)
    assert str(caught.value).endswith("Export it again.")


def test_a_run_of_two_configurations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    export([RUN], path)
    text = path.read_text()
    path.write_text(text.replace(",mlp,", ",convnet,", 1))
    with pytest.raises(ValueError, match=f"one configuration, .*, got two for {CONFIG.identity}"):
        imported(path)
    path.write_text(text.replace(",adamw,", ",lion,"))
    with pytest.raises(ValueError, match=r"runs\.csv: `algorithm` must be one of"):
        imported(path)


def test_a_damaged_parquet_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    export([RUN], path)
    table = parquet.read_table(path)
    parquet.write_table(table.drop_columns(["seed"]), path)
    with pytest.raises(ValueError, match=r"runs\.parquet: .*got no seed \(int64\)\. Export it"):
        imported(path)
    texts = table.set_column(0, "task", pyarrow.array([1, 2]))
    parquet.write_table(texts, path)
    with pytest.raises(ValueError, match=r"no task \(string\), unknown task \(int64 or null\)"):
        imported(path)
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match=r"runs\.parquet: .*Export it again"):
        imported(path)


def test_a_file_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=path.name):
        imported(path)
