"""What the interactive page is given: landscapes as plain values, with their numbers as text.

A number that a person reads was written here, by the functions that the terminal uses. The numbers
next to it only say where to draw; they have six digits.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from weightdecay.colours import STROKES, error_range, shades, stroke
from weightdecay.labels import AXES, method_of
from weightdecay.number_format import in_units, interval, measured, reported
from weightdecay.results import (
    Landscape,
    Move,
    Recommendation,
    TransferRegret,
)
from weightdecay.results.budget import FACTORS
from weightdecay.site import advice, rule_costs, rules
from weightdecay.site.advice import title_value
from weightdecay.site.doubts import pair_words
from weightdecay.site.marks import about_marks
from weightdecay.site.page_curves import curves_of
from weightdecay.site.page_landscape import JudgedSetting, PageLandscape, Place
from weightdecay.table import shown

#: The decay's conventions on the axis, in the order of `results.landscape.Stated`.
WAYS = {
    "weight_decay": AXES["weight_decay"],
    "normalized_decay": AXES["normalized_decay"],
    "torch": ("torch's weight_decay", "λ/α"),
}
_SHADES = 5


def page_data(found: Sequence[PageLandscape]) -> dict[str, Any]:
    """Return the landscapes of a page, the scales of their colours, and their budgets."""
    names = list(dict.fromkeys(split for one in found for split in one.splits))
    colours = _colours(found)
    budgets = _budgets([one.landscape for one in found])
    count = sum(len(splits) for one in found for splits in one.curves.values())
    return {
        "splits": {
            name: reported(one.splits[name] for one in found if name in one.splits)
            for name in names
        },
        "ways": {way: f"{name} {symbol}" for way, (name, symbol) in WAYS.items()},
        "scales": {name: _scales(found, name) for name in names},
        "budgets": [{"factor": name, "values": values} for name, values in budgets.items()],
        "rules": [f"keep {kept}" for kept in rule_costs.KEPT.values()],
        "aboutMarks": about_marks(found),
        "landscapes": [
            _landscape(one, colour, budgets, count)
            for one, colour in zip(found, colours, strict=True)
        ],
    }


def _landscape(
    one: PageLandscape,
    colours: Sequence[str],
    budgets: Mapping[str, Sequence[str]],
    curve_count: int,
) -> dict[str, Any]:
    scape = one.landscape
    cells = list(scape.cells.values())
    tied = {(cell.lr, cell.decay) for cell in scape.tied} if cells else set()
    doubted = {(out.lr, out.decay) for out in one.outliers}
    several = any(len(cell.seeds) > 1 for cell in cells)
    return {
        "title": one.title,
        "words": words(one),
        "metric": scape.metric,
        "way": scape.way,
        "axis": " ".join(AXES[scape.way]),
        "ways": _ways(scape),
        "updates": scape.updates,
        "scattered": scape.scattered,
        "colours": colours,
        "budget": {
            name: values.index(_budget(scape, name))
            for name, values in budgets.items()
            if _budget(scape, name) in values
        },
        "lrs": [drawn(lr) for lr in scape.lrs],
        "lrTexts": [shown(lr, 3) for lr in scape.lrs],
        "cells": {
            "lr": [scape.lrs.index(cell.lr) for cell in cells],
            "decay": [drawn(cell.decay) for cell in cells],
            "seeds": [len(cell.seeds) for cell in cells],
            "diverged": [len(cell.diverged) for cell in cells],
            "tied": [int(several and (cell.lr, cell.decay) in tied) for cell in cells],
            "outlier": [int((cell.lr, cell.decay) in doubted) for cell in cells],
            "twin": [pair_words(one.pairs.get((cell.lr, cell.decay))) for cell in cells],
            "texts": decay_texts(scape, [(cell.lr, cell.decay) for cell in cells]),
        },
        "splits": {name: errors_of(own) for name, own in one.splits.items()},
        "curves": curves_of(cells, one.curves, scape.metric, curve_count),
        "advice": None if one.advice is None else _advice(one.advice, one.judged),
        "moves": [_move(move, scape) for move in one.moves],
    }


def words(one: PageLandscape) -> str:
    """Return what the picture of a landscape shows, in words."""
    scape = one.landscape
    settings = f"{len(scape.cells)} settings" if len(scape.cells) != 1 else "one setting"
    what = f"{one.title}: {reported([scape])} of {settings} over learning rate and decay."
    if one.advice is None:
        return f"{what} {one.why}"
    return f"{what} Use {used(one)}. {rules.sentence(one.advice)}"


def used(one: PageLandscape) -> str:
    """Return the setting to use, in words."""
    assert one.advice is not None
    if one.judged is None:
        return dict(advice.block(one.advice))["use"]
    symbol = advice.symbol(one.landscape)
    lr, decay = (shown(value, 3) for value in (one.judged.lr, one.judged.decay))
    return f"α = {lr}, {symbol} = {decay}"


def _advice(found: Recommendation, judged: JudgedSetting | None) -> dict[str, Any]:
    coupled, exponent = found.shown_coupling, found.knobs.exponent
    line = None if coupled.line is None else list(map(drawn, astuple(coupled.line)))
    return {
        "lr": [drawn(end) for end in (astuple(found.lr) if judged is None else [judged.lr] * 3)],
        "decay": [
            drawn(end) for end in (astuple(found.decay) if judged is None else [judged.decay] * 3)
        ],
        "s": {
            "paper": interval(exponent, reason=False),
            "torch": interval(exponent.in_torch, reason=False),
        },
        "ridge": [[drawn(end) for end in astuple(point)] for point in coupled.ridge],
        "line": line,
    }


def _move(move: Move, scape: Landscape) -> dict[str, Any]:
    regret, symbol = move.regret, AXES[scape.way][1]
    known = regret.costs
    return {
        "tuned": drawn(move.tuned),
        "used": drawn(move.used),
        "usedText": shown(move.used, 3),
        "tunedText": f"α = {shown(move.tuned, 3)}, {symbol} = {shown(move.decay, 3)}",
        "decays": [drawn(decay) for decay in move.decays.values()],
        "texts": decay_texts(scape, [(move.used, decay) for decay in move.decays.values()]),
        "costs": [
            drawn(in_units(regret.costs[rule].value, scape.metric)) if rule in known else None
            for rule in rule_costs.KEPT
        ],
        "costTexts": [
            rule_costs.cost(regret, rule, scape.metric) if rule in known else "unknown"
            for rule in rule_costs.KEPT
        ],
        "beyond": [int(rule in regret.beyond) for rule in rule_costs.KEPT],
        "judged": _judged(regret, scape.metric),
    }


def _judged(regret: TransferRegret, metric: str | None) -> str:
    """Return who judged the costs, or why they are unknown, as a sentence."""
    if not regret.costs:
        return f"What that costs is unknown. {regret.why}"
    said = "; ".join([rule_costs.judges(regret), *rule_costs.negative(regret, metric)])
    return f"{said[0].upper()}{said[1:]}."


def errors_of(scape: Landscape) -> dict[str, list[Any]]:
    """Return the errors of cells: as numbers to draw, as text, and their standard errors."""
    cells = scape.cells.values()
    errors = [cell.standard_error for cell in cells]
    return {
        "values": [drawn(in_units(cell.mean, scape.metric)) for cell in cells],
        "texts": [measured(cell.mean, scape.metric) for cell in cells],
        "spreads": [measured(one, scape.metric) if math.isfinite(one) else "" for one in errors],
    }


def _scales(found: Iterable[PageLandscape], split: str) -> dict[str, Any]:
    """Return the colour scale of a split, one for each metric."""
    groups: dict[str | None, list[Landscape]] = {}
    for one in found:
        if split in one.splits:
            groups.setdefault(one.landscape.metric, []).append(one.splits[split])
    return {metric or "": _scale(own, metric) for metric, own in groups.items()}


def _scale(landscapes: Sequence[Landscape], metric: str | None) -> dict[str, Any]:
    low, high, beyond = error_range(
        *(
            [
                in_units(cell.mean, metric)
                for cell in scape.cells.values()
                if len(cell.diverged) < len(cell.seeds) and math.isfinite(cell.mean)
            ]
            for scape in landscapes
        )
    )
    unit = in_units(1.0, metric)
    ends = [measured(end / unit, metric) for end in (low, high)]
    return {"low": drawn(low), "high": drawn(high), "beyond": beyond, "texts": ends}


def _ways(scape: Landscape) -> list[str]:
    """Return the conventions in which all its decays can be stated; of L2, none but its own."""
    stated = astuple(scape.stated(scape.lrs[0], scape.decays[-1]))
    known = [way for way, value in zip(WAYS, stated, strict=True) if value is not None]
    return [scape.way, *(way for way in known if way != scape.way)]


def decay_texts(scape: Landscape, places: Sequence[Place]) -> dict[str, list[str]]:
    """Return the decays of settings in every convention, as text."""
    if scape.way == "l2":
        return {"l2": [shown(decay, 3) for _, decay in places]}
    stated = [astuple(scape.stated(lr, decay)) for lr, decay in places]
    texts = (list(column) for column in zip(*stated, strict=True))
    return {
        way: [shown(value, 3) for value in column]
        for way, column in zip(WAYS, texts, strict=True)
        if None not in column
    }


def _budgets(landscapes: Sequence[Landscape]) -> dict[str, list[str]]:
    """Return the factors of the budget in which landscapes differ, with their amounts as text."""
    found: dict[str, list[str]] = {}
    for factor in FACTORS:
        known = {_budget(scape, factor): scape.labels.get(factor) for scape in landscapes}
        if len(known) > 1:
            numbers = {text: _amount(value) for text, value in known.items() if text}
            found[factor] = sorted(numbers, key=numbers.__getitem__)
    return found


def _budget(scape: Landscape, factor: str) -> str:
    if scape.run_config is not None:
        return str(title_value(scape.run_config, factor))
    return str(scape.labels.get(factor, ""))


def _amount(value: object) -> float:
    """Return a number to sort by; all examples, which have none, come last."""
    return value if isinstance(value, (int, float)) else math.inf


def _colours(found: Sequence[PageLandscape]) -> list[list[str]]:
    """Return shades of each landscape's colour: its method's own, or another if that is taken."""
    spare = [key for key in STROKES if not stroke(key).hollow]
    taken: set[str] = set()
    chosen = []
    for one in found:
        config = one.landscape.run_config
        key = method_of(config, one.landscape.way) if config is not None else ""
        if key not in STROKES or key in taken:
            key = next((other for other in spare if other not in taken), key or spare[0])
        taken.add(key)
        chosen.append(shades(key, _SHADES))
    return chosen


def drawn(value: float) -> float | None:
    """Return a number to draw, with six digits; None if it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
