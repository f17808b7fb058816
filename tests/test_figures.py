"""Pictures: every mark is where its number says, nothing is cut, and bytes do not change."""

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from tests.landscapes import Truth
from tests.scattered import search
from weightdecay.colours import COLOURS_OF_ERRORS, STOPS_OF_ERRORS, luminance
from weightdecay.figures import (
    Curves,
    NothingToDrawError,
    Scatter,
    Settings,
    Trace,
    curves,
    heatmaps,
    multipliers,
    save,
)
from weightdecay.figures.cell_positions import GAP, place
from weightdecay.figures.heatmaps import scale
from weightdecay.records import RunConfig
from weightdecay.results import (
    Cell,
    Coupling,
    Curve,
    Exponent,
    Landscape,
    Line,
    Point,
    RidgePoint,
    landscapes,
    recommend,
)
from weightdecay.results import coupling as measured_coupling
from weightdecay.schedules import Constant, WarmRestarts

LRS = tuple(2.0**power for power in range(-7, 0))
DECAYS = (0.0, *(0.001 * 2.0**power for power in range(-3, 4)))
SMALL = "56 settings × 3 seeds; a toy of 100 epochs, batch 30. " * 3 + "\nMade by: weightdecay draw"


def landscape(
    *, lost: int = 0, partly: int = 0, missing: int = 0, tied: int = 3, floor: float = 0.05
) -> Landscape:
    """Return a bowl; the cells with the largest lr and decay may be lost, the first ones missing.

    The best `tied` cells have the same errors; all others are far above what seeds differ by.
    """
    places = [(lr, decay) for lr in LRS for decay in DECAYS]
    depth = {
        (lr, decay): math.log2(lr * 16) ** 2 + (math.log2(decay * 1000) ** 2 if decay else 20.5)
        for lr, decay in places
    }
    order = sorted(places[missing:], key=lambda cell: (depth[cell], cell))
    cells = {}
    for index, (lr, decay) in enumerate(order):
        error = floor + 0.004 * max(0, index - tied + 1)
        errors = tuple(error + shift for shift in (-0.0001, 0.0, 0.0001))
        dead = places.index((lr, decay)) >= len(places) - lost
        torn = not dead and places.index((lr, decay)) >= len(places) - lost - partly
        ended = (0, 1, 2) if dead else (1,) if torn else ()
        final = (0.9, 0.9, 0.9) if dead else errors
        cells[lr, decay] = Cell(lr, decay, (0, 1, 2), final, final, ended, (0.1, 0.1, 0.1))
    config = RunConfig(
        task="mnist1d", model="mlp", algorithm="adamw", lr=1, weight_decay=0, epochs=9, batch=30
    )
    return Landscape(config, "weight_decay", LRS, DECAYS, cells, "validation", 900)


def coupling(s: float = 0.5, **said: Any) -> Coupling:
    exponent = Exponent(**{"value": s, "low": s - 0.125, "high": s + 0.125, **said})
    intercept = math.log2(0.001) - 4 * s  # through the bowl's centre, α = 2⁻⁴ and λ = 0.001
    ridge = tuple(RidgePoint(lr, 2 ** (intercept - s * math.log2(lr)), 0.25) for lr in LRS[1:-1])
    return Coupling(exponent, exponent, ridge, Line(-s, intercept, LRS[1], LRS[-2]))


def panel(figure: Figure, index: int = 0) -> Axes:
    return figure.axes[index]


def found(axes: Axes, label: str) -> Any:
    [collection] = [one for one in axes.collections if one.get_label() == label]
    return collection


def middles(axes: Axes, label: str) -> list[tuple[float, float]]:
    """Return where the shapes of a collection are centred."""
    boxes = (path.get_extents() for path in found(axes, label).get_paths())
    return [(round((b.x0 + b.x1) / 2, 6), round((b.y0 + b.y1) / 2, 6)) for b in boxes]


def where(lr: float, decay: float) -> tuple[float, float]:
    column = DECAYS.index(decay) - 1 if decay else -1 - GAP
    return column, LRS.index(lr)


def words(figure: Figure) -> list[Text]:
    """Return all that is written: a tick beyond its axis has a label, which is not."""
    figure.canvas.draw()
    hidden = [
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for label, at in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
        if not min(axis.get_view_interval()) <= at <= max(axis.get_view_interval())
    ]
    every = (text for text in figure.findobj(Text) if text.get_visible() and text.get_text())
    return [text for text in every if text not in hidden]


def test_ten_cells_are_circled_and_they_are_the_best() -> None:
    shown = landscape()
    axes = panel(heatmaps([("AdamW", shown, None)], columns=1))
    expected = [where(cell.lr, cell.decay) for cell in shown.ten_best]
    assert len(expected) == 10
    assert middles(axes, "best") == expected
    assert middles(axes, "the best") == expected[:1]


@pytest.mark.parametrize("tied", [1, 2, 3])
def test_the_cells_tied_with_the_best_are_outlined_together(tied: int) -> None:
    shown = landscape(tied=tied)
    assert len(shown.tied) == tied
    axes = panel(heatmaps([("AdamW", shown, None)], columns=1))
    edges = {
        tuple(sorted(map(tuple, np.round(segment, 6).tolist())))
        for segment in found(axes, "tied").get_segments()
    }
    inside = {where(cell.lr, cell.decay) for cell in shown.tied}
    expected = set()
    for x, y in inside:
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if (x + dx, y + dy) not in inside:
                middle = np.array((x + dx / 2, y + dy / 2))
                along = np.array((dy, dx)) / 2
                expected.add(tuple(sorted((tuple(middle - along), tuple(middle + along)))))
    assert edges == expected


def test_a_cell_that_diverged_is_crossed_and_one_that_did_for_some_seeds_is_struck() -> None:
    shown = landscape(lost=2, partly=1)
    axes = panel(heatmaps([("AdamW", shown, None)], columns=1))
    lost = [where(LRS[-1], decay) for decay in DECAYS[-2:]]
    assert sorted(middles(axes, "diverged")) == lost
    strokes = [tuple(np.mean(line, 0)) for line in found(axes, "crosses").get_segments()]
    assert sorted(strokes) == sorted([*lost, *lost, where(LRS[-1], DECAYS[-3])])
    assert len(middles(axes, "errors")) == len(LRS) * len(DECAYS) - 2


def test_decay_runs_along_x_and_the_learning_rate_upward() -> None:
    shown = landscape()
    axes = panel(heatmaps([("AdamW", shown, None)], columns=1))
    errors = found(axes, "errors")
    drawn = dict(zip(middles(axes, "errors"), errors.get_array(), strict=True))
    for (lr, decay), cell in shown.cells.items():
        assert drawn[where(lr, decay)] == pytest.approx(100 * cell.mean)
    assert axes.get_ylim()[0] < axes.get_ylim()[1]
    assert axes.get_xlabel() == "weight decay λ  (× 0.001)"
    assert axes.get_ylabel() == "learning rate α"


def test_ticks_are_powers_of_two_and_no_decay_stands_apart() -> None:
    axes = panel(heatmaps([("AdamW", landscape(), None)], columns=1))
    along = [label.get_text() for label in axes.get_xticklabels()]
    assert along == ["0", "2⁻³", "2⁻²", "2⁻¹", "2⁰", "2¹", "2²", "2³"]
    assert [label.get_text() for label in axes.get_yticklabels()][::6] == ["2⁻⁷", "2⁻¹"]
    first, second, *others = axes.get_xticks()
    assert second - first > 1
    assert {later - earlier for earlier, later in pairwise([second, *others])} == {1.0}


def test_cells_are_square_on_the_page() -> None:
    figure = heatmaps([("a", landscape(), None)] * 3, columns=2)
    figure.canvas.draw()
    sizes = set()
    for axes in figure.axes[:3]:
        (left, bottom), (right, top) = axes.transData.transform([(0, 0), (1, 1)])
        assert right - left == pytest.approx(top - bottom)
        sizes.add(round(right - left, 3))
    assert len(sizes) == 1


def test_all_panels_have_one_scale_of_colours_from_the_best_of_all() -> None:
    shown = [landscape(floor=0.06), landscape(floor=0.05, lost=9)]
    figure = heatmaps([("one", shown[0], None), ("other", shown[1], None)], columns=2)
    norms = {id(found(axes, "errors").norm) for axes in figure.axes[:2]}
    names = {found(axes, "errors").get_cmap().name for axes in figure.axes[:2]}
    assert len(norms) == 1
    assert names == {COLOURS_OF_ERRORS}
    assert found(panel(figure), "errors").norm.vmin == pytest.approx(5.0)
    assert len(figure.axes) == 3


def test_the_colours_of_pages_are_those_of_figures() -> None:
    drawn, last = mpl.colormaps[COLOURS_OF_ERRORS], len(STOPS_OF_ERRORS) - 1
    assert [to_hex(drawn(at / last)) for at in range(last + 1)] == list(STOPS_OF_ERRORS)


def test_failures_do_not_eat_the_range_of_colours() -> None:
    norm, _ = scale([landscape()])
    worst = max(100 * cell.mean for cell in landscape().cells.values())
    assert 0.8 * worst < (norm.vmax or 0) <= worst
    lost = landscape(lost=30)
    rest = {key: cell for key, cell in lost.cells.items() if not cell.diverged}
    norms = [scale([replace(lost, cells=cells)])[0] for cells in (lost.cells, rest)]
    assert (norms[0].vmin, norms[0].vmax) == (norms[1].vmin, norms[1].vmax)
    plateau = {key: Cell(*key, (0,), (e,), (e,)) for key, e in _plateau().items()}
    flat = Landscape(landscape().config, "weight_decay", LRS, DECAYS, plateau, "validation")
    norm, beyond = scale([flat])
    assert beyond
    assert (norm.vmax or 0) < 20


def test_the_best_of_a_harder_landscape_can_be_told_apart() -> None:
    """Few examples: the lowest errors are far above those of many landscapes with more of them."""
    harder = landscape(floor=0.5)
    norm, _ = scale([*[landscape()] * 6, harder])
    errors = sorted(100 * cell.mean for cell in harder.cells.values())
    assert errors[len(errors) // 4 - 1] <= (norm.vmax or 0)
    assert scale([landscape()] * 7)[0].vmax == scale([landscape()])[0].vmax


def test_one_landscape_of_failures_does_not_eat_the_range_of_colours() -> None:
    """Nine tenths of its settings fail without diverging, and its best is as low as any."""
    bowl = landscape()
    ranked = sorted(bowl.cells, key=lambda key: bowl.cells[key].mean)
    kept = ranked[: len(ranked) // 10]
    lost = {key: Cell(*key, (0,), (0.9,), (0.9,)) for key in ranked if key not in kept}
    failing = replace(bowl, cells={**{key: bowl.cells[key] for key in kept}, **lost})
    alone, _ = scale([bowl])
    norm, beyond = scale([*[bowl] * 5, failing])
    assert beyond
    assert (norm.vmax or 0) < 1.5 * (alone.vmax or 0)


def test_a_half_empty_landscape_is_drawn_with_frames_where_nothing_ran() -> None:
    shown = landscape(missing=30)
    figure = heatmaps([("AdamW", shown, None)], columns=1)
    assert len(middles(panel(figure), "missing")) == 30
    assert len(middles(panel(figure), "errors")) == len(LRS) * len(DECAYS) - 30
    assert "not run" in {text.get_text() for text in words(figure)}


def test_a_landscape_without_cells_is_drawn() -> None:
    empty = Landscape(landscape().config, "l2", LRS, DECAYS, {}, "test")
    figure = heatmaps([("Adam", empty, None)], columns=1)
    assert len(middles(panel(figure), "missing")) == len(LRS) * len(DECAYS)


def test_the_ridge_runs_through_the_best_decays_and_not_into_the_column_of_none() -> None:
    measured = coupling(s=1.0)
    axes = panel(heatmaps([("SGD", landscape(), measured)], columns=1))
    [line] = found(axes, "ridge").get_segments()
    centre = where(2.0**-4, 0.001)
    for x, y in line:
        assert x - centre[0] == pytest.approx(-(y - centre[1]), abs=1e-6)
    bars = found(axes, "standard errors").get_segments()
    for bar, (x, y) in zip(bars, middles(axes, "best decays"), strict=True):
        assert np.allclose(bar, [(x - 0.25, y), (x + 0.25, y)])
    box = found(axes, "ridge").get_clip_box()
    assert axes.transData.inverted().transform((box.x0, box.y0))[0] == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, "s = 0.50 [0.38, 0.62]  ·  best 5.00\N{NO-BREAK SPACE}%"),
        ({"bound": "at least", "why": "It leaves the grid."}, "s ≥ 0.50"),
        ({"value": None, "why": "one seed"}, "s unknown"),
    ],
)
def test_a_panel_says_its_exponent(said: dict[str, Any], expected: str) -> None:
    figure = heatmaps([("AdamW", landscape(), coupling(**said))], columns=1)
    assert any(expected in text.get_text().replace("\n", " ") for text in words(figure))


def test_a_panel_with_a_knee_says_s_on_both_sides_of_it() -> None:
    bent = replace(
        coupling(value=None, withheld=True),
        below=Exponent(-0.58, -1.0, -0.1),
        above=Exponent(0.1, -0.2, 0.4),
    )
    figure = heatmaps([("AdamW", landscape(), bent)], columns=1)
    said = "a knee: s = −0.58 below the best α, 0.10 above"
    assert any(said in text.get_text().replace("\n", " ") for text in words(figure))


def recommended_beside_none() -> Figure:
    """Return two panels, of which the second has no recommendation."""
    found = recommend(landscape())
    panels = [("AdamW", landscape(), coupling()), ("none", landscape(), None)]
    return heatmaps(panels, columns=2, small_print=SMALL, recommended=[found, None])


def test_the_recommended_setting_is_marked_with_its_ranges() -> None:
    found_setting = recommend(landscape())
    figure = recommended_beside_none()
    axes, other, *_ = figure.axes
    x, y = place(found_setting.decay.value, DECAYS[1:]), place(found_setting.lr.value, LRS)
    assert middles(axes, "recommended") == [pytest.approx((x, y))]
    along, upward = found(axes, "recommended ranges").get_segments()
    ends = [place(end, DECAYS[1:]) for end in (found_setting.decay.low, found_setting.decay.high)]
    assert along == pytest.approx(np.array([(ends[0], y), (ends[1], y)]))
    ends = [place(end, LRS) for end in (found_setting.lr.low, found_setting.lr.high)]
    assert upward == pytest.approx(np.array([(x, ends[0]), (x, ends[1])]))
    assert "recommended" not in {one.get_label() for one in other.collections}
    told = "recommended; lines: expected error within 2 % of it"
    assert told in [text.get_text() for text in words(figure)]
    assert told not in [text.get_text() for text in words(a_small_heat_map())]
    with pytest.raises(ValueError, match="one entry per panel, got 2 for 1"):
        heatmaps([("one", landscape(), None)], columns=1, recommended=[None, None])


@pytest.mark.parametrize(("count", "drawn"), [(60, 2), (7, 0)])
def test_ranges_of_scattered_runs_are_called_intervals_and_need_a_surface(
    count: int, drawn: int
) -> None:
    scape = search(Truth(s=0.0), np.random.default_rng(1), noise=0.002, count=count)
    figure = heatmaps([("search", scape, None)], columns=1, recommended=[recommend(scape)])
    told = [text.get_text() for text in words(figure)]
    assert "recommended; lines: where the best probably lies" in told
    segments = found(figure.axes[0], "recommended ranges").get_segments()
    assert sum(bool(np.ptp(one, axis=0).any()) for one in segments) == drawn


def three_heat_maps() -> Figure:
    long = "the best decay leaves the grid at three of its seven learning rates, upward"
    panels = [
        ("Adam, fixed", landscape(lost=3, partly=2), coupling(bound="at least", why=long)),
        ("AdamW with a long name, step-drop, and more", landscape(missing=5), coupling(0.0)),
        ("AdamW, cosine annealing", landscape(), coupling(-0.01)),
    ]
    return heatmaps(panels, columns=3, title="A title " * 20, small_print=SMALL)


def wave(label: str, shift: float = 0.0) -> Curve:
    x = tuple(float(epoch) for epoch in range(1, 31))
    middle = tuple(0.05 + shift + 0.5 / epoch for epoch in x)
    low, high = (tuple(value + band for value in middle) for band in (-0.01, 0.02))
    return Curve(label, x, middle, low, high)


def four_charts() -> Figure:
    traces = [Trace(wave("", 0.01 * k), "adam") for k in range(3)]
    traces.append(Trace(wave("AdamWR"), "adamwr", ends=(10.0, 30.0)))
    panels = [
        Curves("Test error", traces, log_x=True, log_y=True),
        Curves("Training loss", traces, upward="training loss", percent=False),
        Settings("Final error", [("adamw", landscape(lost=1))], LRS[-1]),
        Scatter("Generalization", [("adam", [(0.1, 0.06)]), ("adamw", [(0.1, 0.05)])]),
    ]
    return curves(panels, columns=2, title="Charts", small_print=SMALL)


def a_schedule() -> Figure:
    shown = [("restarts", WarmRestarts(1000, factor=2)), ("fixed", Constant())]
    return multipliers(shown, updates=15000, updates_per_epoch=10, title="η", small_print=SMALL)


def a_small_heat_map() -> Figure:
    small = Landscape(landscape().config, "l2", LRS[:2], DECAYS[:2], {}, "test")
    return heatmaps([("Adam", small, None)], columns=4, title="T " * 40, small_print=SMALL)


def decimal_heat_maps() -> Figure:
    """Return a grid of no powers of two, with one seed and other units on the right."""
    lrs, decays = (0.00316, 0.01, 0.0316, 0.1), (0.0001, 0.000316, 0.001, 0.00316, 0.01)
    cells = {
        (lr, decay): Cell(lr, decay, (0,), (lr + decay,), (lr + decay,))
        for lr in lrs
        for decay in decays
    }
    decimal = Landscape(landscape().config, "normalized_decay", lrs, decays, cells, "test")
    both = [("AdamW", landscape(), coupling()), ("decimal", decimal, None)]
    return heatmaps(both * 2, columns=4, small_print=SMALL)


def a_scattered_map() -> Figure:
    """Return a random search of somebody's own, which has labels and no configuration."""
    random = np.random.default_rng(0)
    labels: dict[str, str | int] = {"algorithm": "Lion", "model": "resnet18", "epochs": 90}
    points = [
        Point(
            lr=float(2**x),
            decay=float(2**z) if z < 3 else 0.0,
            way="l2",
            tested=float(0.3 + 0.01 * x**2 + 0.01 * (z + x) ** 2 + random.normal(0, 0.004)),
            labels=labels,
            diverged=bool(x > 2.8),
        )
        for x, z in random.uniform(-3, 3.2, (80, 2))
    ]
    [search] = landscapes(points)
    return heatmaps([(None, search, measured_coupling(search))], columns=1, small_print=SMALL)


FIGURES = [
    *(decimal_heat_maps, three_heat_maps, four_charts, a_schedule, a_small_heat_map),
    recommended_beside_none,
    a_scattered_map,
]


def test_the_axes_of_scattered_runs_have_powers_of_two_without_a_factor() -> None:
    """Rates of 0.001 · 2^k share that factor, but the ticks of scattered runs do not."""
    random = np.random.default_rng(0)
    points = [
        Point(lr=0.001 * 2**k, decay=0.001 * 2**k * decay, way="weight_decay", tested=error)
        for k in range(4)
        for decay, error in zip((0.01, 0.033, 0.1, 0.4), random.uniform(0.2, 0.3, 4), strict=True)
    ]
    [search] = landscapes(points)
    assert search.scattered
    axes = panel(heatmaps([(None, search, None)], columns=1))
    assert axes.get_ylabel() == "learning rate α"
    ticks = [text.get_text() for text in axes.get_yticklabels()]
    assert ticks == ["2⁻¹⁰", "2⁻⁹", "2⁻⁸", "2⁻⁷", "2⁻⁶"]


def test_a_search_of_somebodys_own_is_drawn_as_dots_where_its_settings_are() -> None:
    figure = a_scattered_map()
    axes = panel(figure)
    dots = len(found(axes, "errors").get_paths()) + len(found(axes, "diverged").get_paths())
    assert dots == 80
    assert not found(axes, "missing").get_paths()
    assert len(found(axes, "best").get_paths()) == 10
    assert found(axes, "ridge").get_paths()
    written = [text.get_text() for text in words(figure)]
    assert "Lion, resnet18, epochs 90" in " ".join(written)
    assert "error (%)" in written
    assert any(text.startswith("L₂ factor") for text in written)


def test_drawing_a_search_takes_no_step_per_pair_of_its_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It asked whether its settings are scattered once per learning rate and decay: 80 · 80."""
    scattered = Landscape.scattered.fget  # type: ignore[attr-defined]
    asked: list[Landscape] = []

    def counted(landscape: Landscape) -> bool:
        asked.append(landscape)
        return bool(scattered(landscape))

    monkeypatch.setattr(Landscape, "scattered", property(counted))
    a_scattered_map()
    assert 0 < len(asked) < 80


def test_losses_are_drawn_as_they_are_and_never_beside_errors() -> None:
    losses = [
        Point(lr=lr, decay=decay, way="weight_decay", tested=3 + lr, of="loss")
        for lr in (0.1, 0.2, 0.4)
        for decay in (0.01, 0.02, 0.04)
    ]
    [shown] = landscapes(losses)
    figure = heatmaps([(None, shown, None)], columns=1)
    written = [text.get_text() for text in words(figure)]
    assert {"loss", "all runs", "best 3.1"} <= set(written)
    assert sorted(set(found(panel(figure), "errors").get_array())) == [3.1, 3.2, 3.4]
    with pytest.raises(ValueError, match="all be of errors, or all of one metric, got"):
        heatmaps([(None, shown, None), (None, landscape(), None)], columns=2)


@pytest.mark.parametrize("make", FIGURES)
def test_nothing_written_is_cut_off_or_runs_into_other_words(make: Callable[[], Figure]) -> None:
    figure = make()
    boxes = [(text.get_text(), text.get_window_extent()) for text in words(figure)]
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
    for (one, box), (other, rival) in combinations(boxes, 2):
        across = min(box.x1, rival.x1) - max(box.x0, rival.x0)
        upward = min(box.y1, rival.y1) - max(box.y0, rival.y0)
        assert min(across, upward) < 1, (one, other)


@pytest.mark.parametrize("make", FIGURES)
def test_the_small_print_is_all_there(make: Callable[[], Figure]) -> None:
    written = {" ".join(text.get_text().split()) for text in words(make())}
    assert " ".join(SMALL.split()) in written


@pytest.mark.slow
@pytest.mark.parametrize("make", FIGURES)
def test_one_figure_has_one_set_of_bytes_whatever_the_settings(
    make: Callable[[], Figure], tmp_path: Path
) -> None:
    first = [path.read_bytes() for path in save(make(), tmp_path / "one" / "figure.1")]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "figure.1.pdf",
        "figure.1.png",
        "figure.1.svg",
    ]
    with mpl.rc_context({"font.size": 21, "axes.grid": True, "svg.hashsalt": None}):
        again = [path.read_bytes() for path in save(make(), tmp_path / "other")]
        assert mpl.rcParams["font.size"] == 21
    assert first == again


def test_the_colours_of_errors_fall_evenly_in_grey() -> None:
    colours = mpl.colormaps[COLOURS_OF_ERRORS](np.linspace(0, 1, 33))
    grey = [luminance(to_hex(colour)) for colour in colours]
    # Lightness as the eye has it, which is the cube root of luminance but for an offset.
    lightness = [116 * value ** (1 / 3) - 16 for value in grey]
    falls = [brighter - darker for brighter, darker in pairwise(lightness)]
    assert min(falls) > 0.5 * max(falls) > 0


def test_a_print_in_grey_keeps_the_order_of_the_errors() -> None:
    shown = landscape()
    figure = heatmaps([("AdamW", shown, None)], columns=1)
    axes = panel(figure)
    reach = found(axes, "errors").norm.vmax / 100
    ranked = sorted(shown.cells.values(), key=lambda cell: cell.mean)
    ranked = [cell for cell in ranked if cell.mean <= reach]
    # Beside the rings and within the outline: a cell's own colour.
    spots = [(x + 0.38, y + 0.38) for x, y in (where(cell.lr, cell.decay) for cell in ranked)]
    grey = in_grey(figure, axes, spots)
    distinct = {round(cell.mean, 6): value for cell, value in zip(ranked, grey, strict=True)}
    assert len(distinct) > 40
    assert all(brighter > darker for brighter, darker in pairwise(distinct.values()))


def in_grey(figure: Figure, axes: Axes, spots: list[tuple[float, float]]) -> list[float]:
    """Return how bright a figure is in grey at spots that are given in the axes' numbers."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    places = axes.transData.transform(spots)
    return [luminance(to_hex(pixels[-1 - int(y), int(x)] / 255)) for x, y in places]


def test_a_curve_is_drawn_in_its_band_and_its_cycles_end_in_marks() -> None:
    shown = wave("AdamWR")
    figure = curves([Curves("Error", [Trace(shown, "adamwr", ends=(10.0, 30.0))])], columns=1)
    line, ends = panel(figure).lines
    expected = list(zip(shown.x, (100 * value for value in shown.middle), strict=True))
    assert np.allclose(line.get_xydata(), expected)
    assert list(ends.get_xdata()) == [10, 30]  # type: ignore[arg-type]
    assert line.get_drawstyle() == "steps-post", "between two ends, one has the last one's result"
    [band] = panel(figure).collections
    [outline] = band.get_paths()
    heights = np.asarray(outline.vertices)[:, 1]
    assert heights.min() == pytest.approx(100 * shown.low[-1])
    assert heights.max() == pytest.approx(100 * shown.high[0])


def test_a_sweep_of_settings_sets_no_decay_apart_and_crosses_what_diverged() -> None:
    shown = landscape(lost=1)
    axes = panel(curves([Settings("Error", [("adamw", shown)], LRS[-1])], columns=1))
    [*_, cross] = axes.lines
    assert cross.get_marker() == "x"
    assert cross.get_xdata() == [math.log2(DECAYS[-1])]
    zero, first, *_ = axes.get_xticks()
    assert first - zero > 1
    assert axes.get_xticklabels()[0].get_text() == "0"
    bars = [segment for one in axes.collections for segment in one.get_segments()]  # type: ignore[attr-defined]
    cell = shown.cells[LRS[-1], DECAYS[1]]
    expected = 200 * cell.standard_error
    assert any(np.ptp(bar[:, 1]) == pytest.approx(expected) for bar in bars)


def test_a_scatter_has_a_point_a_run() -> None:
    points = [(0.1, 0.06), (0.2, 0.07)]
    axes = panel(curves([Scatter("Equal loss", [("adam", points)])], columns=1))
    [cloud] = axes.lines
    assert np.allclose(cloud.get_xydata(), [(0.1, 6), (0.2, 7)])


def test_what_panels_share_is_explained_once() -> None:
    trace = Trace(wave("Adam"), "adam")
    panels = [Curves("a", [trace]), Curves("b", [trace]), Scatter("c", [("adam", [(1.0, 0.1)])])]
    [legend] = curves(panels).legends
    assert [text.get_text() for text in legend.get_texts()] == ["Adam"]


def test_the_schedule_is_written_where_its_cycles_end() -> None:
    """SuppFigure 1: epochs 100, 300, 700 and 1500."""
    axes = panel(a_schedule())
    assert list(axes.get_xticks()) == [0, 100, 300, 700, 1500]
    schedule = WarmRestarts(1000, factor=2)
    for epoch, multiplier in np.asarray(axes.lines[0].get_xydata()):
        assert multiplier == schedule(round(epoch * 10))


def test_a_place_among_settings_is_that_of_their_logarithms() -> None:
    assert [place(value, (1, 2, 8)) for value in (1, 2, 4, 8, 32)] == [0, 1, 1.5, 2, 3]
    assert place(0.5, (1, 2, 8)) == -1
    assert place(2, (1,)) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: heatmaps([], columns=1), "`panels` must hold a landscape to draw, got"),
        (lambda: heatmaps([("a", landscape(), None)], columns=0), "`columns` must be at least 1"),
        (lambda: curves([]), "`panels` must hold something to draw"),
        (lambda: curves([Curves("a", [])]), "`panels` must hold something to draw"),
        (lambda: multipliers([], updates=1), "`schedules` must be between 1 and 5, got 0"),
        (lambda: save(Figure(), Path("a"), formats=("gif",)), "`formats` must be one of 'png', "),
        (
            lambda: heatmaps(
                [("a", landscape(), Coupling(*_torch()))],
                columns=1,
            ),
            "must be in the paper's convention, in which its axes are, got 'torch' for 'a'",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_figure_of_nothing_has_an_error_of_its_own_and_one_panel_is_enough() -> None:
    with pytest.raises(NothingToDrawError):
        heatmaps([], columns=1)
    with pytest.raises(NothingToDrawError):
        curves([Curves("a", [])])
    full = Scatter("b", [("adamw", [(0.5, 0.1)])])
    assert len(curves([Curves("a", []), full]).axes) == 2


def test_drawing_needs_neither_pyplot_nor_torch() -> None:
    code = (
        "import sys, weightdecay.figures\n"
        "print(sorted({'torch', 'matplotlib.pyplot'} & set(sys.modules)))"
    )
    assert _run(code) == "[]"


def test_without_matplotlib_the_error_is_the_cure() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "try:\n    import weightdecay.figures\n"
        "except ImportError as error:\n    print(error)"
    )
    assert _run(code) == "Figures need matplotlib to draw them: pip install 'weightdecay[figures]'"


def _run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def _plateau() -> dict[tuple[float, float], float]:
    """Return a bowl of one cell in three, and a plateau of chance around it."""
    places = [(lr, decay) for lr in LRS for decay in DECAYS]
    return {key: 0.05 + 0.002 * n if n < 20 else 0.9 for n, key in enumerate(places)}


def _torch() -> tuple[Any, ...]:
    measured = coupling()
    return measured.exponent, measured.check, measured.ridge, measured.line, "torch"
