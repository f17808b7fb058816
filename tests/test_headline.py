"""The headline's long runs have the registered decays, and are judged by the registered rules."""

import importlib.util
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from tests.landscapes import ended
from weightdecay.records import Run
from weightdecay.sweeps import Store, read_study

FOLDER = Path(__file__).parents[1] / "results" / "cifar10-headline"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="a source distribution has no committed results"
)


def script(name: str = "choose") -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"headline_{name}", FOLDER / f"{name}.py")
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


def trained(algorithm: str, error: float, seed: int) -> Run:
    cell = next(
        cell
        for study in FOLDER.glob("long-*.toml")
        for cell in read_study(study)
        if cell.algorithm == algorithm
    )
    return ended(replace(cell, seed=seed, keep_missed=False), test_error=error)


def test_long_runs_are_compared_seed_by_seed_as_registered() -> None:
    """The mean of ln(error / other error) and Student's t over four seeds, by hand."""
    judge = pytest.importorskip("matplotlib") and script("judge")
    errors = {"adamw": (0.040, 0.041, 0.039, 0.042), "adam": (0.047, 0.046, 0.048, 0.047)}
    runs = [
        trained(name, error, seed)
        for name, own in errors.items()
        for seed, error in enumerate(own, 1000)
    ]
    logs = np.log(np.divide(errors["adamw"], errors["adam"]))
    off = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    value, low, high = (100 * math.expm1(end) for end in logs.mean() + np.array([0, -off, off]))
    row = judge.compared(("adamw", "adam"), judge.by_method(runs), 4)
    expected = f"{value:+.1f} % [{low:+.1f}, {high:+.1f}]".replace("-", "−")
    assert f"| 4 of 4 | {expected} |" in row
    assert "**better**" in row
    spread = np.mean([np.var(np.log(own), ddof=1) for own in errors.values()])
    off = stats.t.ppf(0.975, 6) * math.sqrt(spread * 2 / 4)
    low, high = (100 * math.expm1(end) for end in logs.mean() + np.array([-off, off]))
    assert row.endswith(f"[{low:+.1f}, {high:+.1f}] |\n".replace("-", "−"))
    one_seed = judge.by_method([run for run in runs if run.config.seed == 1000])
    assert "not trained yet" in judge.compared(("adamw", "adam"), one_seed, 4)


def test_the_page_of_the_long_runs_is_what_the_script_writes_of_the_records() -> None:
    """`make book` writes it again."""
    judge = pytest.importorskip("matplotlib") and script("judge")
    written = "".join(judge.page(judge.by_method(Store(FOLDER / "long").runs())))
    assert (FOLDER / "long.md").read_text("utf-8") == written
