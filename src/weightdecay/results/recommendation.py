"""Which learning rate and decay to use, what is known about it, and what to train next.

The setting is the one with the lowest expected error between all that were trained (`lowest`), not
the cell with the lowest error, which on a noisy task is mostly luck. Where there are too few
settings for that, the best of them is recommended. If settings differ by no more than noise does,
no range is given.
"""

import math
from dataclasses import dataclass, replace

from weightdecay.results.carrying import Knobs, knobs
from weightdecay.results.coupling import Coupling, coupling
from weightdecay.results.differing import differ
from weightdecay.results.estimate import Estimate
from weightdecay.results.exponent import Line
from weightdecay.results.field import one_thread
from weightdecay.results.fit import fit
from weightdecay.results.kriging import Expected, expected_error
from weightdecay.results.landscape import Cell, Landscape
from weightdecay.results.lowest import lowest
from weightdecay.results.next_runs import Extension, Repeat, again, extensions
from weightdecay.results.ranges import Range
from weightdecay.results.scatter import fit_surface
from weightdecay.results.transfer import TransferRegret


@dataclass(frozen=True)
class Decays:
    """A recommended decay in every convention that applies; None in the others.

    `weight_decay` is the paper's λ, `normalized` λ·√N, `torch` the `weight_decay` of
    `torch.optim.AdamW` at the recommended learning rate, and `l2` the factor of L2 regularization.
    """

    weight_decay: Range | None = None
    normalized: Range | None = None
    torch: Range | None = None
    l2: Range | None = None


@dataclass(frozen=True)
class Recommendation:
    """The setting to use, what is known about it, and what to train next.

    `decay` is in the landscape's convention. `best_run` says that the setting is that of the best
    run, as there are too few for a surface. `differ` is whether settings differ by more than noise
    explains; None if too few runs are there to tell. `error` is the test error that new seeds are
    expected to have at the setting (`kriging`); if it has no interval, `no_interval` says why.
    `without_decay` is the cell at λ = 0 with the nearest learning rate, if there is one. `tied` is
    the number of cells tied with the best; None if there is one seed. `add` lists values to add if
    the setting is at an edge of the grid, or if a knob has fewer than three values. `repeat` are
    settings that need more seeds to decide on a rule for the knobs; None if more seeds would not
    help. Scattered settings have neither: `coupling` says what is missing.
    """

    landscape: Landscape
    lr: Range
    decay: Range
    decays: Decays
    best_run: bool
    differ: bool | None
    error: Estimate
    no_interval: str
    without_decay: Cell | None
    tied: int | None
    coupling: Coupling
    knobs: Knobs
    add: tuple[Extension, ...]
    repeat: Repeat | None

    @property
    def shown_coupling(self) -> Coupling:
        """Return the s and the ridge to draw: from the fitted surface if s was read there."""
        exponent = self.knobs.exponent
        if not self.knobs.fitted or exponent.value is None:
            return self.coupling
        through = math.log2(self.decay.value) + exponent.value * math.log2(self.lr.value)
        line = Line(-exponent.value, through, self.lr.low, self.lr.high)
        return replace(self.coupling, exponent=exponent, line=line)

    def judged(self, fresh: TransferRegret) -> "Recommendation":
        """Return it with the costs that fresh seeds have measured.

        Seeds that would decide on a rule are not needed once others have.
        """
        knobs = self.knobs.judged(fresh)
        return replace(self, knobs=knobs, repeat=None if knobs.decided else self.repeat)

    def __repr__(self) -> str:
        setting = f"lr {self.lr.value:.4g}, {self.landscape.way} {self.decay.value:.4g}"
        expected = f"{self.landscape.metric or self.landscape.of} {self.error.value:.4g}"
        return f"<Recommendation {setting}, expected {expected}, for {self.landscape!r}>"


@dataclass(frozen=True)
class Setting:
    """The best setting of a landscape, and what is expected there; see `Recommendation`."""

    lr: Range
    decay: Range
    best_run: bool
    differ: bool | None
    expected: Expected


def best_setting(landscape: Landscape) -> Setting:
    """Find the best setting of a landscape in which one with a decay above 0 did not diverge."""
    ranges, different = _ranges(landscape), differ(landscape)
    best = next(cell for cell in landscape.ranked if cell.decay > 0)
    lr, decay = ranges or (_only(best.lr), _only(best.decay))
    if different is False:
        lr, decay = _only(lr.value), _only(decay.value)
    expected = expected_error(landscape, lr.value, decay.value, flat=different is False)
    return Setting(lr, decay, ranges is None, different, expected)


def recommend(landscape: Landscape) -> Recommendation:
    """Recommend a learning rate and a decay for a landscape."""
    with one_thread():
        return _recommended(landscape)


def _recommended(landscape: Landscape) -> Recommendation:
    found = fit(landscape)
    measured = coupling(landscape)
    if found is None:
        raise ValueError(
            "A recommendation needs a setting with a decay above 0 of which no run diverged, got "
            f"none in {len(landscape.cells)}. Train smaller learning rates, or other decays."
        )
    several = any(len(cell.seeds) > 1 for cell in landscape.cells.values())
    advice = knobs(landscape, found, measured.exponent, bent=measured.bent)
    best = best_setting(landscape)
    lr, decay = best.lr, best.decay
    add: tuple[Extension, ...] = ()
    repeat = None
    if best.differ is not False and (landscape.in_columns or landscape.unvaried):
        add = extensions(landscape, lr.value, decay.value, advice)
        repeat = None if add or advice.decided else again(landscape, found)
    return Recommendation(
        landscape=landscape,
        lr=lr,
        decay=decay,
        decays=_decays(landscape, lr.value, decay),
        best_run=best.best_run,
        differ=best.differ,
        error=best.expected.error,
        no_interval=best.expected.why,
        without_decay=_without_decay(landscape, lr.value),
        tied=len(landscape.tied) if several else None,
        coupling=measured,
        knobs=advice,
        add=add,
        repeat=repeat,
    )


def _ranges(landscape: Landscape) -> tuple[Range, Range] | None:
    """Return the best learning rate and decay; None if there are too few settings for that."""
    if landscape.in_columns:
        found = lowest(landscape)
        return None if found is None else found.as_good()
    fitted = fit_surface(landscape)
    if not math.isfinite(fitted.lr.value):
        return None
    lr, decay = (Range(one.value, one.low, one.high) for one in (fitted.lr, fitted.decay))
    return lr, decay


def _only(value: float) -> Range:
    return Range(value, value, value)


def _decays(landscape: Landscape, lr: float, decay: Range) -> Decays:
    if landscape.way == "l2":
        return Decays(l2=decay)
    root = None if landscape.updates is None else math.sqrt(landscape.updates)
    if landscape.way == "normalized_decay":
        raw = None if root is None else decay.times(1 / root)
        return Decays(raw, decay, None if raw is None else raw.times(1 / lr))
    return Decays(decay, None if root is None else decay.times(root), decay.times(1 / lr))


def _without_decay(landscape: Landscape, lr: float) -> Cell | None:
    cells = [cell for cell in landscape.cells.values() if cell.decay == 0 and not cell.diverged]
    return min(cells, key=lambda cell: abs(math.log2(cell.lr / lr)), default=None)
