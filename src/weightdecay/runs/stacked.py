"""Lanes on the CPU as one computation: weights are stacked, and the model is mapped over them.

Each lane's weights are one row of a matrix. The model sees a parameter of all lanes as a slice of
the matrix; the optimizer sees a row, so that one call of a fused kernel updates a whole lane.

A lane's bits do not depend on the other lanes. Two things need care for that. A single lane would
be multiplied by a different routine, so there must be at least two. And torch sums the gradients
of a normalization's scale over the batch for all lanes at once, in a different order for columns
beyond the last full block of 64. So packs are filled up with copies of the first lane, called
twins.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from weightdecay.records import RunConfig
from weightdecay.runs.build import model_of, takes_rows
from weightdecay.runs.lanes import Evaluation, Lanes, judged, summed
from weightdecay.runs.separate import Separate
from weightdecay.tasks import Examples, Task

# Columns that torch sums at once, on any processor; and the largest multiple that lanes are filled
# up to because of it.
_BLOCK, _MOST = 64, 8
# Examples that are evaluated at a time: with more, what many lanes compute leaves the cache.
_CHUNK = 200
# Entries of an optimizer's state that are one number for all elements.
_COUNTS = ("step", "mu_product")
# Layers whose mapped form depends on the number of lanes and is not faster, and layers that draw
# random numbers.
_UNFIT = (
    nn.modules.conv._ConvNd,
    nn.modules.dropout._DropoutNd,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.RNNBase,
)


def can_stack(config: RunConfig, task: Task) -> bool:
    """Whether a model mapped over lanes computes the same as alone, tested by a few updates."""
    model, cpu = model_of(config, task), torch.device("cpu")
    plain = all(p.requires_grad and p.dtype is torch.float32 for p in model.parameters())
    if not plain or hasattr(model, "generator") or _evenness(model) > _MOST:
        return False
    if any(isinstance(part, _UNFIT) for part in model.modules()):
        return False
    # The answer must not depend on the settings of the first lane, which may diverge.
    gentle = {"algorithm": "sgd", "lr": 0.02, "schedule": "constant", "l2": 0.0, "seed": 0}
    config = replace(config, **gentle, weight_decay=None, normalized_decay=None)  # type: ignore[arg-type]
    alone = Separate([config], task, cpu)
    updates = min(3, alone.per_epoch)
    alone.advance(updates)
    try:
        lanes = Stacked([config] * 4, task, cpu)
        lanes.advance(updates)
        lanes.evaluate(task.test[:2])
    except Exception:  # noqa: BLE001 - any error is a reason to train lanes separately
        return False
    # Some models depend on a lane's index, or lose buffers that they reassign.
    same = all(torch.equal(row, lanes._rows[0]) for row in lanes._rows)
    pairs = zip(lanes.solution(0).values(), alone.solution(0).values(), strict=True)
    return same and all(torch.allclose(*pair, rtol=1e-3, atol=1e-5) for pair in pairs)


def _evenness(model: nn.Module) -> int:
    """Return the number of which the number of lanes must be a multiple."""
    widths = (part.num_features for part in model.modules() if isinstance(part, nn.BatchNorm1d))
    return math.lcm(*(_BLOCK // math.gcd(_BLOCK, width) for width in widths))


class Stacked(Lanes):
    """Lanes of models that draw no random numbers while they train."""

    def __init__(self, configs: Sequence[RunConfig], task: Task, device: torch.device) -> None:
        self._real, even = len(configs), _evenness(model_of(configs[0], task))
        self._twins = max(2, -(-self._real // even) * even) - self._real
        super().__init__([*configs, *[configs[0]] * self._twins], task, device)
        seeds = {config.seed: config for config in self.configs}
        started = {seed: model_of(config, task) for seed, config in seeds.items()}
        models = [started[config.seed] for config in self.configs]  # lanes of one seed start alike
        self._model = models[0]
        self._learn_names(self._model)
        self._shapes = {name: param.shape for name, param in self._model.named_parameters()}
        self._rows = torch.stack(
            [nn.utils.parameters_to_vector(model.parameters()).detach() for model in models]
        )
        self._row_grads = torch.zeros_like(self._rows)
        self._buffers = {
            name: torch.stack([dict(model.named_buffers())[name] for model in models])
            for name, _ in self._model.named_buffers()
        }
        self._weights = {k: v.requires_grad_() for k, v in self._columns(self._rows).items()}
        self._grads = list(self._columns(self._row_grads).values())
        self._lane_weights = [self._split(row) for row in self._rows]
        self._build_optimizers()

    def _columns(self, rows: Tensor) -> dict[str, Tensor]:
        """Return each parameter of all lanes as a view of the rows."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        parts = torch.split(rows.detach(), sizes, dim=1)
        return {
            name: torch.unflatten(part, 1, shape) if shape else part.squeeze(1)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def _split(self, row: Tensor) -> dict[str, Tensor]:
        return {name: column[0] for name, column in self._columns(row[None]).items()}

    def _handed(self, lane: int) -> list[Tensor]:
        whole = takes_rows(self.configs[lane].algorithm)
        row, grads = self._rows[lane], self._row_grads[lane]
        params = [row] if whole else list(self._split(row).values())
        slopes = [grads] if whole else list(self._split(grads).values())
        handed = [nn.Parameter(param) for param in params]
        for param, slope in zip(handed, slopes, strict=True):
            param.grad = slope
        return list(handed)

    def advance(self, updates: int) -> None:
        self._model.train()
        for _ in range(updates):
            inputs, targets = self._examples()
            loss, wrong = self._losses(self._weights, self._buffers, inputs, targets)
            grads = torch.autograd.grad(loss.sum(), list(self._weights.values()))
            torch._foreach_copy_(self._grads, grads)
            for optimizer in self.optimizers.values():
                optimizer.step()
            self._sums += torch.stack([loss.detach().double(), wrong.double()])
            self.updates += 1

    def _losses(self, *stacked: Any) -> Any:
        def of_lane(
            weights: dict[str, Tensor], buffers: dict[str, Tensor], inputs: Tensor, targets: Tensor
        ) -> tuple[Tensor, Tensor]:
            outputs = functional_call(self._model, (weights, buffers), (inputs,))
            loss, error, _ = self.task.measure(outputs, targets)
            return loss.mean(), error.double().mean()

        return vmap(of_lane)(*stacked)

    @torch.no_grad()
    def evaluate(self, examples: Examples) -> list[Evaluation]:
        self._model.eval()

        def of_lane(weights: Any, buffers: Any, inputs: Tensor, targets: Tensor) -> Any:
            outputs = functional_call(self._model, (weights, buffers), (inputs,))
            return judged(self.task.measure, outputs, targets)

        parts, missed = [], []
        for start in range(0, len(examples), _CHUNK):
            chunk = examples[start : start + _CHUNK]
            inputs = self.task.prepare(chunk.inputs, None)
            # Each lane gets its own inputs: shared ones would be multiplied in one operation, whose
            # blocking depends on the number of lanes.
            lanes = (len(self.configs), *[-1] * inputs.ndim)
            of_all = (inputs.expand(lanes), chunk.targets.expand(lanes[0], *chunk.targets.shape))
            sums, wrong = vmap(of_lane)(self._weights, self._buffers, *of_all)
            parts.append(sums.T)
            missed.append(wrong)
        return summed(parts, len(examples), torch.cat(missed, 1))[: self._real]

    def parameters(self, lane: int) -> dict[str, Tensor]:
        return self._lane_weights[lane]

    def buffers(self, lane: int) -> dict[str, Tensor]:
        return {name: stacked[lane] for name, stacked in self._buffers.items()}

    def gathered(self) -> list[tuple[float, float]]:
        return super().gathered()[: self._real]

    def load(self, states: Sequence[dict[str, Any]]) -> None:
        super().load([*states, *[states[0]] * self._twins])

    def _by_parameter(self, lane: int, states: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if takes_rows(self.configs[lane].algorithm):
            [whole] = states
            parts = {k: self._split(v) for k, v in whole.items() if v.shape == self._rows[0].shape}
            scalars = {k: v for k, v in whole.items() if k not in parts}
            states = [
                {**scalars, **{k: v[name] for k, v in parts.items()}} for name in self._shapes
            ]
        return super()._by_parameter(lane, states)

    def _as_handed(self, lane: int, states: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not takes_rows(self.configs[lane].algorithm):
            return states
        columns = {key: [state[key] for state in states] for key in states[0]}
        return [
            {
                key: parts[0] if key in _COUNTS else torch.cat([part.flatten() for part in parts])
                for key, parts in columns.items()
            }
        ]
