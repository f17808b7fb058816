"""Whoever looks at a sweep is told what disagrees and what stands out, wherever they look."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.landscapes import Truth, ended, measured, runs_of
from weightdecay.cli import main, status
from weightdecay.cli.reproduce import _show
from weightdecay.figures import heatmaps
from weightdecay.records import Run, or_infinite
from weightdecay.records.codec import Cost
from weightdecay.results import Landscape, landscapes
from weightdecay.studies import STUDIES, scale
from weightdecay.studies.findings import draw, find
from weightdecay.studies.page import tell
from weightdecay.sweeps import Store

TRUTH = Truth(rates=7, decays=8, zero=True)
WRONG = 3 * 9 + 5
SAID = "  adamw, lr 2⁻⁷, weight_decay 2⁻¹¹: "
Output = pytest.CaptureFixture[str]


def runs(*, wrong: bool) -> list[Run]:
    """Return a landscape, one cell of which is too high by half if it is to be wrong."""
    random = np.random.default_rng(0)
    found = runs_of(TRUTH, measured(TRUTH.errors(), 1, random, spread=0.004, examples=10_000))
    if wrong:
        last = found[WRONG].last
        raised = 1.5 * or_infinite(last.test_error)
        found[WRONG] = Run(found[WRONG].config, (replace(last, test_error=raised),))
    return found


def kept(folder: Path, found: Sequence[Run]) -> Path:
    """Return the folder of a sweep that has found these runs."""
    store = Store(folder)
    store.ask_for({run.config.identity: run.config for run in found})
    with store.writing(workers=1) as writer:
        writer.results((run, Cost(run.config.identity, 1.0, 1, 1)) for run in found)
    return folder


@pytest.mark.parametrize("command", ["status", "watch"])
def test_status_names_a_cell_that_stands_out(command: str, tmp_path: Path, capsys: Output) -> None:
    assert main([command, str(kept(tmp_path, runs(wrong=True)))]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2] == "1 cell stands out from its neighbours:"
    pattern = re.escape(SAID) + r"4\d\.\d\d\s% where its neighbours say [23]\d\.\d\d\s% \(±\d\.\d\)"
    assert re.fullmatch(pattern, said[-1])


def test_status_of_a_clean_sweep_says_nothing_more(tmp_path: Path, capsys: Output) -> None:
    assert main(["status", str(kept(tmp_path, runs(wrong=False)))]) == 0
    _, titles, *best = capsys.readouterr().out.splitlines()
    assert "best lr" in titles
    assert not [line for line in best if "stand" in line or "compared" in line]


def test_status_says_which_errors_would_have_been_found(tmp_path: Path, capsys: Output) -> None:
    assert main(["status", str(kept(tmp_path, runs(wrong=False)))]) == 0
    *_, head, bound = capsys.readouterr().out.splitlines()
    assert (
        head == "A wrongly trained cell would be noticed if its error were too high by more than:"
    )
    pattern = r"  adamw: \d+ % in half of the cells, \d+ % in nine tenths, "
    assert re.fullmatch(pattern + "never in 4 of 63", bound)


def test_status_names_what_was_trained_together_with_cells_that_stand_out(
    tmp_path: Path, capsys: Output
) -> None:
    """All lanes of a pack are too high by half, and one of them is a corner."""
    found, lanes = runs(wrong=False), (0, 21, WRONG, 51)
    for lane in lanes:
        last = found[lane].last
        raised = replace(last, test_error=1.5 * or_infinite(last.test_error))
        found[lane] = Run(found[lane].config, (raised,))
    store = Store(tmp_path)
    store.ask_for({run.config.identity: run.config for run in found})
    with store.writing(workers=1) as writer:
        for lane, run in enumerate(found):
            seconds = 0.25 if lane in lanes else 1.0 + lane
            writer.results([(run, Cost(run.config.identity, seconds, 1, 4))])
    assert main(["status", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "3 cells stand out from their neighbours:" in said
    assert said[-2] == "1 run was trained together with cells that stand out, so may be wrong too:"
    assert said[-1].startswith("  adamw, lr 2⁻¹⁰, no decay: ")
    assert said[-1].endswith(", trained together with 3 cells that stand out")
    assert len(triangles(*landscapes(tmp_path))) == len(lanes)


def test_runs_that_were_trained_together_are_read_with_the_same_pack(tmp_path: Path) -> None:
    """A repeat is trained in another pack, whose time is not recorded."""
    found = runs(wrong=False)[:4]
    with Store(tmp_path).writing(workers=1) as writer:
        costs = (Cost(run.config.identity, 0.25 + n // 2, 1, 2) for n, run in enumerate(found))
        writer.results(zip(found, costs, strict=True))
        writer.repeats([(found[0], Cost(found[0].config.identity, 9.0, 1, 1))])
    packs = {run.config: run.pack for run in Store(tmp_path).runs()}
    assert [packs[run.config] for run in found] == [(0.25, 1)] * 2 + [(1.25, 1)] * 2
    assert [run.pack for run in Store(tmp_path).repeats()] == [None]


def test_status_says_when_it_compared_nothing_and_compares_if_asked(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = kept(tmp_path, runs(wrong=True))
    monkeypatch.setattr(status, "_CHECKED", 62)
    assert main(["status", str(folder)]) == 0
    command = f"weightdecay status {folder} --check"
    [_, said] = capsys.readouterr().out.splitlines()
    assert said == f"63 results were not compared. `{command}` compares them."
    assert main(["status", str(folder), "--check"]) == 0
    assert SAID in capsys.readouterr().out


def test_status_leaves_out_what_is_no_longer_planned(tmp_path: Path, capsys: Output) -> None:
    found = runs(wrong=True)
    folder = kept(tmp_path, found)
    asked = {run.config.identity: run.config for run in found if run is not found[WRONG]}
    Store(folder).ask_for(asked)
    assert main(["status", str(folder)]) == 0
    assert "stands out" not in capsys.readouterr().out


def test_the_end_of_a_sweep_names_a_cell_that_stands_out(tmp_path: Path, capsys: Output) -> None:
    """Every cell is recorded already, so that nothing is left to train."""
    study = tmp_path / "study.toml"
    study.write_text(
        'task = "mnist1d"\nmodel = "mlp"\nalgorithm = "adamw"\nepochs = 10\nbatch = 100\n'
        'lr = "2^-10..2^-4"\nweight_decay = [0, "2^-15..2^-8"]\n'
    )
    folder = kept(tmp_path / "s", runs(wrong=True))
    assert main(["sweep", str(study), "--out", str(folder), "--on", "here", "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert said.index("best lr") < said.index("1 cell stands out from its neighbours:\n" + SAID)


@pytest.mark.parametrize("doubted", [False, True])
def test_reproduce_says_it_in_the_picture_on_the_page_and_in_the_terminal(
    doubted: bool, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, study = scale("mnist1d", "small"), STUDIES["figure-2"]
    cells = [
        cell
        for cell in study.cells(at)
        if cell.algorithm == "adamw" and cell.seed == 0 and cell.epochs > 1
    ]
    found_runs = {
        cell: ended(cell, test_error=0.4 - 0.01 * float(np.log2(cell.lr))) for cell in cells
    }
    middle = sorted({cell.lr for cell in cells})[3]
    wrong = next(cell for cell in cells if cell.lr == middle and cell.weight_decay)
    if doubted:
        found_runs[wrong] = ended(wrong, test_error=0.8)
    found, seen = find(study, at, found_runs.values())
    figures: list[Figure] = []
    monkeypatch.setattr("weightdecay.figures.save", lambda figure, *_, **__: figures.append(figure))
    draw(found, seen, tmp_path)
    monkeypatch.undo()
    draw(found, seen, tmp_path, formats=("svg",))
    page = tell(found, seen, tmp_path)
    _show(found, page, drawn=True)
    sentence = "1 cell stands out from its neighbours"
    assert any(sentence in text.get_text() for text in figures[0].texts) is doubted
    assert (sentence in capsys.readouterr().out) is doubted
    html = page.read_text("utf-8")
    assert (sentence in html) is doubted
    assert ("Cells that stand out from their neighbours</h3>" in html) is doubted
    assert (
        "A wrongly trained cell would be noticed if its error were too high by more than: adamw: "
        in html
    )


def triangles(landscape: Landscape) -> list[tuple[float, float]]:
    """Return the middles of the triangles that are drawn."""
    figure = heatmaps([("AdamW", landscape, None)], columns=1)
    [marks] = [one for one in figure.axes[0].collections if one.get_label() == "doubt"]
    corners = [np.asarray(path.vertices, dtype=np.float64)[:3] for path in marks.get_paths()]
    return [(float(one[:, 0].mean()), float(one[:, 1].mean())) for one in corners]


def test_a_heat_map_marks_the_cell_that_stands_out_and_explains_the_mark() -> None:
    [clean], [wrong] = landscapes(runs(wrong=False)), landscapes(runs(wrong=True))
    assert triangles(clean) == []
    [(x, y)] = triangles(wrong)
    assert (round(x), round(y)) == (4, 3)
    for landscape, explained in ((clean, False), (wrong, True)):
        figure = heatmaps([("AdamW", landscape, None)], columns=1)
        said = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("stands out from its neighbours" in said) is explained
