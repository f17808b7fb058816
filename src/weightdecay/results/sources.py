"""Runs, wherever they come from: those in memory, or those of a folder or a table."""

import warnings
from collections.abc import Iterable
from pathlib import Path

from weightdecay import records
from weightdecay.records import Run


def runs_of(source: Iterable[Run] | Path | str) -> Iterable[Run]:
    """Return the runs given, or those of a path, and warn of what there was left out."""
    if not isinstance(source, Path | str):
        return source
    found = records.read(source)
    for said in found.left_out:
        warnings.warn(f"{source}: {said}", RuntimeWarning, stacklevel=3)
    return found.runs
