"""A task handed to a sweep beside its configurations, and how workers get it.

A worker loads a task by its name. One that has no name to be imported by is pickled, once, and
goes to the workers with their jobs. An engine in this process is handed the task itself.
"""

import io
import pickle
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from weightdecay.records import RunConfig, Spec
from weightdecay.sweeps.name_checks import MODELS

if TYPE_CHECKING:
    from weightdecay.tasks import Source

#: What a job asks for its task.
Handed: TypeAlias = Callable[[], "Source"]


@dataclass(frozen=True)
class Pickled:
    """A task, or the function that makes it, as bytes."""

    body: bytes

    def __call__(self) -> "Source":
        task: Source = pickle.loads(self.body)  # noqa: S301 - from the process that planned the job
        return task


def handed(task: "Source", configs: Collection[RunConfig], *, here: bool) -> Handed:
    """Return what gives workers the task; raise unless it fits its configurations.

    `here` is whether they are in this process.
    """
    names = sorted({config.task for config in configs})
    if len(names) > 1:
        raise ValueError(
            f"Configurations must name one task where `task` is given, got {', '.join(names)}. "
            "Make a sweep for each, in the same folder."
        )
    if callable(task):
        models, own = None, None
    else:
        models, own = task.models, task.name
    if names[0] in MODELS and names[0] != own:
        raise ValueError(
            f"Configurations with a task of your own must not name it {names[0]}, as the built-in "
            "one. Choose another name for it."
        )
    for config in configs:
        name = Spec.parse("model", config.model).name
        if models is not None and name not in models:
            raise ValueError(
                f"`model` must be one of {', '.join(models)}, which {own} has, got {name!r}."
            )
    if here:
        return lambda: task
    return Pickled(_portable(task if callable(task) else replace(task)))


def _portable(task: "Source") -> bytes:
    body = io.BytesIO()
    try:
        _Pickler(body).dump(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"`task` must be something that worker processes can unpickle, and is not: {error}. "
            "Define its functions at the top of a module, not in a script, a notebook or another "
            "function; or train in this process, with engine=weightdecay.sweeps.Here()."
        ) from error
    return body.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Refuse what pickles here and is not found elsewhere: a worker has another `__main__`."""
        if isinstance(value, FunctionType | type) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the running script")
        return NotImplemented
