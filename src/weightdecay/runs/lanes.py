"""Configurations that train side by side, all at the same update: the common base class.

A lane trains as it would alone: its batches and their augmentation are hashes of (seed, update),
and it has its own weights, optimizer state and schedule. Subclasses define how lanes are computed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from weightdecay.hashing import word
from weightdecay.optim.rates import Applied, coming_of
from weightdecay.optim.scheduled import ScheduledOptimizer
from weightdecay.records import RunConfig
from weightdecay.runs.build import (
    AUGMENTATION,
    ORDER,
    optimizer_of,
    schedule_of,
    updates_per_epoch,
)
from weightdecay.tasks import Examples, Task
from weightdecay.tasks.measure import Measure

#: The complete state of a lane at an update, as tensors and plain values, for a checkpoint.
LaneState: TypeAlias = dict[str, Any]
#: Examples that are evaluated at a time.
CHUNK = 1000


@dataclass(frozen=True)
class Evaluation:
    """A lane's mean loss over some examples, and the fraction misclassified, or the task's metric.

    `missed` has one flag per target; it is None if several processes have shared the examples. With
    a task's own metric it has no meaning, and the top-5 error is NaN.
    """

    loss: float
    error: float
    error_top5: float
    missed: Tensor | None = None


class Lanes(ABC):
    """Configurations that share task, model, batch and budget."""

    def __init__(self, configs: Sequence[RunConfig], task: Task, device: torch.device) -> None:
        self.configs, self.task, self.device = list(configs), task, device
        self.batch = configs[0].batch
        self.per_epoch = updates_per_epoch(configs[0], task)
        # Lanes with equal schedules share one object: rates written ahead are computed once for it.
        named = {config.schedule: schedule_of(config, self.per_epoch) for config in configs}
        self.schedules = [named[config.schedule] for config in configs]
        self.updates = 0
        self._seeds = torch.tensor([config.seed for config in configs], device=device)[:, None]
        self._sums = torch.zeros(2, len(configs), dtype=torch.float64, device=device)
        self._order: tuple[int, Tensor] | None = None
        # The rates that the optimizers' last update used, and the number of updates made by then.
        self._read: dict[str, list[Applied | None]] = {}
        self._read_at = -1

    @abstractmethod
    def advance(self, updates: int) -> None:
        """Make this many updates of every lane, within one epoch."""

    @abstractmethod
    def evaluate(self, examples: Examples) -> list[Evaluation]:
        """Return the evaluation of each lane on some examples."""

    @abstractmethod
    def parameters(self, lane: int) -> dict[str, Tensor]:
        """Return a lane's weights by name."""

    @abstractmethod
    def buffers(self, lane: int) -> dict[str, Tensor]:
        """Return the buffers of a lane's model by name."""

    @abstractmethod
    def _handed(self, lane: int) -> list[Tensor]:
        """Return a lane's weights as its optimizer gets them."""

    def _build_optimizers(self) -> None:
        """Build one optimizer per algorithm, for all lanes that use it."""
        self._members: dict[str, list[int]] = {}
        for lane, config in enumerate(self.configs):
            self._members.setdefault(config.algorithm, []).append(lane)
        self.optimizers: dict[str, ScheduledOptimizer] = {
            algorithm: optimizer_of(
                algorithm,
                [(self.configs[n], self._handed(n), self.schedules[n]) for n in lanes],
            )
            for algorithm, lanes in self._members.items()
        }

    def _examples(self) -> tuple[Tensor, Tensor]:
        """Return each lane's next batch, prepared, and its targets."""
        epoch, within = divmod(self.updates, self.per_epoch)
        index = self._epoch_order(epoch)[:, within]
        return self._prepared(index, self.updates)

    def _prepared(self, index: Tensor, update: int | Tensor) -> tuple[Tensor, Tensor]:
        words = None
        if self.task.augmented:
            place = torch.arange(index.shape[1], device=self.device)
            words = word(self._seeds, AUGMENTATION, update, place).flatten()
        chosen = self.task.train[index.flatten()]
        inputs = self.task.prepare(chosen.inputs, words)
        shape = index.shape
        return torch.unflatten(inputs, 0, shape), torch.unflatten(chosen.targets, 0, shape)

    def _epoch_order(self, epoch: int) -> Tensor:
        """Return the examples of every batch of an epoch, [lane, batch, example]."""
        if self._order is None or self._order[0] != epoch:
            places = torch.arange(len(self.task.train), device=self.device)
            order = word(self._seeds, ORDER, epoch, places).argsort(dim=1, stable=True)
            whole = order[:, : self.per_epoch * self.batch]
            self._order = epoch, whole.unflatten(1, (self.per_epoch, self.batch))
        return self._order[1]

    def gathered(self) -> list[tuple[float, float]]:
        """Return each lane's mean training loss and error since the epoch began."""
        made = (self.updates - 1) % self.per_epoch + 1 if self.updates else 1
        loss, error = (self._sums / made).tolist()
        return list(zip(loss, error, strict=True))

    def begin_epoch(self) -> None:
        """Reset the mean loss and error."""
        self._sums.zero_()

    def verify(self) -> None:
        """Raise unless every lane's last update was made with the rates of its schedule.

        The rates are read back from where the update was made, and compared with the schedule
        itself, not with what was sent.
        """
        for lane, (config, schedule) in enumerate(zip(self.configs, self.schedules, strict=True)):
            group, used = self._group(lane), self._applied(lane)
            lr, decay = coming_of(group, schedule, self.updates - 1)
            wanted = self.updates - 1, lr, (decay or 0.0) * lr / group["base"], group.get("l2", 0.0)
            if used.update != wanted[0] or not np.allclose(used[1:], wanted[1:], 1e-6, 1e-30):
                raise RuntimeError(
                    f"Update {wanted[0]} of {config.algorithm} at lr {config.lr:g} must have had "
                    f"α·η = {lr:g} and λ·η = {wanted[2]:g}, by its schedule, but the last one made "
                    f"was update {used.update} with {used.lr:g} and {used.decay:g}. The run is "
                    "wrong from there on, and is not recorded."
                )

    def rates(self, lane: int) -> tuple[float, float]:
        """Return α·η and λ·η of a lane's last update, as applied; for L2, λ is its coefficient."""
        group, used = self._group(lane), self._applied(lane)
        decay = used.l2 * used.lr / group["base"] if "l2" in group else used.decay
        return used.lr, decay

    def _applied(self, lane: int) -> Applied:
        algorithm = self.configs[lane].algorithm
        if self._read_at != self.updates:
            self._read = {name: opt.applied() for name, opt in self.optimizers.items()}
            self._read_at = self.updates
        used = self._read[algorithm][self._members[algorithm].index(lane)]
        if used is None:
            raise RuntimeError("There are no rates to read: no update has been made yet.")
        return used

    @torch.no_grad()
    def weight_norm(self, lane: int) -> float:
        """Return the norm of all of a lane's weights."""
        norms = torch._foreach_norm(list(self.parameters(lane).values()), dtype=torch.float64)
        return float(torch.stack(norms).norm())

    def _group(self, lane: int) -> dict[str, Any]:
        algorithm = self.configs[lane].algorithm
        groups = self.optimizers[algorithm].param_groups
        group: dict[str, Any] = groups[self._members[algorithm].index(lane)]
        return group

    def solution(self, lane: int) -> dict[str, Tensor]:
        """Return a lane's present weights and buffers, for its model's `load_state_dict`."""
        whole = self._whole(lane)
        return {name: whole[first] for name, first in self._names.items()}

    def _whole(self, lane: int) -> dict[str, Tensor]:
        tensors = {**self.parameters(lane), **self.buffers(lane)}
        return {name: value.detach().to("cpu", copy=True) for name, value in tensors.items()}

    def _learn_names(self, model: nn.Module) -> None:
        """Note the names in a model's state; a tensor may have several."""
        named = [*model.named_parameters(), *model.named_buffers()]
        firsts = {id(tensor): name for name, tensor in reversed(named)}
        saved = model.state_dict(keep_vars=True)
        self._names = {name: firsts[id(t)] for name, t in saved.items() if id(t) in firsts}

    def state(self, lane: int) -> LaneState:
        """Return the complete state of a lane."""
        group = self._group(lane)
        plain = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        states = [dict(self._optimizer(lane).state.get(param, {})) for param in group["params"]]
        return {
            "updates": self.updates,
            "model": self._whole(lane),
            "group": plain,
            "states": self._by_parameter(lane, states),
            "sums": self._sums[:, lane].tolist(),
        }

    def load(self, states: Sequence[LaneState]) -> None:
        """Restore the state of every lane."""
        self.updates = states[0]["updates"]
        with torch.no_grad():
            for lane, state in enumerate(states):
                own = {**self.parameters(lane), **self.buffers(lane)}
                _check_same_model(own, state["model"])
                for name, tensor in own.items():
                    tensor.copy_(state["model"][name])
                self._sums[:, lane] = torch.tensor(state["sums"], dtype=torch.float64)
        for algorithm, lanes in self._members.items():
            optimizer = self.optimizers[algorithm]
            saved = optimizer.state_dict()
            for group, lane in zip(saved["param_groups"], lanes, strict=True):
                group.update(states[lane]["group"])
                parts = self._as_handed(lane, states[lane]["states"])
                saved["state"].update(zip(group["params"], parts, strict=True))
            saved["state"] = {k: v for k, v in saved["state"].items() if v}
            optimizer.load_state_dict(saved)

    def _optimizer(self, lane: int) -> ScheduledOptimizer:
        return self.optimizers[self.configs[lane].algorithm]

    def _by_parameter(self, lane: int, states: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return optimizer state per parameter of the model, on the CPU."""
        del lane
        return [
            {
                k: v.detach().to("cpu", copy=True) if isinstance(v, Tensor) else v
                for k, v in s.items()
            }
            for s in states
        ]

    def _as_handed(self, lane: int, states: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the inverse of `_by_parameter`."""
        del lane
        return states


def _check_same_model(own: dict[str, Tensor], saved: dict[str, Tensor]) -> None:
    shapes, others = ({k: tuple(v.shape) for k, v in part.items()} for part in (own, saved))
    if shapes != others:
        differing, _ = min(set(shapes.items()) ^ set(others.items()))
        raise ValueError(
            f"A checkpoint must be of the model that is trained, but {differing} differs: the task "
            "has changed under the same name. Give it another name, or start again (--fresh)."
        )


def judged(
    measure: Measure, outputs: Tensor, targets: Tensor, counted: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the sums over examples of loss, error and top-5 error, and which targets were missed.

    An example with several targets counts with its mean. If `counted` is given, only the examples
    that it marks enter the sums.
    """
    loss, error, top5 = measure(outputs, targets)
    kinds = [kind.double().reshape(len(targets), -1) for kind in (loss, error, top5)]
    if len({kind.shape for kind in kinds}) > 1:  # a loss per target, say, and an error per example
        kinds = [kind.mean(1, keepdim=True) for kind in kinds]
    each = torch.stack(kinds).mean(2)
    if counted is not None:
        each = torch.where(counted, each, 0.0)
    nothing = torch.zeros(len(targets), dtype=torch.bool, device=targets.device)
    return each.sum(1), error if measure.classifies else nothing


def summed(parts: Sequence[Tensor], examples: int, missed: Tensor | None) -> list[Evaluation]:
    """Return each lane's means from sums of loss, error and top-5 error, [3, lane] per chunk.

    `missed` has one row per lane.
    """
    columns = (torch.stack(list(parts)).sum(0) / examples).T.tolist()
    rows = [None] * len(columns) if missed is None else missed
    return [
        Evaluation(loss, error, top5, row)
        for (loss, error, top5), row in zip(columns, rows, strict=True)
    ]
