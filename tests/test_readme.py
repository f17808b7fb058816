"""The examples in README and docs run, and print what the pages show."""

import math
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import weightdecay
from benchmarks import report
from weightdecay.cli import main
from weightdecay.records import or_infinite
from weightdecay.sweeps import read_study

pytestmark = pytest.mark.cpu("a page is run as it stands, where no default device is set")
ROOT = Path(__file__).parents[1]
README, OPTIMIZERS = ROOT / "README.md", ROOT / "docs" / "optimizers.md"
CHOOSING = ROOT / "docs" / "choosing.md"
TEXT = README.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """Return a page's blocks of code in a language; "" is text."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


def test_the_docs_list_the_public_names() -> None:
    text = OPTIMIZERS.read_text("utf-8")
    assert not [name for name in weightdecay.__all__ if f"`{name}`" not in text]


def test_the_readme_links_every_page_of_the_docs() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+\.md)", TEXT))
    assert linked == {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "results").rglob("README.md")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        place, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = page.parent / place if place else page
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-") for name in headings}
            assert anchor in anchors, link


def test_the_advice_in_the_readme_is_that_of_the_docs() -> None:
    [shown] = blocks(README, "")
    assert shown in (ROOT / "docs" / "landscape.md").read_text("utf-8")


@pytest.mark.parametrize("page", [TEXT, (ROOT / "results/cifar10-small/README.md").read_text()])
def test_numbers_about_cifar10_are_those_that_were_judged(page: str) -> None:
    """Every number of test error is in a generated page, to as many digits as are shown."""
    generated = ("docs/reproduction.md", "results/cifar10-headline/long.md")
    known = "".join((ROOT / name).read_text("utf-8") for name in generated)
    judged = {float(number) for number in re.findall(r"\d+\.\d+", known)}
    _, _, rest = page.partition("figure-2/figure.png)\n")
    paragraph, _, _ = rest.partition("\n## ")
    shown = re.findall(r"\d+\.\d+", paragraph)
    assert len(shown) > 4
    for number in shown:
        digits = len(number.partition(".")[2])
        assert float(number) in {round(value, digits) for value in judged}, number


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return [found[0] for found in pattern.finditer(text)]


#: What a sentence on costs may name: methods, tasks and schedules, as headings and rows do.
NAMED = tuple(
    map(
        re.compile,
        (
            r"\b(?:Adam|AMSGrad|AdaGrad|RMSProp|SGD)W?\b",
            "cifar10|mnist1d|text",
            "step-drop|fixed learning rate",
        ),
    )
)


def _sentences_with_numbers(page: str) -> list[str]:
    """Return the sentences of a page that hold a number with a decimal point."""
    lines = re.sub(r"\n +", " ", page)
    sentences = re.split(r"(?<=[.:]) +(?=[A-Z])|\n+", lines)
    return [one for one in sentences if re.search(r"\d\.\d", one)]


def _rows(page: str) -> list[tuple[str, str]]:
    """Return the rows of tables, each after what it is about: its heading and its first cells."""
    told, heading = [], ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line
        elif line.startswith("|"):
            told.append((heading + "|".join(line.split("|")[:3]), line))
    return told


def test_what_rules_cost_is_what_the_generated_pages_say() -> None:
    """Every number with a decimal point is in a row on what its sentence names.

    It has as many digits as are shown, and the row's interval if it is shown with one. The page's
    own tables are generated too. Numbers of papers are not measured.
    """
    pages = [
        (ROOT / "docs" / name).read_text("utf-8").replace("CIFAR-10", "cifar10")
        for name in ("carrying.md", "reproduction.md")
    ]
    tables = re.compile(r"<!-- (\w+): .*?<!-- /\1 -->", re.DOTALL)
    prose = re.sub(r"\[arXiv[^]]*\]\([^)]*\)", "", tables.sub("", pages[0]))
    rows = [row for page in pages for row in _rows(page)]
    shown = re.compile(r"(−?\d+\.\d+)(?: points)?(?: (\[[^]]*\]))?")
    sentences = _sentences_with_numbers(prose)
    assert len(sentences) > 8
    for sentence in sentences:
        about = rows
        for names in NAMED:
            if wanted := set(names.findall(sentence)):
                about = [row for row in about if wanted & set(names.findall(row[0]))]
        known = shown.findall("\n".join(line for _, line in about))
        for number, interval in shown.findall(sentence):
            digits = len(number.partition(".")[2])
            assert any(
                round(_number(one), digits) == _number(number) and interval in {"", ends}
                for one, ends in known
            ), (number, sentence)


def test_the_safe_rule_costs_at_most_what_the_page_says() -> None:
    page = (ROOT / "docs" / "carrying.md").read_text("utf-8")
    [table] = re.findall(r"<!-- rates: .*?<!-- /rates -->", page, re.DOTALL)
    rows = [
        [_number(cell.strip(" *").partition(" ")[0]) for cell in line.split("|")[2:5]]
        for line in table.splitlines()
        if re.match(r"\| (AdamW|SGDW),", line)
    ]
    assert len(rows) == 6
    torch, root, paper = map(max, zip(*rows, strict=True))
    assert f"cost at most {root:g} points in these six cases" in re.sub(r"\s+", " ", page)
    assert f"Leaving λ alone cost up to {paper:g}, and keeping λ/α up to {torch:g}." in page


def test_exceptions_among_the_rules_cost_what_their_own_rules_cost() -> None:
    """Each number is that of the rule which the sentence names: λ/α first, then λ/√α, or λ."""
    page = " ".join((ROOT / "docs" / "carrying.md").read_text("utf-8").split())
    generated = (ROOT / "docs" / "reproduction.md").read_text("utf-8")

    def costs(figure: str, label: str) -> list[str]:
        _, _, chapter = generated.partition(f"\n## {figure}, text\n")
        chapter, _, _ = chapter.partition("\n## ")
        _, _, table = chapter.partition("| landscape | s = −1 | s = −0.5 | s = 0 |")
        [row] = [line for line in table.splitlines() if line.startswith(f"| {label},")]
        return [cell.strip() for cell in row.split("|")[2:5]]

    def values(figure: str, label: str) -> list[str]:
        return [cell.split()[0] for cell in costs(figure, label)]

    drops, fixed = (
        values("Figure 1", f"AdamW, {schedule}")
        for schedule in ("step-drop", "fixed learning rate")
    )
    assert f"λ/α is kept: that costs {drops[0]} points, and keeping λ/√α {drops[1]}." in page
    assert f"At a fixed learning rate they cost {fixed[0]} and {fixed[1]}, which these" in page
    both = [values("Conjecture", f"{name}, cosine annealing") for name in ("AdaGradW", "RMSPropW")]
    kept, root, _ = (" and ".join(one) for one in zip(*both, strict=True))
    both_cost = f"that costs {kept} points, and keeping λ/√α {root}."
    assert f"AdaGradW and RMSPropW on text do best if λ/α is kept as well: {both_cost}" in page
    figures = {"Adam": "Figure 1"}
    names = ("Adam", "AMSGrad", "AdaGrad", "RMSProp")
    l2, decoupled = (
        [
            (name, costs(figures.get(name, "Conjecture"), f"{name}{w}, cosine annealing")[2])
            for name in names
        ]
        for w in ("", "W")
    )
    first, *rest = (f"{name} {cost}" for name, cost in l2)
    alone = f"{first.replace(' [', ' points [')}, {', '.join(rest[:-1])} and {rest[-1]}"
    assert f"Leaving the factor alone costs {alone}, all up to noise." in page
    assert all("[−" in cost for _, cost in l2)
    less = [cost.split()[0] for _, cost in decoupled]
    assert f"costs their decoupled forms {', '.join(less[:-1])} and {less[-1]}." in page
    drops, fixed = (
        [values("Figure 1", f"{name}, {schedule}")[2] for name in ("Adam", "AdamW")]
        for schedule in ("step-drop", "fixed learning rate")
    )
    assert (
        f"With step-drops, it costs Adam and AdamW {' and '.join(drops)}, at a fixed learning rate "
        f"{' and '.join(fixed)}."
    ) in page


def _number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_a_csv_of_two_hundred_runs_is_advised_upon_as_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    [command] = re.findall(r"^weightdecay (landscape .*\.csv .*)$", TEXT, flags=re.MULTILINE)
    draw = random.Random(0)
    lines = ["lr,weight_decay,val_accuracy"]
    for _ in range(200):
        lr, decay = 10 ** draw.uniform(-4.3, -1.7), 10 ** draw.uniform(-3, 1)
        off = math.log10(lr / 0.0015) ** 2 + math.log10(lr * decay / 0.0004) ** 2
        lines.append(f"{lr},{decay},{89 - 2 * off + draw.gauss(0, 0.3)}")
    (tmp_path / "runs.csv").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0
    said = capsys.readouterr().out
    assert "  use    α = 0.001" in said
    assert "  knobs  If you multiply α by 4, divide weight_decay by 4." in said
    assert "that means: leave λ as it is." in " ".join(said.split())
    assert (tmp_path / "advice" / "figure.png").exists()
    assert (tmp_path / "advice" / "report.html").exists()
    executed("own-runs.md")
    assert "<200 points>" in capsys.readouterr().out


@pytest.mark.parametrize("block", blocks(OPTIMIZERS, "console"))
def test_a_command_prints_what_stands_under_it(
    block: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, shown = block.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "weightdecay"
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("first", "block"),
    [
        (page[0], block)
        for page in (blocks(one, "python") for one in (README, OPTIMIZERS, CHOOSING))
        for block in page
    ],
)
def test_the_python_lines_run_after_the_first_of_them(
    first: str,
    block: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(first, names)
    *typed, shown = re.split(r"^>>> (.*)\n", block, flags=re.MULTILINE)
    exec("\n".join(typed) or block, names)
    assert not typed or capsys.readouterr().out == shown


@pytest.mark.parametrize("page", report.texts(), ids=lambda page: page.parent.name)
def test_tables_of_measurements_are_those_of_the_committed_rows(page: Path) -> None:
    told = report.texts()[page]
    assert page.read_text("utf-8") == told, "`python -m benchmarks.report` brings it up to date"


def test_every_mark_of_a_table_is_filled() -> None:
    """A pair of marks that the report does not know would keep what was typed there."""
    for page, parts in report.tables().items():
        assert sorted(re.findall(r"<!-- /(.+) -->", page.read_text("utf-8"))) == sorted(parts)


def test_a_page_without_a_mark_is_refused() -> None:
    assert report.filled("a\n<!-- b -->\nc\n<!-- /b -->\nd", "b", "e").split() == [
        *("a", "<!--", "b", "-->", "e", "<!--", "/b", "-->", "d"),
    ]
    for text in ("", "<!-- b -->\n", "\n<!-- /b -->"):
        with pytest.raises(ValueError, match=r"must have the marks <!-- b --> and <!-- /b -->"):
            report.filled(text, "b", "e")


LOG = """\
# a comment about 7 kills
 1    25 kills (worker 2, coordinator 12, both 11) in  117 s: the same results
 0   {} kills (worker 9, coordinator 10, both 6) in  133 s: {}
{} kills in 2 sweeps of 36 cells.
"""


@pytest.mark.parametrize(
    ("kills", "result", "begins", "ends"),
    [
        (25, "the same results", "After 50 kills every one of 2 sweeps ended", "ran out before."),
        (975, "the same results", "After 1,000 kills every one of 2 sweeps ended", "for byte."),
        (25, "OTHER RESULTS", "After 50 kills 1 of 2 sweeps ended", "ran out before."),
    ],
)
def test_a_log_of_kills_is_counted(kills: int, result: str, begins: str, ends: str) -> None:
    said = report.kills(LOG.format(kills, result, kills + 25))
    assert said.startswith(begins)
    assert said.endswith(ends)


def test_faults_that_kill_nobody_are_counted_apart() -> None:
    log = (
        " 0    25 kills (worker 9) and    3 other faults (interrupt 2, suspended 1) in   90 s: {}\n"
        " 0     5 kills (worker 5) and    0 other faults (none) in    9 s: the same results\n"
    )
    said = report.kills(log.format("the same results"))
    assert said.startswith("After 30 kills and 3 other faults every one of 2 sweeps ended")
    said = report.kills(log.format("FAILED, coordinator 7 hangs in 3 s: the same results"))
    assert said.startswith("After 30 kills and 3 other faults 1 of 2 sweeps ended")


@pytest.mark.slow
def test_the_tasks_of_the_docs_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")
    spiral, wave, *python = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    [command] = re.findall(r"```sh\nweightdecay (.*?)\n```", page)
    (tmp_path / "spiral.py").write_text(spiral)
    (tmp_path / "wave_task.py").write_text(wave)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main([*shlex.split(command), "--epochs", "2"]) == 0
    assert list(tmp_path.glob("runs/*/log/*.jsonl"))
    names: dict[str, Any] = {}
    exec(compile("\n".join(python), "tasks.md", "exec"), names)
    runs = names["runs"]
    assert {run.config.task for run in runs} == {"wave_task:task"}
    assert {run.last.metric for run in runs} == {"absolute error"}
    assert len(names["others"]) == len(runs) == 6
    assert {run.last.metric for run in names["others"]} == {"squared error"}


def executed(page: str) -> dict[str, Any]:
    """Run the Python of a page of the docs, and return the names that it defines."""
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks(ROOT / "docs" / page, "python")), page, "exec"), names)
    return names


@pytest.mark.slow
def test_a_solution_is_used_as_the_docs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = executed("runs.md")
    error = weightdecay.runs.train(names["config"], folder="runs").last.test_error
    assert capsys.readouterr().out == f"tensor({error:.4f}) {error}\n"


@pytest.mark.parametrize(("page", "cells"), [("README.md", 126), ("docs/sweeps.md", 300)])
def test_the_study_that_is_shown_has_as_many_cells_as_is_said(
    page: str, cells: int, tmp_path: Path
) -> None:
    [study] = blocks(ROOT / page, "toml")
    (tmp_path / "study.toml").write_text(study)
    assert len(read_study(tmp_path / "study.toml")) == cells
    assert f" {cells}" in (ROOT / page).read_text("utf-8")


@pytest.mark.slow
def test_a_sweep_runs_as_the_docs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = executed("sweeps.md")
    runs = weightdecay.sweeps.Store("landscape").runs()
    assert len(runs) == len(names["cells"]) == 12
    best = names["best"]
    assert best.last.validation_error == min(or_infinite(run.last.validation_error) for run in runs)
    said = f"{best.config.algorithm} {best.config.lr} {best.last.test_error}\n"
    assert capsys.readouterr().out == said
    Path("landscape").rename("folder")
    executed("landscape.md")
    assert len(capsys.readouterr().out.splitlines()) == 2
