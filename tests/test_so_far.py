"""Claims while a reproduction trains: each is judged when its landscapes are complete."""

import math
import re
import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.pages import embedded_in, text_of
from tests.test_live import ROOT, Clock, finish, later, watched
from tests.test_sweeps import invented
from weightdecay import tasks
from weightdecay.cli import main
from weightdecay.live.planned import cell_of
from weightdecay.live.planned import planned as in_landscapes
from weightdecay.records import Run
from weightdecay.records.tables import imported
from weightdecay.studies import STUDIES, Scale, own_scale, scale
from weightdecay.studies.extension import together
from weightdecay.studies.own_scale import keep, kept
from weightdecay.studies.registration_file import FILE
from weightdecay.studies.so_far import SoFar
from weightdecay.sweeps import Store

pytestmark = pytest.mark.cpu("claims about finished runs do not depend on the device")
STUDY, SCALE = STUDIES["figure-2"], scale("mnist1d", "medium")
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
    cells = {cell.identity for panel in panels for cell in together([panel], runs)[0].cells}
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
    sealed = (place / FILE).read_text("utf-8")
    edited = re.sub(r'^sha256 = "\w+"$', 'sha256 = "of something else"', sealed, flags=re.MULTILINE)
    assert edited != sealed
    (place / FILE).write_text(edited, "utf-8")
    found = so_far.claims()
    assert found is not None
    assert found.note.startswith("registered.toml was changed after it was written")


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


def own_figure(at: Scale, folder: Path) -> None:
    """Leave all runs of Figure 2 at a scale in a folder: every landscape has its best inside."""
    keep(at, folder)
    cells = STUDY.cells(at)
    store = Store(folder)
    store.ask_for({cell.identity: cell for cell in cells})
    plan = in_landscapes(cells)
    finish(store, [with_basin(invented(cell), plan[cell_of(cell)[0]]) for cell in cells])


def with_basin(run: Run, places: Collection[tuple[float, float]]) -> Run:
    """Return a run whose errors grow with the distance from the middle of its landscape."""
    _, place = cell_of(run.config)
    logs = [[math.log2(knob) for knob in knobs if knob] for knobs in zip(*places, strict=True)]
    away = [
        (math.log2(knob) if knob else min(all_logs) - 1) - median(set(all_logs))
        for knob, all_logs in zip(place, logs, strict=True)
    ]
    error = 0.1 + 0.01 * sum(one**2 for one in away) + 1e-3 * run.config.seed
    errors: dict[str, Any] = dict.fromkeys(("train_error", "validation_error", "test_error"), error)
    return replace(run, records=tuple(replace(one, **errors) for one in run.records))


def test_a_task_of_ones_own_has_its_claims_and_is_not_loaded_for_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at, folder = own_scale("tests.toys:hasty", epochs=2, seeds=2), Path("anything")
    own_figure(at, folder)
    monkeypatch.setattr(tasks, "load", lambda *_: pytest.fail("it loaded the task"))
    assert kept(folder) == at
    found = SoFar(folder).claims()
    assert found is not None
    assert len(found.claims) == 14
    assert "judged again by fresh seeds" in found.note
    assert main(["report", str(folder), "--out", "page.html"]) == 0
    capsys.readouterr()
    page = Path("page.html").read_text("utf-8")
    assert "SGD's basin lies on a diagonal" in [row["claim"] for row in embedded_in(page)["claims"]]
    said = text_of(page)
    assert "judged again by fresh seeds" in said
    assert "claims about this figure" in said


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"task": "a", "hostile": 1}'])
def test_a_scale_that_cannot_be_read_says_what_to_do(text: str) -> None:
    Path("scale.json").write_text(text)
    with pytest.raises(ValueError, match=r"scale\.json must be what .* Run the same command again"):
        SoFar(Path()).claims()
