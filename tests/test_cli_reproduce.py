"""`weightdecay reproduce`, as a person types it: on a task of milliseconds."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.toys import config
from weightdecay.cli import main, sweep_view
from weightdecay.records import Event, Progress, RunConfig, Timing
from weightdecay.studies import (
    STUDIES,
    Scale,
    curve_figures,
    families,
    findings,
    own_scale,
    scale,
    scales,
    supplement,
)
from weightdecay.studies.budget_figures import GRIDS, Grids
from weightdecay.studies.long_runs import LONG, Long
from weightdecay.studies.scales import FAMILIES
from weightdecay.studies.so_far import SoFar
from weightdecay.sweeps import Status, Store, SweepEvent, Working, estimate

TASK = "tests.toys:toy"
TINY = Scale(
    task=TASK,
    name="small",
    common={"model": "linear", "batch": 30, "data": 240, "validation": 60},
    seeds="0..1",
    epochs=2,
    lrs=dict.fromkeys(FAMILIES, "2^-8..2^-6"),
    l2={family: [0, "2^-9..2^-8"] for family in FAMILIES},
    decays={family: [0, "2^-9..2^-8"] for family in FAMILIES},
)
CHOICES: dict[str, tuple[list[float], list[float]]] = {
    "adam": ([2**-8], [2**-9]),
    "adamw": ([2**-8], [2**-4]),
    "sgdw": ([2**-6], [2**-4]),
    "adamwr": ([2**-8], [2**-4]),
    "sgdwr": ([2**-6], [2**-4]),
}
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.cpu("reports are equal to the byte on a CPU")
HERE = ["--task", TASK, "--on", "here", "--device", "cpu"]
OUT = Path("reproduction") / TINY.folder
OWN = ["--task", "tests.toys:hasty"]
Output = pytest.CaptureFixture[str]
DRAW = findings.draw


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "draw", partial(DRAW, formats=("svg",)))  # it is the fastest
    """A folder to be in, and a scale to be at."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(scales._SCALES, (TASK, "small"), TINY)
    monkeypatch.setitem(LONG, TASK, Long(3, 1))
    monkeypatch.setattr(curve_figures, "CHOICES", {TASK: CHOICES})
    monkeypatch.setattr(curve_figures, "SETTINGS", {TASK: ([0, "2^-9..2^-8"], "2^-4..2^-2")})
    monkeypatch.setattr(supplement, "STANDARD", {TASK: ("2^-8..2^-7", "2^-9..2^-8")})
    monkeypatch.setattr(supplement, "EPOCHS", {TASK: 3})
    rates = "2^-8..2^-6"
    monkeypatch.setitem(GRIDS, TASK, Grids(rates, rates, [0, "2^-4..2^-3"]))


def reproduce(*words: str) -> int:
    return main(["reproduce", *words, *HERE])


@pytest.mark.slow
def test_a_figure_is_trained_drawn_and_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(findings, "draw", DRAW)
        assert reproduce("figure-2") == 0
    said = capsys.readouterr().out
    cells = STUDIES["figure-2"].cells(TINY)
    assert len(cells) == 4 * 3 * 3 * 2 + 24
    assert {run.config for run in Store(OUT).runs()} == set(cells)
    rows = json.loads((OUT / "figure-2" / "verdicts.json").read_text("utf-8"))
    assert len(rows) == 14
    untimed = re.sub(r" runs, [\d.]+ (minutes|hours) of one core\)", " runs)", said)
    for row in rows:
        assert f"{row['outcome'].upper():12} {row['claim']}\n{'':12} {row['because']}" in untimed
    assert rows[0]["claim"] == "L2 and decay are the same for SGD, and not for Adam"
    assert "in 6 pairs of SGD" in rows[0]["because"]
    for name in ("figure.png", "figure.svg", "figure.pdf", "report.html"):
        assert (OUT / "figure-2" / name).stat().st_size > 1000
    assert (OUT / "figure-2" / "report.html").resolve().as_uri() in said

    before = list(Store(OUT).results())
    assert reproduce("figure-2") == 0
    again = capsys.readouterr().out
    assert list(Store(OUT).results()) == before
    assert "Estimated time" not in again
    assert again.split("\n", 1)[1] == said.split(" 0 waiting\n", 1)[1]


def test_the_time_is_estimated_by_the_sweep_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def sweep_events(cells: Sequence[RunConfig], **_: object) -> Iterator[SweepEvent]:
        nothing = Status(len(cells), 0, 0, 0, 0, workers=1, seconds_left=None)
        yield nothing
        yield Working(0, len(cells), None)
        for seconds in (61.0 * len(cells), 60.0):
            yield replace(nothing, running=len(cells), seconds_left=seconds)

    monkeypatch.setattr(sweep_view, "sweep_events", sweep_events)
    assert reproduce("figure-4") == 0
    counted, unknown, told = capsys.readouterr().err.splitlines()
    assert counted == "12 of 12 runs to train."
    assert unknown.endswith("time left unknown")  # a trial would have come before this line
    assert told == "Estimated time: 12:12"


def test_missing_data_are_an_error_before_anything_is_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("WEIGHTDECAY_DATA", "nothing")
    command = ["reproduce", "figure-2", "--task", "fashion-mnist", "--device", "cpu", "--quiet"]
    assert main(command) == 2
    assert "Run `weightdecay data fetch fashion-mnist`." in capsys.readouterr().err
    assert not (Path("reproduction") / "fashion-mnist-small").exists()


@pytest.mark.slow
def test_figures_share_runs_and_all_are_those_that_the_scale_has(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    assert reproduce("supplement-2") == 0
    capsys.readouterr()
    assert reproduce("figure-4", "all") == 0
    said = capsys.readouterr().err
    distinct = {
        cell
        for name in STUDIES.keys() - {"supplement-4", "supplement-6"}
        for cell in STUDIES[name].cells(TINY)
    }
    done = len(STUDIES["supplement-2"].cells(TINY))
    assert said.startswith(f"{len(distinct) - done} of {len(distinct)} runs to train.")
    drawn = {path.parent.name for path in OUT.glob("*/report.html")}
    assert drawn == STUDIES.keys() - {"supplement-4", "supplement-6"}


@pytest.mark.slow
def test_figures_as_json_are_what_their_files_have(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(findings, "draw", DRAW)
    assert reproduce("figure-2", "supplement-1", "--json", "--quiet") == 0
    out, err = capsys.readouterr()
    assert err == ""
    told = json.loads(out)
    assert (told["folder"], told["task"], told["scale"]) == (str(OUT), TASK, "small")
    first, second = told["figures"]
    cells = STUDIES["figure-2"].cells(TINY)
    assert (first["name"], first["runs"], first["planned"]) == ("figure-2", len(cells), len(cells))
    verdicts = json.loads((OUT / "figure-2" / "verdicts.json").read_text("utf-8"))
    assert first["verdicts"] == verdicts
    assert Path(first["picture"]).is_file()
    assert Path(first["report"]) == OUT / "figure-2" / "report.html"
    assert [one["settings"] for one in first["landscapes"]] == [9] * 4
    adam, adamw = first["landscapes"][2:]
    assert (adam["s_in_torch"], adamw["s_in_torch"] is not None) == (None, True)
    assert (second["name"], second["runs"], second["landscapes"]) == ("supplement-1", 0, [])


def test_a_figure_without_runs_needs_none(capsys: Output) -> None:
    assert reproduce("supplement-1") == 0
    assert (OUT / "supplement-1" / "figure.svg").exists()
    assert capsys.readouterr().err == ""


@contextmanager
def stopped_when_some_are_done() -> Iterator[Callable[[], bool]]:
    yield lambda: bool(Store(OUT).refresh().finished)


@pytest.mark.slow
def test_interrupted_and_repeated_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sweep_view, "graceful_stop", stopped_when_some_are_done)
        assert reproduce("figure-2") == 130
    told = capsys.readouterr()
    assert told.err.endswith("Stopped. Run the same command again to continue.\n")
    assert told.out == ""
    assert not (OUT / "figure-2").exists()
    done = len(Store(OUT).runs())
    total = len(STUDIES["figure-2"].cells(TINY))
    assert 0 < done < total
    assert reproduce("figure-2") == 0
    assert f"{total - done} of {total} runs to train." in capsys.readouterr().err
    assert (OUT / "figure-2" / "report.html").exists()


def outcomes(figure: str) -> list[str]:
    rows = json.loads((OUT / figure / "verdicts.json").read_text("utf-8"))
    return [row["outcome"] for row in rows]


def test_runs_that_fail_leave_verdicts_and_a_status_and_the_next_figure_is_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    broken = replace(TINY, common={**TINY.common, "model": "nosuch"})
    monkeypatch.setitem(scales._SCALES, (TASK, "small"), broken)
    assert reproduce("figure-4", "supplement-1") == 1
    told = capsys.readouterr()
    assert "There is nothing to draw: none of the 12 runs finished.\n" in told.out
    assert f"`weightdecay status {OUT} --failures` shows what failed." in told.out
    assert "NOT DECIDED  AdamWR is up to 10 times as fast as AdamW" in told.out
    assert set(outcomes("figure-4")) == {"not decided"}
    assert (OUT / "figure-4" / "report.html").exists()
    assert not (OUT / "figure-4" / "figure.svg").exists()
    assert (OUT / "supplement-1" / "figure.svg").exists()
    assert "nosuch" in told.err


def test_a_figure_all_of_whose_own_runs_failed_is_judged_by_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setitem(LONG, TASK, Long(3, 1, model="nosuch"))
    assert reproduce("supplement-2") == 1
    cells = STUDIES["supplement-2"].cells(TINY)
    ended = sum(cell.algorithm == "adamw" for cell in cells)
    assert f"{ended} of the {len(cells)} runs finished" in capsys.readouterr().out
    assert outcomes("supplement-2") == ["not decided"]


@pytest.mark.slow
def test_a_figure_is_drawn_of_those_panels_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    for name in ("adagrad", "adagradw"):
        lost = replace(families.METHODS[name], algorithm="torch.optim:LBFGS")
        monkeypatch.setitem(families.METHODS, name, lost)
    assert reproduce("conjecture") == 1
    said = capsys.readouterr().out
    assert "nothing to draw" not in said
    assert f"Picture: {OUT / 'conjecture' / 'figure.png'}" in said
    assert len(outcomes("conjecture")) == 3


@pytest.mark.slow
def test_with_one_seed_it_is_said_first_that_little_can_be_decided(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    assert reproduce("figure-4") == 0
    assert "one seed" not in capsys.readouterr().err
    monkeypatch.setitem(scales._SCALES, (TASK, "small"), replace(TINY, seeds=[0]))
    assert reproduce("supplement-1") == 0
    assert "one seed" not in capsys.readouterr().err
    note = (
        "`--scale small` has one seed, which gives no interval: claims that need one are not "
        "decided."
    )
    assert reproduce("figure-4", "supplement-5") == 0
    said = capsys.readouterr().err
    assert said.startswith(f"{note} No scale of {TASK} has more seeds.\n")
    assert said.count("has one seed") == 1
    monkeypatch.setitem(scales._SCALES, (TASK, "medium"), replace(TINY, name="medium"))
    assert reproduce("figure-4") == 0
    assert capsys.readouterr().err.startswith(f"{note} `--scale medium` has 2 seeds.\n")


def test_the_help_says_what_each_figure_is_and_how_many_runs_it_has(capsys: Output) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for name, one in STUDIES.items():
        runs = [str(len(one.cells(scale("mnist1d", "small"))))]
        second = name in ("supplement-4", "supplement-6")  # they would train mnist1d again
        runs.append("–" if second else str(len(one.cells(scale("text", "small")))))
        [line] = [line for line in said.splitlines() if line.startswith(f"{name} ")]
        assert line.split(maxsplit=3) == [name, *runs, one.title]
    for default in ("mnist1d", "small", "reproduction", "local"):
        assert f"(default {default})" in said


def test_the_help_comes_without_torch_and_matplotlib() -> None:
    code = (
        "import sys\nfrom weightdecay.cli import main\n"
        "try:\n    main(['reproduce', '-h'])\n"
        "finally:\n    print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["figure-9"], f"A figure must be one of {', '.join(STUDIES)}, or all, got 'figure-9'."),
        (
            ["figure2"],
            f"A figure must be one of {', '.join(STUDIES)}, or all, got 'figure2'. Did you ",
        ),
        (["figure-2", "--task", "mnist"], "A task must be one of mnist1d, cifar10, "),
        (["figure-2", "--task", "text", "--scale", "huge"], "--scale must be small or medium for "),
        (["figure-2", "--task", "text", "--epochs", "3"], "--epochs must be left out for text: "),
        (["figure-2", "--task", "tests.toys:no"], "--task must name something in "),
        (["figure-2", *OWN, "--scale", "paper"], "--scale must be left out for tests.toys:hasty, "),
        (["figure-2", *OWN, "--model", "no"], "--model must be one of mlp, dropping, "),
        (["figure-2", *OWN, "--batch", "271"], "`data` must be at least 271, got 270."),
        (["figure-2", *OWN, "--seeds", "0"], "--seeds must be at least 1, got 0."),
        (["supplement-6", *OWN], "--scale must name a second task, and that of "),
        (["supplement-4", "--task", TASK], "--scale must name a second task, and that of "),
        (["exponents", "--task", "cifar10"], "--scale must say how many examples are trained on"),
    ],
)
def test_what_is_unknown_is_an_error_that_names_the_known(
    words: list[str], said: str, capsys: Output
) -> None:
    assert main(["reproduce", *words]) == 2
    assert capsys.readouterr().err.startswith(f"weightdecay: {said}")
    assert not Path("reproduction").exists()


OWN_TASK = """
from dataclasses import replace

from tests.toys import toy


def mine():
    whole = toy()
    return replace(whole, name="mine", models={"linear": whole.models["linear"]})
"""


@pytest.mark.slow
def test_a_figure_of_a_task_of_ones_own_is_trained_drawn_and_judged(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said but the task: its first model, and usual grids."""
    Path("minetask.py").write_text(OWN_TASK)
    words = ["figure-2", "--task", "minetask:mine", "--on", "here", "--device", "cpu"]
    assert main(["reproduce", *words, "--epochs", "2", "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    out = Path("reproduction") / "minetask.mine-own"
    at = own_scale("minetask:mine", epochs=2, seeds=2)
    cells = STUDIES["figure-2"].cells(at)
    assert {run.config for run in Store(out).runs()} >= set(cells)  # and what edges ask for
    assert {cell.model for cell in cells} == {"linear"}
    rows = json.loads((out / "figure-2" / "verdicts.json").read_text("utf-8"))
    assert len(rows) == 14
    assert all(f"{row['outcome'].upper():12} {row['claim']}" in said for row in rows)
    page = (out / "figure-2" / "report.html").read_text("utf-8")
    again = "--task minetask:mine --model linear --epochs 2 --batch 32 --seeds 2"
    assert f"Made by <code>weightdecay reproduce figure-2 {again}</code>" in page
    assert own_scale("minetask:mine", model="linear", epochs=2, batch=32, seeds=2) == at
    Path("minetask.py").unlink()  # who looks at runs need not be able to run the task
    judged = SoFar(out).claims()
    assert judged is not None
    assert [(one.claim, one.outcome) for one in judged.claims] == [
        (row["claim"], row["outcome"]) for row in rows
    ]


@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"supplement-4", "supplement-6"}))
def test_every_study_without_a_second_task_is_declared_for_a_task_of_ones_own(name: str) -> None:
    for options in ({}, {"epochs": 1}, {"model": "mlp", "batch": 30, "seeds": 1}):
        at = own_scale("tests.toys:hasty", **options)
        cells = STUDIES[name].cells(at)
        assert len(set(cells)) == len(cells)
        assert {(cell.task, cell.model) for cell in cells} <= {("tests.toys:hasty", "mlp")}


def test_the_grid_of_a_task_of_ones_own_is_around_the_decays_that_its_updates_ask_for() -> None:
    """λ_norm = λ·√N: sixteen times the updates quarter the decays."""
    short, long = (own_scale("tests.toys:hasty", epochs=epochs) for epochs in (16, 256))
    updates = 16 * (short.common["data"] // short.common["batch"])
    decays = [scales.values(at.decays["adam"]) for at in (short, long)]
    assert decays[0][0] == 0
    assert decays[0][1] * updates**0.5 == pytest.approx(2**-6, rel=0.5)
    assert decays[0][-1] * updates**0.5 == pytest.approx(2, rel=0.5)
    assert decays[1] == [decay / 4 for decay in decays[0]]


@pytest.mark.parametrize("name", ["figure-1", "figure-2", "figure-3", "figure-4", "conjecture"])
def test_methods_compared_on_a_task_of_ones_own_have_grids_of_equal_size(name: str) -> None:
    at, study = own_scale("tests.toys:hasty"), STUDIES[name]
    sizes = {panel.name: len(panel.cells) for panel in study.panels(at)}
    pairs = [pair for pair in study.pairs(at) if not any(", λ" in one for one in pair)]
    assert pairs
    assert not [pair for pair in pairs if sizes[pair[0]] != sizes[pair[1]]]


def test_one_seed_of_a_task_of_ones_own_decides_little_and_that_is_said() -> None:
    at = own_scale("tests.toys:hasty", seeds=1)
    said = findings.undecided(STUDIES["figure-2"], at)
    assert said.startswith("`--seeds 1` has one seed, ")
    assert said.endswith("Choose at least two.")


def trial(monkeypatch: pytest.MonkeyPatch, event: Callable[[RunConfig, int], Event]) -> list[int]:
    """Let trials say this of each lane, and return how many lanes each of them had."""
    lanes: list[int] = []

    def train(configs: list[RunConfig], **_: object) -> Iterator[Event]:
        lanes.append(len(configs))
        assert {(one.epochs, one.evaluate_every) for one in configs} == {(2, 1)}
        return (event(one, len(configs)) for one in configs)

    monkeypatch.setattr("weightdecay.runs.train_events", train)
    return lanes


def timing(config: RunConfig, lanes: int) -> Timing:
    """Return that a lane of so many took a second and a half, and half a second to evaluate."""
    return Timing(
        run=config.identity,
        epoch=1,
        epochs=1,
        training=1.5 * lanes,
        evaluation=0.5 * lanes,
        lanes=lanes,
    )


def test_an_estimate_is_the_epochs_there_are_times_what_one_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lanes = trial(monkeypatch, timing)
    many = [config(seed=seed, epochs=5) for seed in range(100)]
    few = [config(seed=seed, epochs=3, batch=15) for seed in range(2)]
    assert estimate.seconds(many + few, workers=2, device="cpu") == (100 * 5 + 2 * 3) * 2 / 2
    assert lanes == [50, 2]  # 64 at most, from all over


@pytest.mark.parametrize(("evaluate_every", "evaluations"), [(0, 1), (1, 5), (2, 3), (9, 1)])
def test_an_estimate_counts_what_is_evaluated(
    evaluate_every: int, evaluations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial(monkeypatch, timing)
    one = config(epochs=5, evaluate_every=evaluate_every)
    assert estimate.seconds([one], workers=1, device="cpu") == 5 * 1.5 + evaluations * 0.5


def test_a_long_trial_ends_when_its_speed_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def progress(_: RunConfig, lanes: int) -> Progress:
        return Progress(
            update=1,
            updates=100,
            epoch=1,
            epochs=1,
            loss=1.0,
            error=0.5,
            multiplier=1.0,
            speed=4.0,
            lanes=lanes,
        )

    trial(monkeypatch, progress)
    monkeypatch.setattr(estimate, "_PATIENCE", -1.0)
    assert estimate.seconds([config(epochs=3)], workers=1, device="cpu") == 3 * 100 / 4.0 / 2


def test_on_a_gpu_there_is_no_estimate() -> None:
    assert estimate.seconds([config()], device="cuda:0") is None
