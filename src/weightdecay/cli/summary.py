"""The best settings of a sweep, for each algorithm, schedule and budget."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from weightdecay.cli.tuned import is_tuners
from weightdecay.labels import SYMBOLS
from weightdecay.number_format import reported, typed
from weightdecay.records import DECAYS, Run, RunConfig
from weightdecay.results import Landscape, landscapes
from weightdecay.table import error

# The fields that tell landscapes apart. Rate, decay and seed vary within a landscape.
_NAMES = [field.name for field in fields(RunConfig) if field.name not in ("lr", "seed", *DECAYS)]
_ROWS = 40
# Why `landscape` and `register` may name other settings.
_LOWEST = (
    "Best: the lowest single cell. `weightdecay landscape` recommends a setting from all cells."
)
_OF_A_TUNER = "Best: the lowest single run of each length. The tuner may recommend another setting."


@dataclass(frozen=True)
class Summary:
    """A table of best settings, starting with its header, and notes to print below it."""

    rows: list[tuple[str, ...]]
    notes: list[str]


def summary(folder: Path, runs: Iterable[Run]) -> Summary:
    """Return the best settings of a sweep; of a second stage, which chooses none, who judges it."""
    if (note := judged_by(folder)) is not None:
        return Summary([], [note])
    found = best_settings(runs)
    # A tuner's runs are no grid that could be extended: it says itself which range is too narrow.
    return replace(found, notes=[_OF_A_TUNER]) if is_tuners(folder) else found


def best_settings(runs: Iterable[Run]) -> Summary:
    """Return the best learning rate and decay of each landscape.

    The notes name those at an edge of their grid: a larger grid may have better ones.
    """
    found = landscapes(runs)
    apart = [name for name in _NAMES if name == "algorithm" or _differs(name, found)]
    found.sort(key=lambda one: [_place(getattr(one.config, name)) for name in apart])
    tested = reported(found)
    titles = (*apart, "best lr", "best decay", "validation", tested, "seeds")
    rows = [(*_name(one, apart), *_numbers(one)) for one in found[:_ROWS]]
    notes = [f"and {len(found) - _ROWS} more"] if len(found) > _ROWS else []
    notes += [_LOWEST] if any(len(one.cells) > 1 for one in found) else []
    at_edges = [(one, edges) for one in found[:_ROWS] if (edges := _edges(one))]
    if at_edges:
        notes.append("At an edge of the grid, where a larger grid may have a better setting:")
        notes += [f"  {' '.join(_name(one, apart))}: {', '.join(edges)}" for one, edges in at_edges]
    return Summary([titles, *rows], notes)


def best_values(folder: Path, runs: Iterable[Run]) -> list[dict[str, Any]] | None:
    """Return the same as plain values, one dictionary per landscape; None of a second stage."""
    if judged_by(folder) is not None:
        return None
    return [
        {
            "config": {name: getattr(one.config, name) for name in _NAMES},
            "lr": one.best.lr,
            "decay": one.best.decay,
            "decay_is": one.way,
            "chosen_on": one.chosen_on,
            "chosen_error": one.best.score,
            "test_error": one.best.mean,
            "test_standard_error": one.best.standard_error,
            "seeds": list(one.best.seeds),
            "diverged": bool(one.best.diverged),
            "edges": _edges(one),
        }
        for one in landscapes(runs)
    ]


def judged_by(folder: Path) -> str | None:
    """Return which command judges a second stage, which is kept in its first; None of others."""
    if not (folder.parent / "log").is_dir():
        return None
    from weightdecay.studies.registration_file import registered_for

    registered = registered_for(folder)
    if not registered:
        return None
    command = "reproduce" if folder.parent not in registered else f"judge {folder.parent}"
    return f"These runs judge registered settings, and choose none: run `weightdecay {command}`."


def _numbers(landscape: Landscape) -> tuple[str, ...]:
    best = landscape.best
    tested = error(best.mean, landscape.metric)
    if not math.isnan(best.standard_error):
        tested += f" ± {error(best.standard_error, landscape.metric)}"
    return (
        typed(best.lr),
        f"{SYMBOLS[landscape.way]} {typed(best.decay)}",
        "–" if landscape.chosen_on == "test" else error(best.score, landscape.metric),
        "diverged" if best.diverged else tested,
        str(len(best.seeds)),
    )


def _edges(landscape: Landscape) -> list[str]:
    """Return the edges where the grid could be extended. There is no decay below 0."""
    if landscape.best.diverged:
        return []
    outermost = "lowest decay" if landscape.best.decay == 0 else ""
    return [edge for edge in landscape.edges if edge != outermost]


def _name(landscape: Landscape, apart: Sequence[str]) -> list[str]:
    values = (getattr(landscape.config, name) for name in apart)
    return ["–" if value is None else str(value) for value in values]


def _differs(name: str, found: Iterable[Landscape]) -> bool:
    return len({getattr(one.config, name) for one in found}) > 1


def _place(value: object) -> tuple[float, str]:
    """Return a sort key: numbers by size, then names."""
    return (float(value) if isinstance(value, (int, float)) else math.inf, str(value))
