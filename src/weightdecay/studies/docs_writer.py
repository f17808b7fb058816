"""Turns committed results into the numbers that README and docs print. None is typed by hand."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from weightdecay import files
from weightdecay.colours import OUTCOMES
from weightdecay.number_format import interval
from weightdecay.studies import STUDIES
from weightdecay.studies.committed import found_in
from weightdecay.studies.findings import (
    Findings,
    command,
    draw,
    of_second_stage,
    second_stage,
    write_verdicts,
)
from weightdecay.studies.formats import because, rule
from weightdecay.studies.index import write_index
from weightdecay.studies.page import tell
from weightdecay.studies.tables import in_torch, table_of
from weightdecay.studies.verdicts import BETWEEN, MARGIN, NOT_DECIDED, Missing, Verdict

_BEGIN, _END = "<!-- reproduction: `make book` writes this -->", "<!-- /reproduction -->"

#: The study and the folder of results that must be complete.
_MAIN = ("figure-2", "mnist1d-small")


def chapters(found: Sequence[Findings], results: str) -> str:
    """Return docs/reproduction.md: each claim beside what was measured, with the command."""
    parts = [_PREFACE, _TRAINED, at_a_glance(found), _READING, *_conventions(found)]
    for one in found:
        parts.append(f"## {_heading(one)}\n")
        parts.append(f"{one.study.title}.\n\n    {command(one.study, one.scale)}\n")
        place = f"{results}/{one.scale.folder}/{one.study.name}"
        parts.append(f"![{one.study.title}]({place}/figure.png)\n")
        first = original(one, found)
        if first is not one:
            parts.append(
                f"The runs and verdicts are the same as in {_link(_heading(first), first)}.\n"
            )
        elif one.verdicts:
            parts.append(verdicts_table(one))
        if one.numbers and first is one:
            parts.append(_markdown(table_of(one.numbers)))
        if first is one:
            parts += [f"{title}:\n\n{_markdown(rows)}" for title, rows in second_stage(one)]
        parts += [f"{line}\n" for line in of_second_stage(one)]
        parts.append(f"{one.small_print}\n")
    return "\n".join(parts)


_TRAINED = """\
mnist1d was trained on two cores with torch 2.13. Text was trained on 13 cores with torch 2.11, but
for the second stages of Figures 1 to 3: these were trained on two cores with torch 2.13.
Supplements 4 and 6 repeat Figures 3 and 4 on a second data set: text's own figures are those.
"""
_POINTS = f"{100 * MARGIN:g} percentage point{'s' * (MARGIN != 0.01)}"
_PREFACE = """# The paper's claims, and what was measured

`make book` makes every number and picture on this page from the records in
[`results/`](../results/README.md), and a test checks that they agree. CIFAR-10 is the paper's data,
with a small conv net ([how it was trained](../results/cifar10-small/README.md)); mnist1d and text
are small enough for two cores. [The paper, line by line](paper.md) lists all claims of the paper,
with those that nothing judges yet.
"""
_READING = f"""\
## How to read it

Each claim is *held*, *not held* or *not decided*. These verdicts are rules about 95 % intervals,
and the last column of each table states the rule. Settings are chosen by validation error. Best
errors are compared on seeds that did not choose the settings, so differences need not equal those
in the pictures. Differences within {_POINTS} count as ties: that is what "rivals"
and "gains nothing" mean.

s is the coupling exponent: it says how the best decay moves with the learning rate, λ* ∝ α⁻ˢ
([how it is measured](exponents.md)). With s = 0 the two knobs are separate, and with s = 1 the
low errors lie on a diagonal. A basin is diagonal if all of the interval lies above {BETWEEN:g}.

Transfer regret says the same in test error: what it costs to tune λ at one learning rate and carry
it to another, a factor of 4 away, by a rule λ ∝ α⁻ˢ ([how it is
measured](landscape.md#transfer-regret)). Fresh seeds have judged it where there is a second stage;
elsewhere, each seed judges the decays that the others choose.

The rules were not all fixed beforehand. Some were made stricter after the records had been seen,
always towards *not decided*, and this changed three verdicts on unchanged data. Later, a difference
that had no interval was given one, which decided one claim. On 18 November 2026, with the
records known, intervals of fresh seeds became narrower: the test set's sampling error is no longer
multiplied by Student's t of the seeds. This changed no verdict. On the same day, what the two
estimators of s differ by between the decays of a grid was counted in the interval of their
difference, so that s is withheld less often. This changed no verdict either.
"""


def at_a_glance(found: Sequence[Findings]) -> str:
    """Return one row per claim and one column per task: each verdict, linked to its section."""
    places = list(dict.fromkeys(_place(one) for one in found))
    rows = []
    for name in _counted(found):
        there = [one for one in found if one.study.name == name]
        for row in zip_longest(*(one.verdicts for one in there)):
            cells = dict.fromkeys(places, "–")
            judged = [verdict for verdict in row if verdict is not None]
            for one, verdict in zip(there, row, strict=True):
                if verdict is None or isinstance(verdict.reason, Missing):
                    continue
                place = _place(one)
                bold = "" if verdict.outcome == NOT_DECIDED else "**"
                cells[place] = f"{bold}{_link(verdict.outcome, one)}{bold}"
            rows.append((_figure(name), _claim(judged), *cells.values()))
    table = _markdown([("figure", "claim", *places), *rows])
    return f"## At a glance\n\n{_GLANCE}\n{table}\nIn all: {tallies(found)}.\n\n{_ELSEWHERE}"


def tallies(found: Sequence[Findings]) -> str:
    """Return how many claims were held, not held and not decided on each task."""
    counts: dict[str, Counter[str]] = {_place(one): Counter() for one in found}
    names = _counted(found)
    for one in found:
        if one.study.name in names:
            counts[_place(one)].update(
                verdict.outcome
                for verdict in one.verdicts
                if not isinstance(verdict.reason, Missing)
            )
    return "; ".join(
        f"on {place} " + ", ".join(f"{count[outcome]} {outcome}" for outcome in OUTCOMES)
        for place, count in counts.items()
    )


_GLANCE = """\
A dash means that nothing was trained to judge the claim there. A claim that two figures judge by
the same runs is listed once.
"""
_ELSEWHERE = """\
Two parts of CIFAR-10 have designs of their own, and pages of their own:
[how the best decay moves with epochs, examples and batch size](../results/cifar10-small/budgets.md)
and [the headline](../results/cifar10-headline/README.md), AdamW against Adam with Shake-Shake over
100 epochs. [What we know that the paper did not](carrying.md) sums up which rules carry a decay.
"""


def _counted(found: Sequence[Findings]) -> list[str]:
    """Return the figures that judge something that no other has judged before."""
    own = {one.study.name for one in found if original(one, found) is one}
    return [name for name in STUDIES if name in own]


def original(one: Findings, found: Iterable[Findings]) -> Findings:
    """Return the first figure of the paper that is judged by the same runs in the same words."""
    # Words are compared and not numbers, because an unknown number, NaN, is not equal to itself.
    said = verdicts_table(one)
    same = [other for other in found if other.runs == one.runs and verdicts_table(other) == said]
    return min(same, key=lambda other: [*STUDIES].index(other.study.name)) if one.runs else one


def _claim(judged: Sequence[Verdict]) -> str:
    """Return a claim as all tasks have it: where their words differ, one after the other."""
    words = [verdict.claim.split(" ") for verdict in judged]
    if len({len(claim) for claim in words}) > 1:
        return " / ".join(dict.fromkeys(verdict.claim for verdict in judged))
    return " ".join(" or ".join(dict.fromkeys(several)) for several in zip(*words, strict=True))


def _figure(name: str) -> str:
    return name.replace("-", " ").capitalize()


def _place(one: Findings) -> str:
    """Return the task that was trained; the small scale is meant where none is said."""
    at = one.study.place(one.scale)
    return at.task if at.name == "small" else f"{at.task} {at.name}"


def _heading(one: Findings) -> str:
    return f"{_figure(one.study.name)}, {_place(one)}"


def _link(words: str, one: Findings) -> str:
    """Return a link to a study's section, whose anchor is made as GitHub makes it."""
    anchor = re.sub(r"[^\w -]", "", _heading(one).lower()).replace(" ", "-")
    return f"[{words}](#{anchor})"


def verdicts_table(one: Findings) -> str:
    """Return claims, outcomes and reasons."""
    head = ("claim", "", "measured", "rule")
    rows = [(r.claim, f"**{r.outcome}**", because(r), rule(r)) for r in one.verdicts]
    return _markdown([head, *rows])


def _markdown(rows: Iterable[Iterable[str]]) -> str:
    head, *rest = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def summary(found: Sequence[Findings]) -> str:
    """Return what the README says: how many claims held on each task."""
    if not any((one.study.name, one.scale.folder) == _MAIN for one in found):
        raise ValueError(
            f"The results must have all runs of {' on '.join(_MAIN)}; some are missing."
        )
    return f"Claims so far: {tallies(found)} ([all of them](docs/reproduction.md#at-a-glance)).\n"


def _conventions(found: Sequence[Findings]) -> list[str]:
    """Return AdamW's s on each task, with λ as it is stated here and as torch states it."""
    told = [
        f"on {_place(one)}, {interval(row.exponent)} here and {in_torch(row)} in torch's"
        for one in found
        if one.study.name == _MAIN[0]
        for row in one.numbers
        if row.panel == "adamw"
    ]
    if not told:
        return []
    said = (
        "In torch's convention s is greater by 1, so knobs that are separate in one convention are"
    )
    return [f"{said} not in the other. For AdamW: {'; '.join(told)}.\n"]


def inserted(text: str, summary: str) -> str:
    """Return a README with the summary between its markers."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(
            f"The README must have the markers {_BEGIN} and {_END}. Add them on lines of their own."
        )
    return f"{before}{_BEGIN}\n\n{summary}\n{_END}{after}"


def texts(results: Path, readme: str) -> tuple[str, str]:
    """Return what the page and the README must say."""
    found = [findings for findings, _ in found_in(results)]
    return chapters(found, "../results"), inserted(readme, summary(found))


def write(results: Path, *, page: Path, readme: Path, site: Path | None = None) -> list[Path]:
    """Draw every picture again, and write the page and the README's part.

    `site` is a folder for interactive pages of all figures and tasks, and their index.
    """
    for findings, seen in found_in(results):
        place = Path(findings.scale.folder) / findings.study.name
        draw(findings, seen, results / place, formats=("png",))
        write_verdicts(findings, results / place)
        if site is not None:
            drawn = draw(findings, seen, site / place, formats=("svg",))
            tell(findings, seen, site / place, drawn=bool(drawn))
    for path, text in zip((page, readme), texts(results, readme.read_text("utf-8")), strict=True):
        with files.written(path) as file:
            file.write(text.encode())
    return [page, readme, *([] if site is None else [write_index(site)])]
