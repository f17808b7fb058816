"""Checks the names in a study before a worker starts.

Importing torch takes seconds, so the names of our tasks, models and algorithms and their options
are repeated here; a test compares them. `RunConfig` checks schedules. A user's own task or class is
looked up in its source file; the models of such a task are known only once it is loaded.
"""

from collections.abc import Iterable

from weightdecay import checks, references
from weightdecay.records import RunConfig, Spec

_ON_COLOURS = ("convnet", "mlp", "shakeshake26")
#: The models of each task.
MODELS = {
    "mnist1d": ("mlp",),
    "cifar10": _ON_COLOURS,
    "cifar100": _ON_COLOURS,
    "fashion-mnist": ("convnet", "mlp"),
    "imagenet32": _ON_COLOURS,
    "text": ("transformer",),
}
#: The options of each model.
MODEL_OPTIONS = {
    "convnet": ("channels", "width"),
    "mlp": ("width", "depth"),
    "shakeshake26": ("width", "classes", "shake", "forward", "backward"),
    "transformer": ("length", "width", "depth", "heads", "dropout"),
}
_SGD = ("momentum", "nesterov", "maximize", "rounding", "state_dtype", "kernel")
_ADAM = ("betas", "eps", "amsgrad", "maximize", "rounding", "state_dtype", "kernel")
#: The options of each algorithm.
ALGORITHM_OPTIONS = {"sgd": _SGD, "sgdw": _SGD, "adam": _ADAM, "adamw": _ADAM}


def check_names(configs: Iterable[RunConfig]) -> None:
    """Raise if a configuration has a name that no worker could use."""
    used = {(config.task, config.model, config.algorithm): None for config in configs}
    for task, model in {(task, model): None for task, model, _ in used}:
        _check_model(task, model)
    for algorithm in {algorithm: None for _, _, algorithm in used}:
        spec = Spec.parse("algorithm", algorithm)
        if ":" in spec.name:
            references.check("algorithm", spec.name)
        else:
            checks.options(spec.name, spec.options, ALGORITHM_OPTIONS[spec.name])


def _check_model(task: str, model: str) -> None:
    if ":" in task:
        references.check("task", task)
        return
    if task not in MODELS:
        near = checks.did_you_mean(task, MODELS)
        raise ValueError(
            f"`task` must be one of {', '.join(MODELS)}, got {task!r}. {near}".rstrip()
            + " For a task of your own, write MODULE:FUNCTION."
        )
    spec = Spec.parse("model", model)
    if spec.name not in MODELS[task]:
        raise ValueError(
            f"`model` must be one of {', '.join(MODELS[task])}, which {task} has, got "
            f"{spec.name!r}. {checks.did_you_mean(spec.name, MODELS[task])}".rstrip()
        )
    checks.options(spec.name, spec.options, MODEL_OPTIONS[spec.name])
