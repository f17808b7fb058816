"""Errors as heights above the best of their budget, on a scale on which cliffs are cut.

A decay that is a little too large can cost as much as one that is far too small, and the error on a
cliff says nothing about its foot. So a height is log(error / best), bent to stay below a ceiling;
a run that diverged is at the ceiling.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from weightdecay.tune.belief import CEILING, Array
from weightdecay.tune.trial import Cell, Outcome


def heights(told: Mapping[Cell, Outcome], cells: Sequence[Cell]) -> Array:
    """Return the height of each trial."""
    errors = np.array([told[cell].error for cell in cells])
    rungs = np.array([cell.rung for cell in cells])
    positive = errors[np.isfinite(errors) & (errors > 0)]
    floor = positive.min() / 2 if len(positive) else 1.0  # for an error of 0
    found = np.full(len(cells), CEILING)
    for rung in set(rungs.tolist()):
        here = (rungs == rung) & np.isfinite(errors)
        if here.any():
            logs = np.log(np.maximum(errors[here], floor))
            found[here] = CEILING * -np.expm1(-(logs - logs.min()) / CEILING)
    return found
