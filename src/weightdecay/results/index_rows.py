"""Lists of indices, one per row, in one array that is padded with −1."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Indices: TypeAlias = npt.NDArray[np.intp]


def grouped(groups: Indices, items: Indices, count: int) -> Indices:
    """Return the items of each of `count` groups, in rows padded with −1."""
    order = np.lexsort((items, groups))
    ends = np.searchsorted(groups[order], np.arange(count + 1))
    return padded([items[order[start:end]] for start, end in pairwise(ends)])


def without_padding(rows: Indices) -> list[Indices]:
    """Return rows without their padding."""
    return [row[row >= 0] for row in rows]


def padded(rows: Sequence[Indices]) -> Indices:
    """Return rows in equal length, padded with −1."""
    filled = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype=np.intp)
    for row, places in zip(filled, rows, strict=True):
        row[: len(places)] = places
    return filled
