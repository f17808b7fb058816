"""Random searches of which the truth is known, and how often their intervals cover it.

`python -m tests.scattered` prints a table of it.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.landscapes import Truth
from weightdecay.results import Landscape, Point, SurfaceFit, fit_surface, landscapes
from weightdecay.table import table

#: Where the truth's best is: log2 of the learning rate and of the decay.
RATE, DECAY = -7.0, -11.0


def search(
    truth: Truth,
    random: np.random.Generator,
    *,
    noise: float,
    count: int = 200,
    reach: float = 4.0,
    **point: Any,
) -> Landscape:
    """Return a random search about the best, whose place in it is random too."""
    middle = random.uniform(-1, 1, 2)
    x, z = random.uniform(-reach, reach, (2, count)) + middle[:, None]
    errors = truth.errors_at(x, z) + random.normal(0, noise, count)
    points = [
        Point(
            lr=float(2 ** (RATE + rate)),
            decay=float(2 ** (DECAY + decay)),
            way="weight_decay",
            tested=float(error),
            **point,
        )
        for rate, decay, error in zip(x, z, errors, strict=True)
    ]
    [landscape] = landscapes(points)
    return landscape


@dataclass(frozen=True)
class Coverage:
    """How often each interval covered the truth, of the searches that gave a value."""

    searches: int
    values: int
    exponent: float
    bias: float
    half: float
    optima: int
    lr: float
    decay: float


def coverage(truth: Truth, *, noise: float, searches: int, first: int = 0, **how: Any) -> Coverage:
    """Simulate searches and count."""
    random = np.random.default_rng(first)
    fits = [fit_surface(search(truth, random, noise=noise, **how)) for _ in range(searches)]
    given = [fit for fit in fits if fit.exponent.value is not None]
    best = [fit for fit in fits if np.isfinite(fit.lr.value)]
    s = [fit.exponent.low <= truth.s <= fit.exponent.high for fit in given]
    return Coverage(
        searches,
        len(given),
        float(np.mean(s)),
        float(np.median([_value(fit) for fit in given]) - truth.s),
        float(np.median([fit.exponent.high - fit.exponent.low for fit in given]) / 2),
        len(best),
        float(np.mean([fit.lr.low <= 2**RATE <= fit.lr.high for fit in best])),
        float(np.mean([fit.decay.low <= 2**DECAY <= fit.decay.high for fit in best])),
    )


def _value(fit: SurfaceFit) -> float:
    assert fit.exponent.value is not None
    return fit.exponent.value


def main() -> None:
    """Print the table: its arguments are the number of searches and of runs in each."""
    searches, count = (int(text) for text in sys.argv[1:3] or ("300", "200"))
    rows = [("s", "noise", "values", "s covered", "bias", "±", "optima", "α covered", "λ covered")]
    for s in (0.0, 0.5, 1.0):
        for noise in (0.002, 0.008, 0.02):
            seen = coverage(Truth(s=s), noise=noise, searches=searches, count=count)
            rows.append(
                (
                    *(f"{s:g}", f"{noise:g}", f"{seen.values}/{searches}"),
                    *(f"{seen.exponent:.1%}", f"{seen.bias:+.3f}", f"{seen.half:.3f}"),
                    *(str(seen.optima), f"{seen.lr:.1%}", f"{seen.decay:.1%}"),
                )
            )
            sys.stdout.write("  ".join(rows[-1]) + "\n")
            sys.stdout.flush()
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main()
