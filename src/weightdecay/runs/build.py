"""A configuration's names into a schedule, a model and an optimizer's groups."""

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
# Those of torch's classes whose update of an element needs that element alone. A subclass may not.
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
# A run's random words come in streams that never meet.
ORDER, AUGMENTATION, DRAWS, WEIGHTS = range(1, 5)


def updates_per_epoch(config: RunConfig, task: Task) -> int:
    """Return how many whole batches the examples trained on fill."""
    if config.batch > len(task.train):
        raise ValueError(
            f"`batch` must be at most {len(task.train)}, the examples trained on, "
            f"got {config.batch}."
        )
    return len(task.train) // config.batch


def schedule_of(config: RunConfig, per_epoch: int) -> Schedule:
    """Return the schedule of a run of so many updates an epoch."""
    spec = Spec.parse("schedule", config.schedule)

    def constant() -> Schedule:
        return Constant()

    def cosine(low: float = 0.0) -> Schedule:
        return Cosine(config.epochs * per_epoch - steps, low=low)

    def restarts(first: float, factor: float = 2, low: float = 0.0) -> Schedule:
        length = updates("first", first)
        if not length:
            raise ValueError(f"`first` must be an update at least, 1/{per_epoch} of an epoch.")
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
            f"`warmup` must be below the {config.epochs} epochs there are, got {spec}."
        )
    shapes: dict[str, Callable[..., Schedule]]
    shapes = {"constant": constant, "cosine": cosine, "restarts": restarts, "drops": drops}
    then = shapes[spec.name](**options)
    return Warmup(steps, then) if steps else then


def model_of(config: RunConfig, task: Task) -> nn.Module:
    """Return the model with its first weights, on the CPU, where they are the same for all."""
    spec, builder = check_model(config, task)
    generator = torch.Generator("cpu").manual_seed(word(config.seed, WEIGHTS))
    # A builder that does not use the generator draws from torch's own: of the same seed, then.
    with torch.device("cpu"), torch.random.fork_rng([]):
        torch.default_generator.manual_seed(word(config.seed, WEIGHTS))
        model = builder(**spec.options, generator=generator)
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module, and {spec.name} returns {model!r}.")
    return model


def check_model(config: RunConfig, task: Task) -> tuple[Spec, Builder]:
    """Return the name and options of a model and its builder, if the task has them."""
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
    """Raise unless a model's builder takes the generator of its first weights."""
    kinds = {p.name: p.kind for p in inspect.signature(task.models[name]).parameters.values()}
    if "generator" not in kinds and inspect.Parameter.VAR_KEYWORD not in kinds.values():
        raise ValueError(
            f"The builder of model {name!r} of {task.name} must take `generator=`, from which a "
            f"run's first weights are drawn, and takes {', '.join(kinds) or 'nothing'}. Add "
            "`generator=None` to its arguments, and hand it to the functions of torch.nn.init. "
            "Layers that are left as torch makes them draw from torch's own generator, which is "
            "seeded for every run."
        )


def shapes_matter(algorithm: str) -> bool:
    """Whether an algorithm may look at a parameter's shape: ours look at elements alone."""
    return Spec.parse("algorithm", algorithm).name not in _ALGORITHMS


def takes_rows(algorithm: str) -> bool:
    """Whether an algorithm may be handed all of a lane's weights as one row.

    Ours may, and those of torch that look at elements alone.
    """
    return (
        not shapes_matter(algorithm)
        or _imported(Spec.parse("algorithm", algorithm).name) in _ELEMENTWISE
    )


def optimizer_of(
    algorithm: str, lanes: Sequence[tuple[RunConfig, Sequence[Tensor], Schedule]]
) -> ScheduledOptimizer:
    """Return one optimizer for lanes of one algorithm, a group a lane.

    Lanes of a class that is not ours may be coupled or decoupled, each as its decay is stated.
    """
    spec = Spec.parse("algorithm", algorithm)
    cls: Any = _ALGORITHMS.get(spec.name) or decouple(_imported(spec.name))
    groups = [{"params": list(params), **_rates(config, s)} for config, params, s in lanes]
    common = _rates(*lanes[0][::2])
    del common["schedule"]
    own = {"params": groups, **common}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", TORCHS)  # a landscape has large decays on purpose
        _check_options("algorithm", spec.name, cls, spec.options, own)
        optimizer: ScheduledOptimizer = cls(**spec.options, **own)
    return optimizer


def check(configs: Sequence[RunConfig], task: Task) -> None:
    """Raise unless configurations of one model can be trained, before anything is kept of them."""
    if configs[0].keep_missed and not task.measure.classifies:
        raise ValueError(
            f"`keep_missed` must be False for {task.name}, whose metric is its own and misses no "
            "targets, got True."
        )
    model = model_of(configs[0], task)
    for config in configs:
        schedule = schedule_of(config, updates_per_epoch(config, task))
        optimizer_of(config.algorithm, [(config, list(model.parameters()), schedule)])
    _check_outputs(model, task)


@torch.no_grad()
def _check_outputs(model: nn.Module, task: Task) -> None:
    """Raise unless a model makes of a prepared batch what the task's loss and metric take."""
    few = task.test[:2].to("cpu")
    inputs: Any = task.prepare(few.inputs, None)
    if not isinstance(inputs, Tensor) or len(inputs) != len(few):
        raise ValueError(
            f"`prepare` of {task.name} must return a tensor with an input for each of the "
            f"{len(few)} examples, got {getattr(inputs, 'shape', inputs)}."
        )
    outputs: Any = model.eval()(inputs)
    if not isinstance(outputs, Tensor) or len(outputs) != len(few):
        raise ValueError(
            f"`model` must return a tensor with an output for each of {len(few)} examples, got "
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
    """Raise unless a loss or metric returns a number per example, or several, of it alone."""
    shapes = f"outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}"
    try:
        found: Any = function(outputs, targets)
        alone: Any = function(outputs[:1], targets[:1])
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"`{name}` of {task.name} must take what the model returns and the targets, {shapes}, "
            f"and raised {type(error).__name__}: {error}. Make their shapes fit."
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
        raise TypeError(f"`algorithm` must name an optimizer of torch's kind, got {found!r}.")
    return found


def _check_options(
    field: str,
    name: str,
    function: Callable[..., Any],
    options: Iterable[str],
    own: Iterable[str],
) -> None:
    """Raise unless a function takes the options that a person typed, and our own."""
    ours = {*own, "schedule", *DECAYS}
    if taken := [option for option in options if option in ours]:
        raise ValueError(
            f"`{field}` must leave {', '.join(taken)} to the configuration's fields, got {name} "
            f"with {', '.join(options)}."
        )
    signature = inspect.signature(function)
    theirs = [one for one in signature.parameters.values() if one.name not in ours]
    if all(one.kind in _NAMED for one in theirs):
        required = [one.name for one in theirs if one.default is one.empty]
        checks.options(name, options, [one.name for one in theirs], required)
    try:
        signature.bind(**dict.fromkeys((*options, *own)))
    except TypeError as error:
        raise ValueError(f"`{field}` {name} cannot be made: {error}.") from error
