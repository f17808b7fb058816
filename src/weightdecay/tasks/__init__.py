"""A name into data, model, loss and metric."""

from weightdecay.tasks.catalogue import NAMES, check, fetch, load
from weightdecay.tasks.fetch import Progress, UnreachableError
from weightdecay.tasks.measure import Measured, absolute_error, squared_error
from weightdecay.tasks.task import Builder, Examples, Prepare, Task, as_float, split, split_on

__all__ = [
    "NAMES",
    "Builder",
    "Examples",
    "Measured",
    "Prepare",
    "Progress",
    "Task",
    "UnreachableError",
    "absolute_error",
    "as_float",
    "check",
    "fetch",
    "load",
    "split",
    "split_on",
    "squared_error",
]
