"""How well few seeds can tell tilting ridges from noise: intervals compared by integration.

Noise gives an exponent the variance 1, which is known. Seeds that tilt add the variance τ². The
jackknife over n seeds then scatters like (1 + τ²) χ²/(n − 1), with n − 1 degrees of freedom,
whatever the exponent is. `python -m tests.tilts` prints how often intervals cover, and how wide
they are; with `--page docs/exponents.md` it writes the table of that page.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, stdtrit
from scipy.stats import chi2, norm

from tests.landscapes import Array
from tests.tables import write
from weightdecay.table import table

#: The tilts in the table, in standard deviations of noise, and those at which 93 % must be covered.
SHOWN = (0.0, 1.0, 2.0, 4.0, 8.0)
TILTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
LEAST = 0.93
#: log of what the jackknife shows, over the noise.
_LOGS = np.linspace(-9, 9, 91)
_ENDS = np.concatenate([[-np.inf], (_LOGS[1:] + _LOGS[:-1]) / 2, [np.inf]])
_NORMAL = 1.96

Rule = Callable[[Array, int], Array]


def _student(freedom: Array | float) -> Array:
    return np.asarray(stdtrit(freedom, 0.975))


def _noise(shown: Array, _: int) -> Array:
    return np.full(len(shown), _NORMAL)


def _beyond(shown: Array, seeds: int) -> Array:
    more = np.maximum(shown - 1, 0)
    with np.errstate(divide="ignore"):
        freedom = (1 + more) ** 2 / (more**2 / (seeds - 1))
    half: Array = _student(freedom) * np.sqrt(1 + more)
    return half


def _larger(shown: Array, seeds: int) -> Array:
    return np.where(shown > 1, _student(seeds - 1.0) * np.sqrt(shown), _NORMAL)


def _over_seeds(shown: Array, seeds: int) -> Array:
    return _student(seeds - 1.0) * np.sqrt(shown)


def _wider(shown: Array, seeds: int) -> Array:
    return np.maximum(_NORMAL, _over_seeds(shown, seeds))


def _square(shown: Array, seeds: int) -> Array:
    own = shown + 1 / (seeds - 1)
    return _student((1 + own) ** 2 / (own**2 / (seeds - 1))) * np.sqrt(1 + own)


#: Half-widths of intervals, given what the jackknife shows.
RULES: Mapping[str, Rule] = {
    "noise alone": _noise,
    "noise, and the jackknife beyond it": _beyond,
    "the larger of the two": _larger,
    "the jackknife: Student's t over seeds": _over_seeds,
    "the jackknife, and no narrower than noise alone": _wider,
    "noise, and the jackknife with one more square": _square,
}


def shares(seeds: int, tilt: float) -> Array:
    """Return how often the jackknife shows each of these sizes."""
    scale = (seeds - 1) / (1 + tilt**2)
    return np.asarray(np.diff(chi2.cdf(scale * np.exp(_ENDS), seeds - 1)))


def covered(half: Array, seeds: int, tilt: float) -> float:
    """Return how often intervals of these half-widths contain the truth."""
    return float(shares(seeds, tilt) @ (2 * ndtr(half / np.hypot(1, tilt)) - 1))


def width(half: Array, seeds: int, tilt: float) -> float:
    """Return the mean half-width, in standard deviations of the exponent."""
    return float(shares(seeds, tilt) @ half / np.hypot(1, tilt))


def narrowest(seeds: int) -> Array:
    """Return half-widths that cover 93 % at every tilt and are narrow: half of that at no tilt."""
    often = np.array([shares(seeds, tilt) for tilt in TILTS])
    spread = np.hypot(1, TILTS)[:, None]
    weight = np.array([0.5, *[0.5 / (len(TILTS) - 1)] * (len(TILTS) - 1)])
    cost = weight @ (often / spread)

    def spare(logs: Array) -> Array:
        return np.asarray((often * (2 * ndtr(np.exp(logs) / spread) - 1)).sum(1) - LEAST)

    def slopes(logs: Array) -> Array:
        return np.asarray(often * 2 * norm.pdf(np.exp(logs) / spread) * np.exp(logs) / spread)

    found = minimize(
        lambda logs: float(cost @ np.exp(logs)),
        np.log(_square(np.exp(_LOGS), seeds)),
        jac=lambda logs: cost * np.exp(logs),
        constraints=[{"type": "ineq", "fun": spare, "jac": slopes}],
        method="SLSQP",
        options={"maxiter": 500},
    )
    if not found.success:
        raise RuntimeError(f"No narrowest interval was found for {seeds} seeds: {found.message}.")
    return np.asarray(np.exp(found.x))


TITLES = ("seeds", "interval", *(f"τ = {tilt:g}" for tilt in SHOWN), "±, τ = 0", "±, τ = 4")
BEGIN = "<!-- tilts: `python -m tests.tilts --page docs/exponents.md` writes what follows -->"
END = "<!-- /tilts -->"


def told(name: str, half: Array, seeds: int) -> tuple[str, ...]:
    """Return a row of the table."""
    return (
        *(str(seeds), name),
        *(f"{covered(half, seeds, tilt):.1%}" for tilt in SHOWN),
        *(f"{width(half, seeds, tilt):.1f}" for tilt in (0.0, 4.0)),
    )


def rows() -> list[tuple[str, ...]]:
    """Return the table."""
    found: list[tuple[str, ...]] = [TITLES]
    for seeds in (2, 3, 5):
        found += [told(name, of(np.exp(_LOGS), seeds), seeds) for name, of in RULES.items()]
        found.append(told("narrow, and 93 % at every τ", narrowest(seeds), seeds))
    return found


def main() -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description="How often intervals cover if seeds tilt.")
    parser.add_argument("--page", type=Path, help="write the table here, between its marks")
    page: Path | None = parser.parse_args().page
    if page is None:
        sys.stdout.write(table(rows()) + "\n")
    else:
        write(page, rows(), (BEGIN, END))


if __name__ == "__main__":
    main()
