"""A grid holds every combination once, in one order; a study is the same in a file."""

import math
import random
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightdecay.records import RunConfig
from weightdecay.sweeps.grids import LARGEST, grid, read_study

BASE: dict[str, Any] = {
    "task": "mnist1d",
    "model": "mlp",
    "algorithm": "adamw",
    "lr": 0.01,
    "weight_decay": 0.001,
    "epochs": 27,
    "batch": 64,
}
AXES: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["mlp", "mlp,width=8", "convnet"]),
    "algorithm": st.sampled_from(["adamw", "sgdw,momentum=0.9", "torch.optim:NAdam"]),
    "lr": st.floats(1e-6, 1),
    "weight_decay": st.just(0.0) | st.floats(1e-9, 0.5),
    "schedule": st.sampled_from(["cosine", "restarts,factor=2,first=10"]),
    "data": st.none() | st.integers(64, 9000),
    "validation": st.sampled_from([None, 100, "test"]),
    "seed": st.integers(0, 99),
}
axes = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(one, min_size=1, max_size=2, unique=True) for name, one in AXES.items()
    },
)


@given(axes)
def test_a_grid_has_the_product_of_its_axes_lengths(axes: dict[str, list[Any]]) -> None:
    cells = grid(**{**BASE, **axes})
    assert len(cells) == math.prod(map(len, axes.values()))
    assert len({cell.identity for cell in cells}) == len(cells)
    for name, values in axes.items():
        assert {getattr(cell, name) for cell in cells} == set(values)


@given(axes, st.randoms(use_true_random=False))
def test_the_order_of_the_arguments_does_not_matter(
    axes: dict[str, list[Any]], order: random.Random
) -> None:
    stated = list({**BASE, **axes}.items())
    cells = grid(**dict(stated))
    order.shuffle(stated)
    assert grid(**dict(stated)) == cells


@given(axes)
def test_cells_are_ordered_by_field_and_then_as_written(axes: dict[str, list[Any]]) -> None:
    names = [field.name for field in fields(RunConfig) if field.name in axes]
    cells = grid(**{**BASE, **axes})
    places = [tuple(axes[name].index(getattr(cell, name)) for name in names) for cell in cells]
    assert places == sorted(places)


@pytest.mark.slow
@given(axes)
def test_what_is_stated_twice_is_there_once(axes: dict[str, list[Any]]) -> None:
    doubled = {name: values * 2 for name, values in axes.items()}
    assert grid(**{**BASE, **doubled}) == grid(**{**BASE, **axes})


def test_what_is_written_otherwise_and_means_the_same_is_there_once() -> None:
    models = ["mlp,width=8,depth=1", "mlp,depth=1,width=8"]
    assert len(grid(**{**BASE, "model": models, "lr": [1, 1.0, "2^0"], "seed": ["0..1", 1]})) == 2


def test_text_is_notation_for_numbers() -> None:
    cells = grid(
        **{
            **BASE,
            "lr": "2^-12..2^-5",
            "weight_decay": [0, "0.001*2^-3..2^3"],
            "batch": "2^5..2^6",
            "epochs": (10, "20"),
            "data": "1e3",
            "validation": ["test", "2^7"],
            "seed": range(2),
        }
    )
    assert {cell.lr for cell in cells} == {2.0**power for power in range(-12, -4)}
    decays = [0.0, *(0.001 * 2.0**power for power in range(-3, 4))]
    assert list(dict.fromkeys(cell.weight_decay for cell in cells)) == decays
    assert {cell.batch for cell in cells} == {32, 64}
    assert {cell.epochs for cell in cells} == {10, 20}
    assert {(cell.data, type(cell.data)) for cell in cells} == {(1000, int)}
    assert {cell.validation for cell in cells} == {"test", 128}
    assert len(cells) == 8 * 8 * 2 * 2 * 2 * 2


def test_text_is_the_name_for_names() -> None:
    [cell] = grid(**{**BASE, "schedule": "restarts,factor=2,first=10", "task": "my.module:task"})
    assert (cell.schedule, cell.task) == ("restarts,factor=2,first=10", "my.module:task")


WHOLE = r"must be whole numbers such as 60, 2\^6 or 0\.\.4"
BAD: list[tuple[dict[str, Any], str]] = [
    ({"sed": 1}, r"Unknown field `sed`. Did you mean `seed`\? The fields are task, model"),
    ({"weightdecay": 1}, "`weightdecay`. Did you mean `weight_decay`?"),
    ({"learning_rate": 1}, "`learning_rate`. Did you mean `lr`?"),
    ({"momentum": 1}, "Unknown field `momentum`. The fields are task, "),
    ({"lr": []}, r"`lr` must have a value, got \[\]. Give one, or leave it out."),
    ({"seed": range(0)}, r"`seed` must have a value, got range\(0, 0\)"),
    ({"lr": "fast"}, r"`lr` must be numbers such as 2\^-9. 'fast' is not a number"),
    ({"lr": [0.1, ""]}, "`lr` must be numbers.*'' is not a number"),
    ({"lr": "2^-5..2^-9"}, "`lr` must be numbers.*A range must go from low to high"),
    ({"lr": "nan"}, "`lr` must be.*'nan' is not a finite number"),
    ({"lr": math.nan}, "`lr` must be finite and above 0, got nan"),
    ({"lr": math.inf}, "`lr` must be finite and above 0, got inf"),
    ({"lr": [[0.1]]}, r"`lr` must be a number, got \[0.1\]"),
    ({"lr": None}, "`lr` must be a number, got None"),
    ({"weight_decay": True}, "`weight_decay` must be a number, got True"),
    ({"seed": [0, False]}, "`seed` must be a whole number, got False"),
    ({"seed": "-1..3"}, "`seed` must be at least 0, got -1"),
    ({"epochs": "2.5"}, f"`epochs` {WHOLE}, got '2.5'"),
    ({"batch": "2^-1..2^3"}, f"`batch` {WHOLE}, got '2\\^-1..2\\^3'"),
    ({"epochs": 2.5}, "`epochs` must be a whole number, got 2.5"),
    ({"validation": "tset"}, f"`validation` {WHOLE}, or \"test\". 'tset' is not a number"),
    ({"model": 5}, "`model` must be a name such as .*got 5"),
    ({"precision": ["half"]}, "`precision` must be one of 'float32', 'bfloat16', got 'half'"),
    ({"l2": 0.1}, "The decay of adamw must be stated once"),
    ({"seed": "0..9999", "lr": "2^-20..2^0"}, r"at most 100,000 cells, got 21 · 10000 = 210,000"),
]


@pytest.mark.parametrize(("axes", "said"), BAD, ids=[str(case[0]) for case in BAD])
def test_a_bad_axis_is_refused_by_name(axes: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        grid(**{**BASE, **axes})


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="must also have `algorithm`, `lr`, `epochs`"):
        grid(task="mnist1d", model="mlp", batch=64)


def test_the_largest_grid_is_refused_before_it_is_made() -> None:
    """Were it made, this would take hours."""
    with pytest.raises(ValueError, match=f"at most {LARGEST:,} cells"):
        grid(**{**BASE, "seed": "0..9999", "data": "100..9999", "epochs": "1..9999"})


COMMON = """
task = "mnist1d"
model = "mlp"
epochs = 27
batch = 64
lr = "2^-12..2^-5"
seed = "0..4"
"""
GRIDS = """
[[grid]]
algorithm = ["adamw", "sgdw"]
normalized_decay = [0, "2^-8..2^0"]

[[grid]]
algorithm = ["adam", "sgd"]
l2 = [0, "0.001*2^-6..2^1"]
epochs = 9
"""
SHARED: dict[str, Any] = {
    "task": "mnist1d",
    "model": "mlp",
    "epochs": 27,
    "batch": 64,
    "lr": "2^-12..2^-5",
    "seed": "0..4",
}
DECOUPLED = {"algorithm": ["adamw", "sgdw"], "normalized_decay": [0, "2^-8..2^0"]}
COUPLED = {"algorithm": ["adam", "sgd"], "l2": [0, "0.001*2^-6..2^1"], "epochs": 9}
RUN = """
[[run]]
algorithm = "adamw"
lr = "2^-9"
weight_decay = "1/4*0.001"
seed = 7
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study.toml"


def test_each_grid_of_a_study_is_a_grid_with_what_is_common(study: Path) -> None:
    study.write_text(COMMON + GRIDS)
    decoupled, coupled = grid(**SHARED | DECOUPLED), grid(**SHARED | COUPLED)
    assert read_study(study) == decoupled + coupled
    assert len(decoupled) == 2 * 8 * 10 * 5
    assert {cell.epochs for cell in coupled} == {9}


def test_a_study_without_tables_is_one_grid(study: Path) -> None:
    study.write_text(COMMON + 'algorithm = "adamw"\nweight_decay = [0, 1e-3]\n')
    assert read_study(str(study)) == grid(**SHARED, algorithm="adamw", weight_decay=[0, 1e-3])


def test_a_run_is_one_configuration(study: Path) -> None:
    study.write_text(COMMON + RUN)
    values = {"algorithm": "adamw", "lr": 2**-9, "weight_decay": 0.25 * 0.001, "seed": 7}
    assert read_study(study) == [RunConfig(**SHARED | values)]
    study.write_text(COMMON + RUN + GRIDS + RUN)
    *cells, last = read_study(study)
    assert cells == grid(**SHARED | DECOUPLED) + grid(**SHARED | COUPLED)
    assert last == RunConfig(**SHARED | values)


def test_a_study_may_come_from_another_editor(study: Path) -> None:
    study.write_bytes(b"\xef\xbb\xbf" + (COMMON + RUN).replace("\n", "\r\n").encode())
    assert len(read_study(study)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"study\.toml must have a grid, but is empty"),
        ("# nothing yet\n", "must have a grid, but is empty"),
        ("lr = 2^-9\n", r"study\.toml is not valid TOML: .*line 1.*ranges in quotes"),
        ("lr = 1\nlr = 2\n", "is not valid TOML: .*line 2"),
        ('task = "\udcff"\n', "is not valid TOML: .*utf-8"),
        ('task = "mnist1d"\n', r"study\.toml: A grid must also have `model`, "),
        (COMMON + "sed = 1\n" + GRIDS, r"study\.toml: .*field `sed`. Did you mean `seed`"),
        (COMMON + "[[grids]]\nl2 = 1\n", r"study\.toml: .*field `grids`. Did you mean `grid`"),
        (COMMON + "[grid]\nl2 = 1\n", r"`grid` must be a list of tables.*a line \[\[grid\]\]"),
        ("run = [1, 2]\n", r"`run` must be a list of tables, got \[1, 2\]"),
        (COMMON + GRIDS + "lr = []\n", r"study\.toml, grid 2: `lr` must have a value"),
        (COMMON + GRIDS + "lr = [nan]\n", "grid 2: `lr` must be finite and above 0, got nan"),
        (COMMON + GRIDS + "seed = true\n", "grid 2: `seed` must be a whole number, got True"),
        (COMMON + GRIDS + "lr = 1979-05-27\n", "grid 2: `lr` must be a number, got datetime"),
        (COMMON + GRIDS + "[grid.lr]\na = 1\n", "grid 2: `lr` must be a number, got {'a': 1}"),
        (COMMON + GRIDS + "[[grid]]\n", r"study\.toml, grid 3: A grid must also have `algorithm`"),
        (COMMON.replace("2^-12", "2^x") + GRIDS, r"study\.toml: `lr` must be numbers"),
        (COMMON + RUN.replace("seed = 7", ""), "run 1: `seed` of a run must be one value, got 5"),
        (COMMON + RUN + "l2 = 1\n", r"study\.toml, run 1: The decay of adamw must be stated once"),
    ],
)
def test_a_bad_study_names_file_table_and_key(study: Path, text: str, said: str) -> None:
    study.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=said):
        read_study(study)


def test_a_study_that_is_no_file_is_said_to_be_none(study: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"must be a TOML file, but .*toml does not exist"):
        read_study(study)
    with pytest.raises(IsADirectoryError, match=r"must be a TOML file, but .* is a folder"):
        read_study(study.parent)


def test_a_grid_does_not_import_torch() -> None:
    code = "import sys, weightdecay.sweeps.grids; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
