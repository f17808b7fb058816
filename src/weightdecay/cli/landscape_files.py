"""The files of `weightdecay landscape --out`: a picture, a page, and a table of all cells."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay import files
from weightdecay.cli.report import page
from weightdecay.figures import heatmaps, save
from weightdecay.results import Cell, Doubts, Landscape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weightdecay.cli.sources import Source
    from weightdecay.site import Advised

_FITTED = (
    "The recommended setting is the one with the lowest error that all runs together predict, or "
    "the best run if they are too few."
)
_REGRET = ("title", "tuned_at", "used_at", "s", "cost", "low", "high", "out_of_grid", "tied")
_COLUMNS = ("title", "task", "model", "algorithm", "schedule", "epochs", "batch", "decay_is")
_NUMBERS = (
    *("lr", "decay", "weight_decay", "normalized_decay", "torch_weight_decay", "seeds"),
    *("diverged", "score", "test_error", "standard_error", "tied"),
)


def write(
    found: "Sequence[Advised]",
    source: "Source",
    doubtful: Doubts,
    path: Path,
    folder: Path,
    *,
    command: str,
) -> list[Path]:
    """Write everything into a folder, and return the files. Each metric has its own figure.

    `command` is what writes them again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn: list[Path] = []
    for place, group in enumerate(_by_metric(found)):
        name = "figure" if place == 0 else f"figure-{place + 1}"
        drawn += save(_figure(group, source), folder / name)
    text = page(found, source, doubtful, path=path, command=command)
    written = {"report.html": text, "cells.csv": _table(found), "regret.csv": _costs(found)}
    for name, content in written.items():
        with files.written(folder / name) as file:
            # A file name may hold bytes that are no text, which UTF-8 cannot represent.
            file.write(content.encode("utf-8", "xmlcharrefreplace"))
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
