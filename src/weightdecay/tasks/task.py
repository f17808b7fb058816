"""A task: data, the preparation of a batch, models for it, a loss and a metric."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor, nn

from weightdecay import checks
from weightdecay.hashing import word
from weightdecay.tasks.measure import Measure, Measured, name_of

#: From a stored batch, and one random word per example or None, to a model's input. The words are
#: for augmentation; without them, in evaluation, nothing may be random.
Prepare: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]
#: From options, and a `generator` for the initial weights, to a model.
Builder: TypeAlias = Callable[..., nn.Module]


@dataclass(frozen=True)
class Examples:
    """Inputs as they are stored, uint8 if possible, and their targets.

    `targets` has an int64 class for each example, or for each position of each example. For a task
    with its own loss, it is whatever the loss takes.
    """

    inputs: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        for name in ("inputs", "targets"):
            if not isinstance(getattr(self, name), Tensor):
                raise TypeError(
                    f"`{name}` must be a tensor, got a {type(getattr(self, name)).__name__}. "
                    "torch.from_numpy converts an array."
                )
        if len(self.inputs) != len(self.targets) or not len(self.targets):
            raise ValueError(
                "Examples must have one target per input, and at least one, got "
                f"{len(self.inputs)} inputs and {len(self.targets)} targets."
            )

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: Tensor | slice) -> "Examples":
        return Examples(self.inputs[index], self.targets[index])

    def to(self, device: torch.device | str) -> "Examples":
        """Return the same examples on a device."""
        return Examples(self.inputs.to(device), self.targets.to(device))


def as_float(batch: Tensor, words: Tensor | None) -> Tensor:
    """Convert a batch to float32 and change nothing else."""
    del words
    return batch.float()


@dataclass(frozen=True)
class Task:
    """Data, models and a loss under one name. The first model is the default.

    With `classes`, targets are int64 classes; unless `loss` or `metric` is given, the loss is
    cross-entropy and the error is the fraction of misclassified targets. Without `classes`, targets
    are whatever `loss` takes, and the error is `metric`, or the loss if there is no metric.

    `loss(outputs, targets)` and `metric(outputs, targets)` return one number per example, or one
    per target of each example. The mean loss is minimized, and both means are recorded. Lower is
    better.

    `choices` is the data that choices are made on. A new task has none: `split` takes some from the
    training data.
    """

    name: str
    train: Examples
    test: Examples
    classes: int | None = None
    models: Mapping[str, Builder] = field(default_factory=dict)
    prepare: Prepare = as_float
    choices: Examples | None = None
    loss: Measured | None = None
    metric: Measured | None = None

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError(f"`models` must have at least one model, got none for {self.name}.")
        for name in ("loss", "metric"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise TypeError(
                    f"`{name}` of {self.name} must be a function of outputs and targets, got "
                    f"{function!r}."
                )
        if self.classes is not None:
            self._check_classes(self.classes)
        elif self.loss is None:
            raise ValueError(
                f"`loss` must be given for {self.name}, which has no `classes`. For float targets "
                "use loss=weightdecay.tasks.squared_error; for classes pass their number."
            )

    def _check_classes(self, classes: int) -> None:
        checks.whole("classes", classes, at_least=2)
        for part in (self.train, self.test):
            if part.targets.dtype is not torch.int64:
                raise TypeError(
                    f"`targets` of {self.name} must be int64 classes, got {part.targets.dtype}. "
                    "Use .long() for classes. For numbers, leave `classes` out and pass a loss, "
                    "such as loss=weightdecay.tasks.squared_error."
                )
            least, most = (int(target) for target in torch.aminmax(part.targets))
            if least < 0 or most >= classes:
                raise ValueError(
                    f"`targets` of {self.name} must be from 0 to {classes - 1}, got "
                    f"{least if least < 0 else most}."
                )

    @cached_property
    def measure(self) -> Measure:
        """The loss and metric, as training uses them."""
        by_loss = self.classes is None and self.metric is None
        return Measure(self.loss, self.loss if by_loss else self.metric)

    @property
    def augmented(self) -> bool:
        """Whether `prepare` gets random words in training."""
        return self.prepare is not as_float

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the data, which shows whether a task was changed.

        It includes the names of its own loss and metric.
        """
        found = hashlib.sha256()
        for function in (self.loss, self.metric):
            found.update(b"" if function is None else f"{name_of(function)}\n".encode())
        for part in (self.train, self.test):
            for tensor in (part.inputs, part.targets):
                found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
                plain = (
                    tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
                )  # bfloat16 too
                found.update(plain.numpy().tobytes())
        return found.hexdigest()[:20]

    @cached_property
    def parts(self) -> "dict[object, Task]":
        """The last split of this task, kept as long as the task: see `split_on`."""
        return {}

    def to(self, device: torch.device | str) -> "Task":
        """Return the same task with its data on a device."""
        test, choices = self.test.to(device), self.choices
        if choices is not None:
            choices = test if choices is self.test else choices.to(device)
        return replace(self, train=self.train.to(device), test=test, choices=choices)


#: A task, or a function that returns one.
Source: TypeAlias = Task | Callable[[], Task]


def split(task: Task, *, validation: int | str | None, data: int | None) -> Task:
    """Hold out `validation` training examples for choices, and train on `data` of the rest.

    By default a tenth is held out, and all the rest is used. "test" trains on everything and uses
    the test set for choices, as the paper does. Which examples are held out depends only on the
    task, and a smaller `data` is a subset of a larger one, so runs of one task can be compared.
    """
    if isinstance(validation, str):
        checks.one_of("validation", validation, ("test",))
        held = 0
    else:
        held = len(task.train) // 10 if validation is None else validation
        checks.whole("validation", held, at_least=1, cure='Or "test", to use the test set.')
    left = len(task.train) - held
    if left < 1:
        raise ValueError(
            f"`validation` must be below {len(task.train)}, the training examples of {task.name}, "
            f"got {held}."
        )
    used = left if data is None else checks.whole("data", data, at_least=1)
    if used > left:
        raise ValueError(
            f"`data` must be at most {left}, the training examples of {task.name} without "
            f"validation, got {used}."
        )
    places = torch.arange(len(task.train), device=task.train.targets.device)
    order = word(0, places).argsort(stable=True)
    choices = task.train[order[:held]] if held else task.test
    return replace(task, train=task.train[order[held : held + used]], choices=choices)


def split_on(
    device: torch.device, task: Task, *, validation: int | str | None, data: int | None
) -> Task:
    """Return a split on a device; repeated calls with the same arguments return the same one.

    The packs of a sweep use the same split, and making it and copying it takes as long as many
    updates.
    """
    key = device, validation, data
    if key not in task.parts:
        task.parts.clear()  # free its memory first
        task.parts[key] = split(task, validation=validation, data=data).to(device)
    return task.parts[key]
