"""`weightdecay landscape` recommends a setting from runs, and says what is wrong with others."""

import csv
import json
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes import Truth, exact, measured, runs_of
from tests.pages import embedded_in, text_of
from tests.test_cli_encoding import PLAIN, said
from weightdecay.cli import main
from weightdecay.records import Run
from weightdecay.records.codec import Cost
from weightdecay.records.tables import export
from weightdecay.results import Estimate, TransferRegret, doubts, landscapes, read_points
from weightdecay.results.column_names import ROLES
from weightdecay.site import advised, page_landscapes
from weightdecay.site.answers import answers
from weightdecay.sweeps import Store

pytestmark = pytest.mark.cpu("what is printed of finished runs does not depend on the device")
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "landscape.md").read_text("utf-8")
TRUTH = Truth(s=0.0, zero=True)
COUPLED = Truth(s=1.0, decays=11)


def some_runs(seeds: int = 3, **config: Any) -> list[Run]:
    """Return the runs of an AdamW whose knobs are separate, with a little noise."""
    noise: dict[str, Any] = {"examples": 10_000, "spread": 0.003}
    splits = measured(TRUTH.errors(), seeds, np.random.default_rng(0), **noise)
    return runs_of(TRUTH, splits, **config)


def stored(runs: list[Run], folder: Path = Path("sweep"), *, done: int | None = None) -> Path:
    """Make a sweep's folder, of which so many planned cells are done."""
    store = Store(folder)
    store.ask_for({run.config.identity: run.config for run in runs})
    with store.writing(workers=1) as writer:
        writer.results((run, Cost(run.config.identity, 1.0, 1, 1)) for run in runs[:done])
    return folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["landscape", *words]) == status
    return capsys.readouterr().out


def test_a_sweep_says_what_to_use_and_what_to_do_with_the_knobs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored(some_runs())
    out = told(capsys, "sweep")
    assert out.startswith("AdamW, cosine annealing: 56 settings, 168 runs, 3 seeds\n  use    α = 0")
    joined = " ".join(out.split())
    assert "If you multiply α by 4, leave λ as it is. That divides torch's weight_decay, " in joined
    assert "the same decay: λ_norm = " in joined
    assert "chosen on validation; without decay: " in joined
    assert "In brackets: 95 % intervals." in joined
    assert max(map(len, out.splitlines())) <= 96


def test_a_table_says_the_same_as_the_sweep_it_was_exported_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = some_runs()
    stored(runs)
    export(Store("sweep").runs(), Path("runs.csv"))
    assert told(capsys, "runs.csv") == told(capsys, "sweep")


def test_an_export_needs_no_convention(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [*some_runs(), *some_runs(way="l2")]
    export(runs, Path("runs.csv"))
    named = ["--convention=torch", "--column=decay=weight_decay"]  # read so, λ would be λ · α
    for options in (["--convention=paper"], ["--metric=error"], named):
        assert main(["landscape", "runs.csv", *options]) == 2
        said = capsys.readouterr().err
        assert "runs.csv was written by `weightdecay export`" in said
        assert "Drop --convention and the other options: they are for tables made" in said
    foreign = Path("foreign.csv")
    foreign.write_text("lr,weight_decay,decay,test_error\n0.1,0.1,0.2,0.3\n")
    assert main(["landscape", str(foreign), "--convention", "paper"]) == 2
    assert "One column must be the decay" in capsys.readouterr().err


def a_table(settings: Sequence[tuple[float, float]], path: str = "mine.csv") -> str:
    """Write a table of torch's AdamW with three seeds, best at lr 2^-8 and a λ of 2^-12."""
    noise = np.random.default_rng(0)
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["lr", "weight_decay", "seed", "test_error"])
        for lr, torchs in settings:
            x, z = math.log2(lr) + 8, math.log2(lr * torchs) + 12
            for seed in range(3):
                error = 0.2 + 0.01 * x**2 + 0.01 * z**2 + noise.normal(0, 0.002)
                writer.writerow([lr, torchs, seed, error])
    return path


RATES = [2.0**a for a in range(-11, -4)]


def test_what_to_use_comes_first_in_the_convention_of_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = a_table([(lr, 2.0**b) for lr in RATES for b in range(-8, 0)])
    first, second = told(capsys, mine, "--convention", "torch").splitlines()[1:3]
    ends = r"(0\.\d+) \((0\.\d+) to (0\.\d+)\)"
    use = re.fullmatch(rf"  use    α = {ends}, torch's weight_decay = {ends}", first)
    assert use is not None
    lr, _, _, best, low, high = map(float, use.groups())
    assert low < best < high
    assert best == pytest.approx(2**-4, rel=0.3)
    same = re.fullmatch(r"\s+the same decay: λ = (\S+) \((\S+) to (\S+)\)", second)
    assert same is not None
    for raw, torchs in zip(map(float, same.groups()), (best, low, high), strict=True):
        assert raw == pytest.approx(lr * torchs, rel=0.01)
    # In λ, as the file could have been read, nothing changes.
    first = told(capsys, mine, "--convention", "l2").splitlines()[1]
    assert ", L2 factor λ = " in first
    [scape] = landscapes(read_points(mine, convention="torch"))
    [one] = advised([scape], doubts([]))
    card = re.sub(r"<[^>]+>", " ", answers(page_landscapes([one], [], doubts([]))))
    ends = r"\s+\S+ to \S+ is nearly as good"
    [at] = [found.start() for found in re.finditer(rf"torch&#x27;s weight_decay\s+\S+{ends}", card)]
    assert at < card.index("weight decay λ")


@pytest.mark.parametrize(
    ("settings", "same", "added"),
    [
        ([(lr, 0.125) for lr in RATES], "decay", "torch's weight_decay = 2^-4, 2^-5: below"),
        ([(2**-8, 2.0**b) for b in range(-7, 0)], "learning rate", "lr = 2^-9, 2^-10: below"),
    ],
)
def test_of_runs_that_vary_one_knob_it_is_said_that_the_other_is_to_be_varied(
    settings: list[tuple[float, float]],
    same: str,
    added: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = " ".join(told(capsys, a_table(settings), "--convention", "torch").split())
    assert f"regret unknown: All runs have the same {same} knobs" in out
    assert f"All runs have the same {same}, so they do not show how the best λ moves with α." in out
    assert f"add {added} the lowest of the grid" in out
    assert "above the highest of the grid" in out
    assert "changed together" not in out


def test_the_interval_of_a_loss_has_as_many_digits_as_the_loss(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = Path(a_table([(lr, 2.0**b) for lr in RATES for b in range(-8, 0)]))
    rows = [line.split(",") for line in mine.read_text("utf-8").splitlines()[1:]]
    losses = [",".join([*row[:3], str(float(row[3]) - 0.199)]) for row in rows]
    Path("loss.csv").write_text("\n".join(["lr,wd,seed,val_loss", *losses]), "utf-8")
    line = told(capsys, "loss.csv", "--convention", "torch").splitlines()[3]
    found = re.search(r"loss   (\S+) on the validation set \[(\S+), (\S+)\]", line)
    assert found is not None
    value, low, high = (float(one.replace("−", "-")) for one in found.groups())
    assert low < value < high


def test_ranges_of_a_random_search_are_not_promised_to_hold_95_percent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """docs/landscape.md has how often they held the best values."""
    random = np.random.default_rng(1)
    mine = a_table([(2 ** random.uniform(-11, -5), 2 ** random.uniform(-8, 0)) for _ in range(40)])
    joined = " ".join(told(capsys, mine, "--convention", "torch").split())
    shares = [
        float(share)
        for row in re.findall(r"^\|.*scattered \|.*$", PAGE, re.MULTILINE)
        for share in re.findall(r"\| (\d+)% \| (\d+)% \|$", row)[0]
    ]
    said = f"(they did in {min(shares):g} to {max(shares):g} % of simulations). In brackets: 95 %"
    assert said in joined
    [scape] = landscapes(read_points(mine, convention="torch"))
    [one] = advised([scape], doubts([]))
    card = answers(page_landscapes([one], [], doubts([])))
    assert f"they did in {min(shares):g} to" in card


def test_landscapes_are_told_apart_by_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    coupled = runs_of(COUPLED, exact(COUPLED.errors()), way="l2", epochs=5)
    stored([*some_runs(), *coupled, *some_runs(epochs=5)])
    out = told(capsys, "sweep")
    assert "\nAdamW, cosine annealing, epochs 10: " in f"\n{out}"
    assert "\nAdamW, cosine annealing, epochs 5: " in out
    assert "divide λ by 4, which keeps λ·α." in " ".join(out.split())
    assert out.index("Adam, cosine") < out.index("AdamW, cosine")


def test_a_sweep_over_budgets_says_how_the_decay_moves_and_how_to_carry_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs: list[Run] = []
    random = np.random.default_rng(0)
    for epochs, moved in ((10, 1.0), (40, 0.0), (160, -1.0)):
        truth = replace(COUPLED, s=0.0, curvature=0.02, centre=(0.0, moved))
        splits = measured(truth.errors(), 3, random, examples=10_000, spread=0.003)
        runs += [
            Run(run.config, (replace(run.last, updates=40 * epochs),))
            for run in runs_of(truth, splits, epochs=epochs)
        ]
    stored(runs)
    joined = " ".join(told(capsys, "sweep").split())
    law = r"AdamW, cosine annealing, over epochs: λ\* ∝ epochs\^−e at a fixed α, e = (0\.\d\d) \["
    along = r"\. Along the ridge, where each has its own best α, e = (0\.\d\d) \["
    exponents = [found for [found] in (re.findall(law, joined), re.findall(along, joined))]
    assert [*map(float, exponents)] == pytest.approx([0.5, 0.5], abs=0.08)
    assert "To carry λ to more updates N, keep λ√N: it cost " in joined
    assert " for λ·N" in joined
    alone = " ".join(told(capsys, str(stored(some_runs(), Path("one")))).split())
    assert "over epochs" not in alone


def test_a_quiet_landscape_has_no_legend_and_does_not_say_what_it_wrote(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored(some_runs())
    whole = told(capsys, "sweep")
    quiet = told(capsys, "sweep", "--quiet", "--out", "written")
    assert whole.startswith(quiet.rstrip("\n") + "\n\n")
    assert (Path("written") / "cells.csv").is_file()


def test_json_has_every_number_and_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    stored(some_runs(seeds=1))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(told(capsys, "sweep", "--json"), parse_constant=refuse)
    assert set(found) == {"source", "complete", "columns", "notes", "doubts", "landscapes", "tuner"}
    assert found["columns"] is found["tuner"] is None
    [one] = found["landscapes"]
    advice = one["recommendation"]
    assert one["settings"] == one["runs"] == 56
    assert advice["lr"]["low"] < advice["lr"]["value"] < advice["lr"]["high"]
    assert advice["torch_weight_decay"]["value"] == pytest.approx(
        advice["weight_decay"]["value"] / advice["lr"]["value"]
    )
    assert advice["normalized_decay"]["value"] == pytest.approx(
        advice["weight_decay"]["value"] * 20
    )
    assert advice["test_error"]["low"] is None
    assert (advice["tied"], advice["l2"], advice["rule"]) == (None, None, 0.0)
    assert advice["sentence"].startswith("If you multiply α by 4, leave λ as it is.")
    assert advice["may_stay"] == "yes"


def test_values_to_add_say_whether_the_best_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    stored([run for run in some_runs() if (run.config.weight_decay or 0) < 2**-11])
    [one] = json.loads(told(capsys, "sweep", "--json"))["landscapes"]
    [added] = one["recommendation"]["add"]
    assert {*added} == {"knob", "beyond", "values", "best_is_near"}
    assert (added["knob"], added["beyond"], added["best_is_near"]) == ("decay", "highest", True)


def test_every_key_of_the_json_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    stored(some_runs())
    found = json.loads(told(capsys, "sweep", "--json"))
    [one] = found["landscapes"]
    for key in (*found, *one, *one["recommendation"], *one["lowest_cell"], "best_is_near"):
        assert f"`{key}`" in PAGE, key


def test_out_has_a_picture_a_page_and_a_table_of_all_cells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    stored(some_runs())
    out = told(capsys, "sweep", "--out", "a/b")
    names = {"figure.png", "figure.svg", "figure.pdf", "report.html", "cells.csv", "regret.csv"}
    assert {path.name for path in Path("a/b").iterdir()} == names
    assert "Wrote figure.png, " in out
    assert out.endswith(" to a/b.\n")
    page = Path("a/b/report.html").read_text("utf-8")
    assert "If you multiply α by 4, leave λ as it is." in page
    assert "The claims are those of" not in page
    with Path("a/b/cells.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 56
    for row in rows:
        assert float(row["torch_weight_decay"]) == float(row["decay"]) / float(row["lr"])
        assert float(row["normalized_decay"]) == pytest.approx(20 * float(row["decay"]))
    lowest = min(rows, key=lambda row: float(row["score"]))
    assert lowest["tied"] == "true"
    [scape] = embedded_in(page)["landscapes"]
    assert len(scape["moves"]) > 2
    with Path("a/b/regret.csv").open(encoding="utf-8", newline="") as file:
        costs = list(csv.DictReader(file))
    assert len(costs) == 6 * (1 + 4)  # rules × the mean and each pair of learning rates
    means = {float(row["s"]): row for row in costs if not row["tuned_at"]}
    assert float(means[0.0]["low"]) < 0.002 < float(means[1.0]["cost"])
    assert float(means[1.0]["low"]) < float(means[1.0]["cost"]) < float(means[1.0]["high"])
    assert [s for s, row in means.items() if row["tied"] == "true"] == [0.0]
    assert math.isclose(float(lowest["test_error"]), 0.3, abs_tol=0.02)


def test_a_sweep_that_is_half_done_says_so_and_recommends_by_what_there_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = some_runs()
    stored(runs, done=len(runs) // 2)
    out = told(capsys, "sweep")
    assert "Done so far: 84 of 168 planned cells." in out
    assert "  use    α = " in out


def test_no_seeds_are_asked_for_once_fresh_seeds_have_decided_on_a_rule() -> None:
    truth = replace(TRUTH, rates=5)
    splits = measured(truth.errors(), 2, np.random.default_rng(1), spread=0.02, examples=500)
    [scape] = landscapes(runs_of(truth, splits))
    costs = {s: Estimate(abs(s), abs(s), abs(s)) for s in (-1.0, 0.0, 1.0)}
    fresh = TransferRegret(costs, tied=(0.0,), seeds=4, fresh=True)
    [before], [after] = (
        advised([scape], doubts([], []), judged) for judged in ({}, {scape.config: fresh})
    )
    assert before.advice is not None
    assert before.advice.repeat is not None
    assert after.advice is not None
    assert after.advice.knobs.rule == 0
    assert after.advice.repeat is None


def test_budgets_are_sorted_by_their_numbers() -> None:
    runs = [run for epochs in (16, 8, 128) for run in some_runs(1, epochs=epochs)]
    found = advised(landscapes(runs), doubts(runs, []))
    assert [int(re.findall(r"\d+", one.title)[-1]) for one in found] == [8, 16, 128]


def test_what_was_left_out_is_said_and_makes_the_status_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = stored(some_runs())
    [log] = (folder / "log").glob("*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:1], lines[1].replace(b"test", b"text", 1), *lines[2:]]))
    out = told(capsys, "sweep", status=1)
    assert "Line 2 of 000001.jsonl is left out" in out


def test_a_landscape_without_a_decay_or_without_a_survivor_says_what_to_train(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored([run for run in some_runs() if run.config.weight_decay == 0])
    assert "No run had a decay above 0. Train some that have one." in told(capsys, "sweep")
    if find_spec("matplotlib"):
        told(capsys, "sweep", "--out", "written")
        page = Path("written/report.html").read_text("utf-8")
        assert "No run had a decay above 0." in text_of(page)
        assert "diverged" not in text_of(page)
    shutil.rmtree("sweep")
    diverged = [
        Run(run.config, tuple(_diverged(record) for record in run.records)) for run in some_runs()
    ]
    stored(diverged)
    assert "All runs with a decay diverged. Try a smaller decay" in told(capsys, "sweep")


@pytest.mark.skipif(not find_spec("matplotlib"), reason="it draws")
def test_what_leads_out_of_the_grid_between_two_rates_costs_at_least_so_much(
    capsys: pytest.CaptureFixture[str],
) -> None:
    truth = Truth(s=0.0, decays=5, centre=(0.0, 0.5))
    stored(runs_of(truth, exact(truth.errors())))
    told(capsys, "sweep", "--out", "page")
    with Path("page/regret.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["tuned_at"] and row["s"] == "1.0"]
    for row in rows:
        falls = float(row["used_at"]) < float(row["tuned_at"])
        assert row["out_of_grid"] == str(falls).lower()
    [scape] = embedded_in(Path("page/report.html").read_text("utf-8"))["landscapes"]
    for move in scape["moves"]:
        least = [text.startswith("≥") for text in move["costTexts"]]
        assert least == [bool(beyond) for beyond in move["beyond"]]
    assert sum(sum(move["beyond"]) for move in scape["moves"]) > 2
    [one] = json.loads(told(capsys, "sweep", "--json"))["landscapes"]
    for pair in one["recommendation"]["costs_by_pair"]:
        assert (1.0 in pair["rules_out_of_grid"]) == (pair["used_at"] < pair["tuned_at"])


@pytest.mark.skipif(not find_spec("matplotlib"), reason="it draws")
def test_each_metric_has_a_figure_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep may have two tasks, and one scale of colours cannot show both errors and losses."""
    bits = [
        Run(run.config, (replace(run.last, metric="bits"),))
        for run in some_runs(task="text", model="transformer")
    ]
    stored([*some_runs(), *bits])
    told(capsys, "sweep", "--out", "written")
    figures = {path.name for path in Path("written").glob("*.png")}
    assert figures == {"figure.png", "figure-2.png"}
    page = Path("written/report.html").read_text("utf-8")
    assert list(embedded_in(page)["scales"]["test"]) == ["", "bits"]


def test_if_some_runs_of_every_setting_diverged_not_all_are_said_to_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored(
        [
            run if run.config.seed else Run(run.config, tuple(map(_diverged, run.records)))
            for run in some_runs()
        ]
    )
    said = told(capsys, "sweep")
    assert "Some run of every setting with a decay diverged. Try a smaller decay" in said
    assert "All runs" not in said


def _diverged(record: Any) -> Any:
    return replace(record, diverged=True)


def _empty() -> None:
    stored(some_runs(), done=0)


def _no_sweep() -> None:
    Path("sweep").mkdir()


def _around() -> None:
    stored(some_runs(), Path("sweep/inner"))


def _another_table() -> None:
    Path("sweep").write_text("lr,weight_decay\n")
    Path("sweep").rename("table.csv")


def _damaged() -> None:
    export(some_runs()[:1], Path("runs.csv"))
    text = Path("runs.csv").read_text("utf-8")
    Path("runs.csv").write_text(text.replace(",lr,", ",rate,", 1), "utf-8")


@pytest.mark.parametrize(
    ("make", "source", "words"),
    [
        (_empty, "sweep", "must have a finished run, and has none yet. `weightdecay status sweep`"),
        (_no_sweep, "sweep", "is not a sweep folder: it has no log. `weightdecay sweep"),
        (_around, "sweep", "It contains sweep folders: sweep/inner. Name one of them."),
        (_no_sweep, "nothing", "nothing does not exist. Give the folder of a sweep, or a CSV or"),
        (_another_table, "table.csv", "was not written by `weightdecay export`, so say what its d"),
        (_damaged, "runs.csv", "line 1: An export must have the columns of a run, got no lr, unk"),
    ],
)
def test_a_source_that_cannot_be_read_is_told_with_a_cure(
    make: Any, source: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make()
    assert main(["landscape", source]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.skipif(
    not (ROOT / "results").is_dir(), reason="a source distribution has no committed results"
)
def test_the_documented_example_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, str(ROOT / "results" / "cifar10-small" / "figure-2"))
    assert f"```\n$ weightdecay landscape results/cifar10-small/figure-2\n{out}```\n" in PAGE


@pytest.mark.parametrize("locale", ["ascii", pytest.param("cp1252", marks=pytest.mark.slow)])
def test_it_is_told_in_any_encoding(locale: str) -> None:
    stored(some_runs())
    assert "  use    alpha = " in said(locale, *PLAIN, "landscape", "sweep")
    found = json.loads(said(locale, *PLAIN, "landscape", "sweep", "--json"))
    assert "leave λ" in found["landscapes"][0]["recommendation"]["sentence"]


def elsewhere(path: Path, *, count: int = 200) -> None:
    """Write a random search whose best is α = 0.003, λ = 0.0005 = α · 1/6, with s = 0."""
    chance = np.random.default_rng(3)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "learning_rate", "wd", "test_accuracy"])
        for number in range(count):
            lr, decay = 10 ** chance.uniform(-4, -1.5), 10 ** chance.uniform(-5, -2)
            x, z = math.log2(lr / 0.003), math.log2(decay / 0.0005)
            error = 0.10 + 0.004 * x**2 + 0.006 * z**2 + chance.normal(0, 0.004)
            writer.writerow([f"run {number}", lr, decay / lr, 100 * (1 - error)])


@pytest.mark.slow
def test_a_random_search_made_elsewhere_gets_picture_setting_and_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    elsewhere(Path("runs.csv"))
    out = told(capsys, "runs.csv", "--convention", "torch", "--out", "page")
    joined = " ".join(out.split())
    assert "If you multiply α by 4, divide weight_decay by 4. For λ, which is α ·" in joined
    assert (
        "that means: leave λ as it is. The interval of s excludes keeping λ/α and keeping λ·α."
        in joined
    )
    assert {path.name for path in Path("page").iterdir()} >= {"figure.png", "report.html"}
    [found] = json.loads(told(capsys, "runs.csv", "--convention", "torch", "--json"))["landscapes"]
    assert found["recommendation"]["lr"]["value"] == pytest.approx(0.003, rel=0.2)
    assert found["recommendation"]["weight_decay"]["value"] == pytest.approx(0.0005, rel=0.2)


def test_a_table_made_elsewhere_must_say_how_it_states_its_decay(
    capsys: pytest.CaptureFixture[str],
) -> None:
    elsewhere(Path("runs.csv"), count=20)
    for words in ([], ["--column", "lr=learning_rate"]):
        assert main(["landscape", "runs.csv", *words]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 4
        assert max(map(len, lines)) <= 96
        assert [line.split(":")[0] for line in lines[1:]] == [
            "  --convention torch",
            "  --convention paper",
            "  --convention l2",
        ]
        assert "--convention normalized: " in lines[3]
    assert main(["landscape", "runs.csv", "--convention", "torch", "--column", "lr"]) == 2
    assert "--column must be WHAT=NAME, as in lr=base_rate, got 'lr'." in capsys.readouterr().err


def grid_elsewhere(path: Path, *metrics: str) -> None:
    """Write a grid of one seed whose metrics are all the same error."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["learning_rate", "wd", *metrics])
        for x in range(-2, 3):
            for z in range(-2, 3):
                error = 0.10 + 0.004 * x**2 + 0.006 * z**2
                writer.writerow([0.003 * 2**x, 0.0005 * 2**z, *[error] * len(metrics)])


@pytest.mark.parametrize(
    ("metrics", "options", "line"),
    [
        (["test_error"], [], "error % on the test set, chosen on test"),
        (["val_error"], [], "error % on the validation set, chosen on validation"),
        (["error"], [], "error %, chosen on the same numbers"),
        (["val_error", "test_error"], [], "error % on the test set, chosen on validation"),
        (
            ["val_error", "test_error"],
            ["--choose-on", "test"],
            "error % on the test set, chosen on test",
        ),
        (["val_acc", "val_loss"], ["--metric", "loss"], "loss on the validation set, chosen on"),
        (
            ["error", "top5_error"],
            ["--column", "error=top5_error"],
            "error % top-5, chosen on the same numbers",
        ),
    ],
)
def test_what_is_printed_of_a_table_is_what_was_read_from_it(
    metrics: list[str], options: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    grid_elsewhere(Path("runs.csv"), *metrics)
    out = told(capsys, "runs.csv", "--convention", "paper", *options)
    [said] = [said for said in out.splitlines() if said.startswith(("  error", "  loss"))]
    kind, _, *words = said.replace("\N{NO-BREAK SPACE}", " ").split()
    assert " ".join([kind, *words]).replace(" ,", ",").startswith(line)
    if "test_error" not in metrics:
        assert "test" not in out


def test_the_columns_of_a_table_are_named_in_text_and_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid_elsewhere(Path("runs.csv"), "test_error")
    out = told(capsys, "runs.csv", "--convention", "paper")
    named = "lr=learning_rate, decay=wd, error=test_error (error, in fractions); no seed."
    assert f"\nColumns used: {named}\n" in out
    found = json.loads(told(capsys, "runs.csv", "--convention", "paper", "--json"))
    assert found["columns"] == {"lr": "learning_rate", "decay": "wd", "error": "test_error"}
    assert found["landscapes"][0]["tested_on"] == "test"


def test_a_page_of_a_validation_loss_has_no_word_of_a_test_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    grid_elsewhere(Path("runs.csv"), "val_loss")
    told(capsys, "runs.csv", "--convention", "paper", "--out", "page")
    page = Path("page/report.html").read_text("utf-8")
    assert list(embedded_in(page)["splits"].values()) == ["validation loss"]
    assert "test" not in text_of(page)


@pytest.mark.parametrize(
    ("head", "options", "words"),
    [
        ("eta,wd,error", [], "Name it: --column lr=NAME."),
        (
            "lr,wd,my score",
            ["--column", "error=my score"],
            "Pass --metric error, --metric accuracy",
        ),
        (
            "lr,wd,final",
            [],
            "Name it: --column error=NAME, --column accuracy=NAME or --column loss",
        ),
        ("lr,alpha,wd,error", [], "Name the right one: --column lr=lr."),
        ("lr,wd,acc,val acc", [], "Name it: --column 'error=val acc'."),
        ("lr,wd,error", ["--column", "rate=lr"], "--column must use lr, decay, seed, "),
        ("lr,wd,error", ["--column", "rate=lr"], "name it in --label."),
        (
            "lr,wd,error",
            ["--column", "lr=lr", "--column", "lr=wd"],
            "--column must name one column",
        ),
        ("lr,wd,error", ["--of", "error_top5"], "Name another: --column error=NAME."),
        ("lr,wd,val_error", ["--choose-on", "test"], '--choose-on must be "validation" for runs'),
    ],
)
def test_what_is_wrong_with_a_table_is_told_in_the_words_of_the_command_line(
    head: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["".join(f"0.{row}{at}," for at in range(head.count(",") + 1))[:-1] for row in (1, 2)]
    Path("runs.csv").write_text("\n".join([head, *rows]) + "\n", "utf-8")
    assert main(["landscape", "runs.csv", "--convention", "paper", *options]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert not [python for python in ("columns", "labels", "metric=", "unit=") if python in err]


def test_a_remark_on_a_table_is_told_in_the_words_of_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "params_lr,params_wd,params_depth,error\n0.1,0.1,2,0.3\n0.2,0.1,3,0.3\n"
    Path("runs.csv").write_text(text, "utf-8")
    out = told(capsys, "runs.csv", "--convention", "paper")
    assert "To separate runs by it, name it in --label." in " ".join(out.split())


def test_the_help_lists_all_that_a_column_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["landscape", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"WHAT is {', '.join(ROLES)}, or a common word" in said


def test_a_page_of_several_landscapes_counts_the_runs_of_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    grid_elsewhere(Path("runs.csv"), "test_error")
    head, *rows = Path("runs.csv").read_text("utf-8").splitlines()
    table = [f"{head},model", *(f"{row},{model}" for row in rows for model in ("mlp", "convnet"))]
    Path("runs.csv").write_text("\n".join(table), "utf-8")
    told(capsys, "runs.csv", "--convention", "paper", "--out", "page")
    page = Path("page/report.html").read_text("utf-8")
    found = embedded_in(page)["landscapes"]
    assert [sum(one["cells"]["seeds"]) for one in found] == [25, 25]
