"""Panels with lines and points: curves over time, errors over settings, error against loss.

A panel is plain data that can draw itself on axes. An algorithm has the same colour, dashes and
mark in all panels; several traces of one algorithm go from light to dark.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from weightdecay.colours import MUTED, PAPER, shades, stroke
from weightdecay.figures.sheet import decay_words, drawn
from weightdecay.labels import name
from weightdecay.number_format import in_units, power
from weightdecay.results import Cell, Curve, Landscape


@dataclass(frozen=True)
class Trace:
    """A curve, its algorithm, and the x at which its cycles end, if it has cycles."""

    curve: Curve
    algorithm: str
    ends: tuple[float, ...] = ()


class Chart(ABC):
    """A panel for `curves` to lay out: a title, a drawing, and its entries in the legend."""

    title: str

    @abstractmethod
    def draw(self, axes: Axes) -> None:
        """Draw on empty axes."""

    @abstractmethod
    def handles(self) -> list[Line2D]:
        """Return the entries for the legend."""


@dataclass(frozen=True)
class Curves(Chart):
    """Medians over seeds during training, in a band that holds the middle 60 % of the seeds.

    There are no bands if an algorithm has several traces, as they would cover each other. A dot
    marks the end of a cycle, at which a trace that has cycles makes a step.
    """

    title: str
    traces: Sequence[Trace]
    along: str = "epochs"
    upward: str = "test error (%)"
    percent: bool = True
    log_x: bool = False
    log_y: bool = False
    limits: tuple[float, float] | None = None

    def draw(self, axes: Axes) -> None:
        factor = 100 if self.percent else 1
        for trace, colour, single in _coloured(self.traces):
            curve = trace.curve
            middle = [factor * value for value in curve.middle]
            stepped: dict[str, Any] = {"step": "post"} if trace.ends else {}
            if single:
                low, high = ([factor * value for value in end] for end in (curve.low, curve.high))
                band: dict[str, Any] = {"color": colour, "alpha": 0.2, "linewidth": 0}
                axes.fill_between(curve.x, low, high, **band, **stepped)
            line = {**drawn(stroke(trace.algorithm)), "color": colour}
            line["drawstyle"] = "steps-post" if trace.ends else "default"
            axes.plot(curve.x, middle, **line | ({} if single else {"linewidth": 0.9}))
            ended = [(x, y) for x, y in zip(curve.x, middle, strict=True) if x in trace.ends]
            if ended:
                mark = stroke(trace.algorithm).mark
                axes.plot(*zip(*ended, strict=True), mark, color=colour, markersize=5, mec=PAPER)
        _settle(axes, self.along, self.upward, log_x=self.log_x, log_y=self.log_y)
        if self.limits is not None:
            axes.set_ylim(*self.limits)
        if not self.log_x:
            longest = max((trace.curve.x[-1] for trace in self.traces if trace.curve.x), default=1)
            axes.set_xlim(0, 1.01 * longest)

    def handles(self) -> list[Line2D]:
        counts = Counter(trace.algorithm for trace in self.traces)
        handles = {}
        for trace in self.traces:
            label = trace.curve.label or name(trace.algorithm)
            if counts[trace.algorithm] > 1:
                label = f"{name(trace.algorithm)}, light to dark: small to large decay"
            handles[trace.algorithm] = Line2D([], [], label=label, **drawn(stroke(trace.algorithm)))
        ends = [_mark("o", "end of a cycle")] if any(trace.ends for trace in self.traces) else []
        return [*handles.values(), *ends]


@dataclass(frozen=True)
class Settings(Chart):
    """The mean final test error at each decay, with its standard error, at one learning rate.

    Each landscape is drawn in the style of its algorithm. A decay of 0 stands apart on the left. A
    setting that diverged for every seed is a cross at the top, whatever its error was.
    """

    title: str
    landscapes: Sequence[tuple[str, Landscape]]
    lr: float
    upward: str = "test error (%)"
    limits: tuple[float, float] | None = None

    def draw(self, axes: Axes) -> None:
        decays = [d for _, scape in self.landscapes for d in scape.decays if d > 0]
        lowest = math.floor(math.log2(min(decays))) if decays else 0
        highest = math.ceil(math.log2(max(decays))) if decays else 0
        nowhere = lowest - max(1.5, 0.12 * (highest - lowest))
        lost = []
        for algorithm, landscape in self.landscapes:
            row = self._row(landscape)
            lost += [(cell.decay, algorithm) for cell in row if _lost(cell)]
            row = [cell for cell in row if not _lost(cell)]
            for cells in ([c for c in row if c.decay], [c for c in row if not c.decay]):
                axes.errorbar(
                    [math.log2(cell.decay) if cell.decay else nowhere for cell in cells],
                    [in_units(cell.mean, landscape.metric) for cell in cells],
                    [in_units(_known(cell.standard_error), landscape.metric) for cell in cells],
                    **_marked(algorithm),
                    **drawn(stroke(algorithm)) | {"linewidth": 1.1},
                    elinewidth=0.9,
                )
        ways = sorted({scape.way for _, scape in self.landscapes})
        _settle(axes, " or ".join(decay_words(way) for way in ways), self.upward)
        if self.limits is not None:
            axes.set_ylim(*self.limits)
        for decay, algorithm in lost:
            x = math.log2(decay) if decay else nowhere
            colour = stroke(algorithm).colour
            axes.plot(x, 0.97, "x", color=colour, transform=axes.get_xaxis_transform())
        powers = range(lowest, highest + 1, max(1, (highest - lowest) // 7))
        without = any(0.0 in scape.decays for _, scape in self.landscapes)
        axes.set_xticks(
            [nowhere] * without + list(powers),
            ["0"] * without + [power(2.0**exponent) for exponent in powers],
        )
        axes.set_xlim(nowhere - 0.5 if without else lowest - 0.5, highest + 0.5)

    def handles(self) -> list[Line2D]:
        lost = any(_lost(cell) for _, scape in self.landscapes for cell in self._row(scape))
        points = [_point(algorithm) for algorithm, _ in self.landscapes]
        return points + [_mark("x", "diverged")] * lost

    def _row(self, landscape: Landscape) -> list[Cell]:
        return [cell for (lr, _), cell in sorted(landscape.cells.items()) if lr == self.lr]


@dataclass(frozen=True)
class Scatter(Chart):
    """One point per run: its final test error against its final training loss."""

    title: str
    clouds: Sequence[tuple[str, Sequence[tuple[float, float]]]]
    along: str = "training loss"
    upward: str = "test error (%)"
    percent: bool = True
    log_x: bool = False
    log_y: bool = False

    def draw(self, axes: Axes) -> None:
        factor = 100 if self.percent else 1
        for algorithm, points in self.clouds:
            losses = [loss for loss, _ in points]
            errors = [factor * error for _, error in points]
            axes.plot(losses, errors, linestyle="none", **_marked(algorithm))
        _settle(axes, self.along, self.upward, log_x=self.log_x, log_y=self.log_y)

    def handles(self) -> list[Line2D]:
        return [_point(algorithm) for algorithm, _ in self.clouds]


def _coloured(traces: Sequence[Trace]) -> Iterable[tuple[Trace, str, bool]]:
    """Yield each trace with its colour, and whether it is its algorithm's only one."""
    counts = Counter(trace.algorithm for trace in traces)
    colours = {algorithm: iter(shades(algorithm, count)) for algorithm, count in counts.items()}
    for trace in traces:
        yield trace, next(colours[trace.algorithm]), counts[trace.algorithm] == 1


def _marked(algorithm: str) -> dict[str, Any]:
    look = stroke(algorithm)
    return {
        "marker": look.mark,
        "markersize": 4.5,
        "markerfacecolor": PAPER if look.hollow else look.colour,
        "markeredgecolor": look.colour,
        "markeredgewidth": 1.1,
    }


def _point(algorithm: str) -> Line2D:
    return Line2D([], [], linestyle="none", label=name(algorithm), **_marked(algorithm))


def _mark(marker: str, label: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, markersize=5, color=MUTED, label=label)


def _lost(cell: Cell) -> bool:
    return len(cell.diverged) == len(cell.seeds)


def _known(error: float) -> float:
    return 0.0 if math.isnan(error) else error


def _settle(
    axes: Axes, along: str, upward: str, *, log_x: bool = False, log_y: bool = False
) -> None:
    """Label the axes, and write plain numbers on log scales, at 1, 2 and 5 of each decade."""
    axes.set_xlabel(along, labelpad=2)
    axes.set_ylabel(upward, labelpad=3)
    axes.grid(visible=True, axis="y")
    axes.tick_params(length=2.5)
    for axis, log in ((axes.xaxis, log_x), (axes.yaxis, log_y)):
        if log:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_locator(NullLocator())
            axis.set_minor_formatter(NullFormatter())
