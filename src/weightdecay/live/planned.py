"""Planned cells on a page: landscapes with a place for every cell, trained or not."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weightdecay.labels import AXES
from weightdecay.records import RunConfig
from weightdecay.results import Landscape
from weightdecay.results.agreement import varied
from weightdecay.results.grouping import apart
from weightdecay.site.advice import config_title
from weightdecay.site.page_data import decay_texts, drawn, page_data
from weightdecay.site.page_landscape import PageLandscape
from weightdecay.table import shown

#: What the configurations of one landscape have in common.
Key = tuple[RunConfig, str]
Place = tuple[float, float]
#: A cell of a landscape.
Cell = tuple[Key, Place]
#: The cells of landscapes: a configuration of each, and its settings.
Plan = Mapping[Key, set[Place]]
_NOTHING = "Nothing is trained here yet."


def planned(configs: Iterable[RunConfig]) -> dict[Key, set[Place]]:
    """Group configurations into landscapes."""
    found: dict[Key, set[Place]] = {}
    for key, place in map(cell_of, configs):
        found.setdefault(key, set()).add(place)
    return found


def cell_of(config: RunConfig) -> Cell:
    """Return the cell that a configuration is a run of."""
    key = apart(config)
    return key, (config.lr, getattr(config, key[1]))


def titles(plan: Plan) -> dict[Key, str]:
    """Return the titles of landscapes, which name the settings in which they differ."""
    differing = varied(config for config, _ in plan)
    return {key: config_title(*key, differing) for key in plan}


def with_planned(
    pages: Sequence[PageLandscape], plan: Plan
) -> tuple[dict[str, Any], dict[tuple[Key, Place], tuple[int, int]]]:
    """Return a page's data with a place for each planned cell, and where each cell is in it."""
    data = page_data(pages)
    named = titles(plan)
    found = []
    for page, drawn_as in zip(pages, data["landscapes"], strict=True):
        config = page.landscape.run_config
        key = None if config is None else apart(config)
        own = set(page.landscape.cells)
        places = sorted(own | (plan.get(key, set()) if key is not None else set()))
        found.append((key, places, _widened(drawn_as, page.landscape, places)))
    started = {key for key, _, _ in found}
    waiting = [key for key in plan if key not in started]
    if not pages:
        data |= {"splits": {"test": "test error"}, "scales": {"test": {}}}
    split = next(iter(data["splits"]))
    for key in waiting:
        places = sorted(plan[key])
        found.append((key, places, _empty(named[key], key, places, split)))
    found.sort(key=lambda one: str(one[2]["title"]))
    data["landscapes"] = [scape for _, _, scape in found]
    where = {
        (key, place): (at, cell)
        for at, (key, places, _) in enumerate(found)
        if key is not None
        for cell, place in enumerate(places)
    }
    return data, where


def _widened(data: Mapping[str, Any], scape: Landscape, places: Sequence[Place]) -> dict[str, Any]:
    """Return a landscape's data with more cells, in the order of `places`."""
    there = {place: at for at, place in enumerate(scape.cells)}
    kept = [there.get(place) for place in places]

    def column(values: Sequence[Any], empty: Any) -> list[Any]:
        return [empty if at is None else values[at] for at in kept]

    lrs = sorted({lr for lr, _ in places})
    cells = data["cells"]
    curves = data["curves"]
    if curves is not None:
        rows = {split: column(own, None) for split, own in curves["rows"].items()}
        curves = {**curves, "rows": rows}
    return {
        **data,
        "lrs": [drawn(lr) for lr in lrs],
        "lrTexts": [shown(lr, 3) for lr in lrs],
        "cells": {
            "lr": [lrs.index(lr) for lr, _ in places],
            "decay": [drawn(decay) for _, decay in places],
            **{name: column(cells[name], 0) for name in ("seeds", "diverged", "tied", "outlier")},
            "twin": column(cells["twin"], ""),
            "texts": decay_texts(scape, places),
        },
        "splits": {
            name: {
                "values": column(own["values"], None),
                "texts": column(own["texts"], "–"),
                "spreads": column(own["spreads"], ""),
            }
            for name, own in data["splits"].items()
        },
        "curves": curves,
    }


def _empty(title: str, key: Key, places: Sequence[Place], split: str) -> dict[str, Any]:
    """Return the data of a landscape of which no cell is trained yet."""
    _, way = key
    lrs, none = sorted({lr for lr, _ in places}), [0] * len(places)
    return {
        "title": title,
        "words": f"{title}: {len(places)} planned settings. {_NOTHING}",
        "metric": None,
        "way": way,
        "axis": " ".join(AXES[way]),
        "ways": [way],
        "updates": None,
        "scattered": False,
        "colours": ["#888888"] * 5,
        "budget": {},
        "lrs": [drawn(lr) for lr in lrs],
        "lrTexts": [shown(lr, 3) for lr in lrs],
        "cells": {
            "lr": [lrs.index(lr) for lr, _ in places],
            "decay": [drawn(decay) for _, decay in places],
            "seeds": none,
            "diverged": none,
            "tied": none,
            "outlier": none,
            "twin": [""] * len(places),
            "texts": {way: [shown(decay, 3) for _, decay in places]},
        },
        "splits": {
            split: {
                "values": [None] * len(places),
                "texts": ["–"] * len(places),
                "spreads": [""] * len(places),
            }
        },
        "curves": None,
        "advice": None,
        "moves": [],
    }
