"""Neighbourhoods of cells are found fast, and are those that their slow definitions give."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weightdecay.results.estimate import Array
from weightdecay.results.index_rows import Indices
from weightdecay.results.neighbours import _quantile, _quantile_without
from weightdecay.results.noise import Flags
from weightdecay.results.stencils import REACH, Kind, Stencils, stencils

pytestmark = pytest.mark.cpu("results do not depend on the device")


def rows(chosen: Iterable[Flags]) -> list[list[int]]:
    return [np.flatnonzero(one).tolist() for one in chosen]


def unpadded(found: Indices) -> list[list[int]]:
    return [row[row >= 0].tolist() for row in found]


def around(lines: Stencils, cell: int, reach: float) -> Flags:
    near: Flags = np.abs(lines.places - lines.places[cell]).max(1) <= reach + 1e-6
    return near


def elsewhere(lines: Stencils) -> list[Flags]:
    """Return, for each cell, the blocks that do not contain it."""
    members = np.column_stack([lines.others, lines.cells])
    blocks = lines.kinds == Kind.BLOCK
    return [blocks & ~(members == cell).any(1) for cell in range(len(lines.places))]


@st.composite
def grids(draw: st.DrawFn) -> Stencils:
    """Draw a grid with holes and half steps, and some cells at λ = 0."""
    steps = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0])
    places = draw(st.lists(st.tuples(steps, steps), unique=True, min_size=1, max_size=40))
    places.sort()
    return stencils(tuple(places), tuple(decay == 0 for _, decay in places))


@settings(max_examples=60, deadline=None)
@given(grids())
def test_neighbourhoods_are_those_of_the_slow_definitions(lines: Stencils) -> None:
    cells = range(len(lines.places))
    kept = lines.kinds != Kind.NEXT
    assert unpadded(lines.own) == rows((lines.cells == cell) & kept for cell in cells)
    for reach in (1.0, REACH):
        slow = rows(around(lines, cell, reach) for cell in cells)
        assert [one.tolist() for one in lines.around(reach)] == slow
    far = elsewhere(lines)
    blocks = lines.kinds == Kind.BLOCK
    assert unpadded(lines.inside) == rows(blocks & ~one for one in far)
    assert unpadded(lines.nearby) == rows(
        one & around(lines, cell, REACH)[lines.cells] for cell, one in enumerate(far)
    )
    near = [
        around(lines, cell, 1.0)[lines.pairs].all(1) & ~(lines.pairs == cell).any(1)
        for cell in cells
    ]
    upward, across = lines.paired
    assert unpadded(upward) == rows(one & lines.upward for one in near)
    assert unpadded(across) == rows(one & ~lines.upward for one in near)


VALUES = st.one_of(st.just(np.nan), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 9))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 12), st.integers(1, 6), st.floats(0, 1))
def test_a_quantile_without_some_values_is_that_of_the_others_to_the_last_bit(
    data: st.DataObject, count: int, cells: int, share: float
) -> None:
    values: Array = np.array(data.draw(st.lists(VALUES, min_size=count, max_size=count)))
    items = st.lists(st.integers(0, count - 1), unique=True)
    among = np.array(sorted(data.draw(items)), dtype=np.intp)
    left_out = [sorted(set(data.draw(items)) & set(among.tolist())) for _ in range(cells)]

    def padded(own: list[list[int]]) -> Indices:
        return np.array([[*one, *[-1] * (count - len(one))] for one in own], dtype=np.intp)

    kept = [[one for one in among.tolist() if one not in some] for some in left_out]
    slow = _quantile(values, padded(kept), share)
    fast = _quantile_without(values, among, padded(left_out), share)
    np.testing.assert_array_equal(fast, slow)
