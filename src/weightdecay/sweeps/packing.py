"""Groups cells into packs that train side by side, evenly over all workers."""

from collections.abc import Iterable, Sequence

from weightdecay.records import SHARED, RunConfig

Pack = tuple[RunConfig, ...]


def packs(cells: Iterable[RunConfig], *, workers: int, lanes: int) -> list[Pack]:
    """Return packs of at most `lanes` cells, the longest ones first.

    Cells that can train together are divided evenly among enough packs to keep all workers busy.
    Optimizers of others have packs of their own: a GPU captures only ours in a graph, and one
    lane that cannot be captured makes all lanes of its pack several times as slow.
    """
    groups: dict[tuple[object, ...], list[RunConfig]] = {}
    for config in cells:
        shared = (getattr(config, name) for name in SHARED)
        groups.setdefault((*shared, ":" in config.algorithm), []).append(config)
    found = [pack for group in groups.values() for pack in _divided(group, workers, lanes)]
    return sorted(found, key=lambda pack: pack[0].epochs * len(pack), reverse=True)


def _divided(group: Sequence[RunConfig], workers: int, lanes: int) -> list[Pack]:
    rounds = -(-len(group) // (workers * lanes))
    count = min(len(group), rounds * workers)
    return [tuple(group[n::count]) for n in range(count)]


def halves(pack: Pack) -> list[Pack]:
    """Split a pack in two."""
    middle = len(pack) // 2
    return [pack[:middle], pack[middle:]]
