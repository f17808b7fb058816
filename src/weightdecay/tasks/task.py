"""What can be trained: data, how a batch becomes a model's input, models that fit, and a loss."""

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

#: From a batch as it is stored, and a random word an example or None, to a model's input. The words
#: are those to augment by; without them, at evaluation, nothing may be random.
Prepare: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]
#: From options, and a `generator` to draw the first weights from, to a model.
Builder: TypeAlias = Callable[..., nn.Module]


@dataclass(frozen=True)
class Examples:
    """Inputs as they are stored, uint8 where they can be, and what a model should make of them.

    `targets` has an int64 class for each example, or for each position of each example; for a task
    with a loss of its own, whatever that takes.
    """

    inputs: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        for name in ("inputs", "targets"):
            if not isinstance(getattr(self, name), Tensor):
                raise TypeError(
                    f"`{name}` must be a tensor, got a {type(getattr(self, name)).__name__}. "
                    "torch.from_numpy makes one of an array."
                )
        if len(self.inputs) != len(self.targets) or not len(self.targets):
            raise ValueError(
                "Examples must have a target for every input, and one at least, got "
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
    """Leave a batch as it is, but for its dtype."""
    del words
    return batch.float()


@dataclass(frozen=True)
class Task:
    """Data, models and a loss under one name. The first model is the default.

    With `classes`, targets are int64 classes; the loss is cross-entropy and the error the share of
    targets that were missed, unless `loss` or `metric` say otherwise. Without, targets are whatever
    `loss` takes, and the error is `metric`, or the loss where there is none.

    `loss(outputs, targets)` and `metric(outputs, targets)` return one number per example, or one
    per target of each example: their means are minimized, and recorded. Lower is better.

    `choices` is the data that choices are made on: a task comes without, and `split` holds some of
    its training data out.
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
            raise ValueError(f"`models` must name one at least, got none for {self.name}.")
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
                "use loss=weightdecay.tasks.squared_error, for classes say how many there are."
            )

    def _check_classes(self, classes: int) -> None:
        checks.whole("classes", classes, at_least=2)
        for part in (self.train, self.test):
            if part.targets.dtype is not torch.int64:
                raise TypeError(
                    f"`targets` of {self.name} must be int64 classes, got {part.targets.dtype}. "
                    "Use .long() for classes. For numbers, leave `classes` out and give a loss, as "
                    "in loss=weightdecay.tasks.squared_error."
                )
            least, most = (int(target) for target in torch.aminmax(part.targets))
            if least < 0 or most >= classes:
                raise ValueError(
                    f"`targets` of {self.name} must be from 0 to {classes - 1}, got "
                    f"{least if least < 0 else most}."
                )

    @cached_property
    def measure(self) -> Measure:
        """Return what gives each example's loss and error."""
        by_loss = self.classes is None and self.metric is None
        return Measure(self.loss, self.loss if by_loss else self.metric)

    @property
    def augmented(self) -> bool:
        """Whether `prepare` is given random words in training."""
        return self.prepare is not as_float

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the data, by which a task that was changed is told from what it was.

        A loss and a metric of its own are in it by name.
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
        """Return what this task was last split into, for as long as it lives: see `split_on`."""
        return {}

    def to(self, device: torch.device | str) -> "Task":
        """Return the same task with its data on a device."""
        test, choices = self.test.to(device), self.choices
        if choices is not None:
            choices = test if choices is self.test else choices.to(device)
        return replace(self, train=self.train.to(device), test=test, choices=choices)


#: A task, or a function that makes it.
Source: TypeAlias = Task | Callable[[], Task]


def split(task: Task, *, validation: int | str | None, data: int | None) -> Task:
    """Hold `validation` examples out of training to choose on, and train on `data` of the rest.

    None is a tenth, and all that is left. "test" trains on everything and chooses on the test set,
    as the paper does. Which examples are held out depends on the task alone, and a smaller `data`
    is part of a larger one: so runs of one task can be compared.
    """
    if isinstance(validation, str):
        checks.one_of("validation", validation, ("test",))
        held = 0
    else:
        held = len(task.train) // 10 if validation is None else validation
        checks.whole("validation", held, at_least=1, cure='Or "test", to choose on the test set.')
    left = len(task.train) - held
    if left < 1:
        raise ValueError(
            f"`validation` must be below the {len(task.train)} examples that {task.name} has to "
            f"train on, got {held}."
        )
    used = left if data is None else checks.whole("data", data, at_least=1)
    if used > left:
        raise ValueError(
            f"`data` must be at most {left}, what {task.name} has for training beside validation, "
            f"got {used}."
        )
    places = torch.arange(len(task.train), device=task.train.targets.device)
    order = word(0, places).argsort(stable=True)
    choices = task.train[order[:held]] if held else task.test
    return replace(task, train=task.train[order[held : held + used]], choices=choices)


def split_on(
    device: torch.device, task: Task, *, validation: int | str | None, data: int | None
) -> Task:
    """Return what `split` does, on a device; the same again for as long as the same is asked.

    Packs of a sweep train on one split, and splitting and sending it takes as long as many updates.
    """
    asked = device, validation, data
    if asked not in task.parts:
        task.parts.clear()  # before another comes into memory
        task.parts[asked] = split(task, validation=validation, data=data).to(device)
    return task.parts[asked]
