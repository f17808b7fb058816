"""One door: its names are what a training loop needs, and opening it does not import torch."""

import ast
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import weightdecay


def test_every_public_name_is_there_and_no_other() -> None:
    for name in weightdecay.__all__:
        assert getattr(weightdecay, name) is not None
    assert set(weightdecay.__all__) <= set(dir(weightdecay))
    with pytest.raises(AttributeError, match="module 'weightdecay' has no attribute 'AdamX'"):
        _ = weightdecay.AdamX


def test_the_top_level_has_what_a_training_loop_needs_and_nothing_else() -> None:
    assert set(weightdecay.__all__) == {
        *("SGD", "SGDW", "SGDWR", "Adam", "AdamW", "AdamWR", "decouple"),
        *("Schedule", "Cycle", "Constant", "StepDrop", "Cosine", "WarmRestarts", "Warmup"),
        *("Normalized", "parameter_groups", "explain", "from_torch", "to_torch"),
    }
    for name in ("Store", "train", "RunConfig", "convert", "Task", "NO_DECAY"):
        assert not hasattr(weightdecay, name)


ROOMS = (
    *("decay", "optim", "records", "results", "runs", "schedules", "sweeps", "tasks"),
    *("figures", "tune"),
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_reached_from_the_door_and_says_what_it_has(room: str) -> None:
    module = getattr(weightdecay, room)
    assert module is import_module(f"weightdecay.{room}")
    assert room in dir(weightdecay)
    assert (module.__doc__ or "").strip()


def test_type_checkers_are_told_of_every_room() -> None:
    told = _told_to_type_checkers()
    assert {name for name, home in told.items() if home == "weightdecay"} == set(ROOMS)
    assert set(ROOMS) == set(weightdecay._ROOMS)


def _told_to_type_checkers() -> dict[str, str]:
    """Return the names that the door imports for type checkers, and the modules they come from."""
    tree = ast.parse(Path(weightdecay.__file__).read_text("utf-8"))
    [guarded] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: str(node.module)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_every_public_name_is_what_type_checkers_take_it_for() -> None:
    """The map, `__all__` and the imports for type checkers list the same names, one object each."""
    told = {name: home for name, home in _told_to_type_checkers().items() if home != "weightdecay"}
    assert set(told) == set(weightdecay.__all__) == set(weightdecay._HOME)
    for name, module in told.items():
        assert getattr(weightdecay, name) is getattr(import_module(module), name), name


def test_every_public_name_says_what_it_is() -> None:
    for name in weightdecay.__all__:
        thing = getattr(weightdecay, name)
        assert not callable(thing) or (thing.__doc__ or "").strip(), name


NUMBERS: list[Callable[[], object]] = [
    lambda: weightdecay.Normalized(0.05, 1000),  # type: ignore[call-arg]
    lambda: weightdecay.Cosine(100, 0.1),  # type: ignore[call-arg]
    lambda: weightdecay.StepDrop((100,), 0.5),  # type: ignore[call-arg]
    lambda: weightdecay.WarmRestarts(100, 1.5),  # type: ignore[call-arg]
    lambda: weightdecay.Cycle(0, 0, 10),  # type: ignore[call-arg]
    lambda: weightdecay.decay.Budget(128, 50_000, 100),  # type: ignore[call-arg]
    lambda: weightdecay.decay.BudgetExponents(0.5, 0.5, 0.5),  # type: ignore[call-arg]
]


@pytest.mark.parametrize("mistaken", NUMBERS)
def test_a_number_after_the_first_must_be_named(mistaken: Callable[[], object]) -> None:
    """`Normalized(0.05, 1000)` meant a power of 1000: no decay at all."""
    with pytest.raises(TypeError, match="positional argument"):
        mistaken()


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "import weightdecay",
        "from weightdecay import Cosine, WarmRestarts, Normalized; Cosine(3)(1)",
        "import weightdecay; weightdecay.results.landscapes, weightdecay.sweeps.Store",
        "import weightdecay; weightdecay.decay.convert, weightdecay.records.RunConfig",
        "from weightdecay.cli import main; main(['convert', '--torch', '0.1', '--lr', '1e-3'])",
        # What `reproduce` does between its stages, while both cores wait.
        "from tests.test_registration import registered, runs_of; registered(runs_of())",
    ],
)
def test_what_does_not_train_does_not_import_torch(code: str) -> None:
    imported = "sorted({'rich', 'torch'} & set(sys.modules))"
    assert run(f"{code}\nimport sys; print({imported})").splitlines()[-1] == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("used", ["AdamW", "runs.train", "sweeps.Store"])
def test_training_needs_torch_and_numpy_alone(used: str) -> None:
    code = (
        f"import sys, weightdecay; weightdecay.{used}\n"
        "others = {'pytest', 'hypothesis', 'matplotlib', 'ray', 'rich', 'scipy'}\n"
        "print(sorted(others & set(sys.modules)))"
    )
    assert run(code) == "[]"
