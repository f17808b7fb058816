"""Lanes as ordinary models that train one after the other: for any model, and for single lanes.

With several processes (`torchrun`), each takes its share of every batch, and DDP keeps their
weights equal.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from weightdecay.hashing import word
from weightdecay.records import RunConfig
from weightdecay.runs.build import DRAWS, model_of
from weightdecay.runs.lanes import CHUNK, Evaluation, Lanes, judged, summed
from weightdecay.tasks import Examples, Task


class Separate(Lanes):
    """One model per lane. Each draws its random numbers from a seed of (lane, update)."""

    def __init__(self, configs: Sequence[RunConfig], task: Task, device: torch.device) -> None:
        super().__init__(configs, task, device)
        self.models = [model_of(config, task).to(device) for config in configs]
        self._callable: list[nn.Module] = list(self.models)
        self._rank, self._world = 0, 1
        if dist.is_initialized() and dist.get_world_size() > 1:
            self._rank, self._world = dist.get_rank(), dist.get_world_size()
            if self.batch % self._world:
                raise ValueError(
                    f"`batch` must be a multiple of the {self._world} processes that share it, "
                    f"got {self.batch}."
                )
            self._callable = [
                DistributedDataParallel(model, find_unused_parameters=self._leaves_unused(model))
                for model in self.models
            ]
        self._learn_names(self.models[0])
        self._build_optimizers()

    def _handed(self, lane: int) -> list[Tensor]:
        return list(self.models[lane].parameters())

    def _leaves_unused(self, model: nn.Module) -> bool:
        """Whether the loss does not depend on some of the weights."""
        trial = copy.deepcopy(model)
        with _own_randomness(self.device):
            give_generator(trial, 0, self.device)
            inputs, targets = self._examples()
            loss, *_ = self.task.measure(trial(inputs[0]), targets[0])
            loss.mean().backward()  # type: ignore[no-untyped-call]
        return any(p.grad is None for p in trial.parameters() if p.requires_grad)

    def advance(self, updates: int) -> None:
        with _own_randomness(self.device):
            for _ in range(updates):
                inputs, targets = self._examples()
                mine = slice(self._rank, None, self._world)
                sums = [
                    self._backward(lane, inputs[lane, mine], targets[lane, mine])
                    for lane in range(len(self.models))
                ]
                for optimizer in self.optimizers.values():
                    optimizer.step()
                    optimizer.zero_grad()
                self._sums += self._over_processes(torch.stack(sums, dim=1)) / self._world
                self.updates += 1

    def _backward(self, lane: int, inputs: Tensor, targets: Tensor) -> Tensor:
        """Compute a lane's gradients, and return its mean loss and error."""
        config, model = self.configs[lane], self._callable[lane]
        seed = word(config.seed, DRAWS, self.updates, self._rank)
        _seed(seed, self.device)
        give_generator(self.models[lane], seed, self.device)
        model.train()
        with torch.autocast(
            self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"
        ):
            outputs = model(inputs)
        loss, error, _ = self.task.measure(outputs, targets)
        loss.mean().backward()  # type: ignore[no-untyped-call]
        return torch.stack([loss.detach().double().mean(), error.double().mean()])

    def _over_processes(self, sums: Tensor) -> Tensor:
        if self._world > 1:
            dist.all_reduce(sums)
        return sums

    @torch.no_grad()
    def evaluate(self, examples: Examples) -> list[Evaluation]:
        if self._world > 1:  # each process has its own batch statistics; use those of the first
            for model in self.models:
                for buffer in model.buffers():
                    dist.broadcast(buffer, 0)
        total = torch.zeros(3, len(self.models), dtype=torch.float64, device=self.device)
        missed = []
        for start in range(self._rank * CHUNK, len(examples), CHUNK * self._world):
            chunk = examples[start : start + CHUNK]
            inputs = self.task.prepare(chunk.inputs, None)
            lanes = [self._judge(n, inputs, chunk.targets) for n in range(len(self.models))]
            sums, wrong = map(torch.stack, zip(*lanes, strict=True))
            total += sums.T
            missed.append(wrong)
        whole = torch.cat(missed, 1) if self._world == 1 else None
        return summed([self._over_processes(total)], len(examples), whole)

    def _judge(self, lane: int, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        model, precision = self.models[lane], self.configs[lane].precision
        model.eval()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            outputs = model(inputs)
        return judged(self.task.measure, outputs, targets)

    def parameters(self, lane: int) -> dict[str, Tensor]:
        return dict(self.models[lane].named_parameters())

    def buffers(self, lane: int) -> dict[str, Tensor]:
        return dict(self.models[lane].named_buffers())


def give_generator(model: nn.Module, seed: int, device: torch.device) -> None:
    """Seed the generator of a model that draws random numbers while it trains."""
    if hasattr(model, "generator"):
        held: Any = model
        if not isinstance(held.generator, torch.Generator) or held.generator.device != device:
            held.generator = torch.Generator(device)
        held.generator.manual_seed(seed)


def _seed(seed: int, device: torch.device) -> None:
    # torch.manual_seed seeds every device, which takes as long as an update.
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


@contextmanager
def _own_randomness(device: torch.device) -> Iterator[None]:
    """Leave torch's own random state as it was, for other users of it."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        yield
