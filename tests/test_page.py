"""`weightdecay report`: one file that says what `landscape` says, and runs nothing but itself."""

import base64
import csv
import hashlib
import json
import math
import re
from dataclasses import replace
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes import Truth, exact, measured, runs_of
from tests.pages import bare, embedded_in, text_of
from tests.test_cli_landscape import stored
from tests.test_results_splits import longer
from weightdecay.cli import main
from weightdecay.records import Run
from weightdecay.results import Curve
from weightdecay.results.landscape import Cell
from weightdecay.site.interactive import SCRIPTS, embedded
from weightdecay.site.page_curves import NUMBERS, curves_of, thinned

pytestmark = pytest.mark.cpu("a page of finished runs does not depend on the device")
BROWSER = files("weightdecay.site") / "browser"
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=\"alert(1)\">&amp;\u2028'\""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sweep(s: float = 0.0, seeds: int = 3, spread: float = 0.003, **config: Any) -> list[Run]:
    truth = Truth(s=s, zero=True, decays=9)
    noise: dict[str, Any] = {"examples": 10_000, "spread": spread}
    splits = measured(truth.errors(), seeds, np.random.default_rng(0), **noise)
    return [longer(run) for run in runs_of(truth, splits, **config)]


def with_twins() -> list[Run]:
    """Return runs of AdamW, and those of Adam without decay, which must agree with AdamW's."""
    runs = sweep()
    twins = [
        replace(run, config=replace(run.config, algorithm="adam", weight_decay=None, l2=0.0))
        for run in runs
        if run.config.weight_decay == 0
    ]
    return [*runs, *twins]


def written(*words: str, status: int = 0) -> str:
    assert main(["report", *words, "--out", "page.html"]) == status
    return Path("page.html").read_text("utf-8")


def rows(
    names: list[str], path: str = "runs.csv", lrs: tuple[float, ...] = (0.001, 0.002, 0.004)
) -> None:
    """Write somebody's table of a small grid for each model."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["lr", "weight_decay", "seed", "model", "val_error"])
        for name in names:
            for lr in lrs:
                for decay in (0.01, 0.02, 0.04):
                    off = math.log2(lr / 0.002) ** 2 + math.log2(decay / 0.02) ** 2
                    writer.writerow([lr, decay, 0, name, 0.2 + 0.01 * off])


def foreign(names: list[str]) -> str:
    rows(names)
    return written("runs.csv", "--convention", "torch", "--label", "model")


def test_the_page_says_what_the_landscape_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    stored(sweep())
    assert main(["landscape", "sweep", "--quiet"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    page = text_of(written("sweep"))
    heading, _, lines = told.partition(" use ")
    for line in re.split(r" (?:use|error|ties|s|regret|knobs) (?=[A-Zα-ωa-z0-9])", f" use {lines}"):
        assert line.strip() in page
    assert heading.partition(":")[0] in page
    assert "Change α and leave λ? Yes. If you multiply α by 4, leave λ as it is." in page


@pytest.mark.parametrize(
    ("s", "answer"),
    [(0.0, "Yes. If you multiply α by 4, leave λ"), (1.0, "No. If you multiply α by 4, divide λ")],
)
def test_the_first_answer_is_whether_one_knob_may_change_alone(s: float, answer: str) -> None:
    stored(sweep(s))
    page = text_of(written("sweep"))
    assert f"Change α and leave λ? {answer}" in page
    assert page.index("Change α and leave λ?") < page.index("Landscapes")
    said_below = re.search(r"torch's weight_decay λ/α = ([\d.]+)", page)
    assert said_below is not None
    assert f"torch's weight_decay {said_below[1]} " in page


def test_knobs_that_are_separate_in_torch_alone_say_so() -> None:
    """Whoever brings torch's weight_decay is told what to do with that."""
    page = text_of(foreign(["plain"]))
    assert "Change α and leave weight_decay? Yes. If you multiply α by 4, leave weight_d" in page
    assert "For λ, which is α · weight_decay, that means: multiply λ by 4 too." in page


def test_runs_that_decide_nothing_say_so() -> None:
    rows(["plain"], lrs=(0.002,))
    page = text_of(written("runs.csv", "--convention", "torch"))
    assert "Change α and leave weight_decay? Not decided. These runs do not decide what" in page
    assert "The best run: no surface could be fitted." in page


def test_a_landscape_without_advice_says_what_to_train() -> None:
    runs = [run for run in sweep() if run.config.weight_decay == 0]
    stored(runs)
    page = written("sweep")
    assert "No run had a decay above 0." in text_of(page)
    [scape] = embedded_in(page)["landscapes"]
    assert (scape["advice"], scape["moves"]) == (None, [])


def test_every_cell_is_in_the_page_with_its_errors_and_its_curve() -> None:
    runs = sweep()
    stored(runs)
    data = embedded_in(written("sweep"))
    [scape] = data["landscapes"]
    assert list(data["splits"]) == ["test", "validation", "training"]
    cells = scape["cells"]
    assert len(cells["decay"]) == len(runs) / 3
    at = next(k for k, decay in enumerate(cells["decay"]) if decay > 0)
    lr, decay = scape["lrs"][cells["lr"][at]], cells["decay"][at]
    own = [
        run.last.test_error or math.nan
        for run in runs
        if math.isclose(run.config.lr, lr, rel_tol=1e-5)
        and math.isclose(run.config.weight_decay or 0, decay, rel_tol=1e-5)
    ]
    assert (len(own), cells["seeds"][at]) == (3, 3)
    assert scape["splits"]["test"]["values"][at] == pytest.approx(100 * np.mean(own), rel=1e-5)
    assert scape["splits"]["test"]["texts"][at] == f"{100 * np.mean(own):.2f}\N{NO-BREAK SPACE}%"
    middle, _low, _high = scape["curves"]["rows"]["test"][at]
    assert scape["curves"]["epochs"] == [3, 6, 10]
    assert middle[-1] == pytest.approx(100 * np.median(own), rel=1e-3)


def test_torchs_axis_has_an_s_that_is_larger_by_one() -> None:
    stored(sweep())
    [scape] = embedded_in(written("sweep"))["landscapes"]
    assert scape["ways"] == ["weight_decay", "normalized_decay", "torch"]
    ours, theirs = (
        [float(one.replace("−", "-")) for one in re.findall(r"[−\d.]+", scape["advice"]["s"][way])]
        for way in ("paper", "torch")
    )
    assert theirs == pytest.approx([one + 1 for one in ours], abs=0.011)


def test_l2_has_one_convention() -> None:
    truth = Truth(s=1.0, decays=11)
    stored(runs_of(truth, exact(truth.errors()), way="l2"))
    [scape] = embedded_in(written("sweep"))["landscapes"]
    assert scape["ways"] == ["l2"]
    assert list(scape["cells"]["texts"]) == ["l2"]


def test_landscapes_share_one_scale_of_colours() -> None:
    stored([*sweep(), *sweep(1.0, model="other")])
    data = embedded_in(written("sweep"))
    values = [x for one in data["landscapes"] for x in one["splits"]["test"]["values"]]
    assert data["scales"]["test"][""]["low"] == min(values)
    assert list(data["scales"]["test"]) == [""]


def test_budgets_are_in_the_order_of_their_amounts() -> None:
    runs = [run for epochs in (30, 100, 9) for run in sweep(epochs=epochs)]
    stored(runs)
    data = embedded_in(written("sweep"))
    assert data["budgets"] == [{"factor": "epochs", "values": ["9", "30", "100"]}]
    titles = {one["title"]: one["budget"]["epochs"] for one in data["landscapes"]}
    assert [at for name, at in titles.items() if "epochs 100" in name] == [2]


def test_hostile_names_do_nothing() -> None:
    page = foreign([HOSTILE, "plain"])
    assert page.count("<script>") == 2
    assert bare(page).count("<script") == 3
    assert "<img" not in bare(page)
    assert HOSTILE not in page
    assert HOSTILE.replace("\u2028", " ") in unescape(page).replace("\u2028", " ")
    titles = [one["title"] for one in embedded_in(page)["landscapes"]]
    assert any(HOSTILE in title for title in titles)


@pytest.mark.parametrize("name", ["<!--", "]]>", "\ud800", "\u2028", "&lt;", "</SCRIPT >"])
def test_embedded_data_are_plain_ascii_that_html_gives_no_meaning(name: str) -> None:
    text = embedded({name: [name, 1.5, None]})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {name: [name, 1.5, None]}


def test_a_file_name_that_is_no_text_is_written_all_the_same() -> None:
    rows(["plain"], path="plain.csv")
    odd = Path("od\udcffd.csv")
    Path("plain.csv").rename(odd)
    assert main(["report", str(odd), "--convention", "torch", "--out", "page.html"]) == 0
    assert "&#56575;" in Path("page.html").read_text("utf-8")


def test_only_the_pages_own_scripts_and_style_may_run_and_nothing_is_fetched() -> None:
    page = foreign(["plain"])
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(one.strip().partition(" ")[::2] for one in policy.split(";"))
    assert rules["default-src"] == "'none'"
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert rules["script-src"].split() == [f"'sha256-{one}'" for one in hashes]
    [style] = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert rules["style-src-elem"] == f"'sha256-{digest}'"
    assert rules["img-src"] == "data: blob:"
    assert not re.search(
        r"<(?:link|iframe|object|embed|base)\b|<[^>]+\s(?:src|href|on\w+)=", bare(page)
    )


def test_the_vendored_library_is_the_one_that_its_table_names() -> None:
    table = (BROWSER / "vendor" / "README.md").read_text("utf-8")
    library = (BROWSER / "vendor" / "echarts.min.js").read_bytes()
    assert f"| sha256 | {hashlib.sha256(library).hexdigest()} |" in table
    [version] = re.findall(r"\| version \| (\S+) \|", table)
    assert f'.version="{version}"'.encode() in library
    assert (BROWSER / "vendor" / "echarts.LICENSE").read_text("utf-8").count("Apache License") > 1


def test_every_script_of_the_folder_is_in_the_page() -> None:
    assert {one.name for one in BROWSER.iterdir() if one.name.endswith(".js")} == set(SCRIPTS)
    page = foreign(["plain"])
    for name in SCRIPTS:
        assert (BROWSER / name).read_text("utf-8") in page


def test_a_table_without_epochs_has_no_curves() -> None:
    [scape] = embedded_in(foreign(["plain"]))["landscapes"]
    assert scape["curves"] is None
    assert len(scape["cells"]["decay"]) == 9


def test_many_curves_are_thinned_to_a_few_megabytes_and_keep_their_ends() -> None:
    count, epochs = 10_000, tuple(map(float, range(1, 201)))
    line = (0.123456,) * len(epochs)
    cell = Cell(0.1, 0.01, seeds=(0, 1), chosen=(0.1, 0.1), tested=(0.1, 0.1))
    found = curves_of(
        [cell], {(0.1, 0.01): {"test": Curve("test", epochs, line, line, line)}}, None, count
    )
    assert found is not None
    assert (found["epochs"][0], found["epochs"][-1], found["of"]) == (1, 200, 200)
    assert len(found["epochs"]) * 3 * count <= NUMBERS
    [[middle, _, _]] = found["rows"]["test"]
    assert middle[0] == 12.35
    assert thinned([1, 2, 3], 5) == [1, 2, 3]


def test_the_picture_says_in_words_what_it_shows() -> None:
    stored(sweep())
    [scape] = embedded_in(written("sweep"))["landscapes"]
    assert "test error of 70 settings over learning rate and decay. Use α = 0" in scape["words"]
    assert "leave λ as it is" in scape["words"]


@pytest.mark.parametrize("noise", [0.003, 3.0])
def test_a_card_says_how_many_settings_are_as_good_as_the_terminal_does(
    noise: float, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(sweep(spread=noise))
    assert main(["landscape", "sweep"]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    said = re.findall(r" ties (.*) s s ", lines)[0]
    card = text_of(written("sweep")).partition("All numbers")[0]
    assert f"{said[0].upper()}{said[1:]}." in card
    assert ("any of them will do" in card) == (noise > 1)
    assert card.count("do not differ by more than noise") == (noise > 1)


@pytest.mark.parametrize("cut", [True, False])
def test_a_card_says_so_if_the_best_may_lie_beyond_the_trained_settings(cut: bool) -> None:
    stored([run for run in sweep() if not cut or (run.config.weight_decay or 0) < 2**-11])
    card = text_of(written("sweep")).partition("All numbers")[0]
    said = "The best may lie beyond these settings. Add weight_decay = 2^-11, 2^-10: above the hig"
    assert (said in card) == cut
    assert ("may lie beyond" in card) == cut


def test_the_page_says_why_the_setting_to_use_may_lie_beside_the_ridge() -> None:
    stored(sweep())
    said = embedded_in(written("sweep"))["aboutMarks"]
    assert said.startswith("◆ is the setting to use: where all runs together predict the lowest")
    assert "○ is the best λ at one α, by the test errors around it at that α alone" in said
    assert said.endswith("◆ was chosen on validation, so it need not lie on the ○ of its α.")
    rows(["plain"], lrs=(0.002,))
    few = embedded_in(written("runs.csv", "--convention", "torch"))["aboutMarks"]
    assert few == "◆ is the setting to use: that of the best run."


def test_a_page_says_what_its_runs_were_trained_on_as_far_as_they_agree() -> None:
    stored(sweep())
    config = sweep()[0].config
    about = f"Trained on {config.task} with {config.model}, {config.epochs} epochs, batch size "
    assert f"{about}{config.batch}." in text_of(written("sweep"))
    others = [replace(run, config=replace(run.config, batch=999)) for run in sweep()]
    stored([*sweep(), *others])
    said = text_of(written("sweep"))
    assert f"Trained on {config.task} with {config.model}, {config.epochs} epochs." in said
    assert "Trained" not in text_of(foreign(["plain"]))


def test_sentences_about_all_landscapes_leave_out_what_their_titles_share() -> None:
    runs = [
        *sweep(),
        *(replace(run, config=replace(run.config, algorithm="sgdw")) for run in sweep()),
    ]
    stored(runs)
    first = text_of(written("sweep")).partition("All numbers")[0]
    assert "leave λ as it is with AdamW and SGDW; in torch, divide weight_decay" in first
    assert "AdamW, cosine annealing learning rate α" in first


def test_the_page_shows_the_command_that_makes_it_again() -> None:
    rows(["plain"], path="my runs.csv")
    words = ["my runs.csv", "--convention", "torch", "--column", "error=val_error"]
    page = written(*words, "--label", "model", "--metric", "error")
    again = "weightdecay report 'my runs.csv' --out page.html --convention torch --metric error"
    assert embedded_in(page)["command"] == f"{again} --column error=val_error --label model"


def test_the_command_says_what_it_wrote_and_refuses_a_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows(["plain"])
    words = ["report", "runs.csv", "--convention", "torch"]
    assert main([*words]) == 0
    assert re.fullmatch(
        r"Wrote report\.html \(1\.\d MB\)\. Open it in a browser\.\n", capsys.readouterr().out
    )
    assert main([*words, "--json", "--out", "deep/page.html"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"file": "deep/page.html", "bytes": told["bytes"], "landscapes": 1}
    assert Path("deep/page.html").stat().st_size == told["bytes"]
    assert main([*words, "--out", "deep"]) == 2
    message = capsys.readouterr().err
    assert "--out must be a file to write, got the folder deep" in message
    assert "deep/report.html" in message


def test_the_same_runs_give_the_same_bytes() -> None:
    runs = sweep(seeds=2)
    stored(runs)
    assert written("sweep") == written("sweep")


def test_a_diverged_cell_is_kept_and_counted() -> None:
    runs = sweep(seeds=2)
    runs[-1] = replace(runs[-1], records=(replace(runs[-1].last, diverged=True),))
    stored(runs)
    [scape] = embedded_in(written("sweep"))["landscapes"]
    assert sum(scape["cells"]["diverged"]) == 1


def test_runs_that_must_agree_are_marked_with_how_far_apart_they_are() -> None:
    stored(with_twins())
    adam, adamw = embedded_in(written("sweep"))["landscapes"]
    for scape in (adam, adamw):
        for decay, words in zip(scape["cells"]["decay"], scape["cells"]["twin"], strict=True):
            assert words.startswith("has a twin: 0.00 points apart, and noise ") == (decay == 0)
