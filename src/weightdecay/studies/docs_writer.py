"""Turns committed results into the numbers that README and docs print. None is typed by hand."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from weightdecay import files
from weightdecay.colours import OUTCOMES
from weightdecay.number_format import interval
from weightdecay.studies import STUDIES, costs
from weightdecay.studies.committed import found_in
from weightdecay.studies.docs_prose import (
    CHANGED,
    COST,
    ELSEWHERE,
    GLANCE,
    PREFACE,
    READING,
    REGISTERED,
    TRAINED,
)
from weightdecay.studies.findings import (
    Findings,
    command,
    draw,
    further_tables,
    of_second_stage,
    write_verdicts,
)
from weightdecay.studies.formats import because, rule
from weightdecay.studies.index import write_index
from weightdecay.studies.landscape_numbers import Numbers
from weightdecay.studies.page import tell
from weightdecay.studies.reasons import Missing
from weightdecay.studies.tables import in_torch, table_of
from weightdecay.studies.verdicts import NOT_DECIDED, Verdict

_BEGIN, _END = "<!-- reproduction: `make book` writes this -->", "<!-- /reproduction -->"

#: The study, and its task, whose results must be complete.
_MAIN = ("figure-2", "mnist1d")


def chapters(found: Sequence[Findings], results: str) -> str:
    """Return docs/reproduction.md: each claim beside what was measured, with the command."""
    parts = [PREFACE, TRAINED, at_a_glance(found), _cost(found), READING, REGISTERED]
    parts += [*_conventions(found), CHANGED]
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
            tables = further_tables(one, pairs=True)
            parts += [f"{title}:\n\n{_markdown(rows)}" for title, rows in tables]
        parts += [f"{line}\n" for line in of_second_stage(one)]
        if one.small_print != command(one.study, one.scale):
            parts.append(f"{one.small_print}\n")
    return "\n".join(parts)


def at_a_glance(found: Sequence[Findings]) -> str:
    """Return one row per claim and one column per task: each verdict, linked to its section."""
    places = list(dict.fromkeys(place_of(one) for one in found))
    rows = []
    for name in _counted(found):
        there = [one for one in found if one.study.name == name]
        for row in zip_longest(*(one.verdicts for one in there)):
            cells = dict.fromkeys(places, "–")
            judged = [verdict for verdict in row if verdict is not None]
            for one, verdict in zip(there, row, strict=True):
                if verdict is None or isinstance(verdict.reason, Missing):
                    continue
                place = place_of(one)
                bold = "" if verdict.outcome == NOT_DECIDED else "**"
                cells[place] = f"{bold}{_link(verdict.outcome, one)}{bold}"
            rows.append((_figure(name), _claim(judged), *cells.values()))
    table = _markdown([("figure", "claim", *places), *rows])
    return f"## At a glance\n\n{GLANCE}\n{table}\nIn all: {tallies(found)}.\n\n{ELSEWHERE}"


def tallies(found: Sequence[Findings]) -> str:
    """Return how many claims were held, not held and not decided on each task."""
    return "; ".join(
        f"on {place} " + ", ".join(f"{count[outcome]} {outcome}" for outcome in OUTCOMES)
        for place, count in _outcomes(found).items()
    )


def _outcomes(found: Sequence[Findings]) -> dict[str, Counter[str]]:
    """Return the number of claims on each task by their outcomes, without those not measured."""
    counts: dict[str, Counter[str]] = {place_of(one): Counter() for one in found}
    names = _counted(found)
    for one in found:
        if one.study.name in names:
            counts[place_of(one)] += costs.outcomes_of(one)
    return counts


def _cost(found: Sequence[Findings]) -> str:
    """Return what a decided claim has cost on each task."""
    of: dict[str, list[Findings]] = {}
    for one in found:
        of.setdefault(place_of(one), []).append(one)
    known = costs.states(of, _outcomes(found))
    told = [COST, _markdown(costs.rows(known))]
    everywhere = Counter(run for own in of.values() for run in {r for one in own for r in one.runs})
    if shared := sum(times > 1 for times in everywhere.values()):
        told.append(f"{shared:,} runs are counted under two tasks: one figure compares these.\n")
    return "\n".join(told)


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


def place_of(one: Findings) -> str:
    """Return the task that was trained."""
    return one.study.place(one.scale).task


def _heading(one: Findings) -> str:
    return f"{_figure(one.study.name)}, {place_of(one)}"


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
    if not any((one.study.name, one.scale.task) == _MAIN for one in found):
        raise ValueError(
            f"The results must have all runs of {' on '.join(_MAIN)}; some are missing."
        )
    return f"Claims so far: {tallies(found)} ([all of them](docs/reproduction.md#at-a-glance)).\n"


def _conventions(found: Sequence[Findings]) -> list[str]:
    """Return AdamW's s on each task, with λ as it is stated here and as torch states it."""
    told = [
        f"on {place_of(one)}, {_slopes(row)}"
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


def _slopes(row: Numbers) -> str:
    """Return a decoupled decay's s in both conventions, on either side where it has a knee."""
    sides = row.below, row.above
    if row.exponent.value is None and all(side.value is not None for side in sides):
        here, there = (
            f"{interval(below)} below the best α and {interval(above)} above it"
            for below, above in (sides, [side.in_torch for side in sides])
        )
    else:
        here, there = interval(row.exponent), in_torch(row)
    return f"{here} here, and {there} in torch's"


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
