"""Claims while a reproduction trains: each is judged when its landscapes are complete."""

import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.test_live import ROOT, Clock, finish, later, watched
from weightdecay.records import Run
from weightdecay.records.tables import imported
from weightdecay.studies import STUDIES, scale
from weightdecay.studies.registration_file import FILE
from weightdecay.studies.so_far import SoFar
from weightdecay.sweeps import Store

pytestmark = pytest.mark.cpu("claims about finished runs do not depend on the device")
STUDY, SCALE = STUDIES["figure-2"], scale("mnist1d", "small")
FOLDER = Path(SCALE.folder)
COMMITTED = ROOT / "results" / SCALE.folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    """Return the runs of Figure 2 that are committed, by identity."""
    found = {run.config.identity: run for run in imported(COMMITTED / "records.parquet")}
    grown = STUDY.grown(SCALE, found.values())
    wanted = {cell.identity for cell in (*STUDY.cells(SCALE), *grown)}
    return {name: run for name, run in found.items() if name in wanted}


def of_panels(names: Collection[str], runs: dict[str, Run]) -> list[Run]:
    panels = [panel for panel in STUDY.panels(SCALE) if panel.name in names]
    cells = {cell.identity for panel in panels for cell in panel.grown(runs).cells}
    return [run for name, run in runs.items() if name in cells]


def begun(runs: dict[str, Run]) -> Store:
    store = Store(FOLDER)
    store.ask_for({name: run.config for name, run in runs.items()})
    return store


def test_a_claim_is_judged_when_its_landscapes_are_complete(runs: dict[str, Run]) -> None:
    store, so_far = begun(runs), SoFar(FOLDER)
    found = so_far.claims()
    assert found is not None
    assert found.claims == []
    assert found.note.startswith("14 of 14 claims cannot be judged before")
    adam = of_panels(["adam"], runs)
    finish(store, [*of_panels(["sgd"], runs), *adam[:-1]])
    found = so_far.claims()
    assert found is not None
    words = [one.claim for one in found.claims]
    assert "SGD's basin lies on a diagonal" in words
    assert not any("Adam" in one for one in words)
    finish(store, adam[-1:])
    found = so_far.claims()
    assert found is not None
    assert "Adam's basin lies on a diagonal" in [one.claim for one in found.claims]
    assert not any("AdamW" in one.claim for one in found.claims)


def test_in_the_end_the_claims_are_those_of_the_report(runs: dict[str, Run]) -> None:
    store, so_far = begun(runs), SoFar(FOLDER)
    finish(store, list(runs.values()))
    found = so_far.claims()
    assert found is not None
    assert "judged again by fresh seeds" in found.note
    reported = STUDY.verdicts(STUDY.evidence(SCALE, runs.values()))
    assert [(one.claim, one.outcome) for one in found.claims] == [
        (one.claim, one.outcome) for one in reported
    ]
    judges = imported(COMMITTED / "judging.parquet")
    place = FOLDER / STUDY.name
    place.mkdir()
    shutil.copy(COMMITTED / STUDY.name / FILE, place / FILE)
    second = Store(FOLDER / "judging")
    finish(second, judges[:5])
    assert so_far.claims() == found
    finish(second, judges[5:])
    found = so_far.claims()
    assert found is not None
    assert found.note == ""
    assert len(found.claims) == len(reported)
    # A row has room for one interval. Others and remarks are in the claim's words.
    said = [row.said for one in found.claims for row in one.intervals]
    assert any("[" in one for one in said)
    assert not [one for one in said if one.count("[") > 1 or ";" in one or "seeds" in one]


def test_what_has_not_changed_is_not_judged_again(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, so_far = begun(runs), SoFar(FOLDER)
    finish(store, of_panels(["sgd"], runs))
    found = so_far.claims()
    monkeypatch.setattr(type(STUDY), "verdicts", lambda *_: pytest.fail("it judged again"))
    finish(store, of_panels(["adamw"], runs)[:20])
    assert so_far.claims() == found


@pytest.mark.parametrize("name", ["sweep", "mnist1d-small", "nothing-small", "figure-2"])
def test_a_sweep_that_is_no_figure_has_no_claims(name: str, runs: dict[str, Run]) -> None:
    some = list(runs.values())[:10]
    store = Store(Path(name))
    store.ask_for({run.config.identity: run.config for run in some})
    finish(store, some)
    assert SoFar(Path(name)).claims() is None


def test_the_served_page_of_a_reproduction_has_the_claims(runs: dict[str, Run]) -> None:
    store, clock = begun(runs), Clock()
    finish(store, of_panels(["sgd", "adam"], runs))
    found = watched(str(FOLDER), clock=clock)
    assert found.view.data["claims"] == []
    later(found, clock)
    data = found.view.data
    assert "SGD's basin lies on a diagonal" in [row["claim"] for row in data["claims"]]
    assert "claims cannot be judged before their landscapes are complete" in data["judged"]
    assert "claims about this figure" in data["answers"]


def test_runs_of_another_task_claim_nothing_whatever_their_folder_is_called() -> None:
    """Figure 2 of CIFAR-10, copied to a Figure 3 of mnist1d, made one of its claims hold."""
    copied = FOLDER / "figure-3"
    shutil.copytree(ROOT / "results" / "cifar10-small" / "figure-2", copied)
    assert SoFar(copied).claims() is None
