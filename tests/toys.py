"""Small tasks and models for the tests, which train in milliseconds."""

import multiprocessing
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from weightdecay.records import Event, Notice, Record, RunConfig
from weightdecay.runs import pack
from weightdecay.tasks import Builder, Examples, Task
from weightdecay.tasks.models import MLP


class Dropping(nn.Module):
    """A network that draws from torch's own generator while it trains."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.body = MLP(12, 8, width=8, generator=generator)
        self.drop = nn.Dropout(0.3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.body(self.drop(inputs))
        return outputs


class Forking(nn.Module):
    """A network whose path depends on its data, which torch cannot map over lanes."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.body = MLP(12, 8, width=8, generator=generator)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.body(inputs if float(inputs.mean()) > -9 else -inputs)
        return outputs


class Odd(nn.Module):
    """A network with one peculiarity that a way of training might not handle."""

    mean: Tensor
    place: Tensor

    def __init__(self, generator: torch.Generator, *, thing: str, width: int = 8) -> None:
        super().__init__()
        self.thing = thing
        self.scale = nn.Parameter(torch.tensor(1.0))  # a scalar, and the first
        self.one, self.other = nn.Linear(12, width), nn.Linear(width, 8)
        for layer in (self.one, self.other):
            nn.init.normal_(layer.weight, std=0.3, generator=generator)
            nn.init.zeros_(layer.bias)
        self.register_buffer("mean", torch.zeros(12))
        self.register_buffer("place", torch.ones(12), persistent=thing != "transient")
        if thing == "frozen":
            self.one.weight.requires_grad_(False)
        if thing == "unused":
            self.spare = nn.Parameter(torch.ones(3))
        if thing == "tied":
            self.again = self.other

    def forward(self, inputs: Tensor) -> Tensor:
        if self.thing == "reassigned" and self.training:
            self.mean = 0.9 * self.mean + 0.1 * inputs.detach().mean(0)
        if self.thing == "functional":
            inputs = nn.functional.dropout(inputs, 0.2, self.training)
        hidden = self.one((inputs - self.mean) * self.place).relu()
        outputs: Tensor = self.other(hidden) * self.scale
        return outputs


def _default(generator: torch.Generator) -> nn.Module:
    """Return a model that ignores its generator."""
    del generator
    return nn.Linear(12, 8)


def toy() -> Task:
    """Points in twelve dimensions, in eight classes that overlap."""
    generator = torch.Generator("cpu").manual_seed(1)
    points = torch.randn(360, 12, generator=generator, device="cpu")
    plane = torch.randn(12, 8, generator=generator, device="cpu")
    noise = torch.randn(360, 8, generator=generator, device="cpu")
    classes = (points @ plane + 2 * noise).argmax(1)
    models: dict[str, Builder] = {
        "mlp": partial(MLP, 12, 8, width=8),
        "dropping": Dropping,
        "forking": Forking,
        "linear": _linear,
        "odd": Odd,
        "default": _default,
    }
    train, test = (Examples(points[part], classes[part]) for part in (slice(300), slice(300, 360)))
    return Task("toy", train, test, 8, models, _shaken)


def _linear(generator: torch.Generator) -> nn.Module:
    """Return a model without batch statistics."""
    model = nn.Linear(12, 8)
    nn.init.normal_(model.weight, std=0.1, generator=generator)
    nn.init.zeros_(model.bias)
    return model


def _shaken(batch: Tensor, words: Tensor | None) -> Tensor:
    """Add noise: one of 16 numbers per example."""
    return batch if words is None else batch + 0.1 * (words >> 28).float()[:, None]


def config(**changes: Any) -> RunConfig:
    """Return a configuration of the toy: 27 updates in 3 epochs."""
    values: dict[str, Any] = {
        "task": "tests.toys:toy",
        "model": "mlp",
        "algorithm": "adamw",
        "lr": 0.02,
        "epochs": 3,
        "batch": 30,
    }
    values |= changes
    if not {"weight_decay", "normalized_decay", "l2"} & set(changes):
        values["normalized_decay"] = 0.1
    return RunConfig(**values)


def records_of(events: Iterable[Event]) -> dict[str, list[Record]]:
    """Return the records of each run."""
    found: dict[str, list[Record]] = {}
    for event in events:
        if isinstance(event, Record):
            found.setdefault(event.run, []).append(event)
    return found


def notices_of(events: Iterable[Event]) -> list[str]:
    """Return the texts of the notices."""
    return [event.text for event in events if isinstance(event, Notice)]


def hasty() -> Task:
    """Return the toy, slowed down and saved often, so that kills hit critical moments."""
    pack.CHECKPOINT_EVERY, pack.PROGRESS_EVERY = 0.3, 0.05
    whole = toy()

    def prepare(batch: Tensor, words: Tensor | None) -> Tensor:
        time.sleep(0.002)
        return _shaken(batch, words)

    return replace(whole, name="hasty", prepare=prepare)


def forking() -> Task:
    """Return the toy, made with helper processes, one of which outlives the worker."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(abs, range(4))
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,), daemon=True).start()
    return replace(toy(), name="forking")
