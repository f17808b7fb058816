"""Points from any table that has a learning rate, a decay and a metric.

Columns are recognized by name, or named in `columns`. Nothing is dropped silently: rows that were
left out, repeated or diverged are counted in the remarks of `Points`.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from weightdecay import checks
from weightdecay.decay import meant_as_torchs
from weightdecay.results.last_rows import Logged, logged
from weightdecay.results.points import HUGE, Point, Points, Remark, checked_convention
from weightdecay.results.raw_tables import table_of
from weightdecay.results.table_layout import TableLayout

_FINISHED = {"complete", "completed", "finished", "done", "success", "succeeded", "terminated"}
_DIVERGED = "diverged"
_COPY = "is a copy of another row"


def read_points(
    source: str | Path | object,
    *,
    convention: str | None = None,
    columns: Mapping[str, str] | None = None,
    metric: str | None = None,
    unit: str | None = None,
    labels: Sequence[str] = (),
) -> Points:
    """Read runs made elsewhere from a CSV or Parquet file or a frame with one row per run.

    `convention` says how the decay is stated and has no default: "paper", "torch", "l2" or
    "normalized". `columns` names columns that go by other names than those known, as in
    {"lr": "optimizer.base", "accuracy": "final_score"}. `metric` is "error", "accuracy" or "loss"
    if the column's name does not say, and `unit` "fraction" or "percent" if its numbers do not.
    `labels` are further columns that separate runs into landscapes. If a run has one row per epoch
    or step, its last row counts.
    """
    convention = checked_convention(convention)
    if metric is not None:
        checks.one_of("metric", metric, ("error", "accuracy", "loss"))
    layout = TableLayout(
        table_of(source),
        convention,
        columns=columns or {},
        metric=metric,
        unit=unit,
        labels=labels,
    )
    return _Reading(layout).points()


class _Reading:
    """The reading of a table: its points so far, and counts for the remarks."""

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        self.seeded = layout.settings["seed"] is not None
        self.left = Counter[str]()
        self.logged = Logged()
        self.repeated = self.differing = self.numbered = 0

    def points(self) -> Points:
        """Return the points of all rows that have one."""
        rows: set[str] = set()
        known: dict[Hashable, list[Point]] = {}
        for row, decay in self._last_rows().items():
            if not self.seeded:
                # Without seeds, only an exact copy of another row is a repeat.
                content = repr([values[row] for values in self.layout.table.values()])
                if content in rows:
                    self.left[_COPY] += 1
                    continue
                rows.add(content)
            point = self._point(row, decay, seed=None if self.seeded else 0)
            same = known.setdefault(self._key(point), [])
            if not same:
                same.append(point)
            elif self.seeded:
                self.repeated += 1
                self.differing += point != same[0]
            else:
                same.append(self._point(row, decay, seed=len(same)))
                self.numbered += 1
        found = tuple(point for same in known.values() for point in same)
        remarks = tuple(self._remarks(found))
        if not found:
            raise ValueError(
                "A table must have a row with a learning rate, a decay and a metric, got none. "
                + " ".join(remark.text for remark in remarks)
            )
        return Points(found, remarks, self.layout.columns)

    def _last_rows(self) -> dict[int, float]:
        """Return the decay of each row that has a result, without the earlier epochs of a run."""
        decays: dict[int, float] = {}
        for row, decay in zip(self.layout.rows, self.layout.decays(), strict=True):
            reason = self._left_out(row, decay)
            if reason:
                self.left[reason] += 1
            elif decay is not None:
                decays[row] = decay
        self.logged = logged(self.layout, decays, {row for row in decays if self._has_result(row)})
        counted: dict[int, float] = {}
        for row, decay in decays.items():
            if row in self.logged.earlier:
                continue
            no_metric = self.layout.errors(row)[0] is None and not self._diverged(row)
            if no_metric or row in self.logged.empty:
                self.left["has no metric"] += 1
            else:
                counted[row] = decay
        return counted

    def _left_out(self, row: int, decay: float | None) -> str:
        """Return why a row is left out whatever its metric is; nothing if it is not."""
        state = self.layout.cell(row, "state")
        if isinstance(state, str) and state.lower() not in _FINISHED | {_DIVERGED}:
            return f"has the state {state!r}"
        lr = self.layout.number(row, "lr")
        if lr is None or decay is None:
            return "has no learning rate or no decay"
        if not 0 < lr < math.inf:
            return "has a learning rate that is 0, negative or infinite"
        if not 0 <= decay < math.inf:
            return "has a decay that is negative or infinite"
        return ""

    def _point(self, row: int, decay: float, *, seed: int | None) -> Point:
        layout = self.layout
        lr = layout.number(row, "lr")
        assert lr is not None
        tested, chosen = layout.errors(row)
        loss = layout.metrics.get("train_loss")
        try:
            return Point(
                lr=lr,
                decay=decay + 0.0,  # not -0
                way=layout.way(row),
                told_in=layout.convention,
                tested=math.nan if tested is None else tested,
                chosen=chosen,
                tested_on=layout.reported.split,
                chosen_on=layout.deciding.split,
                seed=self._seed(row) if seed is None else seed,
                train_loss=None if loss is None else _finite(layout.table[loss.column][row]),
                diverged=self._diverged(row),
                of=layout.of,
                labels=layout.labels_of(row),
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"Row {row + 1}: {error}") from None

    def _diverged(self, row: int) -> bool:
        if self._says_diverged(row) or row in self.logged.diverged:
            return True
        errors = self.layout.errors(row)
        return any(value is not None and not math.isfinite(value) for value in errors)

    def _says_diverged(self, row: int) -> bool:
        told = self.layout.cell(row, "diverged")
        state = self.layout.cell(row, "state")
        return told is True or told == 1 or (isinstance(state, str) and state.lower() == _DIVERGED)

    def _has_result(self, row: int) -> bool:
        """Return whether a row has every metric, or says that its run diverged."""
        tested, chosen = self.layout.errors(row)
        complete = tested is not None and not any(map(math.isnan, (tested, chosen or 0.0)))
        return complete or self._says_diverged(row)

    def _seed(self, row: int) -> int:
        seed = self.layout.cell(row, "seed")
        if isinstance(seed, float) and seed.is_integer():
            seed = int(seed)
        return 0 if seed is None else checks.whole("seed", seed, at_least=0)

    def _key(self, point: Point) -> Hashable:
        seed = point.seed if self.seeded else None
        return point.lr, point.decay, seed, tuple(sorted(point.labels.items()))

    def _remarks(self, found: Sequence[Point]) -> list[Remark]:
        told = [*self.layout.remarks(), *self._of_convention(found)]
        diverged = sum(point.diverged for point in found)
        if diverged:
            reasons = f"the metric is NaN, infinite or above {HUGE:.0e}, or a column says so."
            if self.logged.diverged:
                reasons = (
                    f"the metric is NaN, infinite or above {HUGE:.0e}, a column says so, or the "
                    "run goes on without a metric where other runs have one. If it only stopped "
                    "early, leave out its rows without a metric."
                )
            told.append(Remark("diverged", diverged, f"{_rows(diverged)} diverged: {reasons}"))
        if earlier := len(self.logged.earlier):
            columns = " and ".join(map(repr, self.logged.columns))
            text = (
                f"{_rows(earlier)} left out: by {columns}, {_each(earlier)} is an earlier row of a "
                "run. The last row of each run counts"
            )
            first, last = self.logged.ends
            if -math.inf < first < last:
                text += f"; they end at {self.logged.columns[0]!r} {first:g} to {last:g}"
            told.append(Remark("earlier", earlier, f"{text}."))
        for reason, count in self.left.items():
            kind = "repeated" if reason == _COPY else "left out"
            text = f"{_rows(count)} left out: {_each(count)} {reason}."
            text += " A `seed` column would tell runs from copies." * (reason == _COPY)
            told.append(Remark(kind, count, text))
        if self.repeated:
            each = _each(self.repeated)
            text = (
                f"{_rows(self.repeated)} left out: {each} repeats the setting and seed of another"
            )
            text += f"; {self.differing} of them came to another result." * bool(self.differing)
            text += "." * (not self.differing)
            told.append(Remark("repeated", self.repeated, text))
        if self.numbered:
            text = f"{_rows(self.numbered)} repeat a setting; without a seed they are numbered."
            if column := self.logged.stops:
                text += (
                    f" They differ in {column!r}, which is read as where each run stopped. If they "
                    f"are epochs of one run, pass columns={{'epoch': {column!r}}}."
                )
            told.append(Remark("numbered", self.numbered, text))
        return told

    def _of_convention(self, found: Iterable[Point]) -> Iterator[Remark]:
        """Yield a remark if the λ of a best run was probably meant as torch's weight_decay.

        Runs with other labels, which may be another landscape, have a best of their own.
        """
        groups: dict[Hashable, list[Point]] = {}
        if self.layout.convention == "paper":
            for one in found:
                if not one.diverged:
                    groups.setdefault(tuple(sorted(one.labels.items())), []).append(one)
        for own in groups.values():
            best = min(own, key=lambda one: one.tested if one.chosen is None else one.chosen)
            if meant_as_torchs(best.decay, best.lr):
                text = (
                    f"At the best run, λ = {best.decay:g} with lr {best.lr:g}: every update would "
                    f"remove {100 * best.decay:.3g} % of every weight. If the column holds torch's "
                    "weight_decay, pass convention='torch'."
                )
                yield Remark("convention", 1, text)
                return


def _finite(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _each(count: int) -> str:
    return "it" if count == 1 else "each"


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"
