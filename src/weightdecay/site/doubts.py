"""What is said of runs that must agree and do not, and of cells that stand out."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from weightdecay.look import percent, power, shared_base
from weightdecay.records import DECAYS, Environment, RunConfig
from weightdecay.results import Agreement, Doubts, Landscape, Outlier, Pair

# So many are named one by one.
_NAMED = 10
_HEAD = ("setting", "test error", "its neighbours say", "noise explains")


def lines(doubts: Doubts) -> list[str]:
    """Return all there is to say, a line each: nothing where nothing could be compared."""
    told = []
    pairs, broken = doubts.agreement.pairs, doubts.agreement.broken
    repeats, twins = (Agreement(tuple(p for p in pairs if p.repeated is k)) for k in (True, False))
    for found, named in (
        (repeats, _counted(len(repeats.pairs), "cell", "was trained twice", "were trained twice")),
        (twins, _counted(len(twins.pairs), "pair", "of twins compared", "of twins compared")),
    ):
        if found.pairs:
            told.append(f"{named}; the largest difference is {_points(found.largest)}.")
    if broken:
        disagree = _counted(len(broken), "pair", "disagrees", "disagree")
        told.append(f"{disagree} by more than noise explains:")
        told += _listed([_pair(pair, doubts.varied) for pair in broken])
    if doubts.outliers:
        stand = _counted(len(doubts.outliers), "cell", "stands out", "stand out")
        told.append(f"{stand} from {'its' if len(doubts.outliers) == 1 else 'their'} neighbours:")
        told += _listed([_outlier(*one, doubts.varied) for one in doubts.outliers])
    if doubts.environments:
        told.append("Landscapes mix runs of several environments:")
        told += _listed(_environments(doubts.environments))
    return told


def _environments(found: Mapping[Environment | None, int]) -> list[str]:
    """Name environments by the fields that tell them apart."""
    known = [place for place in found if place is not None]
    varied = [
        field.name
        for field in fields(Environment)
        if len({getattr(place, field.name) for place in known}) > 1
    ]
    return [
        f"{_counted(count, 'run', 'of', 'of')} "
        + (
            "an environment that was not recorded"
            if place is None
            else ", ".join(f"{name} {getattr(place, name)}" for name in varied) or place.device
        )
        for place, count in found.items()
    ]


def rows(doubts: Doubts) -> list[tuple[str, ...]]:
    """Return the cells that stand out as a table; of none, nothing."""
    if not doubts.outliers:
        return []
    found = [
        (
            setting(scape, one, doubts.varied),
            percent(one.error),
            percent(one.expected),
            f"± {_points(one.allowed)}",
        )
        for scape, one in doubts.outliers
    ]
    return [_HEAD, *found]


def setting(scape: Landscape, one: Outlier, varied: Sequence[str]) -> str:
    """Name a cell of a landscape, and its seed where there are several."""
    several = any(len(cell.seeds) > 1 for cell in scape.cells.values())
    seed = one.seed if several else None
    return _named(
        scape.config,
        varied,
        who=scape.config.algorithm,
        decay=(scape.way, one.decay),
        lr=one.lr,
        seed=seed,
    )


def _outlier(scape: Landscape, one: Outlier, varied: Sequence[str]) -> str:
    said = f"{percent(one.error)} where its neighbours say {percent(one.expected)}"
    return f"{setting(scape, one, varied)}: {said} (±{100 * one.allowed:.1f})"


def _pair(pair: Pair, varied: Sequence[str]) -> str:
    one, other = pair.one, pair.other
    config = one.config
    if one.config == other.config:
        who = f"{one.config.algorithm}, trained twice"
    else:
        names = dict.fromkeys((one.config.algorithm, other.config.algorithm))
        who = " and ".join(names) if len(names) > 1 else f"{one.config.algorithm}, both ways"
    name = _named(config, varied, who=who, decay=_decay(config), lr=config.lr, seed=config.seed)
    errors = f"{_ended(pair.one.last.test_error, pair.one.diverged)} and "
    errors += _ended(pair.other.last.test_error, pair.other.diverged)
    return f"{name}: {errors}, where noise explains {_points(pair.allowed)}"


def _ended(error: float, diverged: bool) -> str:
    return "diverged" if diverged else percent(error)


def _named(
    config: RunConfig,
    varied: Sequence[str],
    *,
    who: str,
    decay: tuple[str, float],
    lr: float,
    seed: int | None,
) -> str:
    way, value = decay
    others = [f"{name} {getattr(config, name)}" for name in varied]
    decayed = f"{way} {_number(value)}" if value else "no decay"
    sown = [f"seed {seed}"] if seed is not None else []
    return ", ".join([who, *others, f"lr {_number(lr)}", decayed, *sown])


def _decay(config: RunConfig) -> tuple[str, float]:
    [stated] = [(way, getattr(config, way)) for way in DECAYS if getattr(config, way) is not None]
    return stated


def _number(value: float) -> str:
    """Return a power of two as one, and any other number in digits."""
    return power(value) if value < 1 and shared_base([value]) == 1 else f"{value:.6g}"


def _points(fraction: float) -> str:
    return f"{100 * fraction:.2f} points"


def _counted(count: int, noun: str, one: str, many: str) -> str:
    return f"{count} {noun} {one}" if count == 1 else f"{count} {noun}s {many}"


def _listed(said: Sequence[str]) -> list[str]:
    named = [f"  {one}" for one in said[:_NAMED]]
    return [*named, f"  and {len(said) - _NAMED} more"] if len(said) > _NAMED else named
