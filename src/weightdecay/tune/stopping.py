"""When a trial need not go on: its error is far above what others of its length had by then."""

import math
import statistics
from collections.abc import Iterable

from weightdecay.tune.trial import Outcome

_FEWEST = 3  # others to compare with
_FACTOR = 1.5  # above their median: on the cliff, of which a tuner needs to know no more
_SHARE = 0.25  # of a trial before which nothing is said


def is_hopeless(seen: tuple[int, float], epochs: int, others: Iterable[Outcome]) -> bool:
    """Whether a trial of `epochs`, with this error after this epoch, should be stopped."""
    epoch, error = seen
    if not math.isfinite(error):
        return True
    then = [by for other in others for at, by in other.way if at == epoch]
    if epoch < _SHARE * epochs or len(then) < _FEWEST:
        return False
    return error > _FACTOR * statistics.median(then)
