"""What can be trained: data, how a batch of it becomes a model's input, and the models that fit."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor, nn

from weightdecay import checks
from weightdecay.words import word

#: From a batch as it is stored, and a random word an example or None, to a model's input. The words
#: are those to augment by; without them, at evaluation, nothing may be random.
Prepare: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]
#: From options, and a `generator` to draw the first weights from, to a model.
Builder: TypeAlias = Callable[..., nn.Module]


@dataclass(frozen=True)
class Examples:
    """Inputs as they are stored, uint8 where they can be, and the classes they belong to.

    `targets` has an int64 class for each example, or for each position of each example.
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
        if self.targets.dtype is not torch.int64:
            raise TypeError(f"`targets` must be int64, got {self.targets.dtype}. Use .long().")

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
    """Data and models under one name. The first model is the one meant where none is named.

    `choices` is the data that choices are made on: a task comes without, and `split` holds some of
    its training data out.
    """

    name: str
    train: Examples
    test: Examples
    classes: int
    models: Mapping[str, Builder]
    prepare: Prepare = as_float
    choices: Examples | None = None

    def __post_init__(self) -> None:
        checks.whole("classes", self.classes, at_least=2)
        if not self.models:
            raise ValueError(f"`models` must name one at least, got none for {self.name}.")
        for part in (self.train, self.test):
            least, most = (int(target) for target in torch.aminmax(part.targets))
            if least < 0 or most >= self.classes:
                raise ValueError(
                    f"`targets` of {self.name} must be from 0 to {self.classes - 1}, got "
                    f"{least if least < 0 else most}."
                )

    @property
    def augmented(self) -> bool:
        """Whether `prepare` is given random words in training."""
        return self.prepare is not as_float

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the data, by which a task that was changed is told from what it was."""
        found = hashlib.sha256()
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
