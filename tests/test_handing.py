"""A task that has no name to be loaded by is handed over, and a function is its own name."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from tests import own_tasks
from tests.own_tasks import numbers, remembered
from tests.toys import config, records_of
from weightdecay.records import Record, RunConfig
from weightdecay.runs import train, train_events
from weightdecay.sweeps import (
    CellFailed,
    InProcess,
    Local,
    Store,
    SweepEvent,
    grid,
    sweep,
    sweep_events,
)
from weightdecay.tasks import Task, as_float

pytestmark = pytest.mark.cpu("workers are processes on a CPU")


LAMBDA = lambda: numbers()  # noqa: E731, PLW0108 - which is no name


def lane(task: Any = "mine", **changes: Any) -> RunConfig:
    return config(**{"task": task, "model": "net", "batch": 36, "epochs": 2, **changes})


def test_a_function_that_can_be_imported_is_a_tasks_name() -> None:
    named = lane("tests.own_tasks:numbers")
    assert lane(numbers) == named
    assert lane(numbers).identity == named.identity
    assert lane(numbers).task == "tests.own_tasks:numbers"
    assert lane(remembered).task == "tests.own_tasks:remembered"
    axes: dict[str, Any] = {"model": "net", "algorithm": "adamw", "lr": 0.01, "weight_decay": 0}
    cells = grid(task=[numbers, remembered], **axes, epochs=2, batch=36)
    assert [cell.task for cell in cells] == [
        "tests.own_tasks:numbers",
        "tests.own_tasks:remembered",
    ]


def test_a_function_of_the_running_script_is_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "numbers", numbers, raising=False)
    with pytest.raises(
        ValueError, match="must be defined at the top level of an importable module"
    ):
        lane(numbers)


def local() -> Task:
    raise NotImplementedError


local.__qualname__ = "somewhere.<locals>.local"


@pytest.mark.parametrize("function", [LAMBDA, local, partial(numbers)])
def test_a_function_that_cannot_be_imported_is_refused_with_the_cure(
    function: Callable[[], Task],
) -> None:
    message = r"must be defined at the top level .*RunConfig\(task='mine', …\), task=…\)"
    with pytest.raises(ValueError, match=message):
        lane(function)


def test_a_task_is_no_name_and_is_told_where_it_goes() -> None:
    message = r"`task` must be a name, .*got a Task\. .*RunConfig\(task='mine', …\), task=…\)"
    with pytest.raises(TypeError, match=message):
        lane(numbers())


@pytest.mark.parametrize("given", [numbers, numbers(), LAMBDA])
def test_a_task_or_a_function_trains_under_any_name(given: Any) -> None:
    [named] = records_of(train_events(lane(numbers), device="cpu")).values()
    [found] = records_of(train_events(lane("mine"), task=given, device="cpu")).values()
    assert unnamed(found) == unnamed(named)


def unnamed(records: Iterable[Record]) -> list[Record]:
    return [replace(record, run="") for record in records]


def swept(cells: Iterable[RunConfig], folder: Path, **options: Any) -> list[SweepEvent]:
    events = list(sweep_events(cells, folder=folder, **options))
    assert not [event.failure.reason for event in events if isinstance(event, CellFailed)]
    return events


CELLS = [lane(lr=lr, seed=seed) for lr in (0.01, 0.02) for seed in range(2)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[float, int], list[Record]]:
    """Return what the same cells come to, trained in this process on what a name stands for."""
    folder = tmp_path_factory.mktemp("named")
    swept(
        [replace(cell, task="tests.own_tasks:numbers") for cell in CELLS],
        folder,
        engine=InProcess("cpu"),
    )
    return found_in(folder)


def found_in(folder: Path) -> dict[tuple[float, int], list[Record]]:
    runs = Store(folder).runs()
    return {(run.config.lr, run.config.seed): unnamed(run.records) for run in runs}


@pytest.mark.parametrize(
    ("workers", "given"),
    [
        (0, numbers),
        (0, numbers()),
        pytest.param(2, numbers, marks=pytest.mark.slow),
        pytest.param(2, numbers(), marks=pytest.mark.slow),
    ],
)
def test_a_sweeps_workers_get_the_task_that_is_handed_over(
    given: Any, workers: int, tmp_path: Path, expected: dict[tuple[float, int], list[Record]]
) -> None:
    swept(
        CELLS, tmp_path, task=given, engine=Local(workers, "cpu") if workers else InProcess("cpu")
    )
    assert found_in(tmp_path) == expected


@pytest.mark.slow
def test_a_task_goes_to_workers_without_what_it_was_split_into(tmp_path: Path) -> None:
    """Which may be on a device, and is as large as the data."""
    task = numbers()
    before = len(pickle.dumps(task))
    swept(CELLS, tmp_path / "here", task=task, engine=InProcess("cpu"))
    assert task.parts
    jobs = []

    class Noting(Local):
        def begin(self, job: Any) -> None:
            jobs.append(job)
            super().begin(job)

    swept(CELLS, tmp_path / "local", task=task, engine=Noting(1, "cpu"))
    assert {len(job.task.body) for job in jobs} == {before}


def test_what_workers_cannot_unpickle_is_refused_before_any_starts(tmp_path: Path) -> None:
    def prepare(batch: Tensor, words: Tensor | None) -> Tensor:
        return as_float(batch, words)

    task = replace(numbers(), prepare=prepare)
    message = r"`task` must be picklable, to be sent to worker processes.*prepare.*engine=weightd"
    with pytest.raises(ValueError, match=message):
        sweep(CELLS, folder=tmp_path / "s", task=task, engine=Local(1, "cpu"))
    assert not (tmp_path / "s").exists()
    swept(CELLS, tmp_path / "s", task=task, engine=InProcess("cpu"))


SCRIPT = """
from dataclasses import replace
from tests.own_tasks import numbers
from tests.test_handing import CELLS
from weightdecay.sweeps import Local, sweep
def net(generator=None): ...
sweep(CELLS, folder="s", task=replace(numbers(), models={"net": net}), engine=Local(1, "cpu"))
"""


@pytest.mark.slow
def test_a_scripts_own_functions_are_refused_before_any_worker_starts(tmp_path: Path) -> None:
    """They pickle by name, and a worker would look for them in a script that is not its own."""
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "ValueError: `task` must be picklable, to be sent to worker processes" in process.stderr
    assert "net is defined in the running script" in process.stderr


WRONG: list[tuple[list[RunConfig], Any, str]] = [
    (
        [*CELLS, lane("yours")],
        numbers(),
        "must all name the same task if `task` is given, got mine, yours",
    ),
    ([lane("mnist1d")], numbers(), "must not have the name of a built-in one, got mnist1d"),
    ([lane("mnist1d")], numbers, "must not have the name of a built-in one, got mnist1d"),
    ([lane(model="nets")], numbers(), "`model` must be one of net, which numbers has, got 'nets'"),
]


@pytest.mark.parametrize(("cells", "task", "message"), WRONG)
def test_a_task_that_does_not_fit_its_configurations_starts_no_worker(
    cells: list[RunConfig], task: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        sweep(cells, folder=tmp_path / "s", task=task)
    assert not (tmp_path / "s").exists()


def test_what_is_handed_over_must_be_a_task() -> None:
    with pytest.raises(
        TypeError, match=r"`task` must be a weightdecay\.tasks\.Task, or a function"
    ):
        train(lane(), task=lambda: own_tasks)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must not name it mnist1d"):
        train(lane("mnist1d"), task=numbers())
