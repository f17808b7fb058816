"""A name into data, model and loss."""

from weightdecay.tasks.task import Builder, Examples, Prepare, Task, as_float, split

__all__ = ["Builder", "Examples", "Prepare", "Task", "as_float", "split"]
