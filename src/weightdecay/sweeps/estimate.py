"""Estimates how long cells will take, by a short trial of each kind of cell.

Run as a program, it does so in a process of its own, so that a task that hangs or crashes does no
harm.
"""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from weightdecay.records import SHARED, Progress, RunConfig, Timing
from weightdecay.sweeps.local import MEMORY, cores, gpu_count
from weightdecay.sweeps.name_checks import check_names

# Lanes per trial: enough that more would not be faster, few enough that the trial is short. Epochs
# per trial: the first one is slower, as memory is allocated.
_LANES, _EPOCHS = 64, 2
# Seconds after which a trial may end within an epoch: its speed is known by then. Seconds after
# which a trial in a process of its own is given up. How many times longer than its trial a sweep
# must be for the trial to be worthwhile.
_PATIENCE, _GIVEN_UP, _WORTH = 10.0, 60.0, 20
# Cells that share these fields take equally long per epoch.
_KIND = tuple(name for name in SHARED if name not in ("epochs", "evaluate_every"))


def seconds(
    cells: Iterable[RunConfig], *, workers: int | None = None, device: str | None = None
) -> float | None:
    """Estimate the seconds that cells take on a CPU; None on a GPU, where trials mostly compile.

    A few cells of each kind are trained for a short while, on one core. Unknown names of tasks,
    models and algorithms are an error.
    """
    cells = list(cells)
    check_names(cells)
    if device not in (None, "cpu") or (device is None and gpu_count()):
        return None
    import torch  # noqa: PLC0415 - a coordinator does not need it

    kinds = _kinds(cells)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        total = sum(map(_cost, kinds.values()))
    finally:
        torch.set_num_threads(before)
    return total / (workers or cores())


def seconds_apart(
    cells: Sequence[RunConfig], *, workers: int | None = None, device: str | None = None
) -> float | None:
    """Estimate the same in a process of its own; also None if a trial fails or hangs.

    A task that cannot be loaded is an error, and so is a model that it does not have, or an option
    that the model does not take.
    """
    check_names(cells)
    try:
        process = subprocess.run(
            [sys.executable, "-m", "weightdecay.sweeps.estimate"],
            input=pickle.dumps((list(cells), workers, device)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_GIVEN_UP,
            check=True,
            env={**MEMORY, **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        found: float | str | None = pickle.loads(process.stdout)  # noqa: S301 - our own program
    except (subprocess.SubprocessError, EOFError, pickle.UnpicklingError):
        return None
    if isinstance(found, str):
        raise ValueError(found)  # noqa: TRY004 - it is a message
    return found


def is_worthwhile(cells: Iterable[RunConfig]) -> bool:
    """Whether training all cells takes much longer than a trial."""
    kinds = _kinds(cells).values()
    tried = sum(min(_LANES, len(kind)) * _EPOCHS for kind in kinds)
    return sum(config.epochs for kind in kinds for config in kind) > _WORTH * tried


def main() -> None:
    """Read cells, workers and device from stdin; write the seconds or an error text to stdout."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a task may print
    cells, workers, device = pickle.load(sys.stdin.buffer)  # noqa: S301 - from `seconds_apart`
    try:
        _check_models(cells)
    except (ImportError, OSError, TypeError, ValueError) as error:
        found: float | str | None = str(error)
    else:
        found = seconds(cells, workers=workers, device=device)
    with answers:
        pickle.dump(found, answers)


def _check_models(cells: Iterable[RunConfig]) -> None:
    from weightdecay.runs.build import check_model  # noqa: PLC0415
    from weightdecay.tasks import load  # noqa: PLC0415

    models: dict[str, dict[str, RunConfig]] = {}
    for config in cells:
        models.setdefault(config.task, {}).setdefault(config.model, config)
    for name, configs in models.items():
        task = load(name)
        for config in configs.values():
            check_model(config, task)


def _kinds(cells: Iterable[RunConfig]) -> dict[tuple[object, ...], list[RunConfig]]:
    kinds: dict[tuple[object, ...], list[RunConfig]] = {}
    for config in cells:
        kinds.setdefault(tuple(getattr(config, name) for name in _KIND), []).append(config)
    return kinds


def _cost(kind: Sequence[RunConfig]) -> float:
    """Estimate the seconds for cells that take equally long per epoch."""
    training, evaluation = _epoch(kind)
    return sum(c.epochs * training + _evaluations(c) * evaluation for c in kind)


def _evaluations(config: RunConfig) -> int:
    """Return how often a cell is evaluated, without the few cycles that end in between."""
    return -(-config.epochs // config.evaluate_every) if config.evaluate_every else 1


def _epoch(kind: Sequence[RunConfig]) -> tuple[float, float]:
    """Measure the seconds per cell for one epoch of training and for one evaluation."""
    from weightdecay.runs import train_events  # noqa: PLC0415

    begun = time.monotonic()
    training = evaluation = 0.0
    for event in train_events(_few(kind), device="cpu", stacked=True):
        if isinstance(event, Timing):
            training, evaluation = event.training / event.lanes, event.evaluation / event.lanes
        elif isinstance(event, Progress) and time.monotonic() - begun > _PATIENCE:
            return event.updates / event.speed / _EPOCHS, evaluation
    return training, evaluation


def _few(kind: Sequence[RunConfig]) -> list[RunConfig]:
    """Return some cells, shortened to a trial; only one if lanes are no faster together."""
    from weightdecay.runs.stacked import can_stack  # noqa: PLC0415
    from weightdecay.tasks import load, split  # noqa: PLC0415

    plain = list(dict.fromkeys(map(_shortened, kind)))
    first = plain[0]
    task = split(load(first.task), validation=first.validation, data=first.data)
    return plain[:: -(-len(plain) // _LANES)] if can_stack(first, task) else plain[:1]


def _shortened(config: RunConfig) -> RunConfig:
    config = replace(config, epochs=_EPOCHS, evaluate_every=1, schedule="constant")
    if config.normalized_decay is None:
        return config
    return replace(config, normalized_decay=None, weight_decay=0.0)


if __name__ == "__main__":
    main()
