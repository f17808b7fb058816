"""Builds the schedule, the model and the optimizer that a configuration names."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from weightdecay import checks, references
from weightdecay.decay import Normalized
from weightdecay.hashing import word
from weightdecay.optim import SGD, SGDW, Adam, AdamW
from weightdecay.optim.decouple import decouple
from weightdecay.optim.rates import TORCHS
from weightdecay.optim.scheduled import ScheduledOptimizer
from weightdecay.records import DECAYS, RunConfig, Spec
from weightdecay.schedules import Constant, Cosine, Schedule, StepDrop, WarmRestarts, Warmup
from weightdecay.tasks import Builder, Measured, Task

_ALGORITHMS: dict[str, Any] = {"sgd": SGD, "sgdw": SGDW, "adam": Adam, "adamw": AdamW}
# Classes of torch whose update of an element depends on that element alone; subclasses may differ.
_ELEMENTWISE = (
    torch.optim.Adadelta,
    torch.optim.Adagrad,
    torch.optim.Adam,
    torch.optim.Adamax,
    torch.optim.AdamW,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.SGD,
)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# The streams of a run's random numbers, which never overlap.
ORDER, AUGMENTATION, DRAWS, WEIGHTS = range(1, 5)


def updates_per_epoch(config: RunConfig, task: Task) -> int:
    """Return the number of whole batches in the training examples."""
    if config.batch > len(task.train):
        raise ValueError(
            f"`batch` must be at most {len(task.train)}, the number of training examples, "
            f"got {config.batch}."
        )
    return len(task.train) // config.batch


def schedule_of(config: RunConfig, per_epoch: int) -> Schedule:
    """Return the schedule of a run with this many updates per epoch."""
    spec = Spec.parse("schedule", config.schedule)

    def constant() -> Schedule:
        return Constant()

    def cosine(low: float = 0.0) -> Schedule:
        return Cosine(config.epochs * per_epoch - steps, low=low)

    def restarts(first: float, factor: float = 2, low: float = 0.0) -> Schedule:
        length = updates("first", first)
        if not length:
            raise ValueError(
                f"`first` must be at least one update, 1/{per_epoch} of an epoch, got {first}."
            )
        return WarmRestarts(length, factor=factor, low=low)

    def drops(at: Any, drop: float = 0.1) -> Schedule:
        epochs = at if isinstance(at, tuple) else (at,)
        return StepDrop([updates("at", epoch) for epoch in epochs], drop=drop)

    def updates(name: str, epochs: object) -> int:
        return round(checks.number(name, epochs, at_least=0) * per_epoch)

    options = dict(spec.options)
    steps = updates("warmup", options.pop("warmup", 0))
    if steps >= config.epochs * per_epoch:
        raise ValueError(
            f"`warmup` must be shorter than the run's {config.epochs} epochs, got {spec}."
        )
    shapes: dict[str, Callable[..., Schedule]]
    shapes = {"constant": constant, "cosine": cosine, "restarts": restarts, "drops": drops}
    then = shapes[spec.name](**options)
    return Warmup(steps, then) if steps else then


def model_of(config: RunConfig, task: Task) -> nn.Module:
    """Return the model with its initial weights, drawn on the CPU so that devices agree."""
    spec, builder = check_model(config, task)
    generator = torch.Generator("cpu").manual_seed(word(config.seed, WEIGHTS))
    # A builder that does not use the generator draws from torch's own, with the same seed.
    with torch.device("cpu"), torch.random.fork_rng([]):
        torch.default_generator.manual_seed(word(config.seed, WEIGHTS))
        model = builder(**spec.options, generator=generator)
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module, but {spec.name} returns {model!r}.")
    return model


def check_model(config: RunConfig, task: Task) -> tuple[Spec, Builder]:
    """Return a model's name, options and builder; raise ValueError if the task has none such."""
    spec = Spec.parse("model", config.model)
    if spec.name not in task.models:
        raise ValueError(
            f"`model` must be one of {', '.join(task.models)}, which {task.name} has, "
            f"got {spec.name!r}. {checks.did_you_mean(spec.name, task.models)}".rstrip()
        )
    _check_builder(spec.name, task)
    builder = task.models[spec.name]
    _check_options("model", spec.name, builder, spec.options, ["generator"])
    return spec, builder


def _check_builder(name: str, task: Task) -> None:
    """Raise unless a model's builder takes the generator of its initial weights."""
    kinds = {p.name: p.kind for p in inspect.signature(task.models[name]).parameters.values()}
    if "generator" not in kinds and inspect.Parameter.VAR_KEYWORD not in kinds.values():
        raise ValueError(
            f"The builder of model {name!r} of {task.name} must take `generator=`, from which the "
            f"initial weights are drawn, but takes {', '.join(kinds) or 'nothing'}. Add "
            "`generator=None` to its arguments, and pass it to the functions of torch.nn.init. "
            "Layers that torch initializes use torch's own generator, which is seeded for every "
            "run."
        )


def shapes_matter(algorithm: str) -> bool:
    """Whether an algorithm may depend on a parameter's shape: ours work on single elements."""
    return Spec.parse("algorithm", algorithm).name not in _ALGORITHMS


def takes_rows(algorithm: str) -> bool:
    """Whether an algorithm may be given all of a lane's weights as one row.

    This is so for ours, and for those of torch that work on single elements.
    """
    return (
        not shapes_matter(algorithm)
        or _imported(Spec.parse("algorithm", algorithm).name) in _ELEMENTWISE
    )


def optimizer_of(
    algorithm: str, lanes: Sequence[tuple[RunConfig, Sequence[Tensor], Schedule]]
) -> ScheduledOptimizer:
    """Return one optimizer for all lanes of an algorithm, with one group per lane.

    With a class that is not ours, each lane is coupled or decoupled, depending on how its decay is
    stated.
    """
    spec = Spec.parse("algorithm", algorithm)
    cls: Any = _ALGORITHMS.get(spec.name) or decouple(_imported(spec.name))
    groups = [{"params": list(params), **_rates(config, s)} for config, params, s in lanes]
    common = _rates(*lanes[0][::2])
    del common["schedule"]
    own = {"params": groups, **common}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", TORCHS)  # large decays are intended in a landscape
        _check_options("algorithm", spec.name, cls, spec.options, own)
        optimizer: ScheduledOptimizer = cls(**spec.options, **own)
    return optimizer


def check(configs: Sequence[RunConfig], task: Task) -> None:
    """Raise unless configurations of one model can be trained, before anything is written."""
    if configs[0].keep_missed and not task.measure.classifies:
        raise ValueError(
            f"`keep_missed` must be False for {task.name}, which has its own metric and no "
            "misclassified examples, got True."
        )
    model = model_of(configs[0], task)
    for config in configs:
        schedule = schedule_of(config, updates_per_epoch(config, task))
        optimizer_of(config.algorithm, [(config, list(model.parameters()), schedule)])
    _check_outputs(model, task)


@torch.no_grad()
def _check_outputs(model: nn.Module, task: Task) -> None:
    """Raise unless the model's outputs for a prepared batch fit the task's loss and metric."""
    few = task.test[:2].to("cpu")
    inputs: Any = task.prepare(few.inputs, None)
    if not isinstance(inputs, Tensor) or len(inputs) != len(few):
        raise ValueError(
            f"`prepare` of {task.name} must return a tensor with one input per example, "
            f"{len(few)} here, got {getattr(inputs, 'shape', inputs)}."
        )
    outputs: Any = model.eval()(inputs)
    if not isinstance(outputs, Tensor) or len(outputs) != len(few):
        raise ValueError(
            f"`model` must return a tensor with one output per example, {len(few)} here, got "
            f"{tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__}."
        )
    measure = task.measure
    if measure.loss is None or measure.metric is None:
        _check_logits(outputs, few.targets, task)
    for name, function in {"loss": measure.loss, "metric": measure.metric}.items():
        if function is not None:
            _check_measured(name, function, outputs.float(), few.targets, task)


def _check_logits(outputs: Tensor, targets: Tensor, task: Task) -> None:
    found, wanted = tuple(outputs.shape), (*targets.shape, task.classes)
    if found != wanted:
        first = (len(targets), task.classes, *targets.shape[1:])
        cure = " Put the classes last: outputs.movedim(1, -1)." if found == first else ""
        raise ValueError(
            f"`model` must return a number for each target and each of {task.classes} classes, "
            f"{wanted} for {len(targets)} examples, got {found}.{cure}"
        )


def _check_measured(
    name: str, function: Measured, outputs: Tensor, targets: Tensor, task: Task
) -> None:
    """Raise unless a loss or metric returns one or more numbers per example, independently."""
    shapes = f"outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}"
    try:
        found: Any = function(outputs, targets)
        alone: Any = function(outputs[:1], targets[:1])
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"`{name}` of {task.name} must take what the model returns and the targets, {shapes}, "
            f"but raised {type(error).__name__}: {error}. Make their shapes fit."
        ) from error
    shape = tuple(found.shape) if isinstance(found, Tensor) else None
    if shape is None or shape[:1] != (len(targets),) or alone.shape != (1, *shape[1:]):
        got = type(found).__name__ if shape is None else f"shape {shape}"
        raise ValueError(
            f"`{name}` of {task.name} must return one number per example, or per target of each "
            f"example, got {got} for {len(targets)} examples with {shapes}. torch's losses do with "
            'reduction="none" if outputs and targets have the same shape.'
        )
    if name == "loss" and not found.is_floating_point():
        raise TypeError(f"`loss` of {task.name} must return floats, got {found.dtype}.")


def _rates(config: RunConfig, schedule: Schedule) -> dict[str, Any]:
    decay: dict[str, Any] = {"weight_decay": config.weight_decay}
    if config.l2 is not None:
        decay = {"l2": config.l2}
    elif config.normalized_decay is not None:
        decay = {"weight_decay": Normalized(config.normalized_decay)}
    return {"lr": config.lr, "schedule": schedule, **decay}


def _imported(name: str) -> type[torch.optim.Optimizer]:
    found = references.imported("algorithm", name)
    if not (isinstance(found, type) and issubclass(found, torch.optim.Optimizer)):
        raise TypeError(
            f"`algorithm` must name a subclass of torch.optim.Optimizer, got {found!r}."
        )
    return found


def _check_options(
    field: str,
    name: str,
    function: Callable[..., Any],
    options: Iterable[str],
    own: Iterable[str],
) -> None:
    """Raise unless a function takes the user's options and our own arguments."""
    ours = {*own, "schedule", *DECAYS}
    if taken := [option for option in options if option in ours]:
        raise ValueError(
            f"Options of `{field}` must not include {', '.join(taken)}, which the fields of the "
            f"configuration set, got {name} with {', '.join(options)}."
        )
    signature = inspect.signature(function)
    theirs = [one for one in signature.parameters.values() if one.name not in ours]
    if all(one.kind in _NAMED for one in theirs):
        required = [one.name for one in theirs if one.default is one.empty]
        checks.options(name, options, [one.name for one in theirs], required)
    try:
        signature.bind(**dict.fromkeys((*options, *own)))
    except TypeError as error:
        raise ValueError(f"`{field}` {name} cannot be built: {error}.") from error
