"""A landscape on a pair of axes: square cells, λ along x and α upward, both in powers of two."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise, product

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Circle, Rectangle, RegularPolygon

from weightdecay.colours import COLOURS_OF_ERRORS, FAINT, INK, MUTED, PAPER, RECOMMENDED
from weightdecay.figures.cell_positions import CellPositions
from weightdecay.figures.sheet import decay_words
from weightdecay.number_format import in_units, shared_base
from weightdecay.results import Cell, Coupling, Landscape, Outlier, Recommendation

DIVERGED = "#e4e0dc"


def draw(
    axes: Axes,
    grid: CellPositions,
    coupling: Coupling | None,
    *,
    norm: Normalize,
    stride: int,
    doubted: Iterable[Outlier] = (),
    recommended: Recommendation | None = None,
) -> None:
    """Draw the cells and their marks; every `stride`-th decay is labelled."""
    _axis(axes, grid, stride)
    landscape = grid.landscape
    lost = {key for key, cell in landscape.cells.items() if len(cell.diverged) == len(cell.seeds)}
    shown = [key for key in landscape.cells if key not in lost]
    # An edge closes the hairlines that some viewers leave between squares.
    coloured = PatchCollection(
        grid.boxes(shown), cmap=COLOURS_OF_ERRORS, norm=norm, linewidths=0.5, edgecolors=PAPER
    )
    means = (landscape.cells[key].mean for key in shown)
    coloured.set_array([in_units(mean, landscape.metric) for mean in means])
    _add(axes, coloured, "errors")
    places = () if grid.scattered else product(landscape.lrs, landscape.decays)
    missing = [place for place in places if place not in landscape.cells]
    greyed = PatchCollection(grid.boxes(lost), facecolors=DIVERGED, edgecolors=PAPER)
    greyed.set_linewidth(0.5)
    _add(axes, greyed, "diverged")
    frames = PatchCollection(grid.boxes(missing, side=0.92), facecolors="none", edgecolors=FAINT)
    frames.set_linewidth(0.6)
    _add(axes, frames, "missing")
    _cross(axes, grid, lost)
    if coupling is not None and grid.powers:
        _ridge(axes, grid, coupling)
    if landscape.cells:
        if not grid.scattered:
            _outline(axes, grid, landscape.tied)
        _circle(axes, grid, landscape.ten_best)
    _flag(axes, grid, {(one.lr, one.decay) for one in doubted})
    if recommended is not None:
        _recommend(axes, grid, recommended)


def _axis(axes: Axes, grid: CellPositions, stride: int) -> None:
    axes.set_xlim(grid.left - 0.05, len(grid.powers) - 0.45)
    axes.set_ylim(-0.55, grid.height - 0.45)
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=2)
    labels = [
        label if (len(grid.powers) - 1 - column) % stride == 0 else ""
        for column, label in enumerate(grid.along)
    ]
    places = [grid.x(0.0)] * grid.without + [grid.x(decay) for decay in grid.powers]
    axes.set_xticks(places, ["0"] * grid.without + labels)
    axes.set_yticks(range(grid.height), grid.upward)


def along_words(landscape: Landscape, *, brief: bool = False) -> str:
    """Return the label of the x axis: the decay, and the factor of its powers."""
    decays = CellPositions(landscape).powers
    return f"{decay_words(landscape.way, brief=brief)}{_times(decays)}"


def upward_words(landscape: Landscape) -> str:
    """Return the label of the y axis."""
    return f"learning rate α{_times(CellPositions(landscape).rates)}"


def _times(values: Sequence[float]) -> str:
    base = shared_base(values)
    return "" if base in (None, 1) else f"  (× {base:g})"


def _cross(axes: Axes, grid: CellPositions, lost: set[tuple[float, float]]) -> None:
    """Cross out cells in which every seed diverged; draw a single stroke if only some did."""
    strokes = []
    for cell in grid.landscape.diverged:
        x, y, reach = grid.x(cell.decay), grid.y(cell.lr), 0.26
        strokes.append([(x - reach, y - reach), (x + reach, y + reach)])
        if (cell.lr, cell.decay) in lost:
            strokes.append([(x - reach, y + reach), (x + reach, y - reach)])
    _haloed(axes, strokes, label="crosses", width=0.8, colour=MUTED)


def _outline(axes: Axes, grid: CellPositions, cells: Sequence[Cell]) -> None:
    """Draw the common border of a set of cells, without the edges between them."""
    edges: dict[tuple[tuple[float, float], ...], int] = {}
    for cell in cells:
        x, y = grid.x(cell.decay), grid.y(cell.lr)
        corners = [(x + dx / 2, y + dy / 2) for dx, dy in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        for ends in pairwise([*corners, corners[0]]):
            edge = tuple(sorted((round(x, 6), round(y, 6)) for x, y in ends))
            edges[edge] = edges.get(edge, 0) + 1
    border = [edge for edge, count in edges.items() if count == 1]
    _haloed(axes, border, label="tied", width=1.5)


def _circle(axes: Axes, grid: CellPositions, cells: Sequence[Cell]) -> None:
    """Circle the best cells, and put a dot in the very best."""
    centres = [(grid.x(cell.decay), grid.y(cell.lr)) for cell in cells]
    for colour, width, label in ((PAPER, 2.4, "halo of the best"), (INK, 1.1, "best")):
        rings = [Circle(centre, 0.27) for centre in centres]
        collection = PatchCollection(rings, facecolors="none", edgecolors=colour)
        collection.set_linewidth(width)
        _add(axes, collection, label)
    dot = PatchCollection([Circle(centres[0], 0.16)], facecolors=INK, edgecolors="none")
    _add(axes, dot, "the best")


def _flag(axes: Axes, grid: CellPositions, cells: Iterable[tuple[float, float]]) -> None:
    """Put a white triangle on cells, beside the place of a circle."""
    centres = [(grid.x(decay) + 0.12, grid.y(lr) + 0.02) for lr, decay in sorted(cells)]
    for colour, width, label in ((PAPER, 3.0, "halo of doubt"), (INK, 1.2, "doubt")):
        shapes = [RegularPolygon(centre, 3, radius=0.32) for centre in centres]
        triangles = PatchCollection(shapes, facecolors=PAPER, edgecolors=colour)
        triangles.set_linewidth(width)
        _add(axes, triangles, label)


def _recommend(axes: Axes, grid: CellPositions, found: Recommendation) -> None:
    """Put a diamond on the recommended setting, and lines through it along its ranges."""
    x, y = grid.x(found.decay.value), grid.y(found.lr.value)
    ranges = [
        [(grid.x(found.decay.low), y), (grid.x(found.decay.high), y)],
        [(x, grid.y(found.lr.low)), (x, grid.y(found.lr.high))],
    ]
    _haloed(axes, ranges, label="recommended ranges", width=1.6, colour=RECOMMENDED)
    diamond = PatchCollection([RegularPolygon((x, y), 4, radius=0.3)], facecolors=RECOMMENDED)
    diamond.set(edgecolors=PAPER, linewidths=1.2)
    _add(axes, diamond, "recommended")


def _ridge(axes: Axes, grid: CellPositions, coupling: Coupling) -> None:
    """Draw each learning rate's best decay with its standard error, and the line through them."""
    drawn = len(axes.collections)
    if coupling.line is not None:
        line = coupling.line
        lowest, highest = math.log2(line.lowest), math.log2(line.highest)
        rates = [lowest + (highest - lowest) * step / 32 for step in range(33)]
        path = [
            (grid.x(2 ** (line.intercept + line.slope * rate)), grid.y(2**rate)) for rate in rates
        ]
        _haloed(axes, [path], label="ridge", width=1.4)
    bars = []
    for point in coupling.ridge:
        ends = [point.decay * 2 ** (side * point.standard_error) for side in (-1, 1)]
        if all(map(math.isfinite, ends)):
            bars.append([(grid.x(end), grid.y(point.lr)) for end in ends])
    _haloed(axes, bars, label="standard errors", width=0.7)
    centres = [(grid.x(point.decay), grid.y(point.lr)) for point in coupling.ridge]
    dots = PatchCollection([Circle(centre, 0.1) for centre in centres], facecolors=PAPER)
    dots.set(edgecolors=INK, linewidths=0.8)
    _add(axes, dots, "best decays")
    # A ridge that leaves the grid must not run on into the column of no decay.
    within = Rectangle((-0.5, -0.5), len(grid.powers), grid.height, transform=axes.transData)
    for collection in axes.collections[drawn:]:
        collection.set_clip_path(within)


def _haloed(
    axes: Axes,
    segments: Sequence[Sequence[tuple[float, float]]],
    *,
    label: str,
    width: float,
    colour: str = INK,
) -> None:
    """Draw lines that are visible on any colour: on top of slightly wider white lines."""
    for ink, points, name in ((PAPER, width + 1.4, f"halo of {label}"), (colour, width, label)):
        lines = LineCollection(segments, colors=ink, linewidths=points, capstyle="round")
        _add(axes, lines, name)


def _add(axes: Axes, collection: PatchCollection | LineCollection, label: str) -> None:
    """Add a collection on top of those before it; tests find it by its label."""
    collection.set_label(label)
    collection.set_zorder(1 + len(axes.collections) / 100)
    axes.add_collection(collection, autolim=False)
