"""Trains configurations, as one call or as a stream of events; saves, resumes, prints nothing.

A training may be killed at any moment. Started again, it resumes from its last checkpoint and
yields all its records from the first epoch on: earlier ones come from the checkpoint.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, overload

import torch
import torch.distributed as dist

from weightdecay.progress import Bars, training_line
from weightdecay.records import SHARED, Event, Notice, Progress, Run, RunConfig
from weightdecay.records.collecting import RunCollector
from weightdecay.runs.build import check, shapes_matter
from weightdecay.runs.captured import Captured, can_capture, fitting
from weightdecay.runs.checkpoints import EVERYTHING, BusyError, Keep, RunFiles, read
from weightdecay.runs.lanes import Lanes, LaneState
from weightdecay.runs.pack import PROGRESS_EVERY, Pack, leads
from weightdecay.runs.separate import Separate
from weightdecay.runs.stacked import Stacked, can_stack
from weightdecay.tasks import Source, Task, given, split_on

_LOG = logging.getLogger("weightdecay")
# Seconds to wait for a run's previous worker to exit before that is reported.
_SILENT_WAIT = 1.0


@overload
def train(
    configs: RunConfig,
    *,
    folder: Path | str | None = None,
    device: torch.device | str | None = None,
    task: Source | None = None,
    keep: Keep = EVERYTHING,
    progress: bool = True,
) -> Run: ...


@overload
def train(
    configs: Sequence[RunConfig],
    *,
    folder: Path | str | None = None,
    device: torch.device | str | None = None,
    task: Source | None = None,
    keep: Keep = EVERYTHING,
    progress: bool = True,
) -> list[Run]: ...


def train(
    configs: RunConfig | Sequence[RunConfig],
    *,
    folder: Path | str | None = None,
    device: torch.device | str | None = None,
    task: Source | None = None,
    keep: Keep = EVERYTHING,
    progress: bool = True,
) -> Run | list[Run]:
    """Train a configuration and return its run; or train several side by side and return theirs.

    Several configurations must share task, model, batch and budget. With a `folder`, runs are saved
    there and resumed from there; `keep` says what stays when they have ended. `task` is a Task, or
    a function that returns one, for configurations whose task has no name to load it by. Notices
    are logged to `weightdecay` at level INFO, problems at level WARNING. A progress bar is shown on
    a terminal and in a notebook, unless `progress` is False.
    """
    lanes = [configs] if isinstance(configs, RunConfig) else list(configs)
    collector = RunCollector(lanes)
    events = train_events(lanes, folder=folder, device=device, task=task, keep=keep)
    with Bars(quiet=not (progress and leads())) as bars:
        for event in events:
            match event:
                case Notice():
                    bars.clear()
                    _LOG.log(logging.WARNING if event.problem else logging.INFO, event.text)
                case Progress():
                    bars.draw([(event.update / event.updates, training_line(event))])
            collector.add(event)
    runs = {run.config: run for run, _ in collector.pop_finished()}
    found = [runs[config] for config in lanes]
    return found[0] if isinstance(configs, RunConfig) else found


def train_events(
    configs: RunConfig | Sequence[RunConfig],
    *,
    folder: Path | str | None = None,
    device: torch.device | str | None = None,
    task: Source | None = None,
    keep: Keep = EVERYTHING,
    wait: bool = False,
    stacked: bool = False,
) -> Iterator[Event]:
    """Do what `train` does, and yield events.

    The events are one Started per lane, one Record and one Timing per lane and evaluated epoch,
    Progress now and then, Saving before each checkpoint, and Notices. Closing the iterator stops
    the training and saves it.

    If another process trains a run in the folder, that is an error; with `wait`, it is waited for.
    With `stacked`, a single lane on a CPU is computed in the same way as several are, if the model
    allows it: then its bits do not depend on the lanes that it trains with.
    """
    lanes = [configs] if isinstance(configs, RunConfig) else list(configs)
    _check(lanes)
    place = torch.empty(0, device=device or ("cuda" if torch.cuda.is_available() else "cpu")).device
    whole = given(lanes[0].task, task)
    parts = split_on(place, whole, validation=lanes[0].validation, data=lanes[0].data)
    check(lanes, parts)
    run_files = [None if folder is None else RunFiles(Path(folder), config) for config in lanes]
    fingerprint, alike = whole.fingerprint, stacked or len(lanes) > 1
    return _train(lanes, parts, place, run_files, fingerprint, keep=keep, wait=wait, alike=alike)


def _train(
    lanes: list[RunConfig],
    task: Task,
    device: torch.device,
    run_files: list[RunFiles | None],
    fingerprint: str,
    *,
    keep: Keep,
    wait: bool,
    alike: bool,
) -> Iterator[Event]:
    with ExitStack() as held:
        if leads():
            # In a fixed order: otherwise two processes could wait for each other for ever.
            for files in sorted(filter(None, run_files), key=lambda files: files.folder):
                yield from _held(files, held, wait=wait)
        found, notices = _restored(lanes, run_files)
        yield from notices
        if any(state is not None and state["task"] != fingerprint for state in found):
            raise ValueError(
                f"The data of {lanes[0].task} must be those that the run was started with, but "
                "have changed. Give the task another name, or start again (--fresh)."
            )
        for members in _in_step(found):
            kind = _kind(task, device, lanes, found[members[0]], alike=alike)
            size = len(members)
            if kind is Captured:
                begun, known = time.monotonic(), fitting.tried(lanes[members[0]], task, device)
                if not known:
                    yield Notice("Compiling the model for this GPU, once: a minute or two.")
                size = min(size, fitting(lanes[members[0]], task, device))
                if not known:
                    yield Notice(f"Compiled in {time.monotonic() - begun:.0f} s.")
            if not size:
                yield Notice("The model cannot be captured in a CUDA graph; it trains without one.")
                kind, size = Separate, len(members)
            if size < len(members):
                yield Notice(f"{size} of {len(members)} lanes fit into memory at a time.")
            for some in _batched(members, size):
                states = [found[n] for n in some]
                pack = Pack(
                    [lanes[n] for n in some],
                    [run_files[n] for n in some],
                    partial(kind, task=task, device=device),
                    [state for state in states if state is not None],
                    fingerprint,
                    keep=keep,
                )
                yield from pack.run()


def _held(files: RunFiles, held: ExitStack, *, wait: bool) -> Iterator[Event]:
    """Lock a run's folder; or wait until no other process has it, and report that."""
    begun = time.monotonic()
    while True:
        try:
            held.enter_context(files.held())
        except BusyError:
            if not wait:
                raise
        else:
            return
        if time.monotonic() - begun > _SILENT_WAIT:
            yield Notice(
                f"Run {files.folder.name} is locked by another process; its training starts when "
                f"that one ends. `fuser {files.lock}` shows which process it is."
            )
        time.sleep(PROGRESS_EVERY)


def _batched(numbers: Iterable[int], size: int) -> Iterator[list[int]]:
    left = iter(numbers)
    while some := list(islice(left, size)):
        yield some


def _check(configs: list[RunConfig]) -> None:
    if not configs:
        raise ValueError("`configs` must hold at least one configuration, got none.")
    for name in SHARED:
        values = {getattr(config, name) for config in configs}
        if len(values) > 1:
            raise ValueError(
                f"Lanes must share `{name}`, got {', '.join(sorted(map(repr, values)))}. Train "
                "them separately."
            )
    if configs[0].keep_missed and dist.is_initialized() and dist.get_world_size() > 1:
        raise ValueError(
            "`keep_missed` must be False with several processes, which share the test examples, "
            "got True."
        )
    if len({config.identity for config in configs}) < len(configs):
        raise ValueError("`configs` must all be different, got one of them twice.")


def _restored(
    lanes: list[RunConfig], run_files: Sequence[RunFiles | None]
) -> tuple[list[LaneState | None], list[Notice]]:
    """Return the saved state of each lane, and notices about files that could not be used.

    If a pack is killed while it saves its lanes, some of them are further than others. Then all go
    back to the last update that all of them have, so that they stay in step.
    """
    notices: list[Notice] = []
    kept = [[] if files is None else files.checkpoints() for files in run_files]
    found = [_newest_readable(paths, notices) for paths in kept]
    going = [n for n, config in enumerate(lanes) if not _ended(config, found[n])]
    if len({_updates(found[n]) for n in going}) > 1:
        common = set.intersection(*({path.name for path in kept[n]} for n in going))
        for n in going if common else []:
            paths = [path for path in kept[n] if path.name <= max(common)]
            found[n] = _newest_readable(paths, notices)
    return found, list(dict.fromkeys(notices))


def _newest_readable(paths: list[Path], notices: list[Notice]) -> LaneState | None:
    """Return the newest checkpoint that can be read, and add notices about those that cannot."""
    for path in paths:
        try:
            return read(path)
        except (ValueError, OSError) as error:
            said = f"Run {path.parent.name}: {str(error).rstrip('.')}. This checkpoint is not used."
            notices.append(Notice(said, problem=True))
    if paths:
        run = paths[0].parent.name
        said = f"Run {run} has no other checkpoint and starts from the beginning."
        notices.append(Notice(said, problem=True))
    return None


def _ended(config: RunConfig, state: LaneState | None) -> bool:
    records = [] if state is None else state["records"]
    return bool(records) and (records[-1]["epoch"] == config.epochs or records[-1]["diverged"])


def _updates(state: LaneState | None) -> int:
    return 0 if state is None else int(state["updates"])


def _in_step(found: list[LaneState | None]) -> list[list[int]]:
    """Group the lanes that are at the same update and were computed in the same way."""
    places: dict[Any, list[int]] = {}
    for number, state in enumerate(found):
        place = _updates(state), state is not None and state["stacked"]
        places.setdefault(place, []).append(number)
    return list(places.values())


def _kind(
    task: Task,
    device: torch.device,
    configs: list[RunConfig],
    state: LaneState | None,
    *,
    alike: bool,
) -> type[Lanes]:
    """Return how lanes are computed. A run resumes as it began, to keep its bits the same."""
    ours = not any(shapes_matter(config.algorithm) for config in configs)
    if device.type == "cuda" and ours and not dist.is_initialized():
        return Captured if can_capture(configs[0], task) else Separate
    if device.type != "cpu" or dist.is_initialized() or configs[0].precision != "float32":
        return Separate
    if state is not None:
        return Stacked if state["stacked"] else Separate
    return Stacked if alike and can_stack(configs[0], task) else Separate
