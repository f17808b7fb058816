"""Doubts in words: runs that must agree but do not, and cells that stand out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields

from weightdecay.number_format import measured, power, reported, shared_base
from weightdecay.records import DECAYS, Environment, Run, RunConfig, or_infinite
from weightdecay.results import Agreement, Doubts, Landscape, Outlier, Pair

# The most that are listed one by one.
_NAMED = 10


def lines(doubts: Doubts) -> list[str]:
    """Return the doubts, one line each; none if nothing could be compared."""
    told = []
    pairs, broken = doubts.agreement.pairs, doubts.agreement.broken
    repeats, twins = (Agreement(tuple(p for p in pairs if p.repeated is k)) for k in (True, False))
    for found, named in (
        (repeats, _counted(len(repeats.pairs), "cell", "was trained twice", "were trained twice")),
        (twins, _counted(len(twins.pairs), "pair", "of twins compared", "of twins compared")),
    ):
        if found.pairs:
            largest = _points(found.largest, found.pairs[0].one.last.metric)
            told.append(f"{named}; the largest difference is {largest}.")
    if broken:
        disagree = _counted(len(broken), "pair", "disagrees", "disagree")
        told.append(f"{disagree} by more than noise explains:")
        told += _listed([_pair(pair, doubts.varied) for pair in broken])
    alone = [one for one in doubts.outliers if not one[1].companions]
    if alone:
        stand = _counted(len(alone), "cell", "stands out", "stand out")
        told.append(f"{stand} from {'its' if len(alone) == 1 else 'their'} neighbours:")
        told += _listed([_outlier(*one, doubts.varied) for one in alone])
    if companions := [one for one in doubts.outliers if one[1].companions]:
        were = _counted(len(companions), "run", "was", "were")
        told.append(f"{were} trained together with cells that stand out, so may be wrong too:")
        told += _listed([_outlier(*one, doubts.varied) for one in companions])
    if doubts.environments:
        told.append("Landscapes mix runs of several environments:")
        told += _listed(_environments(doubts.environments))
    return told


def bounds(doubts: Doubts) -> list[str]:
    """Return how much too high an error must be to be found, one line per landscape.

    Landscapes of which no cell is judged are left out.
    """
    judged = [one for one in doubts.rises if any(map(math.isfinite, one[1]))]
    told = [_rises(scape, rises, doubts.varied) for scape, rises in judged]
    head = "A wrongly trained cell would be noticed if its error were too high by more than:"
    return [head, *_listed(told)] if told else []


def _rises(scape: Landscape, rises: Sequence[float], varied: Sequence[str]) -> str:
    finite = sorted(rise for rise in rises if math.isfinite(rise))
    name = ", ".join([scape.config.algorithm, *_stated(scape.config, varied)])
    shares = [
        f"{100 * finite[math.ceil(share * len(rises)) - 1]:.0f} % in {words}"
        for share, words in ((0.5, "half of the cells"), (0.9, "nine tenths"))
        if len(finite) >= share * len(rises)
    ]
    never = len(rises) - len(finite)
    return f"{name}: {', '.join([*shares, f'never in {never} of {len(rises)}'])}"


def _environments(found: Mapping[Environment | None, int]) -> list[str]:
    """Name environments by the fields in which they differ."""
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
    """Return the cells that stand out as a table; an empty list if there are none."""
    if not doubts.outliers:
        return []
    found = [
        (
            setting(scape, one, doubts.varied),
            measured(one.error, scape.metric),
            *(
                (_trained_with(one), "")
                if one.companions
                else (
                    measured(one.expected, scape.metric),
                    f"± {_points(one.allowed, scape.metric)}",
                )
            ),
        )
        for scape, one in doubts.outliers
    ]
    tested = reported(scape for scape, _ in doubts.outliers)
    return [("setting", tested, "its neighbours say", "noise explains"), *found]


def setting(scape: Landscape, one: Outlier, varied: Sequence[str]) -> str:
    """Name a cell of a landscape, and its seed if there are several."""
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
    name, found = setting(scape, one, varied), measured(one.error, scape.metric)
    if one.companions:
        return f"{name}: {found}, {_trained_with(one)}"
    expected = measured(one.expected, scape.metric)
    allowed = f"{100 * one.allowed:.1f}" if scape.metric is None else f"{one.allowed:.2g}"
    return f"{name}: {found} where its neighbours say {expected} (±{allowed})"


def _trained_with(one: Outlier) -> str:
    return f"trained together with {one.companions} cells that stand out"


def _pair(pair: Pair, varied: Sequence[str]) -> str:
    one, other = pair.one, pair.other
    config = one.config
    if one.config == other.config:
        who = f"{one.config.algorithm}, trained twice"
    else:
        names = dict.fromkeys((one.config.algorithm, other.config.algorithm))
        who = " and ".join(names) if len(names) > 1 else f"{one.config.algorithm}, both ways"
    name = _named(config, varied, who=who, decay=_decay(config), lr=config.lr, seed=config.seed)
    errors = " and ".join(_ended(run) for run in (one, other))
    return f"{name}: {errors}, where noise explains {_points(pair.allowed, one.last.metric)}"


def pair_words(pair: Pair | None) -> str:
    """Return in a few words how far two runs of a cell are apart; nothing if there are no two."""
    if pair is None:
        return ""
    what = "trained twice" if pair.repeated else "has a twin"
    metric = pair.one.last.metric
    told = f"{what}: {_points(pair.difference, metric)} apart"
    return f"{told}, and noise explains {_points(pair.allowed, metric)}"


def _ended(run: Run) -> str:
    last = run.last
    return "diverged" if last.diverged else measured(or_infinite(last.test_error), last.metric)


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
    others = _stated(config, varied)
    decayed = f"{way} {_number(value)}" if value else "no decay"
    sown = [f"seed {seed}"] if seed is not None else []
    return ", ".join([who, *others, f"lr {_number(lr)}", decayed, *sown])


def _stated(config: RunConfig, varied: Sequence[str]) -> list[str]:
    return [f"{name} {getattr(config, name)}" for name in varied]


def _decay(config: RunConfig) -> tuple[str, float]:
    [stated] = [(way, getattr(config, way)) for way in DECAYS if getattr(config, way) is not None]
    return stated


def _number(value: float) -> str:
    """Return a power of two as such, and any other number in digits."""
    return power(value) if value < 1 and shared_base([value]) == 1 else f"{value:.6g}"


def _points(difference: float, metric: str | None) -> str:
    return f"{100 * difference:.2f} points" if metric is None else f"{difference:.2g}"


def _counted(count: int, noun: str, one: str, many: str) -> str:
    return f"{count} {noun} {one}" if count == 1 else f"{count} {noun}s {many}"


def _listed(said: Sequence[str]) -> list[str]:
    named = [f"  {one}" for one in said[:_NAMED]]
    return [*named, f"  and {len(said) - _NAMED} more"] if len(said) > _NAMED else named
