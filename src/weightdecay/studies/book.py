"""Committed results into the numbers that README and docs print: none of them is typed by hand.

results/<task>-<scale>/records.parquet       every run of that task, thinned
results/<task>-<scale>/<study>/figure.png    and .svg, rulings.json
"""

from collections.abc import Iterable
from pathlib import Path

from weightdecay import files
from weightdecay.records import Run
from weightdecay.studies import STUDIES
from weightdecay.studies.findings import Findings, command, find
from weightdecay.studies.scales import Scale, scale
from weightdecay.sweeps.export import imported

_BEGIN, _END = "<!-- reproduction: `make book` writes what follows -->", "<!-- /reproduction -->"


def found_in(results: Path) -> list[Findings]:
    """Judge every study that there are runs of, at every task and scale in a folder."""
    runs = [run for path in sorted(results.glob("*/records.parquet")) for run in imported(path)]
    found = []
    for at in _scales(results):
        for study in STUDIES.values():
            if (results / at.folder / study.name).is_dir():
                findings, _ = find(study, at, runs)
                found.append(findings)
    return found


def _scales(results: Path) -> list[Scale]:
    names = [path.parent.name.rpartition("-") for path in results.glob("*/records.parquet")]
    return [scale(task, name) for task, _, name in sorted(names)]


def chapters(found: Iterable[Findings], results: str) -> str:
    """Return docs/reproduction.md: each claim beside what was measured, with the command."""
    parts = [_PREFACE]
    for one in found:
        parts.append(f"## {_heading(one)}\n")
        parts.append(f"{one.study.title}.\n\n    {command(one.study, one.scale)}\n")
        place = f"{results}/{one.scale.folder}/{one.study.name}"
        parts.append(f"![{one.study.title}]({place}/figure.png)\n")
        if one.rulings:
            parts.append(rulings_table(one))
        if one.table:
            parts.append(_markdown(one.table))
        parts.append(f"{one.small_print}\n")
    return "\n".join(parts)


_PREFACE = """# The paper's claims, and what was measured

Every number and picture here is made from the records in [`results/`](../results) by `make book`;
a test sees that they agree. *Held*, *not held* and *not decided* are rules about 95 % intervals,
written down in [`studies/rulings.py`](../src/weightdecay/studies/rulings.py); the last column of a
table has each. Settings are chosen by validation error, and judged by the test error of seeds that
did not choose them. s is the coupling exponent: see [exponents](exponents.md). The tasks are small
(two cores, minutes): what they do not decide, CIFAR-10 may.
"""


def _heading(one: Findings) -> str:
    return f"{one.study.name.replace('-', ' ').capitalize()}, {one.scale.task}"


def rulings_table(one: Findings) -> str:
    """Return claims, outcomes and reasons."""
    head = ("claim", "", "measured", "rule")
    rows = [(r.claim, f"**{r.outcome}**", r.because, r.rule) for r in one.rulings]
    return _markdown([head, *rows])


def _markdown(rows: Iterable[Iterable[str]]) -> str:
    head, *rest = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def summary(found: Iterable[Findings], results: str) -> str:
    """Return what the README says: the main picture, and what became of its claims."""
    [main] = [f for f in found if f.study.name == "figure-2" and f.scale.task == "mnist1d"]
    place = f"{results}/{main.scale.folder}/{main.study.name}/figure.png"
    head = ("claim of the paper", "here", "measured")
    rows = [(r.claim, f"**{r.outcome}**", r.because) for r in main.rulings]
    return f"![{main.study.title}]({place})\n\n{_markdown([head, *rows])}\n{main.small_print}\n"


def inserted(text: str, summary: str) -> str:
    """Return a README with the summary between its marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"The README must have the marks {_BEGIN} and {_END}, and has not.")
    return f"{before}{_BEGIN}\n\n{summary}\n{_END}{after}"


def write(results: Path, *, page: Path, readme: Path) -> list[Path]:
    """Write the page, and the README's part."""
    found = found_in(results)
    texts = {
        page: chapters(found, "../results"),
        readme: inserted(readme.read_text("utf-8"), summary(found, "results")),
    }
    for path, text in texts.items():
        with files.written(path) as file:
            file.write(text.encode())
    return list(texts)


def kept(runs: Iterable[Run], at: Scale) -> list[Run]:
    """Return the runs of a task that results keep."""
    return [run for run in runs if run.config.task == at.task]
