"""CIFAR-10's page on budgets says what the committed records say."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.landscapes import ended
from weightdecay.studies.findings import UNREGISTERED
from weightdecay.sweeps import Store, read_study

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "cifar10-small"
SAME_DRAWS = f"numpy=={np.__version__}" in (ROOT / "constraints.txt").read_text("utf-8").split()


def script() -> ModuleType:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("budgets_page", FOLDER / "budgets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not FOLDER.is_dir(), reason="a source distribution has no committed results")
def test_the_page_says_that_it_is_not_complete_until_it_is() -> None:
    page = script()
    planned = [ended(cell) for cell in read_study(FOLDER / "budgets-basin.toml")]
    assert "not complete" not in "\n".join(page.head(planned))
    assert f"{len(planned) - 1} of the {len(planned)} half steps" in "\n".join(
        page.head(planned[1:])
    )


@pytest.mark.skipif(not FOLDER.is_dir(), reason="a source distribution has no committed results")
def test_the_page_says_that_nothing_was_registered() -> None:
    assert not (FOLDER / "budgets" / "registered.toml").exists()
    assert UNREGISTERED in "\n".join(script().head([]))


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="a source distribution has no committed results")
@pytest.mark.skipif(not SAME_DRAWS, reason="another numpy draws other noise for the intervals")
def test_the_page_is_what_the_script_writes_of_the_records() -> None:
    """`make book` writes it again."""
    runs = [run for name in ("budgets", "figure-2") for run in Store(FOLDER / name).runs()]
    page = script()
    written = "\n".join([*page.head(runs), *page.page(page.measured(runs))]) + "\n"
    assert (FOLDER / "budgets.md").read_text("utf-8") == written
