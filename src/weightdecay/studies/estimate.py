"""How long a study will take, before it starts: a short trial of each kind of cell it has."""

from collections.abc import Iterable
from dataclasses import replace

from weightdecay.records import SHARED, RunConfig, Timing
from weightdecay.sweeps.local import cores

# Lanes of a trial: enough that lanes are worth it, few enough that it is short.
_LANES = 16
# What differs between cells that cost alike, an epoch.
_AS_DEAR = tuple(name for name in SHARED if name != "epochs")


def seconds(
    cells: Iterable[RunConfig], *, workers: int | None = None, device: str | None = None
) -> float | None:
    """Estimate the seconds that cells take, on a CPU; on a GPU compiling is most of a trial: None.

    One epoch of a few cells of each kind is trained, on one core.
    """
    import torch

    from weightdecay.runs import train

    if device not in (None, "cpu") or (device is None and torch.cuda.is_available()):
        return None
    kinds: dict[tuple[object, ...], list[RunConfig]] = {}
    for config in cells:
        kinds.setdefault(tuple(getattr(config, name) for name in _AS_DEAR), []).append(config)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    total = 0.0
    try:
        for kind in kinds.values():
            few = {replace(config, epochs=1, schedule="constant"): None for config in _plain(kind)}
            events = train(list(few)[:_LANES], device="cpu", cells=True)
            times = [event for event in events if isinstance(event, Timing)]
            epoch = (
                sum(time.training + time.evaluation for time in times) / len(times) / times[0].lanes
            )
            total += epoch * sum(config.epochs for config in kind)
    finally:
        torch.set_num_threads(before)
    return total / (workers or cores())


def _plain(kind: list[RunConfig]) -> list[RunConfig]:
    """Return cells that no schedule's end matters to: with decays that need no budget."""
    plain = []
    for config in kind:
        if config.normalized_decay is not None:
            config = replace(config, normalized_decay=None, weight_decay=0.0)  # noqa: PLW2901
        plain.append(config)
    return plain[:: max(1, len(plain) // (2 * _LANES))]
