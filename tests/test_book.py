"""What the pages say is what the records say: no number in them is typed by hand."""

import html
import json
import math
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.landscapes import ended
from tests.pages import embedded_in
from weightdecay.number_format import number
from weightdecay.records import Run, RunConfig
from weightdecay.records.tables import export, imported
from weightdecay.results import Estimate, Exponent, TransferRegret
from weightdecay.results.transfer import RULES
from weightdecay.studies import STUDIES, Scale, costs, docs_writer, scale, studies_at
from weightdecay.studies.committed import found_in
from weightdecay.studies.findings import Findings, command, draw, find
from weightdecay.studies.formats import because, rule
from weightdecay.studies.landscape_numbers import numbers_of
from weightdecay.studies.page import tell
from weightdecay.studies.reasons import Missing, Quantity
from weightdecay.studies.scales import values
from weightdecay.studies.supplement import standard_epochs
from weightdecay.studies.tables import BRIEF, COLUMNS, carrying_table, table_of
from weightdecay.studies.verdict_json import as_json
from weightdecay.studies.verdicts import AS_GOOD, BETWEEN

for package in ("matplotlib", "pyarrow"):
    pytest.importorskip(package)
ROOT = Path(__file__).parents[1]
RESULTS, PAGE, README = ROOT / "results", ROOT / "docs" / "reproduction.md", ROOT / "README.md"
AT, TEXT = scale("mnist1d", "small"), scale("text", "small")


def run_of(cell: RunConfig) -> Run:
    """Return a run in a bowl: diagonal with L2, not without, and better."""
    noise = random.Random(cell.identity).gauss(0, 0.004)
    rate = math.log2(cell.lr) + (4 if "sgd" in cell.algorithm else 7)
    if cell.l2 is not None:
        off = math.log2(cell.l2) + 8 + rate if cell.l2 else 4
    else:
        off = math.log2((cell.weight_decay or 0) + 2**-20) + 8
    error = 0.3 + 0.04 * (cell.l2 is not None) + 0.006 * (off**2 + rate**2)
    error = min(error, 0.9) + noise
    return ended(cell, test_error=error, validation_error=error)


@pytest.fixture(scope="module")
def figure_2() -> list[Run]:
    return [run_of(cell) for cell in STUDIES["figure-2"].cells(AT)]


@pytest.fixture(scope="module")
def committed() -> tuple[str, str]:
    return docs_writer.texts(RESULTS, README.read_text("utf-8"))


def test_runs_of_a_task_whose_data_have_changed_are_left_out(
    figure_2: list[Run], tmp_path: Path
) -> None:
    """Their names are not those that their configurations have now."""
    table = tmp_path / AT.folder / "records.parquet"

    def judged() -> set[str]:
        return {found.study.name for found, _ in found_in(tmp_path) if found.runs}

    export(figure_2, table)
    assert "figure-2" in judged()
    old = [
        replace(run, records=(replace(run.last, run=f"old{n}"),)) for n, run in enumerate(figure_2)
    ]
    export(old, table)
    assert not judged()


def test_a_supplement_on_a_second_task_is_left_out_where_that_task_has_the_figure(
    tmp_path: Path,
) -> None:
    """Its fresh seeds judge the figure there; the supplement has none."""
    medium = scale("text", "medium")

    def judged(at: Scale, folder: str) -> set[tuple[str, str]]:
        runs = [run_of(cell) for cell in STUDIES["figure-3"].cells(at)]
        export(runs, tmp_path / folder / "records.parquet")
        return {(one.study.name, one.scale.task) for one, _ in found_in(tmp_path) if one.runs}

    assert judged(TEXT, AT.folder) == {("supplement-4", "mnist1d")}
    assert judged(TEXT, TEXT.folder) == {("figure-3", "text")}
    assert not [one for one, _ in found_in(tmp_path, only=["supplement-4"]) if one.runs]
    shutil.rmtree(tmp_path / TEXT.folder)
    # A folder of that task without the figure takes nothing away; with it, at any scale, it does.
    assert judged(TEXT, medium.folder) == {("supplement-4", "mnist1d")}
    assert judged(medium, medium.folder) == {("figure-3", "text")}


@pytest.mark.slow
def test_the_scale_with_the_most_seeds_judges_by_its_own_runs(tmp_path: Path) -> None:
    """Its seeds include those of the other scale, and other bits may have come out there."""
    study, medium = STUDIES["figure-3"], scale("mnist1d", "medium")
    own = {AT.folder: 0.2, medium.folder: 0.3}
    judged = []
    for at in (AT, medium):
        runs = [ended(cell, test_error=own[at.folder]) for cell in study.cells(at)]
        export(runs, tmp_path / at.folder / "records.parquet")
        found = {one.scale.folder: seen for one, seen in found_in(tmp_path) if one.study is study}
        judged += [
            (folder, {run.last.test_error for run in seen.runs}) for folder, seen in found.items()
        ]
    assert judged == [(folder, {error}) for folder, error in own.items()]


def test_a_sweep_that_belongs_to_no_study_is_left_out(tmp_path: Path) -> None:
    """A search for one method's decay, for instance, in a folder that is named after no scale."""
    plan = tmp_path / "cifar10-headline" / "search" / "plan.jsonl"
    plan.parent.mkdir(parents=True)
    plan.touch()
    assert not found_in(tmp_path)


@pytest.mark.slow
def test_the_page_says_what_the_committed_results_come_to(committed: tuple[str, str]) -> None:
    assert PAGE.read_text("utf-8") == committed[0], "`make book` brings it up to date"


@pytest.mark.slow
def test_the_readme_says_what_the_committed_results_come_to(committed: tuple[str, str]) -> None:
    assert README.read_text("utf-8") == committed[1], "`make book` brings it up to date"


@pytest.mark.slow
def test_no_difference_of_the_committed_results_lacks_an_interval(
    committed: tuple[str, str],
) -> None:
    """Seeds that measure differences may be registered and not trained yet."""
    told = {
        name: text
        for name, text in sections(committed[0]).items()
        if "registered runs are not trained yet" not in text
    }
    assert len(told) > 5
    assert not [name for name, text in told.items() if "unknown from so few runs" in text]


@pytest.mark.slow
def test_both_pages_state_the_limits_of_the_results(committed: tuple[str, str]) -> None:
    assert all("not all fixed beforehand" in text for text in committed)


@pytest.mark.parametrize("task", ["mnist1d", "text"])
def test_the_list_of_records_counts_those_that_there_are(task: str) -> None:
    [row] = re.findall(
        rf"^\| {task}-medium \|.* ([\d,]+) runs(?: of six seeds)? choose, and ([\d,]+) judge",
        (RESULTS / "README.md").read_text("utf-8"),
        flags=re.MULTILINE,
    )
    tables = [RESULTS / f"{task}-medium" / f"{name}.parquet" for name in ("records", "judging")]
    assert [int(count.replace(",", "")) for count in row] == [len(imported(one)) for one in tables]


@pytest.mark.parametrize("page", [PAGE, README], ids=lambda page: page.name)
def test_pictures_and_pages_that_are_linked_are_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
    local = [link for link in links if "://" not in link]
    assert any(link.endswith(".png") for link in local)
    assert not [link for link in local if not (page.parent / link).exists()]


def test_committed_verdicts_are_those_of_the_page() -> None:
    """But for times, which the page alone has."""
    times = r" runs, [\d.]+ (minutes|hours) of one (GPU|core)\)"
    page = re.sub(times, " runs)", PAGE.read_text("utf-8"))
    for path in RESULTS.glob("*/*/verdicts.json"):
        for verdict in json.loads(path.read_text("utf-8")):
            row = f"| {verdict['claim']} | **{verdict['outcome']}** | {verdict['because']} |"
            assert row in page, path


def test_no_two_claims_about_a_task_are_one_number_held_against_the_same_limits() -> None:
    """A figure that repeats another repeats its claims, in the same words."""
    words: dict[tuple[str, ...], set[str]] = {}
    for path in RESULTS.glob("*/*/verdicts.json"):
        for verdict in json.loads(path.read_text("utf-8")):
            judged = verdict["measured"] or {}
            if (value := judged.get("value")) is not None:
                limits = (str(judged.get(name)) for name in ("low", "high", "above", "below"))
                place = (path.parts[-3], str(value), *limits)
                words.setdefault(place, set()).add(verdict["claim"])
    assert words
    assert not [several for several in words.values() if len(several) > 1]


def test_every_study_whose_verdicts_are_committed_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    there = [path.parts[-3:-1] for path in RESULTS.glob("*/*/verdicts.json")]
    for folder in ("mnist1d-medium", "cifar10-small"):
        assert {(folder, f"figure-{number}") for number in (1, 2)} <= {*there}
    for folder, name in there:
        task, _, size = folder.rpartition("-")
        assert f"    {command(STUDIES[name], scale(task, size))}\n" in text


def judged(runs: list[Run]) -> Findings:
    return find(STUDIES["figure-2"], AT, runs)[0]


def test_a_study_is_judged_by_its_own_runs(figure_2: list[Run]) -> None:
    strangers = [
        ended(replace(run.config, batch=32), test_error=0.01, validation_error=0.01)
        for run in figure_2
    ]
    assert judged(figure_2 + strangers) == judged(figure_2)
    assert judged(figure_2).runs == {run.config.identity for run in figure_2}
    assert not judged(strangers).runs
    assert {verdict.outcome for verdict in judged(strangers).verdicts} == {"not decided"}


def test_the_order_of_runs_does_not_matter(figure_2: list[Run]) -> None:
    assert judged(figure_2[::-1] + figure_2) == judged(figure_2)


def test_claims_hold_on_landscapes_that_were_made_so() -> None:
    """By eight seeds of one stage."""
    at, study = replace(AT, seeds="0..7"), STUDIES["figure-2"]
    found, _ = find(study, at, [run_of(cell) for cell in study.cells(at)])
    outcomes = {verdict.claim: verdict.outcome for verdict in found.verdicts}
    assert outcomes["Adam's basin lies on a diagonal"] == "held"
    assert outcomes["AdamW is more separable than Adam"] == "held"
    assert outcomes["AdamW's best is better than Adam's"] == "held"
    assert outcomes["AdamW's best rivals SGD's and SGDW's"] == "held"
    assert outcomes["Adam gains nothing from L2 over λ = 0"] == "not held"
    assert outcomes["L2 and decay are the same for SGD, and not for Adam"] == "not held"


def test_what_a_landscape_comes_to_stays_numbers_until_it_is_written(figure_2: list[Run]) -> None:
    found, seen = find(STUDIES["figure-2"], AT, figure_2)
    rows = {row.panel: row for row in found.numbers}
    assert list(rows) == ["sgd", "sgdw", "adam", "adamw"] == list(seen.panels)
    assert rows["adam"].in_torch is None
    exponent, in_torch = rows["adamw"].exponent, rows["adamw"].in_torch
    assert in_torch is not None
    assert exponent.value is not None
    assert in_torch.value == pytest.approx(exponent.value + 1)
    landscape = seen.landscape("adamw")
    assert rows["adamw"].best == landscape.best
    assert (rows["adamw"].tied, rows["adamw"].settings) == (len(landscape.tied), 6 * 9)
    head, *_, written = table_of(found.numbers)
    assert head == [*COLUMNS]
    assert written[1].startswith(f"s = {number(exponent.value)} [")
    assert [line[:2] for line in table_of(found.numbers, BRIEF)] == [
        line[:2] for line in table_of(found.numbers)
    ]
    assert table_of([]) == []


def test_transfer_regret_stands_beside_s_and_a_second_stages_replaces_the_sweeps(
    figure_2: list[Run],
) -> None:
    found, seen = find(STUDIES["figure-2"], AT, figure_2)
    for columns in (COLUMNS, BRIEF):
        assert [*columns][1:3] == [
            "s, the coupling exponent",
            "rule to use, and its transfer regret",
        ]
    head, *rows = carrying_table(found.numbers)
    assert head == ["landscape", *(f"s = {s:g}".replace("-", "−") for s in RULES), "judged by"]
    assert [row[0] for row in rows] == [one.label for one in found.numbers]
    pairs = sum(len(one.transfer.pairs) for one in found.numbers)
    assert len(carrying_table(found.numbers, pairs=True)) == 1 + len(rows) + pairs
    fresh = TransferRegret({0.0: Estimate(0.01, 0.0, 0.02)}, tied=(0.0,), seeds=8, fresh=True)
    [judged] = carrying_table([numbers_of(seen.panels["adamw"], task=AT.task, fresh=fresh)])[1:]
    assert judged[1:] == ["1.0 [0.0, 2.0]", "8 fresh seeds"]


@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"supplement-1"}))
def test_every_claim_is_listed_whatever_is_missing(name: str) -> None:
    """With one run alone nothing is decided, and as much is claimed as with all of them."""
    study = STUDIES[name]
    found, _ = find(study, AT, [run_of(study.cells(AT)[0])])
    claims = [claim.words for claim in study.claims(AT)]
    assert [verdict.claim for verdict in found.verdicts] == claims
    if (path := RESULTS / AT.folder / name / "verdicts.json").exists():
        assert [row["claim"] for row in json.loads(path.read_text("utf-8"))] == claims
    assert {verdict.outcome for verdict in found.verdicts} == {"not decided"}


@pytest.fixture(scope="module")
def curves() -> list[Findings]:
    """What curves come to on both tasks: figures, and what the supplement repeats of them."""
    repeated = ("figure-3", "figure-4", "supplement-4", "supplement-5", "supplement-6")
    runs = [
        run_of(cell)
        for at in (AT, TEXT)
        for name in ("figure-3", "figure-4")
        for cell in STUDIES[name].cells(at)
    ]
    return [
        find(study, at, runs)[0]
        for at in (AT, TEXT)
        for study in studies_at(at)
        if study.name in repeated
    ]


def called(found: Sequence[Findings], name: str, task: str) -> Findings:
    [one] = [one for one in found if (one.study.name, one.scale.task) == (name, task)]
    return one


@pytest.mark.parametrize(
    ("repeated", "first"),
    [
        (("supplement-4", "mnist1d"), ("figure-3", "text")),
        (("supplement-5", "mnist1d"), ("figure-4", "mnist1d")),
        (("supplement-5", "text"), ("figure-4", "text")),
        (("supplement-6", "mnist1d"), ("figure-4", "text")),
        (("figure-3", "text"), ("figure-3", "text")),
    ],
)
def test_of_figures_with_the_same_runs_the_first_is_the_original(
    repeated: tuple[str, str], first: tuple[str, str], curves: list[Findings]
) -> None:
    assert docs_writer.original(called(curves, *repeated), curves) is called(curves, *first)


def test_the_same_words_about_other_runs_are_no_repetition() -> None:
    """One run decides nothing on either task, and says so in the same words."""
    study = STUDIES["figure-3"]
    ones = [find(study, at, [run_of(study.cells(at)[0])])[0] for at in (AT, TEXT)]
    assert ones[0].verdicts == ones[1].verdicts
    assert [docs_writer.original(one, ones) for one in ones] == ones


def sections(page: str) -> dict[str, str]:
    """Return what stands under each heading."""
    return dict(part.split("\n", 1) for part in page.split("\n## ")[1:])


def test_a_repeated_figure_keeps_its_picture_and_refers_to_the_table(
    curves: list[Findings],
) -> None:
    page = docs_writer.chapters(curves, "../results")
    parts = sections(page)
    with_table = [heading for heading, part in parts.items() if "\n| claim |" in part]
    assert with_table == [
        f"{figure}, {task}" for task in ("mnist1d", "text") for figure in ("Figure 3", "Figure 4")
    ]
    for verdict in called(curves, "supplement-4", "mnist1d").verdicts:
        row = f"| {verdict.claim} | **{verdict.outcome}** | {because(verdict)} | {rule(verdict)} |"
        assert row in parts["Figure 3, text"]
    told = parts["Supplement 4, text"]  # the task that it trains
    assert "](../results/mnist1d-small/supplement-4/figure.png)" in told
    assert f"    {command(STUDIES['supplement-4'], AT)}\n" in told
    assert "are the same as in [Figure 3, text](#figure-3-text).\n" in told
    assert "\n| " not in told


def test_at_a_glance_each_claim_stands_once_with_its_outcome_on_each_task(
    curves: list[Findings],
) -> None:
    first, *others = sections(docs_writer.chapters(curves, "")).items()
    assert first[0] == "At a glance"
    assert len(others) == 3 + len(curves)
    rows = [line[2:-2].split(" | ") for line in first[1].splitlines() if line.startswith("| ")]
    head, _, *cells = rows
    assert head == ["figure", "claim", "mnist1d", "text"]
    wanted = []
    for name in ("figure-3", "figure-4"):
        pair = [called(curves, name, task) for task in ("mnist1d", "text")]
        for one, other in zip(*(found.verdicts for found in pair), strict=True):
            told = [
                "–"
                if isinstance(verdict.reason, Missing)
                else f"[{verdict.outcome}](#{name}-{task})"
                for verdict, task in ((one, "mnist1d"), (other, "text"))
            ]
            wanted.append([name.replace("f", "F").replace("-", " "), one.claim, *told])
    assert [[cell.strip("*") for cell in row] for row in cells] == wanted


def test_what_was_not_judged_on_a_task_is_a_dash(curves: list[Findings]) -> None:
    less = [one for one in curves if one is not called(curves, "figure-4", "text")]
    less = [one for one in less if one is not called(curves, "supplement-5", "text")]
    less = [one for one in less if one is not called(curves, "supplement-6", "mnist1d")]
    rows = [
        line for line in docs_writer.at_a_glance(less).splitlines() if line.startswith("| Figure 4")
    ]
    assert rows
    assert all(row.endswith(" | – |") for row in rows)


def test_a_claim_whose_words_differ_by_task_has_those_of_each() -> None:
    study = STUDIES["supplement-2"]
    ones = [find(study, at, [run_of(study.cells(at)[0])])[0] for at in (AT, TEXT)]
    times = " or ".join(f"{standard_epochs(at) / at.epochs:g}" for at in (AT, TEXT))
    said = f"| Standard Adam, {times} times as long in a larger network, at best "
    assert said in docs_writer.at_a_glance(ones)


def test_a_claim_that_one_task_alone_judges_is_a_dash_at_the_others() -> None:
    study = STUDIES["conjecture"]
    ones = [find(study, at, [run_of(study.cells(at)[0])])[0] for at in (AT, TEXT)]
    judged = [replace(one, reason=Quantity("s", Exponent(0, -9, 9))) for one in ones[1].verdicts]
    rows = docs_writer.at_a_glance([ones[0], replace(ones[1], verdicts=tuple(judged))]).splitlines()
    [row] = [row for row in rows if "RMSProp" in row]
    assert row.endswith(" | – | [not decided](#conjecture-text) |")


@pytest.mark.slow
def test_every_committed_claim_that_is_open_says_what_would_decide_it(
    committed: tuple[str, str],
) -> None:
    """Or why nothing is known: something was not trained, or has no number."""
    rows = [line for line in committed[0].splitlines() if " | **not decided** | " in line]
    said = re.compile("seeds (on this test set )?would decide it")
    silent = [row for row in rows if not said.search(row)]
    # What is said instead: what to train, or that a scale does not have it.
    cures = [
        *("missing: train them", "has no second task", "widen the grid or make it finer"),
        *("The ridge has a knee", "The two estimators of s disagree", "; these disagree |"),
    ]
    assert len(silent) < len(rows) / 2
    assert not [row for row in silent if not any(cure in row for cure in cures)]
    counted = [row for row in rows if said.search(row) and "is unknown (" not in row]
    assert all("would have been" in row or " (not held); " in row for row in counted)


@pytest.mark.parametrize(("seconds", "gpus"), [(None, 0), (30.0, 0), (30.0, 2)])
def test_the_page_says_what_a_decided_claim_costs_on_each_task(
    curves: list[Findings], seconds: float | None, gpus: int
) -> None:
    """Minutes of cores and of GPUs are not added."""
    on_gpus = {
        run
        for place in ("mnist1d", "text")
        for run in [
            run for one in curves if docs_writer.place_of(one) == place for run in one.runs
        ][:gpus]
    }
    timed = [
        replace(
            one,
            spent={run: (seconds, "GPU" if run in on_gpus else "core") for run in one.spent},
        )
        for one in curves
    ]
    told = sections(docs_writer.chapters(timed, ""))["What a decided claim costs"]
    rows = [line[2:-2].split(" | ") for line in told.splitlines() if line.startswith("| ")]
    now = {row[0]: row[2:] for row in rows if row[1] == "now"}
    assert [*now] == ["mnist1d", "text"]
    tallied = docs_writer.tallies(curves)
    for task, (choosing, judging, decided, each, minutes) in now.items():
        own = [one for one in curves if docs_writer.place_of(one) == task]
        runs = {run for one in own for run in one.runs}
        held, not_held, left = map(int, re.findall(rf"on {task} (\d+).*?(\d+).*?(\d+)", tallied)[0])
        assert (choosing, judging) == (f"{len(runs):,}", "0")
        assert decided == f"{held + not_held} of {held + not_held + left}"
        assert each == f"{len(runs) / (held + not_held):,.0f}"
        parts = [(len(runs) - gpus, "core"), (gpus, "GPU")]
        said = [f"{n / 2 / (held + not_held):.1f} of one {on}" for n, on in parts if n]
        assert minutes == ("–" if seconds is None else " and ".join(said))


def test_earlier_states_stand_beside_the_present_one() -> None:
    """As many runs per decided claim as was noted then."""
    rows = [row for row in costs.rows(costs.EARLIER) if row[0] == "mnist1d"]
    assert [row[5] for row in rows] == ["711", "1,303", "352", "311"]
    assert [row[6] for row in rows] == ["–", "–", "2.9 of one core", "–"]


def test_links_within_the_page_lead_to_a_heading(curves: list[Findings]) -> None:
    page = docs_writer.chapters(curves, "")
    anchors = {
        heading.lower().replace(",", "").replace(" ", "-")
        for heading in re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    }
    links = re.findall(r"\]\(#([^)]+)\)", page)
    assert links
    assert set(links) <= anchors


def test_the_page_states_the_thresholds_that_the_rules_have(figure_2: list[Run]) -> None:
    found = judged(figure_2)
    said = " ".join(docs_writer.chapters([found], "../results").split())
    rules = " ".join(rule(verdict) for verdict in found.verdicts)
    assert f"above {BETWEEN:g}" in rules
    assert f"diagonal if all of the interval lies above {BETWEEN:g}" in said
    assert f"Differences within {100 * (AS_GOOD - 1):.0f} % of the rival's error" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"supplement-1"}))
def test_of_a_study_those_panels_are_drawn_that_there_are(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]
    at = TEXT if study in studies_at(TEXT) else AT
    cells = study.cells(at)
    runs = [run_of(cell) for cell in cells if cell.algorithm == cells[0].algorithm]
    found, seen = find(study, at, runs)
    assert draw(found, seen, tmp_path, formats=("svg",)) == [tmp_path / "figure.svg"]
    assert draw(*find(study, at, []), tmp_path / "none") == []
    assert not (tmp_path / "none").exists()


def test_a_report_without_a_picture_says_why(tmp_path: Path) -> None:
    """The picture is of standard Adam, and only AdamW, which it is compared with, was trained."""
    study = STUDIES["supplement-2"]
    cells = study.cells(TEXT)
    runs = [run_of(cell) for cell in cells if cell.algorithm == "adamw"]
    found, seen = find(study, TEXT, runs)
    assert not draw(found, seen, tmp_path)
    page = tell(found, seen, tmp_path, drawn=False).read_text("utf-8")
    assert f"{len(runs)} of the {len(cells)} runs finished" in page
    assert "<svg" not in page
    assert html.escape(found.verdicts[0].claim) in page


@pytest.mark.slow
def test_a_report_of_one_seed_says_what_that_cannot_decide(
    figure_2: list[Run], tmp_path: Path
) -> None:
    at = replace(AT, name="paper", seeds=[0])
    found, seen = find(STUDIES["figure-2"], at, figure_2)
    assert "; seed 0 alone; " in found.small_print
    draw(found, seen, tmp_path, formats=("svg",))
    page = tell(found, seen, tmp_path).read_text("utf-8")
    assert "<code>--scale paper</code> has one seed" in page
    more = len(values(scale("mnist1d", "medium").seeds))
    assert f"<code>--scale medium</code> has {more} seeds" in page
    found, seen = find(STUDIES["figure-2"], AT, figure_2)
    draw(found, seen, tmp_path, formats=("svg",))
    assert "has one seed" not in tell(found, seen, tmp_path).read_text("utf-8")


def test_the_small_print_says_how_much_there_was(figure_2: list[Run]) -> None:
    last = values(AT.seeds)[-1]
    assert judged(figure_2).small_print == (
        f"{len(figure_2)} runs of mlp on mnist1d (2000 examples); 48 epochs (one for the runs "
        f"that are compared in pairs); seeds 0 to {last:g}; settings chosen by validation error, "
        "test error of the last epoch shown. "
        "weightdecay reproduce figure-2 --task mnist1d --scale small"
    )


@pytest.mark.slow
def test_a_report_tells_all_that_was_found(figure_2: list[Run], tmp_path: Path) -> None:
    found, seen = find(STUDIES["figure-2"], AT, figure_2)
    draw(found, seen, tmp_path, formats=("svg",))
    page = tell(found, seen, tmp_path).read_text("utf-8")
    rows = json.loads((tmp_path / "verdicts.json").read_text("utf-8"))
    assert rows == [as_json(verdict) for verdict in found.verdicts]
    for verdict in found.verdicts:
        assert html.escape(verdict.claim) in page
    assert [one["title"] for one in embedded_in(page)["landscapes"]] == [
        one.panel.title for one in seen.panels.values()
    ]


@pytest.mark.slow
def test_tables_that_say_how_long_runs_took_have_minutes_per_decided_claim(
    figure_2: list[Run], tmp_path: Path
) -> None:
    timed = [replace(run, pack=(30.0 + n, 48)) for n, run in enumerate(figure_2)]
    minutes = sum(30.0 + n for n in range(len(figure_2))) / 60
    path = tmp_path / AT.folder / "records.parquet"

    def told(*, seconds: bool) -> str:
        export(timed, path, seconds=seconds)
        return docs_writer._cost([one for one, _ in found_in(tmp_path)])

    with_seconds, without = told(seconds=True), told(seconds=False)
    found, _ = find(STUDIES["figure-2"], AT, timed)
    decided = sum(verdict.outcome != "not decided" for verdict in found.verdicts)
    assert f"| {minutes / decided:.1f} of one core |" in with_seconds
    assert "| now |" in without
    assert f"{minutes / decided:.1f} of one" not in without


@pytest.mark.slow
def test_a_study_that_lacks_a_run_is_left_out(figure_2: list[Run], tmp_path: Path) -> None:
    place = tmp_path / AT.folder
    place.mkdir()
    export(figure_2, place / "records.parquet")
    names = [found.study.name for found, _ in found_in(tmp_path)]
    assert names == ["figure-2", "supplement-1"]
    export(figure_2[:-1], place / "records.parquet")
    assert [found.study.name for found, _ in found_in(tmp_path)] == ["supplement-1"]
    with pytest.raises(ValueError, match="must have all runs of figure-2 on mnist1d;"):
        docs_writer.texts(tmp_path, README.read_text("utf-8"))


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    text = README.read_text("utf-8")
    again = docs_writer.inserted(text, "Nothing.\n")
    [begin, end] = re.findall(r"<!-- /?reproduction.*-->", text)
    assert again == f"{text.split(begin)[0]}{begin}\n\nNothing.\n\n{end}{text.split(end)[1]}"


@pytest.mark.parametrize("text", ["", "# A title\n", "<!-- /reproduction -->"])
def test_a_readme_without_marks_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"must have the markers <!-- reproduction.*lines of their own"
    ):
        docs_writer.inserted(text, "Nothing.\n")


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert (
        docs_writer._markdown([["a|b", "c"], ["d", "e"]])
        == "| a\\|b | c |\n| --- | --- |\n| d | e |\n"
    )
