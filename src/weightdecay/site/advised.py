"""Landscapes with their recommendations, and all that a page shows of them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weightdecay.records import Run, RunConfig
from weightdecay.results import (
    Doubts,
    Landscape,
    Move,
    Outlier,
    Pair,
    Recommendation,
    TransferRegret,
    by_split,
    cell_curves,
    cell_runs,
    measure_moves,
    outliers,
    recommend,
)
from weightdecay.results.grouping import apart
from weightdecay.site.advice import title
from weightdecay.site.page_landscape import PageLandscape


@dataclass(frozen=True)
class Advised:
    """A landscape, its title, and the recommendation; if it is None, `why` says what to train."""

    title: str
    landscape: Landscape
    advice: Recommendation | None

    @property
    def why(self) -> str:
        """Return why nothing can be recommended."""
        cells = [cell for cell in self.landscape.cells.values() if cell.decay]
        if not cells:
            return "No run had a decay above 0. Train some that have one."
        some = any(len(cell.diverged) < len(cell.seeds) for cell in cells)
        which = "Some run of every setting" if some else "All runs"
        return f"{which} with a decay diverged. Try a smaller decay or learning rate."


def advise(named: str, scape: Landscape, fresh: TransferRegret | None = None) -> Advised:
    """Recommend a setting for a landscape, if one can be.

    `fresh` is the regret that a second stage has measured, which replaces that of the sweep.
    """
    lost = all(cell.diverged or cell.decay == 0 for cell in scape.cells.values())
    advice = None if lost else recommend(scape)
    if advice is not None and fresh is not None and fresh.costs:
        advice = advice.judged(fresh)
    return Advised(named, scape, advice)


def advised(
    scapes: Sequence[Landscape],
    doubtful: Doubts,
    judged: Mapping[RunConfig, TransferRegret] | None = None,
) -> list[Advised]:
    """Recommend a setting for each landscape. Titles name what tells landscapes apart.

    They are sorted by title, with 8 epochs before 16. `judged` are the regrets of a second stage.
    """
    found = [
        advise(
            title(scape, doubtful.varied),
            scape,
            (judged or {}).get(scape.config) if scape.run_config is not None else None,
        )
        for scape in scapes
    ]
    return sorted(found, key=lambda one: _natural(one.title))


def _natural(text: str) -> list[tuple[float, str]]:
    """Return a key that sorts the numbers in a text by their values."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if at % 2 else (0.0, part) for at, part in enumerate(parts)]


def page_landscapes(
    found: Sequence[Advised], runs: Iterable[Run], doubtful: Doubts
) -> list[PageLandscape]:
    """Return landscapes as a page shows them: every split, curve, carried decay and outlier."""
    shown = []
    for one, own in zip(found, cell_runs([one.landscape for one in found], runs), strict=True):
        scape = one.landscape
        splits = by_split(scape, own)
        curves = {place: cell_curves(some, splits, scape.of) for place, some in own.items()}
        shown.append(
            PageLandscape(
                title=one.title,
                advice=one.advice,
                why="" if one.advice is not None else one.why,
                splits=splits,
                curves={place: some for place, some in curves.items() if some},
                moves=() if one.advice is None else _moves(one.advice),
                outliers=_outliers(scape, doubtful),
                pairs=_pairs(scape, doubtful),
            )
        )
    return shown


def _moves(advice: Recommendation) -> Sequence[Move]:
    """Return what each rule does at other learning rates, judged by fresh seeds if there are."""
    moves = measure_moves(advice.landscape, advice.lr.value)
    return [move.judged(advice.knobs.regret) for move in moves]


def _outliers(scape: Landscape, doubtful: Doubts) -> Sequence[Outlier]:
    """Return the cells that stand out. Those of runs are among the doubts already."""
    if scape.run_config is None:
        return outliers(scape)
    own = (scape.run_config, scape.way)
    return [one for other, one in doubtful.outliers if (other.run_config, other.way) == own]


def _pairs(scape: Landscape, doubtful: Doubts) -> dict[tuple[float, float], Pair]:
    """Return the runs of a landscape's cells that must agree with others: the worst pair of each.

    It is the one that is furthest apart, as a part of what noise explains.
    """
    if scape.run_config is None:
        return {}
    own, found = apart(scape.run_config), {}
    for pair in sorted(doubtful.agreement.pairs, key=_apart):
        for run in (pair.one, pair.other):
            if apart(run.config) == own:
                found[run.config.lr, getattr(run.config, own[1])] = pair
    return found


def _apart(pair: Pair) -> float:
    return pair.difference / pair.allowed if pair.allowed else pair.difference
