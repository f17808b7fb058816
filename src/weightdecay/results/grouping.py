"""Runs of any origin, grouped into landscapes.

Choices are made on the validation split; errors are reported on the test set, at the last epoch. Of
runs without test errors, such as those of a training loop that was tuned, validation errors are
reported, and called so.
The paper chose on the test set; `choose_on="test"` does the same. For ImageNet32 it reports top-5
errors; `of="error_top5"` chooses on these and reports them. Runs that were made elsewhere are
`Point`s, and may have a loss instead of an error.
"""

import math
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from weightdecay import checks, records
from weightdecay.records import DECAYS, Run, RunConfig, Spec
from weightdecay.records.table_columns import ForeignTableError
from weightdecay.results.landscape import Cell, Landscape
from weightdecay.results.points import Point, is_result

#: The errors of a record that a landscape can show.
ERRORS = ("error", "error_top5")
# The fields in which the configurations of one landscape differ.
_VARIED = ("lr", "seed", *DECAYS)
_ONLY_VALIDATION = (
    '`choose_on` must be "validation" for runs that only have a validation metric, got '
    "'test'. {cure}"
)


def landscapes(
    measured: Iterable[Run | Point] | Path | str,
    *,
    choose_on: str = "validation",
    of: str = "error",
) -> list[Landscape]:
    """Group runs that differ only in rate, decay and seed; landscapes keep the runs' order.

    A path is a sweep's folder, or a Parquet or CSV file with runs of this package. Points that were
    made elsewhere are grouped by their labels. If a configuration occurs twice, the first counts. A
    run without a record is left out. `of` is the error to choose on and to report: "error" or
    "error_top5"; points have one metric of their own.
    """
    checks.one_of("choose_on", choose_on, ("validation", "test"))
    checks.one_of("of", of, ERRORS)
    groups: dict[Hashable, dict[Hashable, Run]] = {}
    foreign: dict[Hashable, dict[Hashable, Point]] = {}
    order: dict[Hashable, None] = {}
    for one in _read(measured):
        if isinstance(one, Point):
            if of not in ("error", one.of):
                raise ValueError(
                    f'`of` must be "error" for runs made elsewhere, got {of!r}. Their metric is '
                    "the one that was read. Name another: columns={'error': …}."
                )
            splits = one.tested_on, one.chosen_on
            key: Hashable = (one.way, one.of, splits, tuple(sorted(one.labels.items())))
            foreign.setdefault(key, {}).setdefault((one.lr, one.decay, one.seed), one)
        elif not isinstance(one, Run):
            raise TypeError(
                f"`measured` must hold runs or points, got {one!r}. Read a table of other runs "
                "with weightdecay.results.read_points."
            )
        elif one.records:
            key = apart(one.config)
            groups.setdefault(key, {}).setdefault(one.config, one)
        else:
            continue
        order.setdefault(key)
    return [
        _landscape(list(groups[key].values()), choose_on, of)
        if key in groups
        else _of_points(list(foreign[key].values()), choose_on)
        for key in order
    ]


def _read(source: Iterable[Run | Point] | Path | str) -> Iterable[Run | Point]:
    """Return the runs, read if a path is given; warn about anything left out."""
    if not isinstance(source, Path | str):
        return source
    try:
        found = records.read(source)
    except ForeignTableError as error:
        raise ValueError(
            f"{error} Read it with landscapes(read_points({str(source)!r}, convention='torch')), "
            "or with the convention that its decay is in."
        ) from None
    for said in found.left_out:
        warnings.warn(f"{source}: {said}", RuntimeWarning, stacklevel=3)
    return found.runs


def way_of(config: RunConfig) -> str:
    """Return how a configuration states its decay."""
    [way] = [way for way in DECAYS if getattr(config, way) is not None]
    return way


def apart(config: RunConfig) -> tuple[RunConfig, str]:
    """Return what the configurations of one landscape have in common."""
    way = way_of(config)
    stated: dict[str, Any] = {way: 0}
    return replace(config, lr=1, seed=0, **stated), way


def _landscape(runs: list[Run], choose_on: str, of: str) -> Landscape:
    way = way_of(runs[0].config)
    config = min(
        (run.config for run in runs), key=lambda one: (one.lr, getattr(one, way), one.seed)
    )
    chosen_on = "test" if config.validation == "test" else choose_on
    if chosen_on == "test" and not _are_tested(runs):
        raise ValueError(_ONLY_VALIDATION.format(cure="Leave it out."))
    metric = runs[0].last.metric
    if metric is not None and of != "error":
        raise ValueError(f'`of` must be "error" for {config.task}: its {metric} has no {of}.')
    tested_on = "test" if chosen_on == "test" or _are_tested(runs) else "validation"
    whole = [run for run in runs if not run.diverged and run.last.epoch == config.epochs]
    cells: dict[tuple[float, float], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.config.lr, getattr(run.config, way)), []).append(run)
    return Landscape(
        run_config=config,
        way=way,
        lrs=tuple(sorted({lr for lr, _ in cells})),
        decays=tuple(sorted({decay for _, decay in cells})),
        cells={
            place: _cell(place, cells[place], (chosen_on, tested_on), of) for place in sorted(cells)
        },
        chosen_on=chosen_on,
        tested_on=tested_on,
        updates=_cycle(whole[0]) if whole else None,
        examples=whole[0].last.updates // whole[0].last.epoch * config.batch if whole else None,
        of=of,
        metric=metric,
        environments=Counter(run.environment for run in runs),
        labels={
            name: value
            for name, value in config.as_dict().items()
            if name not in _VARIED and value is not None
        },
    )


def _are_tested(runs: Iterable[Run]) -> bool:
    """Whether test errors are known, or nothing else is.

    Earlier versions kept a tuned loop's validation errors as test errors too, without a loss.
    """
    ends = [run.last for run in runs]
    return all(end.validation_error is None for end in ends) or any(
        end.test_loss is not None or end.test_error not in (None, end.validation_error)
        for end in ends
    )


def _of_points(points: list[Point], choose_on: str) -> Landscape:
    first = points[0]
    if choose_on == "test" and first.tested_on == "validation":
        cure = "Leave it out, or read a test metric too: columns={'error': …}."
        raise ValueError(_ONLY_VALIDATION.format(cure=cure))
    cells: dict[tuple[float, float], list[Point]] = {}
    for point in points:
        cells.setdefault((point.lr, point.decay), []).append(point)
    # A run that diverged without an error counts as the worst that there is.
    known = [point.tested for point in points if is_result(point.tested)]
    worst = max(known, default=1.0)
    updates = first.labels.get("updates")
    return Landscape(
        run_config=None,
        way=first.way,
        told_in=first.told_in,
        lrs=tuple(sorted({lr for lr, _ in cells})),
        decays=tuple(sorted({decay for _, decay in cells})),
        cells={place: _point_cell(cells[place], choose_on, worst) for place in sorted(cells)},
        chosen_on=first.tested_on if choose_on == "test" else first.chosen_on,
        tested_on=first.tested_on,
        updates=updates if isinstance(updates, int) else None,
        of=first.of,
        metric="loss" if first.of == "loss" else None,
        labels=dict(first.labels),
    )


def _point_cell(points: list[Point], choose_on: str, worst: float) -> Cell:
    points = sorted(points, key=lambda point: point.seed)
    tested = [one.tested if is_result(one.tested) else worst for one in points]
    chosen = [
        error if choose_on == "test" or one.chosen is None else one.chosen
        for one, error in zip(points, tested, strict=True)
    ]
    return Cell(
        points[0].lr,
        points[0].decay,
        seeds=tuple(one.seed for one in points),
        chosen=tuple(error if is_result(error) else worst for error in chosen),
        tested=tuple(tested),
        diverged=tuple(one.seed for one in points if one.diverged),
        losses=tuple(math.nan if one.train_loss is None else one.train_loss for one in points),
    )


def _cell(place: tuple[float, float], runs: list[Run], splits: tuple[str, str], of: str) -> Cell:
    chosen_on, tested_on = splits
    runs = sorted(runs, key=lambda run: run.config.seed)

    def last(name: str) -> tuple[float, ...]:
        found = (getattr(run.last, name) for run in runs)
        return tuple(math.nan if value is None else value for value in found)

    return Cell(
        *place,
        seeds=tuple(run.config.seed for run in runs),
        chosen=last(f"{chosen_on}_{of}"),
        tested=last(f"{tested_on}_{of}"),
        diverged=tuple(run.config.seed for run in runs if run.diverged),
        losses=last("train_loss"),
        packs=tuple(run.pack for run in runs),
    )


def _cycle(run: Run) -> int:
    """Return the updates of a run's last cycle."""
    *before, last = run.records
    if last.cycle_updates is not None:
        return last.cycle_updates
    ends = [record.updates for record in before if record.cycle_ended]
    if ends:
        return last.updates - ends[-1]
    # Warm-up comes before the first cycle and is no part of it.
    warmup = Spec.parse("schedule", run.config.schedule).options.get("warmup", 0)
    assert isinstance(warmup, (int, float))
    return last.updates - round(warmup * last.updates / last.epoch)


def decay_limit(way: str, runs: Iterable[Run]) -> float:
    """Return what a decay must stay below, so that λ is below 1 in the shortest cycle of runs."""
    cycles = [record.cycle_updates for run in runs for record in run.records]
    shortest = min((updates for updates in cycles if updates), default=math.inf)
    return {"l2": math.inf, "weight_decay": 1.0, "normalized_decay": math.sqrt(shortest)}[way]
