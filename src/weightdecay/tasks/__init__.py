"""A name into data, model and loss."""

from weightdecay.tasks.catalogue import NAMES, check, fetch, load
from weightdecay.tasks.fetch import Progress, UnreachableError
from weightdecay.tasks.task import Builder, Examples, Prepare, Task, as_float, split, split_on

__all__ = [
    "NAMES",
    "Builder",
    "Examples",
    "Prepare",
    "Progress",
    "Task",
    "UnreachableError",
    "as_float",
    "check",
    "fetch",
    "load",
    "split",
    "split_on",
]
