"""What a page is told about a landscape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weightdecay.results import Curve, Estimate, Landscape, Move, Outlier, Pair, Recommendation

Place = tuple[float, float]


@dataclass(frozen=True)
class JudgedSetting:
    """A setting that was registered, and the error of the fresh `seeds` that judged it."""

    lr: float
    decay: float
    error: Estimate
    seeds: int


@dataclass(frozen=True)
class PageLandscape:
    """A landscape of the page, with all that is known about it.

    `why` says why nothing is recommended, if `advice` is None. `splits` has the landscape with the
    errors of each split; its own comes first. `curves` are those of its cells, by split. `pairs`
    are runs that must agree, by their cells. `judged` is the setting that fresh seeds have judged,
    which then is the one to use. `answered` says that the page begins with what to use here.
    """

    title: str
    advice: Recommendation | None
    why: str
    splits: Mapping[str, Landscape]
    curves: Mapping[Place, Mapping[str, Curve]] = field(default_factory=dict)
    moves: Sequence[Move] = ()
    outliers: Sequence[Outlier] = ()
    pairs: Mapping[Place, Pair] = field(default_factory=dict)
    judged: JudgedSetting | None = None
    answered: bool = True

    @property
    def landscape(self) -> Landscape:
        """Return the landscape that choices were made on."""
        return next(iter(self.splits.values()))
