"""CIFAR-10's page on budgets says what the committed records say."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from weightdecay.sweeps import Store

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


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="a source distribution has no committed results")
@pytest.mark.skipif(not SAME_DRAWS, reason="another numpy draws other noise for the intervals")
def test_the_page_is_what_the_script_writes_of_the_records() -> None:
    """`make book` writes it again."""
    runs = [run for name in ("budgets", "figure-2") for run in Store(FOLDER / name).runs()]
    page = script()
    written = "\n".join(page.page(page.measured(runs))) + "\n"
    assert (FOLDER / "budgets.md").read_text("utf-8") == written
