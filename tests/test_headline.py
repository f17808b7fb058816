"""The headline's long runs have the decays that the registered rule chooses."""

import importlib.util
import math
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from weightdecay.sweeps import Store, read_study

FOLDER = Path(__file__).parents[1] / "results" / "cifar10-headline"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="a source distribution has no committed results"
)


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("headline", FOLDER / "choose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def vertex(low: float, best: float, high: float) -> float:
    """Return by how many steps the lowest point of a parabola through three heights is off."""
    return (low - high) / (2 * (low - 2 * best + high))


@pytest.mark.parametrize("algorithm", ["adam", "adamw", "sgd", "sgdw"])
def test_the_long_runs_have_the_decays_of_the_registered_rule(algorithm: str) -> None:
    """A parabola through three heights, and the root of the number of updates, by hand."""
    name = script().DECAYS[algorithm]
    errors: dict[float, float] = {
        getattr(run.config, name): run.last.validation_error or math.nan
        for run in Store(FOLDER / "search").runs()
        if run.config.algorithm == algorithm
    }
    best = min(errors, key=lambda decay: errors[decay])
    heights = [math.log(errors[best * factor]) for factor in (0.5, 1, 2)]
    expected = best * 2 ** vertex(*heights) * (math.sqrt(5265 / 39000) if name == "l2" else 1)
    for study in sorted(FOLDER.glob("long-*.toml")):
        for cell in read_study(study):
            if cell.algorithm == algorithm:
                assert getattr(cell, name) == pytest.approx(expected, rel=0.005)


def test_each_registered_seed_is_planned_once() -> None:
    registered = tomllib.loads((FOLDER / "registered.toml").read_text("utf-8"))
    cells = [cell for study in FOLDER.glob("long-*.toml") for cell in read_study(study)]
    for algorithm, seeds in registered["judging"]["seeds"].items():
        first, last = map(int, seeds.split(".."))
        planned = sorted(cell.seed for cell in cells if cell.algorithm == algorithm)
        assert planned == list(range(first, last + 1))


def test_a_best_decay_at_an_edge_is_not_chosen() -> None:
    with pytest.raises(ValueError, match="at an edge"):
        script().lowest([1.0, 2.0, 4.0], [0.1, 0.2, 0.3])
