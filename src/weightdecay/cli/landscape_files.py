"""The files of `weightdecay landscape --out`: a picture, a page, and a table of all cells."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay import files
from weightdecay.figures import heatmaps, save
from weightdecay.number_format import measured, reported, typed
from weightdecay.results import Cell, Doubts, Landscape, TransferRegret
from weightdecay.site import PageTable, Picture, advice, report, rules
from weightdecay.site import doubts as said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weightdecay.cli.landscape import Advised
    from weightdecay.cli.sources import Source

_CAPTION = (
    "Each cell is the mean {tested} over its seeds. s is how the best decay moves with the "
    "learning rate, λ* ∝ α⁻ˢ: 0 means that the two are separate knobs."
)
_FITTED = (
    "The recommended setting is the lowest point of a surface fitted to the runs near the best, or "
    "the best run if they are too few."
)
_CARRIED = f"What it costs to carry λ to another learning rate ({rules.BELOW})"
_REGRET = ("title", "tuned_at", "used_at", "s", "cost", "low", "high", "out_of_grid", "tied")
_COLUMNS = ("title", "task", "model", "algorithm", "schedule", "epochs", "batch", "decay_is")
_NUMBERS = (
    *("lr", "decay", "weight_decay", "normalized_decay", "torch_weight_decay", "seeds"),
    *("diverged", "score", "test_error", "standard_error", "tied"),
)


def write(
    found: "Sequence[Advised]", source: "Source", doubtful: Doubts, path: Path, folder: Path
) -> list[Path]:
    """Write everything into a folder, and return the files. Each metric has its own figure."""
    folder.mkdir(parents=True, exist_ok=True)
    doubts = said.lines(doubtful)
    drawn: list[Path] = []
    pictures = []
    for place, group in enumerate(_by_metric(found)):
        name = "figure" if place == 0 else f"figure-{place + 1}"
        drawn += save(_figure(group, source), folder / name)
        svg = (folder / f"{name}.svg").read_text("utf-8")
        caption = _CAPTION.format(tested=reported(one.landscape for one in group))
        pictures.append(Picture("Landscapes", svg, caption))
    tested = reported(one.landscape for one in found)
    legend = advice.legend(one.landscape for one in found)
    made = f"Made by `weightdecay landscape {path}`."
    page = report(
        f"Learning rate and weight decay: {path.name}",
        lead=_lead(found),
        pictures=pictures,
        verdicts=[],
        tables=[
            PageTable("Recommendations", [_head(tested), *map(_row, found)]),
            *_regrets(found),
        ],
        small_print=[*source.notes, *doubts, _FITTED, legend, made],
    )
    written = {"report.html": page, "cells.csv": _table(found), "regret.csv": _costs(found)}
    for name, text in written.items():
        with files.written(folder / name) as file:
            file.write(text.encode())
        drawn.append(folder / name)
    return drawn


def _by_metric(found: "Sequence[Advised]") -> "list[list[Advised]]":
    """Return the landscapes of each metric: a figure has one scale of colours."""
    groups: dict[str | None, list[Advised]] = {}
    for one in found:
        groups.setdefault(one.landscape.metric, []).append(one)
    return list(groups.values())


def _figure(found: "Sequence[Advised]", source: "Source") -> "Figure":
    """Draw landscapes of one metric."""
    return heatmaps(
        [
            (one.title, one.landscape, one.advice.shown_coupling if one.advice else None)
            for one in found
        ],
        columns=2 if len(found) in (2, 4) else min(3, len(found)),
        small_print="\n".join([*source.notes, _FITTED]),
        recommended=[one.advice for one in found],
    )


def _lead(found: "Sequence[Advised]") -> str:
    """Return the recommendation of the only landscape, or how many landscapes there are."""
    [one, *others] = found
    if others or one.advice is None:
        runs = sum(len(c.seeds) for each in found for c in each.landscape.cells.values())
        return f"{runs} runs in {len(found)} landscapes. The table says what to use."
    return f"{dict(advice.block(one.advice))['use']}. {rules.sentence(one.advice)}"


def _head(tested: str) -> tuple[str, ...]:
    return ("landscape", "use", tested, "s", "regret", "knobs", "to add")


def _row(one: "Advised") -> tuple[str, ...]:
    if one.advice is None:
        return (one.title, one.why, *["–"] * 5)
    found = one.advice
    return (
        one.title,
        dict(advice.block(found))["use"],
        measured(found.error.value, one.landscape.metric),
        advice.exponent(found),
        rules.costs(found.knobs.regret, one.landscape.metric),
        rules.sentence(found),
        "; ".join(advice.additions(found)) or "–",
    )


def _regrets(found: "Sequence[Advised]") -> list[PageTable]:
    """Return what each rule costs between each two learning rates; nothing if all is unknown."""
    rows = [
        (one.title, *map(typed, pair), *_shown(regret.of_pair(pair), one.landscape.metric))
        for one in found
        if one.advice is not None
        for regret in [one.advice.knobs.regret]
        for pair in regret.pairs
    ]
    head = (
        "landscape",
        "λ tuned at α",
        "used at α",
        *(f"keep {kept}" for kept in rules.KEPT.values()),
    )
    return [PageTable(_CARRIED, [head, *rows])] if rows else []


def _shown(found: TransferRegret, metric: str | None) -> list[str]:
    return [rules.cost(found, s, metric) if s in found.costs else "–" for s in rules.KEPT]


def _costs(found: "Sequence[Advised]") -> str:
    """Return the regret of each landscape, pair and rule as CSV; a pair without α is the mean."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_REGRET)
    for one in found:
        if one.advice is None:
            continue
        regret = one.advice.knobs.regret
        of_pairs = [(pair, regret.of_pair(pair)) for pair in regret.pairs]
        for pair, own in ((("", ""), regret), *of_pairs):
            for s, cost in own.costs.items():
                ends = [x if math.isfinite(x) else None for x in (cost.value, cost.low, cost.high)]
                tied = str(s in regret.tied).lower() if regret.tied else None
                writer.writerow([one.title, *pair, s, *ends, str(s in own.beyond).lower(), tied])
    return text.getvalue()


def _table(found: "Sequence[Advised]") -> str:
    """Return all cells as CSV, with exact numbers, and nothing for unknown ones."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *_NUMBERS])
    for one in found:
        tied = {(cell.lr, cell.decay) for cell in one.landscape.tied}
        labels, way = one.landscape.labels, one.landscape.way
        named = [one.title, *(labels.get(name) for name in _COLUMNS[1:-1]), way]
        for cell in one.landscape.cells.values():
            numbers = _numbers(one.landscape, cell)
            writer.writerow([*named, *numbers, str((cell.lr, cell.decay) in tied).lower()])
    return text.getvalue()


def _numbers(scape: Landscape, cell: Cell) -> list[float | int | None]:
    ways = astuple(scape.stated(cell.lr, cell.decay))
    errors = (cell.score, cell.mean, cell.standard_error)
    known = [value if math.isfinite(value) else None for value in errors]
    return [cell.lr, cell.decay, *ways, len(cell.seeds), len(cell.diverged), *known]
