"""How workers get a task that is passed to a sweep.

A worker usually loads a task by its name. A task that cannot be imported by name is pickled once,
and sent to the workers with their jobs. An engine in this process uses the task itself.
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

#: Returns a job's task.
TaskProvider: TypeAlias = Callable[[], "Source"]


@dataclass(frozen=True)
class Pickled:
    """A pickled task, or the pickled function that returns one."""

    body: bytes

    def __call__(self) -> "Source":
        task: Source = pickle.loads(self.body)  # noqa: S301 - from the coordinator
        return task


def provider_of(
    task: "Source", configs: Collection[RunConfig], *, in_process: bool
) -> TaskProvider:
    """Return what gives workers the task; raise ValueError if it does not fit the configurations.

    `in_process` is whether the workers are in this process.
    """
    names = sorted({config.task for config in configs})
    if len(names) > 1:
        raise ValueError(
            f"Configurations must all name the same task if `task` is given, got "
            f"{', '.join(names)}. Run one sweep per task, in the same folder."
        )
    if callable(task):
        models, own = None, None
    else:
        models, own = task.models, task.name
    if names[0] in MODELS and names[0] != own:
        raise ValueError(
            f"A task of your own must not have the name of a built-in one, got {names[0]}. Choose "
            "another name."
        )
    for config in configs:
        name = Spec.parse("model", config.model).name
        if models is not None and name not in models:
            raise ValueError(
                f"`model` must be one of {', '.join(models)}, which {own} has, got {name!r}."
            )
    if in_process:
        return lambda: task
    return Pickled(_portable(task if callable(task) else replace(task)))


def _portable(task: "Source") -> bytes:
    body = io.BytesIO()
    try:
        _Pickler(body).dump(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"`task` must be picklable, to be sent to worker processes, but is not: {error}. "
            "Define its functions at the top level of a module, not in a script, a notebook or "
            "another function; or train in this process, with "
            "engine=weightdecay.sweeps.InProcess()."
        ) from error
    return body.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Refuse what is defined in `__main__`: it pickles here, but a worker has another one."""
        if isinstance(value, FunctionType | type) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the running script")
        return NotImplemented
