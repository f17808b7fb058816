"""The tasks and models that there are, known before a worker is: a wrong name starts none.

What makes data and models of them needs torch, for which a planner would wait. Algorithms and
schedules `RunConfig` knows; what a task of one's own has, and which options a name takes, only a
worker finds out.
"""

import difflib
from collections.abc import Iterable

from weightdecay.records import RunConfig, Spec

_ON_COLOURS = ("convnet", "mlp", "shakeshake26")
#: The models of each task, as the catalogue of tasks has them.
MODELS = {
    "mnist1d": ("mlp",),
    "cifar10": _ON_COLOURS,
    "cifar100": _ON_COLOURS,
    "fashion-mnist": ("convnet", "mlp"),
    "imagenet32": _ON_COLOURS,
    "text": ("transformer",),
}


def check_names(configs: Iterable[RunConfig]) -> None:
    """Raise unless every task is one of ours, which has the model, or one of somebody's own."""
    for task, model in {(config.task, config.model): None for config in configs}:
        if ":" in task:
            continue
        if task not in MODELS:
            own = "Or write MODULE:FUNCTION, for a task of your own."
            known = ", ".join(MODELS)
            raise ValueError(
                f"`task` must be one of {known}, got {task!r}. {_near(task, MODELS)}{own}"
            )
        name = Spec.parse("model", model).name
        if name not in MODELS[task]:
            known = ", ".join(MODELS[task])
            raise ValueError(
                f"`model` must be one of {known}, which {task} has, got {name!r}. "
                f"{_near(name, MODELS[task])}".rstrip()
            )


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"Did you mean {near[0]}? " if near else ""
