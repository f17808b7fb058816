"""Tasks: data, models, a loss and a metric under one name."""

from weightdecay.tasks.catalogue import NAMES, check, fetch, given, load
from weightdecay.tasks.fetch import Downloaded, UnreachableError
from weightdecay.tasks.measure import Measured, absolute_error, squared_error
from weightdecay.tasks.task import (
    Builder,
    Examples,
    Prepare,
    Source,
    Task,
    as_float,
    split,
    split_on,
)

__all__ = [
    "NAMES",
    "Builder",
    "Downloaded",
    "Examples",
    "Measured",
    "Prepare",
    "Source",
    "Task",
    "UnreachableError",
    "absolute_error",
    "as_float",
    "check",
    "fetch",
    "given",
    "load",
    "split",
    "split_on",
    "squared_error",
]
